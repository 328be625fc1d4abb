package offset

import (
	"math/bits"
	"slices"
)

// neighbour is a buffer that lives at a time when another does: it goes at least dist above it or the other way round.
type neighbour struct {
	buffer int32
	above  int64 // how far above the other's offset its own is at least if it stands on it
	below  int64 // how far below if it carries the other
}

// status is how a search ended.
type status int8

const (
	found status = iota
	impossible
	exhausted
)

// search places the buffers of one component below a capacity, or shows that they do not fit: a depth-first search that
// places buffers in the order of rising offsets, each as low as those already placed below it allow (MiniMalloc's
// canonical plans). If any plan exists then so does one with the least sum of offsets, and that one is looked for:
//
//   - the next buffer is the lowest of those left, ties by rank, so no later one may be below it ("floor");
//   - it is not above the lowest possible end of another, which would fit below it (dominance);
//   - a buffer that lifts nobody is placed at once, without alternatives;
//   - of identical buffers the first goes first;
//   - in every section the buffers left, taken by rising lowest offsets, must fit below the capacity; this is the exact
//     height of the section on its own (one machine with release times), sharper than floor plus sum;
//   - a section in which no unit may be wasted has one buffer at its floor: the section with the fewest candidates for
//     that is branched on first;
//   - where no buffer left crosses a time, both sides are searched on their own.
type search struct {
	in      *instance
	near    [][]neighbour
	twin    []int32 // the identical buffer in front of each, -1 without
	cap     int64
	keys    *keys
	letters string
	rank    []int32 // by buffer, in the order that is tried first
	low     []int64 // lowest offset that the placed buffers allow
	at      []int64 // offset, -1 while not placed
	undo    []change
	work    int64
	limit   int64
	weigh   *weights // learns who has no room; nil for nobody
	part    []part
	pool    [][]int32
}

// part is what is left in a section. It is kept from node to node; sections that a placement touches are looked at again.
type part struct {
	top   int64 // height that the buffers left come to, each as low as it can be
	base  int64 // lowest offset of them, -1 without any
	left  int64 // sum of their sizes
	floor int64 // they were taken not to be below it
	cross int32 // how many of them cross to the next section
	dirty bool
}

type change struct {
	buffer int32
	low    int64 // -1: the buffer was placed
}

// newSearch prepares the search of the buffers in group.
func newSearch(in *instance, near [][]neighbour) *search {
	n := len(in.size)
	s := &search{in: in, near: near, keys: newKeys(in), rank: make([]int32, n), low: make([]int64, n), at: make([]int64, n), twin: make([]int32, n)}
	s.part = make([]part, in.sections+1)
	return s
}

// neighbours returns for each buffer of the group those that it meets.
func neighbours(in *instance, group []int32) [][]neighbour {
	near := make([][]neighbour, len(in.size))
	for k, i := range group {
		for _, j := range group[:k] {
			if d, ok := in.above(i, j); ok {
				e, _ := in.above(j, i)
				near[i] = append(near[i], neighbour{j, d, e})
				near[j] = append(near[j], neighbour{i, e, d})
			}
		}
	}
	return near
}

// run searches for a plan of the buffers in group below cap with at most limit steps of work, in the order that letters
// name. On success the offsets are in s.at.
func (s *search) run(group []int32, letters string, cap, limit int64) status {
	s.letters = letters
	s.keys.fill(s.in.live())
	order := s.keys.order(group, letters)
	s.cap, s.limit, s.work, s.undo = cap, limit, 0, s.undo[:0]
	for r, i := range order {
		s.rank[i] = int32(r)
		s.low[i] = max(s.in.fixed[i], 0)
		s.at[i] = -1
		s.twin[i] = -1
		for back := r - 1; back >= 0 && back >= r-64; back-- {
			if identical(s.in, i, order[back]) {
				s.twin[i] = order[back]
				break
			}
		}
	}
	lo, hi := int32(s.in.sections), int32(0)
	for _, i := range order {
		for _, p := range s.in.spans[i] {
			lo, hi = min(lo, p.lo), max(hi, p.hi)
		}
	}
	s.touch(lo, hi)
	return s.solve(order, lo, hi, 0, -1)
}

func identical(in *instance, i, j int32) bool {
	return in.size[i] == in.size[j] && in.align[i] == in.align[j] && in.fixed[i] < 0 && in.fixed[j] < 0 && len(in.spans[i]) > 0 &&
		slices.Equal(in.spans[i], in.spans[j])
}

// solve places the buffers in items that are left, sections [lo, hi), none below floor, and of those at floor none with
// a rank up to last. It leaves its placements unless it fails.
func (s *search) solve(items []int32, lo, hi int32, floor int64, last int32) status {
	if s.work > s.limit {
		return exhausted
	}
	own := s.take()
	defer s.give(own)
	rest := (*own)[:0]
	for _, i := range items {
		if s.at[i] < 0 {
			rest = append(rest, i)
		}
	}
	*own = rest
	if len(rest) == 0 {
		return found
	}
	s.sort(rest)
	s.work += int64(len(rest))
	// Everything left must fit on its own, and none may have become free to go below the floor.
	lowestEnd := int64(1) << 62
	for _, i := range rest {
		end := s.low[i] + s.in.size[i]
		if max(s.low[i], floor)+s.in.size[i] > s.cap || s.in.fixed[i] >= 0 && s.low[i] > s.in.fixed[i] {
			return impossible
		}
		lowestEnd = min(lowestEnd, end)
	}
	if floor >= lowestEnd {
		return impossible
	}
	if !s.fits(rest, lo, hi, floor) {
		return impossible
	}
	if parts := s.split(rest, lo, hi); parts != nil {
		return s.each(rest, parts, floor)
	}
	mark := len(s.undo)
	if ok, any := s.unburdened(rest, floor, last); any {
		st := impossible
		if ok {
			st = s.solve(rest, lo, hi, floor, last)
		}
		if st != found {
			s.back(mark)
		}
		return st
	}
	if tight := s.tightest(rest, lo, hi, floor, last); tight >= 0 {
		level := max(s.part[tight].base, floor)
		for _, i := range rest {
			if s.low[i] != level || !s.touches(i, tight) || level == floor && s.rank[i] < last || s.twinLeft(i) {
				continue
			}
			if st := s.try(i, rest, lo, hi, floor, last); st != impossible {
				return st
			}
		}
		return impossible
	}
	for _, i := range rest {
		at := s.low[i]
		if at >= lowestEnd {
			break
		}
		if at < floor || at == floor && s.rank[i] < last || s.twinLeft(i) {
			continue
		}
		if st := s.try(i, rest, lo, hi, at, s.rank[i]); st != impossible {
			return st
		}
	}
	return impossible
}

// rerank orders the buffers of a part by what is left in their sections now.
func (s *search) rerank(list []int32) {
	for _, i := range list {
		load := int64(0)
		for _, p := range s.in.spans[i] {
			for k := p.lo; k < p.hi; k++ {
				load = max(load, s.part[k].left)
			}
		}
		s.keys.load[i] = load
	}
	s.work += int64(len(list))
	s.keys.sort(list, s.letters)
	for r, i := range list {
		s.rank[i] = int32(r)
	}
}

// take and give recycle the lists of nodes.
func (s *search) take() *[]int32 {
	if n := len(s.pool); n > 0 {
		l := s.pool[n-1]
		s.pool = s.pool[:n-1]
		return &l
	}
	return new([]int32)
}

func (s *search) give(l *[]int32) { s.pool = append(s.pool, *l) }

// sort orders buffers by lowest offset, ties by rank. The lists of nodes are nearly in order: they come from their
// parents.
func (s *search) sort(list []int32) {
	for k := 1; k < len(list); k++ {
		x := list[k]
		lx, rx := s.low[x], s.rank[x]
		m := k
		for m > 0 {
			y := list[m-1]
			if ly := s.low[y]; ly < lx || ly == lx && s.rank[y] < rx {
				break
			}
			list[m] = y
			m--
		}
		list[m] = x
	}
}

// touch has sections [lo, hi) looked at again.
func (s *search) touch(lo, hi int32) {
	for k := lo; k < hi; k++ {
		s.part[k].dirty = true
	}
	s.work += int64(hi-lo) / touchedPerStep
}

// touchedPerStep is how many sections are marked in a step of work.
const touchedPerStep = 16

// stale returns the range of the sections in [lo, hi) whose state is not that of what is left, or is that of a higher floor.
func (s *search) stale(lo, hi int32, floor int64) (int32, int32) {
	for lo < hi && !s.part[lo].dirty && s.part[lo].floor <= floor {
		lo++
	}
	for lo < hi && !s.part[hi-1].dirty && s.part[hi-1].floor <= floor {
		hi--
	}
	return lo, hi
}

// fits brings the state of the sections up to date, from the buffers left, in order, and reports whether each section has room.
func (s *search) fits(rest []int32, lo, hi int32, floor int64) bool {
	if lo, hi = s.stale(lo, hi, floor); lo == hi {
		return true
	}
	for k := lo; k < hi; k++ {
		s.part[k] = part{base: -1, floor: floor, dirty: true}
	}
	for _, i := range rest {
		low := max(s.low[i], floor)
		for _, p := range s.in.spans[i] {
			size, base := p.high-p.low, low+p.low
			from, to := max(p.lo, lo), min(p.hi, hi)
			if from >= to {
				continue
			}
			parts := s.part[from:to]
			for k := range parts {
				x := &parts[k]
				if x.base < 0 {
					x.base = base
				}
				t := max(x.top, base) + size
				if t > s.cap {
					if s.weigh != nil {
						s.weigh.hits[i]++
					}
					return false
				}
				x.top = t
				x.left += size
			}
			s.work += int64(to - from)
		}
		// How many begin to cross, or cease to, at first.
		if from, to := s.in.reach(i); max(from, lo) < min(to-1, hi) {
			s.part[max(from, lo)].cross++
			if to-1 < hi {
				s.part[to-1].cross--
			}
		}
	}
	crossing := int32(0)
	for k := lo; k < hi; k++ {
		x := &s.part[k]
		crossing += x.cross
		x.cross, x.dirty = crossing, false
	}
	return true
}

// split returns the section ranges that no buffer left connects, nil if they are all connected.
func (s *search) split(rest []int32, lo, hi int32) [][2]int32 {
	var parts [][2]int32
	begin := int32(-1)
	for k := lo; k < hi; k++ {
		if s.part[k].base >= 0 && begin < 0 {
			begin = k
		}
		if begin >= 0 && s.part[k].cross == 0 {
			parts = append(parts, [2]int32{begin, k + 1})
			begin = -1
		}
	}
	if len(parts) < 2 {
		return nil
	}
	return parts
}

// each solves the parts of rest one after another, the one with the fewest buffers first, or none of them.
func (s *search) each(rest []int32, parts [][2]int32, floor int64) status {
	lists := make([][]int32, len(parts))
	for _, i := range rest {
		lo := int32(0)
		if sp := s.in.spans[i]; len(sp) > 0 {
			lo = sp[0].lo
		}
		k := 0
		for k+1 < len(parts) && lo >= parts[k+1][0] {
			k++
		}
		lists[k] = append(lists[k], i)
	}
	turn := make([]int, len(parts))
	for k := range turn {
		turn[k] = k
	}
	slices.SortStableFunc(turn, func(a, b int) int { return len(lists[a]) - len(lists[b]) })
	// The loads have changed, so each part is ranked anew; its buffers at the floor lose their order.
	saved := make([]int32, len(rest))
	for k, i := range rest {
		saved[k] = s.rank[i]
	}
	for _, l := range lists {
		s.rerank(l)
	}
	mark := len(s.undo)
	for _, k := range turn {
		if st := s.solve(lists[k], parts[k][0], parts[k][1], floor, -1); st != found {
			s.back(mark)
			for k, i := range rest {
				s.rank[i] = saved[k]
			}
			return st
		}
	}
	return found
}

// unburdened places the buffers that lift no other if they are placed as low as they can be. It reports whether that is in
// order, and whether there are any.
func (s *search) unburdened(rest []int32, floor int64, last int32) (ok, any bool) {
next:
	for _, i := range rest {
		low := s.low[i]
		for _, n := range s.near[i] {
			s.work++
			if s.at[n.buffer] < 0 && max(s.low[n.buffer], floor) < low+n.above {
				continue next
			}
		}
		if low < floor || low == floor && s.rank[i] < last {
			return false, true
		}
		s.place(i)
		any = true
	}
	return true, any
}

// tightest returns the section without waste that has the fewest candidates for its lowest place, -1 if there is none
// whose lowest place can be decided now.
func (s *search) tightest(rest []int32, lo, hi int32, floor int64, last int32) int32 {
	best, fewest := int32(-1), int32(2)
	for k := lo; k < hi; k++ {
		level := max(s.part[k].base, floor)
		if s.part[k].base < 0 || level+s.part[k].left < s.cap {
			continue
		}
		var n int32
		safe := true
		for _, i := range rest {
			if s.low[i] > level {
				break
			}
			if s.low[i] < level || !s.touches(i, k) || level == floor && s.rank[i] < last || s.twinLeft(i) {
				continue
			}
			n++
			if n >= fewest || level > floor && !s.carries(i, level, floor) {
				safe = false
				break
			}
		}
		if safe {
			best, fewest = k, n
			if n <= 1 {
				break
			}
		}
	}
	return best
}

// carries reports whether buffer i, placed at level, has all its neighbours that are left above it.
func (s *search) carries(i int32, level, floor int64) bool {
	for _, n := range s.near[i] {
		s.work++
		if s.at[n.buffer] < 0 && max(s.low[n.buffer], floor)+n.below <= level {
			return false
		}
	}
	return true
}

// touches reports whether buffer i begins at its own offset in section k.
func (s *search) touches(i, k int32) bool {
	for _, p := range s.in.spans[i] {
		if p.lo <= k && k < p.hi {
			return p.low == 0
		}
	}
	return false
}

// twinLeft reports whether an identical buffer goes before i.
func (s *search) twinLeft(i int32) bool {
	t := s.twin[i]
	return t >= 0 && s.at[t] < 0
}

// try places i as low as it goes and solves the rest.
func (s *search) try(i int32, rest []int32, lo, hi int32, floor int64, last int32) status {
	mark := len(s.undo)
	s.place(i)
	st := s.solve(rest, lo, hi, floor, last)
	if st != found {
		s.back(mark)
	}
	return st
}

// place places i as low as it goes and lifts the buffers that meet it.
func (s *search) place(i int32) {
	at := s.low[i]
	s.at[i] = at
	s.undo = append(s.undo, change{i, -1})
	lo, hi := s.in.reach(i)
	for _, n := range s.near[i] {
		j := n.buffer
		if s.at[j] >= 0 || s.low[j] >= at+n.above {
			continue
		}
		s.undo = append(s.undo, change{j, s.low[j]})
		s.low[j] = alignUp(at+n.above, s.in.align[j])
		from, to := s.in.reach(j)
		lo, hi = min(lo, from), max(hi, to)
	}
	s.work += int64(len(s.near[i]))
	s.touch(lo, hi)
}

// back takes changes back until there are mark of them.
func (s *search) back(mark int) {
	if len(s.undo) == mark {
		return
	}
	lo, hi := s.in.reach(s.undo[mark].buffer)
	for k := len(s.undo) - 1; k >= mark; k-- {
		c := s.undo[k]
		if c.low < 0 {
			s.at[c.buffer] = -1
		} else {
			s.low[c.buffer] = c.low
		}
		from, to := s.in.reach(c.buffer)
		lo, hi = min(lo, from), max(hi, to)
	}
	s.undo = s.undo[:mark]
	s.touch(lo, hi)
}

// mul returns a*b, saturated.
func mul(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > 1<<62 {
		return 1 << 62
	}
	return int64(lo)
}
