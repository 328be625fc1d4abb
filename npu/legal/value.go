package legal

import (
	"slices"

	"gradtool/graph"
)

// val is where a graph value lives: a strided view of a buffer, or one number for all elements.
type val struct {
	elem   graph.DataType // of the model
	shape  []int
	stride []int
	base   int
	buf    *Buffer
	imm    *float64 // all elements are this; there is no buffer then
	// parts, if not nil, cuts each axis into parts with strides of their own, outer first, in place of stride: a reshape
	// of a view that no single stride expresses.
	parts [][]part
}

// part is a piece of an axis: n elements, stride apart.
type part struct{ n, stride int }

// device returns the element type that stands for t in programs, Undefined if there is none.
func device(t graph.DataType) graph.DataType {
	switch t {
	case graph.Float, graph.Float16, graph.BFloat16:
		return graph.Float
	case graph.Bool, graph.Int8, graph.Uint8, graph.Int16, graph.Uint16, graph.Int32, graph.Uint32, graph.Int64, graph.Uint64:
		return graph.Int32
	}
	return graph.Undefined
}

// dev returns v's element type in the program.
func (v val) dev() graph.DataType { return device(v.elem) }

func rowMajor(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

// whole reports whether v is all of its buffer, in order.
func (v val) whole() bool {
	return v.buf != nil && v.parts == nil && v.base == 0 && prod(v.shape) == v.buf.Len && v.inOrder()
}

// inOrder reports whether v's elements follow one another.
func (v val) inOrder() bool {
	n := 1
	for i := len(v.shape) - 1; i >= 0; i-- {
		if v.shape[i] != 1 && v.stride[i] != n {
			return false
		}
		n *= v.shape[i]
	}
	return true
}

// permuted returns the view with axes in another order.
func (v val) permuted(perm []int) val {
	w := v
	w.shape = make([]int, len(perm))
	for i, p := range perm {
		w.shape[i] = v.shape[p]
	}
	if v.parts != nil {
		w.parts = make([][]part, len(perm))
		for i, p := range perm {
			w.parts[i] = v.parts[p]
		}
		return w
	}
	w.stride = make([]int, len(perm))
	for i, p := range perm {
		w.stride[i] = v.stride[p]
	}
	return w
}

// broadcast returns the view in a shape that v's is broadcast to.
func (v val) broadcast(shape []int) val {
	w := v
	off := len(shape) - len(v.shape)
	w.shape = slices.Clone(shape)
	if v.parts != nil {
		w.parts = make([][]part, len(shape))
		for i := range shape {
			if i >= off && v.shape[i-off] == shape[i] {
				w.parts[i] = v.parts[i-off]
			} else {
				w.parts[i] = []part{{shape[i], 0}}
			}
		}
		return w
	}
	w.stride = make([]int, len(shape))
	for i := range v.shape {
		if v.shape[i] == shape[off+i] {
			w.stride[off+i] = v.stride[i]
		}
	}
	return w
}

// sliced returns the view of count elements of an axis, from start on, step apart.
func (v val) sliced(axis, start, step, count int) val {
	w := v
	w.shape, w.stride = slices.Clone(v.shape), slices.Clone(v.stride)
	w.base += start * v.stride[axis]
	w.shape[axis], w.stride[axis] = count, v.stride[axis]*step
	return w
}

// pieces returns all parts of the view in order, those left out that have one element, those joined that continue each
// other.
func (v val) pieces() []part {
	var out []part
	add := func(p part) {
		last := len(out) - 1
		switch {
		case p.n == 1:
		case last >= 0 && out[last].stride == p.n*p.stride:
			out[last] = part{out[last].n * p.n, p.stride}
		default:
			out = append(out, p)
		}
	}
	for i, d := range v.shape {
		if v.parts == nil {
			add(part{d, v.stride[i]})
			continue
		}
		for _, p := range v.parts[i] {
			add(p)
		}
	}
	return out
}

// reshaped returns the view in another shape of as many elements, and false where parts cannot express it.
func (v val) reshaped(shape []int) (val, bool) {
	w := v
	w.shape, w.stride, w.parts = slices.Clone(shape), make([]int, len(shape)), nil
	if v.imm != nil {
		return w, true
	}
	list := v.pieces()
	parts := make([][]part, len(shape))
	simple := true
	for i := len(shape) - 1; i >= 0; i-- {
		d := shape[i]
		for d > 1 {
			last := &list[len(list)-1]
			take := gcd(d, last.n)
			if take != last.n && take != d {
				return w, false
			}
			parts[i] = slices.Insert(parts[i], 0, part{take, last.stride})
			d /= take
			if last.n /= take; last.n == 1 {
				list = list[:len(list)-1]
			} else {
				last.stride *= take
			}
		}
		switch len(parts[i]) {
		case 0:
			parts[i] = []part{{1, 0}}
		case 1:
			w.stride[i] = parts[i][0].stride
		default:
			simple = false
		}
	}
	if !simple {
		w.stride, w.parts = nil, parts
	}
	return w, true
}

// access returns the access to v over loop dimensions when coordinate i of v is coordinates[i]: coefficients by loop
// dimension, with an offset in the last place.
func (v val) access(coordinates [][]int) *Access {
	a := &Access{Buf: v.buf, Base: v.base}
	for i, c := range coordinates {
		last := len(c) - 1
		a.Axes = append(a.Axes, Axis{Size: v.shape[i], Stride: v.stride[i], Off: c[last], Coef: slices.Clone(c[:last])})
	}
	return a
}

// along returns the coordinate that follows loop dimension dim of dims.
func along(dims, dim int) []int {
	c := make([]int, dims+1)
	c[dim] = 1
	return c
}

// still returns the coordinate 0.
func still(dims int) []int { return make([]int, dims+1) }

// refined is a shape whose axes are cut into pieces that suit several views.
type refined struct {
	dims []int
	from []int // axis of the original shape, by dimension
}

// of returns the dimensions that axis is cut into.
func (r *refined) of(axis int) []int {
	var out []int
	for i, a := range r.from {
		if a == axis {
			out = append(out, i)
		}
	}
	return out
}

// refine cuts the axes of shape so that each view, which is broadcast to shape, has one stride on each piece. Views for
// which that fails are copied.
func (l *lowerer) refine(shape []int, views ...val) (*refined, []val) {
	views = slices.Clone(views)
	for i := range views {
		if views[i].imm == nil {
			views[i] = views[i].broadcast(shape)
		}
	}
	r := &refined{}
	for axis, d := range shape {
		cuts := []int{d} // pieces, outer first
		for i := range views {
			v := &views[i]
			if v.parts == nil || v.imm != nil {
				continue
			}
			next, ok := commonCuts(cuts, v.parts[axis])
			if !ok {
				*v = l.copyOf("copy", *v)
				continue
			}
			cuts = next
		}
		for _, c := range cuts {
			r.dims, r.from = append(r.dims, c), append(r.from, axis)
		}
	}
	for i, v := range views {
		if v.imm != nil {
			views[i] = splat(v.elem, r.dims, *v.imm)
			continue
		}
		w, ok := v.cut(r)
		if !ok {
			w, _ = l.copyOf("copy", v).cut(r)
		}
		views[i] = w
	}
	return r, views
}

// commonCuts cuts an axis, already cut into pieces, also where the parts end.
func commonCuts(pieces []int, parts []part) ([]int, bool) {
	ends := map[int]bool{} // products of inner pieces
	n := 1
	for i := len(pieces) - 1; i >= 0; i-- {
		n *= pieces[i]
		ends[n] = true
	}
	total := n
	n = 1
	for i := len(parts) - 1; i >= 0; i-- {
		n *= parts[i].n
		ends[n] = true
	}
	var sorted []int
	for e := range ends {
		sorted = append(sorted, e)
	}
	slices.Sort(sorted)
	var out []int
	at := 1
	for _, e := range sorted {
		if e == 1 {
			continue
		}
		if e%at != 0 || total%e != 0 {
			return nil, false
		}
		out = append(out, e/at)
		at = e
	}
	if len(out) == 0 {
		out = []int{1}
	}
	slices.Reverse(out)
	return out, true
}

// cut returns the view, of the shape that was refined, over the pieces.
func (v val) cut(r *refined) (val, bool) {
	w := v
	w.shape, w.stride, w.parts = slices.Clone(r.dims), make([]int, len(r.dims)), nil
	for axis := range v.shape {
		parts := []part{}
		if v.parts != nil {
			parts = slices.Clone(v.parts[axis])
		} else {
			parts = append(parts, part{v.shape[axis], v.stride[axis]})
		}
		dims := r.of(axis)
		for i := len(dims) - 1; i >= 0; i-- {
			n := r.dims[dims[i]]
			for len(parts) > 1 && parts[len(parts)-1].n == 1 {
				parts = parts[:len(parts)-1]
			}
			last := &parts[len(parts)-1]
			if last.n%n != 0 {
				return w, false
			}
			w.stride[dims[i]] = last.stride
			last.n /= n
			last.stride *= n
		}
	}
	return w, true
}
