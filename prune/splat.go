package prune

import (
	"math"

	"gradtool/graph"
	"gradtool/graph/op"
)

// splat returns the element that v repeats, as a scalar, nil if v does not or has no elements.
func splat(known func(*graph.Value) *op.Array, v *graph.Value) *op.Array {
	if v == nil || v.Def != nil && v.Def.Meta.Get(graph.MetaBarrier) != "" {
		return nil
	}
	if a := known(v); a != nil {
		return uniform(a)
	}
	n := v.Def
	switch {
	case n == nil:
	case n.Is("Expand") && len(n.In) == 2:
		if a := known(n.In[0]); a != nil {
			return uniform(a)
		}
	case n.Is("ConstantOfShape"):
		a := n.Attr("value")
		if a == nil {
			return op.NewArray(graph.Float, nil, false)
		}
		if a.T != nil && a.Ref == "" && a.T.Len() == 1 {
			if x, err := op.FromTensor(a.T, false); err == nil {
				return x.WithShape(nil)
			}
		}
	}
	return nil
}

// uniform returns the element that all of a's are, bit by bit, as a scalar; nil without one.
func uniform(a *op.Array) *op.Array {
	n := a.Len()
	if n == 0 || a.Str != nil || a.C128 != nil || !a.IsTensor() {
		return nil
	}
	first := op.NewArray(a.Elem, nil, a.F64 != nil && a.Elem != graph.Double)
	switch {
	case a.F32 != nil:
		for _, x := range a.F32 {
			if math.Float32bits(x) != math.Float32bits(a.F32[0]) {
				return nil
			}
		}
		first.F32[0] = a.F32[0]
	case a.F64 != nil:
		for _, x := range a.F64 {
			if math.Float64bits(x) != math.Float64bits(a.F64[0]) {
				return nil
			}
		}
		first.F64[0] = a.F64[0]
	case a.I64 != nil:
		for _, x := range a.I64 {
			if x != a.I64[0] {
				return nil
			}
		}
		first.I64[0] = a.I64[0]
	default:
		return nil
	}
	return first
}
