package prune

import (
	"strings"
	"testing"

	"gradtool/graph"
)

// text lists the graph's nodes, initializers and outputs by name.
func text(g *graph.Graph) string {
	var b strings.Builder
	for _, v := range g.Inits {
		b.WriteString("init " + v.Name + "\n")
	}
	for _, n := range g.Nodes {
		b.WriteString(n.Out[0].Name + " = " + n.Op + "(")
		for i, v := range n.In {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(v.Name)
		}
		b.WriteString(")\n")
	}
	for _, v := range g.Outputs {
		b.WriteString("output " + v.Name + "\n")
	}
	return b.String()
}

func TestClean(t *testing.T) {
	scalar := graph.TensorOf(graph.Float, graph.Shape{})
	node := func(g *graph.Graph, op, out string, in ...*graph.Value) *graph.Value {
		n := g.NewNode("", op, in, []string{out})
		g.Append(n)
		return n.Out[0]
	}
	for _, c := range []struct {
		name  string
		build func(g *graph.Graph, x *graph.Value)
		want  string
		stats string
	}{
		{"dead chain", func(g *graph.Graph, x *graph.Value) {
			w := g.AddInit("w", graph.Floats([]int64{}, 1))
			node(g, "Exp", "b", node(g, "Add", "a", x, w))
			g.AddOutput(node(g, "Neg", "y", x))
		}, "y = Neg(x)\noutput y\n", "2 dead nodes, 1 unused initializer"},
		{"identity inside", func(g *graph.Graph, x *graph.Value) {
			g.AddOutput(node(g, "Neg", "y", node(g, "Identity", "i", x)))
		}, "y = Neg(x)\noutput y\n", "1 identity"},
		{"identity before the output gives its name", func(g *graph.Graph, x *graph.Value) {
			g.AddOutput(node(g, "Identity", "y", node(g, "Neg", "n", x)))
		}, "y = Neg(x)\noutput y\n", "1 identity"},
		{"identity of an input that is an output stays", func(g *graph.Graph, x *graph.Value) {
			g.AddOutput(node(g, "Identity", "y", x))
		}, "y = Identity(x)\noutput y\n", ""},
		{"identity of an initializer that is an output stays", func(g *graph.Graph, x *graph.Value) {
			g.AddOutput(node(g, "Identity", "y", g.AddInit("w", graph.Floats([]int64{}, 1))))
		}, "init w\ny = Identity(w)\noutput y\n", ""},
		{"two outputs of one value keep both names", func(g *graph.Graph, x *graph.Value) {
			n := node(g, "Neg", "n", x)
			g.AddOutput(n)
			g.AddOutput(node(g, "Identity", "y", n))
		}, "n = Neg(x)\ny = Identity(n)\noutput n\noutput y\n", ""},
		{"chain of identities", func(g *graph.Graph, x *graph.Value) {
			g.AddOutput(node(g, "Identity", "y", node(g, "Identity", "i", node(g, "Identity", "j", node(g, "Neg", "n", x)))))
		}, "y = Neg(x)\noutput y\n", "3 identities"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := graph.NewModel("m", 21)
			c.build(m.Graph, m.Graph.AddInput("x", scalar))
			if s := Clean(m); s.String() != c.stats {
				t.Errorf("removed %s, want %s", s, c.stats)
			}
			if got := text(m.Graph); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
			if s := Clean(m); s.Changed() {
				t.Errorf("a second run removed %+v", s)
			}
		})
	}
}

// TestCaptured checks that what a subgraph reads from outside counts as used, and that an Identity in a
// subgraph that hands an outer value to the subgraph's output stays.
func TestCaptured(t *testing.T) {
	m := graph.NewModel("m", 21)
	g := m.Graph
	c := g.AddInput("c", graph.TensorOf(graph.Bool, graph.Shape{}))
	x := g.AddInput("x", graph.TensorOf(graph.Float, graph.Shape{}))
	neg := g.NewNode("", "Neg", []*graph.Value{x}, []string{"n"})
	i := g.NewNode("", "Identity", neg.Out, []string{"i"})
	g.Append(neg, i)
	branch := func(name string) *graph.Graph {
		b := m.NewGraph(name)
		id := b.NewNode("", "Identity", i.Out, []string{name + "_y"})
		unused := b.NewNode("", "Exp", i.Out, []string{name + "_u"})
		b.Append(id, unused)
		b.AddOutput(id.Out[0])
		return b
	}
	n := g.NewNode("", "If", []*graph.Value{c}, []string{"y"}, graph.GraphAttr("then_branch", branch("t")), graph.GraphAttr("else_branch", branch("e")))
	g.Append(n)
	g.AddOutput(n.Out[0])
	if s := Clean(m); s.Dead != 2 || s.Identities != 1 {
		t.Errorf("removed %+v", s)
	}
	for _, sub := range n.Subgraphs() {
		if len(sub.Nodes) != 1 || sub.Nodes[0].In[0] != neg.Out[0] {
			t.Errorf("branch %s has %d nodes", sub.Name, len(sub.Nodes))
		}
	}
}
