package autodiff

import (
	"fmt"
	"strconv"
	"strings"
)

// LoopPlan says where the reverse form of a Loop has the values of its forward iterations from. The zero LoopPlan stacks:
// the forward Loop keeps, for every iteration, what it carries and the results that are expensive or
// random, as stacked results or, where their shapes change from one iteration to the next, in sequences. Cheap results are
// computed again from those. Loops with random operators inside stack whatever the plan.
type LoopPlan struct {
	// Recompute keeps nothing: each reverse iteration runs the forward iterations before its own again. Work is
	// quadratic in the number of iterations.
	Recompute bool
	// Every, if positive, keeps what is carried at each Every-th iteration only; from there the reverse form runs a
	// segment of so many iterations again, now stacking.
	Every int
	// Auto chooses Every for loops whose stacks would be large and stacks for others.
	Auto bool
	// Record, if set, gets an entry for each Loop that is differentiated. What it says holds for the plan to stack.
	Record *[]LoopUse
}

// ParseLoopPlan reads stack, recompute, checkpoint:K or auto.
func ParseLoopPlan(s string) (LoopPlan, error) {
	switch k, isCheckpoint := strings.CutPrefix(s, "checkpoint:"); {
	case s == "stack":
		return LoopPlan{}, nil
	case s == "recompute":
		return LoopPlan{Recompute: true}, nil
	case s == "auto":
		return LoopPlan{Auto: true}, nil
	case isCheckpoint:
		n, err := strconv.Atoi(k)
		if err != nil || n < 1 {
			return LoopPlan{}, fmt.Errorf("plan %q: want a number of iterations of at least 1 behind the colon", s)
		}
		return LoopPlan{Every: n}, nil
	}
	return LoopPlan{}, fmt.Errorf("plan %q: want stack, recompute, checkpoint:K or auto", s)
}

// String returns the plan as ParseLoopPlan reads it.
func (p LoopPlan) String() string {
	switch {
	case p.Recompute:
		return "recompute"
	case p.Every > 0:
		return "checkpoint:" + strconv.Itoa(p.Every)
	case p.Auto:
		return "auto"
	}
	return "stack"
}
