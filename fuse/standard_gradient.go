package fuse

import (
	"errors"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// gradientRules are about what gradients are full of: products that are transposed afterwards, since the weights were, and
// sums with scattered rows of zeros, where weights are looked up and multiplied with too.
func gradientRules(opset int64) []rewrite.Rule {
	flip := func(name, of string) rewrite.Rule {
		return rewrite.Rule{
			Name: name, Doc: "(a b)^T = b^T a^T", Effect: rewrite.Rounding,
			Root: rewrite.P("Transpose", rewrite.P(of, rewrite.Any("x"), rewrite.Any("w")).As("n")),
			When: func(m *rewrite.Match) error {
				if err := matrices(m); err != nil {
					return err
				}
				if p := m.Root.Ints("perm"); len(p) == 2 && p[0] == 0 {
					return rewrite.ErrUnlike
				}
				return nil
			},
			Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
				n := m.Node("n")
				attrs := []*graph.Attr{graph.IntAttr("transA", 1-flag(n, "transB")), graph.IntAttr("transB", 1-flag(n, "transA"))}
				if a := n.Attr("alpha"); a != nil {
					attrs = append(attrs, a)
				}
				return one(b.Op("Gemm", []*graph.Value{m.V("w"), m.V("x")}, attrs...))
			},
		}
	}
	out := since(opset, 11, flip("gemm-transposed", "Gemm"), flip("product-transposed", "MatMul"))
	for _, scatter := range []string{"ScatterND", "ScatterElements"} {
		out = append(out, since(opset, 16, rewrite.Rule{
			Name: "add-" + scatter, Doc: "x + " + scatter + "(0, i, u, add) = " + scatter + "(x, i, u, add)", Effect: rewrite.Rounding,
			Root: plus(rewrite.Any("x"), rewrite.P(scatter, rewrite.P("ConstantOfShape", rewrite.Any("shape")).Shared().As("zeros"), rewrite.Any("i"), rewrite.Any("u")).As("n")),
			When: func(m *rewrite.Match) error {
				if m.Node("n").Str("reduction", "none") != "add" {
					return rewrite.ErrUnlike
				}
				if a := m.Node("zeros").Attr("value"); a != nil {
					v, err := op.FromTensor(a.T, false)
					if err != nil || v.Len() != 1 || v.Float(0) != 0 {
						return rewrite.ErrUnlike
					}
				}
				if !m.V("x").Type.Shape.Equal(m.V("zeros").Type.Shape) || m.V("x").Type.Elem != m.V("zeros").Type.Elem {
					return errors.New("the summands are not known to have equal shapes")
				}
				return nil
			},
			Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
				return one(b.Op(m.Node("n").Op, []*graph.Value{m.V("x"), m.V("i"), m.V("u")}, m.Node("n").Attrs...))
			},
		})...)
	}
	return out
}

// flag returns an attribute that is a truth value as 0 or 1.
func flag(n *graph.Node, name string) int64 {
	if n.Int(name, 0) != 0 {
		return 1
	}
	return 0
}
