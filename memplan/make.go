package memplan

import (
	"slices"

	"gradtool/graph"
)

// PlanOptions says how to plan.
type PlanOptions struct {
	Options
	KeepOrder bool  // run nodes in the order that they have
	Search    int64 // steps of search for an order; 0 means DefaultSearch
	Effort    int64 // steps of search for offsets; 0 means DefaultEffort
}

// Made is a plan with what it is compared with.
type Made struct {
	*Placed
	Given  int64 // peak of the order given, where every value has bytes of its own until its last reader has run
	Shared int64 // peak of the order given with views and results in place
	Floor  int64 // no order has a lower peak
}

// Make plans graph g: it looks for an order with a low peak, never one with a higher peak than the order given, and for offsets.
// The graph is not changed; [Made.Apply] puts its nodes in the order.
func Make(g *graph.Graph, opt PlanOptions) (*Made, error) {
	plain := opt.Options
	plain.NoViews, plain.NoInPlace = true, true
	own, err := newNet(g, plain, false)
	if err != nil {
		return nil, err
	}
	n, err := newNet(g, opt.Options, false)
	if err != nil {
		return nil, err
	}
	made := &Made{Given: own.simulate(own.given()).peak, Shared: n.simulate(n.given()).peak, Floor: n.floor()}
	effort := opt.Effort
	if effort == 0 {
		effort = DefaultEffort
	}
	search := opt.Search
	if search == 0 {
		search = DefaultSearch
	}
	list := []candidate{{n.given(), made.Shared}}
	if !opt.KeepOrder {
		list = n.schedule(search)
	}
	made.Placed, err = n.place(g, list, effort)
	return made, err
}

// place assigns offsets to the lives of the order whose arena is the smallest. The lowest peak need not make it: lives may fit
// together better in an order with a higher one.
func (n *net) place(g *graph.Graph, list []candidate, effort int64) (*Placed, error) {
	type attempt struct {
		*Placed
		order []int32
	}
	var tried []attempt
	least := int64(1) << 62
	for _, c := range list[:min(len(list), maxPlaced)] {
		if c.peak >= least {
			break
		}
		p, err := Place(n.live(g, c.order), effort/100)
		if err != nil {
			return nil, err
		}
		tried = append(tried, attempt{p, c.order})
		least = min(least, p.Arena)
	}
	slices.SortStableFunc(tried, func(a, b attempt) int {
		switch {
		case a.Arena < b.Arena:
			return -1
		case a.Arena > b.Arena:
			return 1
		}
		return 0
	})
	best := tried[0].Placed
	for _, a := range tried[:min(len(tried), maxSearched)] {
		if best.Arena <= a.Bound+a.Bound/1000 {
			continue
		}
		p, err := Place(n.live(g, a.order), effort/maxSearched)
		if err != nil {
			return nil, err
		}
		if p.Arena < best.Arena {
			best = p
		}
	}
	return best, nil
}

// How many orders are tried with greedy placements, and how many of them with a longer search.
const (
	maxPlaced   = 40
	maxSearched = 3
)

// Apply puts the graph's nodes in the order of the plan.
func (m *Made) Apply() { copy(m.Graph.Nodes, m.Order) }
