package autodiff

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

func poolRules() []Rule {
	return append([]Rule{
		{Name: "MaxPool", Kind: HasVJP, VJP: maxPoolVJP},
		{Name: "AveragePool", Kind: HasVJP, VJP: averagePoolVJP},
		{Name: "LpPool", Kind: HasVJP, VJP: lpPoolVJP},
		{Name: "GlobalAveragePool", Kind: HasVJP, VJP: globalAveragePoolVJP},
		{Name: "GlobalMaxPool", Kind: HasVJP, VJP: globalMaxPoolVJP},
		{Name: "GlobalLpPool", Kind: HasVJP, VJP: globalLpPoolVJP},
	}, append(unpoolRules(), regionRules()...)...)
}

// maxPoolVJP is the rule of y = max over each window: the cotangent goes to the element that was chosen, adding up
// where windows overlap.
func maxPoolVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	if g == nil {
		return nil
	}
	var index *graph.Value
	if c.Node.Int("storage_order", 0) == 0 {
		index = c.Want(1)
	} else { // column-major indices of any rank are no use: pool again
		var attrs []*graph.Attr
		for _, a := range c.Node.Attrs {
			if a.Name != "storage_order" {
				b := *a
				attrs = append(attrs, &b)
			}
		}
		index = c.Builder.Node("MaxPool", []*graph.Value{x}, 2, attrs...).Out[1]
	}
	return one(c.scatterFlat(x, index, g))
}

// poolWindow is the geometry of a pooling node.
func poolWindow(n *graph.Node) *window {
	w := newWindow(n, graph.ShapeOf(n.Ints("kernel_shape")...))
	w.group, w.uniform = 1, true
	return w
}

// averagePoolVJP is the rule of y = sum over each window / count: the cotangent over the count goes to every element of
// the window.
func averagePoolVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	w := poolWindow(c.Node)
	padded, front := w.resolve(c, c.Node, x, nil)
	return one(w.spread(c, w.perCount(c, g, x, front), x, padded, front))
}

// spread returns the transpose of summing each window of x: every element gets the sum of the cotangents of the windows
// that hold it. Padding known only at run time has been added to x to give padded.
func (w *window) spread(c *Ctx, g, x, padded, front *graph.Value) *graph.Value {
	if over, ok := w.tiles(g, padded); ok && front == nil {
		scales := op.NewArray(graph.Float, []int{2 + w.r}, false)
		pads, some := make([]int64, 2*(2+w.r)), false
		for i := range scales.F32 {
			scales.F32[i] = 1
			if i >= 2 {
				scales.F32[i] = float32(w.stride[i-2])
				pads[2+w.r+i] = over[i-2]
				some = some || over[i-2] != 0
			}
		}
		dx := c.Op("Resize", []*graph.Value{g, nil, c.Const(scales.Tensor())}, graph.StringAttr("mode", "nearest"),
			graph.StringAttr("coordinate_transformation_mode", "asymmetric"), graph.StringAttr("nearest_mode", "floor"))
		if some {
			dx = c.Op("Pad", []*graph.Value{dx, c.Ints(pads...)})
		}
		return dx
	}
	// One channel at a time, so that the number of channels need not be known.
	kernel := []int64{1, 1}
	for _, k := range w.kernel {
		n, _ := k.Int()
		kernel = append(kernel, n)
	}
	ones := c.Full(c.Ints(kernel...), g.Type.Elem, 1)
	single := c.Op("Reshape", []*graph.Value{g, c.Concat(0, c.Ints(-1, 1), w.spatial(c, g))})
	dx := w.inputCt(c, single, ones, padded)
	if front != nil {
		dx = c.Slice(dx, front, c.Add(front, w.spatial(c, x)), c.Ints(w.axes()...), nil)
	}
	return c.Reshape(dx, c.Shape(x))
}

// tiles reports whether the windows lie side by side, and how much of x they leave at the end of each axis.
func (w *window) tiles(g, x *graph.Value) ([]int64, bool) {
	over := make([]int64, w.r)
	for i := range w.r {
		k, _ := w.kernel[i].Int()
		n, ok := w.uncovered(g, x, i)
		if !ok || n < 0 || k != w.stride[i] || w.dilation[i] != 1 && k > 1 || w.begin[i] != 0 || w.end[i] != 0 {
			return nil, false
		}
		over[i] = n
	}
	return over, true
}

// perCount divides g by the number of elements that each window averages.
func (w *window) perCount(c *Ctx, g, x, front *graph.Value) *graph.Value {
	padding := c.Node.Int("count_include_pad", 0) != 0
	whole := !w.ceil
	for i := range w.r {
		whole = whole && (padding || w.begin[i] == 0 && w.end[i] == 0 && front == nil)
	}
	if whole {
		return c.MulScalar(g, 1/float64(w.taps()))
	}
	if count, ok := w.knownCounts(g, x, padding); ok && front == nil {
		return c.Div(g, c.Cast(c.Const(count.Tensor()), g.Type.Elem))
	}
	for i := range w.r {
		g = c.Div(g, w.countAlong(c, g, x, front, i, padding))
	}
	return g
}

// knownCounts returns the counts as a double tensor of the output's spatial sizes, if sizes are known.
func (w *window) knownCounts(g, x *graph.Value, padding bool) (*op.Array, bool) {
	if g.Type.Shape == nil || x.Type.Shape == nil {
		return nil, false
	}
	outs, ok := g.Type.Shape[2:].Ints()
	ins, known := x.Type.Shape[2:].Ints()
	if !ok || !known {
		return nil, false
	}
	shape, counts := []int{}, []float64{1}
	for i := range w.r {
		shape = append(shape, int(outs[i]))
		lo, hi := int64(0), ins[i]
		if padding {
			lo, hi = -w.begin[i], ins[i]+w.end[i]
		}
		var next []float64
		for _, f := range counts {
			for o := range outs[i] {
				n := 0
				k, _ := w.kernel[i].Int()
				for t := range k {
					if p := o*w.stride[i] + t*w.dilation[i] - w.begin[i]; p >= lo && p < hi {
						n++
					}
				}
				next = append(next, f*float64(max(n, 1)))
			}
		}
		counts = next
	}
	return &op.Array{Elem: graph.Double, Shape: shape, F64: counts, Kind: graph.KindTensor}, true
}

// countAlong returns, at run time, the counts along one spatial axis, shaped to broadcast to g.
func (w *window) countAlong(c *Ctx, g, x, front *graph.Value, i int, padding bool) *graph.Value {
	at := func(v *graph.Value, i int) *graph.Value { return c.Squeeze(c.DimOf(v, i), 0) }
	k, _ := w.kernel[i].Int()
	taps := make([]int64, k)
	for t := range taps {
		taps[t] = int64(t) * w.dilation[i]
	}
	begin, end := c.IntScalar(w.begin[i]), c.IntScalar(w.end[i])
	if front != nil {
		begin = c.Gather(front, c.IntScalar(int64(i)), 0)
	}
	starts := c.Op("Range", []*graph.Value{c.IntScalar(0), at(g, 2+i), c.IntScalar(1)})
	starts = c.Sub(c.Mul(starts, c.IntScalar(w.stride[i])), begin)
	place := c.Add(c.Unsqueeze(starts, 1), c.Ints(taps...)) // [outputs, taps]
	limit := at(x, 2+i)
	if padding {
		limit = c.Add(limit, end)
	}
	inside := c.Binary("Less", place, limit)
	if !padding {
		inside = c.Binary("And", inside, c.Unary("Not", c.Binary("Less", place, c.IntScalar(0))))
	}
	count := c.ReduceSum(c.Cast(inside, graph.Int64), false, 1)
	count = c.Cast(c.Binary("Max", count, c.Ints(1)), g.Type.Elem)
	var trailing []int64
	for j := i + 1; j < w.r; j++ {
		trailing = append(trailing, int64(j-i))
	}
	return c.Unsqueeze(count, trailing...)
}

// lpPoolVJP is the rule of y = (sum over each window of |x|^p)^(1/p): x gets sign(x) |x|^(p-1) times the sum over the
// windows that hold it of g y^(1-p), where a window of zeros counts as 0.
func lpPoolVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	p := c.Node.Int("p", 2)
	w := poolWindow(c.Node)
	padded, front := w.resolve(c, c.Node, x, nil)
	return one(c.Mul(lpOuter(c, x, p), w.spread(c, lpInner(c, g, c.Y(0), p), x, padded, front)))
}

// lpOuter returns sign(x) |x|^(p-1).
func lpOuter(c *Ctx, x *graph.Value, p int64) *graph.Value {
	switch p {
	case 1:
		return c.Unary("Sign", x)
	case 2:
		return x
	case 3:
		return c.Mul(x, c.Unary("Abs", x))
	}
	return c.Mul(c.Unary("Sign", x), c.Binary("Pow", c.Unary("Abs", x), c.Like(x, float64(p-1))))
}

// lpInner returns g y^(1-p), 0 where y is.
func lpInner(c *Ctx, g, y *graph.Value, p int64) *graph.Value {
	if p == 1 {
		return g
	}
	zero := c.Binary("Equal", y, c.Like(y, 0))
	safe := c.Where(zero, c.Like(y, 1), y)
	if p == 2 {
		g = c.Div(g, safe)
	} else {
		g = c.Mul(g, c.Binary("Pow", safe, c.Like(y, float64(1-p))))
	}
	return c.Where(zero, c.Like(g, 0), g)
}

// globalAveragePoolVJP is the rule of y = mean over each channel.
func globalAveragePoolVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	if s := x.Type.Shape; s != nil {
		if n, ok := s[2:].Size().Int(); ok && n > 0 {
			return one(c.ExpandLike(c.MulScalar(g, 1/float64(n)), x))
		}
	}
	sizes := c.Op("Shape", []*graph.Value{x}, graph.IntAttr("start", 2))
	count := c.Op("ReduceProd", []*graph.Value{sizes}, graph.IntAttr("keepdims", 0))
	return one(c.Expand(c.Div(g, c.Cast(count, g.Type.Elem)), c.Shape(x)))
}

// globalMaxPoolVJP is the rule of y = max over each channel: the cotangent goes to the first largest element.
func globalMaxPoolVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	flat := c.ReshapeTo(x, 0, 0, -1)
	wide := flat
	if e := x.Type.Elem; e == graph.Float16 || e == graph.BFloat16 {
		wide = c.Cast(flat, graph.Float)
	}
	first := c.Op("ArgMax", []*graph.Value{wide}, graph.IntAttr("axis", 2))
	dx := c.Op("ScatterElements", []*graph.Value{c.FullLike(flat, 0), first, c.ReshapeTo(g, 0, 0, 1)}, graph.IntAttr("axis", 2))
	return one(c.Reshape(dx, c.Shape(x)))
}

// globalLpPoolVJP is the rule of y = (sum over each channel of |x|^p)^(1/p).
func globalLpPoolVJP(c *Ctx) []*graph.Value {
	p := c.Node.Int("p", 2)
	return one(c.Mul(lpOuter(c, c.X(0), p), lpInner(c, c.Ct(0), c.Y(0), p)))
}
