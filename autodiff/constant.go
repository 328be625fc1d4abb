package autodiff

import "gradtool/graph"

// constantRules: constants read no operand that could have a cotangent.
//
//	Range   y_i = start + i delta; start: sum of g, delta: sum of g_i i, limit: 0
func constantRules() []Rule {
	rules := []Rule{{Name: "Range", Kind: HasVJP, VJP: rangeVJP, Stop: []int{1}}}
	rules = append(rules, noGrad("has no float operand", "Constant", "ConstantOfShape")...)
	return append(rules, zeroGrad("EyeLike")...)
}

func rangeVJP(c *Ctx) []*graph.Value {
	g := c.Ct(0)
	out := make([]*graph.Value, 3)
	if c.Need(0) {
		out[0] = c.ReshapeLike(c.ReduceAll(g), c.X(0))
	}
	if c.Need(2) {
		n := c.Squeeze(c.DimOf(g, 0), 0)
		i := c.Op("Range", []*graph.Value{c.IntScalar(0), n, c.IntScalar(1)})
		out[2] = c.ReshapeLike(c.ReduceAll(c.Mul(g, c.Cast(i, g.Type.Elem))), c.X(2))
	}
	return out
}
