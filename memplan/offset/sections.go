package offset

import "slices"

// Bound returns a height that no plan can be below: the most bytes that live at one time.
func Bound(buffers []Buffer) int64 {
	type event struct{ at, delta int64 }
	var events []event
	var lowest int64
	for i := range buffers {
		b := &buffers[i]
		for _, x := range b.boxes() {
			events = append(events, event{x.lower, x.high - x.low}, event{x.upper, x.low - x.high})
		}
		lowest = max(lowest, b.Size) // the bytes a gap leaves out at one end count for the height
		if b.Fixed != nil {
			lowest = max(lowest, *b.Fixed+b.Size)
		}
	}
	slices.SortFunc(events, func(a, b event) int {
		if a.at != b.at {
			return cmp(a.at, b.at)
		}
		return cmp(a.delta, b.delta) // frees first: lifetimes are half-open
	})
	var live int64
	for _, e := range events {
		live += e.delta
		lowest = max(lowest, live)
	}
	return lowest
}

// span is a box in sections instead of time: it is live in the sections [lo, hi).
type span struct {
	lo, hi    int32
	low, high int64
}

// instance is a problem in the form that the solvers read. Time is cut into sections: of the stretches in which the set
// of live boxes does not change only those are kept whose set is in no neighbour's, since they decide which buffers meet
// and how much is live. Sizes and offsets are in units, the greatest common divisor of all that is given in bytes.
type instance struct {
	unit     int64
	size     []int64
	align    []int64
	fixed    []int64 // -1 for none
	hint     []int64 // -1 for none
	length   []int64 // of the lifetime
	lower    []int64
	spans    [][]span
	sections int
	plain    bool // no gap keeps a part of a buffer: two buffers do not interlock, so that search is exhaustive
}

func newInstance(buffers []Buffer) *instance {
	in := &instance{unit: unitOf(buffers), plain: true}
	type event struct {
		at   int64
		end  bool
		item [2]int // buffer, span
	}
	var events []event
	for i := range buffers {
		b := &buffers[i]
		in.size = append(in.size, b.Size/in.unit)
		in.align = append(in.align, max(b.Align/in.unit, 1))
		in.fixed = append(in.fixed, inUnits(b.Fixed, in.unit))
		in.hint = append(in.hint, inUnits(b.Hint, in.unit))
		in.length = append(in.length, b.Upper-b.Lower)
		in.lower = append(in.lower, b.Lower)
		for _, g := range b.Gaps {
			in.plain = in.plain && g.Low == g.High
		}
		var spans []span
		for k, x := range b.boxes() {
			spans = append(spans, span{low: x.low / in.unit, high: x.high / in.unit})
			events = append(events, event{x.lower, false, [2]int{i, k}}, event{x.upper, true, [2]int{i, k}})
		}
		in.spans = append(in.spans, spans)
	}
	slices.SortStableFunc(events, func(a, b event) int {
		if a.at != b.at {
			return cmp(a.at, b.at)
		}
		switch {
		case a.end == b.end:
			return 0
		case a.end:
			return -1
		}
		return 1
	})
	// A section is over when something ends after something began.
	section, begun := int32(0), false
	for _, e := range events {
		s := &in.spans[e.item[0]][e.item[1]]
		if !e.end {
			s.lo, begun = section, true
			continue
		}
		if begun {
			section, begun = section+1, false
		}
		s.hi = section
	}
	in.sections = int(section)
	return in
}

// unitOf returns the greatest common divisor of all sizes, alignments, fixed offsets and ends of windows.
func unitOf(buffers []Buffer) int64 {
	var g int64
	fold := func(x int64) {
		for x != 0 {
			g, x = x, g%x
		}
	}
	for i := range buffers {
		b := &buffers[i]
		fold(b.Size)
		if b.Align > 1 {
			fold(b.Align)
		}
		if b.Fixed != nil {
			fold(*b.Fixed)
		}
		for _, gap := range b.Gaps {
			fold(gap.Low)
			fold(gap.High)
		}
	}
	return max(g, 1)
}

func inUnits(x *int64, unit int64) int64 {
	if x == nil || *x < 0 {
		return -1
	}
	return *x / unit
}

// live returns the units that are live in each section.
func (in *instance) live() []int64 {
	live := make([]int64, in.sections+1)
	for _, spans := range in.spans {
		for _, s := range spans {
			live[s.lo] += s.high - s.low
			live[s.hi] -= s.high - s.low
		}
	}
	for s := 1; s < len(live); s++ {
		live[s] += live[s-1]
	}
	return live[:in.sections]
}

// reach returns the sections in which buffer i lives, gaps included.
func (in *instance) reach(i int32) (lo, hi int32) {
	if s := in.spans[i]; len(s) > 0 {
		return s[0].lo, s[len(s)-1].hi
	}
	return int32(in.sections), 0
}

// above returns how far the offset of j must be above that of i if j stands on i, and whether the two meet at all.
func (in *instance) above(i, j int32) (int64, bool) {
	var d int64
	met := false
	for _, a := range in.spans[i] {
		for _, b := range in.spans[j] {
			if a.lo < b.hi && b.lo < a.hi {
				if !met || a.high-b.low > d {
					d = a.high - b.low
				}
				met = true
			}
		}
	}
	return max(d, 0), met
}

// components returns the buffers grouped by stretches of time that no lifetime crosses, each in the order of index.
func (in *instance) components() [][]int32 {
	reach := make([]int32, in.sections+1)
	for _, spans := range in.spans {
		if len(spans) > 0 {
			lo := spans[0].lo
			reach[lo] = max(reach[lo], spans[len(spans)-1].hi)
		}
	}
	group := make([]int32, in.sections+1)
	var n, end int32
	for s := int32(0); s < int32(in.sections); s++ {
		if s >= end && s > 0 {
			n++
		}
		end = max(end, reach[s])
		group[s] = n
	}
	list := make([][]int32, n+1)
	for i, spans := range in.spans {
		g := int32(0)
		if len(spans) > 0 {
			g = group[spans[0].lo]
		}
		list[g] = append(list[g], int32(i))
	}
	return list
}
