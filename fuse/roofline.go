package fuse

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// Cost is the estimated time of a kernel in seconds: that of its arithmetic or of its memory traffic, whichever takes longer
// (Williams, Waterman and Patterson, "Roofline", 2009), after what it takes to begin.
type Cost struct {
	Seconds    float64
	Arithmetic bool // arithmetic takes longer than memory traffic
}

// timed reports whether the machine says how fast it is.
func (m Machine) timed() bool { return m.Bandwidth > 0 && m.Speed > 0 }

// cost estimates one kernel for the nodes.
func (p *planner) cost(nodes []*graph.Node) Cost {
	bytes, work := 0.0, 0.0
	for _, c := range p.border(nodes) {
		bytes += c.weight
	}
	for _, n := range nodes {
		work += p.work(n)
	}
	memory, arithmetic := bytes/p.machine.Bandwidth, work/p.machine.Speed
	return Cost{p.machine.Launch + max(memory, arithmetic), arithmetic > memory}
}

// work returns the floating-point operations of n. What has no known shape counts nothing.
func (f *facts) work(n *graph.Node) float64 {
	if w, ok := f.works[n]; ok {
		return w
	}
	w := 0.0
	if !f.free(n) && !f.isIndex(n) {
		k := f.canonical(n)
		in, ok := f.sizes(k.In)
		out, ok2 := f.sizes(k.Out)
		if ok && ok2 {
			c := &op.CostCtx{Node: k, In: in, Out: out}
			if d := op.Of(k); k != n && d != nil && d.Cost != nil {
				w = d.Cost(c)
			} else {
				w = c.OutLen(0)
			}
		}
	}
	f.works[n] = w
	return w
}

// canonical returns the node of the copy that stands for n, in the form that cost functions know; n itself without one.
func (f *facts) canonical(n *graph.Node) *graph.Node {
	for _, v := range n.Out {
		if v == nil || f.twin[v] == nil {
			continue
		}
		if k := f.twin[v].Def; k != nil && k.Op == n.Op && graph.StdDomain(k.Domain) == graph.StdDomain(n.Domain) {
			return k
		}
	}
	return n
}

// sizes returns the shapes of values as numbers; ok is false where one is not known.
func (f *facts) sizes(values []*graph.Value) (out [][]int, ok bool) {
	for _, v := range values {
		if v == nil {
			out = append(out, nil)
			continue
		}
		t := v.Type
		if f.twin[v] != nil {
			t = f.typ(v)
		}
		if !t.IsTensor() || t.Shape == nil {
			return nil, false
		}
		s := make([]int, len(t.Shape))
		for i, d := range t.Shape {
			n, ok := estimate(d, f.dims)
			if !ok || n < 0 {
				return nil, false
			}
			s[i] = int(n)
		}
		out = append(out, s)
	}
	return out, true
}
