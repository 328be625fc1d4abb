package memplan

// schedule returns the order with the lowest peak that is found, the given one if none is lower. With equal peaks the one
// that is nearer to the given one, in the sense of fewer rounds, wins.
func (n *net) schedule() []int32 {
	best := n.given()
	peak := n.simulate(best).peak
	floor := n.floor()
	keep := func(order []int32) bool {
		if p := n.simulate(order).peak; p < peak {
			best, peak = order, p
		}
		return peak <= floor
	}
	bases := [][]int32{n.given(), n.depthFirst(false), n.depthFirst(true)}
	for _, base := range bases {
		for _, ties := range [...][2]bool{{false, false}, {true, true}, {true, false}, {false, true}} {
			order := base
			if keep(order) {
				return best
			}
			for round := 0; round < maxRounds; round++ {
				before := peak
				order = n.eager(order, ties[0] && round > 0)
				if keep(order) {
					return best
				}
				order = n.lazy(order, ties[1] && round > 0)
				if keep(order) {
					return best
				}
				if round > 1 && peak == before {
					break
				}
			}
		}
	}
	return best
}

// maxRounds is how often an order is gone over forwards and backwards.
const maxRounds = 6

// floor returns a peak that no order is below: all outputs at the end, or one node with what it reads and makes.
func (n *net) floor() int64 {
	var outputs, most int64
	for i := range n.stores {
		if s := &n.stores[i]; s.output && len(n.nodes) > 0 && !n.overInput(int32(i)) {
			outputs += s.bytes
		}
	}
	for k := range n.nodes {
		sum := n.space[k]
		for _, id := range n.reads[k] {
			if !n.stores[id].given {
				sum += n.stores[id].bytes
			}
		}
		for _, id := range n.defs[k] {
			sum += n.stores[id].bytes
		}
		var saved int64 // one result may lie where an operand lay
		for _, o := range n.over[k] {
			saved = max(saved, n.stores[o.to].bytes)
		}
		most = max(most, sum-saved)
	}
	return max(outputs, most)
}

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
