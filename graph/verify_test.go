package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// sample is a sound model: y = Relu(x + w), an If whose branches read x, and a function.
func sample() *Model {
	m := NewModel("g", 17)
	m.SetOpset("local", 1)
	g := m.Graph
	x := g.AddInput("x", TensorOf(Float, Shape{Sym("N"), Known(2)}))
	c := g.AddInput("c", TensorOf(Bool, ShapeOf()))
	w := g.AddInit("w", Floats(nil, 1, 2))
	add := g.NewNode("", "Add", []*Value{x, w}, []string{"s"})
	add.Name = "add"
	add.Meta.Set(MetaRole, RoleForward)
	relu := g.NewNode("", "Relu", []*Value{add.Out[0]}, []string{"y"})
	branch := func(op string) *Graph {
		h := m.NewGraph(op)
		n := h.NewNode("", op, []*Value{relu.Out[0]}, []string{op + "_out"})
		h.Append(n)
		h.SetOutputs(n.Out[0])
		return h
	}
	pick := g.NewNode("", "If", []*Value{c}, []string{"z"}, GraphAttr("then_branch", branch("Neg")), GraphAttr("else_branch", branch("Abs")))
	call := g.NewNode("local", "twice", []*Value{pick.Out[0]}, []string{"t"}, FloatAttr("alpha", 2))
	g.Append(add, relu, pick, call)
	for _, n := range []*Node{relu, call} {
		n.Out[0].Type = TensorOf(Float, Shape{Sym("N"), Known(2)})
		g.AddOutput(n.Out[0])
	}
	f := &Function{Domain: "local", Name: "twice", Attrs: []string{"alpha"}, Opsets: []Opset{{"", 17}}}
	f.Body = m.NewGraph("twice")
	f.Body.Func = f
	a := f.Body.AddInput("a", Type{})
	e := f.Body.NewNode("", "Elu", []*Value{a}, []string{"b"}, &Attr{Name: "alpha", Type: AttrFloat, Ref: "alpha"})
	f.Body.Append(e)
	f.Body.SetOutputs(e.Out[0])
	m.Functions = append(m.Functions, f)
	return m
}

func TestVerifySound(t *testing.T) {
	if err := Verify(sample()); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyViolations(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(m *Model, g *Graph)
		rule int
		want string // part of the message
	}{
		{"operand without use", func(m *Model, g *Graph) { g.Nodes[1].In[0] = g.Inputs[0] }, ruleUses, `"s" takes operand 0 for a reader`},
		{"unknown use", func(m *Model, g *Graph) { g.Nodes[1].In[0] = g.Inputs[0] }, ruleUses, "read 2 times and knows 1"},
		{"use listed twice", func(m *Model, g *Graph) { g.Inits[0].uses = append(g.Inits[0].uses, g.Inits[0].uses[0]) }, ruleUses, "twice"},
		{"dangling node", func(m *Model, g *Graph) { g.NewNode("", "Abs", []*Value{g.Inputs[0]}, []string{"q"}) }, ruleUses, "stands in no graph"},
		{"output unknown", func(m *Model, g *Graph) { g.Outputs[0] = g.Inputs[0] }, ruleUses, "is another value"},
		{"detached graph", func(m *Model, g *Graph) { m.NewGraph("h").AddOutput(g.Inputs[0]) }, ruleUses, "not in the model"},
		{"node twice", func(m *Model, g *Graph) { g.Append(g.Nodes[0]) }, ruleLinks, "in the model twice"},
		{"result of another", func(m *Model, g *Graph) { g.Nodes[0].Out[0].Def = g.Nodes[1] }, ruleLinks, "defined here"},
		{"node of another graph", func(m *Model, g *Graph) { g.Nodes[0].Graph = m.Functions[0].Body }, ruleLinks, "without knowing it"},
		{"default not listed", func(m *Model, g *Graph) { g.Inputs[1].Init = Floats(nil, 1) }, ruleLinks, "not among the initializers"},
		{"undefined", func(m *Model, g *Graph) { g.Nodes[1].SetIn(0, g.AddUndefined("u")) }, ruleScope, `operand 0, "u", is not defined here`},
		{"value of a branch", func(m *Model, g *Graph) { g.Nodes[3].SetIn(0, g.Nodes[2].Subgraphs()[0].Outputs[0]) }, ruleScope, "not defined here"},
		{"output undefined", func(m *Model, g *Graph) { g.SetOutputs(g.AddUndefined("u")) }, ruleScope, "output 0"},
		{"order", func(m *Model, g *Graph) { slices.Reverse(g.Nodes[:2]) }, ruleOrder, "before it is defined"},
		{"order into a branch", func(m *Model, g *Graph) { g.Nodes[1], g.Nodes[2] = g.Nodes[2], g.Nodes[1] }, ruleOrder, "before it is defined"},
		{"itself", func(m *Model, g *Graph) { g.Nodes[1].SetIn(0, g.Nodes[1].Out[0]) }, ruleOrder, "before it is defined"},
		{"same name", func(m *Model, g *Graph) { g.Nodes[0].Out[0].Name = "w" }, ruleNames, `called "w"`},
		{"name of the outer graph", func(m *Model, g *Graph) { g.Nodes[2].Subgraphs()[1].Outputs[0].Name = "t" }, ruleNames, `called "t"`},
		{"no name", func(m *Model, g *Graph) { g.Nodes[0].Out[0].Name = "" }, ruleNames, "no name"},
		{"input twice", func(m *Model, g *Graph) { g.Inputs = append(g.Inputs, g.Inputs[0]) }, ruleNames, "defined twice"},
		{"untyped", func(m *Model, g *Graph) { g.Outputs[0].Type = Type{} }, ruleTyped, "no type"},
		{"short data", func(m *Model, g *Graph) { g.Inits[0].Init = &Tensor{Elem: Float, Dims: []int64{2}, Data: Bytes{0}} }, ruleData, "1 bytes, want 8"},
		{"data of another type", func(m *Model, g *Graph) { g.Inits[0].Init = Ints(nil, 1, 2) }, ruleData, "int64[2]"},
		{"data of another shape", func(m *Model, g *Graph) { g.Inits[0].Init = Floats(nil, 1) }, ruleData, "float[1]"},
		{"subgraph of another", func(m *Model, g *Graph) { g.Nodes[2].Subgraphs()[0].Parent = g.Nodes[0] }, ruleNesting, "does not know it"},
		{"subgraph held twice", func(m *Model, g *Graph) { g.Nodes[2].Attrs[1].G = g.Nodes[2].Attrs[0].G }, ruleNesting, "held twice"},
		{"body of another", func(m *Model, g *Graph) { m.Functions[0].Body.Func = nil }, ruleNesting, "belongs to another"},
		{"graph of another model", func(m *Model, g *Graph) { g.Model = NewModel("h", 17) }, ruleNesting, "another model"},
		{"attribute twice", func(m *Model, g *Graph) { g.Nodes[0].Attrs = []*Attr{IntAttr("a", 1), IntAttr("a", 2)} }, ruleAttrs, `called "a"`},
		{"attribute without tensor", func(m *Model, g *Graph) { g.Nodes[0].SetAttr(TensorAttr("a", nil)) }, ruleAttrs, "holds no tensor"},
		{"attribute without type", func(m *Model, g *Graph) { g.Nodes[0].SetAttr(&Attr{Name: "a"}) }, ruleAttrs, "no known type"},
		{"reference outside", func(m *Model, g *Graph) { g.Nodes[0].SetAttr(&Attr{Name: "a", Ref: "b"}) }, ruleAttrs, "outside of a function"},
		{"reference to nothing", func(m *Model, g *Graph) { m.Functions[0].Body.Nodes[0].Attrs[0].Ref = "beta" }, ruleAttrs, `"beta"`},
		{"domain", func(m *Model, g *Graph) { g.Nodes[0].Domain = "far.away" }, ruleImports, "far.away"},
		{"function twice", func(m *Model, g *Graph) { m.Functions = append(m.Functions, m.Functions[0]) }, ruleFunctions, "two functions"},
		{"role", func(m *Model, g *Graph) { g.Nodes[0].Meta.Set(MetaRole, "sideways") }, ruleMeta, "sideways"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := sample()
			c.do(m, m.Graph)
			err := Verify(m)
			if err == nil {
				t.Fatal("no violation found")
			}
			found := false
			for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
				var ve *VerifyError
				if !errors.As(e, &ve) {
					t.Fatalf("%T is no VerifyError", e)
				}
				found = found || ve.Rule == c.rule && strings.Contains(ve.Error(), c.want) && strings.HasPrefix(ve.Error(), fmt.Sprintf("rule %d: ", c.rule))
			}
			if !found {
				t.Errorf("no error of rule %d with %q in\n%v", c.rule, c.want, err)
			}
		})
	}
}

func TestVerifyShowsNeighbours(t *testing.T) {
	m := sample()
	m.Graph.Nodes[1].Domain = "far"
	want := `rule 10: node "y" (far.Relu): domain "far" is not imported
    [add] s = Add (x, w)
  > y = far.Relu (s)
    z = If (c) <then_branch: graph = Neg {...}, else_branch: graph = Abs {...}>
    t = local.twice <alpha: float = 2> (z)`
	if got := Verify(m).Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
