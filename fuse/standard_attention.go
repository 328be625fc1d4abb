package fuse

import (
	"errors"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// attentionRules make Attention of two products with a softmax between, and let it split and join heads itself.
func attentionRules(opset int64) []rewrite.Rule {
	q, v, mask := func() *rewrite.Pattern { return rewrite.Any("q") }, rewrite.Any("v"), rewrite.Any("mask")
	turned := func() *rewrite.Pattern { return rewrite.P("Transpose", rewrite.Any("x")).Shared().As("kt") }
	product := func() []*rewrite.Pattern {
		return []*rewrite.Pattern{
			rewrite.P("MatMul", q(), turned()).As("qk"),
			rewrite.P("MatMul", q(), times(turned(), rewrite.Const("factor"))).As("qk"),
		}
	}
	var scores []*rewrite.Pattern
	for i := range product() {
		scores = append(scores, product()[i], times(product()[i], rewrite.Const("factor2")), rewrite.P("Div", product()[i], rewrite.Const("divisor")))
	}
	for _, s := range scores[:len(scores):len(scores)] {
		scores = append(scores, plus(s, mask))
	}
	var out []rewrite.Rule
	for i, s := range scores {
		out = append(out, rewrite.Rule{
			Name: "attention-" + string(rune('a'+i)), Doc: "softmax(scale q k^T + mask) v = Attention(q, k, v, mask)", Effect: rewrite.Rounding,
			Root: rewrite.P("MatMul", rewrite.P("Softmax", s).As("p"), v),
			When: attentionWhen, Emit: emitAttention,
		})
	}
	head := func(name string) *rewrite.Pattern {
		return rewrite.P("Transpose", rewrite.Any(name)).Shared().As(name + "t")
	}
	return since(opset, 23, append(out, rewrite.Rule{
		Name: "attention-heads", Doc: "Attention of heads that are split off by transposes = Attention of matrices", Effect: rewrite.Rounding,
		Root: rewrite.P("Transpose", rewrite.P("Attention", head("q"), head("k"), head("v"), rewrite.Any("mask").Opt()).As("a")),
		When: func(m *rewrite.Match) error {
			for _, n := range []*graph.Node{m.Root, m.Node("qt"), m.Node("kt"), m.Node("vt")} {
				if !swapsHeads(n) {
					return rewrite.ErrUnlike
				}
			}
			if m.Node("a").HasAttr("q_num_heads") || len(m.Node("a").Out) > 1 {
				return rewrite.ErrUnlike
			}
			for _, name := range []string{"q", "k", "v"} {
				if s := m.V(name).Type.Shape; len(s) != 4 || !isKnown(s[2]) || !isKnown(s[3]) {
					return errors.New("the number of heads or their size is not known")
				}
			}
			return nil
		},
		Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
			in := make([]*graph.Value, 3)
			var heads [3]int64
			var last int64
			for i, name := range []string{"q", "k", "v"} {
				s := m.V(name).Type.Shape
				heads[i], _ = s[2].Int()
				last, _ = s[3].Int()
				in[i] = b.ReshapeTo(m.V(name), 0, 0, heads[i]*last)
			}
			if mask := m.V("mask"); mask != nil {
				in = append(in, mask)
			}
			y := b.Op("Attention", in, append(append([]*graph.Attr{}, m.Node("a").Attrs...), graph.IntAttr("q_num_heads", heads[0]), graph.IntAttr("kv_num_heads", heads[1]))...)
			return one(b.ReshapeTo(y, 0, 0, heads[0], last))
		},
	})...)
}

func isKnown(d graph.Dim) bool {
	n, ok := d.Int()
	return ok && n > 0
}

// swapsHeads reports whether n exchanges the second and third of four axes.
func swapsHeads(n *graph.Node) bool {
	p := n.Ints("perm")
	return len(p) == 4 && p[0] == 0 && p[1] == 2 && p[2] == 1 && p[3] == 3
}

// attentionWhen checks that the operands are what Attention takes: batches of matrices of equal numbers, no broadcast.
func attentionWhen(m *rewrite.Match) error {
	q, x, v, p := m.V("q").Type, m.V("kt").Type, m.V("v").Type, m.V("p").Type
	r := len(q.Shape)
	if r != 3 && r != 4 || len(x.Shape) != r || len(v.Shape) != r || !q.Elem.IsDifferentiable() || q.Elem == graph.Double || x.Elem != q.Elem || v.Elem != q.Elem {
		return rewrite.ErrUnlike
	}
	if a := m.Node("p").Int("axis", -1); a != -1 && a != int64(r-1) || m.Root.Opset() < 13 {
		return rewrite.ErrUnlike
	}
	if len(m.Node("kt").Ints("perm")) != r {
		return rewrite.ErrUnlike
	}
	for i := range r - 2 {
		if !q.Shape[i].Equal(x.Shape[i]) || !q.Shape[i].Equal(v.Shape[i]) {
			return errors.New("q, k and v are not known to be as many")
		}
	}
	if s, err := attentionScale(m); err != nil || !(s > 0) {
		return errors.New("the scale is no positive number")
	}
	if mask := m.V("mask"); mask != nil {
		s := mask.Type.Shape
		n := len(s)
		if s == nil || n < 2 || n > r || mask.Type.Elem != q.Elem || !s[n-1].Equal(p.Shape[r-1]) || !s[n-2].Equal(p.Shape[r-2]) {
			return errors.New("the mask is not known to have an element for each pair")
		}
		for i, d := range s[:n-2] {
			if k, ok := d.Int(); !(ok && k == 1) && !d.Equal(p.Shape[r-n+i]) {
				return errors.New("the mask has other batches than the scores")
			}
		}
	}
	return nil
}

// attentionScale returns what the product of q and k is multiplied by.
func attentionScale(m *rewrite.Match) (float64, error) {
	scale := 1.0
	for name, power := range map[string]float64{"factor": 1, "factor2": 1, "divisor": -1} {
		if m.V(name) == nil {
			continue
		}
		c := m.Const(name)
		if c.Len() != 1 || !c.IsFloat() || c.Rank() > 1 {
			return 0, rewrite.ErrUnlike
		}
		if power > 0 {
			scale *= c.Float(0)
		} else {
			scale /= c.Float(0)
		}
	}
	return scale, nil
}

func emitAttention(b *op.Builder, m *rewrite.Match) []*graph.Value {
	q, v := m.V("q"), m.V("v")
	r := len(q.Type.Shape)
	perm := append([]int64{}, m.Node("kt").Ints("perm")...)
	perm[r-1], perm[r-2] = perm[r-2], perm[r-1]
	k := b.Transpose(m.V("x"), perm...)
	scale, _ := attentionScale(m)
	in := []*graph.Value{q, k, v}
	if mask := m.V("mask"); mask != nil {
		if r == 3 && len(mask.Type.Shape) == 3 {
			mask = b.Unsqueeze(mask, 1) // each batch has one head
		} else if len(mask.Type.Shape) == 3 {
			mask = b.Unsqueeze(mask, 0)
		}
		in = append(in, mask)
	}
	attrs := []*graph.Attr{graph.FloatAttr("scale", float32(scale))}
	if r == 3 {
		attrs = append(attrs, graph.IntAttr("q_num_heads", 1), graph.IntAttr("kv_num_heads", 1))
	}
	return one(b.Op("Attention", in, attrs...))
}
