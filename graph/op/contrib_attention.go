package op

import (
	"math"

	"gradtool/graph"
)

// contribAttentionDefs holds ONNX Runtime's attention operators and rotary embedding.
func contribAttentionDefs() []Def {
	i := func(name string, v int64) *graph.Attr { return graph.IntAttr(name, v) }
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	two, causal, fill := i("num_heads", 2), i("unidirectional", 1), graph.FloatAttr("mask_filter_value", -3)
	var no Arg
	ints := func(shape []int, v ...float64) Arg { return TV(graph.Int32, shape, v...) }
	mha := func(more ...Arg) []Arg { return append([]Arg{F(2, 3, 4), F(2, 3, 4), F(2, 3, 6)}, more...) }
	mask := ints([]int{2, 3}, 1, 1, 0, 1, 0, 1)
	square := ints([]int{2, 3, 3}, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0)
	positions := TV(graph.Int64, []int{2, 3}, 0, 3, 1, 2, 2, 4)
	gqa := func(kv, heads int64, more ...*graph.Attr) []*graph.Attr {
		return append([]*graph.Attr{i("num_heads", heads), i("kv_num_heads", kv)}, more...)
	}
	total := func(v float64) Arg { return ints(nil, v) }
	return []Def{
		{Name: "MultiHeadAttention", Decompose: multiHeadAttention, Samples: []Sample{
			{In: mha(), Attrs: attrs(two)},
			{Name: "bias", In: mha(F(14)), Attrs: attrs(two, graph.FloatAttr("scale", 0.3)), Outs: 3},
			{Name: "mask", In: mha(no, mask), Attrs: attrs(two, fill)},
			{Name: "mask by query", In: mha(no, square), Attrs: attrs(two, fill, causal)},
			{Name: "lengths, attention bias", In: mha(no, ints([]int{2}, 3, 2), F(1, 2, 3, 3)), Attrs: attrs(two, fill)},
			{Name: "past", In: mha(no, no, no, F(2, 2, 2, 2), F(2, 2, 2, 3)), Attrs: attrs(two, causal), Outs: 3},
			{Name: "past, equal sizes", In: []Arg{F(2, 3, 4), F(2, 3, 4), F(2, 3, 4), no, ints([]int{2, 5}, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1), no, F(2, 2, 2, 2), F(2, 2, 2, 2)}, Attrs: attrs(two, fill), Outs: 3},
			{Name: "past as keys", In: []Arg{F(2, 3, 4), F(2, 2, 5, 2), F(2, 2, 5, 2)}, Attrs: attrs(two)},
			{Name: "packed", In: []Arg{F(2, 3, 2, 3, 2)}, Attrs: attrs(two)},
			{Name: "packed keys", In: []Arg{F(2, 3, 4), F(2, 5, 2, 2, 2)}, Attrs: attrs(two)},
		}},
		{Name: "Attention", Decompose: contribAttention, Samples: []Sample{
			{In: []Arg{F(2, 3, 4), F(4, 12), F(12)}, Attrs: attrs(two)},
			{Name: "sizes", In: []Arg{F(2, 3, 5), F(5, 14), F(14)}, Attrs: attrs(two, graph.IntsAttr("qkv_hidden_sizes", 4, 4, 6))},
			{Name: "mask, causal", In: []Arg{F(2, 3, 4), F(4, 12), F(12), mask}, Attrs: attrs(two, causal, fill)},
			{Name: "ends", In: []Arg{F(2, 3, 4), F(4, 12), F(12), ints([]int{2}, 3, 1)}, Attrs: attrs(two, fill)},
			{Name: "ends and starts", In: []Arg{F(2, 3, 4), F(4, 12), F(12), ints([]int{4}, 3, 2, 1, 0)}, Attrs: attrs(two, fill)},
			{Name: "past", In: []Arg{F(2, 3, 4), F(4, 12), F(12), no, F(2, 2, 2, 2, 2)}, Attrs: attrs(two, causal), Outs: 2},
			{Name: "bias", In: []Arg{F(2, 3, 4), F(4, 12), F(12), no, no, F(2, 2, 3, 3)}, Attrs: attrs(two)},
		}},
		{Name: "GroupQueryAttention", Decompose: groupQueryAttention, Samples: []Sample{
			{In: []Arg{F(1, 3, 32), F(1, 3, 16), F(1, 3, 16), no, no, ints([]int{1}, 2), total(3)}, Attrs: gqa(2, 4), Outs: 3},
			{Name: "packed, rotary", In: []Arg{F(1, 3, 64), no, no, no, no, ints([]int{1}, 2), total(3), F(6, 8), F(6, 8)}, Attrs: gqa(1, 2, i("do_rotary", 1)), Outs: 3},
			{Name: "past", In: []Arg{F(2, 1, 16), F(2, 1, 8), F(2, 1, 8), F(2, 1, 4, 8), F(2, 1, 4, 8), ints([]int{2}, 3, 2), total(4)}, Attrs: gqa(1, 2, i("local_window_size", 2)), Outs: 3},
			{Name: "past grows", In: []Arg{F(1, 2, 32), F(1, 2, 32), F(1, 2, 32), F(1, 2, 3, 16), F(1, 2, 3, 16), ints([]int{1}, 4), total(5), F(6, 8), F(6, 8)},
				Attrs: gqa(2, 2, i("do_rotary", 1), i("rotary_interleaved", 1), graph.FloatAttr("softcap", 3)), Outs: 3},
		}},
		{Name: "RotaryEmbedding", Decompose: contribRotary, Samples: []Sample{
			{In: []Arg{F(2, 3, 8), positions, F(5, 2), F(5, 2)}},
			{Name: "heads", In: []Arg{F(2, 2, 3, 4), positions, F(5, 2), F(5, 2)}, Attrs: attrs(i("interleaved", 1))},
			{Name: "offset, partial", In: []Arg{F(2, 3, 8), I(1), F(5, 1), F(5, 1)}, Attrs: attrs(two, i("rotary_embedding_dim", 2))},
		}},
	}
}

// headsOut returns [batch, length, heads·size] as [batch, heads, length, size].
func (b *Builder) headsOut(x *graph.Value, heads int64) *graph.Value {
	return b.Transpose(b.ReshapeTo(x, 0, 0, heads, -1), 0, 2, 1, 3)
}

// headsIn is the inverse of headsOut.
func (b *Builder) headsIn(x *graph.Value) *graph.Value {
	return b.ReshapeTo(b.Transpose(x, 0, 2, 1, 3), 0, 0, -1)
}

// countTo returns 0, 1, ... n-1, for n a vector of one element.
func (b *Builder) countTo(n *graph.Value) *graph.Value {
	return b.Op("Range", vals(b.IntScalar(0), b.Squeeze(n, 0), b.IntScalar(1)))
}

// scoring is how queries are compared with keys.
type scoring struct {
	scale   float64        // 0: one over the root of the head size
	causal  bool           // a query sees no later key; the last query goes with the last key
	added   []*graph.Value // to the scores; broadcast
	softcap float64        // 0: none
	seen    *graph.Value   // bool, which keys may be seen besides; nil: all
}

// attend returns softmax(scores)·v and the scores, for q, k and v as [batch, heads, length, size].
func (b *Builder) attend(q, k, v *graph.Value, s scoring) (y, scores *graph.Value) {
	scale := s.scale
	if size := q.Type.Shape; scale == 0 && len(size) == 4 {
		if n, ok := size[3].Int(); ok && n > 0 {
			scale = 1 / math.Sqrt(float64(n))
		}
	}
	if scale != 0 {
		q = b.MulScalar(q, scale)
	} else {
		n := b.Cast(b.Squeeze(b.DimOf(q, 3), 0), graph.Float)
		q = b.Mul(q, b.Cast(b.Unary("Reciprocal", b.Unary("Sqrt", n)), q.Type.Elem))
	}
	scores = b.MatMul(q, b.Transpose(k, 0, 1, 3, 2))
	if s.softcap > 0 {
		scores = b.MulScalar(b.Unary("Tanh", b.MulScalar(scores, 1/s.softcap)), s.softcap)
	}
	scores = b.plus(scores, s.added...)
	seen := s.seen
	if s.causal {
		total := b.DimOf(scores, 3)
		last := b.Sub(total, b.DimOf(scores, 2)) // the key that the first query goes with
		place := b.Unsqueeze(b.Add(b.countTo(b.DimOf(scores, 2)), last), 1)
		seen = b.Binary("LessOrEqual", b.countTo(total), place)
	}
	if seen != nil {
		scores = b.Where(seen, scores, b.Like(scores, lowestFinite(scores.Type.Elem)))
	}
	return b.MatMul(b.Unary("Softmax", scores, graph.IntAttr("axis", -1)), v), scores
}

// maskScores returns what is added to the scores, of the given number of keys, for an integer mask: lengths [B], ends and
// starts [2B], or zeros and ones [B, keys] or [B, queries, keys].
func (b *Builder) maskScores(mask, keys, like *graph.Value, fill float64) *graph.Value {
	s := mask.Type.Shape
	var on *graph.Value
	switch {
	case len(s) == 1:
		// Where the mask holds no starts, the zeros put behind it take their place.
		at, batch := b.countTo(keys), b.DimOf(like, 0)
		ends := b.Cast(mask, graph.Int64)
		starts := b.Concat(0, ends, b.Full(batch, graph.Int64, 0))
		starts = b.Slice(starts, batch, b.Mul(batch, b.Ints(2)), b.Ints(0), nil)
		ends = b.Slice(ends, b.Ints(0), batch, b.Ints(0), nil)
		on = b.Binary("And", b.Binary("Less", at, b.Unsqueeze(ends, 1, 2, 3)), b.Binary("GreaterOrEqual", at, b.Unsqueeze(starts, 1, 2, 3)))
	case len(s) == 2:
		on = b.Unsqueeze(b.Cast(mask, graph.Bool), 1, 2)
	case len(s) == 3:
		on = b.Unsqueeze(b.Cast(mask, graph.Bool), 1)
	default:
		b.uncovered("a mask of type %s", mask.Type)
		return nil
	}
	return b.Where(on, b.Like(like, 0), b.Like(like, fill))
}

// fillValue is what masks add for what is not to be seen.
func fillValue(n *graph.Node) float64 {
	if v := n.Float("mask_filter_value", 0); v != 0 {
		return v
	}
	return -10000
}

// multiHeadAttention attends with queries, keys and values that lie apart or packed together. Results: the output, keys
// and values with the past in front, and the scores.
func multiHeadAttention(b *Builder, n *graph.Node) []*graph.Value {
	heads := n.Int("num_heads", 0)
	q, k, v := n.Operand(0), n.Operand(1), n.Operand(2)
	if n.Operand(8) != nil || n.Operand(9) != nil || heads < 1 {
		return b.uncovered("past_sequence_length and cache_indirection")
	}
	bias := n.Operand(3)
	piece := func(x *graph.Value, i int64) *graph.Value { // of [batch, length, heads, pieces, size]
		return b.Transpose(b.Gather(x, b.IntScalar(i), 3), 0, 2, 1, 3)
	}
	size := q.Type.Shape
	switch {
	case k == nil && (size == nil || len(size) == 5):
		if bias != nil {
			return b.uncovered("a bias of packed operands")
		}
		q, k, v = piece(q, 0), piece(q, 1), piece(q, 2)
	case k != nil && k.Type.Shape == nil:
		return b.uncovered("keys of unknown rank")
	case k == nil:
		return b.uncovered("queries of type %s without keys", q.Type)
	case len(k.Type.Shape) == 5 || v == nil:
		if bias != nil {
			return b.uncovered("a bias of packed operands")
		}
		q, k, v = b.headsOut(q, heads), piece(k, 0), piece(k, 1)
	default:
		past := len(k.Type.Shape) == 4
		if bias != nil {
			hidden := b.DimOf(q, -1)
			cut := func(from, to *graph.Value) *graph.Value { return b.Slice(bias, from, to, b.Ints(0), nil) }
			two := b.Mul(hidden, b.Ints(2))
			q = b.Add(q, cut(b.Ints(0), hidden))
			if !past {
				k, v = b.Add(k, cut(hidden, two)), b.Add(v, cut(two, b.Ints(math.MaxInt64)))
			}
		}
		q = b.headsOut(q, heads)
		if !past {
			k, v = b.headsOut(k, heads), b.headsOut(v, heads)
		}
	}
	if past := n.Operand(6); past != nil {
		k, v = b.Concat(2, past, k), b.Concat(2, n.Operand(7), v)
	}
	s := scoring{scale: n.Float("scale", 0), causal: n.Int("unidirectional", 0) != 0, added: vals(n.Operand(5))}
	if mask := n.Operand(4); mask != nil {
		s.added = append(s.added, b.maskScores(mask, b.DimOf(k, 2), q, fillValue(n)))
	}
	y, scores := b.attend(q, k, v, s)
	return vals(b.headsIn(y), k, v, scores)
}

// contribAttention projects the input to queries, keys and values first.
func contribAttention(b *Builder, n *graph.Node) []*graph.Value {
	if n.Operand(6) != nil || n.Int("do_rotary", 0) != 0 {
		return b.uncovered("a shared buffer for past and present, or rotary embeddings")
	}
	qkv := b.plus(b.MatMul(n.Operand(0), n.Operand(1)), n.Operand(2))
	return b.projected(n, qkv, n.Operand(3), n.Operand(4), n.Operand(5))
}

// projected attends with queries, keys and values that lie side by side in the last axis. Past and present are keys and
// values stacked along a new first axis.
func (b *Builder) projected(n *graph.Node, qkv, mask, past, bias *graph.Value) []*graph.Value {
	heads := n.Int("num_heads", 0)
	if heads < 1 {
		return b.uncovered("%d heads", heads)
	}
	var q, k, v *graph.Value
	if sizes := n.Ints("qkv_hidden_sizes"); len(sizes) == 3 {
		parts := b.Node("Split", vals(qkv, b.Ints(sizes...)), 3, graph.IntAttr("axis", -1)).Out
		q, k, v = b.headsOut(parts[0], heads), b.headsOut(parts[1], heads), b.headsOut(parts[2], heads)
	} else {
		parts := b.Node("Split", vals(b.headsOut(qkv, 3*heads), b.Ints(heads, heads, heads)), 3, graph.IntAttr("axis", 1)).Out
		q, k, v = parts[0], parts[1], parts[2]
	}
	if past != nil {
		k = b.Concat(2, b.Gather(past, b.IntScalar(0), 0), k)
		v = b.Concat(2, b.Gather(past, b.IntScalar(1), 0), v)
	}
	s := scoring{scale: n.Float("scale", 0), causal: n.Int("unidirectional", 0) != 0, added: vals(bias)}
	if mask != nil {
		s.added = append(s.added, b.maskScores(mask, b.DimOf(k, 2), q, fillValue(n)))
	}
	y, _ := b.attend(q, k, v, s)
	out := vals(b.headsIn(y), nil)
	if n.Result(1) != nil {
		out[1] = b.Concat(0, b.Unsqueeze(k, 0), b.Unsqueeze(v, 0))
	}
	return out
}
