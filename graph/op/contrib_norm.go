package op

import (
	"gradtool/graph"
)

// contribNormDefs holds normalizations of sums, and those of embeddings.
func contribNormDefs() []Def {
	i := func(name string, v int64) *graph.Attr { return graph.IntAttr(name, v) }
	eps := graph.FloatAttr("epsilon", 0.01)
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	half := func(a Arg) Arg { return a.As(graph.Float16) }
	ids := func(shape []int, v ...float64) Arg { return TV(graph.Int32, shape, v...) }
	return []Def{
		{Name: "SimplifiedLayerNormalization", Decompose: simplifiedNorm, Samples: []Sample{
			{In: []Arg{F(2, 3, 4), F(4)}},
			{Name: "statistics", In: []Arg{F(2, 3, 4), F(4)}, Attrs: attrs(eps), Outs: 2},
			{Name: "two axes", In: []Arg{F(2, 3, 4), F(3, 4)}, Attrs: attrs(i("axis", 1))},
			{Name: "half", In: []Arg{half(F(2, 4)), half(F(4))}, Outs: 2},
		}},
		{Name: "SkipLayerNormalization", Decompose: skipNorm, Samples: []Sample{
			{In: []Arg{F(2, 3, 4), F(2, 3, 4), F(4), F(4)}, Attrs: attrs(eps)},
			{Name: "bias", In: []Arg{F(2, 3, 4), F(3, 4), F(4), {}, F(4)}, Attrs: attrs(eps), Outs: 4},
			{Name: "rows", In: []Arg{F(3, 4), F(3, 4), F(4), F(4), F(4)}, Attrs: attrs(eps)},
		}},
		{Name: "SkipSimplifiedLayerNormalization", Decompose: skipSimplifiedNorm, Samples: []Sample{
			{In: []Arg{F(2, 3, 4), F(2, 3, 4), F(4)}, Attrs: attrs(eps)},
			{Name: "bias", In: []Arg{F(2, 3, 4), F(1, 3, 4), F(4), F(4)}, Attrs: attrs(eps), Outs: 4},
		}},
		{Name: "GroupNorm", Decompose: contribGroupNorm, Samples: []Sample{
			{In: []Arg{F(2, 2, 3, 4), F(4), F(4)}, Attrs: attrs(i("activation", 0), i("groups", 2))},
			{Name: "silu", In: []Arg{F(1, 4, 2, 2), F(4), F(4)}, Attrs: attrs(i("activation", 1), i("groups", 2), i("channels_last", 0))},
		}},
		{Name: "SkipGroupNorm", Decompose: contribGroupNorm, Samples: []Sample{
			{In: []Arg{F(2, 2, 3, 4), F(4), F(4), F(2, 2, 3, 4), F(4)}, Attrs: attrs(i("activation", 0), i("groups", 2)), Outs: 2},
			{Name: "skip by channel", In: []Arg{F(2, 2, 3, 4), F(4), F(4), F(2, 4)}, Attrs: attrs(i("activation", 1), i("groups", 1))},
		}},
		{Name: "EmbedLayerNormalization", Decompose: embedNorm, Samples: []Sample{
			{In: []Arg{ids([]int{2, 3}, 0, 4, 2, 1, 1, 3), ids([]int{2, 3}, 0, 0, 1, 0, 1, 1), F(5, 4), F(6, 4), F(2, 4), F(4), F(4), ids([]int{2, 3}, 1, 1, 0, 1, 1, 1)}, Attrs: attrs(eps), Outs: 3},
			{Name: "positions", In: []Arg{ids([]int{1, 3}, 0, 4, 2), {}, F(5, 4), F(6, 4), {}, F(4), F(4), {}, ids([]int{1, 3}, 5, 0, 2)}, Attrs: attrs(eps), Outs: 2},
		}},
	}
}

// rms returns x over its root mean square along the axes from axis on, and one over that root. Narrow types are computed
// in float.
func (b *Builder) rms(x *graph.Value, axis int64, epsilon float64) (y, inv *graph.Value) {
	axes := []int64{}
	wide := x
	if e := x.Type.Elem; e == graph.Float16 || e == graph.BFloat16 {
		wide = b.Cast(x, graph.Float)
	}
	if s := x.Type.Shape; s != nil && axis >= 0 {
		axis -= int64(len(s))
	}
	if axis >= 0 {
		b.uncovered("axis %d of an operand of unknown rank", axis)
		return x, x
	}
	for a := axis; a < 0; a++ {
		axes = append(axes, a)
	}
	mean := b.ReduceMean(b.Mul(wide, wide), true, axes...)
	inv = b.Unary("Reciprocal", b.Unary("Sqrt", b.AddScalar(mean, epsilon)))
	return b.Mul(wide, inv), inv
}

// simplifiedNorm is RMSNormalization with the statistics as a result.
func simplifiedNorm(b *Builder, n *graph.Node) []*graph.Value {
	scale := n.Operand(1)
	y, inv := b.rms(n.Operand(0), n.Int("axis", -1), n.Float("epsilon", 1e-5))
	return vals(b.Mul(b.Cast(y, scale.Type.Elem), scale), inv)
}

// skipNorm is the layer normalization of input + skip + bias; mean, inverse deviation and the sum are results.
func skipNorm(b *Builder, n *graph.Node) []*graph.Value {
	sum := b.plus(n.Operand(0), n.Operand(1), n.Operand(4))
	k := b.Node("LayerNormalization", vals(sum, n.Operand(2), n.Operand(3)), 3, graph.FloatAttr("epsilon", float32(n.Float("epsilon", 1e-12))))
	return append(k.Out[:3:3], sum)
}

// skipSimplifiedNorm is the root mean square normalization of input + skip + bias.
func skipSimplifiedNorm(b *Builder, n *graph.Node) []*graph.Value {
	sum := b.plus(n.Operand(0), n.Operand(1), n.Operand(3))
	y, inv := b.rms(sum, -1, n.Float("epsilon", 1e-12))
	y = b.Mul(b.Cast(y, sum.Type.Elem), n.Operand(2))
	return vals(y, b.MulScalar(inv, 0), inv, sum) // nothing is subtracted: the mean counts as zero
}

// contribGroupNorm is GroupNormalization of images whose channels are last, of x + skip + bias, and x·sigmoid(x) behind it.
func contribGroupNorm(b *Builder, n *graph.Node) []*graph.Value {
	x, gamma := n.Operand(0), n.Operand(1)
	last := n.Int("channels_last", 1) != 0
	if skip := n.Operand(3); skip != nil {
		if skip.Type.Shape == nil {
			return b.uncovered("a skip of unknown rank")
		}
		if len(skip.Type.Shape) == 2 {
			if last {
				skip = b.Unsqueeze(skip, 1, 2)
			} else {
				skip = b.Unsqueeze(skip, 2, 3)
			}
		}
		if bias := n.Operand(4); bias != nil && !last {
			return b.uncovered("a bias of channels that are not last")
		}
		x = b.plus(x, skip, n.Operand(4))
	}
	y := b.Cast(x, gamma.Type.Elem)
	if last {
		y = b.Transpose(y, 0, 3, 1, 2)
	}
	y = b.Op("GroupNormalization", vals(y, gamma, n.Operand(2)), graph.IntAttr("num_groups", n.Int("groups", 1)),
		graph.FloatAttr("epsilon", float32(n.Float("epsilon", 1e-5))))
	if n.Int("activation", 0) == 1 {
		y = b.Mul(y, b.Unary("Sigmoid", y))
	}
	if last {
		y = b.Transpose(y, 0, 2, 3, 1)
	}
	return vals(b.Cast(y, x.Type.Elem), x)
}

// embedNorm is the layer normalization of the sum of a word's, a position's and a segment's embedding. The mask's counts and
// the sum are results.
func embedNorm(b *Builder, n *graph.Node) []*graph.Value {
	ids, mask := n.Operand(0), n.Operand(7)
	sum := b.Gather(n.Operand(2), ids, 0)
	if at := n.Operand(8); at != nil {
		sum = b.Add(sum, b.Gather(n.Operand(3), at, 0))
	} else {
		sum = b.Add(sum, b.Slice(n.Operand(3), b.Ints(0), b.DimOf(ids, 1), b.Ints(0), nil))
	}
	if table, segments := n.Operand(4), n.Operand(1); table != nil {
		if segments == nil {
			return b.uncovered("embeddings of segments without segments")
		}
		sum = b.Add(sum, b.Gather(table, segments, 0))
	}
	y := b.Op("LayerNormalization", vals(sum, n.Operand(5), n.Operand(6)), graph.FloatAttr("epsilon", float32(n.Float("epsilon", 1e-12))))
	counts := b.Full(b.DimOf(ids, 0), graph.Int32, 0)
	if mask != nil {
		counts = b.ReduceSum(mask, false, 1)
	}
	return vals(y, counts, sum)
}
