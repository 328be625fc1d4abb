package legal

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// quantExpansions holds the conversions to and from codes of up to 32 bits.
func quantExpansions() map[string]expansion {
	return map[string]expansion{
		"QuantizeLinear": expandQuantize, "DequantizeLinear": expandDequantize, "QLinearConv": expandQLinearConv,
		"DynamicQuantizeLinear": func(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
			return func(b *op.Builder) []*graph.Value { return expandDynamicQuantize(b, n.In[0]) }, nil
		},
	}
}

// isCode reports whether elements of a type are codes that kernels compute with.
func isCode(t graph.DataType) bool {
	return t != graph.Bool && device(t) == graph.Int32 && t.Bits() <= 32
}

// spread returns what spreads scales or zero points over the elements of x that they are about: one for all, one for each index of an axis, or
// one for each block of indices.
func spread(n *graph.Node) (func(b *op.Builder, v *graph.Value) *graph.Value, error) {
	x, s, err := sizesOfTwo(n.In[0], n.In[1])
	if err != nil {
		return nil, err
	}
	block := n.Int("block_size", 0)
	if block == 0 && len(s) <= 1 && prod(ints(s)) == 1 {
		return func(b *op.Builder, v *graph.Value) *graph.Value { return b.ReshapeTo(v) }, nil
	}
	axis := n.Int("axis", 1)
	if axis < 0 {
		axis += int64(len(x))
	}
	if len(x) == 1 {
		axis = 0
	}
	if axis < 0 || axis >= int64(len(x)) {
		return nil, unsupported("axis %d of %d", axis, len(x))
	}
	if block == 0 {
		shape := make([]int64, len(x))
		for i := range shape {
			shape[i] = 1
		}
		shape[axis] = x[axis]
		return func(b *op.Builder, v *graph.Value) *graph.Value { return b.ReshapeTo(v, shape...) }, nil
	}
	return func(b *op.Builder, v *graph.Value) *graph.Value {
		wide := slices.Insert(slices.Clone(s), int(axis)+1, block)
		flat := slices.Clone(s)
		flat[axis] *= block
		v = b.ReshapeTo(b.Expand(b.Unsqueeze(v, axis+1), b.Ints(wide...)), flat...)
		return b.Slice(v, b.Ints(0), b.Ints(x[axis]), b.Ints(axis), b.Ints(1))
	}, nil
}

// expandQuantize: codes are x/scale, rounded, plus the zero point, limited to what their type holds.
func expandQuantize(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	elem := n.Out[0].Type.Elem
	if !isCode(elem) {
		return nil, unsupported("value %q has elements of type %s", n.Out[0].Name, elem)
	}
	over, err := spread(n)
	if err != nil {
		return nil, err
	}
	return func(b *op.Builder) []*graph.Value {
		precision := graph.DataType(n.Int("precision", int64(n.In[1].Type.Elem)))
		q := b.Div(b.Cast(n.In[0], precision), b.Cast(over(b, n.In[1]), precision))
		var zero *graph.Value
		if z := n.Operand(2); z != nil {
			zero = b.Cast(over(b, z), graph.Float)
		}
		return []*graph.Value{code(b, q, zero, elem)}
	}, nil
}

// code returns q, rounded, plus zero, which may be nil, as a code.
func code(b *op.Builder, q, zero *graph.Value, elem graph.DataType) *graph.Value {
	q = b.Cast(b.Unary("Round", q), graph.Float)
	if zero != nil {
		q = b.Add(q, zero)
	}
	lo, hi := op.IntRange(elem)
	return b.Cast(b.Op("Clip", []*graph.Value{q, b.Scalar(graph.Float, lo), b.Scalar(graph.Float, hi)}), elem)
}

// expandDequantize: (code - zero point) * scale.
func expandDequantize(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	if t := n.In[0].Type.Elem; !isCode(t) {
		return nil, unsupported("value %q has elements of type %s", n.In[0].Name, t)
	}
	if t := n.Out[0].Type.Elem; device(t) != graph.Float {
		return nil, unsupported("value %q has elements of type %s", n.Out[0].Name, t)
	}
	over, err := spread(n)
	if err != nil {
		return nil, err
	}
	return func(b *op.Builder) []*graph.Value {
		x := b.Cast(n.In[0], graph.Int32)
		if z := n.Operand(2); z != nil {
			x = b.Sub(x, b.Cast(over(b, z), graph.Int32))
		}
		y := b.Mul(b.Cast(x, graph.Float), b.Cast(over(b, n.In[1]), graph.Float))
		return []*graph.Value{b.Cast(y, n.Out[0].Type.Elem)}
	}, nil
}

// expandDynamicQuantize chooses scale and zero point so that the codes cover the range of x and 0.
func expandDynamicQuantize(b *op.Builder, x *graph.Value) []*graph.Value {
	zero := b.Like(x, 0)
	limit := func(fold, pick string) *graph.Value {
		return b.Binary(pick, b.Op(fold, []*graph.Value{x}, graph.IntAttr("keepdims", 0)), zero)
	}
	lo, hi := limit("ReduceMin", "Min"), limit("ReduceMax", "Max")
	s := b.Div(b.Sub(hi, lo), b.Like(x, 255))
	s = b.Where(b.Binary("Equal", s, zero), b.Like(x, 1), s)
	z := b.Unary("Round", b.Op("Clip", []*graph.Value{b.Div(b.Neg(lo), s), zero, b.Like(x, 255)}))
	return []*graph.Value{code(b, b.Div(x, s), z, graph.Uint8), s, b.Cast(z, graph.Uint8)}
}

// expandQLinearConv convolves codes in integers and scales the sums.
func expandQLinearConv(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	x, xs, xz, w, ws, wz, ys, yz := n.In[0], n.In[1], n.In[2], n.In[3], n.In[4], n.In[5], n.In[6], n.In[7]
	rank := len(x.Type.Shape)
	return func(b *op.Builder) []*graph.Value {
		channels := func(v *graph.Value) *graph.Value {
			shape := make([]int64, rank)
			for i := range shape {
				shape[i] = 1
			}
			if s, ok := v.Type.Shape.Ints(); ok && len(s) == 1 && s[0] > 1 {
				shape[1] = s[0]
			}
			return b.ReshapeTo(v, shape...)
		}
		attrs := slices.Clone(n.Attrs)
		sum := b.Op("ConvInteger", []*graph.Value{x, w, xz, wz}, attrs...)
		if bias := n.Operand(8); bias != nil {
			sum = b.Add(sum, channels(bias))
		}
		scale := b.Div(b.Mul(channels(xs), channels(ws)), channels(ys))
		q := b.Mul(b.Cast(sum, graph.Float), scale)
		return []*graph.Value{code(b, q, b.Cast(channels(yz), graph.Float), n.Out[0].Type.Elem)}
	}, nil
}
