package autodiff

import (
	"errors"
	"strings"
	"testing"

	"gradtool/graph"
)

func TestPanicInRuleNamesNode(t *testing.T) {
	m := graph.NewModel("test", 21)
	x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(2)))
	n := m.Graph.NewNode("", "Relu", []*graph.Value{x}, []string{"y"})
	n.Name = "act"
	m.Graph.Append(n)
	c := &Ctx{Node: n}
	_, err := c.apply(func(c *Ctx) []*graph.Value { panic("no such axis") })
	var e *RuleError
	if !errors.As(err, &e) || e.Node != n || len(e.Stack) == 0 {
		t.Fatalf("got %v, want a RuleError for the node", err)
	}
	for _, want := range []string{`"act" (Relu)`, "no such axis"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
}
