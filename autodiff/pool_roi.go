package autodiff

import (
	"math"

	"gradtool/graph"
)

func unpoolRules() []Rule {
	return []Rule{
		{Name: "MaxUnpool", Kind: HasVJP, VJP: maxUnpoolVJP, Check: needWindowRank},
		{Name: "MaxRoiPool", Kind: HasVJP, VJP: maxRoiPoolVJP, Stop: []int{1}},
	}
}

// maxUnpoolVJP is the rule of y.flat[index] = x: x gets g.flat[index]. The index counts in the shape that the attributes
// give, of which a larger output_shape makes y an extension.
func maxUnpoolVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	if c.X(2) != nil {
		w := newWindow(c.Node, graph.ShapeOf(c.Node.Ints("kernel_shape")...))
		rest := make([]int64, w.r)
		for i := range rest {
			k, _ := w.kernel[i].Int()
			rest[i] = k - w.begin[i] - w.end[i]
		}
		sizes := c.plus(c.times(c.minus(w.spatial(c, x), c.Ints(1)), c.Ints(w.stride...)), c.Ints(rest...))
		g = c.Slice(g, c.Ints(make([]int64, w.r)...), sizes, c.Ints(w.axes()...), nil)
	}
	return one(c.Gather(c.ReshapeTo(g, -1), c.X(1), 0))
}

// maxRoiPoolVJP is the rule of y = max over each bin of each region: the cotangent goes to the bin's first largest
// element; an empty bin has none. The place is found along the rows first, then down the columns.
func maxRoiPoolVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	pooled := c.Node.Ints("pooled_shape")
	rois := c.Cast(c.X(1), graph.Float)
	column := func(i int64) *graph.Value { return c.Gather(rois, c.IntScalar(i), 1) }
	image := c.Cast(column(0), graph.Int64)
	rows := c.roiBins(column(2), column(4), pooled[0], c.DimOf(x, 2))
	cols := c.roiBins(column(1), column(3), pooled[1], c.DimOf(x, 3))

	lowest := c.Like(c.widened(x), math.Inf(-1))
	region := c.Unsqueeze(c.Gather(c.widened(x), image, 0), 3) // [R, C, H, 1, W]
	inCols := c.Where(c.Unsqueeze(cols, 1, 2), region, lowest) // [R, C, H, PW, W]
	bestCol := c.argMax(inCols, 4)                             // [R, C, H, PW]
	rowMax := c.Op("ReduceMax", []*graph.Value{inCols, c.Ints(4)}, graph.IntAttr("keepdims", 0))
	inRows := c.Where(c.Unsqueeze(rows, 1, 4), c.Unsqueeze(rowMax, 2), lowest) // [R, C, PH, H, PW]
	h := c.argMax(inRows, 3)                                                   // [R, C, PH, PW]
	w := c.Op("GatherElements", []*graph.Value{bestCol, h}, graph.IntAttr("axis", 2))

	channels := c.DimOf(x, 1)
	plane := c.Add(c.Unsqueeze(c.Mul(image, channels), 1), c.upTo(channels)) // [R, C]
	pos := c.Add(c.Mul(c.Unsqueeze(plane, 2, 3), c.DimOf(x, 2)), h)
	pos = c.Add(c.Mul(pos, c.DimOf(x, 3)), w)

	some := func(mask *graph.Value, axes ...int64) *graph.Value {
		n := c.ReduceSum(c.Cast(mask, graph.Int64), false, 2)
		return c.Unsqueeze(c.Binary("Greater", n, c.IntScalar(0)), axes...)
	}
	filled := c.Binary("And", some(rows, 1, 3), some(cols, 1, 2))
	return one(c.scatterFlat(x, pos, c.Where(filled, g, c.Like(g, 0))))
}

// roiBins returns, as a bool tensor [regions, bins, size], which positions along an axis the n bins of each region cover.
func (c *Ctx) roiBins(start, end *graph.Value, n int64, size *graph.Value) *graph.Value {
	scale := c.Node.Float("spatial_scale", 1)
	round := func(v *graph.Value) *graph.Value { // halves away from zero
		v = c.MulScalar(v, scale)
		return c.Mul(c.Unary("Sign", v), c.Unary("Floor", c.AddScalar(c.Unary("Abs", v), 0.5)))
	}
	start, end = round(start), round(end)
	extent := c.Binary("Max", c.AddScalar(c.Sub(end, start), 1), c.Like(start, 1))
	bin := c.Unsqueeze(c.Div(extent, c.Like(start, float64(n))), 1)
	index := c.Cast(c.upTo(c.Ints(n)), graph.Float)
	start = c.Unsqueeze(start, 1)
	lo := c.Add(start, c.Unary("Floor", c.Mul(index, bin)))
	hi := c.Add(start, c.Unary("Ceil", c.Mul(c.AddScalar(index, 1), bin)))
	place := c.Cast(c.upTo(size), graph.Float)
	before := c.Binary("Less", place, c.Unsqueeze(lo, 2))
	return c.Binary("And", c.Unary("Not", before), c.Binary("Less", place, c.Unsqueeze(hi, 2)))
}

// argMax returns the first position of the largest element along an axis, which it drops.
func (c *Ctx) argMax(x *graph.Value, axis int64) *graph.Value {
	return c.Op("ArgMax", []*graph.Value{x}, graph.IntAttr("axis", axis), graph.IntAttr("keepdims", 0))
}
