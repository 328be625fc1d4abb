package fuse

import (
	"errors"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// attentionRules make Attention of two products with a softmax between, and let it split and join heads itself.
func attentionRules(opset int64) []rewrite.Rule {
	out := []rewrite.Rule{{
		Name: "attention", Doc: "softmax(scale q k^T + mask) v = Attention(q, k, v, mask)", Effect: rewrite.Rounding,
		Root: rewrite.P("MatMul", rewrite.Any("p"), rewrite.Any("v")),
		When: func(m *rewrite.Match) error { _, err := parseAttention(m.Root, m.Known); return err },
		Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
			a, err := parseAttention(m.Root, m.Known)
			if err != nil {
				return nil
			}
			return one(a.emit(b))
		},
	}}
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
