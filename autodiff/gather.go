package autodiff

import (
	"errors"

	"gradtool/graph"
)

func gatherRules() []Rule {
	return []Rule{
		{Name: "Gather", Kind: HasVJP, Stop: []int{1}, VJP: gatherVJP, Check: gatherCovered},
	}
}

func gatherCovered(n *graph.Node) error {
	if n.Int("axis", 0) != 0 && (n.In[0].Type.Shape == nil || n.In[1].Type.Shape == nil) {
		return errors.New("the gradient of Gather along an axis other than 0 needs the ranks of data and indices")
	}
	return nil
}

// gatherVJP: y holds the slices of x that the index names; dx sums g's slices where they came from.
func gatherVJP(c *Ctx) []*graph.Value {
	x, at, g := c.X(0), c.X(1), c.Ct(0)
	axis := int(c.Node.Int("axis", 0))
	if axis < 0 {
		axis += len(x.Type.Shape)
	}
	if at.Type.Shape != nil && len(at.Type.Shape) == 0 {
		// One slice: zeros go around it.
		n := c.sizesAt(x, []int64{int64(axis)})
		i := c.scalarIndex(at, n)
		pads := c.pair(i, c.minus(c.minus(n, i), c.Ints(1)))
		g = c.Unsqueeze(g, int64(axis))
		return one(c.Op("Pad", []*graph.Value{g, pads, nil, c.Ints(int64(axis))}))
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

// pair returns the vector of two given as vectors of one element.
func (c *Ctx) pair(x, y *graph.Value) *graph.Value {
	var v vector
	for _, p := range []*graph.Value{x, y} {
		if n, ok := c.numbers(p); ok {
			v.add(n[0])
		} else {
			v.addPart(c, p, 1)
		}
	}
	return v.value(c)
}

// scatterSlices returns zeros of x's shape to whose slices along axis those of g are added: at names where each
// belongs, and its axes stand in g in the place of axis. The slices are scattered along the first axis, where
// they are contiguous; other axes are brought there. Their ranks must be known unless axis is 0.
func (c *Ctx) scatterSlices(x, at, g *graph.Value, axis int) *graph.Value {
	g = c.widened(g)
	at = c.Unsqueeze(at, -1)
	if axis == 0 {
		return c.scatterAdd(c.Shape(x), at, g)
	}
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
