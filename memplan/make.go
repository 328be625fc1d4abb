package memplan

import (
	"gradtool/graph"
)

// PlanOptions says how to plan.
type PlanOptions struct {
	Options
	KeepOrder bool  // run nodes in the order that they have
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
	order := n.given()
	if !opt.KeepOrder {
		order = n.schedule()
	}
	effort := opt.Effort
	if effort == 0 {
		effort = DefaultEffort
	}
	made.Placed, err = Place(n.live(g, order), effort)
	return made, err
}

// Apply puts the graph's nodes in the order of the plan.
func (m *Made) Apply() { copy(m.Graph.Nodes, m.Order) }
