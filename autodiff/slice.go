package autodiff

import (
	"gradtool/graph"
)

// sliceVJP: y takes the elements of x at start, start+step, ... along each sliced axis; dx holds g at those and
// zeros elsewhere. The transpose goes axis by axis: a step of 1 pads with zeros, a reversal reverses, any
// other step puts zeros between. Where axes or steps are known at run time only,
// elements are scattered to their row-major positions.
func sliceVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	axes, ok := c.sliceAxes()
	steps, fixed := c.numbers(c.X(4))
	if c.X(4) == nil {
		fixed = true
		for range axes {
			steps = append(steps, 1)
		}
	}
	if !ok || !fixed || len(steps) != len(axes) {
		in := append([]*graph.Value{c.flatPositions(x)}, c.Node.In[1:]...)
		return one(c.scatterFlat(x, c.Op("Slice", in), g))
	}
	var padded []int64
	var begins, ends []*graph.Value // of the padding
	for i, a := range axes {
		switch {
		case steps[i] == 1:
			if before, after := c.outside(i, int(a)); before != nil {
				padded, begins, ends = append(padded, a), append(begins, before), append(ends, after)
			}
		case steps[i] == -1 && c.reverses(i, dimAt(x, int(a))):
			g = c.Slice(g, c.Ints(-1), c.Ints(-1<<63), c.Ints(a), c.Ints(-1))
		default:
			g = c.unstride(g, i, int(a), steps[i])
		}
	}
	if len(padded) == 0 {
		return one(g)
	}
	return one(c.border(g, padded, begins, ends))
}

// sliceAxes returns the axes that a Slice node names, if they are known.
func (c *Ctx) sliceAxes() ([]int64, bool) {
	if c.X(3) != nil {
		return c.numbers(c.X(3))
	}
	n := len(c.Info.Dims(c.X(1)))
	if n == 0 {
		n = len(c.X(0).Type.Shape)
	}
	axes := make([]int64, n)
	for i := range axes {
		axes[i] = int64(i)
	}
	return axes, n > 0 || c.X(0).Type.Shape != nil
}

// reverses reports whether slice i, of step -1, takes its whole dimension of n elements backwards.
func (c *Ctx) reverses(i int, n graph.Dim) bool {
	start, end := c.Info.Dims(c.X(1)), c.Info.Dims(c.X(2))
	if i >= len(start) || i >= len(end) {
		return false
	}
	s, ok1 := start[i].Int()
	e, ok2 := end[i].Int()
	const far = 1<<31 - 1
	size, sized := n.Int()
	return ok1 && ok2 && (s == -1 || s >= far || sized && s >= size-1) && (e <= -far || sized && e < -size)
}

// outside returns how many elements slice i, of step 1, leaves out before and after those it takes; nil if none.
func (c *Ctx) outside(i, axis int) (before, after *graph.Value) {
	n, taken := dimAt(c.X(0), axis), dimAt(c.Y(0), axis)
	start, zero := graph.Unknown(), graph.Known(0)
	if list := c.Info.Dims(c.X(1)); i < len(list) {
		start = list[i]
	}
	first := graph.Unknown()
	switch {
	case isZero(start):
		first = zero
	case start.Less(zero):
		first = n.Add(start).Max(zero)
	case zero.LessEq(start):
		first = start.Min(n)
	}
	rest := n.Sub(taken).Sub(first)
	if isZero(first) && isZero(rest) {
		return nil, nil
	}
	if p, ok := first.Int(); ok {
		before = c.Ints(p)
	} else {
		before = c.firstTaken(i, axis, 1)
	}
	if p, ok := rest.Int(); ok {
		return before, c.Ints(p)
	}
	a := []int64{int64(axis)}
	return before, c.minus(c.minus(c.sizesAt(c.X(0), a), c.sizesAt(c.Y(0), a)), before)
}

// firstTaken returns the position of the first element that slice i takes, clamped to the dimension as Slice does.
func (c *Ctx) firstTaken(i, axis int, step int64) *graph.Value {
	n := c.sizesAt(c.X(0), []int64{int64(axis)})
	last := n
	if step < 0 {
		last = c.minus(n, c.Ints(1))
	}
	first := c.fromFront(c.element(c.X(1), i), n)
	return c.least(c.most(first, c.Ints(0)), last)
}

// element returns element i of an integer vector as an int64 vector of one.
func (c *Ctx) element(list *graph.Value, i int) *graph.Value {
	d := c.Info.Dims(list)
	if i < len(d) {
		if n, ok := d[i].Int(); ok {
			return c.Ints(n)
		}
		if len(d) == 1 {
			return c.int64s(list)
		}
	}
	return c.int64s(c.Gather(list, c.Ints(int64(i)), 0))
}

// unstride puts g back along one axis where Slice took every step-th element. Where the elements behind the axis make
// short runs, zeros are put between those of g; else an inverse index is faster in ONNX Runtime.
func (c *Ctx) unstride(g *graph.Value, i, axis int, step int64) *graph.Value {
	run := graph.Known(1)
	if axis != -1 {
		run = graph.Unknown()
		if s := c.X(0).Type.Shape; s != nil {
			run = s[(axis+len(s))%len(s)+1:].Size()
		}
	}
	const short = 64
	if n, ok := run.Int(); ok && n <= short && max(step, -step) <= short {
		return c.stuffZeros(g, i, axis, step)
	}
	return c.inverseIndex(g, i, axis, step)
}

// stuffZeros puts |step|-1 zeros behind each element of g along an axis, and a border around all.
func (c *Ctx) stuffZeros(g *graph.Value, i, axis int, step int64) *graph.Value {
	x, a := c.X(0), []int64{int64(axis)}
	n, taken, first := c.sizesAt(x, a), c.sizesAt(c.Y(0), a), c.firstTaken(i, axis, step)
	if step < 0 { // the last taken comes first
		g = c.Slice(g, c.Ints(-1), c.Ints(-1<<63), c.Ints(a...), c.Ints(-1))
		first = c.plus(first, c.times(c.minus(taken, c.Ints(1)), c.Ints(step)))
		first = c.least(first, n) // if none is taken, the step back from it may lead outside
		step = -step
	}
	inner := int64(axis)
	if axis >= 0 {
		inner++
	}
	apart := c.Unsqueeze(g, inner)
	zeros := c.Expand(c.Like(g, 0), c.withSize(apart, int(inner), c.Ints(step-1)))
	length := c.times(taken, c.Ints(step))
	g = c.Reshape(c.Concat(inner, apart, zeros), c.withSize(g, axis, length))
	return c.borderOne(g, a[0], first, c.minus(c.minus(n, length), first))
}

// withSize returns v's shape with another size, a vector of one element, along an axis, possibly negative.
func (c *Ctx) withSize(v *graph.Value, axis int, size *graph.Value) *graph.Value {
	if s := v.Type.Shape; s != nil {
		var out vector
		for i := range s {
			if i == (axis+len(s))%len(s) {
				out.addOne(c, size)
			} else {
				out.addDim(c, v, i)
			}
		}
		return out.value(c)
	}
	parts := []*graph.Value{size}
	if axis != 0 {
		parts = []*graph.Value{c.Op("Shape", []*graph.Value{v}, graph.IntAttr("end", int64(axis))), size}
	}
	if axis != -1 {
		parts = append(parts, c.shapeFrom(v, axis+1))
	}
	return c.Concat(0, parts...)
}

// maxInverse is the longest inverse index that is written as a constant.
const maxInverse = 4096

// inverseIndex takes the elements of g, and for those of x that Slice did not take one more element, a zero, by an
// index that says for every position of x which.
func (c *Ctx) inverseIndex(g *graph.Value, i, axis int, step int64) *graph.Value {
	a := []int64{int64(axis)}
	n, taken, first := c.sizesAt(c.X(0), a), c.sizesAt(c.Y(0), a), c.firstTaken(i, axis, step)
	g = c.borderOne(g, int64(axis), c.Ints(0), c.Ints(1))
	size, ok1 := c.numbers(n)
	count, ok2 := c.numbers(taken)
	from, ok3 := c.numbers(first)
	if ok1 && ok2 && ok3 && size[0] <= maxInverse {
		inverse := make([]int64, size[0])
		for p := range inverse {
			inverse[p] = count[0]
		}
		for k := range count[0] {
			inverse[from[0]+k*step] = k
		}
		return c.Gather(g, c.Ints(inverse...), int64(axis))
	}
	order := c.upTo(taken)
	at := c.plus(first, c.times(order, c.Ints(step)))
	inverse := c.Op("ScatterElements", []*graph.Value{c.Expand(taken, n), at, order})
	return c.Gather(g, inverse, int64(axis))
}
