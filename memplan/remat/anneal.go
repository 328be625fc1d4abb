package remat

import "math/rand/v2"

// annealer searches by simulated annealing over sequences, as FastSA does (Imanishi, Xu, Takagi, Wang and Castillo,
// NeurIPS 2023): computations are added, removed and moved. Three things differ. A move may do more than one change: with a
// computation those of its operands come along that are not at hand, one that goes takes along those that only it read,
// and a computation is moved past steps that depend on it by moving those too. Memory above the budget is charged at
// every step, not at the highest alone, so that it counts when one of several peaks shrinks. And the search ends where
// the bound is reached.
type annealer struct {
	*timeline
	budget int64
	rng    *rand.Rand
	bound  int64   // a cost that none is below
	best   []int32 // within the budget, nil before
	bestAt int64   // its cost
	lowest int64   // the lowest peak seen
	block  []int32 // scratch
	full   int     // how many moves failed for want of an empty slot since steps were laid out
	bits   uint64
	left   int
}

// newAnnealer starts from a sequence.
func newAnnealer(g *Graph, sequence []int32, budget int64, seed uint64) *annealer {
	a := &annealer{timeline: newTimeline(g, sequence), bound: g.BaseCost(), budget: budget, rng: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
	a.lowest = a.peak[1]
	return a
}

// coin is a random bit.
func (a *annealer) coin() bool {
	if a.left == 0 {
		a.bits, a.left = a.rng.Uint64(), 64
	}
	b := a.bits&1 == 1
	a.bits >>= 1
	a.left--
	return b
}

func (a *annealer) pick(n int) int { return int(a.rng.Uint64N(uint64(n))) }

// schedule is a run of moves.
type schedule struct {
	share        float64 // of the moves
	moves        int
	hot, cold    float64 // temperature, in shares of the base cost
	light, heavy float64 // price of a step that is over the budget by as much as the budget, in base costs
}

// run makes the moves of a schedule.
func (a *annealer) run(s schedule) {
	base := float64(max(a.g.BaseCost(), 1))
	const stretch = 256 // moves between changes of temperature and price
	rounds := max(s.moves/stretch, 1)
	cool, harden := root(s.cold/s.hot, rounds), root(s.heavy/s.light, rounds)
	temperature, price := s.hot, s.light
	for round := range rounds {
		if a.best != nil && a.bestAt <= a.bound {
			return // no plan is cheaper
		}
		perCost, perByte := float64(1/base), float64(price/float64(max(a.budget, 1)))
		energy := func() float64 {
			return float64(perCost*float64(a.cost)) + float64(perByte*float64(a.over(a.budget)))
		}
		now := energy()
		if round == 0 {
			a.note()
		}
		for range stretch {
			a.log = a.log[:0]
			if !a.move() {
				a.undo()
				continue
			}
			next := energy()
			if next-now > float64(temperature*quantiles[a.pick(len(quantiles))]) {
				a.undo()
				continue
			}
			now = next
			a.note()
		}
		if a.full > stretch/8 || int(a.steps)*4 > int(a.slots) {
			a.layOut(a.sequence())
			a.full = 0
		}
		temperature = float64(temperature * cool)
		price = float64(price * harden)
	}
}

// note keeps the sequence if it is the best so far.
func (a *annealer) note() {
	a.lowest = min(a.lowest, a.peak[1])
	if a.peak[1] <= a.budget && (a.best == nil || a.cost < a.bestAt) {
		a.best, a.bestAt = a.sequence(), a.cost
	}
}

// move changes the sequence at random; false if nothing came of it.
func (a *annealer) move() bool {
	switch k := a.pick(100); {
	case k < 30:
		return a.again()
	case k < 55:
		return a.less()
	case k < 70:
		return a.later()
	case k < 85:
		return a.earlier()
	}
	return a.shift()
}

// slotBefore returns an empty slot between the step at slot and the one in front of it, -1 if there is none.
func (a *annealer) slotBefore(slot int32) int32 {
	gap := int32(0)
	for s := slot - 1; s >= 0 && a.at[s] < 0 && gap < 64; s-- {
		gap++
	}
	if gap == 0 {
		a.full++
		return -1
	}
	return slot - (gap+3)/4
}

// again computes a result a second time, in front of one of its later readers, so that it need not be kept until then.
func (a *annealer) again() bool {
	target := a.above(a.budget, a.coin)
	var v, from, reader int32
	for try := 0; ; try++ {
		if try == 12 {
			return false
		}
		v = int32(a.pick(len(a.when)))
		k := a.pick(len(a.when[v]))
		from = a.when[v][k]
		until := a.until[v][k]
		if until == from || target >= 0 && try < 10 && (from >= target || until <= target) {
			continue
		}
		// A reader of this computation, the first behind the target or any.
		c := a.children[v][a.pick(len(a.children[v]))]
		at := a.pick(len(a.when[c]))
		reader = a.when[c][at]
		if reader <= from || reader > until || target >= 0 && try < 10 && reader <= target {
			continue
		}
		break
	}
	slot := a.slotBefore(reader)
	if slot < 0 || slot <= from || a.g.once(v) {
		return false
	}
	return a.compute(v, slot, 8)
}

// compute inserts v at slot, and in front of it those of its operands that are not at hand there, or not all of them.
func (a *annealer) compute(v, slot int32, depth int) bool {
	if !a.ready(v, slot) {
		return false
	}
	a.insert(v, slot)
	for _, p := range a.g.Parents[v] {
		k := a.before(p, slot)
		// The insertion has made p live until slot; was it before?
		if depth == 0 || a.g.once(p) || a.lastRead(p, a.when[p][k], slot) > a.when[p][k] && a.others(p, k, slot) || slot-a.when[p][k] < 2 || a.coin() {
			continue
		}
		s := a.slotBefore(slot)
		if s < 0 {
			return false
		}
		if s <= a.when[p][k] {
			continue
		}
		if !a.compute(p, s, depth-1) {
			return false
		}
	}
	return true
}

// others reports whether computation k of p is read behind slot, so that keeping it until slot costs nothing.
func (a *annealer) others(p int32, k int, slot int32) bool { return a.until[p][k] > slot }

// less removes a computation that can go, and then those of its operands that nobody reads any more.
func (a *annealer) less() bool {
	if len(a.dups) == 0 {
		return false
	}
	v := a.dups[a.pick(len(a.dups))]
	k := a.pick(len(a.when[v]))
	if !a.removable(v, k) {
		return false
	}
	a.remove(v, a.when[v][k])
	a.sweep(v, 8)
	return true
}

// shift moves a computation to another place between its operands and its readers.
func (a *annealer) shift() bool {
	v := int32(a.pick(len(a.when)))
	if len(a.dups) > 0 && a.pick(4) == 0 {
		v = a.dups[a.pick(len(a.dups))]
	}
	k := a.pick(len(a.when[v]))
	from := a.when[v][k]
	lo, hi := int32(-1), a.slots
	for _, p := range a.g.Parents[v] {
		lo = max(lo, a.when[p][0])
	}
	if k > 0 {
		lo = max(lo, a.when[v][k-1])
	} else {
		for _, c := range a.children[v] {
			hi = min(hi, a.when[c][0])
		}
	}
	if k+1 < len(a.when[v]) {
		hi = min(hi, a.when[v][k+1])
	}
	var to int32
	switch a.pick(4) {
	case 0: // in front of its first reader behind it
		first := hi
		for _, c := range a.children[v] {
			for _, s := range a.when[c] {
				if s > from {
					first = min(first, s)
					break
				}
			}
		}
		if first == a.slots {
			return false
		}
		to = a.slotBefore(first)
	case 1: // behind the last of its operands, as they are now
		last := lo
		for _, p := range a.g.Parents[v] {
			last = max(last, a.when[p][a.before(p, from)])
		}
		to = last + 1
		for to < hi && a.at[to] >= 0 {
			to++
		}
	case 2: // nearby
		d := int32(a.pick(int(min(a.slots, 400)))) - 200
		to = from + d
	default:
		if hi-lo < 3 {
			return false
		}
		to = lo + 1 + int32(a.pick(int(hi-lo-1)))
	}
	for to > lo && to < hi && a.at[to] >= 0 {
		to++
	}
	if to <= lo || to >= hi || to == from {
		return false
	}
	a.insert(v, to)
	a.remove(v, from)
	return true
}
