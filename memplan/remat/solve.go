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

// DefaultMoves is an effort of some seconds for a graph of hundreds of nodes.
const DefaultMoves = 3_000_000

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

// NotFoundError says that the search found no sequence within a budget that may have one.
type NotFoundError struct {
	Budget int64
	Lowest int64 // the lowest peak that was seen
}

// Error implements error.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("budget %d: no sequence was found that keeps to it; the lowest peak seen is %d", e.Budget, e.Lowest)
}

// Floor returns the least memory that any sequence needs at some step, a node's result and all it reads, and the node.
func Floor(g *Graph) (int64, int32) {
	floor, at := int64(0), int32(0)
	for v := range g.Names {
		need := g.Memory[v]
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

// schedules are the settings of the runs on small graphs, the first that of the others.
var schedules = [...]schedule{
	{hot: 3e-2, cold: 1e-6, light: 0.01, heavy: 100},
	{hot: 1e-2, cold: 1e-6, light: 0.05, heavy: 30},
	{hot: 1e-2, cold: 1e-6, light: 0.05, heavy: 100},
}

// Solve returns a sequence whose peak is not above the budget, of the least cost that about so many moves of annealing
// find. A budget that no sequence can keep to is a *FloorError if one step shows that, and a *NotFoundError else. The
// result depends on nothing but the arguments.
func Solve(g *Graph, budget int64, moves int) (Plan, error) {
	if err := g.Validate(); err != nil {
		return Plan{}, err
	}
	if need, v := Floor(g); need > budget {
		e := &FloorError{Budget: budget, Need: need, Node: g.Names[v]}
		for _, p := range g.Parents[v] {
			e.Reads = append(e.Reads, fmt.Sprintf("%q (%d)", g.Names[p], g.Memory[p]))
		}
		return Plan{}, e
	}
	u, err := Simulate(g, g.Order)
	if err != nil {
		return Plan{}, err
	}
	if u.Peak <= budget {
		return Plan{g.Order, u.Peak, u.Cost}, nil
	}
	runs := 1
	if len(g.Names) < small {
		runs = len(schedules)
	}
	best, bestCost, lowest := []int32(nil), int64(0), u.Peak
	for k := range runs {
		a := newAnnealer(g, budget, uint64(k))
		s := schedules[k]
		s.moves = moves / runs
		a.run(s)
		lowest = min(lowest, a.lowest)
		if a.best != nil && (best == nil || a.bestAt < bestCost) {
			best, bestCost = a.best, a.bestAt
		}
		if best != nil && bestCost == g.BaseCost() {
			break
		}
	}
	if best == nil {
		return Plan{}, &NotFoundError{budget, lowest}
	}
	if u, err = Simulate(g, best); err != nil {
		return Plan{}, err
	}
	return Plan{best, u.Peak, u.Cost}, nil
}
