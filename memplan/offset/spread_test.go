package offset

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomSpread returns buffers and memories of which the first are scarce.
func randomSpread(rng *rand.Rand, n int) ([]Buffer, []Memory) {
	var list []Buffer
	for i := range n {
		at := rng.Int64N(12)
		b := Buffer{ID: fmt.Sprint(i), Lower: at, Upper: at + 1 + rng.Int64N(6), Size: 1 + rng.Int64N(6)}
		if rng.IntN(2) == 0 {
			c := rng.Int64N(20)
			b.Spill = &c
		}
		if rng.IntN(8) == 0 {
			b.Memory = []string{"near", "far"}[rng.IntN(2)]
			if b.Memory == "near" {
				b.Size = 1
			}
		}
		list = append(list, b)
	}
	return list, []Memory{{"near", 4 + rng.Int64N(8)}, {"mid", 6 + rng.Int64N(6)}, {"far", 0}}
}

// cheapest returns the least cost of all spreads, by trying all; -1 if there is none.
func cheapest(buffers []Buffer, memories []Memory) int64 {
	best := int64(-1)
	where := make([]int, len(buffers))
	var try func(i int, cost int64)
	try = func(i int, cost int64) {
		if best >= 0 && cost >= best {
			return
		}
		if i == len(buffers) {
			for k, m := range memories {
				var part []Buffer
				for j, b := range buffers {
					if where[j] == k {
						part = append(part, b)
					}
				}
				if m.Capacity > 0 {
					if _, err := Solve(part, m.Capacity, 1_000_000); err != nil {
						return
					}
				}
			}
			best = cost
			return
		}
		for k, m := range memories {
			b := buffers[i]
			if b.Memory != "" && b.Memory != m.Name || m.Capacity > 0 && b.Size > m.Capacity {
				continue
			}
			c := b.Size
			if b.Spill != nil {
				c = *b.Spill
			}
			where[i] = k
			var load int64 // alive with b at its first moment or at that of another, in this memory
			for j := range i + 1 {
				at := buffers[j].Lower
				load = 0
				for l := range i + 1 {
					if where[l] == k && buffers[l].Lower <= at && at < buffers[l].Upper {
						load += buffers[l].Size
					}
				}
				if m.Capacity > 0 && load > m.Capacity {
					break
				}
			}
			if m.Capacity > 0 && load > m.Capacity {
				continue
			}
			try(i+1, cost+int64(k)*c)
		}
	}
	try(0, 0)
	return best
}

// TestSpreadIsNearOptimal compares with trying everything: plans are valid, cost no less than the bound, and little more than the
// cheapest.
func TestSpreadIsNearOptimal(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 0))
	var found, least, bound int64
	for round := range 60 {
		buffers, memories := randomSpread(rng, 9)
		want := cheapest(buffers, memories)
		s, err := SpreadOver(buffers, memories, 10_000_000)
		if want < 0 {
			if err == nil {
				t.Errorf("round %d: a plan where there is none", round)
			}
			continue
		}
		if err != nil {
			t.Logf("round %d: %v", round, err)
			continue
		}
		if err := CheckSpread(buffers, memories, s); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if s.Bound > want || want > s.Cost {
			t.Errorf("round %d: bound %d, cheapest %d, found %d", round, s.Bound, want, s.Cost)
		}
		found, least, bound = found+s.Cost, least+want, bound+s.Bound
	}
	t.Logf("found %d, cheapest %d, bound %d", found, least, bound)
	if 100*found > 103*least || 100*bound < 60*least {
		t.Errorf("plans cost %d together, the cheapest %d, bounds are %d", found, least, bound)
	}
}

// TestSpreadKeepsAllItCan: what fits into the first memory lies there, in any number of memories.
func TestSpreadKeepsAllItCan(t *testing.T) {
	buffers := []Buffer{{ID: "a", Lower: 0, Upper: 3, Size: 6}, {ID: "b", Lower: 2, Upper: 5, Size: 4}, {ID: "c", Lower: 4, Upper: 7, Size: 6}}
	s, err := SpreadOver(buffers, []Memory{{Name: "near", Capacity: 10}, {Name: "far"}}, DefaultBudget)
	if err != nil || s.Cost != 0 || s.Heights[0] != 10 {
		t.Errorf("got %+v, %v, want all in the first", s, err)
	}
	cheap := int64(1)
	buffers[0].Spill = &cheap // larger than b, but cheaper to spill
	s, err = SpreadOver(buffers, []Memory{{"near", 9}, {"far", 0}}, DefaultBudget)
	if err != nil || s.Cost != 4 || s.Memory[1] != 1 {
		// without b, a and c share the memory; without a, b and c would not fit
		t.Errorf("got %+v, %v, want b alone in the second", s, err)
	}
	if s.Bound > s.Cost {
		t.Errorf("bound %d above the cost %d", s.Bound, s.Cost)
	}
}

func TestSpreadErrors(t *testing.T) {
	b := Buffer{ID: "a", Lower: 0, Upper: 1, Size: 8}
	at := int64(0)
	many := int64(maxBytes)
	for _, c := range []struct {
		buffers  []Buffer
		memories []Memory
		want     string
	}{
		{[]Buffer{b}, nil, "no memories"},
		{[]Buffer{b}, []Memory{{"", 4}}, "has no name"},
		{[]Buffer{b}, []Memory{{"m", 4}, {"m", 5}}, "comes twice"},
		{[]Buffer{b}, []Memory{{"m", 0}, {"n", 5}}, "no capacity"},
		{[]Buffer{b}, []Memory{{"m", -1}}, "capacity -1"},
		{[]Buffer{b}, []Memory{{"m", 4}}, "no memory that it may lie in is that large"},
		{[]Buffer{{ID: "a", Upper: 1, Size: 8, Memory: "x"}}, []Memory{{"m", 4}}, `no memory is called "x"`},
		{[]Buffer{{ID: "a", Upper: 1, Size: 8, Memory: "m"}}, []Memory{{"m", 4}, {"n", 0}}, "no memory that it may lie in is that large"},
		{[]Buffer{{ID: "a", Upper: 1, Size: 3, Memory: "m"}, {ID: "b", Upper: 1, Size: 3, Memory: "m"}}, []Memory{{"m", 4}, {"n", 0}}, `memory "m", 4 bytes: no plan exists: buffer "b" has to lie there`},
		{[]Buffer{{ID: "a", Upper: 1, Size: 8, Fixed: &at, Memory: "m"}, {ID: "b", Upper: 1, Size: 8, Fixed: &at, Memory: "m"}}, []Memory{{"m", 80}}, `fixed offsets: buffers "a" and "b" share bytes`},
		{[]Buffer{{ID: "a", Upper: 1, Size: 8, Fixed: &at}}, []Memory{{"m", 8}}, "fixed offset, but no memory"},
		{[]Buffer{{ID: "a", Upper: 1, Size: 8, Spill: &many}}, []Memory{{"m", 8}, {"n", 0}}, "add up to more than"},
	} {
		_, err := SpreadOver(c.buffers, c.memories, 1_000_000)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v in %v: error %v, want %q", c.buffers, c.memories, err, c.want)
		}
	}
	_, err := SpreadOver([]Buffer{b}, []Memory{{"m", 4}}, 1_000_000)
	if !errors.Is(err, ErrImpossible) {
		t.Errorf("%v is not ErrImpossible", err)
	}
}

// TestSpreadMutated: the checker notices every change of a plan.
func TestSpreadMutated(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 0))
	buffers, memories := randomSpread(rng, 30)
	memories[2].Capacity = 1000
	s, err := SpreadOver(buffers, memories, 10_000_000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range buffers {
		for k := range memories {
			if k == s.Memory[i] {
				continue
			}
			m := s
			m.Memory = append([]int(nil), s.Memory...)
			m.Memory[i] = k
			if CheckSpread(buffers, memories, m) == nil {
				t.Errorf("buffer %d in memory %d instead of %d was not noticed", i, k, s.Memory[i])
			}
		}
		m := s
		m.Offsets = append([]int64(nil), s.Offsets...)
		m.Offsets[i] = 998
		if CheckSpread(buffers, memories, m) == nil && s.Memory[i] != 2 {
			t.Errorf("buffer %d at 998 was not noticed", i)
		}
	}
}
