package op_test

import (
	"errors"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

// node adds a node of nout results that reads in.
func addNode(g *graph.Graph, domain, name string, in []*graph.Value, nout int, attrs ...*graph.Attr) *graph.Node {
	var outs []string
	for range nout {
		outs = append(outs, g.Model.Fresh(name))
	}
	n := g.NewNode(domain, name, in, outs, attrs...)
	g.Append(n)
	return n
}

func TestVerify(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(m *graph.Model, x *graph.Value)
		rule int // 0: no violation
		want string
	}{
		{"sound", func(m *graph.Model, x *graph.Value) { addNode(m.Graph, "", "Relu", []*graph.Value{x}, 1) }, 0, ""},
		{"misspelt", func(m *graph.Model, x *graph.Value) { addNode(m.Graph, "", "Rellu", []*graph.Value{x}, 1) }, 101, "did you mean Relu"},
		{"case", func(m *graph.Model, x *graph.Value) { addNode(m.Graph, "", "PReLU", []*graph.Value{x, x}, 1) }, 101, "did you mean PRelu"},
		{"other domain", func(m *graph.Model, x *graph.Value) { addNode(m.Graph, "", "FusedMatMul", []*graph.Value{x, x}, 1) }, 101, "com.microsoft.FusedMatMul"},
		{"nothing like it", func(m *graph.Model, x *graph.Value) { addNode(m.Graph, "", "Xyzzy", []*graph.Value{x}, 1) }, 101, "no such operator\n"},
		{"custom domain", func(m *graph.Model, x *graph.Value) { addNode(m.Graph, "mine", "Xyzzy", []*graph.Value{x}, 1) }, 0, ""},
		{"too new", func(m *graph.Model, x *graph.Value) {
			m.SetOpset("", 17)
			addNode(m.Graph, "", "Mish", []*graph.Value{x}, 1)
		}, 101, "came with opset 18, the model imports 17"},
		{"deprecated", func(m *graph.Model, x *graph.Value) { addNode(m.Graph, "", "Scatter", []*graph.Value{x, x, x}, 1) }, 102, "deprecated"},
		{"arity", func(m *graph.Model, x *graph.Value) { addNode(m.Graph, "", "Add", []*graph.Value{x}, 1) }, op.RuleVital, "1 inputs, want at least 2"},
		{"omitted", func(m *graph.Model, x *graph.Value) { addNode(m.Graph, "", "Add", []*graph.Value{nil, x}, 1) }, op.RuleVital, "input 0 (A) is omitted but not optional"},
		{"omitted of many", func(m *graph.Model, x *graph.Value) { addNode(m.Graph, "", "Sum", []*graph.Value{x, nil}, 1) }, op.RuleVital, "input 1 (data_0) is omitted"},
		{"attribute missing", func(m *graph.Model, x *graph.Value) { addNode(m.Graph, "", "Concat", []*graph.Value{x, x}, 1) }, op.RuleVital, "attribute axis is missing"},
		{"attribute type", func(m *graph.Model, x *graph.Value) {
			addNode(m.Graph, "", "Softmax", []*graph.Value{x}, 1, graph.StringAttr("axis", "k"))
		}, op.RuleVital, "axis has type string, want int"},
		{"type", func(m *graph.Model, x *graph.Value) { addNode(m.Graph, "", "And", []*graph.Value{x, x}, 1) }, 106, "type tensor(float)"},
		{"attribute", func(m *graph.Model, x *graph.Value) {
			addNode(m.Graph, "", "Relu", []*graph.Value{x}, 1, graph.IntAttr("axis", 1))
		}, 103, "attribute axis"},
		{"call", func(m *graph.Model, x *graph.Value) {
			scale(m, 18)
			addNode(m.Graph, "local", "scale", []*graph.Value{x, x, x}, 1)
		}, 104, "3 operands, function local.scale takes 2"},
		{"call attribute", func(m *graph.Model, x *graph.Value) {
			scale(m, 18)
			addNode(m.Graph, "local", "scale", []*graph.Value{x}, 1, graph.IntAttr("gamma", 1))
		}, 104, "gamma"},
		{"branch", func(m *graph.Model, x *graph.Value) {
			h := m.NewGraph("h")
			h.SetOutputs(x)
			e := m.NewGraph("e")
			c := m.Graph.AddInput("c", graph.TensorOf(graph.Bool, graph.ShapeOf()))
			addNode(m.Graph, "", "If", []*graph.Value{c}, 1, graph.GraphAttr("then_branch", h), graph.GraphAttr("else_branch", e))
		}, 105, "else_branch has 0 outputs, want 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := graph.NewModel("g", 18)
			c.do(m, m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(2, 3))))
			err := op.Verify(m)
			if c.rule == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var ve *graph.VerifyError
			if !errors.As(err, &ve) || ve.Rule != c.rule || !strings.Contains(ve.Error()+"\n", c.want) {
				t.Errorf("got %v, want rule %d with %q", err, c.rule, c.want)
			}
		})
	}
}
