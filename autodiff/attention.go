package autodiff

import (
	"slices"

	"gradtool/graph"
)

// attentionRules: attention keeps no probabilities, so it is written out as products and a softmax; linear
// attention as its recurrence.
func attentionRules() []Rule {
	return []Rule{
		{Name: "Attention", Kind: Decomposed},
		{Name: "LinearAttention", Kind: Decomposed},
		{Name: "RotaryEmbedding", Kind: HasVJP, VJP: rotaryVJP},
	}
}

// rotaryVJP: a pair (p, q) becomes (c·p - s·q, s·p + c·q), so the cotangent is turned by the opposite angle; with (g, h) that
// of the pair, dc = g·p + h·q and ds = h·p - g·q, summed over heads.
func rotaryVJP(c *Ctx) []*graph.Value {
	x, cos, sin, positions, g := c.X(0), c.X(1), c.X(2), c.X(3), c.Ct(0)
	out := make([]*graph.Value, len(c.Node.In))
	if c.Need(0) {
		out[0] = c.Op("RotaryEmbedding", []*graph.Value{g, cos, c.Neg(sin), positions}, slices.Clone(c.Node.Attrs)...)
	}
	if !c.Need(1) && !c.Need(2) {
		return out
	}
	headAxis := int64(1)
	if n := c.Node.Int("num_heads", 0); len(x.Type.Shape) == 3 || x.Type.Shape == nil && n > 0 {
		x, g = c.ReshapeTo(x, 0, 0, n, -1), c.ReshapeTo(g, 0, 0, n, -1)
		headAxis = 2
	}
	half := c.DimOf(cos, -1)
	both := c.Mul(half, c.Ints(2))
	pair := func(v *graph.Value) (p, q *graph.Value) {
		axis := c.Ints(-1)
		if c.Node.Int("interleaved", 0) != 0 {
			return c.Slice(v, c.Ints(0), both, axis, c.Ints(2)), c.Slice(v, c.Ints(1), both, axis, c.Ints(2))
		}
		return c.Slice(v, c.Ints(0), half, axis, nil), c.Slice(v, half, both, axis, nil)
	}
	p, q := pair(x)
	gp, gq := pair(g)
	toCache := func(v, cache *graph.Value) *graph.Value {
		v = c.ReduceSum(v, false, headAxis) // [batch, length, half]
		if positions == nil {
			return v
		}
		v = stashed(c, v) // runtimes scatter sums of wide types only
		zeros := c.Full(c.Shape(cache), v.Type.Elem, 0)
		return c.Op("ScatterND", []*graph.Value{zeros, c.Unsqueeze(positions, -1), v}, graph.StringAttr("reduction", "add"))
	}
	if c.Need(1) {
		out[1] = toCache(c.Add(c.Mul(gp, p), c.Mul(gq, q)), cos)
	}
	if c.Need(2) {
		out[2] = toCache(c.Sub(c.Mul(gq, p), c.Mul(gp, q)), sin)
	}
	return out
}
