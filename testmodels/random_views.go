package testmodels

import (
	"math"

	"gradtool/graph"
)

// Steps that move elements and compute none.

func (r *randomNet) view() []*graph.Value {
	x := r.pick(ranked(anyType, 0, 4))
	if x == nil {
		return nil
	}
	s := x.Type.Shape
	switch r.choose(3) {
	case 0:
		for i, d := range s {
			if n, ok := d.Int(); ok && n == 1 && r.choose(2) == 0 {
				return vals(r.Squeeze(x, int64(i)))
			}
		}
		return nil
	case 1:
		return vals(r.Unsqueeze(x, int64(r.choose(len(s)+1))))
	}
	return vals(r.Op("Flatten", vals(x), graph.IntAttr("axis", int64(r.choose(len(s)+1)))))
}

// reshape joins axes, takes one apart, or goes to the shape of another value.
func (r *randomNet) reshape() []*graph.Value {
	x := r.pick(anyType)
	if x == nil {
		return nil
	}
	s := x.Type.Shape
	switch r.choose(5) {
	case 0:
		return vals(r.ReshapeTo(x, -1))
	case 1:
		if y := r.pick(func(v *graph.Value) bool { return v.Type.Shape.Size().Equal(s.Size()) }); y != nil {
			return vals(r.ReshapeLike(x, y))
		}
	case 2:
		to := make([]int64, 0, len(s)+1)
		for range s {
			to = append(to, 0)
		}
		if len(to) > 1 && r.choose(2) == 0 {
			to = to[:len(to)-1]
			to[len(to)-1] = -1
		} else {
			to = append(to, 1)
		}
		return vals(r.ReshapeTo(x, to...))
	case 3:
		i := r.choose(len(s) + 1)
		if i == len(s) {
			return nil
		}
		if n, ok := s[i].Int(); ok && n%2 == 0 && n > 0 {
			var dims []*graph.Value
			for j := range s {
				if j == i {
					dims = append(dims, r.Ints(2), r.Ints(n/2))
				} else {
					dims = append(dims, r.DimOf(x, j))
				}
			}
			return vals(r.Reshape(x, r.Concat(0, dims...)))
		}
	}
	if len(s) < 2 {
		return nil
	}
	parts := vals(r.Ints(-1))
	for j := range s[2:] {
		parts = append(parts, r.DimOf(x, j+2))
	}
	return vals(r.Reshape(x, r.Concat(0, parts...)))
}

func (r *randomNet) transpose() []*graph.Value {
	x := r.pick(ranked(anyType, 2, 5))
	if x == nil {
		return nil
	}
	return vals(r.Transpose(x, r.perm(len(x.Type.Shape))...))
}

func (r *randomNet) slice() []*graph.Value {
	x := r.pick(ranked(anyType, 1, 5))
	if x == nil {
		return nil
	}
	at := []int64{0, 1, 2, -1, -2, math.MaxInt64, math.MinInt64, 3}
	end := []int64{math.MaxInt64, 2, 3, -1, 1, 100, 0}
	step := []int64{1, 1, 1, 1, 2, -1}
	k := step[r.choose(len(step))]
	from, to := at[r.choose(len(at))], end[r.choose(len(end))]
	if k > 0 && r.choose(2) == 0 {
		from = int64(r.choose(2))
	}
	if k < 0 {
		from, to = to, from
	}
	return vals(r.Slice(x, r.Ints(from), r.Ints(to), r.Ints(r.axis(x.Type.Shape)), r.Ints(k)))
}

func (r *randomNet) pad() []*graph.Value {
	x := r.pick(ranked(isFloat, 1, 4))
	if x == nil {
		return nil
	}
	rank := len(x.Type.Shape)
	pads := make([]int64, 2*rank)
	for i := range pads {
		if r.choose(3) == 0 {
			pads[i] = int64(r.choose(4)) - 1
		}
	}
	in := vals(x, r.Ints(pads...))
	if r.choose(2) == 0 {
		in = append(in, r.Like(x, r.number()))
	}
	return vals(r.Op("Pad", in))
}

func (r *randomNet) concat() []*graph.Value {
	x := r.pick(ranked(func(v *graph.Value) bool { return isNumber(v) || isBool(v) }, 1, 4))
	if x == nil {
		return nil
	}
	in := vals(x)
	for range 1 + r.choose(2) {
		y := r.pick(func(v *graph.Value) bool { return v.Type.Elem == x.Type.Elem && v.Type.Shape.Equal(x.Type.Shape) })
		if y == nil {
			y = x
		}
		switch r.choose(3) {
		case 0:
			in = append(in, r.FullLike(x, r.whole(x, r.number())))
		case 1:
			in = append(vals(y), in...)
		default:
			in = append(in, y)
		}
	}
	return vals(r.Concat(r.axis(x.Type.Shape), in...))
}

func (r *randomNet) split() []*graph.Value {
	x := r.pick(ranked(anyType, 1, 4))
	if x == nil {
		return nil
	}
	axis := r.axis(x.Type.Shape)
	d := x.Type.Shape[(int(axis)+len(x.Type.Shape))%len(x.Type.Shape)]
	n, ok := d.Int()
	if !ok || n < 2 {
		return nil
	}
	outs := r.Node("Split", vals(x, r.Ints(1, n-1)), 2, graph.IntAttr("axis", axis)).Out
	if r.choose(2) == 0 {
		return append(outs, r.Concat(axis, outs...))
	}
	return outs
}

func (r *randomNet) gather() []*graph.Value {
	x := r.pick(ranked(anyType, 1, 4))
	if x == nil {
		return nil
	}
	axis := r.axis(x.Type.Shape)
	n, ok := x.Type.Shape[(int(axis)+len(x.Type.Shape))%len(x.Type.Shape)].Int()
	if !ok || n == 0 {
		return nil
	}
	switch r.choose(3) {
	case 0:
		return vals(r.Gather(x, r.IntScalar(int64(r.choose(int(n)))), axis))
	case 1:
		all := make([]int64, n)
		for i := range all {
			all[i] = int64(i)
		}
		return vals(r.Gather(x, r.Ints(all...), axis))
	}
	return vals(r.Gather(x, r.Ints(int64(r.choose(int(n))), -1), axis))
}

func (r *randomNet) expand() []*graph.Value {
	x := r.pick(ranked(anyType, 0, 4))
	if x == nil {
		return nil
	}
	switch r.choose(3) {
	case 0:
		return vals(r.Expand(x, r.Ints(int64(1+r.choose(3)), 1)))
	case 1:
		if y := r.pick(ranked(anyType, 1, 4)); y != nil {
			return vals(r.ExpandLike(x, y))
		}
	}
	if len(x.Type.Shape) == 0 {
		return nil
	}
	n := make([]int64, len(x.Type.Shape))
	for i := range n {
		n[i] = int64(1 + r.choose(2))
	}
	return vals(r.Op("Tile", vals(x, r.Ints(n...))))
}
