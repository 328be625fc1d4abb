package autodiff

import "gradtool/graph"

// logicRules: results are truth values or integers, but for Where.
//
//	Where   y = c ? a : b; a: c ? g : 0, b: c ? 0 : g
//
// The branch not taken gets an exact 0, not g times 0, so that an infinite cotangent leaks no NaN.
func logicRules() []Rule {
	return append([]Rule{{Name: "Where", Kind: HasVJP, VJP: whereVJP}},
		noGrad("results are truth values or bits", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "Not",
			"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "IsNaN", "IsInf")...)
}

func whereVJP(c *Ctx) []*graph.Value {
	g, cond := c.Ct(0), c.X(0)
	zero := c.Like(g, 0)
	out := make([]*graph.Value, 3)
	if c.Need(1) {
		out[1] = c.Where(cond, g, zero)
	}
	if c.Need(2) {
		out[2] = c.Where(cond, zero, g)
	}
	return out
}
