package op

import (
	"math"
	"slices"

	"gradtool/graph"
)

// runtimeDomain is the domain of ONNX Runtime's own operators.
const runtimeDomain = "com.microsoft"

// contribDefs holds operators of ONNX Runtime that exported and optimized models contain: activations with a bias, fused
// products, normalizations, attention and quantized arithmetic. All are defined by standard operators.
func contribDefs() []Def {
	defs := decomposed(slices.Concat(contribUnaryDefs(), contribGemmDefs(), contribNormDefs(), contribAttentionDefs(),
		contribQuantDefs(), contribAliasDefs())...)
	for i := range defs {
		if defs[i].Name != "SimplifiedLayerNormalization" {
			defs[i].Domain = runtimeDomain
		}
	}
	return defs
}

// pointwise makes a decomposition of a function of the first operand.
func pointwise(f func(b *Builder, n *graph.Node, x *graph.Value) *graph.Value) builder {
	return func(b *Builder, n *graph.Node) []*graph.Value { return vals(f(b, n, n.Operand(0))) }
}

// gelu returns x·Φ(x), with the standard normal distribution function or its approximation by tanh.
func (b *Builder) gelu(x *graph.Value, tanh bool) *graph.Value {
	if tanh {
		return b.Unary("Gelu", x, graph.StringAttr("approximate", "tanh"))
	}
	return b.Unary("Gelu", x)
}

// plus returns the sum of the values that are not nil.
func (b *Builder) plus(x *graph.Value, more ...*graph.Value) *graph.Value {
	for _, y := range more {
		if y != nil {
			x = b.Add(x, y)
		}
	}
	return x
}

func contribUnaryDefs() []Def {
	on := TV(graph.Bool, nil, 1).Constant()
	i := func(name string, v int64) *graph.Attr { return graph.IntAttr(name, v) }
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	return []Def{
		{Name: "Gelu", Facts: Elementwise, Samples: []Sample{{In: []Arg{F(2, 3)}}, {Name: "half", In: []Arg{F(4).As(graph.Float16)}, NoGrad: "the rule's constants are rounded to half"}},
			Decompose: pointwise(func(b *Builder, n *graph.Node, x *graph.Value) *graph.Value { return b.gelu(x, false) })},
		{Name: "FastGelu", Facts: Elementwise | Broadcasts, Samples: []Sample{{In: []Arg{F(2, 3)}}, {Name: "bias", In: []Arg{F(2, 3), F(3)}}},
			Decompose: pointwise(func(b *Builder, n *graph.Node, x *graph.Value) *graph.Value {
				return b.gelu(b.plus(x, n.Operand(1)), true)
			})},
		{Name: "BiasGelu", Facts: Elementwise | Broadcasts, Samples: []Sample{{In: []Arg{F(2, 3), F(3)}}},
			Decompose: pointwise(func(b *Builder, n *graph.Node, x *graph.Value) *graph.Value {
				return b.gelu(b.plus(x, n.Operand(1)), false)
			})},
		{Name: "QuickGelu", Facts: Elementwise, Samples: []Sample{{In: []Arg{F(2, 3)}}, {Name: "alpha", In: []Arg{F(3)}, Attrs: attrs(graph.FloatAttr("alpha", 1))}},
			Decompose: pointwise(func(b *Builder, n *graph.Node, x *graph.Value) *graph.Value {
				return b.Mul(x, b.Unary("Sigmoid", b.MulScalar(x, n.Float("alpha", 1.702))))
			})},
		{Name: "BiasSplitGelu", Samples: []Sample{{In: []Arg{F(2, 3, 4), F(4)}}}, Decompose: pointwise(biasSplitGelu)},
		{Name: "BiasAdd", Facts: Elementwise | Broadcasts, Samples: []Sample{{In: []Arg{F(2, 3, 4), F(4), F(2, 3, 4)}}},
			Decompose: pointwise(func(b *Builder, n *graph.Node, x *graph.Value) *graph.Value {
				return b.plus(x, n.Operand(1), n.Operand(2))
			})},
		{Name: "BiasDropout", Facts: Random | Training, Decompose: biasDropout, Samples: []Sample{
			{In: []Arg{F(2, 3), F(3)}},
			{Name: "residual", In: []Arg{F(2, 3), F(3), F(2, 3), FV(nil, 0.5).Constant()}, Outs: 2},
			{Name: "training", In: []Arg{F(2, 3), F(3), F(2, 3), FV(nil, 0.5).Constant(), on}, Attrs: attrs(i("seed", 5)), Outs: 2},
		}},
		{Name: "BiasSoftmax", Decompose: biasSoftmax, Samples: []Sample{
			{In: []Arg{F(2, 3, 4), F(2, 1, 4)}, Attrs: attrs(i("axis", 2), i("is_inner_broadcast", 1))},
			{Name: "two axes", In: []Arg{F(2, 3, 4), F(1, 3, 4)}, Attrs: attrs(i("axis", 1), i("is_inner_broadcast", 0))},
			{Name: "last", In: []Arg{F(2, 3), F(3)}, Attrs: attrs(i("axis", -1), i("is_inner_broadcast", 0))},
		}},
	}
}

// biasSplitGelu halves x + bias along the last axis: the left half times the Gelu of the right.
func biasSplitGelu(b *Builder, n *graph.Node, x *graph.Value) *graph.Value {
	x = b.plus(x, n.Operand(1))
	half := b.Div(b.DimOf(x, -1), b.Ints(2))
	left := b.Slice(x, b.Ints(0), half, b.Ints(-1), nil)
	right := b.Slice(x, half, b.Ints(math.MaxInt64), b.Ints(-1), nil)
	return b.Mul(left, b.gelu(right, false))
}

// biasDropout is Dropout(x + bias) + residual.
func biasDropout(b *Builder, n *graph.Node) []*graph.Value {
	var attrs []*graph.Attr
	if n.HasAttr("seed") {
		attrs = append(attrs, graph.IntAttr("seed", n.Int("seed", 0)))
	}
	x := b.plus(n.Operand(0), n.Operand(1))
	drop := b.Node("Dropout", vals(x, n.Operand(3), n.Operand(4)), 2, attrs...)
	return vals(b.plus(drop.Out[0], n.Operand(2)), drop.Out[1])
}

// biasSoftmax is the softmax of x + bias over all axes from attribute axis on.
func biasSoftmax(b *Builder, n *graph.Node) []*graph.Value {
	x := b.plus(n.Operand(0), n.Operand(1))
	axis, rank := n.Int("axis", 1), int64(len(x.Type.Shape))
	if rank > 0 && axis < 0 {
		axis += rank
	}
	switch {
	case axis == -1 || rank > 0 && axis == rank-1:
		return vals(b.Unary("Softmax", x, graph.IntAttr("axis", -1)))
	case axis < 0:
		return b.uncovered("axis %d of an operand of unknown rank", axis)
	}
	shape := make([]int64, axis+1) // zeros keep sizes
	shape[axis] = -1
	y := b.Unary("Softmax", b.ReshapeTo(x, shape...), graph.IntAttr("axis", -1))
	return vals(b.ReshapeLike(y, x))
}
