package autodiff

import (
	"gradtool/graph"
)

// shapeRules lists the rules of the operators that read or change shapes.
func shapeRules() []Rule {
	return append(noGrad("shapes are integers", "Shape", "Size"),
		// y = x in another shape; dx = g in x's shape.
		Rule{Name: "Reshape", Kind: HasVJP, Stop: []int{1}, VJP: reshapeVJP},
		Rule{Name: "Flatten", Kind: HasVJP, VJP: reshapeVJP},
		Rule{Name: "Squeeze", Kind: HasVJP, Stop: []int{1}, VJP: squeezeVJP},
		Rule{Name: "Unsqueeze", Kind: HasVJP, Stop: []int{1}, VJP: unsqueezeVJP},
		// y = x broadcast; dx = g summed over the broadcast axes, which the driver does.
		Rule{Name: "Expand", Kind: HasVJP, Stop: []int{1}, VJP: func(c *Ctx) []*graph.Value { return one(c.Ct(0)) }},
		Rule{Name: "Tile", Kind: HasVJP, Stop: []int{1}, VJP: tileVJP},
		// y = x with axes in order perm; dx = g with the inverse permutation.
		unary("Transpose", func(c *Ctx, x, y, g *graph.Value) *graph.Value { return transposeBack(c, g) }),
	)
}

func reshapeVJP(c *Ctx) []*graph.Value { return one(c.ReshapeLike(c.Ct(0), c.X(0))) }

// squeezeVJP inserts the axes again: Unsqueeze counts axes in its result, which has x's rank.
func squeezeVJP(c *Ctx) []*graph.Value {
	if _, ok := c.X(0).Type.Shape.Ints(); ok || c.X(1) == nil {
		return reshapeVJP(c)
	}
	return one(c.Binary("Unsqueeze", c.Ct(0), c.X(1)))
}

func unsqueezeVJP(c *Ctx) []*graph.Value {
	if _, ok := c.X(0).Type.Shape.Ints(); ok {
		return reshapeVJP(c)
	}
	return one(c.Binary("Squeeze", c.Ct(0), c.X(1)))
}

func transposeBack(c *Ctx, g *graph.Value) *graph.Value {
	perm := c.Node.Ints("perm")
	if perm == nil {
		return c.Unary("Transpose", g) // reversing the axes twice is the identity
	}
	inv := make([]int64, len(perm))
	for i, p := range perm {
		inv[p] = int64(i)
	}
	return c.Transpose(g, inv...)
}

// tileVJP: y repeats x r_i times along axis i. dx is the sum of the repetitions: g of shape [r_0*d_0, r_1*d_1, ...] is
// taken as [r_0, d_0, r_1, d_1, ...] and summed over the r axes. Axes repeated once stay single.
func tileVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	xs, reps := x.Type.Shape, c.Info.Dims(c.X(1))
	if xs == nil || reps == nil || len(xs) != len(reps) {
		// [r, d] pairs for a number of axes known at run time only.
		shape := c.Shape(x)
		pairs := c.Concat(1, c.Unsqueeze(c.X(1), 1), c.Unsqueeze(shape, 1))
		rank := c.Op("Size", []*graph.Value{shape})
		axes := c.MulScalar(c.Op("Range", []*graph.Value{c.IntScalar(0), rank, c.IntScalar(1)}), 2)
		g = c.Reshape(g, c.ReshapeTo(pairs, -1))
		return one(c.Op("ReduceSum", []*graph.Value{g, axes}, graph.IntAttr("keepdims", 0),
			graph.IntAttr("noop_with_empty_axes", 1)))
	}
	var shape vector
	var sum []int64
	for i, r := range reps {
		if n, ok := r.Int(); !ok || n != 1 {
			sum = append(sum, int64(shape.n))
			shape.addElement(c, c.X(1), r, i)
		}
		shape.addDim(c, x, i)
	}
	if len(sum) == 0 {
		return one(g)
	}
	return one(c.ReduceSum(c.Reshape(g, shape.value(c)), false, sum...))
}
