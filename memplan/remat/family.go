package remat

import "slices"

// family returns sequences in which less and less is kept at a pivot, the step of the graph's own order at which most
// memory is in use: the choices that are best for some price of memory, each a minimum cut, up to about most of them.
// What they drop is computed again behind the pivot, when it is read. They are starts for budgets: memory at other steps may
// exceed what is in use at the pivot.
func family(g *Graph, most int) [][]int32 {
	u, err := Simulate(g, g.Order)
	if err != nil {
		return nil
	}
	b := &bounder{g: g, children: g.children(), budget: u.Peak}
	var list [][]int32
	for _, x := range b.pivots(u) {
		k := b.knapsack(x)
		if k == nil {
			continue
		}
		k.forbidOnce()
		free, _ := k.cut(nil, 0, 1)
		dear, _ := k.cut(nil, 1, 0)
		choices := k.between(free, dear, most)
		for _, c := range choices {
			if s := k.start(c.again); !againOnce(g, s) {
				list = append(list, s)
			}
		}
	}
	return list
}

// forbidOnce gives what must not be computed again a cost that no choice takes while there is another.
func (k *knapsack) forbidOnce() {
	var sum int64
	for _, c := range k.cost {
		sum += c
	}
	for p, v := range k.nodes {
		if k.g.once(v) && k.cost[p] > 0 {
			k.cost[p] = min(sum+1, limit)
		}
	}
}

// between returns the choices of the lower hull of cost and memory from a to b, b included, found by halving.
func (k *knapsack) between(a, b choice, most int) []choice {
	up, down := b.cost-a.cost, a.memory-b.memory
	if most <= 1 || up <= 0 || down <= 0 || b.cost >= unlimited {
		return []choice{b}
	}
	c, _ := k.cut(nil, up, down)
	if c.same(a) || c.same(b) || c.again == nil {
		return []choice{b}
	}
	return append(k.between(a, c, most/2), k.between(c, b, most/2)...)
}

// pivots returns the step of the peak and, of some nodes spread over the order, the one whose descendants read most of
// what its ancestors leave.
func (b *bounder) pivots(u Usage) []int32 {
	const tries = 64
	order := b.g.Order
	list := []int32{order[u.At]}
	best, most := int32(-1), int64(0)
	for k := range tries {
		x := order[(2*k+1)*len(order)/(2*tries)]
		s := b.sides(x)
		var needs int64
		b.needed(s, func(p int32) {
			if s[p] == ancestor {
				needs += b.g.Memory[p]
			}
		})
		if needs > most {
			best, most = x, needs
		}
	}
	if best >= 0 && !slices.Contains(list, best) {
		list = append(list, best)
	}
	return list
}
