package remat

import (
	"math/rand/v2"
	"slices"
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
	l := &ladder{g: g, fitter: newFitter(g), greedy: append([][]int32{g.Order}, others...), annealed: g.Order}
	if len(budgets) > 0 {
		for _, order := range l.greedy {
			h := *g
			h.Order = order
			l.family = append(l.family, family(&h, relatives/len(l.greedy))...)
			for _, s := range segments(&h) {
				u, err := Simulate(g, s)
				if err != nil {
					return nil, err
				}
				l.segments = append(l.segments, Plan{s, u.Peak, u.Cost})
			}
		}
		slices.SortStableFunc(l.segments, func(a, b Plan) int { return compare(a.Cost, b.Cost) })
	}
	failed := 0
	sequences := make([][]int32, len(budgets))
	for k, b := range budgets {
		if failed == patience {
			break
		}
		sequences[k] = l.climb(b, moves/len(budgets), uint64(k), int64(len(budgets)))
		if sequences[k] == nil {
			failed++
			continue
		}
		failed = 0
	}
	// Back up: what was found for less memory, with more room.
	var below []int32
	for k := len(budgets) - 1; k >= 0; k-- {
		if below != nil {
			if s := l.polisher.polish(g, below, budgets[k]); sequences[k] == nil || costOf(g, s) < costOf(g, sequences[k]) {
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

// ladder takes one budget after another.
type ladder struct {
	g        *Graph
	fitter   *fitter
	greedy   [][]int32 // what evictions alone led to, from each order
	annealed []int32   // the last plan
	family   [][]int32
	segments []Plan // by rising cost
	polisher polisher
}

// cool is the schedule of annealing from a good start.
var cool = schedule{hot: 1e-3, cold: 1e-6, light: 10, heavy: 100}

// climb returns a sequence within the budget, nil if it finds none.
func (l *ladder) climb(budget int64, moves int, seed uint64, rungs int64) []int32 {
	var best []int32
	cost := int64(unlimited)
	try := func(from []int32) []int32 {
		s := l.fitter.fit(from, budget, cost, nil)
		if s != nil {
			if c := costOf(l.g, s); c < cost {
				best, cost = s, c
			}
		}
		return s
	}
	for k, from := range l.greedy {
		if s := l.fitter.fit(from, budget, unlimited, nil); s != nil {
			l.greedy[k] = s
			if c := costOf(l.g, s); c < cost {
				best, cost = s, c
			}
		}
	}
	try(l.annealed)
	share := fitWork / rungs
	if len(l.g.Names) < large {
		share = unlimited
	}
	for k, until := 0, l.fitter.work+share; k < len(l.family) && l.fitter.work < until; k++ {
		try(l.family[(k+int(seed))%len(l.family)])
	}
	polish := func(from []int32) {
		s := l.polisher.polish(l.g, from, budget)
		if c := costOf(l.g, s); c < cost {
			best, cost = s, c
		}
	}
	n := 0
	for _, p := range l.segments {
		if p.Peak <= budget && n < polished {
			polish(p.Sequence)
			n++
		}
	}
	if best != nil {
		polish(best)
	}
	for n, until := 0, l.fitter.work+share; best == nil && n < retries && l.fitter.work < until; n++ {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		starts := slices.Concat(l.greedy, [][]int32{l.annealed, l.g.Order}, l.family)
		if s := l.fitter.fit(starts[n%len(starts)], budget, cost, rng); s != nil {
			best, cost = s, costOf(l.g, s)
		}
	}
	if best != nil {
		moves = weigh(moves, cost, l.g.BaseCost())
	}
	start := best
	if start == nil {
		start = l.annealed
	} else {
		start = l.refit(start, budget, int64(moves)*repairs, seed)
	}
	a := newAnnealer(l.g, start, budget, seed)
	s := cool
	s.moves = moves
	a.run(s)
	if a.best != nil {
		l.annealed = a.best
	}
	return a.best
}

// weigh returns the effort for a plan: where it costs little more than computing everything once, there is little to gain.
func weigh(moves int, cost, base int64) int {
	more := float64(cost-base) / float64(max(base, 1))
	return int(float64(float64(moves) * min(max(more/0.05, 0.1), 2)))
}

// fitWork is how many steps all fits from a family may measure together, about, on graphs of so many nodes that more would
// take too long.
const (
	fitWork = 40_000_000
	large   = 4000
)

// retries is how often chance is asked where evictions find no plan.
const retries = 40

// repairs is how many steps the search by repair may measure for each move of annealing.
const repairs = 10

// refit looks for cheaper sequences within the budget: in turn it forgets what is computed again of some nodes that stand
// close together, and fits the rest to the budget with scores that are a little off.
func (l *ladder) refit(best []int32, budget, work int64, seed uint64) []int32 {
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
		if len(l.family) > 0 && rng.IntN(4) == 0 {
			if s := l.fitter.fit(l.family[rng.IntN(len(l.family))], budget, cost, rng); s != nil {
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
