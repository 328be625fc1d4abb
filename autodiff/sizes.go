package autodiff

import (
	"slices"

	"gradtool/graph"
)

// Sizes and positions inside emitted graphs are int64 vectors, which are constants as far as they are known when
// the rule runs.

// vector collects the elements of an int64 vector: numbers where they are known, else pieces computed at run time.
type vector struct {
	n      int // elements so far
	parts  []*graph.Value
	consts []int64 // elements after the last part
}

func (v *vector) add(x int64) { v.consts, v.n = append(v.consts, x), v.n+1 }

// addPart adds a run-time vector of n elements.
func (v *vector) addPart(c *Ctx, p *graph.Value, n int) {
	v.flush(c)
	v.parts, v.n = append(v.parts, p), v.n+n
}

func (v *vector) flush(c *Ctx) {
	if len(v.consts) > 0 {
		v.parts, v.consts = append(v.parts, c.Ints(v.consts...)), nil
	}
}

// addDim adds the size of axis i of x, whose rank is known.
func (v *vector) addDim(c *Ctx, x *graph.Value, i int) {
	if n, ok := x.Type.Shape[i].Int(); ok {
		v.add(n)
		return
	}
	v.addPart(c, c.DimOf(x, i), 1)
}

// addElement adds element i, known as d, of an int64 vector.
func (v *vector) addElement(c *Ctx, list *graph.Value, d graph.Dim, i int) {
	if n, ok := d.Int(); ok {
		v.add(n)
		return
	}
	v.addPart(c, c.Gather(list, c.Ints(int64(i)), 0), 1)
}

// value returns the vector.
func (v *vector) value(c *Ctx) *graph.Value {
	v.flush(c)
	if len(v.parts) == 0 {
		return c.Ints()
	}
	return c.Concat(0, v.parts...)
}

// addSize adds the size of axis i, possibly negative, of x of any rank.
func (v *vector) addSize(c *Ctx, x *graph.Value, i int) {
	if d := dimAt(x, i); known(d) {
		n, _ := d.Int()
		v.add(n)
		return
	}
	v.addPart(c, c.DimOf(x, i), 1)
}

// addOne adds a vector of one element.
func (v *vector) addOne(c *Ctx, x *graph.Value) {
	if n, ok := c.numbers(x); ok {
		v.add(n[0])
		return
	}
	v.addPart(c, x, 1)
}

// border puts zeros around v along the given axes; before and after, one vector of one element per axis, say
// how many. All axes are padded if their number is known: naming them needs a newer opset.
func (c *Ctx) border(v *graph.Value, axes []int64, before, after []*graph.Value) *graph.Value {
	var pads vector
	if v.Type.Shape == nil {
		for _, p := range append(slices.Clone(before), after...) {
			pads.addOne(c, p)
		}
		return c.Op("Pad", []*graph.Value{v, pads.value(c), nil, c.Ints(axes...)})
	}
	rank := int64(len(v.Type.Shape))
	for _, side := range [][]*graph.Value{before, after} {
		for a := range rank {
			i := slices.IndexFunc(axes, func(b int64) bool { return (b+rank)%rank == a })
			if i < 0 {
				pads.add(0)
			} else {
				pads.addOne(c, side[i])
			}
		}
	}
	return c.Op("Pad", []*graph.Value{v, pads.value(c)})
}

// borderOne is border for one axis.
func (c *Ctx) borderOne(v *graph.Value, axis int64, before, after *graph.Value) *graph.Value {
	return c.border(v, []int64{axis}, []*graph.Value{before}, []*graph.Value{after})
}

// dimAt returns the size of axis i, possibly negative, of x; unknown if x's rank is.
func dimAt(x *graph.Value, i int) graph.Dim {
	s := x.Type.Shape
	if s == nil {
		return graph.Unknown()
	}
	if i < 0 {
		i += len(s)
	}
	return s[i]
}

// numbers returns the elements of an int64 vector or scalar if all are known.
func (c *Ctx) numbers(v *graph.Value) ([]int64, bool) {
	if v == nil {
		return nil, false
	}
	return graph.Shape(c.Info.Dims(v)).Ints()
}

// fold2 applies an element-wise operator to two int64 vectors, now if their elements are known. A vector of
// one element is broadcast.
func (c *Ctx) fold2(op string, f func(a, b int64) int64, x, y *graph.Value) *graph.Value {
	a, ok1 := c.numbers(x)
	b, ok2 := c.numbers(y)
	if !ok1 || !ok2 || len(a) == 0 || len(b) == 0 {
		return c.Binary(op, x, y)
	}
	out := make([]int64, max(len(a), len(b)))
	for i := range out {
		out[i] = f(a[min(i, len(a)-1)], b[min(i, len(b)-1)])
	}
	return c.Ints(out...)
}

func (c *Ctx) plus(x, y *graph.Value) *graph.Value {
	return c.fold2("Add", func(a, b int64) int64 { return a + b }, x, y)
}

func (c *Ctx) minus(x, y *graph.Value) *graph.Value {
	return c.fold2("Sub", func(a, b int64) int64 { return a - b }, x, y)
}

func (c *Ctx) times(x, y *graph.Value) *graph.Value {
	return c.fold2("Mul", func(a, b int64) int64 { return a * b }, x, y)
}

func (c *Ctx) least(x, y *graph.Value) *graph.Value {
	return c.fold2("Min", func(a, b int64) int64 { return min(a, b) }, x, y)
}

func (c *Ctx) most(x, y *graph.Value) *graph.Value {
	return c.fold2("Max", func(a, b int64) int64 { return max(a, b) }, x, y)
}

// fromFront returns positions counted from the front of dimensions of n elements: n is added to negative ones.
func (c *Ctx) fromFront(at, n *graph.Value) *graph.Value {
	if a, ok := c.numbers(at); ok {
		nonNegative := true
		for _, p := range a {
			nonNegative = nonNegative && p >= 0
		}
		if nonNegative {
			return at
		}
		if b, ok := c.numbers(n); ok && len(a) == len(b) {
			out := make([]int64, len(a))
			for i, p := range a {
				if out[i] = p; p < 0 {
					out[i] += b[i]
				}
			}
			return c.Ints(out...)
		}
	}
	return c.Where(c.Binary("Less", at, c.IntScalar(0)), c.Add(at, n), at)
}

func isZero(d graph.Dim) bool {
	n, ok := d.Int()
	return ok && n == 0
}

// int64s returns an integer operand as int64.
func (c *Ctx) int64s(v *graph.Value) *graph.Value {
	if v == nil {
		return nil
	}
	return c.Cast(v, graph.Int64)
}

// upTo returns the vector 0, 1, ... n-1, for n a vector of one element.
func (c *Ctx) upTo(n *graph.Value) *graph.Value {
	return c.Op("Range", []*graph.Value{c.IntScalar(0), c.Squeeze(n, 0), c.IntScalar(1)})
}

// sizeOf returns the number of x's elements as a vector of one element.
func (c *Ctx) sizeOf(x *graph.Value) *graph.Value {
	if n, ok := x.Type.Shape.Size().Int(); ok {
		return c.Ints(n)
	}
	return c.Unsqueeze(c.Op("Size", []*graph.Value{x}), 0)
}

// sizesAt returns the sizes of x along the given axes, possibly negative.
func (c *Ctx) sizesAt(x *graph.Value, axes []int64) *graph.Value {
	var v vector
	for _, a := range axes {
		v.addSize(c, x, int(a))
	}
	return v.value(c)
}

// flatPositions returns a tensor of x's shape that holds 0, 1, 2, ... in row-major order.
func (c *Ctx) flatPositions(x *graph.Value) *graph.Value {
	return c.Reshape(c.upTo(c.sizeOf(x)), c.Shape(x))
}

// scatterFlat returns zeros of x's shape with g's elements added at the row-major positions that pos, of g's shape,
// names: dx of y = x.flat[pos].
func (c *Ctx) scatterFlat(x, pos, g *graph.Value) *graph.Value {
	g = c.widened(g)
	pos = c.Unsqueeze(c.ReshapeTo(pos, -1), 1)
	sum := c.scatterAdd(c.sizeOf(x), pos, c.ReshapeTo(g, -1))
	return c.Reshape(sum, c.Shape(x))
}

// scatterAdd returns zeros of the given shape to whose slices at the index tuples pos the updates are added.
// Tuples may repeat.
func (c *Ctx) scatterAdd(shape, pos, updates *graph.Value) *graph.Value {
	zeros := c.Full(shape, updates.Type.Elem, 0)
	return c.Op("ScatterND", []*graph.Value{zeros, pos, updates}, graph.StringAttr("reduction", "add"))
}

// widened returns g as float if it is of a narrower type: sums of many contributions want the precision, and
// ONNX Runtime's CPU kernels reduce no half-precision scatters. The driver casts back.
func (c *Ctx) widened(g *graph.Value) *graph.Value {
	if e := g.Type.Elem; e == graph.Float16 || e == graph.BFloat16 {
		return c.Cast(g, graph.Float)
	}
	return g
}
