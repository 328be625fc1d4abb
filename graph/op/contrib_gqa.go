package op

import (
	"math"

	"gradtool/graph"
)

// turn rotates pairs of elements of x, [batch, heads, length, size], by the angles of cos and sin, [length, size/2] or with a
// batch in front: pairs are neighbours if interleaved, else lie half a head apart. What lies behind the pairs stays.
func (b *Builder) turn(x, cos, sin *graph.Value, interleaved, partial bool) *graph.Value {
	half := b.DimOf(cos, -1)
	both, all := b.Mul(half, b.Ints(2)), b.Ints(math.MaxInt64)
	axis := b.Ints(3)
	if len(cos.Type.Shape) == 3 {
		cos, sin = b.Unsqueeze(cos, 1), b.Unsqueeze(sin, 1)
	}
	part := func(from, to, step *graph.Value) *graph.Value { return b.Slice(x, from, to, axis, step) }
	var p, q *graph.Value
	if interleaved {
		p, q = part(b.Ints(0), both, b.Ints(2)), part(b.Ints(1), both, b.Ints(2))
	} else {
		p, q = part(b.Ints(0), half, nil), part(half, both, nil)
	}
	u, v := b.Sub(b.Mul(p, cos), b.Mul(q, sin)), b.Add(b.Mul(q, cos), b.Mul(p, sin))
	var y *graph.Value
	if interleaved {
		y = b.ReshapeTo(b.Concat(4, b.Unsqueeze(u, 4), b.Unsqueeze(v, 4)), 0, 0, 0, -1)
	} else {
		y = b.Concat(3, u, v)
	}
	if partial {
		y = b.Concat(3, y, part(both, all, nil))
	}
	return y
}

// contribRotary turns heads by their positions, which are given one by one or as that of the first.
func contribRotary(b *Builder, n *graph.Node) []*graph.Value {
	x, at, cos, sin := n.Operand(0), n.Operand(1), n.Operand(2), n.Operand(3)
	if s := n.Float("scale", 0); s != 0 && s != 1 || n.Int("is_packed_batching", 0) != 0 {
		return b.uncovered("scaled or packed rotary embeddings")
	}
	heads, partial := n.Int("num_heads", 0), n.Int("rotary_embedding_dim", 0) > 0
	flat := len(x.Type.Shape) == 3
	switch {
	case x.Type.Shape == nil || at.Type.Shape == nil:
		return b.uncovered("operands of unknown rank")
	case flat && heads > 0:
		x = b.headsOut(x, heads)
	case flat && partial:
		return b.uncovered("rotary_embedding_dim without num_heads")
	case flat:
		size := b.Mul(b.DimOf(cos, -1), b.Ints(2))
		x = b.Transpose(b.Op("Reshape", vals(x, b.Concat(0, b.Ints(0, 0), b.Div(b.DimOf(x, 2), size), size))), 0, 2, 1, 3)
	}
	if len(at.Type.Shape) == 1 {
		at = b.Add(at, b.countTo(b.DimOf(x, 2)))
	}
	y := b.turn(x, b.Gather(cos, at, 0), b.Gather(sin, at, 0), n.Int("interleaved", 0) != 0, partial)
	if flat {
		y = b.headsIn(y)
	}
	return vals(y)
}

// groupQueryAttention attends causally, with fewer heads of keys than of queries. Sequences of a batch differ in length:
// seqlens_k holds the number of keys of each, less one, the last of which go with the queries. Present keys are the past
// ones with the new ones put behind each sequence's own past, in a buffer as long as the past's or the longest sequence.
func groupQueryAttention(b *Builder, n *graph.Node) []*graph.Value {
	heads, kvHeads := n.Int("num_heads", 0), n.Int("kv_num_heads", 0)
	for i := 9; i < len(n.In); i++ {
		if n.Operand(i) != nil && i != 10 {
			return b.uncovered("operand %d", i)
		}
	}
	quant := n.Str("k_quant_type", "NONE") != "NONE" || n.Str("v_quant_type", "NONE") != "NONE"
	if quant || n.Int("smooth_softmax", -1) > 0 || n.Int("qk_output", 0) != 0 || n.Int("causal", 1) == 0 ||
		n.Int("sliding_window_cache", 0) != 0 || heads < 1 || kvHeads < 1 || heads%kvHeads != 0 {
		return b.uncovered("quantized caches, smooth softmax, scores as a result, or attention to later keys")
	}
	q, k, v := n.Operand(0), n.Operand(1), n.Operand(2)
	if k == nil { // packed: heads of queries, keys and values side by side
		all := b.headsOut(q, heads+2*kvHeads)
		parts := b.Node("Split", vals(all, b.Ints(heads, kvHeads, kvHeads)), 3, graph.IntAttr("axis", 1)).Out
		q, k, v = parts[0], parts[1], parts[2]
	} else {
		q, k, v = b.headsOut(q, heads), b.headsOut(k, kvHeads), b.headsOut(v, kvHeads)
	}
	length := b.DimOf(q, 2)
	ends := b.Add(b.Cast(b.ReshapeTo(n.Operand(5), -1), graph.Int64), b.Ints(1))
	first := b.Op("Max", vals(b.Sub(ends, length), b.Ints(0))) // the position of each sequence's first query
	place := b.Add(b.Unsqueeze(first, 1), b.countTo(length))   // [B, S]
	if n.Int("do_rotary", 0) != 0 {
		cos, sin := n.Operand(7), n.Operand(8)
		if cos == nil || sin == nil {
			return b.uncovered("rotary embeddings without their tables")
		}
		cos, sin = b.Gather(cos, place, 0), b.Gather(sin, place, 0)
		inter := n.Int("rotary_interleaved", 0) != 0
		q, k = b.turn(q, cos, sin, inter, true), b.turn(k, cos, sin, inter, true)
	}
	if past := n.Operand(3); past != nil {
		total := b.ReshapeTo(b.Cast(n.Operand(6), graph.Int64), 1)
		room := b.Op("Max", vals(total, b.DimOf(past, 2)))
		k, v = b.cached(past, k, first, place, room), b.cached(n.Operand(4), v, first, place, room)
	}
	keys := b.countTo(b.DimOf(k, 2))
	spot := b.Unsqueeze(place, 1, 3) // [B, 1, S, 1]
	seen := b.Binary("LessOrEqual", keys, spot)
	if w := n.Int("local_window_size", -1); w > 0 {
		seen = b.Binary("And", seen, b.Binary("Greater", keys, b.Sub(spot, b.IntScalar(w))))
	}
	presentK, presentV := k, v
	if heads != kvHeads {
		k, v = b.repeatHeads(k, heads/kvHeads), b.repeatHeads(v, heads/kvHeads)
	}
	y, _ := b.attend(q, k, v, scoring{scale: n.Float("scale", 0), softcap: n.Float("softcap", 0), seen: seen, added: vals(n.Operand(10))})
	return vals(b.headsIn(y), presentK, presentV)
}

// cached returns the past, lengthened to room positions, with new put at the given ones of each sequence and zeros for what
// the past held from the first of these on.
func (b *Builder) cached(past, new, first, place, room *graph.Value) *graph.Value {
	more := b.Sub(room, b.DimOf(past, 2))
	past = b.Op("Pad", vals(past, b.Concat(0, b.Ints(0), more), nil, b.Ints(2)))
	old := b.Binary("Less", b.countTo(room), b.Unsqueeze(first, 1)) // [B, T]
	rows := b.Transpose(past, 0, 2, 1, 3)                           // [B, T, heads, size]
	rows = b.Where(b.Unsqueeze(old, 2, 3), rows, b.Like(rows, 0))
	batch := b.Unsqueeze(b.countTo(b.DimOf(new, 0)), 1, 2) // [B, 1, 1]
	at := b.Unsqueeze(place, 2)                            // [B, S, 1]
	at = b.Concat(2, b.Expand(batch, b.Shape(at)), at)     // [B, S, 2]
	rows = b.Op("ScatterND", vals(rows, at, b.Transpose(new, 0, 2, 1, 3)))
	return b.Transpose(rows, 0, 2, 1, 3)
}

// repeatHeads repeats each head k times in a row.
func (b *Builder) repeatHeads(x *graph.Value, k int64) *graph.Value {
	wide := b.Unsqueeze(x, 2)
	shape := b.Concat(0, b.DimOf(x, 0), b.DimOf(x, 1), b.Ints(k), b.DimOf(x, 2), b.DimOf(x, 3))
	to := b.Concat(0, b.DimOf(x, 0), b.Mul(b.DimOf(x, 1), b.Ints(k)), b.DimOf(x, 2), b.DimOf(x, 3))
	return b.Reshape(b.Expand(wide, shape), to)
}
