package fuse

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Growing by pairs puts element-wise nodes behind the first product that they could be computed with. Where they lead to another
// one, whose kernel they would fit too, the border may lie better in front of them: at a single value that all of them are computed from,
// in place of the several that they hand over. Shifting finds such borders by moving nodes, as Kernighan and Lin do ("An efficient heuristic
// procedure for partitioning graphs", 1970): one after another, the best first, also where that costs something at first; what counts is the
// best moment.

// maxShift bounds the groups whose borders are moved.
const maxShift = 128

// shift moves borders between groups until that saves nothing. It reports whether it moved one.
func (p *planner) shift() bool {
	moved := false
	for range 4 {
		again := false
		for _, a := range slices.Clone(p.part.order) {
			if a.fixed || a.rule != "" || len(a.nodes) < 2 || len(a.nodes) > maxShift || p.part.of[a.nodes[0]] != a || p.only != anyPhase && p.phaseOf(a) != p.only {
				continue
			}
			for _, b := range p.part.readers(a) {
				if b.fixed || b.rule != "" || !p.mixes(a, b) || len(b.nodes) > maxShift || p.part.of[b.nodes[0]] != b || p.part.of[a.nodes[0]] != a {
					continue
				}
				x := a.with(b)
				if !x.shifted {
					x.tail, x.shifted = p.bestTail(a, b), true
				}
				if x.tail == nil {
					continue
				}
				err := p.hand(a, b, x.tail)
				if err == nil {
					again, moved = true, true
					break
				}
				if err != errCycle { // it stays
					x.tail = nil
				}
			}
		}
		if !again {
			break
		}
	}
	return moved
}

// bestTail returns the last nodes of a that b should have, nil if the border lies best where it is. What is given, such as weights,
// does not count: who reads a bias is no reason to take it away from its product.
func (p *planner) bestTail(a, b *group) []*graph.Node {
	bytes := func(nodes []*graph.Node) float64 {
		sum := 0.0
		for _, c := range p.border(nodes) {
			if c.v.Def != nil {
				sum += c.weight
			}
		}
		return sum
	}
	rest, there := slices.Clone(a.nodes), slices.Clone(b.nodes)
	least := bytes(rest) + bytes(there)
	var tail []*graph.Node
	best := 0
	for len(rest) > 1 {
		pick, cost := -1, 0.0
		for i, n := range rest {
			if !p.movable(n) || slices.ContainsFunc(p.part.succ[n], func(s *graph.Node) bool { return slices.Contains(rest, s) }) {
				continue
			}
			c := bytes(slices.Concat(rest[:i], rest[i+1:])) + bytes(append(slices.Clone(there), n))
			if pick < 0 || c < cost {
				pick, cost = i, c
			}
		}
		if pick < 0 {
			break
		}
		tail, there = append(tail, rest[pick]), append(there, rest[pick])
		rest = slices.Delete(rest, pick, pick+1)
		if cost < least {
			least, best = cost, len(tail)
		}
	}
	if best == 0 {
		return nil
	}
	return tail[:best]
}

// movable reports whether n can be computed in front of a product as well as behind one.
func (p *planner) movable(n *graph.Node) bool {
	switch p.kind(n) {
	case op.KindElementwise, op.KindView, op.KindInjective, op.KindReduce:
		return true
	}
	return p.isIndex(n)
}

// hand gives the tail of a to b, if that is right, and says why it is not.
func (p *planner) hand(a, b *group, tail []*graph.Node) error {
	rest, t := p.part.split(a, tail)
	if !p.try(t, b) {
		p.part.unsplit(a, rest, t)
		return t.with(b).err
	}
	p.part.uncycle()
	return nil
}
