package remat

import (
	"math/rand/v2"
	"slices"
	"sync"
)

// Front returns plans for budgets, which it takes in falling order, each search going on from plans for the budget
// before: what is worth computing again at one budget mostly is so at the next. The plans are a front: none has both a
// lower peak and a lower cost than another, and their order is that of falling peaks and rising costs. So the cheapest
// plan of the front that keeps to a budget is monotone in the budget, in its cost and in its peak. Budgets for which no
// plan was found have none. Others are further orders of all nodes to start from. The result depends on nothing but the
// arguments.
func Front(g *Graph, budgets []int64, moves int, others ...[]int32) ([]Plan, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	u, err := Simulate(g, g.Order)
	if err != nil {
		return nil, err
	}
	budgets = slices.Clone(budgets)
	slices.Sort(budgets)
	slices.Reverse(budgets)
	floor, _ := Floor(g)
	budgets = slices.DeleteFunc(slices.Compact(budgets), func(b int64) bool { return b >= u.Peak || b < floor })
	plans := []Plan{{g.Order, u.Peak, u.Cost}}
	if len(budgets) == 0 {
		return plans, nil
	}
	st := newStarts(g, append([][]int32{g.Order}, others...))
	st.room(g, budgets)
	// Searches of their own, of which each budget takes the best: one may be lucky where another is not.
	found := make([][][]int32, len(cools))
	var wait sync.WaitGroup
	for n := range cools {
		wait.Go(func() {
			l := &ladder{g: g, starts: st, fitter: newFitter(g), greedy: slices.Clone(st.orders), annealed: g.Order, cool: cools[n], seed: uint64(n) << 32,
				evictions: make([]habit, len(st.orders))}
			found[n] = l.descend(budgets, moves/len(cools))
		})
	}
	wait.Wait()
	sequences := make([][]int32, len(budgets))
	for k := range budgets {
		for _, list := range found {
			if s := list[k]; s != nil && (sequences[k] == nil || costOf(g, s) < costOf(g, sequences[k])) {
				sequences[k] = s
			}
		}
	}
	var polisher polisher
	// Back up: what was found for less memory, with more room.
	var below []int32
	for k := len(budgets) - 1; k >= 0; k-- {
		if below != nil {
			if s := polisher.polish(g, below, budgets[k]); sequences[k] == nil || costOf(g, s) < costOf(g, sequences[k]) {
				sequences[k] = s
			}
		}
		if sequences[k] != nil {
			below = sequences[k]
		}
	}
	for _, s := range sequences {
		if s == nil {
			continue
		}
		if u, err = Simulate(g, s); err != nil {
			return nil, err
		}
		plans = append(plans, Plan{s, u.Peak, u.Cost})
	}
	return pareto(plans), nil
}

const (
	relatives = 16 // sequences of a family
	polished  = 4  // sequences of segments that are polished for a budget, the cheapest
	patience  = 3  // budgets in a row that may go without a plan before lower ones are given up
)

// starts are sequences that plans are made from.
type starts struct {
	orders   [][]int32
	family   func() [][]int32
	segments []Plan    // by rising cost
	pieces   [][]int32 // by budget, the cheapest that segments give, polished; nil for none
}

// room finds the pieces for all budgets.
func (s *starts) room(g *Graph, budgets []int64) {
	s.pieces = make([][]int32, len(budgets))
	const turns = 4
	var wait sync.WaitGroup
	for turn := range turns {
		wait.Go(func() {
			var p polisher
			for k := turn; k < len(budgets); k += turns {
				n := 0
				for _, from := range s.segments {
					if from.Peak > budgets[k] || n == polished {
						continue
					}
					n++
					if c := p.polish(g, from.Sequence, budgets[k]); s.pieces[k] == nil || costOf(g, c) < costOf(g, s.pieces[k]) {
						s.pieces[k] = c
					}
				}
			}
		})
	}
	wait.Wait()
}

func newStarts(g *Graph, orders [][]int32) *starts {
	of := func(order []int32) *Graph {
		h := *g
		h.Order = order
		return &h
	}
	all := &starts{orders: orders, family: sync.OnceValue(func() [][]int32 {
		list := make([][][]int32, len(orders))
		var wait sync.WaitGroup
		for k, order := range orders {
			wait.Go(func() { list[k] = family(of(order), relatives/len(orders)) })
		}
		wait.Wait()
		return slices.Concat(list...)
	})}
	for _, order := range orders {
		for _, s := range segments(of(order)) {
			if u, err := Simulate(g, s); err == nil {
				all.segments = append(all.segments, Plan{s, u.Peak, u.Cost})
			}
		}
	}
	slices.SortStableFunc(all.segments, func(a, b Plan) int { return compare(a.Cost, b.Cost) })
	return all
}

// ladder takes one budget after another.
type ladder struct {
	*starts
	g        *Graph
	fitter   *fitter
	greedy   [][]int32 // what evictions alone led to, from each order
	annealed []int32   // the last plan
	polisher polisher
	cool     schedule
	seed     uint64

	evictions                  []habit // for each order
	relatives, repair, cooling habit
	search                     habit // beyond pieces
}

// descend returns sequences for falling budgets, nil where it finds none.
func (l *ladder) descend(budgets []int64, moves int) [][]int32 {
	list := make([][]int32, len(budgets))
	failed := 0
	for k, b := range budgets {
		if failed == patience {
			break
		}
		list[k] = l.climb(k, b, moves/len(budgets), int64(len(budgets)))
		if failed++; list[k] != nil {
			failed = 0
		}
	}
	return list
}

// cools are the schedules of annealing from a good start, for searches of their own.
var cools = [...]schedule{
	{hot: 1e-3, cold: 1e-6, light: 10, heavy: 100},
	{hot: 3e-3, cold: 1e-6, light: 1, heavy: 100},
}

// climb returns a sequence within budget k, nil if it finds none.
func (l *ladder) climb(k int, budget int64, moves int, rungs int64) []int32 {
	seed := l.seed + uint64(k)
	var best []int32
	cost := int64(unlimited)
	take := func(s []int32) {
		if s != nil {
			if c := costOf(l.g, s); c < cost {
				best, cost = s, c
			}
		}
	}
	take(l.pieces[k])
	if best != nil {
		if l.search.rest > 0 {
			l.search.rest--
			l.annealed = best
			return best
		}
		pieces := cost
		defer func() { l.search.paid(pieces-cost > (pieces-l.g.BaseCost())/nearly, 8) }()
	}
	brief := !l.search.good && (best != nil || l.search.misses > 1) // pieces do so far: look from where they end, not from afar
	for i, from := range l.greedy {
		if brief {
			break
		}
		l.evictions[i].run(l.g, &best, &cost, func() {
			if s := l.fitter.fit(from, budget, unlimited, nil); s != nil {
				l.greedy[i] = s
				take(s)
			}
		})
	}
	take(l.fitter.fit(l.annealed, budget, cost, nil))
	if !brief {
		l.relatives.run(l.g, &best, &cost, func() {
			list := l.family()
			for i, until := 0, l.fitter.work+fitWork/rungs; i < len(list) && l.fitter.work < until; i++ {
				take(l.fitter.fit(list[(i+k)%len(list)], budget, cost, nil))
			}
		})
	}
	if best != nil {
		take(l.polisher.polish(l.g, best, budget))
	}
	for n, until := 0, l.fitter.work+retryWork; best == nil && !brief && n < retries && l.fitter.work < until; n++ {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		starts := slices.Concat(l.greedy, [][]int32{l.annealed, l.g.Order}, l.family())
		take(l.fitter.fit(starts[n%len(starts)], budget, cost, rng))
	}
	if best == nil {
		if best = l.anneal(l.annealed, budget, moves/2, seed); best != nil {
			l.annealed = best
		}
		return best
	}
	moves = weigh(moves, cost, l.g.BaseCost())
	l.repair.run(l.g, &best, &cost, func() { take(l.refit(best, budget, int64(moves)*repairs, seed, brief)) })
	l.cooling.run(l.g, &best, &cost, func() { take(l.anneal(best, budget, moves, seed)) })
	l.annealed = best
	return best
}

// anneal returns the best sequence within the budget of a run of annealing, nil if there is none.
func (l *ladder) anneal(from []int32, budget int64, moves int, seed uint64) []int32 {
	a := newAnnealer(l.g, from, budget, seed)
	s := l.cool
	s.moves = moves
	a.run(s)
	return a.best
}

// habit is a part of the search that is left out for a while when it has not paid, on large graphs for longer.
type habit struct {
	misses, rest int
	good         bool // it paid the last time
}

// worth is the part of what a plan costs more than no plan that a part of the search has to save.
const worth = 400

// nearly is such a part for all of the search, in chains for instance, where pieces alone do as well.
const nearly = 50

// run does what f does, which may lower cost, or leaves it out; not as long as there is no plan.
func (h *habit) run(g *Graph, best *[]int32, cost *int64, f func()) {
	if h.rest > 0 && *best != nil {
		h.rest--
		return
	}
	before := *cost
	f()
	h.paid(before-*cost > (before-g.BaseCost())/worth, 2+len(g.Names)/1000)
}

// paid notes whether something was worth it; if not it rests, each time for longer, up to most.
func (h *habit) paid(yes bool, most int) {
	if h.good = yes; yes {
		h.misses, h.rest = 0, 0
		return
	}
	h.rest = min(h.misses, most)
	h.misses++
}

// weigh returns the effort for a plan: where it costs little more than computing everything once, there is little to gain.
func weigh(moves int, cost, base int64) int {
	more := float64(cost-base) / float64(max(base, 1))
	return int(float64(float64(moves) * min(max(more/0.05, 0.1), 2)))
}

// fitWork is how many steps all fits from a family may measure together, about.
const fitWork = 20_000_000

// retries is how often chance is asked where evictions find no plan, and how many steps it may measure, about.
const (
	retries   = 40
	retryWork = 2_000_000
)

// large is the size of graphs for which fits from afar take too long for a search by repair.
const large = 4000

// repairs is how many steps the search by repair may measure for each move of annealing.
const repairs = 10

// refit looks for cheaper sequences within the budget: in turn it forgets what is computed again of some nodes that stand
// close together, and fits the rest to the budget with scores that are a little off. If it is not to be brief, sequences of the
// family have their turns too.
func (l *ladder) refit(best []int32, budget, work int64, seed uint64, brief bool) []int32 {
	var list [][]int32
	if !brief && len(l.g.Names) < large {
		list = l.family()
	}
	rng := rand.New(rand.NewPCG(seed, 0x5851f42d4c957f2d))
	place := make([]int, len(l.g.Names))
	for k, v := range l.g.Order {
		place[v] = k
	}
	cost := costOf(l.g, best)
	base := l.g.BaseCost()
	seen := make([]bool, len(place))
	var part []int32
	for until := l.fitter.work + work; l.fitter.work < until && cost > base; {
		if len(list) > 0 && rng.IntN(4) == 0 {
			if s := l.fitter.fit(list[rng.IntN(len(list))], budget, cost, rng); s != nil {
				best, cost = s, costOf(l.g, s)
			}
			continue
		}
		// A window of the order, of a size between a fiftieth and all of it.
		width := len(place)/50 + rng.IntN(1+rng.IntN(len(place)))
		from := rng.IntN(len(place)) - width/2
		part = part[:0]
		clear(seen)
		for _, v := range best {
			if seen[v] && place[v] >= from && place[v] < from+width {
				continue
			}
			seen[v] = true
			part = append(part, v)
		}
		l.fitter.work += int64(len(part))
		if s := l.fitter.fit(part, budget, cost, rng); s != nil {
			if c := costOf(l.g, s); c < cost {
				best, cost = s, c
			}
		}
	}
	return best
}

// costOf returns the cost of a sequence.
func costOf(g *Graph, sequence []int32) (cost int64) {
	for _, v := range sequence {
		cost += g.Cost[v]
	}
	return cost
}

// pareto drops plans that another beats, and orders the rest by falling peak.
func pareto(plans []Plan) []Plan {
	slices.SortStableFunc(plans, func(a, b Plan) int {
		if c := compare(a.Peak, b.Peak); c != 0 {
			return c
		}
		return compare(a.Cost, b.Cost)
	})
	var front []Plan
	for _, p := range plans { // rising peaks: each must be cheaper than those before
		if len(front) == 0 || p.Cost < front[len(front)-1].Cost {
			front = append(front, p)
		}
	}
	slices.Reverse(front)
	return front
}
