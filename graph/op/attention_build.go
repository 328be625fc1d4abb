package op

import (
	"math"

	"gradtool/graph"
)

// decomposeAttention writes attention as products, a softmax and a choice of what may be seen. Keys that may not
// be get the least finite score instead of -inf, so that a row without any stays finite; such rows are set to zero behind the softmax.
func decomposeAttention(b *Builder, n *graph.Node) []*graph.Value {
	a := &attentionBuild{Builder: b, n: n, form: attentionFormOf(n, n.Operand(0).Type.Shape)}
	q, k, v := a.unpack(n.Operand(0), a.form.qHeads), a.unpack(n.Operand(1), a.form.heads), a.unpack(n.Operand(2), a.form.heads)
	elem := q.Type.Elem
	if past := n.Operand(4); past != nil {
		k = b.Concat(2, past, k)
	}
	if past := n.Operand(5); past != nil {
		v = b.Concat(2, past, v)
	}
	out := []*graph.Value{nil, k, v, nil}
	a.q, a.k = q, k
	a.same = len(q.Type.Shape) == 4 && len(k.Type.Shape) == 4 && q.Type.Shape[1].Equal(k.Type.Shape[1])
	scores := a.ungroup(b.MatMul(a.group(b.Mul(q, a.scale())), b.Transpose(k, 0, 1, 3, 2)))
	shown := scores
	mode := n.Int("qk_matmul_output_mode", 0)
	if softcap := n.Float("softcap", 0); softcap > 0 {
		scores = b.MulScalar(b.Unary("Tanh", b.MulScalar(scores, 1/softcap)), softcap)
	}
	if mode == 1 {
		shown = scores
	}
	a.scores = scores
	mask, seen, always := a.visible()
	if mask != nil {
		scores = b.Add(scores, b.Cast(mask, elem))
	}
	if mode == 2 {
		shown = scores
		if seen != nil {
			shown = b.Where(seen, scores, b.Like(scores, math.Inf(-1)))
		}
	}
	if p := graph.DataType(n.Int("softmax_precision", int64(elem))); p != elem {
		scores = b.Cast(scores, p)
	}
	if seen != nil {
		scores = b.Where(seen, scores, b.Like(scores, lowestFinite(scores.Type.Elem)))
	}
	p := b.Cast(b.Unary("Softmax", scores, graph.IntAttr("axis", -1)), elem)
	if seen != nil && !always {
		any := b.Op("ReduceMax", vals(b.Cast(seen, graph.Int32), b.Ints(-1)))
		p = b.Where(b.Cast(any, graph.Bool), p, b.Like(p, 0))
	}
	if mode == 3 {
		shown = p
	}
	y := a.ungroup(b.MatMul(a.group(p), b.Cast(v, elem)))
	if a.form.packed {
		y = b.ReshapeTo(b.Transpose(y, 0, 2, 1, 3), 0, 0, -1)
	}
	out[0], out[3] = y, shown
	return out
}

// attentionBuild is the state of a decomposition.
type attentionBuild struct {
	*Builder
	n            *graph.Node
	form         attentionForm
	q, k, scores *graph.Value
	same         bool // queries and keys have equally many heads for sure
}

// unpack returns x as [batch, heads, length, size].
func (a *attentionBuild) unpack(x *graph.Value, heads int64) *graph.Value {
	if !a.form.packed {
		return x
	}
	return a.Transpose(a.ReshapeTo(x, 0, 0, heads, -1), 0, 2, 1, 3)
}

// group puts the queries that share a head of keys one behind the other: [B, Hq, S, n] to [B, Hk, Hq/Hk·S, n].
func (a *attentionBuild) group(x *graph.Value) *graph.Value {
	if a.same {
		return x
	}
	rows := a.Div(a.Mul(a.DimOf(x, 1), a.DimOf(x, 2)), a.DimOf(a.k, 1))
	return a.Reshape(x, a.Concat(0, a.DimOf(x, 0), a.DimOf(a.k, 1), rows, a.DimOf(x, 3)))
}

// ungroup is the inverse of group.
func (a *attentionBuild) ungroup(x *graph.Value) *graph.Value {
	if a.same {
		return x
	}
	return a.Reshape(x, a.Concat(0, a.DimOf(a.q, 0), a.DimOf(a.q, 1), a.DimOf(a.q, 2), a.DimOf(x, 3)))
}

// scale returns the factor of Q·Kᵀ as a scalar.
func (a *attentionBuild) scale() *graph.Value {
	q := a.q
	if a.n.HasAttr("scale") {
		return a.Like(q, a.n.Float("scale", 1))
	}
	if len(q.Type.Shape) == 4 {
		if d, ok := q.Type.Shape[3].Int(); ok {
			return a.Like(q, 1/math.Sqrt(float64(d)))
		}
	}
	size := a.Cast(a.Squeeze(a.DimOf(q, 3), 0), graph.Float)
	return a.Cast(a.Unary("Reciprocal", a.Unary("Sqrt", size)), q.Type.Elem)
}

// visible returns the additive mask, if there is one, and where a key may be seen, both to broadcast against
// the scores; nil means all. With always every query sees some key for sure.
func (a *attentionBuild) visible() (mask, seen *graph.Value, always bool) {
	n := a.n
	always = true
	and := func(v *graph.Value) {
		if seen == nil {
			seen = v
		} else {
			seen = a.Binary("And", seen, v)
		}
	}
	if m := n.Operand(3); m != nil {
		always = false
		if m.Type.Elem == graph.Bool {
			and(a.padMask(m, 0))
		} else {
			mask = a.padMask(a.Cast(m, a.q.Type.Elem), math.Inf(-1))
			and(a.Unary("Not", a.Binary("Equal", mask, a.Like(mask, math.Inf(-1)))))
		}
	}
	causal := n.Int("is_causal", 0) != 0
	left, right := n.Int("left_window_size", -1), n.Int("right_window_size", -1)
	lens := n.Operand(6)
	if !causal && left < 0 && right < 0 && lens == nil {
		return mask, seen, always
	}
	count := func(axis int) *graph.Value {
		return a.Op("Range", vals(a.IntScalar(0), a.Squeeze(a.DimOf(a.scores, axis), 0), a.IntScalar(1)))
	}
	keys := count(3)
	place := a.Unsqueeze(count(2), 1) // of a query among the keys, [S, 1] or [B, 1, S, 1]
	switch past := n.Operand(4); {
	case past != nil:
		place = a.Add(place, a.DimOf(past, 2))
	case lens != nil:
		place = a.Add(place, a.Unsqueeze(a.Sub(lens, a.DimOf(a.scores, 2)), 1, 2, 3))
	}
	if causal {
		and(a.Binary("LessOrEqual", keys, place))
	}
	if left >= 0 {
		and(a.Binary("GreaterOrEqual", keys, a.Sub(place, a.IntScalar(left))))
		always = false
	}
	if right >= 0 {
		and(a.Binary("LessOrEqual", keys, a.Add(place, a.IntScalar(right))))
	}
	if lens != nil {
		and(a.Binary("Less", keys, a.Unsqueeze(lens, 1, 2, 3)))
		always = false
	}
	return mask, seen, always
}

// padMask lengthens the last axis of a mask to the number of keys.
func (a *attentionBuild) padMask(m *graph.Value, with float64) *graph.Value {
	total := graph.Unknown()
	if s := a.scores.Type.Shape; len(s) == 4 {
		total = s[3]
	}
	s := m.Type.Shape
	if len(s) > 0 && s[len(s)-1].Equal(total) {
		return m
	}
	missing := a.Sub(a.DimOf(a.scores, 3), a.DimOf(m, -1))
	head := a.Op("Slice", vals(a.Shape(m), a.Ints(0), a.Ints(-1), a.Ints(0)))
	return a.Concat(-1, m, a.Full(a.Concat(0, head, missing), m.Type.Elem, with))
}

// lowestFinite returns the least finite number of a float type.
func lowestFinite(elem graph.DataType) float64 {
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
