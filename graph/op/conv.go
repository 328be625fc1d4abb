package op

import (
	"fmt"
	"slices"

	"gradtool/graph"
)

func convDefs() []Def {
	return slices.Concat([]Def{
		{Name: "Conv", Infer: inferConv, Eval: evalConv, Cost: costConv, Samples: convSamples()},
		{Name: "ConvTranspose", Infer: inferConvTranspose, Eval: evalConvTranspose, Cost: costConvTranspose,
			Samples: convTransposeSamples()},
	}, convIntegerDefs(), columnDefs(), deformDefs(), causalDefs())
}

func convSamples() []Sample {
	ints, str, group := graph.IntsAttr, graph.StringAttr, func(g int64) *graph.Attr { return graph.IntAttr("group", g) }
	k3 := ints("kernel_shape", 3, 3)
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	return []Sample{
		{In: []Arg{F(2, 3, 5, 4), F(2, 3, 3, 3), F(2)}, Attrs: attrs(k3)},
		{Name: "pads and strides", In: []Arg{F(2, 2, 6, 5), F(3, 2, 3, 3), F(3)},
			Attrs: attrs(ints("pads", 1, 0, 2, 1), ints("strides", 2, 2))},
		{Name: "remainder", In: []Arg{F(1, 2, 8, 7), F(2, 2, 3, 2)}, Attrs: attrs(ints("strides", 3, 4))},
		{Name: "dilations", In: []Arg{F(1, 2, 7, 8), F(2, 2, 2, 3), F(2)}, Attrs: attrs(ints("dilations", 3, 2), ints("pads", 1, 1, 1, 1))},
		{Name: "dilations and strides", In: []Arg{F(2, 2, 9, 8), F(2, 2, 3, 2)},
			Attrs: attrs(ints("dilations", 2, 3), ints("strides", 2, 2), ints("pads", 2, 0, 1, 1))},
		{Name: "empty batch", In: []Arg{F(0, 2, 5, 4), F(3, 2, 3, 3), F(3)}},
		{Name: "empty batch, grouped", In: []Arg{F(0, 4, 5, 4), F(6, 2, 3, 3), F(6)}, Attrs: attrs(group(2), ints("strides", 2, 2))},
		{Name: "1-D", In: []Arg{F(2, 3, 7), F(2, 3, 3), F(2)}, Attrs: attrs(ints("pads", 1, 1), ints("strides", 2))},
		{Name: "3-D", In: []Arg{F(1, 2, 4, 3, 5), F(2, 2, 2, 2, 3), F(2)}, Attrs: attrs(ints("pads", 0, 1, 1, 1, 0, 1), ints("strides", 1, 1, 2))},
		{Name: "pointwise", In: []Arg{F(2, 3, 3, 4), F(5, 3, 1, 1), F(5)}, Attrs: attrs(ints("kernel_shape", 1, 1))},
		{Name: "pointwise strided", In: []Arg{F(2, 3, 4, 5), F(2, 3, 1, 1)}, Attrs: attrs(ints("strides", 2, 2), ints("kernel_shape", 1, 1))},
		{Name: "pointwise grouped", In: []Arg{F(2, 4, 3, 4), F(6, 2, 1, 1), F(6)}, Attrs: attrs(group(2), ints("kernel_shape", 1, 1))},
		{Name: "grouped", In: []Arg{F(2, 4, 5, 4), F(6, 2, 3, 2), F(6)}, Attrs: attrs(group(2), ints("pads", 1, 1, 0, 1), ints("strides", 2, 1))},
		{Name: "depthwise", In: []Arg{F(2, 3, 5, 5), F(3, 1, 3, 3), F(3)}, Attrs: attrs(group(3), ints("pads", 1, 1, 1, 1), k3)},
		{Name: "depthwise strided", In: []Arg{F(1, 3, 6, 6), F(3, 1, 3, 3)}, Attrs: attrs(group(3), ints("strides", 2, 2), k3)},
		{Name: "depthwise multiplier", In: []Arg{F(2, 2, 4, 4), F(4, 1, 2, 2)}, Attrs: attrs(group(2), ints("kernel_shape", 2, 2))},
		{Name: "many channels", In: []Arg{F(1, 16, 5, 5), F(2, 16, 3, 3)}, Attrs: attrs(ints("pads", 1, 1, 1, 1), k3)},
		{Name: "many channels strided", In: []Arg{F(2, 16, 6, 5), F(2, 16, 2, 2)}, Attrs: attrs(ints("pads", 1, 0, 0, 1), ints("strides", 2, 3))},
		{Name: "wide", In: []Arg{F(1, 16, 28, 28), F(2, 16, 3, 2)}, Attrs: attrs(ints("pads", 1, 1, 1, 0))},
		{Name: "large padding", In: []Arg{F(1, 2, 3, 3), F(2, 2, 2, 2)}, Attrs: attrs(ints("pads", 2, 2, 3, 2))},
		{Name: "SAME_UPPER", In: []Arg{F(1, 2, 5, 6), F(2, 2, 2, 3)}, Attrs: attrs(str("auto_pad", "SAME_UPPER"), ints("kernel_shape", 2, 3))},
		{Name: "SAME_UPPER strided", In: []Arg{F(1, 2, 5, 6), F(2, 2, 4, 3)}, Attrs: attrs(str("auto_pad", "SAME_UPPER"), ints("strides", 2, 2))},
		{Name: "SAME_LOWER strided", In: []Arg{F(1, 2, 5, 7), F(2, 2, 4, 2)}, Attrs: attrs(str("auto_pad", "SAME_LOWER"), ints("strides", 2, 3))},
		{Name: "VALID", In: []Arg{F(1, 2, 5, 6), F(2, 2, 2, 3)}, Attrs: attrs(str("auto_pad", "VALID"), ints("strides", 2, 1))},
	}
}

// kernelDims returns the spatial sizes of the kernel: the attribute, or else those of the weights; nil if not even
// their number is known.
func kernelDims(n *graph.Node, weights graph.Shape) []graph.Dim {
	if k := n.Ints("kernel_shape"); k != nil {
		return graph.ShapeOf(k...)
	}
	if len(weights) > 2 {
		return weights[2:]
	}
	return nil
}

func inferConv(c *InferCtx) error {
	out, err := convShape(c.Node, c.Shape(0), c.Shape(1))
	c.Set(0, c.Elem(0), out)
	return err
}

// convShape infers the shape of a convolution of x with weights w, nil if the rank is not known.
func convShape(n *graph.Node, x, w graph.Shape) (graph.Shape, error) {
	r := windowRank(n, x, w)
	if r < 0 {
		return nil, nil
	}
	if r == 0 {
		return nil, fmt.Errorf("operand of shape %s, want a batch, channels and spatial axes", x)
	}
	if x != nil && w != nil {
		if len(x) != len(w) {
			return nil, fmt.Errorf("operand of shape %s and weights of shape %s: ranks differ", x, w)
		}
		group := graph.Known(n.Int("group", 1))
		if x[1].ProvablyNot(w[1].Mul(group)) {
			return nil, fmt.Errorf("operand has %s channels, weights of shape %s in %s groups want %s", x[1], w, group, w[1].Mul(group))
		}
	}
	out := graph.UnknownShape(r + 2)
	if x != nil {
		out[0] = x[0]
	}
	if w != nil {
		out[1] = w[0]
	}
	if k := kernelDims(n, w); k != nil && x != nil {
		s, err := inferWindow(n, x[2:], k)
		if err != nil {
			return nil, err
		}
		copy(out[2:], s)
	}
	return out, nil
}

// costConv is two FLOPs per result element, tap and input channel of the group.
func costConv(c *CostCtx) float64 {
	if len(c.In) < 2 || len(c.In[1]) < 2 {
		return 0
	}
	return 2 * float64(prod(c.In[1][1:])) * c.OutLen(0)
}

// costConvTranspose is two FLOPs per input element, tap and output channel of the group.
func costConvTranspose(c *CostCtx) float64 {
	if len(c.In) < 2 || len(c.In[1]) < 2 {
		return 0
	}
	return 2 * float64(prod(c.In[1][1:])) * float64(prod(c.In[0]))
}

// evalConv computes Y[n,m,o] = B[m] + sum over channels c of m's group and taps t of W[m,c,t] X[n,c,o*stride + t*dilation - pad].
func evalConv(c *EvalCtx) error {
	y, err := convArrays(c.Node, c.Arg(0), c.Arg(1), c.Arg(2))
	if err != nil {
		return err
	}
	c.Set(0, y)
	return nil
}

// convArrays convolves x with weights as node n's attributes say; y has x's element type and is not rounded.
func convArrays(n *graph.Node, x, weights, bias *Array) (*Array, error) {
	w, size, err := convPlan(n, x.Shape, weights.Shape)
	if err != nil {
		return nil, err
	}
	y := x.NewLike(append([]int{size.batch, size.groups * size.outPer}, w.out...))
	switch {
	case y.F32 != nil:
		convolve(w, size, x.F32, weights.F32, y.F32)
	case y.F64 != nil:
		convolve(w, size, x.F64, weights.F64, y.F64)
	case y.I64 != nil:
		convolve(w, size, x.I64, weights.I64, y.I64)
	}
	return y, addBias(y, bias)
}

// convPlan resolves the geometry of a convolution.
func convPlan(n *graph.Node, x, w []int) (*window, convSize, error) {
	var size convSize
	groups := int(n.Int("group", 1))
	if len(x) < 3 || len(w) != len(x) || groups < 1 || w[0]%groups != 0 || x[1] != w[1]*groups {
		return nil, size, fmt.Errorf("operand of shape %v does not fit weights of shape %v in %d groups", x, w, groups)
	}
	size = convSize{batch: x[0], groups: groups, inPer: w[1], outPer: w[0] / groups}
	win, err := newWindow(n, x[2:], w[2:])
	return win, size, err
}

// addBias adds bias[m] to y[n, m, ...], if there is a bias: after the sum over the taps, so that the result is that of a
// convolution followed by an addition, bit by bit.
func addBias(y, bias *Array) error {
	if bias == nil {
		return nil
	}
	m := y.Shape[1]
	if bias.Len() != m {
		return fmt.Errorf("bias of shape %v, want %d elements", bias.Shape, m)
	}
	size := prod(y.Shape[2:])
	for i := range y.Shape[0] * m {
		switch at := i * size; {
		case y.F32 != nil:
			addTo(y.F32[at:at+size], bias.F32[i%m])
		case y.F64 != nil:
			addTo(y.F64[at:at+size], bias.F64[i%m])
		case y.I64 != nil:
			addTo(y.I64[at:at+size], bias.I64[i%m])
		}
	}
	return nil
}

func addTo[T number](s []T, x T) {
	for i := range s {
		s[i] += x
	}
}
