package recompute

import (
	"slices"

	"gradtool/graph"
	"gradtool/memplan/remat"
)

// A MaxPool whose indices are read has two units: values are read at once, indices, which are twice as large, by the backward
// part. Each unit can be computed on its own; where the two follow each other one node computes both.

// isTwin reports whether the results of n are two units.
func (p *Problem) isTwin(n *graph.Node) bool {
	if !n.Is("MaxPool") || len(n.Out) != 2 {
		return false
	}
	for _, v := range n.Out {
		if v == nil || v.NumUses() == 0 || p.kept[v] {
			return false
		}
	}
	return true
}

// addTwin adds the unit of the indices of n, whose values are unit u.
func (p *Problem) addTwin(n *graph.Node, u int32, bytes int64) int32 {
	g := p.Graph
	x := p.add(n, bytes, g.Parents[u])
	g.Cost[x], p.FLOPs[x], g.Extra[x], g.Once[x] = g.Cost[u], p.FLOPs[u], g.Extra[u]+g.Memory[u], g.Once[u]
	p.twin[u], p.twin[x] = x, u
	return x
}

// isTwinUnit reports whether u is one of two units of a node.
func (p *Problem) isTwinUnit(u int32) bool {
	_, ok := p.twin[u]
	return ok
}

// together returns how many units the node at step k of a sequence computes at once.
func (p *Problem) together(sequence []int32, k int) int {
	if t, ok := p.twin[sequence[k]]; ok && k+1 < len(sequence) && sequence[k+1] == t {
		return 2
	}
	return 1
}

// Cost returns the cost of a sequence. It is that which package remat sees but for twins, of which that counts both.
func (p *Problem) Cost(sequence []int32) (cost int64) {
	for k := 0; k < len(sequence); k += p.together(sequence, k) {
		cost += p.Graph.Cost[sequence[k]]
	}
	return cost
}

// Base returns the cost of computing every node once.
func (p *Problem) Base() int64 { return p.Cost(p.Graph.Order) }

// pairUp moves units next to their twins where the peak allows that, and takes those out that nobody reads before they are
// computed again.
func (p *Problem) pairUp(f remat.Plan) remat.Plan {
	s := slices.Clone(f.Sequence)
	try := func(next []int32) {
		if u, err := remat.Simulate(p.Graph, next); err == nil && u.Peak <= f.Peak {
			s = next
		}
	}
	for k := 0; k < len(s); k++ {
		u := s[k]
		t, ok := p.twin[u]
		if !ok {
			continue
		}
		if again := slices.Index(s[k+1:], u); again >= 0 && !p.read(u, s[k+1:k+1+again]) {
			s = slices.Delete(s, k, k+1)
			k--
			continue
		}
		at := -1 // the last step before this one that computes the twin
		for i := k - 1; i >= 0 && at < 0; i-- {
			if s[i] == t {
				at = i
			}
		}
		if at >= 0 && at < k-1 {
			try(slices.Insert(slices.Delete(slices.Clone(s), k, k+1), at+1, u))
		}
	}
	if u, err := remat.Simulate(p.Graph, s); err == nil && u.Peak <= f.Peak {
		return remat.Plan{Sequence: s, Peak: u.Peak, Cost: u.Cost}
	}
	return f
}

// read reports whether a step reads u.
func (p *Problem) read(u int32, steps []int32) bool {
	return slices.ContainsFunc(steps, func(v int32) bool { return slices.Contains(p.Graph.Parents[v], u) })
}
