package memplan

import (
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
// together better in an order with a higher one. All orders are placed quickly, a few with a longer search; with an effort that is too
// small for that, the order with the lowest peak alone.
func (n *net) place(g *graph.Graph, list []candidate, effort int64) (*Placed, error) {
	var best *Placed
	try := func(c candidate, r *run, effort int64) error {
		p, err := Place(n.live(g, c.order, r), effort)
		if err == nil && (best == nil || p.Arena < best.Arena) {
			best = p
		}
		return err
	}
	if effort < quickEffort {
		return Place(n.live(g, list[0].order, n.simulate(list[0].order)), effort)
	}
	for i, c := range list[:min(len(list), maxPlaced)] {
		if best != nil && c.peak >= best.Arena {
			break
		}
		runs := []*run{n.simulate(c.order)}
		if i < maxLoose {
			runs = append(runs, n.loose(c.order))
		}
		for _, r := range runs {
			if err := try(c, r, min(effort, quickEffort)); err != nil {
				return nil, err
			}
		}
	}
	for _, l := range longer {
		if l.order >= len(list) {
			continue
		}
		c := list[l.order]
		if best.Arena <= c.peak+c.peak/500 {
			continue
		}
		r := n.simulate(c.order)
		if l.loose {
			r = n.loose(c.order)
		}
		if err := try(c, r, effort/int64(len(longer))); err != nil {
			return nil, err
		}
	}
	return best, nil
}

// How many orders are placed, and how many of them also with results that have bytes of their own.
const (
	maxPlaced = 20
	maxLoose  = 4
)

// longer are the orders that get a longer search. Those that were found one after another are much alike.
var longer = [...]struct {
	order int
	loose bool
}{{0, false}, {0, true}, {2, false}, {3, false}}

// Apply puts the graph's nodes in the order of the plan.
func (m *Made) Apply() { copy(m.Graph.Nodes, m.Order) }
