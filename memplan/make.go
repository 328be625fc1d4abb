package memplan

import (
	"gradtool/graph"
	"gradtool/memplan/offset"
)

// PlanOptions says how to plan.
type PlanOptions struct {
	Options
	KeepOrder bool  // run nodes in the order that they have
	Search    int64 // steps of search for an order; 0 means DefaultSearch
	Effort    int64 // steps of search for offsets; 0 means DefaultEffort
	Within    int64 // with KeepOrder, bytes that an arena may have: the search ends early where one has them, or is far from it; 0: the fewer the better

	Memories []offset.Memory // to put values in, in order of preference; none means one arena
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
	if len(opt.Memories) > 0 {
		made.Placed, err = n.live(g, list[0].order, n.simulate(list[0].order)).Spread(opt.Memories, effort)
		return made, err
	}
	made.Placed, err = n.place(g, list, effort, opt.Within)
	return made, err
}

// place assigns offsets to the lives of the order whose arena is the smallest. The lowest peak need not make it: lives may fit
// together better in an order with a higher one. All orders are placed quickly, a few with a longer search; with an effort that is too
// small for that, the order with the lowest peak alone. For a single order an arena within so many bytes, if that is not 0, is good enough.
func (n *net) place(g *graph.Graph, list []candidate, effort, within int64) (*Placed, error) {
	if effort < quickEffort {
		c := list[0]
		return n.live(g, c.order, n.simulate(c.order)).place(0, effort)
	}
	if len(list) == 1 {
		return n.placeOne(g, list[0].order, effort, within)
	}
	var best *Placed
	try := func(c candidate, loose bool, share, effort int64) error {
		r := n.simulate(c.order)
		if loose {
			r = n.loose(c.order)
		}
		p, err := n.live(g, c.order, r).place(share, effort)
		if err != nil {
			return err
		}
		if best == nil {
			best = p
		}
		best = lower(best, p)
		return nil
	}
	quick := max(quickEffort, int64(len(n.stores))*quickEach) // each greedy order takes its time for many buffers
	for i, c := range list[:min(len(list), maxPlaced)] {
		if best != nil && c.peak >= best.Arena {
			break
		}
		if err := try(c, false, 0, quick); err != nil {
			return nil, err
		}
		if i < maxLoose {
			if err := try(c, true, 0, quick); err != nil {
				return nil, err
			}
		}
	}
	spent := int64(0) // percent
	for _, a := range attempts {
		good := int64(500) // the longer it takes, the less is good enough
		if spent >= 30 {
			good = 200
		}
		if a.order >= len(list) || best.Arena <= list[a.order].peak+list[a.order].peak/good || best.Arena <= best.Bound+best.Bound/good {
			continue
		}
		spent += a.effort
		if err := try(list[a.order], a.loose, a.share, effort/100*a.effort); err != nil {
			return nil, err
		}
	}
	return best, nil
}

// How many orders are placed quickly, and how many of them also with results that have bytes of their own.
const (
	maxPlaced = 14
	maxLoose  = 3
)

// attempt is a longer search: for which order, with how many results in place, from which share of the bound on buffers are
// large, and with how much of the effort, in percent.
type attempt struct {
	order         int
	loose         bool
	share, effort int64
}

// attempts are made in turn. Orders that were found one after another are much alike.
var attempts = [...]attempt{{0, false, 500, 10}, {0, true, 1000, 20}, {3, false, 300, 10}, {6, false, 500, 10}, {0, false, 300, 10}, {2, false, 1000, 10}}

// Apply puts the graph's nodes in the order of the plan.
func (m *Made) Apply() { copy(m.Graph.Nodes, m.Order) }
