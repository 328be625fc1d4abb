package batch

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// share is the part of the memory of a whole step that one node may need at most when it works on one part of the batch. What
// is left then is mostly what nodes keep for others, which more parts do not make less.
const share = 8

// mostParts is the largest number that Parts returns: each part is a copy of the graph.
const mostParts = 64

// Parts returns in how many parts of its batch the graph is best computed, a power of two: the first for which no node needs
// more than an eighth of the memory of the whole step, taken in the order given, for its part of what it reads and writes. The batch
// is what [Options] has for Dim, size estimates the number of bytes of a value. The model must be sorted and inferred. It is 2 if there is nothing to choose.
func Parts(m *graph.Model, symbol string, size func(v *graph.Value) float64) int {
	list, n := seeds(m.Graph, symbol)
	if len(list) == 0 {
		return 2
	}
	parts := 2
	peak, largest := needs(m.Graph, list, n, size)
	for parts < mostParts && largest/float64(parts) > peak/share {
		parts *= 2
	}
	if k, ok := n.Int(); ok {
		for parts > 2 && int64(parts) > k {
			parts /= 2
		}
	}
	return parts
}

// needs returns the most bytes alive in the order given, and the most that one node reads and writes of values that have the
// batch: those that depend on the inputs with it, and have so many elements for each sample.
func needs(g *graph.Graph, list []origin, n graph.Dim, size func(v *graph.Value) float64) (peak, largest float64) {
	of := map[*graph.Value]bool{}
	for _, s := range list {
		of[s.value] = true
	}
	root := map[*graph.Value]*graph.Value{} // whose bytes a view shows
	store := func(v *graph.Value) *graph.Value {
		if r := root[v]; r != nil {
			return r
		}
		return v
	}
	last := map[*graph.Value]int{}
	for i, x := range g.Nodes {
		for _, v := range append(append([]*graph.Value{}, x.In...), x.Captures()...) {
			if v != nil {
				last[store(v)] = i
			}
		}
		if op.Of(x).Has(op.View) && len(x.In) > 0 && x.In[0] != nil && x.Out[0] != nil {
			root[x.Out[0]] = store(x.In[0])
		}
	}
	for _, v := range g.Outputs {
		last[store(v)] = len(g.Nodes)
	}
	ends := make([]float64, len(g.Nodes)+1)
	alive := 0.0
	for i, x := range g.Nodes {
		depends, works := false, 0.0
		for _, v := range x.In {
			depends = depends || v != nil && of[v]
			if v != nil && of[v] && of[store(v)] {
				works += size(v)
			}
		}
		for _, v := range x.Out {
			if v == nil {
				continue
			}
			if _, ok := exact(product(v.Type.Shape), n); ok && depends && v.Type.Shape != nil {
				of[v] = true
			}
			if store(v) != v || x.Is("Constant") {
				continue
			}
			bytes := size(v)
			if of[v] {
				works += bytes
			}
			alive += bytes
			ends[max(last[v], i)] += bytes
		}
		peak, largest = max(peak, alive), max(largest, works)
		alive -= ends[i]
	}
	return peak, largest
}
