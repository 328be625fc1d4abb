package autodiff

import (
	"slices"

	"gradtool/graph"
)

func selectRules() []Rule {
	return slices.Concat(noGrad("results are positions", "NonZero"), []Rule{
		// The values are x at the chosen positions; dx is g put back there.
		{Name: "TopK", Kind: HasVJP, Stop: []int{1}, VJP: func(c *Ctx) []*graph.Value {
			return one(c.Op("ScatterElements", []*graph.Value{c.FullLike(c.X(0), 0), c.Want(1), c.Ct(0)},
				graph.IntAttr("axis", c.Node.Int("axis", -1))))
		}},
		{Name: "OneHot", Kind: HasVJP, Stop: []int{0, 1}, VJP: oneHotVJP},
		{Name: "Unique", Kind: HasVJP, VJP: uniqueVJP},
		{Name: "Compress", Kind: HasVJP, Stop: []int{1}, VJP: compressVJP},
	})
}

// oneHotVJP: y is values[1] at the hot positions and values[0] elsewhere; each gets the sum of its part of g.
func oneHotVJP(c *Ctx) []*graph.Value {
	g := c.Ct(0)
	// The mask is made as float, for which ONNX Runtime has the kernel.
	values := c.Cast(c.Ints(0, 1), graph.Float)
	hot := c.Cast(c.Op("OneHot", []*graph.Value{c.X(0), c.X(1), values}, c.sameAttrs()...), g.Type.Elem)
	cold := c.Sub(c.Like(g, 1), hot)
	sum := func(mask *graph.Value) *graph.Value { return c.Unsqueeze(c.ReduceAll(c.Mul(g, mask)), 0) }
	return []*graph.Value{nil, nil, c.Concat(0, sum(cold), sum(hot))}
}

// uniqueVJP: y holds each value of x once. Equal elements share the cotangent evenly, as ties do in ReduceMax:
// dx = (g / counts) at the place of each element.
func uniqueVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	inverse, counts := c.Want(2), c.Cast(c.Want(3), g.Type.Elem)
	if !c.Node.HasAttr("axis") {
		return one(c.ReshapeLike(c.Gather(c.Div(g, counts), inverse, 0), x))
	}
	axis := c.Node.Int("axis", 0)
	// Counts are one per slice along axis: that axis goes last for the division.
	if s := x.Type.Shape; s != nil {
		if axis < 0 {
			axis += int64(len(s))
		}
		var behind []int64
		for i := 1; i < len(s)-int(axis); i++ {
			behind = append(behind, int64(i))
		}
		return one(c.Gather(c.Div(g, c.Unsqueeze(counts, behind...)), inverse, axis))
	}
	weight := c.Gather(c.Op("Reciprocal", []*graph.Value{counts}), inverse, 0) // by position along axis
	behind := c.Ints()
	if axis != -1 {
		n := c.Op("Size", []*graph.Value{c.Op("Shape", []*graph.Value{x}, graph.IntAttr("start", axis+1))})
		behind = c.Full(c.Unsqueeze(n, 0), graph.Int64, 1)
	}
	weight = c.Reshape(weight, c.Concat(0, c.sizeOf(inverse), behind))
	return one(c.Mul(c.Gather(g, inverse, axis), weight))
}

// compressVJP: y holds the slices of x where the condition is true; dx is g put back there.
func compressVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	at := c.Squeeze(c.Unary("NonZero", c.X(1)), 0)
	if !c.Node.HasAttr("axis") {
		return one(c.scatterFlat(x, at, g))
	}
	axis := int(c.Node.Int("axis", 0))
	if axis < 0 && x.Type.Shape != nil {
		axis += len(x.Type.Shape)
	}
	return one(c.scatterSlices(x, at, g, axis))
}
