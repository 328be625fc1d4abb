package remat

import (
	"fmt"
	"strings"
)

// Plan is a sequence with its figures.
type Plan struct {
	Sequence []int32
	Peak     int64
	Cost     int64
}

// Result is a plan with a cost that no plan is below.
type Result struct {
	Plan
	Bound int64
}

// DefaultMoves is an effort of some seconds for a graph of hundreds of nodes.
const DefaultMoves = 4_000_000

// FloorError says that no sequence fits a budget: computing one node takes more on its own.
type FloorError struct {
	Budget int64
	Need   int64
	Node   string
	Reads  []string // what it reads, with sizes
}

// Error implements error.
func (e *FloorError) Error() string {
	s := fmt.Sprintf("budget %d: computing %q alone needs %d bytes: its result", e.Budget, e.Node, e.Need)
	if len(e.Reads) > 0 {
		s += " and what it reads, " + strings.Join(e.Reads, ", ")
	}
	return s
}

// NotFoundError says that the search found no sequence within a budget, although each step alone fits.
type NotFoundError struct {
	Budget int64
	Lowest int64 // the lowest peak that was seen
	Proved bool  // there is none; Lowest is not known
}

// Error implements error.
func (e *NotFoundError) Error() string {
	if e.Proved {
		return fmt.Sprintf("budget %d: each step fits, but no sequence keeps to it", e.Budget)
	}
	return fmt.Sprintf("budget %d: no sequence was found that keeps to it; the lowest peak seen is %d", e.Budget, e.Lowest)
}

// Floor returns the least memory that any sequence needs at some step, a node's result and all it reads, and the node.
func Floor(g *Graph) (int64, int32) {
	floor, at := int64(0), int32(0)
	for v := range g.Names {
		need := g.Memory[v] - g.saves(int32(v)) + g.extra(int32(v))
		for _, p := range g.Parents[v] {
			need += g.Memory[p]
		}
		if need > floor {
			floor, at = need, int32(v)
		}
	}
	return floor, at
}

// small is the number of nodes up to which several short runs are made in place of a long one.
const small = 200

// schedules are the settings of the runs. The first starts from what the bound's knapsack recomputes, cool enough not to
// lose it, the others from the graph's own order; large graphs have one of those. Where memory is cheap at first a run
// finds good orders, where it is dear it finds its way into tight budgets: no one price does well on all graphs.
var schedules = [...]schedule{
	{share: 0.1, hot: 1e-3, cold: 1e-6, light: 0.05, heavy: 100},
	{share: 0.3, hot: 3e-2, cold: 1e-6, light: 0.01, heavy: 100},
	{share: 0.3, hot: 1e-2, cold: 1e-6, light: 0.05, heavy: 100},
	{share: 0.3, hot: 3e-2, cold: 1e-5, light: 0.1, heavy: 100},
}

// Solve returns a sequence whose peak is not above the budget, of the least cost that about so many moves of annealing
// find; graphs up to ten nodes are solved exactly. A budget that no sequence can keep to is a *FloorError if one step shows that, and a *NotFoundError else. The
// result depends on nothing but the arguments.
func Solve(g *Graph, budget int64, moves int) (Result, error) {
	if err := g.Validate(); err != nil {
		return Result{}, err
	}
	if need, v := Floor(g); need > budget {
		e := &FloorError{Budget: budget, Need: need, Node: g.Names[v]}
		for _, p := range g.Parents[v] {
			e.Reads = append(e.Reads, fmt.Sprintf("%q (%d)", g.Names[p], g.Memory[p]))
		}
		return Result{}, e
	}
	u, err := Simulate(g, g.Order)
	if err != nil {
		return Result{}, err
	}
	if u.Peak <= budget {
		return Result{Plan{g.Order, u.Peak, u.Cost}, u.Cost}, nil
	}
	if len(g.Names) <= exactNodes {
		sequence := exact(g, budget)
		if sequence == nil {
			return Result{}, &NotFoundError{Budget: budget, Proved: true}
		}
		if u, err = Simulate(g, sequence); err != nil {
			return Result{}, err
		}
		return Result{Plan{sequence, u.Peak, u.Cost}, u.Cost}, nil
	}
	return anneal(g, budget, moves)
}

// anneal is Solve for a graph of any size whose own order exceeds the budget.
func anneal(g *Graph, budget int64, moves int) (Result, error) {
	bound, start := bound(g, budget)
	runs := schedules[:2]
	if len(g.Names) < small {
		runs = schedules[:]
	}
	var best []int32
	bestCost, lowest := int64(unlimited), int64(unlimited)
	for k, s := range runs {
		from := g.Order
		if k == 0 {
			from = start
		}
		a := newAnnealer(g, from, budget, uint64(k))
		a.bound, a.best, a.bestAt = bound, best, bestCost
		s.moves = int(float64(moves) * s.share)
		if len(g.Names) >= small && k > 0 {
			s.moves = moves - int(float64(moves)*runs[0].share)
		}
		a.run(s)
		lowest = min(lowest, a.lowest)
		best, bestCost = a.best, a.bestAt
		if best != nil && bestCost <= bound {
			break
		}
	}
	if best == nil {
		return Result{}, &NotFoundError{Budget: budget, Lowest: lowest}
	}
	u, err := Simulate(g, best)
	if err != nil {
		return Result{}, err
	}
	return Result{Plan{best, u.Peak, u.Cost}, bound}, nil
}
