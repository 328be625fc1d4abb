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
// belongs, and its axes stand in g in the place of axis. Behind the first axis, the axes before are taken as one, and
// pairs of a position there and an index name the slices: ONNX Runtime then adds whole runs in place, where an
// element-wise scatter or transposing to the first axis and back takes some ten times as long.
func (c *Ctx) scatterSlices(x, at, g *graph.Value, axis int) *graph.Value {
	g = c.widened(g)
	if axis == 0 {
		return c.scatterAdd(c.Shape(x), c.Unsqueeze(at, -1), g)
	}
	before, names := c.sizeBefore(x, axis), c.sizeOf(at)
	pair := c.pair(before, names)
	rows := c.Expand(c.Unsqueeze(c.upTo(before), 1), pair)
	columns := c.Expand(c.ReshapeTo(at, 1, -1), pair)
	pairs := c.Concat(2, c.Unsqueeze(rows, 2), c.Unsqueeze(columns, 2))
	from := func(head *graph.Value, start int) *graph.Value {
		if start == 0 { // axis was -1
			return head
		}
		return c.Concat(0, head, c.shapeFrom(x, start))
	}
	g = c.Reshape(g, from(pair, axis+1))
	return c.Reshape(c.scatterAdd(from(before, axis), pairs, g), c.Shape(x))
}

// pair returns the vector of two given as vectors of one element.
func (c *Ctx) pair(x, y *graph.Value) *graph.Value {
	var v vector
	v.addOne(c, x)
	v.addOne(c, y)
	return v.value(c)
}

// sizeBefore returns the product of the sizes before axis, possibly negative, as a vector of one element.
func (c *Ctx) sizeBefore(x *graph.Value, axis int) *graph.Value {
	s := x.Type.Shape
	if s != nil {
		if axis < 0 {
			axis += len(s)
		}
		if n, ok := s[:axis].Size().Int(); ok {
			return c.Ints(n)
		}
		if axis == 1 {
			return c.DimOf(x, 0)
		}
	}
	shape := c.Op("Shape", []*graph.Value{x}, graph.IntAttr("end", int64(axis)))
	return c.Op("ReduceProd", []*graph.Value{shape}, graph.IntAttr("keepdims", 1))
}

// shapeFrom returns the sizes of x from axis start on, which may be negative.
func (c *Ctx) shapeFrom(x *graph.Value, start int) *graph.Value {
	s := x.Type.Shape
	if s == nil {
		return c.Op("Shape", []*graph.Value{x}, graph.IntAttr("start", int64(start)))
	}
	if start < 0 {
		start += len(s)
	}
	var v vector
	for i := start; i < len(s); i++ {
		v.addDim(c, x, i)
	}
	return v.value(c)
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
