package offset

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Memory is one of several places for buffers, such as a memory on chip and one beside it.
type Memory struct {
	Name     string
	Capacity int64 // bytes; 0 for as many as are wanted, which the last one may have
}

// Spread is a plan for several memories. Each has addresses of its own, from 0 on.
type Spread struct {
	Memory  []int   // of each buffer, an index
	Offsets []int64 // of each buffer, in its memory
	Heights []int64 // of each memory: the highest end of a buffer
	Cost    int64   // what spilling costs: the sum of all buffers' Spill times the index of their memory
	Bound   int64   // no spread costs less
	Work    int64   // steps done
}

// CheckMemories reports what is wrong with a list of memories: names that are empty or come twice, capacities that are missing.
func CheckMemories(memories []Memory) error {
	if len(memories) == 0 {
		return errors.New("no memories")
	}
	for k, m := range memories {
		switch {
		case m.Name == "":
			return fmt.Errorf("memory %d has no name", k)
		case slices.ContainsFunc(memories[:k], func(o Memory) bool { return o.Name == m.Name }):
			return fmt.Errorf("memory %q comes twice", m.Name)
		case m.Capacity < 0 || m.Capacity > maxBytes:
			return fmt.Errorf("memory %q: capacity %d, want 1 to %d", m.Name, m.Capacity, int64(maxBytes))
		case m.Capacity == 0 && k < len(memories)-1:
			return fmt.Errorf("memory %q has no capacity, so nothing would ever be in those behind it", m.Name)
		}
	}
	return nil
}

// SpreadOver puts buffers in several memories, in the order of preference: what does not fit in one is spilled to the next, what costs
// least first. Which buffers a memory is best used for is told by prices of its sections of time (spreadPrices); they are
// then packed by [Solve], and holes that stay are filled. The result depends on nothing but the arguments. It fails with
// ErrImpossible or ErrExhausted, and the name of the memory, where buffers that must lie in one do not fit.
func SpreadOver(buffers []Buffer, memories []Memory, budget int64) (Spread, error) {
	if err := errors.Join(Validate(buffers), CheckMemories(memories)); err != nil {
		return Spread{}, err
	}
	total := int64(0)
	for i := range buffers {
		if total += buffers[i].spillCost(); total > maxBytes/int64(len(memories)) {
			return Spread{}, fmt.Errorf("buffer %q: the costs of spilling up to it add up to more than %d", buffers[i].ID, maxBytes/int64(len(memories)))
		}
	}
	s := &spreader{in: newInstance(buffers), buffers: buffers, memories: memories, budget: budget}
	if err := s.pins(); err != nil {
		return Spread{}, err
	}
	s.out = Spread{Memory: make([]int, len(buffers)), Offsets: make([]int64, len(buffers)), Heights: make([]int64, len(memories))}
	p := s.prices()
	rest := make([]int32, len(buffers))
	for i := range rest {
		rest[i] = int32(i)
	}
	for k := range memories {
		kept, err := s.fill(k, rest, p)
		if err != nil {
			return Spread{}, err
		}
		for i, at := range kept {
			if at < 0 {
				continue
			}
			s.out.Memory[i], s.out.Offsets[i] = k, at
			s.out.Heights[k] = max(s.out.Heights[k], at+buffers[i].Size)
			s.out.Cost += int64(k) * s.spill(int32(i))
		}
		rest = slices.DeleteFunc(rest, func(i int32) bool { return kept[i] >= 0 })
	}
	if len(rest) > 0 {
		b := &buffers[rest[0]] // it is in no selection
		return Spread{}, fmt.Errorf("buffer %q, %d bytes: %w: no memory that it may lie in is that large", b.ID, b.Size, ErrImpossible)
	}
	s.out.Bound = min(p.bound, s.out.Cost)
	s.out.Work = s.work
	return s.out, nil
}

// spreader is the work on one spread.
type spreader struct {
	in       *instance
	buffers  []Buffer
	memories []Memory
	pin      []int // the memory that a buffer must lie in, -1 for any
	budget   int64
	work     int64
	out      Spread
}

// pins finds the memories that buffers name.
func (s *spreader) pins() error {
	var bad []error
	for i := range s.buffers {
		b, pin := &s.buffers[i], -1
		if b.Memory != "" {
			if pin = slices.IndexFunc(s.memories, func(m Memory) bool { return m.Name == b.Memory }); pin < 0 {
				bad = append(bad, fmt.Errorf("buffer %q: no memory is called %q", b.ID, b.Memory))
			}
		} else if b.Fixed != nil {
			bad = append(bad, fmt.Errorf("buffer %q: it has a fixed offset, but no memory that this is one of", b.ID))
		}
		s.pin = append(s.pin, pin)
	}
	return errors.Join(bad...)
}

// spill returns what it costs to have a buffer one memory further.
func (s *spreader) spill(i int32) int64 { return s.buffers[i].spillCost() }

// may reports whether buffer i may lie in memory k.
func (s *spreader) may(i int32, k int) bool {
	c := s.memories[k].Capacity
	return (s.pin[i] < 0 || s.pin[i] == k) && (c == 0 || s.buffers[i].Size <= c)
}

// must reports whether buffer i may lie in none of the memories behind k.
func (s *spreader) must(i int32, k int) bool {
	for j := k + 1; j < len(s.memories); j++ {
		if s.may(i, j) {
			return false
		}
	}
	return true
}

// shares of a capacity are what a selection may have alive: the less, the easier it is to pack.
var shares = [...]int64{100, 97, 93, 87, 80}

// fill decides what of rest lies in memory k. It returns offsets, -1 for what does not.
func (s *spreader) fill(k int, rest []int32, p *spreadPrices) ([]int64, error) {
	order := s.preference(k, rest, p)
	m := s.memories[k]
	if m.Capacity == 0 {
		r, err := s.pack(order, 0)
		return r.at, err
	}
	var best packed
	var failed error
	for _, share := range shares {
		chosen := s.choose(k, order, m.Capacity/100*share+m.Capacity%100*share/100)
		r, err := s.pack(chosen, m.Capacity)
		if err != nil && !errors.Is(err, ErrExhausted) && !errors.Is(err, ErrImpossible) {
			return nil, err
		}
		whole := err == nil
		s.settle(&r, k, order)
		if r.missing >= 0 {
			why := ErrExhausted
			if errors.Is(err, ErrImpossible) && !slices.ContainsFunc(chosen, func(i int32) bool { return !s.must(i, k) }) {
				why = ErrImpossible
			}
			failed = fmt.Errorf("memory %q, %d bytes: %w: buffer %q has to lie there and found no room", m.Name, m.Capacity, why, s.buffers[r.missing].ID)
			continue
		}
		if best.at == nil || r.gain > best.gain {
			best = r
		}
		if whole && share == shares[0] || s.work > s.budget {
			break
		}
	}
	if best.at == nil {
		return nil, failed
	}
	return best.at, nil
}

// preference returns those of rest that may lie in memory k: first those that must, then by what they save for their price.
func (s *spreader) preference(k int, rest []int32, p *spreadPrices) []int32 {
	list := slices.DeleteFunc(slices.Clone(rest), func(i int32) bool { return !s.may(i, k) })
	worth := make([]float64, len(s.buffers))
	for _, i := range list {
		switch price := p.price(s.in, k, i); {
		case s.must(i, k):
			worth[i] = math.Inf(1)
		case price > 0:
			worth[i] = float64(s.spill(i)) / price
		default:
			worth[i] = math.MaxFloat64
		}
	}
	slices.SortStableFunc(list, func(a, b int32) int {
		switch {
		case worth[a] > worth[b]:
			return -1
		case worth[a] < worth[b]:
			return 1
		}
		return cmp(s.spill(b), s.spill(a))
	})
	return list
}

// packed is what of a selection lies where.
type packed struct {
	at      []int64 // for all buffers, -1 for those elsewhere
	gain    int64   // what those that lie here would cost one memory further
	missing int32   // a buffer that has to lie here and does not, -1 for none
}

// pack places the chosen buffers. With ErrExhausted or ErrImpossible some of them end above the capacity.
func (s *spreader) pack(chosen []int32, capacity int64) (packed, error) {
	r := packed{at: slices.Repeat([]int64{-1}, len(s.buffers)), missing: -1}
	var list []Buffer
	for _, i := range chosen {
		list = append(list, s.buffers[i])
	}
	if len(list) == 0 {
		return r, nil
	}
	plan, err := Solve(list, capacity, s.budget/int64(len(shares)*len(s.memories)))
	s.work += plan.Work
	for n, i := range chosen {
		if n < len(plan.Offsets) {
			r.at[i] = plan.Offsets[n]
		}
	}
	return r, err
}

// settle takes out what ends above the capacity of memory k, puts what finds a hole in it, in order, and counts.
func (s *spreader) settle(r *packed, k int, order []int32) {
	capacity := s.memories[k].Capacity
	g := &greedy{in: s.in, blocks: newBlockIndex(len(order), s.in.sections)}
	put := func(i int32, at int64) {
		r.at[i] = at * s.in.unit
		r.gain += s.spill(i)
		for _, x := range s.in.spans[i] {
			g.blocks.insert(block{at + x.low, at + x.high, x.lo, x.hi})
		}
	}
	for _, i := range order {
		if at := r.at[i]; at >= 0 && at+s.buffers[i].Size <= capacity {
			put(i, at/s.in.unit)
		} else {
			r.at[i] = -1
		}
	}
	for _, i := range order {
		if r.at[i] >= 0 {
			continue
		}
		if s.in.fixed[i] < 0 {
			at := g.lowest(i)
			if (at+s.in.size[i])*s.in.unit <= capacity {
				put(i, at)
				continue
			}
		}
		if r.missing < 0 && s.must(i, k) {
			r.missing = i
		}
	}
	s.work += g.work
}
