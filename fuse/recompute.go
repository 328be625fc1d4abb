package fuse

import (
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// MetaRecomputed is the metadata of nodes that compute again what their model has already: the bytes that need not be moved because
// of it, on the last of the nodes that belong together.
const MetaRecomputed = "gradtool.recomputed.saved"

// Recomputed is an attention whose probabilities the gradient computes again, from queries, keys and masks.
type Recomputed struct {
	Value string    // the probabilities
	Nodes int       // that are computed again
	Saved graph.Dim // bytes that need not be moved: the values that the gradient read, written and read, less what is read in their place
	Work  float64   // operations that are done twice
	Why   string    // why it was left alone, "" if it was not
}

// Recompute lets the gradients of attentions compute the probabilities again where that pays, so that those cross no border of a
// cluster. It is for models whose nodes say what they are for (graph.MetaRole). The copies have graph.RoleRecompute, which [Run] takes
// for part of the gradient and which keeps equal nodes apart. Every value is what it was, bit by bit.
//
// What pays is decided by the bytes that are moved or, if the machine says how fast it is, by the time that moving them takes against
// that of computing. Of opt, Machine, Dims and Allow count.
func Recompute(m *graph.Model, opt Options) []Recomputed {
	f := newFacts(m, opt.Dims)
	var out []Recomputed
	for g := range m.Graph.Graphs() {
		p := &planner{facts: f, machine: opt.Machine, part: newPartition(g), opt: &opt, refused: map[[2]*graph.Node]error{}}
		p.isolate()
		for _, c := range slices.Clone(g.Nodes) {
			if r, ok := p.again(c); ok {
				out = append(out, r)
			}
		}
	}
	return out
}

// again lets the gradient compute again what the product c begins, if that is an attention of whose probabilities it reads.
func (p *planner) again(c *graph.Node) (Recomputed, bool) {
	between, second, ok := p.attentionFrom(c)
	if !ok {
		return Recomputed{}, false
	}
	needed, reads := p.readBehind(append([]*graph.Node{c}, between...))
	if len(reads) == 0 {
		return Recomputed{}, false
	}
	last := reads[len(reads)-1]
	r := Recomputed{Value: last.Name, Nodes: len(needed), Saved: graph.Known(0)}
	behind := p.behindOf(reads)
	for _, v := range reads {
		r.Saved = r.Saved.Add(known(p.bytes(v)).Mul(graph.Known(2)))
	}
	has := p.readWith(behind)
	for _, x := range p.border(needed) {
		if !x.result && !has[source(x.v)] {
			r.Saved = r.Saved.Sub(known(x.bytes))
		}
	}
	for _, n := range needed {
		r.Work += p.work(n)
	}
	if p.number(r.Saved) <= 0 {
		r.Why = "reading what they are computed from moves as many bytes"
		return r, true
	}
	forward := append([]*graph.Node{c, second}, between...)
	gradient := p.kernelOf(behind)
	before := p.seconds(forward) + p.seconds(gradient)
	undo, made := p.copyFor(needed, reads, behind, r.Saved)
	after := p.seconds(forward) + p.seconds(append(made, gradient...))
	switch {
	case p.machine.timed() && after >= before:
		r.Why = fmt.Sprintf("computing them again takes longer than moving them, %.3g us in place of %.3g", after*1e6, before*1e6)
		undo()
	case p.opt.Allow != nil && !p.opt.Allow("recompute %s", last.Name):
		undo()
		return Recomputed{}, false
	}
	return r, true
}

// seconds is the estimated time of a kernel for the nodes, 0 where the machine says nothing.
func (p *planner) seconds(nodes []*graph.Node) float64 {
	if !p.machine.timed() {
		return 0
	}
	return p.cost(nodes).Seconds
}

// attentionFrom returns the second product of an attention of which c is the first, and the nodes between.
func (p *planner) attentionFrom(c *graph.Node) (between []*graph.Node, second *graph.Node, ok bool) {
	if !p.isForwardProduct(c) {
		return nil, nil, false
	}
	_, products := p.flow(c, p.part.succ)
	for _, d := range products {
		if !p.isForwardProduct(d) {
			continue
		}
		if between := p.path(c, d); len(between) > 0 && p.isSoftmax(between) {
			return between, d, true
		}
	}
	return nil, nil, false
}

// isForwardProduct reports whether n is a product of the forward part.
func (p *planner) isForwardProduct(n *graph.Node) bool {
	return p.kind(n) == op.KindContract && p.phase(n) != backwardPhase && p.phase(n) != optimizerPhase && !p.part.of[n].fixed
}

// readBehind returns the values of the nodes that the gradient reads, and those of the nodes that compute them, in the order of the
// graph.
func (p *planner) readBehind(nodes []*graph.Node) (needed []*graph.Node, reads []*graph.Value) {
	slices.SortFunc(nodes, func(a, b *graph.Node) int { return p.part.index[a] - p.part.index[b] })
	want := map[*graph.Node]bool{}
	for _, n := range slices.Backward(nodes) {
		for _, v := range n.Out {
			if v == nil {
				continue
			}
			for _, u := range v.Uses() {
				if u.Node == nil || u.Node.Graph != n.Graph {
					continue
				}
				if p.phase(u.Node) == backwardPhase && !slices.Contains(reads, v) {
					reads = append(reads, v)
				}
				want[n] = want[n] || want[u.Node] || p.phase(u.Node) == backwardPhase
			}
		}
		if want[n] {
			needed = append(needed, n)
		}
	}
	slices.Reverse(needed)
	slices.Reverse(reads)
	return needed, reads
}

// behindOf returns the nodes of the gradient that read one of the values.
func (p *planner) behindOf(reads []*graph.Value) []*graph.Node {
	var out []*graph.Node
	for _, v := range reads {
		for _, u := range v.Uses() {
			if u.Node != nil && u.Node.Graph == p.part.g && p.phase(u.Node) == backwardPhase && !slices.Contains(out, u.Node) {
				out = append(out, u.Node)
			}
		}
	}
	slices.SortFunc(out, func(a, b *graph.Node) int { return p.part.index[a] - p.part.index[b] })
	return out
}

// kernelOf returns the nodes of the gradient that the given ones begin, up to its products: one kernel, of which what is computed
// again is part.
func (p *planner) kernelOf(nodes []*graph.Node) []*graph.Node {
	var out []*graph.Node
	for _, n := range nodes {
		through, products := p.flow(n, p.part.succ)
		for _, k := range slices.Concat([]*graph.Node{n}, through, products) {
			if p.phase(k) == backwardPhase && !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

// readWith returns what the gradient that the nodes begin reads, apart from shape and order of axes.
func (p *planner) readWith(nodes []*graph.Node) map[*graph.Value]bool {
	out := map[*graph.Value]bool{}
	for _, k := range p.kernelOf(nodes) {
		for _, v := range k.In {
			if v != nil {
				out[source(v)] = true
			}
		}
	}
	return out
}

// copyFor puts copies of the nodes in front of the first of the nodes behind, which read the copies' results from then on. It
// returns the copies, and how to take them back.
func (p *planner) copyFor(nodes []*graph.Node, reads []*graph.Value, behind []*graph.Node, saved graph.Dim) (undo func(), made []*graph.Node) {
	g := p.part.g
	twin := map[*graph.Value]*graph.Value{}
	for _, n := range nodes {
		in := slices.Clone(n.In)
		for i, v := range in {
			if w := twin[v]; v != nil && w != nil {
				in[i] = w
			}
		}
		names := make([]string, len(n.Out))
		for i, v := range n.Out {
			if v != nil {
				names[i] = g.Model.Fresh(v.Name + "/again")
			}
		}
		k := g.NewNode(n.Domain, n.Op, in, names)
		k.Name, k.Overload = g.Model.FreshNode(n.Name+"/again"), n.Overload
		for _, a := range n.Attrs {
			k.SetAttr(bare(a))
		}
		k.Meta.Set(graph.MetaRole, graph.RoleRecompute)
		if n.Name != "" {
			k.Meta.Set(graph.MetaFrom, n.Name)
		}
		for i, v := range n.Out {
			if v != nil {
				k.Out[i].Type = v.Type
				twin[v] = k.Out[i]
				p.twin[k.Out[i]] = p.twin[v]
			}
		}
		made = append(made, k)
	}
	made[len(made)-1].Meta.Set(MetaRecomputed, saved.String())
	var moved []func()
	for _, v := range reads {
		for _, u := range slices.Clone(v.Uses()) {
			if u.Node != nil && slices.Contains(behind, u.Node) {
				u.Node.SetIn(u.Index, twin[v])
				moved = append(moved, func() { u.Node.SetIn(u.Index, v) })
			}
		}
	}
	g.InsertBefore(behind[0], made...)
	return func() {
		for _, back := range moved {
			back()
		}
		g.Remove(made...)
	}, made
}
