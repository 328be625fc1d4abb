package op

import (
	"math"

	"gradtool/graph"
)

// contribQuantDefs holds operators on quantized tensors: their operands are dequantized, the operator is applied, and the
// result is quantized. Kernels on integers may differ by one code where the exact result lies between two.
func contribQuantDefs() []Def {
	u8 := func(shape []int, v ...float64) Arg { return TV(graph.Uint8, shape, v...) }
	i8 := func(shape []int, v ...float64) Arg { return TV(graph.Int8, shape, v...) }
	f := func(v float64) Arg { return FV(nil, v) }
	i := func(name string, v int64) *graph.Attr { return graph.IntAttr(name, v) }
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	step := "piecewise constant; the gradient is the straight-through one"
	a, b := u8([]int{2, 3}, 1, 50, 128, 200, 255, 0), u8([]int{3}, 7, 90, 130)
	image := u8([]int{1, 2, 2, 2}, 1, 50, 128, 200, 255, 0, 7, 90)
	z, zi := u8(nil, 128), i8(nil, 3)
	quantized := func(name string, build builder, in []Arg, at ...*graph.Attr) Def {
		return Def{Name: name, Decompose: build, Samples: []Sample{{In: in, Attrs: at, NoGrad: step}}}
	}
	one := func(op string, keep ...string) builder {
		return func(b *Builder, n *graph.Node) []*graph.Value { return b.quantizedUnary(n, op, keep...) }
	}
	pair := []Arg{a, f(0.02), z, b, f(0.03), z, f(0.05), z}
	single := []Arg{a, f(0.02), z, f(0.01), z}
	weights := i8([]int{3, 2}, 1, -50, 127, 20, -128, 0)
	return []Def{
		quantized("QLinearAdd", quantizedPair("Add"), pair), quantized("QLinearMul", quantizedPair("Mul"), pair),
		quantized("QLinearSigmoid", one("Sigmoid"), single), quantized("QLinearLeakyRelu", one("LeakyRelu", "alpha"), single, graph.FloatAttr("alpha", 0.1)),
		quantized("QLinearSoftmax", quantizedSoftmax, single, i("axis", -1), i("opset", 13)),
		quantized("QLinearReduceMean", quantizedMean, single, graph.IntsAttr("axes", 1), i("keepdims", 1)),
		quantized("QLinearAveragePool", one("AveragePool", "auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"),
			[]Arg{image, f(0.02), z, f(0.03), z}, graph.IntsAttr("kernel_shape", 2, 1)),
		quantized("QLinearGlobalAveragePool", one("GlobalAveragePool"), []Arg{image, f(0.02), z, f(0.03), z}),
		quantized("QLinearConcat", quantizedConcat, []Arg{f(0.03), z, a, f(0.02), z, u8([]int{1, 3}, 3, 4, 5), f(0.04), z}, i("axis", 0)),
		quantized("QLinearWhere", quantizedWhere, []Arg{TV(graph.Bool, []int{3}, 1, 0, 1), a, f(0.02), z, b, f(0.03), z, f(0.05), z}),
		quantized("QLinearConv", quantizedConv, []Arg{image, f(0.02), z, u8([]int{1, 2, 1, 1}, 3, 200), f(0.03), z, f(0.1), z, TV(graph.Int32, []int{1}, 40)}),
		quantized("QGemm", quantizedGemm, []Arg{a, f(0.02), z, weights, f(0.1), zi, TV(graph.Int32, []int{2}, 40, -7), f(0.5), z}),
		quantized("MatMulIntegerToFloat", productToFloat, []Arg{a, weights, f(0.02), FV([]int{2}, 0.1, 0.2), z, i8([]int{2}, 0, 3), F(2)}),
		quantized("DynamicQuantizeMatMul", dynamicProduct, []Arg{F(2, 3), weights, f(0.1), zi, F(2)}),
		quantized("QAttention", quantizedAttention, []Arg{u8([]int{1, 2, 2}, 1, 250, 128, 3), i8([]int{2, 6}, 1, -50, 127, 20, -128, 0, 5, 6, 7, 80, 9, 10), F(6), f(0.02), f(0.01), {}, z, zi}, i("num_heads", 1)),
		quantized("QuantizeLinear", aliasOf("QuantizeLinear"), []Arg{F(2, 3), f(0.02), z}),
		{Name: "DequantizeLinear", Decompose: aliasOf("DequantizeLinear"), Samples: []Sample{{In: single[:3]}, {Name: "axis", In: []Arg{a, FV([]int{2}, 0.1, 0.2), u8([]int{2}, 1, 2)}, Attrs: attrs(i("axis", 0))}}},
	}
}

// dequantize returns the numbers that codes stand for.
func (b *Builder) dequantize(x, scale, zero *graph.Value, attrs ...*graph.Attr) *graph.Value {
	return b.Op("DequantizeLinear", vals(x, scale, zero), attrs...)
}

// quantize returns the codes of numbers, of the zero point's type or that of like.
func (b *Builder) quantize(y, scale, zero, like *graph.Value) *graph.Value {
	if zero != nil {
		return b.Op("QuantizeLinear", vals(y, scale, zero))
	}
	return b.Op("QuantizeLinear", vals(y, scale), graph.IntAttr("output_dtype", int64(like.Type.Elem)))
}

// quantizedPair applies an operator of two operands.
func quantizedPair(op string) builder {
	return func(b *Builder, n *graph.Node) []*graph.Value {
		x := b.dequantize(n.Operand(0), n.Operand(1), n.Operand(2))
		y := b.dequantize(n.Operand(3), n.Operand(4), n.Operand(5))
		return vals(b.quantize(b.Binary(op, x, y), n.Operand(6), n.Operand(7), n.Operand(0)))
	}
}

// quantizedUnary applies an operator of one operand with those of the node's attributes that it has.
func (b *Builder) quantizedUnary(n *graph.Node, op string, keep ...string) []*graph.Value {
	if n.Int("channels_last", 0) != 0 {
		return b.uncovered("channels in the last axis")
	}
	var attrs []*graph.Attr
	for _, name := range keep {
		if a := n.Attr(name); a != nil {
			attrs = append(attrs, a)
		}
	}
	y := b.Unary(op, b.dequantize(n.Operand(0), n.Operand(1), n.Operand(2)), attrs...)
	return vals(b.quantize(y, n.Operand(3), n.Operand(4), n.Operand(0)))
}

// quantizedSoftmax follows the standard's Softmax of attribute opset: before 13 all axes from axis on take part.
func quantizedSoftmax(b *Builder, n *graph.Node) []*graph.Value {
	x := b.dequantize(n.Operand(0), n.Operand(1), n.Operand(2))
	axis, rank := n.Int("axis", -1), int64(len(x.Type.Shape))
	if rank > 0 && axis < 0 {
		axis += rank
	}
	var y *graph.Value
	if n.Int("opset", 13) >= 13 || axis == -1 || axis == rank-1 {
		y = b.Unary("Softmax", x, graph.IntAttr("axis", axis))
	} else if axis < 0 {
		return b.uncovered("axis %d of an operand of unknown rank", axis)
	} else {
		shape := make([]int64, axis+1)
		shape[axis] = -1
		y = b.ReshapeLike(b.Unary("Softmax", b.ReshapeTo(x, shape...), graph.IntAttr("axis", -1)), x)
	}
	return vals(b.quantize(y, n.Operand(3), n.Operand(4), n.Operand(0)))
}

func quantizedMean(b *Builder, n *graph.Node) []*graph.Value {
	x := b.dequantize(n.Operand(0), n.Operand(1), n.Operand(2))
	y := b.ReduceMean(x, n.Int("keepdims", 1) != 0, n.Ints("axes")...)
	return vals(b.quantize(y, n.Operand(3), n.Operand(4), n.Operand(0)))
}

// quantizedConcat joins operands that are given with scale and zero point each, behind those of the result. Float operands
// are taken as they are.
func quantizedConcat(b *Builder, n *graph.Node) []*graph.Value {
	var parts []*graph.Value
	for i := 2; i+2 < len(n.In); i += 3 {
		x := n.In[i]
		if !x.Type.Elem.IsFloat() {
			x = b.dequantize(x, n.In[i+1], n.In[i+2])
		}
		parts = append(parts, x)
	}
	if len(parts) == 0 {
		return b.uncovered("no operand to join")
	}
	return vals(b.quantize(b.Concat(n.Int("axis", 0), parts...), n.Operand(0), n.Operand(1), n.Operand(1)))
}

func quantizedWhere(b *Builder, n *graph.Node) []*graph.Value {
	x, y := b.dequantize(n.Operand(1), n.Operand(2), n.Operand(3)), b.dequantize(n.Operand(4), n.Operand(5), n.Operand(6))
	return vals(b.quantize(b.Where(n.Operand(0), x, y), n.Operand(7), n.Operand(8), n.Operand(1)))
}

func quantizedConv(b *Builder, n *graph.Node) []*graph.Value {
	if n.Int("channels_last", 0) != 0 {
		return b.uncovered("channels in the last axis")
	}
	return vals(b.Op("QLinearConv", n.In, kept(n, "channels_last")...))
}

// quantizedGemm is alpha·(A·B + C), with C in units of both scales; without a scale of its own the result is float.
func quantizedGemm(b *Builder, n *graph.Node) []*graph.Value {
	column := graph.IntAttr("axis", 1)
	if n.Int("transB", 0) != 0 {
		column = graph.IntAttr("axis", 0)
	}
	x := b.dequantize(n.Operand(0), n.Operand(1), n.Operand(2))
	w := b.dequantize(n.Operand(3), n.Operand(4), n.Operand(5), column)
	y := b.Op("Gemm", vals(x, w), kept(n, "alpha")...)
	if bias := n.Operand(6); bias != nil {
		y = b.Add(y, b.Mul(b.Cast(bias, y.Type.Elem), b.Mul(n.Operand(1), n.Operand(4))))
	}
	y = b.MulScalar(y, n.Float("alpha", 1))
	if n.Operand(7) == nil {
		return vals(y)
	}
	return vals(b.quantize(y, n.Operand(7), n.Operand(8), n.Operand(0)))
}

// productToFloat is A·B + bias of codes, a scale and zero point of B for each column or for all.
func productToFloat(b *Builder, n *graph.Node) []*graph.Value {
	last := graph.IntAttr("axis", -1)
	x := b.dequantize(n.Operand(0), n.Operand(2), n.Operand(4), last)
	w := b.dequantize(n.Operand(1), n.Operand(3), n.Operand(5), last)
	return vals(b.plus(b.MatMul(x, w), n.Operand(6)))
}

// dynamicProduct quantizes A to the range of its elements first.
func dynamicProduct(b *Builder, n *graph.Node) []*graph.Value {
	q := b.Node("DynamicQuantizeLinear", vals(n.Operand(0)), 3).Out
	w := b.dequantize(n.Operand(1), n.Operand(2), n.Operand(3), graph.IntAttr("axis", -1))
	return vals(b.plus(b.MatMul(b.dequantize(q[0], q[1], q[2]), w), n.Operand(4)))
}

func quantizedAttention(b *Builder, n *graph.Node) []*graph.Value {
	if n.Int("do_rotary", 0) != 0 || n.Int("past_present_share_buffer", 0) != 0 {
		return b.uncovered("a shared buffer for past and present, or rotary embeddings")
	}
	x := b.dequantize(n.Operand(0), n.Operand(3), n.Operand(6))
	w := b.dequantize(n.Operand(1), n.Operand(4), n.Operand(7), graph.IntAttr("axis", -1))
	return b.projected(n, b.plus(b.MatMul(x, w), n.Operand(2)), n.Operand(5), n.Operand(8), nil)
}

// contribAliasDefs holds operators that the standard has under the same or another name, and those that differ in how
// operands are given.
func contribAliasDefs() []Def {
	i := func(name string, v int64) *graph.Attr { return graph.IntAttr(name, v) }
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	return []Def{
		{Name: "Trilu", Decompose: aliasOf("Trilu"), Samples: []Sample{{In: []Arg{F(3, 3)}, Attrs: attrs(i("upper", 0))}}},
		{Name: "GatherND", Decompose: aliasOf("GatherND"), Samples: []Sample{{In: []Arg{F(2, 3), TV(graph.Int64, []int{2, 1}, 1, 0)}}}},
		{Name: "Range", Facts: DataDependent, Samples: []Sample{{In: []Arg{IS(1), IS(7), IS(2)}}, {Name: "step 1", In: []Arg{IS(1), IS(4)}},
			{Name: "floats", In: []Arg{FV([]int{}, 0.5), FV([]int{}, 4.2), FV([]int{}, 1.5)}}},
			Decompose: pointwise(func(b *Builder, n *graph.Node, x *graph.Value) *graph.Value {
				step := n.Operand(2)
				if step == nil {
					step = b.Like(x, 1)
				}
				return b.Op("Range", vals(x, n.Operand(1), step))
			})},
		{Name: "Pad", Samples: []Sample{{In: []Arg{F(2, 3), I(0, 1, 1, 0), F()}}, {Name: "reflect", In: []Arg{F(2, 3), I(0, 1, 0, 1)}, Attrs: attrs(graph.StringAttr("mode", "reflect"))}},
			Decompose: pointwise(func(b *Builder, n *graph.Node, x *graph.Value) *graph.Value {
				value := n.Operand(2)
				if value != nil {
					value = b.Op("Reshape", vals(value, b.Ints()))
				}
				return b.Op("Pad", vals(x, b.ReshapeTo(n.Operand(1), -1), value), n.Attrs...)
			})},
		{Name: "ExpandDims", Samples: []Sample{{In: []Arg{F(2, 3), TV(graph.Int32, nil, 1)}}},
			Decompose: pointwise(func(b *Builder, n *graph.Node, x *graph.Value) *graph.Value {
				return b.Op("Unsqueeze", vals(x, b.ReshapeTo(b.Cast(n.Operand(1), graph.Int64), 1)))
			})},
		{Name: "TorchEmbedding", Samples: []Sample{{In: []Arg{F(4, 3), TV(graph.Int64, []int{2}, 3, 1)}}},
			Decompose: pointwise(func(b *Builder, n *graph.Node, x *graph.Value) *graph.Value { return b.Gather(x, n.Operand(1), 0) })},
		{Name: "ComplexMul", Samples: []Sample{{In: []Arg{F(2, 3, 2), F(3, 2)}}}, Decompose: complexMul(1)},
		{Name: "ComplexMulConj", Samples: []Sample{{In: []Arg{F(2, 3, 2), F(3, 2)}}}, Decompose: complexMul(-1)},
		{Name: "Rfft", Samples: []Sample{{In: []Arg{F(2, 6)}, Attrs: attrs(i("signal_ndim", 1))}}, Decompose: contribFourier(false)},
		{Name: "Irfft", Samples: []Sample{{In: []Arg{F(2, 4, 2)}, Attrs: attrs(i("signal_ndim", 1))}}, Decompose: contribFourier(true)},
	}
}

// aliasOf makes the decomposition of an operator that the standard has with the same operands, results and attributes.
func aliasOf(op string) builder {
	return func(b *Builder, n *graph.Node) []*graph.Value { return b.Node(op, n.In, len(n.Out), n.Attrs...).Out }
}

// complexMul multiplies numbers given as pairs in the last axis, the second conjugated for sign -1.
func complexMul(sign float64) builder {
	return func(b *Builder, n *graph.Node) []*graph.Value {
		part := func(i int, at int64) *graph.Value {
			return b.Slice(n.Operand(i), b.Ints(at), b.Ints([]int64{1, math.MaxInt64}[at]), b.Ints(-1), nil)
		}
		ar, ai, br := part(0, 0), part(0, 1), part(1, 0)
		bi := b.MulScalar(part(1, 1), sign)
		return vals(b.Concat(-1, b.Sub(b.Mul(ar, br), b.Mul(ai, bi)), b.Add(b.Mul(ar, bi), b.Mul(ai, br))))
	}
}

// contribFourier transforms the last axis of a real signal to one-sided frequencies, or back.
func contribFourier(inverse bool) builder {
	return func(b *Builder, n *graph.Node) []*graph.Value {
		if n.Int("signal_ndim", 1) != 1 || n.Int("normalized", 0) != 0 || n.Int("onesided", 1) != 1 {
			return b.uncovered("transforms of several axes, normalized or two-sided ones")
		}
		one := graph.IntAttr("onesided", 1)
		if inverse {
			return vals(b.Squeeze(b.Unary("DFT", n.Operand(0), one, graph.IntAttr("inverse", 1)), -1))
		}
		return vals(b.Unary("DFT", b.Unsqueeze(n.Operand(0), -1), one))
	}
}
