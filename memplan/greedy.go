package memplan

import "container/heap"

// ready runs nodes one by one and knows what the next one would do to the memory in use.
type ready struct {
	n      *net
	waits  []int32
	uses   []int32 // readers to come (backwards: unread) of each storage
	passed []bool  // bytes went to another storage
	lies   []bool  // storages whose bytes are not the arena's
	done   []bool
}

func (n *net) newReady() *ready {
	r := &ready{n: n, waits: make([]int32, len(n.nodes)), uses: make([]int32, len(n.stores)), passed: make([]bool, len(n.stores)), lies: make([]bool, len(n.stores)), done: make([]bool, len(n.nodes))}
	for i := range n.nodes {
		r.waits[i] = int32(len(n.before[i]))
	}
	for i := range n.stores {
		s := &n.stores[i]
		r.uses[i] = int32(len(s.uses))
		if s.output {
			r.uses[i]++
		}
		r.lies[i] = s.given
	}
	return r
}

// effect returns by how many bytes the memory in use grows while node k runs, and after it.
func (r *ready) effect(k int32) (during, after int64) {
	n := r.n
	took := int32(-1)
	for _, id := range n.defs[k] {
		during += n.stores[id].bytes
		for _, o := range n.over[k] {
			if o.to == id && r.uses[o.from] == 1 && !r.passed[o.from] {
				took = o.from
				during -= n.stores[id].bytes
				break
			}
		}
	}
	after = during
	for _, id := range n.reads[k] {
		if r.uses[id] == 1 && id != took && !r.lies[id] && !r.passed[id] {
			after -= n.stores[id].bytes
		}
	}
	for _, id := range n.defs[k] {
		if r.uses[id] == 0 && !(took >= 0 && r.lies[took]) {
			after -= n.stores[id].bytes
		}
	}
	return during + n.space[k], after
}

// run runs node k and calls free with each node that can run from then on.
func (r *ready) run(k int32, free func(int32)) {
	n := r.n
	r.done[k] = true
	for _, id := range n.defs[k] {
		for _, o := range n.over[k] {
			if o.to == id && r.uses[o.from] == 1 && !r.passed[o.from] {
				r.passed[o.from] = true
				r.lies[id] = r.lies[o.from]
				break
			}
		}
	}
	for _, id := range n.reads[k] {
		r.uses[id]--
	}
	for _, next := range n.after[k] {
		if r.waits[next]--; r.waits[next] == 0 {
			free(next)
		}
	}
}

// eager returns an order that follows base, but runs each node as soon as that lowers the memory in use, or with ties keeps it.
func (n *net) eager(base []int32, ties bool) []int32 {
	r := n.newReady()
	pos := make([]int32, len(base))
	for i, k := range base {
		pos[k] = int32(i)
	}
	q := &queue{pos: pos}
	check := func(k int32) {
		if r.done[k] || r.waits[k] > 0 {
			return
		}
		if _, after := r.effect(k); after < 0 || ties && after == 0 {
			heap.Push(q, item{after, k})
		}
	}
	order := make([]int32, 0, len(base))
	run := func(k int32) {
		order = append(order, k)
		r.run(k, check)
		for _, id := range n.reads[k] { // readers that may be the last ones now
			if r.uses[id] == 1 {
				for _, u := range n.stores[id].uses {
					check(u)
				}
			}
		}
	}
	for _, k := range base {
		if r.waits[k] == 0 {
			check(k)
		}
	}
	for _, k := range base {
		for q.Len() > 0 {
			it := heap.Pop(q).(item)
			if r.done[it.node] {
				continue
			}
			if _, after := r.effect(it.node); after > it.key {
				if after < 0 || ties && after == 0 {
					heap.Push(q, item{after, it.node})
				}
				continue
			}
			run(it.node)
		}
		if !r.done[k] {
			run(k)
		}
	}
	return order
}

// lazy returns an order in which nodes that raise the memory in use run as late as their readers allow: time is run
// backwards along base, where such nodes are the ones that lower it.
func (n *net) lazy(base []int32, ties bool) []int32 {
	pos := make([]int32, len(base))
	for i, k := range base {
		pos[k] = int32(len(base) - 1 - i)
	}
	waits := make([]int32, len(n.nodes)) // readers that have not run yet, backwards
	for i := range n.nodes {
		waits[i] = int32(len(n.after[i]))
	}
	alive := make([]bool, len(n.stores)) // backwards: read by what has run
	for i := range n.stores {
		alive[i] = n.stores[i].output
	}
	done := make([]bool, len(n.nodes))
	effect := func(k int32) int64 {
		var sum int64
		for _, id := range n.reads[k] {
			if !alive[id] && !n.stores[id].given {
				sum += n.stores[id].bytes
			}
		}
		for _, id := range n.defs[k] {
			if alive[id] {
				sum -= n.stores[id].bytes
			}
		}
		return sum
	}
	q := &queue{pos: pos}
	check := func(k int32) {
		if done[k] || waits[k] > 0 {
			return
		}
		if e := effect(k); e < 0 || ties && e == 0 {
			heap.Push(q, item{e, k})
		}
	}
	order := make([]int32, len(base))
	left := len(base)
	run := func(k int32) {
		left--
		order[left] = k
		done[k] = true
		for _, p := range n.before[k] {
			if waits[p]--; waits[p] == 0 {
				check(p)
			}
		}
		for _, id := range n.reads[k] {
			if !alive[id] {
				alive[id] = true
				for _, u := range n.stores[id].uses { // they bring nothing any more
					check(u)
				}
			}
		}
	}
	for _, k := range base {
		check(k)
	}
	for i := len(base) - 1; i >= 0; i-- {
		for q.Len() > 0 {
			it := heap.Pop(q).(item)
			if done[it.node] {
				continue
			}
			if e := effect(it.node); e > it.key {
				if e < 0 || ties && e == 0 {
					heap.Push(q, item{e, it.node})
				}
				continue
			}
			run(it.node)
		}
		if k := base[i]; !done[k] {
			run(k)
		}
	}
	return order
}

// item is a node that can run, with what it does to the memory in use.
type item struct {
	key  int64
	node int32
}

// queue yields the node that lowers memory the most, in case of ties the one that comes first.
type queue struct {
	items []item
	pos   []int32
}

func (q *queue) Len() int { return len(q.items) }

func (q *queue) Less(i, j int) bool {
	a, b := q.items[i], q.items[j]
	if a.key != b.key {
		return a.key < b.key
	}
	return q.pos[a.node] < q.pos[b.node]
}

func (q *queue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *queue) Push(x any)    { q.items = append(q.items, x.(item)) }

func (q *queue) Pop() any {
	last := q.items[len(q.items)-1]
	q.items = q.items[:len(q.items)-1]
	return last
}
