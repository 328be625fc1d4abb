package fuse

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// smallUpdate is the size of a parameter in bytes up to which its update shares a kernel with others, where the machine does
// not say what it takes to begin one.
const smallUpdate = 64 << 10

// updates seeds the clusters of an optimizer: for each parameter p the nodes that compute what it will be next, and what the
// state beside it will be. A parameter is an initializer, or an input p of which p_next is an output; next is a graph output, a sum
// or difference with p or a multiple of it. All the rest is element-wise and of p's shape: SGD, momentum, Adam and their
// like alike. Equal updates share a function, whatever their order in the graph.
func (p *planner) updates() {
	var small []*graph.Node
	for _, v := range p.part.g.Outputs {
		n := v.Def
		if p.part.g.Parent != nil || n == nil || p.part.of[n] == nil || p.part.of[n].rule != "" || !p.isUpdate(n, v) {
			continue
		}
		nodes := p.updateNodes(n)
		if len(nodes) < 2 || !p.seed(nodes, "update") {
			continue
		}
		if p.machine.small(p.weight(v)) {
			small = append(small, n)
		}
	}
	p.gatherUpdates(small)
}

// small reports whether a kernel that moves a few tensors of so many bytes spends most of its time on beginning.
func (m Machine) small(bytes float64) bool {
	if m.timed() {
		return bytes/m.Bandwidth < m.Launch
	}
	return bytes <= smallUpdate
}

// gatherUpdates lets updates of small parameters share kernels, each of as many as are allowed.
func (p *planner) gatherUpdates(small []*graph.Node) {
	for len(small) > 0 {
		size, k := 0, 0
		for k < len(small) && size+len(p.part.of[small[k]].nodes) <= p.machine.maxNodes() {
			size += len(p.part.of[small[k]].nodes)
			k++
		}
		if k < 2 {
			small = small[max(k, 1):]
			continue
		}
		var nodes []*graph.Node
		for _, n := range small[:k] {
			nodes = append(nodes, p.part.of[n].nodes...)
		}
		p.seed(nodes, "update")
		small = small[k:]
	}
}

// isUpdate reports whether n computes v, the next value of a parameter.
func (p *planner) isUpdate(n *graph.Node, v *graph.Value) bool {
	if !n.Is("Add") && !n.Is("Sub") || p.isIndex(n) || v.Type.Shape == nil && p.typ(v).Shape == nil {
		return false
	}
	for i, x := range n.In {
		if n.Is("Sub") && i > 0 || x == nil {
			break
		}
		// Weight decay apart from the gradient multiplies the parameter first.
		if x.Def != nil && x.Def.Is("Mul") && len(x.Def.In) == 2 {
			for _, y := range x.Def.In {
				if y != nil && p.isParameter(y, v) {
					return true
				}
			}
		}
		if p.isParameter(x, v) {
			return true
		}
	}
	return false
}

// isParameter reports whether x is a parameter that next may be the next value of.
func (p *planner) isParameter(x, next *graph.Value) bool {
	if x.Def != nil || !p.typ(x).Shape.Equal(p.typ(next).Shape) || !p.typ(x).Elem.IsFloat() {
		return false
	}
	return x.Init != nil || x.Name != "" && next.Name == x.Name+"_next"
}

// updateNodes returns the element-wise nodes of n's shape that lead to n, and those that lead from what they compute to outputs.
// The gradient, and what belongs to all parameters, such as the step count, stay outside.
func (p *planner) updateNodes(n *graph.Node) []*graph.Node {
	shape := p.typ(n.Out[0]).Shape
	belongs := func(k *graph.Node) bool {
		if k == nil || p.part.of[k] == nil || p.part.of[k].rule != "" || p.kind(k) != op.KindElementwise || p.part.of[k].fixed {
			return false
		}
		if f := p.phase(k); f == backwardPhase {
			return false
		}
		return len(k.Out) > 0 && k.Out[0] != nil && p.typ(k.Out[0]).Shape.Equal(shape)
	}
	seen := map[*graph.Node]bool{n: true}
	queue, out := []*graph.Node{n}, []*graph.Node{}
	for len(queue) > 0 {
		k := queue[0]
		queue = queue[1:]
		out = append(out, k)
		var near []*graph.Node
		for _, v := range k.In {
			if v != nil {
				near = append(near, v.Def)
			}
		}
		near = append(near, p.part.succ[k]...)
		for _, m := range near {
			if m != nil && !seen[m] && belongs(m) {
				seen[m] = true
				queue = append(queue, m)
			}
		}
	}
	slices.SortFunc(out, func(a, b *graph.Node) int { return p.part.index[a] - p.part.index[b] })
	return out
}
