package offset

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// cutUp returns buffers that fill a rectangle of time and bytes without a gap: it is cut in two again and again, at times or at
// bytes. So there is a plan at the height of the rectangle.
func cutUp(seed uint64, n int, length, height int64) []Buffer {
	rng := rand.New(rand.NewPCG(seed, 0))
	list := []Buffer{{Lower: 0, Upper: length, Size: height}}
	for len(list) < n {
		k := rng.IntN(len(list))
		if len(list) == 1 { // at bytes first, and one part stays whole: no time is without it
			list = []Buffer{{Lower: 0, Upper: length, Size: height / 50}, {Lower: 0, Upper: length, Size: height - height/50}}
			continue
		}
		if k == 0 {
			continue
		}
		b := &list[k]
		long, high := b.Upper-b.Lower, b.Size
		switch {
		case long > 1 && (rng.IntN(2) == 0 || high == 1):
			at := b.Lower + 1 + rng.Int64N(long-1)
			list = append(list, Buffer{Lower: at, Upper: b.Upper, Size: high})
			list[k].Upper = at
		case high > 1:
			part := 1 + rng.Int64N(high-1)
			list = append(list, Buffer{Lower: b.Lower, Upper: b.Upper, Size: part})
			list[k].Size -= part
		}
	}
	rng.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	for i := range list {
		list[i].ID = fmt.Sprint(i)
	}
	return list
}

// TestDive checks what short searches find where neither greedy orders nor long searches do.
func TestDive(t *testing.T) {
	const height = 1 << 20
	for _, seed := range []uint64{0, 3, 4, 7} {
		list := cutUp(seed, 200, 400, height)
		in := newInstance(list)
		group := in.components()[0]
		c := &component{planner: &planner{in: in, budget: 60_000_000, at: make([]int64, len(list))}, group: group, goal: height / in.unit, best: 1 << 62}
		c.greedy()
		greedy := c.best * in.unit
		newDiver(c, newSearch(in, neighbours(in, group))).run(50_000_000, 1)
		dived := c.best * in.unit
		p := Plan{Offsets: make([]int64, len(list)), Height: dived}
		for i := range list {
			p.Offsets[i] = c.at[i] * in.unit
		}
		if err := Check(list, p, 0); err != nil {
			t.Fatal(err)
		}
		before, behind := 100*float64(greedy)/height-100, 100*float64(dived)/height-100
		t.Logf("%d: greedy %.2f %%, then %.2f %%, %s", seed, before, behind, c.method)
		if before < 5 || behind > 1 {
			t.Errorf("%d: %.2f %% above what is possible after greedy orders, %.2f %% after short searches, want more than 5, and at most 1", seed, before, behind)
		}
	}
}
