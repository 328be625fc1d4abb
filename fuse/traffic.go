package fuse

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// Traffic is bytes that kernels read and write in memory, each a number or an expression in the symbolic dimensions.
type Traffic struct {
	Total   graph.Dim // everything, weights included
	Between graph.Dim // values that one kernel writes and another reads
}

// crossing is a value at the border of a group.
type crossing struct {
	v      *graph.Value
	result bool      // written, else read
	bytes  graph.Dim // as much of it as is moved
	weight float64   // the same as a number
}

// border returns what a kernel for the nodes reads and writes. Small constants are part of the kernel, views move nothing,
// a value is read once however many nodes of the group read it. Where only elements at given places are read, as
// of an embedding's table, those count.
func (f *facts) border(nodes []*graph.Node) []crossing {
	in := make(map[*graph.Node]bool, len(nodes))
	for _, n := range nodes {
		in[n] = true
	}
	var out []crossing
	read := map[*graph.Value]int{} // place in out, plus one
	for _, n := range nodes {
		if f.free(n) {
			continue
		}
		for i, v := range n.In {
			if v == nil || f.inside(v) {
				continue
			}
			for v.Def != nil && in[v.Def] && f.kind(v.Def) == op.KindView && v.Def.Operand(0) != nil {
				v = v.Def.In[0]
			}
			if v.Def != nil && in[v.Def] || f.inside(v) {
				continue
			}
			size := v // what is as large as what is moved
			if i == 0 && picks(n) && f.weight(n.Out[0]) < f.weight(v) {
				size = n.Out[0]
			}
			c := crossing{v, false, f.bytes(size), f.weight(size)}
			if k := read[v]; k > 0 {
				if out[k-1].weight < c.weight {
					out[k-1] = c
				}
				continue
			}
			out = append(out, c)
			read[v] = len(out)
		}
	}
	written := map[*graph.Value]bool{}
	for _, n := range nodes {
		for _, v := range n.Out {
			if v == nil || !readOutside(v, in) {
				continue
			}
			root := v
			for root.Def != nil && in[root.Def] && f.kind(root.Def) == op.KindView && root.Def.Operand(0) != nil {
				root = root.Def.In[0]
			}
			if root.Def == nil || !in[root.Def] || written[root] || f.inside(root) {
				continue // an operand under another shape
			}
			written[root] = true
			out = append(out, crossing{root, true, f.bytes(root), f.weight(root)})
		}
	}
	return out
}

func readOutside(v *graph.Value, in map[*graph.Node]bool) bool {
	for _, u := range v.Uses() {
		if u.Node == nil || !in[u.Node] {
			return true
		}
	}
	return false
}

// free reports whether a node reads no elements: views, and what depends on shapes only.
func (f *facts) free(n *graph.Node) bool {
	k := f.kind(n)
	return k == op.KindView || k == op.KindShape || k == op.KindConstant || op.Of(n).Has(op.ShapeOnly)
}

// picks reports whether n reads of its first operand only the elements that it hands on.
func picks(n *graph.Node) bool {
	switch n.Op {
	case "Gather", "GatherElements", "GatherND", "Slice":
		return len(n.Out) > 0 && n.Out[0] != nil
	}
	return false
}

// traffic sums the borders of the groups of a graph.
func (f *facts) traffic(groups [][]*graph.Node) Traffic {
	t := Traffic{graph.Known(0), graph.Known(0)}
	for _, nodes := range groups {
		for _, c := range f.border(nodes) {
			n := known(c.bytes)
			t.Total = t.Total.Add(n)
			if c.between() {
				t.Between = t.Between.Add(n)
			}
		}
	}
	return t
}

// between reports whether the value is handed from one kernel to another: computed, and read again.
func (c crossing) between() bool {
	if c.v.Def == nil || c.v.Def.Is("Constant") {
		return false
	}
	for _, u := range c.v.Uses() {
		if u.Node != nil {
			return true
		}
	}
	return false
}

// known counts what nothing is known of as nothing, so that sums stay expressions.
func known(d graph.Dim) graph.Dim {
	if d.IsUnknown() {
		return graph.Known(0)
	}
	return d
}

// saved returns the bytes that one kernel for all groups need not move, and the values that no longer cross a border.
func (f *facts) saved(groups [][]*graph.Node) (graph.Dim, []*graph.Value) {
	var all []*graph.Node
	before := graph.Known(0)
	var crossed []*graph.Value
	seen := map[*graph.Value]bool{}
	for _, nodes := range groups {
		all = append(all, nodes...)
		for _, c := range f.border(nodes) {
			before = before.Add(known(c.bytes))
			if !seen[c.v] {
				seen[c.v] = true
				crossed = append(crossed, c.v)
			}
		}
	}
	still := map[*graph.Value]bool{}
	for _, c := range f.border(all) {
		before = before.Sub(known(c.bytes))
		still[c.v] = true
	}
	var inside []*graph.Value
	for _, v := range crossed {
		if !still[v] {
			inside = append(inside, v)
		}
	}
	return before, inside
}

// moved returns the bytes that a kernel for the nodes moves, as a number, for the comparison of merges.
func (f *facts) moved(nodes []*graph.Node) float64 {
	sum := 0.0
	for _, c := range f.border(nodes) {
		sum += c.weight
	}
	return sum
}
