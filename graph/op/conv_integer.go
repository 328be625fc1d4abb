package op

import (
	"slices"

	"gradtool/graph"
)

func convIntegerDefs() []Def {
	u8 := func(shape []int, v ...float64) Arg { return TV(graph.Uint8, shape, v...) }
	i8 := func(shape []int, v ...float64) Arg { return TV(graph.Int8, shape, v...) }
	f := func(v ...float64) Arg { return FV([]int{}, v...) }
	image := u8([]int{1, 1, 3, 3}, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	return []Def{
		{Name: "ConvInteger", Infer: inferConvInteger, Eval: evalConvInteger, Cost: costConv, Samples: []Sample{
			{In: []Arg{image, u8([]int{1, 1, 2, 2}, 1, 1, 1, 1), u8([]int{}, 1)}, Attrs: []*graph.Attr{graph.IntsAttr("pads", 1, 1, 1, 1)}},
			{Name: "zero point per channel", In: []Arg{image, i8([]int{2, 1, 2, 1}, 1, -2, 3, 4), {}, i8([]int{2}, 1, -1)}},
		}},
		{Name: "QLinearConv", Infer: inferQLinearConv, Eval: evalQLinearConv, Cost: costQLinearConv, Samples: []Sample{
			{In: []Arg{image, f(0.5), u8([]int{}, 5), u8([]int{1, 1, 2, 2}, 1, 7, 3, 250), f(0.25), u8([]int{}, 4), f(2), u8([]int{}, 100)}},
			{Name: "per channel", In: []Arg{image, f(0.5), u8([]int{}, 5), i8([]int{2, 1, 1, 1}, 20, -7), FV([]int{2}, 0.25, 0.5), i8([]int{2}, 0, 1),
				f(0.5), i8([]int{}, -3), TV(graph.Int32, []int{2}, 40, -50)}, Attrs: []*graph.Attr{graph.IntsAttr("strides", 2, 1)}},
		}},
	}
}

func inferConvInteger(c *InferCtx) error {
	out, err := convShape(c.Node, c.Shape(0), c.Shape(1))
	c.Set(0, graph.Int32, out)
	return err
}

func inferQLinearConv(c *InferCtx) error {
	out, err := convShape(c.Node, c.Shape(0), c.Shape(3))
	c.Set(0, c.Elem(7), out)
	return err
}

// costQLinearConv is costConv with the weights at their place.
func costQLinearConv(c *CostCtx) float64 {
	if len(c.In) < 4 || len(c.In[3]) < 2 {
		return 0
	}
	return 2 * float64(prod(c.In[3][1:])) * c.OutLen(0)
}

// evalConvInteger convolves x - x_zero_point with w - w_zero_point in 32-bit integers. Padding is 0 after the zero
// point is taken off.
func evalConvInteger(c *EvalCtx) error {
	y, err := integerConv(c.Node, c.Arg(0), c.Arg(2), c.Arg(1), c.Arg(3), nil)
	if err != nil {
		return err
	}
	c.Set(0, y)
	return nil
}

// integerConv convolves integers after their zero points are taken off; a vector of zero points goes with the output
// channels of the weights.
func integerConv(n *graph.Node, x, xZero, w, wZero, bias *Array) (*Array, error) {
	x, err := offZero(x, xZero, false)
	if err != nil {
		return nil, err
	}
	if wZero != nil && wZero.Len() > 1 && w.Rank() > 0 {
		wZero = wZero.WithShape(append([]int{wZero.Len()}, slices.Repeat([]int{1}, w.Rank()-1)...))
	}
	if w, err = offZero(w, wZero, false); err != nil {
		return nil, err
	}
	return convArrays(n, x, w, bias)
}

// evalQLinearConv convolves quantized operands and quantizes the result.
func evalQLinearConv(c *EvalCtx) error {
	acc, err := integerConv(c.Node, c.Arg(0), c.Arg(2), c.Arg(3), c.Arg(5), c.Arg(8))
	if err != nil {
		return err
	}
	scale, out := c.Arg(4), c.New(c.Arg(7).Elem, acc.Shape)
	if scale.Len() != 1 && scale.Len() != acc.Shape[1] {
		return c.Errorf("w_scale has shape %v, want one element or %d", scale.Shape, acc.Shape[1])
	}
	size := prod(acc.Shape[2:])
	zero := c.Arg(7).Float(0)
	for i, a := range acc.I64 {
		s := c.Arg(1).Float(0) * scale.Float(i/size%acc.Shape[1]%scale.Len()) / c.Arg(6).Float(0)
		out.I64[i] = requantize(a, s, zero, out.Elem)
	}
	c.Set(0, out)
	return nil
}
