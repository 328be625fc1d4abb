package remat

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestSegments checks that sequences of pieces can run, compute again only what may be, and stay so when they are polished,
// which never makes them dearer.
func TestSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := genGraph(t, 40)
		var p polisher
		for _, s := range segments(g) {
			u, err := Simulate(g, s)
			if err != nil {
				t.Fatal(err)
			}
			budget := u.Peak + rapid.Int64Range(0, 10).Draw(t, "more")
			better := p.polish(g, s, budget)
			w, err := Simulate(g, better)
			if err != nil || w.Peak > budget || w.Cost > u.Cost {
				t.Fatalf("peak %d of %d, cost %d of %d: %v", w.Peak, budget, w.Cost, u.Cost, err)
			}
		}
	})
}

// chain is a graph of n computations, each of which reads the one before, and n that read them in the opposite order.
func chain(n int) *Graph {
	g := &Graph{}
	add := func(reads ...int32) int32 {
		v := int32(len(g.Names))
		g.Names, g.Parents, g.Order = append(g.Names, fmt.Sprint(v)), append(g.Parents, reads), append(g.Order, v)
		g.Memory, g.Cost = append(g.Memory, 100), append(g.Cost, 1)
		return v
	}
	at := add()
	for range n - 1 {
		at = add(at)
	}
	for v := at - 1; v >= 0; v-- {
		at = add(at, v)
	}
	return g
}

// TestChain compares with what is known of chains: where memory is enough for the roots of n, no more than once need
// anything be computed again, and what there is room for not at all.
func TestChain(t *testing.T) {
	const n = 1000
	g := chain(n)
	for _, budget := range []int64{50_000, 20_000, 10_000, 7_000} {
		front, err := Front(g, []int64{budget}, 20_000)
		if err != nil {
			t.Fatal(err)
		}
		if best, most := front[len(front)-1], g.BaseCost()+n-budget/100+2*33; best.Peak > budget || best.Cost > most {
			t.Errorf("budget %d: peak %d, cost %d, want at most %d", budget, best.Peak, best.Cost, most)
		}
	}
}
