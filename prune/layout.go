package prune

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// ruleLayout is the name under which moved Transposes are counted.
const ruleLayout = "move-transposes"

// maxRegion bounds the nodes that Transposes are moved across at once.
const maxRegion = 200

// layouts moves Transposes behind the operators that read them, where that leaves fewer nodes: because Transposes of several
// operands become one, because one meets another that undoes it, or because a reduction leaves nothing to transpose.
//
// From a Transpose a region of nodes is grown that compute the same, axes aside, from what was transposed: element-wise
// operators and those of package file layout_through.go. What leaves the region is transposed there. Nodes whose results
// cost more than they save are then taken out of the region again, and the region is rewritten if nodes remain to be saved.
// No element is computed from other elements or in another order.
func (p *pruner) layouts() error {
	for _, root := range roots(p.m) {
		for g := range root.Graphs() {
			for _, n := range slices.Clone(g.Nodes) {
				if p.stopped {
					return nil
				}
				if !n.Is("Transpose") || n.Graph != g || refers(n) || len(n.Out) != 1 || n.Out[0] == nil || n.Out[0].NumUses() == 0 {
					continue
				}
				r := p.region(n)
				if r != nil && r.gain() <= 0 {
					p.miss("%s: node %s: moving it across the %d nodes behind it saves none", ruleLayout, label{n}, r.crossed)
				}
				for r != nil && r.gain() > 0 && p.allow("%s from %s", ruleLayout, label{n}) {
					bad, err := r.apply()
					if err != nil {
						return err
					}
					if bad == nil {
						p.stats.rule(ruleLayout, 1)
						break
					}
					r = r.without(bad)
				}
			}
		}
	}
	return nil
}

// region is a set of nodes across which Transposes can be moved.
type region struct {
	*pruner
	g     *graph.Graph
	perm  map[*graph.Value][]int64 // v = Transpose(what takes its place, perm), for the results of entries and nodes
	entry map[*graph.Value]bool    // results of Transposes whose operands are read instead
	nodes []*graph.Node            // in the order in which they were added: operands first
	in    map[*graph.Node]bool

	crossed int // nodes that could be crossed
}

// region grows a region from the Transpose n, nil if nothing can be crossed.
func (p *pruner) region(n *graph.Node) *region {
	perm := permOf(n)
	if perm == nil || n.In[0] == nil {
		return nil
	}
	r := &region{pruner: p, g: n.Graph, perm: map[*graph.Value][]int64{n.Out[0]: perm}, entry: map[*graph.Value]bool{n.Out[0]: true}, in: map[*graph.Node]bool{}}
	for queue := values(n.Out[0]); len(queue) > 0 && len(r.nodes) < maxRegion; queue = queue[1:] {
		for _, u := range queue[0].Uses() {
			if u.Node == nil || u.Node.Graph != r.g || r.in[u.Node] || u.Node.Is("Transpose") {
				continue
			}
			t := r.through(u.Node)
			if t == nil {
				continue
			}
			for _, v := range t.entries {
				r.perm[v], r.entry[v] = permOf(v.Def), true
				queue = append(queue, v)
			}
			r.nodes, r.in[u.Node] = append(r.nodes, u.Node), true
			for i, v := range u.Node.Out {
				if v != nil {
					r.perm[v] = t.perms[i]
					queue = append(queue, v)
				}
			}
		}
	}
	if len(r.nodes) == 0 {
		return nil
	}
	r.crossed = len(r.nodes)
	r.shrink()
	return r
}

// leaves reports whether somebody outside of the region reads v as it is.
func (r *region) leaves(v *graph.Value) bool {
	return slices.ContainsFunc(v.Uses(), func(u graph.Use) bool {
		return u.Node == nil || u.Node.Graph != r.g || !r.in[u.Node] && !r.merges(u.Node)
	})
}

// merges reports whether n is a Transpose behind the region, which can read what takes its operand's place.
func (r *region) merges(n *graph.Node) bool {
	return n.Is("Transpose") && n.Graph == r.g && permOf(n) != nil && !refers(n) && len(n.Out) == 1 && n.Out[0] != nil
}

// gain returns how many nodes rewriting the region saves.
func (r *region) gain() int {
	total := 0
	for v, perm := range r.perm {
		switch {
		case r.entry[v] && !r.leaves(v):
			total++
		case !r.entry[v] && !identity(perm) && r.leaves(v):
			total--
		}
		for _, u := range v.Uses() {
			if u.Node != nil && u.Node.Graph == r.g && r.merges(u.Node) && !r.entry[u.Node.Out[0]] && !u.Node.Out[0].IsOutput() && identity(composed(perm, permOf(u.Node))) {
				total++
			}
		}
	}
	return total
}

// shrink takes nodes out of the region, with those that depend on them, as long as that costs none: of two regions that
// save as much the smaller one is better, and the way to one that saves more may lead across it.
func (r *region) shrink() {
	for best := r.gain(); len(r.nodes) > 0; {
		improved := false
		for i := len(r.nodes) - 1; i >= 0; i-- {
			smaller := r.without(r.nodes[i])
			if g := smaller.gain(); g >= best {
				*r, best, improved = *smaller, g, true
				break
			}
		}
		if !improved {
			return
		}
	}
}

// without returns the region without n and the nodes that depend on it.
func (r *region) without(n *graph.Node) *region {
	s := &region{pruner: r.pruner, g: r.g, perm: map[*graph.Value][]int64{}, entry: map[*graph.Value]bool{}, in: map[*graph.Node]bool{}, crossed: r.crossed}
	gone := map[*graph.Value]bool{}
	for _, m := range r.nodes {
		out := m == n || slices.ContainsFunc(m.In, func(v *graph.Value) bool { return gone[v] })
		for _, v := range m.Out {
			switch {
			case v == nil:
			case out:
				gone[v] = true
			default:
				s.perm[v] = r.perm[v]
			}
		}
		if !out {
			s.nodes, s.in[m] = append(s.nodes, m), true
		}
	}
	for v := range r.entry {
		if slices.ContainsFunc(v.Uses(), func(u graph.Use) bool { return u.Node != nil && s.in[u.Node] }) {
			s.perm[v], s.entry[v] = r.perm[v], true
		}
	}
	return s
}

// identity reports whether a permutation moves nothing.
func identity(perm []int64) bool {
	for i, a := range perm {
		if a != int64(i) {
			return false
		}
	}
	return true
}

// composed returns the permutation of Transpose(Transpose(x, inner), outer).
func composed(inner, outer []int64) []int64 {
	out := make([]int64, len(outer))
	for i, a := range outer {
		out[i] = inner[a]
	}
	return out
}

// inverse returns the permutation that undoes perm.
func inverse(perm []int64) []int64 {
	out := make([]int64, len(perm))
	for i, a := range perm {
		out[a] = int64(i)
	}
	return out
}

// apply rewrites the region. It changes nothing if a node of the region turns out to be certain to fail at run time, and
// returns that node.
func (r *region) apply() (*graph.Node, error) {
	first := r.g.Model.NextID()
	order := map[*graph.Node]int{}
	for i, n := range r.g.Nodes {
		order[n] = i
	}
	slices.SortStableFunc(r.nodes, func(a, b *graph.Node) int { return order[a] - order[b] })
	plain := map[*graph.Value]*graph.Value{} // what takes a value's place, before it is transposed
	var old []*graph.Node
	for v := range r.entry {
		plain[v] = v.Def.In[0]
	}
	var kept []*graph.Value // those that are read outside, in order
	for _, n := range r.nodes {
		t := r.through(n)
		if t == nil {
			return nil, reason("internal error: %s cannot be crossed by a Transpose any more", n.Label())
		}
		b := r.builder(n)
		outs := t.build(b, func(v *graph.Value) *graph.Value { return plain[v] })
		if b.Err != nil {
			r.g.Remove(slices.DeleteFunc(slices.Clone(r.g.Nodes), func(m *graph.Node) bool { return m.ID < first })...)
			return n, nil
		}
		for i, v := range n.Out {
			if v != nil {
				plain[v] = outs[i]
			}
		}
		outs[0].Def.Name = n.Name // which goes
		old = append(old, n)
		for _, v := range n.Out {
			if v != nil {
				kept = append(kept, v)
			}
		}
	}
	// Transposes behind the region read its plain values. What others read is transposed after the node that made it.
	var behind []*graph.Node
	for _, n := range r.g.Nodes {
		if r.merges(n) && plain[n.In[0]] != nil && !r.entry[n.Out[0]] {
			behind = append(behind, n)
		}
	}
	for _, n := range behind {
		x, perm := plain[n.In[0]], composed(r.perm[n.In[0]], permOf(n))
		y := n.Out[0]
		if identity(perm) && !y.IsOutput() {
			y.ReplaceUses(x)
		} else {
			b := r.builder(n)
			z := b.Op("Transpose", values(x), graph.IntsAttr("perm", perm...))
			if b.Err != nil {
				return nil, reason("internal error: moving a Transpose to %s: %w", n.Label(), b.Err)
			}
			z.Def.Name = n.Name // which goes
			y.TakeOver(z)
		}
		old = append(old, n)
	}
	gone := map[*graph.Node]bool{}
	for _, n := range old {
		gone[n] = true
	}
	for _, v := range kept {
		read := slices.ContainsFunc(v.Uses(), func(u graph.Use) bool { return u.Node == nil || !gone[u.Node] })
		if !read {
			continue
		}
		x := plain[v]
		if identity(r.perm[v]) {
			if v.IsOutput() {
				v.TakeOver(x)
			} else {
				v.ReplaceUses(x)
			}
			continue
		}
		b := r.builder(v.Def)
		z := b.Op("Transpose", values(x), graph.IntsAttr("perm", r.perm[v]...))
		if b.Err != nil {
			return nil, reason("internal error: transposing %q: %w", v.Name, b.Err)
		}
		v.TakeOver(z)
	}
	for _, n := range slices.Backward(old) {
		clear1(n)
	}
	r.g.Remove(old...)
	return nil, nil
}

// builder returns a builder of nodes that take n's place, in front of it.
func (r *region) builder(n *graph.Node) *op.Builder {
	b := op.NewBuilder(r.g, r.info)
	b.Before, b.Prefix = n, n.Name
	b.Role = n.Meta.Get(graph.MetaRole)
	if b.From = n.Meta.Get(graph.MetaFrom); b.From == "" {
		b.From = n.Name
	}
	return b
}
