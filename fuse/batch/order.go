package batch

import (
	"cmp"
	"slices"

	"gradtool/graph"
)

// slot says where a node runs: in which stretch, for which part of the batch (-1: for none, in front of the parts), and there in
// the order in which nodes were made.
type slot struct{ stretch, part, seq int }

func (a slot) compare(b slot) int {
	return cmp.Or(cmp.Compare(a.stretch, b.stretch), cmp.Compare(a.part, b.part), cmp.Compare(a.seq, b.seq))
}

// arrange orders the nodes part by part. A node of a part that needs something of all parts begins a new stretch; within a
// stretch the parts are computed one after the other. So a graph in which no part waits for another is one stretch: forward and
// backward for the first part, then for the second. Nodes of no part that depend on parts follow as soon as those are computed,
// others stand in front of their first reader.
func (e *emitter) arrange() {
	gone := map[*graph.Node]bool{}
	for _, n := range e.gone {
		gone[n] = true
	}
	own := func(v *graph.Value) *graph.Value { // what stands for a value that borders still read by its old name
		if w := e.whole[v]; w != nil && v.Def != nil && gone[v.Def] {
			return w
		}
		return v
	}
	stands := map[*graph.Value][]*graph.Value{} // what a value stands for
	for v, w := range e.whole {
		stands[w] = append(stands[w], v)
	}
	reads := func(n *graph.Node) []*graph.Value {
		if len(n.Subgraphs()) == 0 {
			return n.In
		}
		return append(append([]*graph.Value{}, n.In...), n.Captures()...)
	}
	at := map[*graph.Node]slot{}
	depends := map[*graph.Node]bool{}
	now := 0
	for i, n := range e.g.Nodes {
		if gone[n] {
			continue
		}
		part, ok := e.part[n]
		if !ok {
			part = -1
		}
		s := slot{0, part, i}
		for _, v := range reads(n) {
			if v == nil {
				continue
			}
			v = own(v)
			if v.Def == nil || v.Graph != e.g {
				continue
			}
			stretch := at[v.Def].stretch
			_, ofPart := e.part[v.Def]
			if ofPart && (part < 0 || e.joined[v]) {
				stretch++
			}
			depends[n] = depends[n] || ofPart || depends[v.Def]
			s.stretch = max(s.stretch, stretch)
		}
		if part >= 0 {
			now = max(now, s.stretch)
			s.stretch = now
		}
		at[n] = s
	}
	for i := len(e.g.Nodes) - 1; i >= 0; i-- { // others stand in front of their first reader
		n := e.g.Nodes[i]
		if _, ok := e.part[n]; gone[n] || ok || depends[n] {
			continue
		}
		var first *slot
		for _, v := range n.Out {
			if v == nil {
				continue
			}
			uses := v.Uses()
			for _, old := range stands[v] {
				uses = append(slices.Clone(uses), old.Uses()...)
			}
			for _, u := range uses {
				r := u.Node
				for r != nil && r.Graph != e.g {
					r = owner(e.g, r)
				}
				if r == nil || gone[r] {
					continue
				}
				if s := at[r]; first == nil || s.compare(*first) < 0 {
					first = &s
				}
			}
		}
		if first != nil {
			at[n] = slot{first.stretch, first.part, first.seq}
		}
	}
	slices.SortStableFunc(e.g.Nodes, func(a, b *graph.Node) int { return at[a].compare(at[b]) })
}

// owner returns the node of g in whose subgraphs n stands, nil if there is none.
func owner(g *graph.Graph, n *graph.Node) *graph.Node {
	for _, m := range g.Nodes {
		for _, s := range m.Subgraphs() {
			for x := range s.AllNodes() {
				if x == n {
					return m
				}
			}
		}
	}
	return nil
}
