package fuse

import (
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Where the compiler that clusters are for can be asked which nodes it makes a kernel of, clusters are the kernels that it names: what it
// cannot make one kernel is then no cluster, and what only it knows to fit together is one.

// asked makes a cluster of the nodes of each kernel, forward and backward part apart. A node that several kernels compute parts of is in
// none; nodes that are in no kernel, such as views, go with those that read or make them.
func (p *planner) asked(kernels [][]*graph.Node) {
	home := map[*graph.Node][]int{}
	for i, nodes := range kernels {
		for _, n := range nodes {
			if p.part.of[n] != nil && !slices.Contains(home[n], i) {
				home[n] = append(home[n], i)
			}
		}
	}
	sets := map[int][]*graph.Node{}
	for _, n := range p.part.g.Nodes {
		if h := home[n]; len(h) == 1 && !p.part.of[n].fixed {
			sets[h[0]] = append(sets[h[0]], n)
		}
	}
	for i := range kernels {
		for _, nodes := range p.byPhase(sets[i]) {
			p.unite(nodes, home)
		}
	}
	p.adopt(home)
	p.homes = home
}

// apart returns why two neighbours are in different clusters where the compiler was asked.
func (p *planner) apart(a, b *group) error {
	switch {
	case p.homes == nil || a.fixed || b.fixed:
		return nil
	case !p.mixes(a, b):
		return errPhases
	}
	for _, q := range []*group{a, b} {
		if n := len(p.homes[q.nodes[0]]); n > 1 && len(q.nodes) == 1 {
			return fmt.Errorf("%d kernels compute parts of %s", n, q.nodes[0].Label())
		}
	}
	return errKernels
}

// byPhase divides nodes by the part of a training graph that they are of. What goes with any goes with the first.
func (p *planner) byPhase(nodes []*graph.Node) [][]*graph.Node {
	var order []phase
	of := map[phase][]*graph.Node{}
	for _, n := range nodes {
		f := p.phase(n)
		if f != anyPhase && of[f] == nil {
			order = append(order, f)
		}
		of[f] = append(of[f], n)
	}
	if len(order) == 0 {
		return [][]*graph.Node{nodes}
	}
	var out [][]*graph.Node
	for i, f := range order {
		list := of[f]
		if i == 0 {
			list = append(list, of[anyPhase]...)
		}
		out = append(out, list)
	}
	return out
}

// unite makes as few groups of the nodes as possible, with nodes between them that are in no kernel.
func (p *planner) unite(nodes []*graph.Node, home map[*graph.Node][]int) {
	for left := nodes; len(left) > 0; {
		set := []*group{p.part.of[left[0]]}
		size := 1
		var rest []*graph.Node
		for _, n := range left[1:] {
			with := append(slices.Clone(set), p.part.of[n])
			with = append(with, p.part.between(with)...)
			count := 0
			right := true
			for _, q := range with {
				count += len(q.nodes)
				right = right && !q.fixed && p.mixes(set[0], q) && (slices.Contains(nodes, q.nodes[0]) || len(q.nodes) == 1 && len(home[q.nodes[0]]) == 0)
			}
			if !right || count > p.machine.maxNodes() || !p.part.convex(with) {
				rest = append(rest, n)
				continue
			}
			set, size = with, count
		}
		if size > 1 {
			p.part.merge(set, "")
		}
		left = slices.DeleteFunc(rest, func(n *graph.Node) bool { return len(p.part.of[n].nodes) > 1 })
	}
}

// adopt puts nodes that are in no kernel into the group of all that read them, or into that of what they read.
func (p *planner) adopt(home map[*graph.Node][]int) {
	try := func(n *graph.Node, near []*group) {
		q := p.part.of[n]
		if len(near) != 1 || len(near[0].nodes) < 2 && len(home[near[0].nodes[0]]) != 1 || near[0].fixed || !p.mixes(near[0], q) || len(near[0].nodes) >= p.machine.maxNodes() {
			return
		}
		if set := []*group{near[0], q}; p.part.convex(set) {
			p.part.merge(set, near[0].rule)
		}
	}
	loose := func(n *graph.Node) bool {
		q := p.part.of[n]
		return len(q.nodes) == 1 && !q.fixed && len(home[n]) == 0 && p.kind(n) != op.KindConstant
	}
	for _, n := range slices.Backward(slices.Clone(p.part.g.Nodes)) {
		if loose(n) && !slices.ContainsFunc(n.Out, func(v *graph.Value) bool { return v != nil && v.IsOutput() }) {
			try(n, p.part.readers(p.part.of[n]))
		}
	}
	for _, n := range slices.Clone(p.part.g.Nodes) {
		if loose(n) {
			try(n, slices.DeleteFunc(p.part.around(p.part.of[n], p.part.pred), func(q *group) bool { return p.kind(q.nodes[0]) == op.KindConstant }))
		}
	}
}
