package legal

import (
	"cmp"
	"slices"
)

// separate makes axes of their own of dimensions that one axis counts by, one behind the other, as digits of a number: a tile
// of some of the digits is then a box of few elements, not the stretch from the first to the last.
func (a *Access) separate(dims []int) {
	if !a.Inside(dims) {
		return
	}
	var out []Axis
	for _, x := range a.Axes {
		type term struct{ dim, coef int }
		var terms []term
		plain := true
		for d, c := range x.Coef {
			if c != 0 && dims[d] > 1 {
				terms = append(terms, term{d, c})
				plain = plain && c > 0
			}
		}
		if !plain || len(terms) < 2 {
			out = append(out, x)
			continue
		}
		slices.SortStableFunc(terms, func(p, q term) int { return cmp.Compare(p.coef, q.coef) })
		a.Base += x.Off * x.Stride
		reach := 0
		var axis *Axis
		for _, t := range terms {
			if axis == nil || t.coef > reach {
				if axis != nil {
					out = append(out, *axis)
				}
				axis = &Axis{Stride: x.Stride, Coef: make([]int, len(dims)), Size: 1}
			}
			axis.Coef[t.dim] = t.coef
			axis.Size += t.coef * (dims[t.dim] - 1)
			reach += t.coef * (dims[t.dim] - 1)
		}
		out = append(out, *axis)
	}
	a.Axes = out
	a.tidy(dims)
}

// separateAxes does that in all kernels.
func (p *Program) separateAxes() {
	for _, k := range p.Kernels {
		switch k := k.(type) {
		case *Nest:
			for _, a := range k.accesses() {
				a.separate(k.Dims)
			}
		case *Contract:
			k.A.separate(k.Dims)
			k.B.separate(k.Dims)
			if k.Post == nil {
				k.C.separate(k.Dims)
				continue
			}
			for _, a := range k.Post.accesses() {
				a.separate(k.Post.Dims)
			}
		}
	}
}
