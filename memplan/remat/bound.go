package remat

import "slices"

// pivots is how many nodes the bound looks at.
const pivots = 16

// Bound returns a cost that no sequence within the budget can be below, in whatever order it computes the nodes.
//
// It looks at the step that computes a node x for the first time, when all ancestors of x have been computed and no
// descendant has. What the descendants read besides must be held at that step, which takes memory, or be computed after
// it, which for an ancestor of x is a recomputation, and then what that reads must be held or computed in turn. The least
// cost of recomputing for the memory that x and what it reads leave over is a knapsack with precedences; with memory at a
// price it is a minimum cut, as in the partitioner of PyTorch's AOTAutograd, and the best price (Lagrange's) gives a
// bound. Branch and bound over what is recomputed then narrows what is left to the knapsack's optimum.
func Bound(g *Graph, budget int64) int64 {
	cost, _ := bound(g, budget)
	return cost
}

// bound returns the bound and a sequence from the knapsack that gives it, the graph's own order if there is none. The
// sequence may exceed the budget at other steps than that of the knapsack.
func bound(g *Graph, budget int64) (int64, []int32) {
	b := &bounder{g: g, children: g.children(), budget: budget}
	type relaxed struct {
		*knapsack
		root open
	}
	var list []relaxed
	best := int64(0)
	for _, x := range b.candidates() {
		k := b.knapsack(x)
		if k == nil {
			continue
		}
		root := k.relax(nil)
		best = max(best, root.bound)
		list = append(list, relaxed{k, root})
	}
	slices.SortStableFunc(list, func(a, b relaxed) int { return compare(b.root.bound, a.root.bound) })
	cuts := max(searchEffort/(10*len(g.Names)+1), 60)
	start := g.Order
	for n, r := range list[:min(len(list), 4)] {
		value, choice := r.search(r.root, cuts)
		if choice != nil && (n == 0 || value > best) {
			start = r.start(choice)
		}
		best = max(best, value)
	}
	if againOnce(g, start) {
		start = g.Order // the knapsack does not know what must not be computed again
	}
	return g.BaseCost() + best, start
}

// againOnce reports whether a sequence computes again what must not be.
func againOnce(g *Graph, sequence []int32) bool {
	seen := make([]bool, len(g.Names))
	for _, v := range sequence {
		if seen[v] && g.once(v) {
			return true
		}
		seen[v] = true
	}
	return false
}

// searchEffort is shared by the cuts of a search: the larger the graph, the fewer there are.
const searchEffort = 2_000_000

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

type bounder struct {
	g        *Graph
	children [][]int32
	budget   int64
}

// side is how a node stands to the pivot.
type side int8

const (
	apart side = iota
	ancestor
	descendant
	pivot
)

// sides returns how all nodes stand to x.
func (b *bounder) sides(x int32) []side {
	s := make([]side, len(b.g.Names))
	walk := func(next [][]int32, mark side) {
		todo := []int32{x}
		for len(todo) > 0 {
			v := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for _, w := range next[v] {
				if s[w] == apart {
					s[w] = mark
					todo = append(todo, w)
				}
			}
		}
	}
	walk(b.g.Parents, ancestor)
	walk(b.children, descendant)
	s[x] = pivot
	return s
}

// needed calls f with the nodes besides x that descendants of x read and that are none themselves.
func (b *bounder) needed(s []side, f func(p int32)) {
	for p := range s {
		if s[p] != ancestor && s[p] != apart {
			continue
		}
		if slices.ContainsFunc(b.children[p], func(c int32) bool { return s[c] == descendant }) {
			f(int32(p))
		}
	}
}

// spare returns the memory that is left when x is computed, besides x and what it reads.
func (b *bounder) spare(x int32) int64 {
	left := b.budget - b.g.Memory[x] + b.g.saves(x) - b.g.extra(x)
	for _, p := range b.g.Parents[x] {
		left -= b.g.Memory[p]
	}
	return left
}

// candidates returns the nodes at which most memory lacks if nothing is recomputed, at most pivots of them.
func (b *bounder) candidates() []int32 {
	type candidate struct {
		node int32
		lack int64
	}
	var list []candidate
	for v := range b.g.Names {
		x := int32(v)
		s := b.sides(x)
		lack := -b.spare(x)
		b.needed(s, func(p int32) {
			if s[p] == ancestor && !slices.Contains(b.g.Parents[x], p) {
				lack += b.g.Memory[p]
			}
		})
		if lack > 0 {
			list = append(list, candidate{x, lack})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return compare(b.lack, a.lack) })
	var nodes []int32
	for _, c := range list[:min(len(list), pivots)] {
		nodes = append(nodes, c.node)
	}
	return nodes
}
