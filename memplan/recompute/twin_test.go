package recompute_test

import (
	"fmt"
	"slices"
	"testing"

	"gradtool/graph"
	"gradtool/memplan/recompute"
)

// pooled is a chain of n layers behind a MaxPool, backward part included, which ends with the pool's indices.
func pooled(t testing.TB, n int) *graph.Model {
	t.Helper()
	m := graph.NewModel("pooled", 21)
	g := m.Graph
	x := g.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(1, 2, 8, 8)))
	two := func() []*graph.Attr {
		return []*graph.Attr{graph.IntsAttr("kernel_shape", 2, 2), graph.IntsAttr("strides", 2, 2)}
	}
	add := func(back bool, op string, in []*graph.Value, out []string, attrs ...*graph.Attr) *graph.Node {
		k := g.NewNode("", op, in, out, attrs...)
		k.Name = out[0]
		if back {
			k.Meta.Set(graph.MetaRole, graph.RoleBackward)
		}
		g.Append(k)
		return k
	}
	wide := add(false, "Sin", []*graph.Value{x}, []string{"wide"}).Out[0]
	pool := add(false, "MaxPool", []*graph.Value{wide}, []string{"y", "i"}, two()...)
	list := []*graph.Value{pool.Out[0]}
	for k := range n {
		list = append(list, add(false, "Sin", []*graph.Value{list[k]}, []string{fmt.Sprint("f", k)}).Out[0])
	}
	d := list[n]
	for k := n - 1; k >= 0; k-- {
		d = add(true, "Mul", []*graph.Value{d, list[k]}, []string{fmt.Sprint("b", k)}).Out[0]
	}
	u := add(true, "MaxUnpool", []*graph.Value{d, pool.Out[1]}, []string{"u"}, two()...)
	g.AddOutput(add(true, "Mul", []*graph.Value{u.Out[0], wide}, []string{"dx"}).Out[0])
	infer(t, m)
	return m
}

// The indices of a MaxPool are kept where there is memory, and else computed when they are wanted, with values that keep
// every bit.
func TestIndicesAreComputedLater(t *testing.T) {
	want := outputs(t, pooled(t, 12), nil)
	p, peaks, choose := planned(t, pooled(t, 12), recompute.Options{})
	if cost := p.Cost(p.Graph.Order); cost != p.Base() || cost >= p.Graph.BaseCost() {
		t.Errorf("computing all costs %d; both units of the pool on their own %d", cost, p.Graph.BaseCost())
	}
	apart := 0
	for k, peak := range append([]int64{p.Peak}, peaks...) {
		for _, kind := range []recompute.Barrier{recompute.BarrierData, recompute.BarrierNone} {
			m := pooled(t, 12)
			p, err := recompute.New(m, recompute.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := p.Graph.Order
			if k > 0 {
				if s, err = choose(peak); err != nil {
					t.Fatal(err)
				}
			}
			nodes, _ := p.Again(s)
			made, err := p.Apply(s, kind)
			if err != nil {
				t.Fatal(err)
			}
			if made.Again != nodes {
				t.Errorf("peak %d: %d nodes are computed again, %d were announced", peak, made.Again, nodes)
			}
			var results []int
			for _, n := range m.Graph.Nodes {
				if n.Is("MaxPool") {
					results = append(results, len(n.Out))
				}
			}
			if k == 0 && !slices.Equal(results, []int{2}) {
				t.Errorf("in the order given pools have %d results", results)
			}
			if slices.Equal(results, []int{1, 2}) {
				apart++
			}
			check(t, fmt.Sprintf("peak %d, barrier %s", peak, kind), m, want, peak, kind)
		}
	}
	if apart == 0 {
		t.Error("no plan computes indices later")
	}
	// Two nodes with indices are one in every sequence that computes all once.
	if nodes, flops := p.Again(p.Graph.Order); nodes != 0 || flops != 0 {
		t.Errorf("%d nodes are computed again in the order given", nodes)
	}
}
