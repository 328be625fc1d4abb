package memplan

import "slices"

// climber lowers the peak of an order by moving groups of nodes away from the steps that need the most memory.
type climber struct {
	n     *net
	order []int32
	work  int64 // steps of work done
	limit int64

	pos   []int32
	last  []int32
	live  []int64
	scale float64 // bytes that count as 1
	trial []int32
	in    []bool // nodes of the group
}

// climb returns the orders that it comes by, from one on upwards, with at most limit steps of work; each has a lower peak than the
// one before.
func (n *net) climb(from candidate, limit int64) []candidate {
	size := len(from.order)
	if size < 2 {
		return nil
	}
	c := &climber{n: n, order: slices.Clone(from.order), limit: limit, pos: make([]int32, size), last: make([]int32, len(n.stores)),
		live: make([]int64, size), trial: make([]int32, size), in: make([]bool, size), scale: float64(max(from.peak, 1))}
	var list []candidate
	peak := from.peak
	value := c.eval(c.order)
	for c.work < c.limit {
		next, ok := c.improve(value)
		if !ok {
			break
		}
		value = next
		if p := c.peak(); p < peak {
			peak = p
			list = append(list, candidate{slices.Clone(c.order), p})
		}
	}
	return list
}

// eval returns how bad an order is: the sum over its steps of a high power of the memory in use, so that lowering any of the high
// steps counts. It leaves the memory in use at each step in live.
func (c *climber) eval(order []int32) float64 {
	n := c.n
	c.work += int64(len(order) + len(n.stores)*2)
	for i, k := range order {
		c.pos[k] = int32(i)
	}
	clear(c.live)
	end := int32(len(order) - 1)
	for id := range n.stores {
		s := &n.stores[id]
		last := int32(-1)
		for _, u := range s.uses {
			last = max(last, c.pos[u])
		}
		if s.output {
			last = end
		}
		if s.def >= 0 {
			last = max(last, c.pos[s.def])
		}
		c.last[id] = last
	}
	// live holds differences first: bytes that come at a step, less those that went at the step before.
	for id := range n.stores {
		s := &n.stores[id]
		if s.def < 0 {
			continue
		}
		first := c.pos[s.def]
		if from := c.over(s.def, int32(id), first); from >= 0 {
			if n.stores[from].given {
				continue
			}
			c.live[first] -= s.bytes
			if first < end {
				c.live[first+1] += s.bytes
			}
		}
		c.live[first] += s.bytes
		if last := c.last[id]; last < end {
			c.live[last+1] -= s.bytes
		}
	}
	var now int64
	var sum float64
	for i, d := range c.live {
		now += d
		c.live[i] = now + n.space[order[i]]
		x := float64(c.live[i]) / c.scale
		x *= x // 2
		x *= x // 4
		x *= x // 8
		x *= x // 16
		x *= x // 32
		x *= x // 64
		sum += x
	}
	return sum
}

// over returns the storage whose bytes storage id, made by node k at a step, takes, -1 for none.
func (c *climber) over(k, id, step int32) int32 {
	for _, o := range c.n.over[k] {
		if o.to == id && c.last[o.from] == step {
			return o.from
		}
	}
	return -1
}

func (c *climber) peak() int64 { return slices.Max(c.live) }

// improve looks for a move that makes the order better, at the highest steps first, and makes it.
func (c *climber) improve(value float64) (float64, bool) {
	c.eval(c.order)
	live := slices.Clone(c.live)
	last := slices.Clone(c.last)
	steps := c.highest(live)
	pos := slices.Clone(c.pos)
	for _, p := range steps {
		var alive []int32
		for id := range c.n.stores {
			s := &c.n.stores[id]
			if s.def >= 0 && s.bytes*smallest >= live[p] && pos[s.def] <= p && last[id] >= p {
				alive = append(alive, int32(id))
			}
		}
		slices.SortStableFunc(alive, func(a, b int32) int {
			switch x, y := c.n.stores[a].bytes, c.n.stores[b].bytes; {
			case x > y:
				return -1
			case x < y:
				return 1
			}
			return 0
		})
		bestValue := value
		var best []int32
		for _, id := range alive {
			for _, far := range [...]bool{false, true} {
				for _, move := range [...]func(int32, int32, bool) bool{c.pull, c.push} {
					if c.work > c.limit {
						return value, false
					}
					copy(c.pos, pos)
					if !move(id, p, far) {
						continue
					}
					if v := c.eval(c.trial); v < bestValue*(1-1e-9) {
						bestValue = v
						best = append(best[:0], c.trial...)
					}
				}
			}
		}
		if best != nil {
			copy(c.order, best)
			return c.eval(c.order), true
		}
	}
	return value, false
}

// smallest is the share of the memory in use, as a divisor, from which on it pays to move a storage away.
const smallest = 400

// highestSteps is the number of steps that are looked at before a climb ends.
const highestSteps = 24

// highest returns steps that need the most memory, not more than one of each rise and fall.
func (c *climber) highest(live []int64) []int32 {
	var tops []int32
	for i := range live {
		if (i == 0 || live[i-1] < live[i]) && (i == len(live)-1 || live[i+1] <= live[i]) {
			tops = append(tops, int32(i))
		}
	}
	slices.SortStableFunc(tops, func(a, b int32) int {
		switch {
		case live[a] > live[b]:
			return -1
		case live[a] < live[b]:
			return 1
		}
		return 0
	})
	return tops[:min(len(tops), highestSteps)]
}

// maxGroup is the largest number of nodes that move together.
const maxGroup = 120

// pull puts in trial the order in which all readers of a storage that run behind step p run in front of it, with whatever they
// need; far as early as they can, else right in front of it. It reports whether there is such an order.
func (c *climber) pull(id, p int32, far bool) bool {
	n := c.n
	s := &n.stores[id]
	if s.output || slices.ContainsFunc(s.uses, func(u int32) bool { return c.pos[u] == p }) || c.pos[s.def] == p {
		return false
	}
	var group []int32
	defer func() {
		for _, k := range group {
			c.in[k] = false
		}
	}()
	add := func(k int32) {
		if !c.in[k] {
			c.in[k] = true
			group = append(group, k)
		}
	}
	for _, u := range s.uses {
		if c.pos[u] > p {
			add(u)
		}
	}
	earliest := int32(0)
	for i := 0; i < len(group); i++ {
		if len(group) > maxGroup {
			return false
		}
		for _, q := range n.before[group[i]] {
			switch at := c.pos[q]; {
			case at == p:
				return false
			case at > p:
				add(q)
			default:
				earliest = max(earliest, at+1)
			}
		}
	}
	if len(group) == 0 {
		return false
	}
	at := p
	if far {
		if at = earliest; at == p {
			return false
		}
	}
	c.insert(group, at)
	return true
}

// push is the mirror image of pull: the node that makes the storage runs behind step p, with all that reads what it makes.
func (c *climber) push(id, p int32, far bool) bool {
	n := c.n
	s := &n.stores[id]
	if slices.ContainsFunc(s.uses, func(u int32) bool { return c.pos[u] == p }) || c.pos[s.def] == p {
		return false
	}
	group := []int32{s.def}
	c.in[s.def] = true
	defer func() {
		for _, k := range group {
			c.in[k] = false
		}
	}()
	latest := int32(len(c.order))
	for i := 0; i < len(group); i++ {
		if len(group) > maxGroup {
			return false
		}
		for _, q := range n.after[group[i]] {
			switch at := c.pos[q]; {
			case at == p:
				return false
			case at < p:
				if !c.in[q] {
					c.in[q] = true
					group = append(group, q)
				}
			default:
				latest = min(latest, at)
			}
		}
	}
	at := p + 1
	if far {
		if at = latest; at == p+1 {
			return false
		}
	}
	c.insert(group, at)
	return true
}

// insert puts in trial the order with the nodes of the group, in the order that they have, in front of what stands at step at.
func (c *climber) insert(group []int32, at int32) {
	slices.SortFunc(group, func(a, b int32) int { return int(c.pos[a] - c.pos[b]) })
	out := c.trial[:0]
	for i, k := range c.order {
		if int32(i) == at {
			out = append(out, group...)
		}
		if !c.in[k] {
			out = append(out, k)
		}
	}
	if int(at) >= len(c.order) {
		out = append(out, group...)
	}
	c.work += int64(len(out))
}
