package recompute

import (
	"fmt"
	"slices"
	"strings"

	"gradtool/internal/size"
	"gradtool/memplan/remat"
)

// DefaultMoves is the search that a front takes, in moves of annealing; the larger a graph, the more one costs.
const DefaultMoves = 400_000

// rungs is how many budgets a front is made for, in equal steps down from the peak.
const rungs = 50

// Front returns plans for budgets from base, the peak that shares are meant of, down, see [remat.Front]. They do not depend on what
// budget is asked for, so a tighter one never has a cheaper plan, or one with a higher peak.
func (p *Problem) Front(base int64, moves int) ([]remat.Plan, error) {
	var budgets []int64
	for k := int64(1); k < rungs; k++ {
		budgets = append(budgets, base/rungs*(rungs-k)+base%rungs*(rungs-k)/rungs)
	}
	var others [][]int32
	if p.given != nil {
		others = append(others, p.given)
	}
	front, err := remat.Front(p.Graph, budgets, moves, others...)
	if err != nil || len(p.twin) == 0 {
		return front, err
	}
	for i, f := range front {
		front[i] = p.pairUp(f)
		front[i].Cost = p.Cost(front[i].Sequence)
	}
	for i := len(front) - 2; i >= 0; i-- { // what costs as much as a plan behind it is none
		if front[i].Cost >= front[i+1].Cost {
			front = slices.Delete(front, i, i+1)
		}
	}
	kept := front[:0]
	for _, f := range front {
		if len(kept) == 0 || f.Peak < kept[len(kept)-1].Peak {
			kept = append(kept, f)
		}
	}
	return kept, nil
}

// bargain is the part of the cost of all nodes that a lower peak may cost on top: a quarter of a percent.
const bargain = 400

// Choose returns the cheapest plan of a front whose peak is not above the budget, or, of those that cost about the same, the
// one with the lowest peak: memory that is nearly free is worth having, since no runtime keeps to a plan to the byte. A
// tighter budget never has a cheaper plan or one with a higher peak. Choose fails with a [*BudgetError] if there is none.
func (p *Problem) Choose(front []remat.Plan, budget int64) (remat.Plan, error) {
	at := slices.IndexFunc(front, func(f remat.Plan) bool { return f.Peak <= budget })
	if at < 0 {
		return remat.Plan{}, p.refuse(front, budget)
	}
	limit := front[at].Cost + p.Base()/bargain
	for at+1 < len(front) && front[at+1].Cost <= limit {
		at++
	}
	return front[at], nil
}

// BudgetError says why a budget cannot be kept to.
type BudgetError struct {
	Budget int64
	Lowest int64  // the lowest peak that was found
	Step   string // the node at which that much is needed
	Proved bool   // no order and no recomputation needs less at that node
	Alive  []Need // what is alive there, the largest first
}

// Need is something alive at a step, with the reason.
type Need struct {
	Name  string
	Bytes int64
	Why   string
}

// needsShown is how many values an error lists.
const needsShown = 8

// Error implements error.
func (e *BudgetError) Error() string {
	var b strings.Builder
	if e.Proved {
		fmt.Fprintf(&b, "budget %s: %s alone needs %s, whatever is computed again:", size.Exact(e.Budget), e.Step, size.Exact(e.Lowest))
	} else {
		fmt.Fprintf(&b, "budget %s: no plan was found that keeps to it; the lowest needs %s, at %s:", size.Exact(e.Budget), size.Exact(e.Lowest), e.Step)
	}
	for i, n := range e.Alive {
		if i == needsShown {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Alive)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %s %s, %s", size.Bytes(n.Bytes), n.Name, n.Why)
	}
	return b.String()
}

// refuse explains why no plan of the front keeps to the budget.
func (p *Problem) refuse(front []remat.Plan, budget int64) error {
	g := p.Graph
	if floor, v := remat.Floor(g); floor > budget {
		e := &BudgetError{Budget: budget, Lowest: floor, Step: p.label(v), Proved: true}
		e.Alive = append(e.Alive, Need{p.label(v), g.Memory[v] + g.Extra[v], "what it computes"})
		for _, u := range g.Parents[v] {
			e.Alive = append(e.Alive, Need{p.label(u), g.Memory[u], "which it reads"})
		}
		e.sort()
		return e
	}
	low := front[len(front)-1]
	u, err := remat.Simulate(g, low.Sequence)
	if err != nil {
		return err
	}
	at := low.Sequence[u.At]
	e := &BudgetError{Budget: budget, Lowest: low.Peak, Step: p.label(at)}
	e.Alive = append(e.Alive, Need{p.label(at), g.Memory[at] + g.Extra[at], "what it computes"})
	for v := range g.Names {
		v := int32(v)
		if v == at {
			continue
		}
		if reader := readerAfter(g, low.Sequence, u.At, v); reader >= 0 {
			why := "which it reads"
			switch {
			case reader > u.At && g.Once[v]:
				why = fmt.Sprintf("kept for %s; must not be computed again", p.label(low.Sequence[reader]))
			case reader > u.At:
				why = fmt.Sprintf("kept for %s", p.label(low.Sequence[reader]))
			}
			e.Alive = append(e.Alive, Need{p.label(v), g.Memory[v], why})
		}
	}
	e.sort()
	return e
}

func (e *BudgetError) sort() {
	e.Alive = slices.DeleteFunc(e.Alive, func(n Need) bool { return n.Bytes == 0 })
	slices.SortStableFunc(e.Alive, func(a, b Need) int { return int(min(max(b.Bytes-a.Bytes, -1), 1)) })
}

// readerAfter returns the next step from at on that reads the computation of v in front of it, -1 if none does.
func readerAfter(g *remat.Graph, sequence []int32, at int, v int32) int {
	if !slices.Contains(sequence[:at], v) {
		return -1
	}
	for k := at; k < len(sequence); k++ {
		if slices.Contains(g.Parents[sequence[k]], v) {
			return k
		}
		if sequence[k] == v {
			return -1
		}
	}
	return -1
}
