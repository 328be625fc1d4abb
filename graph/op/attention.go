package op

import (
	"math"

	"gradtool/graph"
)

// attentionDefs holds scaled dot product attention, rotary position embeddings and linear attention.
func attentionDefs() []Def {
	n := func(name string, v int64) *graph.Attr { return graph.IntAttr(name, v) }
	f := func(name string, v float32) *graph.Attr { return graph.FloatAttr(name, v) }
	causal := n("is_causal", 1)
	in := func(more ...Arg) []Arg { return append([]Arg{F(2, 2, 3, 4), F(2, 2, 5, 4), F(2, 2, 5, 3)}, more...) }
	past := []Arg{{}, F(2, 2, 2, 4), F(2, 2, 2, 3)}
	bools := TV(graph.Bool, []int{3, 5}, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1)
	short := FV([]int{3, 4}, 0, 1, 0, math.Inf(-1), 0, 0, 0, 0, 0, 0, 2, 0)
	attention := Def{
		Name: "Attention", Infer: inferAttention, Eval: evalAttention, Cost: costAttention, Decompose: decomposeAttention,
		Samples: []Sample{
			{In: in()},
			{Name: "heads in the last axis", In: []Arg{F(2, 3, 8), F(2, 5, 4), F(2, 5, 6)}, Attrs: []*graph.Attr{n("q_num_heads", 4), n("kv_num_heads", 2), f("scale", 0.7)}},
			{Name: "shared keys", In: []Arg{F(1, 4, 3, 2), F(1, 2, 4, 2), F(1, 2, 4, 3)}, Outs: 4},
			{Name: "causal", In: in(), Attrs: []*graph.Attr{causal}},
			{Name: "causal, past", In: in(past...), Attrs: []*graph.Attr{causal}, Outs: 4},
			{Name: "float mask", In: in(F(2, 1, 3, 5)), Attrs: []*graph.Attr{n("qk_matmul_output_mode", 2)}, Outs: 4},
			{Name: "bool mask, a row masked", In: in(bools), Attrs: []*graph.Attr{n("qk_matmul_output_mode", 3)}, Outs: 4},
			{Name: "short float mask", In: in(short)},
			{Name: "softcap", In: in(), Attrs: []*graph.Attr{f("softcap", 2), n("qk_matmul_output_mode", 1)}, Outs: 4},
			{Name: "window", In: in(F(5)), Attrs: []*graph.Attr{n("left_window_size", 1), n("right_window_size", 1)}},
			{Name: "lengths, causal", In: in(Arg{}, Arg{}, Arg{}, TV(graph.Int64, []int{2}, 5, 2)), Attrs: []*graph.Attr{causal}},
			{Name: "half, float softmax", In: []Arg{F(1, 1, 2, 2).As(graph.Float16), F(1, 1, 3, 2).As(graph.Float16), F(1, 1, 3, 2).As(graph.Float16)},
				Attrs: []*graph.Attr{n("softmax_precision", 1)}},
		},
	}
	return []Def{attention, rotaryDef(), linearAttentionDef()}
}

// attentionForm is what shapes the operands of an Attention node have.
type attentionForm struct {
	packed        bool  // heads lie in the last axis, operands have rank 3
	qHeads, heads int64 // of packed operands
}

func attentionFormOf(n *graph.Node, q graph.Shape) attentionForm {
	f := attentionForm{qHeads: n.Int("q_num_heads", 0), heads: n.Int("kv_num_heads", 0)}
	f.packed = len(q) == 3 || q == nil && f.qHeads > 0
	return f
}

// unpacked returns a shape as [batch, heads, length, size]; nil if it is not known.
func (f attentionForm) unpacked(s graph.Shape, heads int64) graph.Shape {
	switch {
	case f.packed && len(s) == 3 && heads > 0:
		return graph.Shape{s[0], graph.Known(heads), s[1], s[2].FloorDiv(graph.Known(heads))}
	case !f.packed && len(s) == 4:
		return s
	}
	return nil
}

func inferAttention(c *InferCtx) error {
	form := attentionFormOf(c.Node, c.Shape(0))
	for i := range 3 {
		if s := c.Shape(i); s != nil && (form.packed != (len(s) == 3) || len(s) != 3 && len(s) != 4) {
			return c.Errorf("operand %d has shape %s, expected rank 4, or 3 for all of Q, K and V", i, s)
		}
	}
	if form.packed && (form.qHeads < 1 || form.heads < 1) {
		return c.Errorf("q_num_heads and kv_num_heads are needed for operands of rank 3")
	}
	q, k, v := form.unpacked(c.Shape(0), form.qHeads), form.unpacked(c.Shape(1), form.heads), form.unpacked(c.Shape(2), form.heads)
	length := func(s graph.Shape, past int) graph.Shape {
		s = s.Clone()
		switch p := c.Shape(past); {
		case s == nil || !c.Has(past):
		case len(p) == 4:
			s[2] = s[2].Add(p[2])
		default:
			s[2] = graph.Unknown()
		}
		return s
	}
	k, v = length(k, 4), length(v, 5)
	y, scores := graph.UnknownShape(4), graph.UnknownShape(4)
	if form.packed {
		y = graph.UnknownShape(3)
	}
	if q != nil {
		scores[0], scores[1], scores[2] = q[0], q[1], q[2]
	}
	if k != nil {
		scores[3] = k[2]
	}
	size := graph.Unknown()
	if v != nil {
		size = v[3]
	}
	switch {
	case form.packed && q != nil:
		y = graph.Shape{q[0], q[2], q[1].Mul(size)}
	case q != nil:
		y = graph.Shape{q[0], q[1], q[2], size}
	}
	c.Set(0, c.Elem(0), y)
	c.Set(1, c.Elem(1), k)
	c.Set(2, c.Elem(2), v)
	c.Set(3, c.Elem(0), scores)
	return nil
}

// costAttention counts the two products and five operations per score.
func costAttention(c *CostCtx) float64 {
	form := attentionFormOf(c.Node, graph.UnknownShape(len(c.In[0])))
	shape := func(i int, heads int64) []int {
		s := c.In[i]
		if !form.packed {
			return s
		}
		return []int{s[0], int(heads), s[1], s[2] / int(max(heads, 1))}
	}
	q, k, v := shape(0, form.qHeads), shape(1, form.heads), shape(2, form.heads)
	total := k[2]
	if len(c.In) > 4 && c.In[4] != nil {
		total += c.In[4][2]
	}
	return float64(q[0]*q[1]*q[2]) * float64(total) * float64(2*q[3]+2*v[3]+5)
}
