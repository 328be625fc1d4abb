package autodiff

import (
	"gradtool/graph"
)

func blockRules() []Rule {
	return []Rule{
		unary("DepthToSpace", depthToSpaceBack),
		// The inverse permutation of elements.
		unary("SpaceToDepth", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			return c.Unary("DepthToSpace", g, graph.IntAttr("blocksize", c.Node.Int("blocksize", 1)))
		}),
		// Reversing the same stretches again.
		{Name: "ReverseSequence", Kind: HasVJP, Stop: []int{1}, VJP: func(c *Ctx) []*graph.Value {
			return one(c.Op("ReverseSequence", []*graph.Value{c.Ct(0), c.X(1)}, c.sameAttrs()...))
		}},
		// y = x inside the triangle, 0 outside; dx is the same triangle of g.
		{Name: "Trilu", Kind: HasVJP, Stop: []int{1}, VJP: func(c *Ctx) []*graph.Value {
			return one(c.Op("Trilu", []*graph.Value{c.Ct(0), c.X(1)}, c.sameAttrs()...))
		}},
		{Name: "TensorScatter", Kind: HasVJP, Stop: []int{2}, VJP: tensorScatterVJP},
	}
}

// depthToSpaceBack undoes the permutation of elements: SpaceToDepth in mode DCR; in mode CRD, where y is
// [n, c, b, b, h, w] with axes in order 0 1 4 2 5 3, the inverse order.
func depthToSpaceBack(c *Ctx, x, y, g *graph.Value) *graph.Value {
	b := c.Node.Int("blocksize", 1)
	if c.Node.Str("mode", "DCR") == "DCR" {
		return c.Unary("SpaceToDepth", g, graph.IntAttr("blocksize", b))
	}
	var shape vector
	shape.addSize(c, x, 0)
	shape.addSize(c, y, 1)
	shape.addSize(c, x, 2)
	shape.add(b)
	shape.addSize(c, x, 3)
	shape.add(b)
	g = c.Transpose(c.Reshape(g, shape.value(c)), 0, 1, 3, 5, 2, 4)
	return c.Reshape(g, c.Shape(x))
}

// tensorScatterVJP: y is the cache with the update written over a stretch of each sample, from its write index on.
// The cache's cotangent is g with zeros written there; the update's is what g holds there.
func tensorScatterVJP(c *Ctx) []*graph.Value {
	past, update, at, g := c.X(0), c.X(1), c.X(2), c.Ct(0)
	out := make([]*graph.Value, 2)
	if c.Need(0) {
		out[0] = c.Op("TensorScatter", []*graph.Value{g, c.FullLike(update, 0), at}, c.sameAttrs()...)
	}
	if !c.Need(1) {
		return out
	}
	axis := c.Node.Int("axis", -2)
	count := c.sizesAt(update, []int64{axis})
	if at == nil {
		out[1] = c.Slice(g, c.Ints(0), count, c.Ints(axis), nil)
		return out
	}
	if update.Type.Shape == nil {
		out[1] = c.writtenAnywhere(past, update, at, g)
		return out
	}
	rank := int64(len(update.Type.Shape))
	pos := c.Add(c.Unsqueeze(at, 1), c.upTo(count)) // batch by stretch
	if c.Node.Str("mode", "linear") == "circular" {
		pos = c.Binary("Mod", pos, c.sizesAt(past, []int64{axis}))
	}
	var ones []int64
	for i := int64(1); i < rank; i++ {
		if i != (axis+rank)%rank {
			ones = append(ones, i)
		}
	}
	pos = c.Expand(c.Unsqueeze(pos, ones...), c.Shape(update))
	out[1] = c.Binary("GatherElements", g, pos, graph.IntAttr("axis", axis))
	return out
}

// writtenAnywhere returns the elements of g where the update was written, for an update of unknown rank: the update's
// row-major positions are written in its place, and g is scattered by them; what was not written over goes
// to one more element.
func (c *Ctx) writtenAnywhere(past, update, at, g *graph.Value) *graph.Value {
	none := c.Full(c.Shape(past), graph.Int64, -1)
	pos := c.Op("TensorScatter", []*graph.Value{none, c.flatPositions(update), at}, c.sameAttrs()...)
	size := c.sizeOf(update)
	pos = c.Where(c.Binary("Less", pos, c.IntScalar(0)), size, pos)
	sum := c.scatterAdd(c.plus(size, c.Ints(1)), c.Unsqueeze(c.ReshapeTo(pos, -1), 1), c.ReshapeTo(c.widened(g), -1))
	return c.Reshape(c.Slice(sum, c.Ints(0), size, c.Ints(0), nil), c.Shape(update))
}
