package op

import (
	"slices"

	"gradtool/graph"
)

// called returns the model-local function that n calls, nil if there is none.
func called(n *graph.Node) *graph.Function {
	if n.Graph == nil || n.Graph.Model == nil {
		return nil
	}
	return n.Graph.Model.Function(n.Domain, n.Op, n.Overload)
}

// call infers the results of a call from the function's body, applied to what is known of the operands. The body itself keeps the
// types that it has, since other calls have other operands. Bodies that call functions, or with attributes that are the call's, are left
// alone, and problems inside are the business of those who look at the body.
func (in *Info) call(n *graph.Node, f *graph.Function) {
	if f.Body == nil || !plainBody(f) {
		return
	}
	type saved struct {
		v *graph.Value
		t graph.Type
	}
	var types []saved
	for g := range f.Body.Graphs() {
		for v := range g.Values() {
			types = append(types, saved{v, v.Type})
		}
	}
	defer func() {
		for _, s := range types {
			s.v.Type = s.t
		}
	}()
	body := NewInfo()
	for i, v := range f.Body.Inputs {
		x := n.Operand(i)
		if x == nil {
			continue
		}
		v.Type, _ = merge(v.Type, x.Type)
		if a := in.Const(x); a != nil {
			body.consts[v] = a
		}
		if d := in.Elems(x); d != nil {
			body.dims[v] = d
		}
	}
	body.graph(f.Body)
	for i, v := range n.Out {
		if v == nil || i >= len(f.Body.Outputs) {
			continue
		}
		y := f.Body.Outputs[i]
		t, clash := merge(v.Type, y.Type)
		if clash {
			continue
		}
		v.Type = t
		if a := body.Const(y); a != nil {
			in.consts[v] = a
		}
		if d, ok := body.dims[y]; ok {
			in.dims[v] = d
		}
	}
}

// plainBody reports whether a body stands for itself: it calls no function, and no attribute in it is the call's.
func plainBody(f *graph.Function) bool {
	for n := range f.Body.AllNodes() {
		if called(n) != nil || slices.ContainsFunc(n.Attrs, func(a *graph.Attr) bool { return a.Ref != "" }) {
			return false
		}
	}
	return true
}
