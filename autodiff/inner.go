package autodiff

import (
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// inner differentiates a graph that a node runs. The sweep emits into another graph, the backward one, which at first
// reads values of the forward graph as if it saw them. In the end each of those is replaced: by a residual, which the
// forward node hands out as one more result, or by a copy of the nodes that compute it.
type inner struct {
	*reverse                               // over the forward graph, emitting into the backward one
	c        *Ctx                          // of the node
	have     map[*graph.Value]*graph.Value // what stands in the backward graph for a forward value
	// residual makes a forward value, an input or a node's result, available in the backward graph from what the forward
	// node kept; nil where it cannot.
	residual func(v *graph.Value) *graph.Value
	early    *op.Builder // emits in front of what the sweep emitted
}

// inner returns the derivative-to-be of the graph fwd that c's node runs.
func (c *Ctx) inner(fwd *graph.Graph, name string) *inner {
	b := c.Builder.Inner(name)
	return &inner{reverse: &reverse{b: b, g: fwd, plan: c.rev.plan, policy: c.rev.policy}, c: c, have: map[*graph.Value]*graph.Value{}}
}

// cotangent returns the cotangent of v that the sweep found, zeros without one.
func (s *inner) cotangent(v *graph.Value) *graph.Value {
	if g := s.cts[v]; g != nil {
		return g
	}
	return zeros(s.b, v)
}

// finish sets the outputs of the backward graph and makes it independent of the forward graph.
func (s *inner) finish(outs ...*graph.Value) {
	s.b.Return(outs...)
	dropDead(s.b.G, 0)
	s.early = s.b.For(s.b.G)
	s.early.Role = graph.RoleRecompute
	if len(s.b.G.Nodes) > 0 {
		s.early.Before = s.b.G.Nodes[0]
	}
	for _, n := range slices.Collect(s.b.G.AllNodes()) {
		for i, v := range n.In {
			if s.foreign(v) {
				n.SetIn(i, s.resolve(v))
			}
		}
	}
	s.dropUnused()
	for _, err := range []error{s.b.Err, s.early.Err} {
		if s.c.Err == nil {
			s.c.Err = err
		}
	}
}

// dropUnused takes back results that nodes of the forward graph got for the backward one, which then read copies of
// those nodes instead.
func (s *inner) dropUnused() {
	for _, v := range s.added {
		if v.NumUses() > 0 {
			continue
		}
		n, i := v.Def, v.Index
		for _, f := range framesOf(n) {
			if i < f.carried {
				f.g.Inputs = slices.Delete(f.g.Inputs, f.inAt+i, f.inAt+i+1)
			}
			f.g.SetOutputs(slices.Delete(slices.Clone(f.g.Outputs), f.outAt+i, f.outAt+i+1)...)
			dropDead(f.g, 0)
		}
		if f := framesOf(n)[0]; i < f.carried {
			for j := f.opAt + i; j < len(n.In); j++ {
				n.SetIn(j, n.Operand(j+1))
			}
			n.TrimIn(len(n.In) - 1)
		}
		for _, name := range []string{"scan_output_axes", "scan_output_directions"} {
			if list := n.Ints(name); list != nil {
				n.SetAttr(graph.IntsAttr(name, list[:len(list)-1]...)) // a result that was added is among the last, of axis 0
			}
		}
		n.Out = slices.Delete(n.Out, i, i+1)
		for j, w := range n.Out {
			if w != nil {
				w.Index = j
			}
		}
	}
}

// foreign reports whether v belongs to the forward graph.
func (s *inner) foreign(v *graph.Value) bool { return v != nil && v.Graph == s.g }

// resolve returns what stands for the forward value v in the backward graph.
func (s *inner) resolve(v *graph.Value) *graph.Value {
	if w, ok := s.have[v]; ok {
		return w
	}
	var w *graph.Value
	switch {
	case v.Def == nil && v.Init != nil && !v.IsInput():
		w = s.early.Const(v.Init)
	case v.Def == nil || keeps(v.Def):
		w = s.residual(v)
	}
	if w == nil && v.Def != nil && !isRandom(v.Def) {
		s.copy(v.Def)
		return s.have[v]
	}
	if w == nil && s.c.Err == nil {
		s.c.Err = fmt.Errorf("the derivative needs the value %q (%s) of each iteration, which can neither be kept nor computed again", v.Name, v.Type)
	}
	s.have[v] = w
	return w
}

// copy puts a copy of the forward node n, with all it needs, in front of the backward graph.
func (s *inner) copy(n *graph.Node) {
	for _, v := range operands(n) {
		if s.foreign(v) {
			s.resolve(v)
		}
	}
	c := &graph.Cloner{To: n.Graph.Model, Prefix: s.early.Prefix + "/", Values: s.have, KeepTypes: true}
	m, err := c.Node(s.b.G, n)
	if err != nil {
		if s.early.Err == nil {
			s.early.Err = err
		}
		return
	}
	m.Meta.Set(graph.MetaRole, graph.RoleRecompute)
	if n.Name != "" {
		m.Meta.Set(graph.MetaFrom, n.Name)
	}
	s.early.Put(m)
}

// keeps reports whether results of n are kept for the backward graph where that is possible rather than computed again:
// random ones, which would come out different, and those that cost more than moving them through memory.
func keeps(n *graph.Node) bool {
	d := op.Of(n)
	return isRandom(n) || d == nil || d.Facts&(op.Elementwise|op.View|op.ShapeOnly|op.CheapRemat) == 0
}

// isRandom reports whether n, or a node that it runs, gives other results each time.
func isRandom(n *graph.Node) bool {
	if op.Of(n).Has(op.Random) {
		return true
	}
	for _, g := range n.Subgraphs() {
		if slices.ContainsFunc(slices.Collect(g.AllNodes()), func(m *graph.Node) bool { return op.Of(m).Has(op.Random) }) {
			return true
		}
	}
	return false
}

// dropDead removes the nodes of g, and of the graphs in it, whose results nobody reads: those made since the model's
// next ID was since, so that what a file holds stays.
func dropDead(g *graph.Graph, since int) {
	var dead []*graph.Node
	gone := map[*graph.Node]bool{}
	read := func(u graph.Use) bool {
		m := u.Node
		if m == nil {
			m = u.Graph.Parent
		}
		for ; m != nil && m.Graph != nil; m = m.Graph.Parent { // what runs the reader may be dead
			if gone[m] {
				return false
			}
		}
		return true
	}
	for _, n := range slices.Backward(g.Nodes) {
		if n.ID >= since && !slices.ContainsFunc(n.Out, func(v *graph.Value) bool { return v != nil && slices.ContainsFunc(v.Uses(), read) }) {
			dead = append(dead, n)
			gone[n] = true
			continue
		}
		for _, sub := range n.Subgraphs() {
			dropDead(sub, since)
		}
	}
	g.Remove(dead...)
}
