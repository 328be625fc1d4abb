package memplan

import "slices"

// run is what an order of the nodes needs.
type run struct {
	live  []int64 // bytes in use at each step
	peak  int64
	at    int     // the first step of the peak
	first []int32 // step at which a storage is made; -1 for inputs of bodies
	last  []int32 // last step at which it is wanted
	took  []int32 // storage whose bytes it takes, -1 for none
}

// simulate runs the nodes in the order.
func (n *net) simulate(order []int32) *run { return n.replay(order, nil) }

// loose is simulate, but results have bytes of their own where that does not raise the peak. More and shorter lives are easier to
// place.
func (n *net) loose(order []int32) *run { return n.replay(order, n.simulate(order)) }

// replay runs the nodes in the order; where tight is given, results are written over operands only where bytes of their own would
// be above tight's peak.
func (n *net) replay(order []int32, tight *run) *run {
	r := &run{live: make([]int64, len(order)), first: make([]int32, len(n.stores)), last: make([]int32, len(n.stores)), took: make([]int32, len(n.stores))}
	pos := make([]int32, len(n.nodes))
	for i, k := range order {
		pos[k] = int32(i)
	}
	gone := make([][]int32, len(order)) // storages by last step
	for id := range n.stores {
		s := &n.stores[id]
		r.took[id] = -1
		r.first[id] = -1
		if s.def >= 0 {
			r.first[id] = pos[s.def]
		}
		last := max(r.first[id], 0)
		for _, k := range s.uses {
			last = max(last, pos[k])
		}
		if s.output {
			last = int32(max(len(order)-1, 0))
		}
		r.last[id] = last
		if len(order) > 0 && !s.output {
			gone[last] = append(gone[last], int32(id))
		}
	}
	var now int64
	for _, id := range n.inputs {
		now += n.stores[id].bytes
	}
	r.peak = now
	given := make([]bool, len(n.stores)) // bytes passed on
	for i, k := range order {
		for _, id := range n.defs[k] {
			s := &n.stores[id]
			from := n.target(k, id, int32(i), r, given)
			if from >= 0 && tight != nil && !n.stores[from].given && tight.live[i]+s.bytes <= tight.peak {
				from = -1
			}
			if from >= 0 {
				given[from] = true
				r.took[id] = from
				if n.stores[from].given {
					continue // it lies where the input lay
				}
				if n.home(r, from) < 0 {
					continue
				}
			} else {
				now += s.bytes
			}
		}
		r.live[i] = now + n.space[k]
		if r.live[i] > r.peak {
			r.peak, r.at = r.live[i], i
		}
		for _, id := range gone[i] {
			if !given[id] && n.home(r, id) >= 0 {
				now -= n.stores[id].bytes
			}
		}
	}
	return r
}

// target returns the storage whose bytes storage id, made by node k at step i, takes, -1 for none.
func (n *net) target(k, id, i int32, r *run, given []bool) int32 {
	for _, o := range n.over[k] {
		if o.to == id && r.last[o.from] == i && !given[o.from] && !n.stores[o.from].output {
			return o.from
		}
	}
	return -1
}

// home returns the storage that brought the bytes that storage id lies in, -1 if they are an input's.
func (n *net) home(r *run, id int32) int32 {
	for r.took[id] >= 0 {
		id = r.took[id]
	}
	if n.stores[id].given {
		return -1
	}
	return id
}

// valid reports whether the order has every node once, behind those that it reads.
func (n *net) valid(order []int32) bool {
	if len(order) != len(n.nodes) {
		return false
	}
	done := make([]bool, len(order))
	for _, k := range order {
		if k < 0 || int(k) >= len(done) || done[k] || slices.ContainsFunc(n.before[k], func(p int32) bool { return !done[p] }) {
			return false
		}
		done[k] = true
	}
	return true
}
