package remat

import (
	"errors"
	"fmt"
)

// Usage is what a sequence costs.
type Usage struct {
	Cost   int64
	Peak   int64
	At     int     // the first step at which memory is at its peak
	Memory []int64 // in use at each step
}

// Simulate runs a sequence: it is the definition of what a plan means and knows nothing of how plans are made. It fails
// if a step reads what has not been computed, or if a node is never computed.
func Simulate(g *Graph, sequence []int32) (Usage, error) {
	u := Usage{Memory: make([]int64, len(sequence))}
	made := make([]int, len(g.Names)) // step of the latest computation, -1 before
	read := make([]int, len(sequence))
	takes := make([][]int, len(sequence)) // steps whose results this one may take over
	for v := range made {
		made[v] = -1
	}
	for step, v := range sequence {
		if v < 0 || int(v) >= len(g.Names) {
			return u, fmt.Errorf("step %d computes node %d of %d", step, v, len(g.Names))
		}
		for _, p := range g.Parents[v] {
			if made[p] < 0 {
				return u, fmt.Errorf("step %d computes %q before %q, which it reads", step, g.Names[v], g.Names[p])
			}
			read[made[p]] = step
		}
		for _, p := range g.takes(v) {
			takes[step] = append(takes[step], made[p])
		}
		if made[v] >= 0 && g.once(v) {
			return u, fmt.Errorf("step %d computes %q again, which must not be", step, g.Names[v])
		}
		made[v] = step
		read[step] = step
		u.Cost += g.Cost[v]
	}
	for v, step := range made {
		if step < 0 {
			return u, fmt.Errorf("%q is never computed", g.Names[v])
		}
	}
	frees := make([]int64, len(sequence)+1)
	var live int64
	for step, v := range sequence {
		live += g.Memory[v] - frees[step]
		var saved int64
		for _, from := range takes[step] {
			if read[from] == step {
				saved = max(saved, min(g.Memory[sequence[from]], g.Memory[v]))
			}
		}
		u.Memory[step] = live - saved + g.extra(v)
		if u.Memory[step] > u.Peak {
			u.Peak, u.At = u.Memory[step], step
		}
		frees[read[step]+1] += g.Memory[v]
	}
	return u, nil
}

// Check reports what is wrong with a plan: a sequence that cannot run, memory above the budget, and figures that are
// not those of the sequence.
func Check(g *Graph, p Plan, budget int64) error {
	u, err := Simulate(g, p.Sequence)
	if err != nil {
		return err
	}
	var bad []error
	if u.Peak > budget {
		bad = append(bad, fmt.Errorf("step %d, %q, has %d bytes in use, above the budget %d", u.At, g.Names[p.Sequence[u.At]], u.Peak, budget))
	}
	if u.Peak != p.Peak {
		bad = append(bad, fmt.Errorf("plan says peak %d, the sequence needs %d", p.Peak, u.Peak))
	}
	if u.Cost != p.Cost {
		bad = append(bad, fmt.Errorf("plan says cost %d, the sequence takes %d", p.Cost, u.Cost))
	}
	return errors.Join(bad...)
}
