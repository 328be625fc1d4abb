package autodiff

import (
	"fmt"
	"math"

	"gradtool/graph"
)

// reduceRules holds the reductions. Below, a bar marks a value brought back to the rank of x, with the
// reduced axes of size 1.
func reduceRules() []Rule {
	return append([]Rule{
		// y = sum x; dx = ḡ.
		unary("ReduceSum", func(c *Ctx, x, y, g *graph.Value) *graph.Value { return c.ExpandLike(kept(c, g), x) }),
		// y = sum x / n; dx = ḡ/n.
		unary("ReduceMean", reduceMeanVJP),
		// y = max x; dx = ḡ/k where x = ȳ, k elements of the group, else 0.
		unary("ReduceMax", reduceExtremeVJP),
		unary("ReduceMin", reduceExtremeVJP),
		// y = prod x; dx_i = ḡ prod of the others.
		{Name: "ReduceProd", Kind: HasVJP, Check: checkReduceProd, VJP: reduceProdVJP},
		// y = sum |x|; dx = ḡ sign x.
		unary("ReduceL1", func(c *Ctx, x, y, g *graph.Value) *graph.Value { return c.Mul(c.Unary("Sign", x), kept(c, g)) }),
		// y = sqrt(sum x^2); dx = x ḡ/ȳ, 0 where y = 0.
		unary("ReduceL2", func(c *Ctx, x, y, g *graph.Value) *graph.Value { return c.Mul(x, kept(c, c.atZero(g, y))) }),
		// y = log(sum x); dx = ḡ/sum x = ḡ exp(-ȳ).
		unary("ReduceLogSum", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			return c.ExpandLike(kept(c, c.Mul(g, c.Unary("Exp", c.Neg(y)))), x)
		}),
		// y = log(sum exp x); dx = ḡ exp(x - ȳ). Where all x are -inf, so is y, and the derivative is 0.
		unary("ReduceLogSumExp", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			y = c.Op("Max", []*graph.Value{y, c.Like(y, lowest(y.Type.Elem))})
			return c.Mul(kept(c, g), c.Unary("Exp", c.Sub(x, kept(c, y))))
		}),
		// y = sum x^2; dx = 2 x ḡ.
		unary("ReduceSumSquare", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			return c.Mul(x, kept(c, c.MulScalar(g, 2)))
		}),
	}, append(noGrad("the results are integers", "ArgMax", "ArgMin"), cumulativeRules()...)...)
}

// lowest returns the least finite number of a float type.
func lowest(elem graph.DataType) float64 {
	switch elem {
	case graph.Float16:
		return -65504
	case graph.Double:
		return -math.MaxFloat64
	case graph.BFloat16:
		return -0x1.fep127
	}
	return -math.MaxFloat32
}

// divOrZero returns a/b, and 0 where b is 0, whose derivatives are finite there too.
func divOrZero(c *Ctx, a, b *graph.Value) *graph.Value {
	zero := c.Binary("Equal", b, c.Like(b, 0))
	return c.Where(zero, c.Like(a, 0), c.Div(a, c.Where(zero, c.Like(b, 1), b)))
}

// axesOf returns the axes of a reduction. Without known, only run time tells; all says that it reduces
// over every axis, which are then not listed.
func axesOf(c *Ctx) (axes []int64, all, known bool) {
	noop := c.Node.Int("noop_with_empty_axes", 0) != 0
	operand := c.X(1)
	if operand == nil {
		return nil, !noop, true
	}
	dims := c.Info.Dims(operand)
	if dims == nil {
		return nil, false, false
	}
	for _, d := range dims {
		n, ok := d.Int()
		if !ok {
			return nil, false, false
		}
		axes = append(axes, n)
	}
	return axes, len(axes) == 0 && !noop, true
}

// kept returns v, of the shape of the reduction's result, in a shape that broadcasts against operand 0.
func kept(c *Ctx, v *graph.Value) *graph.Value {
	if c.Node.Int("keepdims", 1) != 0 {
		return v
	}
	axes, all, known := axesOf(c)
	switch {
	case all: // a scalar
		return v
	case known:
		return c.Unsqueeze(v, axes...)
	}
	// The operand's dimensions with ones at the axes; and ones alone where no axes mean all.
	x, list := c.X(0), c.X(1)
	ones := c.Full(c.Shape(list), graph.Int64, 1)
	shape := c.Op("ScatterElements", []*graph.Value{c.Shape(x), list, ones})
	if c.Node.Int("noop_with_empty_axes", 0) == 0 {
		none := c.Binary("Equal", c.Shape(list), c.Ints(0))
		shape = c.Where(none, c.Ints(1), shape)
	}
	return c.Reshape(v, shape)
}

// sameReduction applies a reduction over the node's axes to v, of operand 0's shape, keeping the rank.
func sameReduction(c *Ctx, op string, v *graph.Value) *graph.Value {
	return c.Op(op, []*graph.Value{v, c.X(1)}, graph.IntAttr("keepdims", 1),
		graph.IntAttr("noop_with_empty_axes", c.Node.Int("noop_with_empty_axes", 0)))
}

func reduceMeanVJP(c *Ctx, x, y, g *graph.Value) *graph.Value {
	return c.ExpandLike(kept(c, c.Mul(g, perElementOf(c, x, y))), x)
}

// perElementOf returns size(y)/size(x) as a scalar of x's type.
func perElementOf(c *Ctx, x, y *graph.Value) *graph.Value { return sizeRatio(c, y, x, x.Type.Elem) }

// sizeRatio returns size(a)/size(b) as a scalar. Run time divides in float where elem is narrower, which many sizes do not fit.
func sizeRatio(c *Ctx, a, b *graph.Value, elem graph.DataType) *graph.Value {
	n, okA := a.Type.Shape.Size().Int()
	m, okB := b.Type.Shape.Size().Int()
	if okA && okB {
		return c.Scalar(elem, float64(n)/float64(max(m, 1)))
	}
	work := elem
	if work != graph.Double {
		work = graph.Float
	}
	size := func(v *graph.Value, n int64, known bool) *graph.Value {
		if known {
			return c.Scalar(work, float64(n))
		}
		return c.Cast(c.Unary("Size", v), work)
	}
	return c.Cast(c.Div(size(a, n, okA), size(b, m, okB)), elem)
}

func reduceExtremeVJP(c *Ctx, x, y, g *graph.Value) *graph.Value {
	chosen := c.Binary("Equal", x, kept(c, y))
	if c.wholeTies() {
		return c.Where(chosen, kept(c, g), c.Like(x, 0))
	}
	ties := sameReduction(c, "ReduceSum", c.Cast(chosen, x.Type.Elem))
	return c.Where(chosen, c.Div(kept(c, g), ties), c.Like(x, 0))
}

// checkReduceProd refuses axes that only run time tells of an operand of unknown rank: each axis gets its own nodes.
func checkReduceProd(n *graph.Node) error {
	if v := n.Operand(1); v != nil && v.Init == nil && (v.Def == nil || v.Def.Op != "Constant") && n.In[0].Type.Shape == nil {
		return fmt.Errorf("where run time tells the axes of a product, the operand's rank must be known")
	}
	return nil
}

func reduceProdVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	axes, all, known := axesOf(c)
	switch {
	case all && len(x.Type.Shape) == 0 && x.Type.Shape != nil:
		return one(g)
	case all:
		flat := productOfOthers(c, c.ReshapeTo(x, -1), 0)
		return one(c.Mul(g, c.ReshapeLike(flat, x)))
	case !known:
		return reduceProdAtRunTime(c)
	case len(axes) == 0:
		return one(g)
	}
	// Axis by axis: the others in x's own row, times the other rows' products.
	ct := kept(c, g)
	for i, a := range axes {
		ct = c.Mul(ct, productOfOthers(c, x, a))
		if i+1 < len(axes) {
			x = product(c, x, a)
		}
	}
	return one(ct)
}

func product(c *Ctx, x *graph.Value, axis int64) *graph.Value {
	return c.Op("ReduceProd", []*graph.Value{x, c.Ints(axis)}, graph.IntAttr("keepdims", 1))
}

// reduceProdAtRunTime asks of each axis whether it is among those listed, and leaves it alone if not.
func reduceProdAtRunTime(c *Ctx) []*graph.Value {
	x, list, ct := c.X(0), c.X(1), kept(c, c.Ct(0))
	rank := int64(len(x.Type.Shape))
	// A one for each axis that is reduced.
	flags := c.Op("ScatterElements", []*graph.Value{c.Full(c.Ints(rank), graph.Int64, 0), list, c.Full(c.Shape(list), graph.Int64, 1)})
	if c.Node.Int("noop_with_empty_axes", 0) == 0 {
		none := c.Binary("Equal", c.Shape(list), c.Ints(0))
		flags = c.Where(none, c.Ints(1), flags)
	}
	reduced := c.Cast(flags, graph.Bool)
	for a := range rank {
		here := c.Squeeze(c.cut(reduced, 0, a, a+1), 0)
		ct = c.Mul(ct, c.Where(here, productOfOthers(c, x, a), c.Like(x, 1)))
		if a+1 < rank {
			x = c.Where(here, product(c, x, a), x)
		}
	}
	return one(ct)
}
