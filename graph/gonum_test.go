package graph

import (
	"testing"

	gonum "gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/flow"
	"gonum.org/v1/gonum/graph/topo"
)

func TestGonum(t *testing.T) {
	g := sample().Graph
	v := Gonum(g)
	ids := func(it gonum.Nodes) []string {
		var s []string
		for it.Next() {
			s = append(s, it.Node().(OpNode).Node.Op)
		}
		return s
	}
	order, err := topo.SortStabilized(v, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range order {
		if n.ID() != int64(g.Nodes[i].ID) {
			t.Errorf("node %d in order is %d, want %d", i, n.ID(), g.Nodes[i].ID)
		}
	}
	add, relu, pick, call := int64(g.Nodes[0].ID), int64(g.Nodes[1].ID), int64(g.Nodes[2].ID), int64(g.Nodes[3].ID)
	for _, c := range []struct {
		name string
		got  []string
		want string
	}{
		{"readers of Add", ids(v.From(add)), "Relu"},
		{"a capture is an edge", ids(v.From(relu)), "If"},
		{"read by twice", ids(v.To(call)), "If"},
		{"read by Add", ids(v.To(add)), ""},
	} {
		got := ""
		if len(c.got) == 1 {
			got = c.got[0]
		}
		if got != c.want || len(c.got) > 1 {
			t.Errorf("%s: %v, want %s", c.name, c.got, c.want)
		}
	}
	if !v.HasEdgeFromTo(add, relu) || v.HasEdgeFromTo(relu, add) || !v.HasEdgeBetween(relu, add) || v.Edge(relu, add) != nil || v.Node(99) != nil {
		t.Error("edges are wrong")
	}
	if e := v.Edge(relu, pick); e == nil || e.From().ID() != relu || e.ReversedEdge().From().ID() != pick {
		t.Errorf("edge is %v", e)
	}
	if d := flow.Dominators(v.Node(add), v).DominatorOf(call); d == nil || d.ID() != pick {
		t.Errorf("twice is dominated by %v, want If", d)
	}
}
