package prune

import (
	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// gradientRules hold for nodes of a gradient. A zero there that is a constant stands for a cotangent which does not
// exist: it makes its product vanish also where the other factor is infinite or not a number, and adds nothing, not even
// the sign of a zero.
func gradientRules() []rewrite.Rule {
	P, Any := rewrite.P, rewrite.Any
	zero := isSplat("c", "0", number(0))
	return []rewrite.Rule{
		{Name: "gradient-add-zero", Doc: "g + 0 = g, where 0 is a missing cotangent", Benefit: 1, Effect: rewrite.ZeroSign,
			Root: P("Add", Any("x"), Any("c")).Commute(), When: all(zero, keepsShape, backward, madeBackward("c")), Emit: x},
		{Name: "gradient-mul-zero", Doc: "0 * y = 0, where 0 is a missing cotangent", Benefit: 1, Effect: rewrite.Finite,
			Root: P("Mul", Any("x"), Any("y")).Commute(),
			When: all(isSplat("x", "0", number(0)), backward, madeBackward("x"), keepsShape), Emit: x},
		{Name: "gradient-div-zero", Doc: "0 / y = 0, where 0 is a missing cotangent", Benefit: 1, Effect: rewrite.Finite,
			Root: P("Div", Any("x"), Any("y")), When: all(isSplat("x", "0", number(0)), backward, madeBackward("x"), keepsShape), Emit: x},
		{Name: "gradient-add-pads", Doc: "Pad(x) + Pad(y) = Concat(y, x) in a gradient, where zeros of either meet the other", Effect: rewrite.ZeroSign,
			Root: P("Add", P("Pad", Any("x"), Any("pads"), Any("value").Opt()).As("p"), P("Pad", Any("y"), Any("pads0"), Any("value0").Opt()).As("q")).Commute(),
			When: all(backward, padsMeet), Emit: joinPadded},
		{Name: "gradient-neg-difference", Doc: "-(x - y) = y - x, in a gradient", Effect: rewrite.ZeroSign,
			Root: P("Neg", P("Sub", Any("x"), Any("y"))), When: backward,
			Emit: one(func(b *op.Builder, m *match) *graph.Value { return b.Sub(m.V("y"), m.V("x")) })},
	}
}

// madeBackward holds where the captured value is computed by a node of a gradient, so that gradtool put it there.
func madeBackward(name string) func(m *match) error {
	return func(m *match) error {
		n := m.Node(name)
		if n == nil || n.Meta.Get(graph.MetaRole) != graph.RoleBackward {
			return reason("the zero is no part of the gradient")
		}
		return nil
	}
}
