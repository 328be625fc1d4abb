package batch

import (
	"slices"

	"gradtool/graph"
)

// settle joins what is wanted whole at the end, removes what is computed in parts, and orders the nodes.
func (e *emitter) settle() error {
	for _, v := range e.g.Outputs {
		e.entire(v)
	}
	e.arrange()
	taken := map[*graph.Value]*graph.Value{}
	for i := len(e.gone) - 1; i >= 0; i-- {
		n := e.gone[i]
		outs := append([]*graph.Value{}, n.Out...)
		for _, v := range outs {
			if v == nil {
				continue
			}
			if w := e.whole[v]; w != nil {
				e.replace(v, w, taken)
			}
		}
	}
	e.g.Remove(e.gone...)
	e.sweep()
	return e.b.Err
}

// sweep removes nodes that nothing reads any more: what parts of have taken the place of.
func (e *emitter) sweep() {
	var dead []*graph.Node
	for i := len(e.g.Nodes) - 1; i >= 0; i-- {
		if n := e.g.Nodes[i]; !used(n) && !e.idle[n] {
			for j := range n.In {
				n.SetIn(j, nil)
			}
			dead = append(dead, n)
		}
	}
	e.g.Remove(dead...)
}

// replace lets w be v, or be read in its place where it is more than that.
func (e *emitter) replace(v, w *graph.Value, taken map[*graph.Value]*graph.Value) {
	t := taken[w]
	switch {
	case t == nil && w.Def != nil && !w.Def.Is("Constant"):
		v.TakeOver(w)
		taken[w] = v
		return
	case t != nil: // w is t by now
		w = t
	}
	if !v.IsOutput() {
		v.ReplaceUses(w)
		return
	}
	for _, u := range slices.Clone(v.Uses()) {
		if u.Node != nil {
			u.Node.SetIn(u.Index, w)
		}
	}
	v.TakeOver(e.b.Unary("Identity", w))
}
