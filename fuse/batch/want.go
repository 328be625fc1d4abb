package batch

import (
	"errors"

	"gradtool/graph"
)

// available reports why a value cannot be had in parts at a place, nil if it can.
func (e *emitter) available(v *graph.Value, at *place) error {
	if e.placeOf(v).same(at) && e.seed[v] == nil || at.sum {
		return nil
	}
	if at.unit != nil {
		if p := e.placeOf(v); p != nil && p.same(at) {
			return nil
		}
		return errors.New("its operand holds positions in the whole batch")
	}
	if _, ok := at.outer.Int(); !ok {
		return errors.New("an operand has the batch in blocks of unknown number")
	}
	return nil
}

// want returns part k of a value of the given graph.
func (e *emitter) want(v *graph.Value, at *place, k int) *graph.Value {
	if p := e.at[v]; p != nil && p.same(at) {
		return e.pieces[v][k]
	}
	var c *cut
	list := e.cuts[v]
	for i := range list {
		if list[i].at.same(at) {
			c = &list[i]
		}
	}
	if c == nil {
		e.cuts[v] = append(list, cut{at, make([]*graph.Value, e.parts)})
		c = &e.cuts[v][len(list)]
	}
	if c.parts[k] != nil {
		return c.parts[k]
	}
	make := e.generator(v)
	if make == nil || e.at[v] != nil {
		w := e.entire(v)
		make = func(at *place, k int) *graph.Value { return e.slice(w, at, k) }
	}
	for _, w := range operandsOf(v) {
		e.entire(w)
	}
	begin := e.m.NextID()
	c.parts[k] = make(at, k)
	e.claim(begin, k)
	return c.parts[k]
}

// operandsOf returns what the node that defines v reads.
func operandsOf(v *graph.Value) (list []*graph.Value) {
	if v.Def == nil {
		return nil
	}
	for _, w := range v.Def.In {
		if w != nil {
			list = append(list, w)
		}
	}
	return list
}

// slice cuts part k out of a whole value.
func (e *emitter) slice(v *graph.Value, at *place, k int) *graph.Value {
	prefix := e.b.Prefix
	e.b.Prefix = "batch/part"
	defer func() { e.b.Prefix = prefix }()
	axis, x := at.axis, v
	outer, _ := at.outer.Int()
	if outer != 1 {
		x = e.blocks(v, at, outer)
		axis++
	}
	from, to := e.endOf(k), e.endOf(k+1)
	if _, ok := at.inner.Int(); ok {
		from, to = e.times(from, at.inner), e.times(to, at.inner)
	} else {
		each := e.b.Div(e.b.DimOf(x, axis), e.b.Binary("Max", e.samples(), e.b.Ints(1)))
		from, to = e.b.Mul(from, each), e.b.Mul(to, each)
	}
	y := e.b.Slice(x, from, to, e.b.Ints(int64(axis)), nil)
	if outer != 1 {
		y = e.unblock(y, at.axis)
	}
	y.Type.Shape = y.Type.Shape.Clone()
	y.Type.Shape[at.axis] = at.size(e.sizes[k])
	return y
}

// generator returns what makes parts of a whole value that is the same everywhere along the batch, nil for others.
func (e *emitter) generator(v *graph.Value) func(at *place, k int) *graph.Value {
	n := v.Def
	if n == nil || n.Graph != e.g {
		return nil
	}
	operand := 1
	switch {
	case n.Is("ConstantOfShape") && n.Meta.Get(graph.MetaBarrier) == "":
		operand = 0
	case n.Is("Expand") && n.In[0].Type.Shape != nil && v.Type.Shape != nil:
	default:
		return nil
	}
	return func(at *place, k int) *graph.Value {
		in := append([]*graph.Value{}, n.In...)
		for i := range in {
			in[i] = e.entire(in[i])
		}
		s := v.Type.Shape
		length := len(s)
		if operand == 1 {
			x := n.In[0].Type.Shape
			i := align(at.axis, len(s), len(x))
			size, ok := int64(0), len(n.In[1].Type.Shape) == 1
			if ok {
				size, ok = n.In[1].Type.Shape[0].Int()
			}
			length = int(size)
			if i >= 0 {
				d, known := x[i].Int()
				ok = ok && known && d == 1
			}
			if !ok || align(at.axis, len(s), length) < 0 {
				return e.slice(e.entire(v), at, k)
			}
		}
		in[operand] = e.partShape(in[operand], length, s, at, k)
		y := e.copy(n, in, nil, k)[0]
		if operand == 0 { // equal ones, merged, would be kept from part to part
			y.Def.Meta.Set(graph.MetaRole, graph.RoleRecompute)
		}
		return y
	}
}

// partShape returns the shape of part k of a value of shape s, whose last axes the int64 vector whole of n elements tells for the
// whole batch.
func (e *emitter) partShape(whole *graph.Value, n int, s graph.Shape, at *place, k int) *graph.Value {
	var dims []*graph.Value
	for i := range n {
		axis := align(i, n, len(s))
		d, ok := s[axis].Int()
		switch {
		case axis == at.axis:
			dims = append(dims, e.extent(whole, i, at, k))
		case ok:
			dims = append(dims, e.b.Ints(d))
		default:
			dims = append(dims, e.element(whole, i))
		}
	}
	return e.vector(dims)
}

// element returns element i of an int64 vector as a vector.
func (e *emitter) element(v *graph.Value, i int) *graph.Value {
	return e.b.Slice(v, e.b.Ints(int64(i)), e.b.Ints(int64(i+1)), e.b.Ints(0), nil)
}

// extent returns the size of the batch's axis in part k, where element i of whole is that for the whole batch.
func (e *emitter) extent(whole *graph.Value, i int, at *place, k int) *graph.Value {
	if n, ok := at.size(e.sizes[k]).Int(); ok {
		return e.b.Ints(n)
	}
	if _, ok := at.outer.Mul(at.inner).Int(); ok {
		return e.times(e.sizeOf(k), at.outer.Mul(at.inner))
	}
	each := e.b.Div(e.element(whole, i), e.b.Binary("Max", e.samples(), e.b.Ints(1)))
	return e.b.Mul(each, e.sizeOf(k))
}
