package emit

import "slices"

// align is the alignment of places on chip, in bytes.
const align = 64

// pool hands out places in a memory. It looks for room from behind the last place that it gave out, so that a place is
// reused as late as possible.
type pool struct {
	size int
	free []span // sorted, with gaps between them
	next int
	used int
}

type span struct{ lo, hi int }

func newPool(lo, hi int) *pool {
	return &pool{size: hi - lo, free: []span{{lo, hi}}, next: lo}
}

// take returns a place of n bytes, and false if there is none.
func (p *pool) take(n int) (int, bool) {
	n = (max(n, 1) + align - 1) / align * align
	first := slices.IndexFunc(p.free, func(s span) bool { return s.hi > p.next })
	if first < 0 {
		first = 0
	}
	for k := range len(p.free) + 1 {
		if len(p.free) == 0 {
			return 0, false
		}
		i := (first + k) % len(p.free)
		s := &p.free[i]
		lo := s.lo
		if k == 0 && p.next > lo && p.next < s.hi {
			lo = p.next
		}
		if s.hi-lo < n {
			continue
		}
		p.next = lo + n
		p.used += n
		switch {
		case lo == s.lo && lo+n == s.hi:
			p.free = slices.Delete(p.free, i, i+1)
		case lo == s.lo:
			s.lo = lo + n
		case lo+n == s.hi:
			s.hi = lo
		default:
			p.free = slices.Insert(p.free, i+1, span{lo + n, s.hi})
			p.free[i].hi = lo
		}
		return lo, true
	}
	return 0, false
}

// put gives a place of n bytes back.
func (p *pool) put(at, n int) {
	n = (max(n, 1) + align - 1) / align * align
	p.used -= n
	i, _ := slices.BinarySearchFunc(p.free, at, func(s span, at int) int { return s.lo - at })
	p.free = slices.Insert(p.free, i, span{at, at + n})
	if i+1 < len(p.free) && p.free[i].hi == p.free[i+1].lo {
		p.free[i].hi = p.free[i+1].hi
		p.free = slices.Delete(p.free, i+1, i+2)
	}
	if i > 0 && p.free[i-1].hi == p.free[i].lo {
		p.free[i-1].hi = p.free[i].hi
		p.free = slices.Delete(p.free, i, i+1)
	}
}

func (p *pool) clone() pool {
	q := *p
	q.free = slices.Clone(p.free)
	return q
}

// reserve takes the given places out of a memory in which nothing else is used; all that was reserved before is free again.
func (p *pool) reserve(taken []span) {
	taken = slices.Clone(taken)
	slices.SortFunc(taken, func(a, b span) int { return a.lo - b.lo })
	p.free, p.used = nil, 0
	at := 0
	for _, s := range append(taken, span{p.size, p.size}) {
		if s.lo > at {
			p.free = append(p.free, span{at, s.lo})
		}
		p.used += s.hi - s.lo
		at = s.hi
	}
}

// split returns two pools, the first one with the given share of what is free.
func (p *pool) split(num, den int) (front, back *pool) {
	free := 0
	for _, s := range p.free {
		free += s.hi - s.lo
	}
	want := free * num / den / align * align
	front, back = &pool{size: want}, &pool{size: free - want}
	for _, s := range p.free {
		n := min(want, s.hi-s.lo)
		if n > 0 {
			front.free = append(front.free, span{s.lo, s.lo + n})
		}
		if s.lo+n < s.hi {
			back.free = append(back.free, span{s.lo + n, s.hi})
		}
		want -= n
	}
	return front, back
}
