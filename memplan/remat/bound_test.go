package remat

import (
	"testing"

	"pgregory.net/rapid"
)

// TestBound compares with the best of all sequences: the bound is never above it.
func TestBound(t *testing.T) {
	tight := 0
	rapid.Check(t, func(t *rapid.T) {
		g := layered(rapid.IntRange(2, 4).Draw(t, "n"))
		for v := range g.Names {
			g.Memory[v] = rapid.Int64Range(0, 5).Draw(t, "memory")
			g.Cost[v] = rapid.Int64Range(0, 5).Draw(t, "cost")
		}
		if rapid.Bool().Draw(t, "any") {
			g = genGraph(t, 7)
		}
		u, err := Simulate(g, g.Order)
		if err != nil {
			t.Fatal(err)
		}
		floor, _ := Floor(g)
		for budget := floor; budget <= u.Peak; budget++ {
			want := brute(g, budget)
			got := Bound(g, budget)
			if got < g.BaseCost() || want >= 0 && got > want {
				t.Fatalf("budget %d: bound %d, base %d, best %d", budget, got, g.BaseCost(), want)
			}
			if got > g.BaseCost() && got == want {
				tight++
			}
		}
	})
	if tight == 0 {
		t.Error("the bound never was the best cost")
	}
}

func TestMaximumFlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "n")
		room := make([][]int64, n)
		f := newNetwork(n)
		for v := range n {
			room[v] = make([]int64, n)
			for w := range n {
				if v != w && rapid.Bool().Draw(t, "edge") {
					room[v][w] = rapid.Int64Range(0, 9).Draw(t, "room")
					f.edge(int32(v), int32(w), room[v][w])
				}
			}
		}
		// The least cut, by trying all.
		least := int64(-1)
		for set := range 1 << n {
			if set&1 == 0 || set>>(n-1)&1 == 1 {
				continue
			}
			var sum int64
			for v := range n {
				for w := range n {
					if set>>v&1 == 1 && set>>w&1 == 0 {
						sum += room[v][w]
					}
				}
			}
			if least < 0 || sum < least {
				least = sum
			}
		}
		if got := f.maximum(0, int32(n-1)); got != least {
			t.Fatalf("flow %d, least cut %d", got, least)
		}
		mark := f.reach(0)
		var sum int64
		for v := range n {
			for w := range n {
				if mark[v] && !mark[w] {
					sum += room[v][w]
				}
			}
		}
		if sum != least || mark[n-1] {
			t.Fatalf("the cut found weighs %d, the least %d", sum, least)
		}
	})
}
