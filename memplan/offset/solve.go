package offset

import (
	"errors"
	"fmt"
	"slices"
)

// Result is a plan with what is known about it.
type Result struct {
	Plan
	Bound   int64 // no plan is lower than this
	Work    int64 // steps done
	Optimal bool  // no lower plan exists
	Method  string
}

// DefaultBudget is a budget, in steps of work, of about 20 seconds. Few inputs need it all.
const DefaultBudget = 8_000_000_000

// ErrExhausted says that the budget ended before a plan below the capacity was found or shown not to exist.
var ErrExhausted = errors.New("the search ended without an answer")

// ErrImpossible says that no plan below the capacity exists.
var ErrImpossible = errors.New("no plan exists")

// exactLimit is the size of a component up to which the exact search is tried: it keeps all pairs of neighbours.
const exactLimit = 2500

// searchOrders are the orders of the exact search, tried in turn with growing limits as in MiniMalloc.
var searchOrders = [...]string{"WAT", "TAW", "TWA"}

// Solve assigns offsets. With a capacity it returns a plan not above that or, with the lowest plan that it found, ErrImpossible if there is
// none, or ErrExhausted; with capacity 0 it returns the lowest plan that it finds with about budget steps of work. The result depends on
// nothing but the arguments.
func Solve(buffers []Buffer, capacity, budget int64) (Result, error) {
	if err := Validate(buffers); err != nil {
		return Result{}, err
	}
	bound := Bound(buffers)
	if capacity > 0 && capacity < bound {
		return Result{Bound: bound}, fmt.Errorf("capacity %d: %w: %d bytes live at one time", capacity, ErrImpossible, bound)
	}
	in := newInstance(buffers)
	p := &planner{in: in, budget: budget, at: make([]int64, len(buffers))}
	goal := bound / in.unit
	if capacity > 0 {
		goal = capacity / in.unit
	}
	for _, group := range in.components() {
		p.component(group, goal, capacity > 0)
	}
	r := Result{Bound: bound, Work: p.work, Optimal: p.height*in.unit <= bound || p.proved && capacity == 0, Method: p.method}
	r.Offsets = p.at
	for i := range r.Offsets {
		r.Offsets[i] *= in.unit
		r.Height = max(r.Height, r.Offsets[i]+buffers[i].Size)
	}
	if capacity > 0 && p.height > goal {
		if p.proved {
			return r, fmt.Errorf("capacity %d: %w", capacity, ErrImpossible)
		}
		return r, fmt.Errorf("capacity %d: %w; the lowest plan found needs %d", capacity, ErrExhausted, p.height*in.unit)
	}
	return r, nil
}

// planner collects the plan of one component after another.
type planner struct {
	in     *instance
	budget int64
	work   int64
	at     []int64
	height int64
	proved bool // the height cannot be less, by the search
	method string
}

// component plans the buffers of a group. Plans at or below goal, or below what another component needs, are good
// enough.
func (p *planner) component(group []int32, goal int64, decide bool) {
	goal = max(goal, p.height)
	c := &component{planner: p, group: group, goal: goal, best: 1 << 62}
	c.greedy()
	if c.best > goal && len(group) <= exactLimit {
		c.search(decide)
	}
	for _, i := range group {
		p.at[i] = c.at[i]
	}
	if c.best > p.height {
		p.height, p.method, p.proved = c.best, c.method, c.proved
	}
}

// component is the work on one.
type component struct {
	*planner
	group  []int32
	goal   int64
	best   int64
	at     []int64
	method string
	proved bool
}

// keep takes a plan that is lower than the best so far.
func (c *component) keep(height int64, at []int64, method string) {
	if height < c.best {
		c.best, c.at, c.method = height, slices.Clone(at), method
	}
}

// greedy tries the greedy orders, all of them where that is cheap, and climbs from the most promising.
func (c *component) greedy() {
	g := &greedy{in: c.in}
	k := newKeys(c.in)
	type start struct {
		order  []int32
		fit    fit
		height int64
	}
	var starts []start
	for n, o := range greedyOrders {
		if n > 0 && c.work > c.budget/2 || n >= 6 && len(c.group) > exactLimit {
			break
		}
		if o.letters == "H" && !slices.ContainsFunc(c.group, func(i int32) bool { return c.in.hint[i] >= 0 }) || o.layered() && len(c.group) < layersFrom {
			continue
		}
		order := k.greedy(c.group, o, c.goal)
		height := g.place(order, o.fit)
		c.work += g.work
		c.keep(height, g.at, o.String())
		if c.best <= c.goal {
			return
		}
		starts = append(starts, start{order, o.fit, height})
	}
	slices.SortStableFunc(starts, func(a, b start) int { return cmp(a.height, b.height) })
	for _, s := range starts[:min(len(starts), 2)] {
		c.climb(g, s.order, s.fit, min(climbLimit, c.budget/10, c.budget-c.work))
		if c.best <= c.goal {
			return
		}
	}
}

// search looks for plans at the goal and, unless that alone is asked for, at heights between it and the best so far,
// with limits that grow until the budget is spent: each height found lowers all the others.
func (c *component) search(decide bool) {
	s := newSearch(c.in, neighbours(c.in, c.group))
	floor, raised := c.goal, false // plans below floor are of no use, or do not exist
	defer func() { c.proved = c.proved || c.in.plain && raised && c.best <= floor }()
	d := newDiver(c, s)
	for limit := int64(shortest); c.best > floor; limit *= 2 {
		if !decide {
			most := diveShare * limit
			if limit == shortest {
				most = diveLimit
			}
			d.run(min(most, (c.budget-c.work)/4*3), limit/shortest)
		}
		for step := 0; step < len(fractions); step++ {
			if decide && step > 0 {
				break
			}
			target := floor + (c.best-1-floor)*fractions[step]/16
			for _, letters := range searchOrders {
				if c.work > c.budget {
					return
				}
				st := s.run(c.group, letters, target, min(limit, c.budget-c.work))
				c.work += s.work
				if st == found {
					c.take(s)
					step = -1
					break
				}
				if st == impossible {
					floor = target + 1
					raised = true
					c.proved = c.in.plain && decide
					break
				}
			}
			if c.best <= floor || c.proved {
				return
			}
		}
	}
}

// shortest is the limit that long searches begin with.
const shortest = 2_000_000

// fractions are the heights that are tried between the goal (0) and just below the best plan (16).
var fractions = [...]int64{0, 2, 4, 8, 12, 16}
