package offset

import (
	"errors"
	"fmt"
	"slices"
	"sort"
)

// Check reports everything that is wrong with a plan: offsets that are missing, negative, misaligned, not where they
// are fixed or above the capacity (0 for none), a height that is not the highest end, and buffers that share bytes at
// some time. It knows nothing of how plans are made: it sweeps over time with the boxes that are live, sorted by offset,
// where a newcomer needs to be compared with its two neighbours only.
func Check(buffers []Buffer, p Plan, capacity int64) error {
	if len(p.Offsets) != len(buffers) {
		return fmt.Errorf("plan has %d offsets for %d buffers", len(p.Offsets), len(buffers))
	}
	var bad []error
	say := func(format string, args ...any) { bad = append(bad, fmt.Errorf(format, args...)) }
	var height int64
	for i, b := range buffers {
		at := p.Offsets[i]
		end := at + b.Size
		height = max(height, end)
		switch {
		case at < 0 || at > maxBytes:
			say("buffer %q: offset %d is out of range", b.ID, at)
		case b.Fixed != nil && at != *b.Fixed:
			say("buffer %q: offset %d, but it is fixed at %d", b.ID, at, *b.Fixed)
		case b.Align > 1 && at%b.Align != 0:
			say("buffer %q: offset %d is no multiple of the alignment %d", b.ID, at, b.Align)
		}
		if capacity > 0 && end > capacity {
			say("buffer %q: ends at %d, above the capacity %d", b.ID, end, capacity)
		}
	}
	if height != p.Height {
		say("plan says height %d, its highest buffer ends at %d", p.Height, height)
	}
	if err := overlap(buffers, p); err != nil {
		bad = append(bad, err)
	}
	return errors.Join(bad...)
}

// CheckSpread reports everything that is wrong with a plan for several memories: what [Check] says of each of them, buffers that do not
// lie where they must, and a cost that is not theirs.
func CheckSpread(buffers []Buffer, memories []Memory, s Spread) error {
	if len(s.Memory) != len(buffers) || len(s.Offsets) != len(buffers) || len(s.Heights) != len(memories) {
		return fmt.Errorf("plan has %d memories and %d offsets for %d buffers, %d heights for %d memories", len(s.Memory), len(s.Offsets), len(buffers), len(s.Heights), len(memories))
	}
	var bad []error
	var cost int64
	parts := make([][]Buffer, len(memories))
	plans := make([]Plan, len(memories))
	for i, b := range buffers {
		k := s.Memory[i]
		if k < 0 || k >= len(memories) {
			bad = append(bad, fmt.Errorf("buffer %q: there is no memory %d", b.ID, k))
			continue
		}
		if b.Memory != "" && b.Memory != memories[k].Name {
			bad = append(bad, fmt.Errorf("buffer %q lies in memory %q, but must in %q", b.ID, memories[k].Name, b.Memory))
		}
		cost += int64(k) * b.spillCost()
		parts[k] = append(parts[k], b)
		plans[k].Offsets = append(plans[k].Offsets, s.Offsets[i])
	}
	if cost != s.Cost {
		bad = append(bad, fmt.Errorf("plan says cost %d, its buffers cost %d", s.Cost, cost))
	}
	for k, m := range memories {
		plans[k].Height = s.Heights[k]
		if err := Check(parts[k], plans[k], m.Capacity); err != nil {
			bad = append(bad, fmt.Errorf("memory %q: %w", m.Name, err))
		}
	}
	return errors.Join(bad...)
}

// overlap returns an error about the first two buffers, in time, that share bytes.
func overlap(buffers []Buffer, p Plan) error {
	type placed struct {
		box
		buffer int
	}
	var all []placed
	for i := range buffers {
		for _, x := range buffers[i].boxes() {
			x.low += p.Offsets[i]
			x.high += p.Offsets[i]
			all = append(all, placed{x, i})
		}
	}
	starts := make([]int, len(all))
	for i := range starts {
		starts[i] = i
	}
	ends := slices.Clone(starts)
	slices.SortStableFunc(starts, func(a, b int) int { return cmp(all[a].lower, all[b].lower) })
	slices.SortStableFunc(ends, func(a, b int) int { return cmp(all[a].upper, all[b].upper) })
	var live []int // indices of boxes, by offset, disjoint
	find := func(low int64) int {
		return sort.Search(len(live), func(k int) bool { return all[live[k]].low >= low })
	}
	next := 0
	for _, s := range starts {
		x := all[s]
		for ; all[ends[next]].upper <= x.lower; next++ {
			k := find(all[ends[next]].low)
			live = slices.Delete(live, k, k+1)
		}
		k := find(x.low)
		for _, n := range []int{k - 1, k} {
			if n < 0 || n >= len(live) {
				continue
			}
			if y := all[live[n]]; y.low < x.high && x.low < y.high {
				return fmt.Errorf("buffers %q and %q share bytes: [%d, %d) and [%d, %d) at time %d", buffers[y.buffer].ID, buffers[x.buffer].ID,
					y.low, y.high, x.low, x.high, x.lower)
			}
		}
		live = slices.Insert(live, k, s)
	}
	return nil
}

func cmp(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
