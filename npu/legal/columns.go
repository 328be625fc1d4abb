package legal

import (
	"slices"

	"gradtool/graph"
)

// The columns of a convolution that is written as a product are a concatenation of slices of one image, each a step further: a view, in which the
// axis that is concatenated counts by window.

// columns returns the view that a concatenation is, and false if it is none: its operands must be views of one buffer that differ in where they
// begin, by steps of one size, or by those and larger ones in turn.
func (l *lowerer) columns(n *graph.Node, axis int) (val, bool) {
	var list []val
	var begin []int
	for _, o := range n.In {
		if prod(l.shapeOf(o)) == 0 {
			continue
		}
		v := l.value(o)
		if v.imm != nil || v.parts != nil || len(list) > 0 && (v.buf != list[0].buf || v.elem != list[0].elem || !slices.Equal(v.shape, list[0].shape) || !slices.Equal(v.stride, list[0].stride)) {
			return val{}, false
		}
		list, begin = append(list, v), append(begin, v.base)
	}
	if len(list) < 2 {
		return val{}, false
	}
	steps, ok := digits(begin)
	if !ok {
		return val{}, false
	}
	w := list[0]
	w.shape = slices.Clone(w.shape)
	w.parts = make([][]part, len(w.shape))
	for i, d := range w.shape {
		w.parts[i] = []part{{d, w.stride[i]}}
	}
	w.parts[axis] = append(steps, w.parts[axis]...)
	w.shape[axis] *= len(list)
	w.stride = nil
	if one := (val{shape: w.shape[axis : axis+1], parts: w.parts[axis : axis+1]}).pieces(); len(one) == 1 { // slices that continue each other
		w.stride, w.parts = slices.Clone(list[0].stride), nil
		w.stride[axis] = one[0].stride
	}
	return w, true
}

// digits returns counts and steps, outer first, that lead through a list of numbers in order, and false if there are none.
func digits(at []int) ([]part, bool) {
	if len(at) == 1 {
		return nil, true
	}
	step := at[1] - at[0]
	if step < 0 {
		return nil, false
	}
	n := 2
	for n < len(at) && at[n]-at[n-1] == step {
		n++
	}
	if len(at)%n != 0 {
		return nil, false
	}
	var first []int
	for i := 0; i < len(at); i += n {
		first = append(first, at[i])
		for j := range n {
			if at[i+j] != at[i]+j*step {
				return nil, false
			}
		}
	}
	outer, ok := digits(first)
	return append(outer, part{n, step}), ok
}
