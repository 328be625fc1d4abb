package autodiff

import (
	"gradtool/graph"
)

// SumTo reduces g, which has a shape that x broadcasts to, to x's shape: the transpose of
// broadcasting. Axes are decided now where both shapes are known or provably equal, else at run time.
func (c *Ctx) SumTo(g, x *graph.Value) *graph.Value {
	gs, xs := g.Type.Shape, x.Type.Shape
	if gs.Equal(xs) {
		return g
	}
	if gs == nil || xs == nil {
		return c.sumToUnknownRank(g, x)
	}
	lead := len(gs) - len(xs)
	if lead < 0 { // g lacks leading axes of x's: x's are all 1 there, or g is broadcast over them
		return c.Expand(g, c.Shape(x))
	}
	var axes []int64 // summed for sure
	sure := true
	for i := range gs {
		if i < lead {
			axes = append(axes, int64(i))
			continue
		}
		switch a, b := gs[i], xs[i-lead]; {
		case a.Equal(b):
		case isOne(b):
			axes = append(axes, int64(i))
		case isOne(a), known(b): // g itself is to be broadcast, or a known size over 1 means equality
			if isOne(a) {
				return c.SumTo(c.Expand(g, c.Shape(x)), x)
			}
		default:
			sure = false
		}
	}
	if !sure {
		return c.sumToRunTime(g, x, lead)
	}
	if len(axes) == 0 {
		return g // equal as far as it can be told, and nothing to sum
	}
	if lead > 0 && len(axes) == lead {
		return c.ReduceSum(g, false, axes...)
	}
	g = c.ReduceSum(g, true, axes...)
	if lead > 0 {
		lost := make([]int64, lead)
		for i := range lost {
			lost[i] = int64(i)
		}
		g = c.Squeeze(g, lost...)
	}
	return g
}

// sumToRunTime sums over the axes that turn out at run time to have been broadcast.
func (c *Ctx) sumToRunTime(g, x *graph.Value, lead int) *graph.Value {
	xs := c.Shape(x)
	padded := xs
	if lead > 0 {
		ones := make([]int64, lead)
		for i := range ones {
			ones[i] = 1
		}
		padded = c.Concat(0, c.Ints(ones...), xs)
	}
	return c.Reshape(c.sumWhereDifferent(g, padded), xs)
}

// sumToUnknownRank is sumToRunTime where not even the ranks are known.
func (c *Ctx) sumToUnknownRank(g, x *graph.Value) *graph.Value {
	xs, gs := c.Shape(x), c.Shape(g)
	missing := c.Sub(c.Op("Shape", []*graph.Value{gs}), c.Op("Shape", []*graph.Value{xs}))
	ones := c.Full(missing, graph.Int64, 1)
	return c.Reshape(c.sumWhereDifferent(g, c.Concat(0, ones, xs)), xs)
}

// sumWhereDifferent sums g over the axes where its shape differs from target, keeping them as size 1.
func (c *Ctx) sumWhereDifferent(g, target *graph.Value) *graph.Value {
	differ := c.Unary("Not", c.Binary("Equal", c.Shape(g), target))
	axes := c.Squeeze(c.Unary("NonZero", differ), 0)
	return c.Op("ReduceSum", []*graph.Value{g, axes}, graph.IntAttr("keepdims", 1), graph.IntAttr("noop_with_empty_axes", 1))
}

func isOne(d graph.Dim) bool {
	n, ok := d.Int()
	return ok && n == 1
}

func known(d graph.Dim) bool {
	_, ok := d.Int()
	return ok
}
