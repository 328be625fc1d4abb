package remat

import (
	"math/bits"
	"slices"
)

// knapsack is the problem of what to hold at a step and what to recompute after it.
type knapsack struct {
	g      *Graph
	pivot  int32
	spare  int64   // memory for what is held
	nodes  []int32 // those that can be held or computed after the step
	memory []int64 // by position in nodes; 0 for what the step itself reads
	cost   []int64 // of computing it after the step; 0 for what need not have been computed before
	reads  [][]int32
	needed []int32 // those that must be at hand afterwards
	cuts   int
	net    *network // for cuts, made by the first one
	rooms  []int64  // its capacities, 0 for those that depend on the price
}

// knapsack returns the problem at x, nil if there is nothing to decide.
func (b *bounder) knapsack(x int32) *knapsack {
	k := &knapsack{g: b.g, pivot: x, spare: b.spare(x)}
	if k.spare < 0 {
		return nil // no sequence at all; Floor says so
	}
	s := b.sides(x)
	at := make([]int32, len(s))
	for p := range s {
		at[p] = -1
		if s[p] == ancestor || s[p] == apart {
			at[p] = int32(len(k.nodes))
			k.nodes = append(k.nodes, int32(p))
		}
	}
	for _, p := range k.nodes {
		memory, cost := b.g.Memory[p], b.g.Cost[p]
		if slices.Contains(b.g.Parents[x], p) {
			memory = 0
		}
		if s[p] == apart {
			cost = 0
		}
		var reads []int32
		for _, q := range b.g.Parents[p] {
			if at[q] >= 0 {
				reads = append(reads, at[q])
			}
		}
		k.memory, k.cost, k.reads = append(k.memory, memory), append(k.cost, cost), append(k.reads, reads)
	}
	b.needed(s, func(p int32) { k.needed = append(k.needed, at[p]) })
	return k
}

// choice is what is recomputed, with the cost of that and the memory of what is held: a line over the price of memory.
type choice struct {
	cost, memory int64
	again        []bool
}

func (c choice) same(d choice) bool { return c.cost == d.cost && c.memory == d.memory }

// decision says of a node that it is recomputed, or that it is not.
type decision struct {
	node  int32
	again bool
}

// open is a part of the search that is not finished.
type open struct {
	decided []decision
	bound   int64
	fits    int64 // cost of a choice that fits, unlimited without one
	choice  []bool
	branch  int32 // the node to decide next, -1 if the bound is reached
}

// relax bounds the cost under decisions. It starts with the choices for memory without price and of a price beyond all
// costs; where their lines cross is the price that is tried next, and a better choice at that price takes the place of
// one of them.
func (k *knapsack) relax(decided []decision) open {
	o := open{decided: decided, fits: unlimited, branch: -1}
	free, _ := k.cut(decided, 0, 1)
	dear, _ := k.cut(decided, 1, 0)
	if dear.memory > k.spare || dear.cost >= unlimited {
		o.bound = unlimited // nothing fits
		return o
	}
	o.fits, o.bound = dear.cost, free.cost
	o.choice = dear.again
	if free.memory <= k.spare {
		o.fits, o.choice = free.cost, free.again
		return o
	}
	for range 40 {
		// cost + memory*price, price = (dear.cost-free.cost) / (free.memory-dear.memory)
		up, down := dear.cost-free.cost, free.memory-dear.memory
		if up <= 0 || down <= 0 {
			break
		}
		c, value := k.cut(decided, up, down)
		o.bound = max(o.bound, value)
		if c.same(free) || c.same(dear) {
			break
		}
		if c.memory > k.spare {
			free = c
		} else {
			dear = c
			if c.cost < o.fits {
				o.fits, o.choice = c.cost, c.again
			}
		}
	}
	if o.bound >= o.fits {
		o.bound = o.fits
		return o
	}
	most := int64(-1)
	for p := range k.nodes {
		if free.again[p] != dear.again[p] && k.memory[p] > most && !slices.ContainsFunc(decided, func(d decision) bool { return d.node == int32(p) }) {
			most, o.branch = k.memory[p], int32(p)
		}
	}
	return o
}

// search returns a bound at least that of the root, the knapsack's optimum if the cuts are enough, and the best choice
// that it has seen.
func (k *knapsack) search(root open, cuts int) (int64, []bool) {
	k.cuts = 0
	list := []open{root}
	best, choice := root.fits, root.choice
	for {
		// The part with the least bound is next: what it has is the bound of all.
		at := 0
		for i := range list {
			if list[i].bound < list[at].bound {
				at = i
			}
		}
		if len(list) == 0 || list[at].bound >= best {
			return best, choice
		}
		o := list[at]
		if k.cuts > cuts || o.branch < 0 {
			return o.bound, choice
		}
		list = slices.Delete(list, at, at+1)
		for _, again := range []bool{true, false} {
			part := k.relax(append(slices.Clip(o.decided), decision{o.branch, again}))
			part.bound = max(part.bound, o.bound)
			if part.fits < best {
				best, choice = part.fits, part.choice
			}
			if part.bound < best {
				list = append(list, part)
			}
		}
	}
}

// start turns a choice into a sequence: the graph's own order, in which what is recomputed is so when it is first read
// behind the pivot.
func (k *knapsack) start(again []bool) []int32 {
	dropped := make([]bool, len(k.g.Names))
	for p, yes := range again {
		dropped[k.nodes[p]] = yes
	}
	var list []int32
	made := make([]bool, len(dropped))
	behind := false
	var fetch func(v int32)
	fetch = func(v int32) {
		for _, p := range k.g.Parents[v] {
			if dropped[p] && made[p] {
				dropped[p] = false
				fetch(p)
				list = append(list, p)
			}
		}
	}
	for _, v := range k.g.Order {
		if behind {
			fetch(v)
		}
		list = append(list, v)
		made[v] = true
		if v == k.pivot {
			behind = true
			for p, now := range made {
				dropped[p] = dropped[p] && now
			}
		}
	}
	return list
}

// connect makes the network of cuts. Node p: at hand after the step. Node n+p: computed after it. The first edges are those
// whose capacities follow from the price: for each p that of its memory and that of its cost.
func (k *knapsack) connect() {
	n := int32(len(k.nodes))
	source, sink := 2*n, 2*n+1
	f := newNetwork(int(2*n + 2))
	for p := range n {
		f.edge(p, n+p, 0)
		f.edge(n+p, sink, 0)
	}
	for p := range n {
		f.edge(n+p, p, unlimited)
		for _, q := range k.reads[p] {
			f.edge(n+p, q, unlimited)
		}
	}
	for _, p := range k.needed {
		f.edge(source, p, unlimited)
	}
	k.net, k.rooms = f, slices.Clone(f.room)
}

// cut returns the choice that is cheapest if a byte costs up/down (down 0: if memory is all that counts), and a bound on
// the cost of all that fit.
func (k *knapsack) cut(decided []decision, up, down int64) (choice, int64) {
	k.cuts++
	n := int32(len(k.nodes))
	source, sink := 2*n, 2*n+1
	if k.net == nil {
		k.connect()
	}
	f := k.net
	f.shrink(len(k.rooms))
	copy(f.room, k.rooms)
	// Costs times one factor and memory times another, so that sums stay within an int64. Products are rounded down, which
	// keeps the bound one.
	perCost, perByte := ratio(up, down)
	for p := range n {
		f.room[4*p] = scale(k.memory[p], perByte)
		f.room[4*p+2] = scale(k.cost[p], perCost)
	}
	for _, d := range decided {
		if d.again {
			f.edge(source, n+d.node, unlimited)
		} else {
			f.edge(n+d.node, sink, unlimited)
		}
	}
	value := f.maximum(source, sink)
	if value >= unlimited {
		return choice{cost: unlimited}, 0
	}
	mark := f.reach(source)
	c := choice{again: make([]bool, n)}
	for p := range n {
		switch {
		case mark[n+p]:
			c.again[p] = true
			c.cost += k.cost[p]
		case mark[p]:
			c.memory += k.memory[p]
		}
	}
	if down == 0 || up == 0 {
		return c, 0
	}
	// value <= perCost*cost + perByte*memory for all choices; memory <= spare.
	left := value - scaleUp(k.spare, perByte)
	if left <= 0 {
		return c, 0
	}
	return c, unscale(left, perCost)
}

// factor is a number as a fraction.
type factor struct{ up, down int64 }

// ratio returns factors for cost and bytes in the proportion down to up, such that factored sums of all nodes stay
// below 2^60: sums of nodes are up to 2^55.
func ratio(up, down int64) (perCost, perByte factor) {
	const one = 32
	if down >= up {
		return factor{one, 1}, factor{one * up, down}
	}
	return factor{one * down, up}, factor{one, 1}
}

// scale returns x*f, rounded down.
func scale(x int64, f factor) int64 {
	hi, lo := bits.Mul64(uint64(x), uint64(f.up))
	q, _ := bits.Div64(hi, lo, uint64(f.down))
	return int64(q)
}

// scaleUp returns x*f, rounded up.
func scaleUp(x int64, f factor) int64 {
	hi, lo := bits.Mul64(uint64(x), uint64(f.up))
	q, r := bits.Div64(hi, lo, uint64(f.down))
	if r > 0 {
		q++
	}
	return int64(q)
}

// unscale returns the least x with x*f not below y.
func unscale(y int64, f factor) int64 { return scaleUp(y, factor{f.down, f.up}) }
