package batch

import (
	"slices"

	"gradtool/graph"
)

// entire returns what stands for a value as a whole.
func (e *emitter) entire(v *graph.Value) *graph.Value {
	if w := e.whole[v]; w != nil {
		return w
	}
	parts := e.pieces[v]
	if parts == nil {
		return v
	}
	if e.at[v].sum {
		return e.total(v)
	}
	w := e.concat(parts, e.at[v])
	e.whole[v], e.joined[w] = w, true
	e.res.Joined = append(e.res.Joined, v.Name)
	return w
}

// concat joins the parts of a value.
func (e *emitter) concat(parts []*graph.Value, at *place) *graph.Value {
	role := e.b.Role
	e.b.Role, e.b.Prefix = parts[0].Def.Meta.Get(graph.MetaRole), "batch/whole"
	defer func() { e.b.Role, e.b.Prefix = role, "" }()
	parts = append([]*graph.Value{}, parts...)
	outer, _ := at.outer.Int()
	for k, v := range parts {
		if at.unit != nil && k > 0 { // positions count from the beginning of the whole
			v = e.b.Add(v, e.b.Cast(e.positions(at, k), v.Type.Elem))
		}
		if outer != 1 {
			v = e.blocks(v, at, outer)
		}
		parts[k] = v
	}
	if outer == 1 {
		return e.b.Concat(int64(at.axis), parts...)
	}
	return e.unblock(e.b.Concat(int64(at.axis)+1, parts...), at.axis)
}

// positions returns how many positions the parts in front of part k have, as a vector.
func (e *emitter) positions(at *place, k int) *graph.Value {
	if _, ok := at.unit.Int(); ok {
		return e.times(e.endOf(k), *at.unit)
	}
	last := e.parts - 1 // the last part has samples if any has
	inner, _ := exact(at.in.Type.Shape[0], e.batch)
	all := e.b.Unary("Size", e.want(at.in, &place{outer: one, inner: inner}, last))
	each := e.b.Div(all, e.b.Binary("Max", e.sizeOf(last), e.b.Ints(1)))
	return e.b.Mul(e.endOf(k), each)
}

// total adds up the terms of a value, each as soon as it is there.
func (e *emitter) total(v *graph.Value) *graph.Value {
	before, role := e.b.Before, e.b.Role
	defer func() { e.b.Before, e.b.Role = before, role }()
	terms := e.pieces[v]
	sum := terms[0]
	for k, t := range terms[1:] {
		e.b.Role = t.Def.Meta.Get(graph.MetaRole)
		e.b.Before = nil
		if at := slices.Index(e.g.Nodes, t.Def) + 1; at < len(e.g.Nodes) {
			e.b.Before = e.g.Nodes[at]
		}
		sum = e.b.Add(sum, t)
		e.part[sum.Def] = k + 1
	}
	e.whole[v], e.joined[sum] = sum, true
	e.res.Summed++
	return sum
}

// summand reports whether a value is read by additions only, so that its terms may be added to those of others first.
func summand(v *graph.Value) bool {
	for _, u := range v.Uses() {
		if u.Node == nil || !u.Node.Is("Add") || u.Node.Graph != v.Graph {
			return false
		}
	}
	return v.NumUses() > 0
}

// blocks makes an axis of blocks into two.
func (e *emitter) blocks(v *graph.Value, at *place, outer int64) *graph.Value {
	var dims []*graph.Value
	for i := range v.Type.Shape {
		if i != at.axis {
			dims = append(dims, e.b.DimOf(v, i))
			continue
		}
		dims = append(dims, e.b.Ints(outer))
		if n, ok := v.Type.Shape[i].Int(); ok {
			dims = append(dims, e.b.Ints(n/outer))
		} else {
			dims = append(dims, e.b.Div(e.b.DimOf(v, i), e.b.Ints(outer)))
		}
	}
	return e.b.Op("Reshape", []*graph.Value{v, e.vector(dims)}, graph.IntAttr("allowzero", 1))
}

// unblock undoes blocks.
func (e *emitter) unblock(v *graph.Value, axis int) *graph.Value {
	var dims []*graph.Value
	for i := range v.Type.Shape {
		switch {
		case i == axis+1:
		case i != axis:
			dims = append(dims, e.b.DimOf(v, i))
		default:
			x, ok1 := v.Type.Shape[i].Int()
			y, ok2 := v.Type.Shape[i+1].Int()
			if ok1 && ok2 {
				dims = append(dims, e.b.Ints(x*y))
			} else {
				dims = append(dims, e.b.Mul(e.b.DimOf(v, i), e.b.DimOf(v, i+1)))
			}
		}
	}
	return e.b.Op("Reshape", []*graph.Value{v, e.vector(dims)}, graph.IntAttr("allowzero", 1))
}

// vector joins int64 vectors of one element: a constant if all are.
func (e *emitter) vector(dims []*graph.Value) *graph.Value {
	var list []int64
	for _, d := range dims {
		a := e.info.Const(d)
		if a == nil || a.Len() != 1 {
			return e.b.Concat(0, dims...)
		}
		list = append(list, a.I64[0])
	}
	return e.b.Ints(list...)
}
