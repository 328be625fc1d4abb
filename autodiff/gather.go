package autodiff

import (
	"errors"

	"gradtool/graph"
)

func gatherRules() []Rule {
	return []Rule{
		{Name: "Gather", Kind: HasVJP, Stop: []int{1}, VJP: gatherVJP},
		// y_i = x at i, except along axis, where the index says; dx sums g where it came from.
		{Name: "GatherElements", Kind: HasVJP, Stop: []int{1}, VJP: func(c *Ctx) []*graph.Value {
			g := c.widened(c.Ct(0))
			zeros := c.Full(c.Shape(c.X(0)), g.Type.Elem, 0)
			return one(c.Op("ScatterElements", []*graph.Value{zeros, c.X(1), g},
				graph.IntAttr("axis", c.Node.Int("axis", 0)), graph.StringAttr("reduction", "add")))
		}},
		// y holds the slices of x that index tuples name; dx sums g's slices where they came from.
		{Name: "GatherND", Kind: HasVJP, Stop: []int{1}, VJP: func(c *Ctx) []*graph.Value {
			return one(c.scatterAdd(c.Shape(c.X(0)), c.batchedTuples(), c.widened(c.Ct(0))))
		}, Check: func(n *graph.Node) error {
			if n.Int("batch_dims", 0) != 0 && n.In[1].Type.Shape == nil {
				return errors.New("the gradient of GatherND with batch axes needs the rank of the indices")
			}
			return nil
		}},
		// The features of the last axis that the index names; a vector counts as one row.
		{Domain: "ai.onnx.ml", Name: "ArrayFeatureExtractor", Kind: HasVJP, Stop: []int{1}, VJP: func(c *Ctx) []*graph.Value {
			x := c.X(0)
			at := c.ReshapeTo(c.X(1), -1)
			g := c.widened(c.Ct(0))
			rows := c.Transpose(c.Reshape(g, c.Concat(0, c.Ints(-1), c.sizeOf(at))), 1, 0)
			n := c.sizesAt(x, []int64{-1})
			shape := c.Concat(0, n, c.Op("Div", []*graph.Value{c.sizeOf(x), n}))
			return one(c.Reshape(c.Transpose(c.scatterAdd(shape, c.Unsqueeze(at, 1), rows), 1, 0), c.Shape(x)))
		}},
	}
}

// gatherVJP: y holds the slices of x that the index names; dx sums g's slices where they came from.
func gatherVJP(c *Ctx) []*graph.Value {
	x, at, g := c.X(0), c.X(1), c.Ct(0)
	axis := int(c.Node.Int("axis", 0))
	if axis < 0 && x.Type.Shape != nil {
		axis += len(x.Type.Shape)
	}
	if at.Type.Shape != nil && len(at.Type.Shape) == 0 {
		// One slice: zeros go around it.
		n := c.sizesAt(x, []int64{int64(axis)})
		i := c.scalarIndex(at, n)
		return one(c.borderOne(c.Unsqueeze(g, int64(axis)), int64(axis), i, c.minus(c.minus(n, i), c.Ints(1))))
	}
	return one(c.scatterSlices(x, c.int64s(at), g, axis))
}

// scalarIndex returns a scalar index into n elements, counted from the front, as a vector of one element.
func (c *Ctx) scalarIndex(at, n *graph.Value) *graph.Value {
	if i, ok := c.numbers(at); ok {
		return c.fromFront(c.Ints(i...), n)
	}
	return c.fromFront(c.Unsqueeze(c.int64s(at), 0), n)
}

// scatterSlices returns zeros of x's shape to whose slices along axis those of g are added: at names where each
// belongs, and its axes stand in g in the place of axis. The slices are scattered along the first axis, where
// they are contiguous; other axes are brought there.
func (c *Ctx) scatterSlices(x, at, g *graph.Value, axis int) *graph.Value {
	g = c.widened(g)
	switch {
	case axis == 0:
		return c.scatterAdd(c.Shape(x), c.Unsqueeze(at, -1), g)
	case x.Type.Shape == nil || at.Type.Shape == nil:
		return c.scatterMiddle(x, at, g, axis)
	}
	at = c.Unsqueeze(at, -1)
	rank, q := len(x.Type.Shape), len(at.Type.Shape)-1
	var forth []int64 // of g: the index axes to the front
	for i := range q {
		forth = append(forth, int64(axis+i))
	}
	for i := range rank - 1 + q {
		if i < axis || i >= axis+q {
			forth = append(forth, int64(i))
		}
	}
	order := []int64{int64(axis)} // axes of x in the order of the sum
	back := make([]int64, rank)
	for i := range rank {
		if i != axis {
			back[i] = int64(len(order))
			order = append(order, int64(i))
		}
	}
	sum := c.scatterAdd(c.sizesAt(x, order), at, c.Transpose(g, forth...))
	return c.Transpose(sum, back...)
}

// scatterMiddle is scatterSlices where a rank is not known: the axes before axis, those of the index, and those
// behind are each taken as one. A negative axis counts from the back.
func (c *Ctx) scatterMiddle(x, at, g *graph.Value, axis int) *graph.Value {
	product := func(attrs ...*graph.Attr) *graph.Value {
		shape := c.Op("Shape", []*graph.Value{x}, attrs...)
		return c.Op("ReduceProd", []*graph.Value{shape}, graph.IntAttr("keepdims", 1))
	}
	before, after := product(graph.IntAttr("end", int64(axis))), c.Ints(1)
	if axis != -1 {
		after = product(graph.IntAttr("start", int64(axis+1)))
	}
	g = c.Reshape(g, c.Concat(0, before, c.sizeOf(at), after))
	at = c.ReshapeTo(at, -1, 1)
	sum := c.scatterAdd(c.Concat(0, c.DimOf(x, axis), before, after), at, c.Transpose(g, 1, 0, 2))
	return c.Reshape(c.Transpose(sum, 1, 0, 2), c.Shape(x))
}

// batchedTuples returns the index tuples of a GatherND node with the batch coordinates in front, so that they name
// slices of the whole data.
func (c *Ctx) batchedTuples() *graph.Value {
	at := c.X(1)
	batch := int(c.Node.Int("batch_dims", 0))
	if batch == 0 {
		return at
	}
	rank := len(at.Type.Shape)
	var shape vector // of one column of coordinates
	for a := range rank - 1 {
		shape.addDim(c, at, a)
	}
	shape.add(1)
	column := shape.value(c)
	parts := make([]*graph.Value, batch, batch+1)
	for a := range batch {
		var others []int64
		for i := range rank {
			if i != a {
				others = append(others, int64(i))
			}
		}
		coords := c.upTo(c.sizesAt(at, []int64{int64(a)}))
		parts[a] = c.Expand(c.Unsqueeze(coords, others...), column)
	}
	return c.Concat(-1, append(parts, at)...)
}
