package op_test

import (
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

// function adds a function to m and lets build fill its body.
func function(m *graph.Model, name string, opset int64, build func(f *graph.Function, g *graph.Graph)) *graph.Function {
	f := &graph.Function{Domain: "local", Name: name, Opsets: []graph.Opset{{Domain: "", Version: opset}, {Domain: "local", Version: 1}}}
	f.Body = m.NewGraph(name)
	f.Body.Func = f
	build(f, f.Body)
	m.Functions = append(m.Functions, f)
	return f
}

func scalarType() graph.Type { return graph.TensorOf(graph.Float, graph.ShapeOf(2, 3)) }

// ops lists the operators of a graph's nodes.
func ops(g *graph.Graph) string {
	var s []string
	for _, n := range g.Nodes {
		s = append(s, n.Op)
	}
	return strings.Join(s, " ")
}

// scale adds the function scale(x, y?) = (x / alpha) + y with LeakyRelu of the attribute alpha, by default 0.5.
func scale(m *graph.Model, opset int64) *graph.Function {
	return function(m, "scale", opset, func(f *graph.Function, g *graph.Graph) {
		f.Defaults = []*graph.Attr{graph.FloatAttr("alpha", 0.5)}
		f.Attrs = []string{"axes"}
		x, y := g.AddInput("x", graph.Type{}), g.AddInput("y", graph.Type{})
		a := g.NewNode("", "LeakyRelu", []*graph.Value{x}, []string{"a"}, &graph.Attr{Name: "alpha", Type: graph.AttrFloat, Ref: "alpha"})
		b := g.NewNode("", "Clip", []*graph.Value{a.Out[0], nil, y}, []string{"b"})
		c := g.NewNode("", "ReduceSum", []*graph.Value{b.Out[0]}, []string{"c"}, &graph.Attr{Name: "axes", Type: graph.AttrInts, Ref: "axes"})
		g.Append(a, b, c)
		g.SetOutputs(b.Out[0], c.Out[0], x)
	})
}

func TestInline(t *testing.T) {
	m := graph.NewModel("test", 12)
	m.SetOpset("local", 1)
	scale(m, 12)
	function(m, "twice", 12, func(f *graph.Function, g *graph.Graph) {
		f.Attrs = []string{"alpha"}
		x := g.AddInput("x", graph.Type{})
		ref := &graph.Attr{Name: "alpha", Type: graph.AttrFloat, Ref: "alpha"}
		a := g.NewNode("local", "scale", []*graph.Value{x}, []string{"a"}, ref)
		b := g.NewNode("local", "scale", []*graph.Value{a.Out[0]}, []string{"b"})
		g.Append(a, b)
		g.SetOutputs(b.Out[0])
	})
	g := m.Graph
	x := g.AddInput("x", scalarType())
	a := g.NewNode("", "Abs", []*graph.Value{x}, []string{"a"})
	n := g.NewNode("local", "twice", []*graph.Value{a.Out[0]}, []string{"b"}, graph.FloatAttr("alpha", 0.25))
	n.Name = "call"
	n.Meta.Set(graph.MetaRole, graph.RoleLoss)
	s := g.NewNode("local", "scale", []*graph.Value{n.Out[0]}, []string{"c", "sum", "same"}, graph.IntsAttr("axes", 1))
	g.Append(a, n, s)
	g.SetOutputs(s.Out...)
	outs := append([]*graph.Value{}, g.Outputs...)
	if err := op.Inline(m, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := ops(g), "Abs LeakyRelu Clip ReduceSum LeakyRelu Clip ReduceSum LeakyRelu Clip ReduceSum Identity"; got != want {
		t.Fatalf("operators %s, want %s", got, want)
	}
	if len(m.Functions) != 0 || m.Opset("") != 12 {
		t.Errorf("%d functions left, opset %d", len(m.Functions), m.Opset(""))
	}
	for i, want := range []float64{.25, .5, .5} {
		if got := g.Nodes[1+3*i].Float("alpha", 9); got != want {
			t.Errorf("node %d has alpha %v, want %v", 1+3*i, got, want)
		}
	}
	if g.Nodes[3].HasAttr("axes") || len(g.Nodes[9].Ints("axes")) != 1 {
		t.Errorf("axes are %v and %v, want none and 1", g.Nodes[3].Ints("axes"), g.Nodes[9].Ints("axes"))
	}
	if len(g.Nodes[2].In) != 3 || g.Nodes[2].In[2] != nil {
		t.Errorf("Clip reads %v, want its bound omitted", g.Nodes[2].In)
	}
	if g.Nodes[1].Meta.Get(graph.MetaRole) != graph.RoleLoss || g.Nodes[1].Meta.Get(graph.MetaFrom) != "call" {
		t.Errorf("metadata %v", g.Nodes[1].Meta)
	}
	names := map[string]bool{}
	for v := range g.Values() {
		if names[v.Name] {
			t.Errorf("value name %q occurs twice", v.Name)
		}
		names[v.Name] = true
	}
	for i, v := range g.Outputs {
		if v != outs[i] || v.Def.Result(v.Index) != v {
			t.Errorf("output %d is not the result it was", i)
		}
	}
	if g.Outputs[0].Name != "c" || g.Outputs[2].Def.Op != "Identity" {
		t.Errorf("outputs %q of %s, %q of %s", g.Outputs[0].Name, g.Outputs[0].Def.Op, g.Outputs[2].Name, g.Outputs[2].Def.Op)
	}
}

func TestInlineKeepAndUpgrade(t *testing.T) {
	m := graph.NewModel("test", 18)
	m.SetOpset("local", 1)
	scale(m, 11) // ReduceSum with the attribute axes, Clip with operands
	kept := function(m, "kept", 18, func(f *graph.Function, g *graph.Graph) {
		x := g.AddInput("x", graph.Type{})
		a := g.NewNode("local", "scale", []*graph.Value{x}, []string{"a", "s"}, graph.IntsAttr("axes", 0))
		g.Append(a)
		g.SetOutputs(a.Out[1])
	})
	g := m.Graph
	x, y := g.AddInput("x", scalarType()), g.AddInput("y", graph.TensorOf(graph.Float, graph.ShapeOf()))
	n := g.NewNode("local", "kept", []*graph.Value{x}, []string{"k"})
	s := g.NewNode("local", "scale", []*graph.Value{n.Out[0], y}, []string{"c", "sum"}, graph.IntsAttr("axes", 1))
	g.Append(n, s)
	g.SetOutputs(s.Out[1])
	if err := op.Inline(m, func(f *graph.Function) bool { return f == kept }); err != nil {
		t.Fatal(err)
	}
	if got, want := ops(g), "kept LeakyRelu Clip Constant ReduceSum"; got != want {
		t.Errorf("operators %s, want %s", got, want)
	}
	if got, want := ops(kept.Body), "LeakyRelu Clip Constant ReduceSum"; got != want {
		t.Errorf("operators %s, want %s", got, want)
	}
	if m.Opset("") != 21 || kept.Opset("") != 21 || len(m.Functions) != 1 || m.Origin != 18 {
		t.Errorf("opsets %d and %d, origin %d, %d functions", m.Opset(""), kept.Opset(""), m.Origin, len(m.Functions))
	}
}

func TestInlineSubgraphs(t *testing.T) {
	m := graph.NewModel("test", 18)
	m.SetOpset("local", 1)
	function(m, "pick", 18, func(f *graph.Function, g *graph.Graph) {
		f.Attrs = []string{"alpha"}
		c, x := g.AddInput("c", graph.Type{}), g.AddInput("x", graph.Type{})
		branch := func(op string) *graph.Graph {
			h := m.NewGraph(op)
			n := h.NewNode("", op, []*graph.Value{x}, []string{op + "_y"}, &graph.Attr{Name: "alpha", Type: graph.AttrFloat, Ref: "alpha"})
			h.Append(n)
			h.SetOutputs(n.Out[0])
			return h
		}
		n := g.NewNode("", "If", []*graph.Value{c}, []string{"y"}, graph.GraphAttr("then_branch", branch("Elu")), graph.GraphAttr("else_branch", branch("LeakyRelu")))
		g.Append(n)
		g.SetOutputs(n.Out[0])
	})
	g := m.Graph
	c, x := g.AddInput("c", graph.TensorOf(graph.Bool, graph.ShapeOf())), g.AddInput("x", scalarType())
	a := g.NewNode("local", "pick", []*graph.Value{c, x}, []string{"a"}, graph.FloatAttr("alpha", 2))
	b := g.NewNode("local", "pick", []*graph.Value{c, a.Out[0]}, []string{"b"}, graph.FloatAttr("alpha", 3))
	g.Append(a, b)
	g.SetOutputs(b.Out[0])
	if err := op.Inline(m, nil); err != nil {
		t.Fatal(err)
	}
	if got := ops(g); got != "If If" {
		t.Fatalf("operators %s", got)
	}
	for i, n := range g.Nodes {
		for _, s := range n.Subgraphs() {
			k := s.Nodes[0]
			want := []*graph.Value{x, g.Nodes[0].Out[0]}[i]
			if s.Parent != n || k.In[0] != want || k.Float("alpha", 0) != float64(2+i) || k.Out[0] != s.Outputs[0] {
				t.Errorf("node %d: branch %s reads %q with alpha %v", i, k.Op, k.In[0].Name, k.Float("alpha", 0))
			}
		}
	}
}

func TestInlineErrors(t *testing.T) {
	for name, c := range map[string]struct {
		build func(m *graph.Model)
		want  string
	}{
		"recursion": {func(m *graph.Model) {
			function(m, "f", 18, func(f *graph.Function, g *graph.Graph) {
				n := g.NewNode("local", "f", []*graph.Value{g.AddInput("x", graph.Type{})}, []string{"y"})
				g.Append(n)
				g.SetOutputs(n.Out[0])
			})
		}, "calls itself: local.f -> local.f"},
		"too many operands": {func(m *graph.Model) {
			scale(m, 18)
			x := m.Graph.AddInput("x", scalarType())
			m.Graph.Append(m.Graph.NewNode("local", "scale", []*graph.Value{x, x, x}, []string{"y"}))
		}, "3 operands, want at most 2"},
		"unknown attribute": {func(m *graph.Model) {
			scale(m, 18)
			x := m.Graph.AddInput("x", scalarType())
			m.Graph.Append(m.Graph.NewNode("local", "scale", []*graph.Value{x}, []string{"y"}, graph.IntAttr("beta", 1)))
		}, "attribute beta"},
		"attribute of another type": {func(m *graph.Model) {
			scale(m, 18)
			x := m.Graph.AddInput("x", scalarType())
			m.Graph.Append(m.Graph.NewNode("local", "scale", []*graph.Value{x}, []string{"y"}, graph.IntAttr("alpha", 1)))
		}, "has type int, want float"},
	} {
		t.Run(name, func(t *testing.T) {
			m := graph.NewModel("test", 18)
			c.build(m)
			err := op.Inline(m, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}
