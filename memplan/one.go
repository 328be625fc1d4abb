package memplan

import (
	"errors"
	"sync"

	"gradtool/graph"
)

// single are the longer searches for an order that must not be changed, some at a time.
var single = [...][]attempt{
	{{share: 500, effort: 10}, {share: 300, effort: 10}},
	{{loose: true, share: 1000, effort: 20}, {share: 1000, effort: 10}},
	{{loose: true, share: 500, effort: 10}, {share: 200, effort: 10}},
}

// placeOne is place for one order. Searches that are made at a time share nothing that they write, and the best is taken in their
// order, so the plan does not depend on the number of processors.
func (n *net) placeOne(g *graph.Graph, order []int32, effort, within int64) (*Placed, error) {
	var best *Placed
	try := func(list []attempt, effort func(attempt) int64) error {
		found, bad := make([]*Placed, len(list)), make([]error, len(list))
		var wait sync.WaitGroup
		for i, a := range list {
			wait.Go(func() {
				r := n.simulate(order)
				if a.loose {
					r = n.loose(order)
				}
				found[i], bad[i] = n.live(g, order, r).place(a.share, effort(a))
			})
		}
		wait.Wait()
		for i, p := range found {
			if bad[i] == nil && (best == nil || p.Arena < best.Arena) {
				best = p
			}
		}
		return errors.Join(bad...)
	}
	quick := max(quickEffort, int64(len(n.stores))*quickEach)
	if err := try([]attempt{{}, {loose: true}}, func(attempt) int64 { return quick }); err != nil {
		return nil, err
	}
	spent := int64(0)
	for _, list := range single {
		good := int64(500)
		if spent >= 30 {
			good = 200
		}
		if best.Arena <= best.Bound+best.Bound/good || within > 0 && best.settled(within, spent) {
			break
		}
		for _, a := range list {
			spent += a.effort
		}
		if err := try(list, func(a attempt) int64 { return effort / 100 * a.effort }); err != nil {
			return nil, err
		}
	}
	return best, nil
}

// settled reports whether more search is not worth it, after so many percent of it: the arena keeps to the bytes and is near the
// bound, or the gap is many times what it may be. What is out of reach for some bytes is out of reach for fewer.
func (p *Placed) settled(within, spent int64) bool {
	gap := p.Arena - p.Bound
	if p.Arena <= within {
		return gap <= p.Bound/100 || spent >= 20
	}
	halves := int64(3)
	if spent == 0 {
		halves = 12
	}
	return gap > halves*(within-p.Bound)/2+p.Bound/200
}
