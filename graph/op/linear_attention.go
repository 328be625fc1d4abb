package op

import (
	"math"
	"strings"

	"gradtool/graph"
)

// linearAttentionDef is LinearAttention: a state S of one matrix per head that every token updates and reads,
// S = exp(g)·S + k ⊗ u, output scale·qᵀ·S, where u is v or, with a delta rule, β·(v - Sᵀk) for the decayed S, and only
// the gated rules decay.
func linearAttentionDef() Def {
	n := func(q, kv int64) []*graph.Attr {
		return []*graph.Attr{graph.IntAttr("q_num_heads", q), graph.IntAttr("kv_num_heads", kv)}
	}
	rule := func(name string, attrs []*graph.Attr) []*graph.Attr {
		return append(attrs, graph.StringAttr("update_rule", name))
	}
	return Def{
		Name: "LinearAttention", Infer: inferLinearAttention, Eval: evalLinearAttention, Decompose: decomposeLinearAttention,
		Cost: func(c *CostCtx) float64 {
			return float64(c.In[0][0]*c.In[0][1]) * float64(prod(c.Out[1][1:])) * float64(6+2*c.Node.Int("q_num_heads", 1)/max(1, c.Node.Int("kv_num_heads", 1)))
		},
		Samples: []Sample{
			{Name: "linear", In: []Arg{F(2, 3, 4), F(2, 3, 4), F(2, 3, 6)}, Attrs: rule("linear", n(2, 2)), Outs: 2},
			{Name: "gated, state", In: []Arg{F(1, 3, 4), F(1, 3, 4), F(1, 3, 6), F(1, 2, 2, 3), FR(-1, 0, 1, 3, 4)}, Attrs: rule("gated", n(2, 2)), Outs: 2},
			{Name: "delta, shared keys", In: []Arg{F(1, 3, 8), F(1, 3, 2), F(1, 3, 3), {}, {}, FR(0, 1, 1, 3, 1)}, Attrs: rule("delta", n(4, 1)), Outs: 2},
			{Name: "gated delta", In: []Arg{F(2, 2, 4), F(2, 2, 4), F(2, 2, 6), F(2, 2, 2, 3), FR(-1, 0, 2, 2, 2), FR(0, 1, 2, 2, 2)}, Attrs: append(n(2, 2), graph.FloatAttr("scale", 0.5)), Outs: 2},
		},
	}
}

func inferLinearAttention(c *InferCtx) error {
	q, k, v := c.Shape(0), c.Shape(1), c.Shape(2)
	for i, s := range []graph.Shape{q, k, v} {
		if s != nil && len(s) != 3 {
			return c.Errorf("operand %d has shape %s, expected 3 dimensions", i, s)
		}
	}
	qHeads, heads := c.Node.Int("q_num_heads", 0), c.Node.Int("kv_num_heads", 0)
	if qHeads < 1 || heads < 1 || qHeads%heads != 0 {
		return c.Errorf("q_num_heads is %d, kv_num_heads %d, expected a multiple", qHeads, heads)
	}
	y, state := graph.UnknownShape(3), graph.UnknownShape(4)
	state[1] = graph.Known(heads)
	if q != nil {
		y[0], y[1], state[0] = q[0], q[1], q[0]
	}
	if k != nil {
		state[2] = k[2].FloorDiv(graph.Known(heads))
	}
	if v != nil {
		state[3] = v[2].FloorDiv(graph.Known(heads))
		y[2] = state[3].Mul(graph.Known(qHeads))
	}
	c.Set(0, c.Elem(0), y)
	elem := c.Elem(0)
	if c.Has(3) {
		elem = c.Elem(3)
	}
	c.Set(1, elem, state)
	return nil
}

// updateRule tells which terms the attribute update_rule asks for.
func updateRule(n *graph.Node) (gated, delta bool) {
	r := n.Str("update_rule", "gated_delta")
	return strings.HasPrefix(r, "gated"), strings.HasSuffix(r, "delta")
}

func evalLinearAttention(c *EvalCtx) error {
	n := c.Node
	nq, nk := int(n.Int("q_num_heads", 0)), int(n.Int("kv_num_heads", 0))
	if c.Arg(0).Rank() != 3 || nk < 1 || nq%nk != 0 {
		return c.Errorf("query of shape %v with %d and %d heads", c.Arg(0).Shape, nq, nk)
	}
	gated, delta := updateRule(n)
	if gated && c.Arg(4) == nil || delta && c.Arg(5) == nil {
		return c.Errorf("update rule %q lacks decay or beta", n.Str("update_rule", "gated_delta"))
	}
	q, k, v := headsOf(c.Arg(0), int64(nq)), headsOf(c.Arg(1), int64(nk)), headsOf(c.Arg(2), int64(nk))
	scale := n.Float("scale", 0)
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(q.size))
	}
	state := &heads{q.batch, nk, k.size, v.size, scratch[float64](q.batch, nk, k.size, v.size)}
	stateElem := c.Arg(0).Elem
	if past := c.Arg(3); past != nil {
		copy(state.v, floats64(past))
		stateElem = past.Elem
	}
	var decay, beta *heads
	if gated {
		decay = headsOf(c.Arg(4), int64(nk))
	}
	if delta {
		beta = headsOf(c.Arg(5), int64(min(nk, c.Arg(5).Shape[2])))
	}
	y := &heads{q.batch, nq, q.length, v.size, scratch[float64](q.batch, nq, q.length, v.size)}
	u := make([]float64, v.size)
	for b := range q.batch {
		for h := range nk {
			s := state.at(b, h)
			for t := range q.length {
				kt, vt := k.at(b, h)[t*k.size:][:k.size], v.at(b, h)[t*v.size:][:v.size]
				if gated {
					g := decay.at(b, h)[t*decay.size:][:decay.size]
					for i := range s {
						s[i] *= math.Exp(g[i/v.size%len(g)])
					}
				}
				copy(u, vt)
				if delta {
					by := beta.at(b, h%beta.heads)[t]
					for j := range u {
						for i := range kt {
							u[j] -= s[i*v.size+j] * kt[i]
						}
						u[j] *= by
					}
				}
				for i := range s {
					s[i] += kt[i/v.size] * u[i%v.size]
				}
				for g := range nq / nk {
					qt := q.at(b, h*(nq/nk)+g)[t*q.size:][:q.size]
					out := y.at(b, h*(nq/nk)+g)[t*v.size:][:v.size]
					for i := range s {
						out[i%v.size] += scale * qt[i/v.size] * s[i]
					}
				}
			}
		}
	}
	c.Set(0, y.array(c, c.Arg(0).Elem, true))
	c.Set(1, state.array(c, stateElem, false))
	return nil
}

// decomposeLinearAttention writes the recurrence out over time, or as a Scan where the number of tokens is
// large or not known. It computes in float, as far as the operands are narrower.
func decomposeLinearAttention(b *Builder, n *graph.Node) []*graph.Value {
	nq, nk := n.Int("q_num_heads", 1), n.Int("kv_num_heads", 1)
	elem := n.Operand(0).Type.Elem
	work := elem
	if elem == graph.Float16 || elem == graph.BFloat16 {
		work = graph.Float
	}
	// Tokens first: [T, B, Hk, rows, columns].
	unpack := func(i int, shape ...int64) *graph.Value {
		v := n.Operand(i)
		if v == nil {
			return nil
		}
		v = b.Cast(b.ReshapeTo(v, append([]int64{0, 0}, shape...)...), work)
		return b.Transpose(v, 1, 0, 2, 3, 4)
	}
	q, k, v := unpack(0, nk, nq/nk, -1), unpack(1, nk, -1, 1), unpack(2, nk, 1, -1)
	ins := vals(q, k, v)
	gated, delta := updateRule(n)
	if gated {
		ins = append(ins, b.Unary("Exp", unpack(4, nk, -1, 1)))
	}
	if delta {
		ins = append(ins, unpack(5, -1, 1, 1))
	}
	state := n.Operand(3)
	stateElem := elem
	if state != nil {
		stateElem = state.Type.Elem
		state = b.Cast(state, work)
		if state.Type.Shape == nil { // the rank is noted on a value of our own, not on the model's
			state = b.Unary("Identity", state)
		}
	} else {
		shape := b.Concat(0, b.DimOf(k, 1), b.Ints(nk), b.DimOf(k, 3), b.DimOf(v, 4))
		state = b.Full(shape, work, 0)
	}
	step := func(b *Builder, x, state []*graph.Value) (*graph.Value, []*graph.Value) {
		s, k, u := state[0], x[1], x[2]
		if gated {
			s = b.Mul(s, x[3])
		}
		if delta {
			u = b.Mul(x[len(x)-1], b.Sub(u, b.MatMul(b.Transpose(k, 0, 1, 3, 2), s)))
		}
		s = b.Add(s, b.Mul(k, u))
		return b.MatMul(x[0], s), vals(s)
	}
	for _, v := range ins {
		refine(v, graph.UnknownShape(5))
	}
	refine(state, graph.UnknownShape(4))
	y, last := recur(b, step, ins, vals(state), graph.UnknownShape(4), false)
	// [T, B, Hk, group, dv] to [B, T, Hq·dv].
	y = b.ReshapeTo(b.Transpose(y, 1, 0, 2, 3, 4), 0, 0, -1)
	scale := b.Scalar(work, n.Float("scale", 0))
	if n.Float("scale", 0) == 0 {
		size := b.Cast(b.Squeeze(b.DimOf(q, 4), 0), work)
		scale = b.Unary("Reciprocal", b.Unary("Sqrt", size))
	}
	return vals(b.Cast(b.Mul(y, scale), elem), b.Cast(last[0], stateElem))
}
