package memplan

import "slices"

// DefaultSearch is the search for an order that planning makes, in steps of work: at most about a second.
const DefaultSearch = 120_000_000

// schedule returns orders with low peaks, the lowest first, that are found with about limit steps of work. None has a higher peak
// than the order given.
func (n *net) schedule(limit int64) []candidate {
	floor := n.floor()
	given := candidate{n.given(), 0}
	given.peak = n.simulate(given.order).peak
	list := []candidate{given}
	if given.peak > floor {
		best := given
		for _, c := range n.starts(floor) {
			if c.peak < best.peak {
				best = c
				list = append(list, c)
			}
		}
		// The order given is a start too: its groups of nodes stand together as somebody meant them to.
		for _, c := range []candidate{best, given} {
			if list[len(list)-1].peak <= floor {
				break
			}
			list = append(list, n.climb(c, limit/2)...)
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		switch {
		case a.peak < b.peak:
			return -1
		case a.peak > b.peak:
			return 1
		}
		return 0
	})
	return list
}

// candidate is an order with its peak.
type candidate struct {
	order []int32
	peak  int64
}

// starts returns orders that come of going over simple ones forwards and backwards.
func (n *net) starts(floor int64) []candidate {
	var list []candidate
	peak := int64(1) << 62
	keep := func(order []int32) bool {
		p := n.simulate(order).peak
		list = append(list, candidate{order, p})
		peak = min(peak, p)
		return peak <= floor
	}
	for _, base := range [][]int32{n.given(), n.depthFirst(false), n.depthFirst(true)} {
		for _, ties := range [...][2]bool{{false, false}, {true, true}, {true, false}, {false, true}} {
			order := base
			if keep(order) {
				return list
			}
			for round := range maxRounds {
				before := peak
				order = n.eager(order, ties[0] && round > 0)
				if keep(order) {
					return list
				}
				order = n.lazy(order, ties[1] && round > 0)
				if keep(order) {
					return list
				}
				if round > 1 && peak == before {
					break
				}
			}
		}
	}
	return list
}

// maxRounds is how often an order is gone over forwards and backwards.
const maxRounds = 6

// overInput reports whether the storage may lie where an input lies, outside of the arena, or where something lies that may.
func (n *net) overInput(id int32) bool {
	s := &n.stores[id]
	if s.def < 0 {
		return s.given
	}
	for _, o := range n.over[s.def] {
		if o.to == id && n.stores[o.from].given {
			return true
		}
	}
	return false
}

// depthFirst returns the order in which nodes are reached from the outputs: each behind what it reads, the operand that
// comes first (or last) in the graph first.
func (n *net) depthFirst(last bool) []int32 {
	done := make([]bool, len(n.nodes))
	order := make([]int32, 0, len(n.nodes))
	type frame struct {
		node int32
		next int
	}
	visit := func(root int32) {
		if done[root] {
			return
		}
		done[root] = true
		stack := []frame{{root, 0}}
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			list := n.before[f.node]
			if f.next == len(list) {
				order = append(order, f.node)
				stack = stack[:len(stack)-1]
				continue
			}
			i := f.next
			if last {
				i = len(list) - 1 - f.next
			}
			f.next++
			if p := list[i]; !done[p] {
				done[p] = true
				stack = append(stack, frame{p, 0})
			}
		}
	}
	for i := range n.nodes { // sinks in the order of the graph
		if len(n.after[i]) == 0 {
			visit(int32(i))
		}
	}
	return order
}
