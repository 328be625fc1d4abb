package memplan

import "math/bits"

// maxClosed is the number of nodes up to which all pairs of nodes that depend on each other are looked at.
const maxClosed = 12000

// floor returns a peak that no order is below. While node k runs, memory holds what it reads and makes; every value that is made by
// something that k depends on, and read by something that depends on k; and every output that k depends on. That holds
// in all orders.
func (n *net) floor() int64 {
	at := make([]int64, len(n.nodes))
	for k := range n.nodes {
		at[k] = n.space[k]
		var saved int64 // one result may lie where an operand lay
		for _, o := range n.over[k] {
			saved = max(saved, n.stores[o.to].bytes)
		}
		at[k] -= saved
	}
	if len(n.nodes) <= maxClosed {
		n.addThrough(at)
	} else {
		n.addOwn(at)
	}
	var most, end int64
	for _, b := range at {
		most = max(most, b)
	}
	for i := range n.stores {
		if n.stores[i].output && n.counted(int32(i)) {
			end += n.stores[i].bytes
		}
	}
	return max(most, end)
}

// counted reports whether the bytes of a storage are the arena's in all orders.
func (n *net) counted(id int32) bool { return n.stores[id].def >= 0 && !n.overInput(id) }

// addOwn adds what each node reads and makes.
func (n *net) addOwn(at []int64) {
	for k := range n.nodes {
		for _, list := range [][]int32{n.reads[k], n.defs[k]} {
			for _, id := range list {
				if n.counted(id) {
					at[k] += n.stores[id].bytes
				}
			}
		}
	}
}

// addThrough adds each storage to the nodes during which it is alive in all orders.
func (n *net) addThrough(at []int64) {
	words := (len(n.nodes) + 63) / 64
	closed := func(from func(k int) []int32, first, step int) []uint64 {
		set := make([]uint64, words*len(n.nodes))
		for k := first; k >= 0 && k < len(n.nodes); k += step {
			own := set[k*words : (k+1)*words]
			own[k/64] |= 1 << (k % 64)
			for _, p := range from(k) {
				for w, b := range set[int(p)*words : (int(p)+1)*words] {
					own[w] |= b
				}
			}
		}
		return set
	}
	before := closed(func(k int) []int32 { return n.before[k] }, 0, 1)
	after := closed(func(k int) []int32 { return n.after[k] }, len(n.nodes)-1, -1)
	alive := make([]uint64, words)
	for i := range n.stores {
		s := &n.stores[i]
		if !n.counted(int32(i)) || s.bytes == 0 {
			continue
		}
		clear(alive)
		for _, u := range s.uses {
			for w, b := range before[int(u)*words : (int(u)+1)*words] {
				alive[w] |= b
			}
		}
		d := int(s.def)
		for w, b := range after[d*words : (d+1)*words] {
			if !s.output {
				b &= alive[w]
			}
			for ; b != 0; b &= b - 1 {
				at[w*64+bits.TrailingZeros64(b)] += s.bytes
			}
		}
		if len(s.uses) == 0 && !s.output {
			at[d] += s.bytes
		}
	}
}
