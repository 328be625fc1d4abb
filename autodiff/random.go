package autodiff

import "gradtool/graph"

// randomRules: drawn numbers depend on no operand but through its shape, or by jumps (Bernoulli).
func randomRules() []Rule {
	rules := []Rule{{Name: "Dropout", Kind: HasVJP, VJP: dropoutVJP, Stop: []int{1, 2}}}
	rules = append(rules, zeroGrad("RandomNormalLike", "RandomUniformLike", "Bernoulli")...)
	rules = append(rules, noGrad("results are class numbers", "Multinomial")...)
	return append(rules, noGrad("has no operand", "RandomNormal", "RandomUniform")...)
}

// dropoutVJP: in training mode y = mask ? x/(1-ratio) : 0, so x gets mask ? g/(1-ratio) : 0, with the
// mask that the forward node drew; else g. Where the mode is known only at run time the scale is chosen then; the mask
// is all true outside training.
func dropoutVJP(c *Ctx) []*graph.Value {
	g, ratio, mode := c.Ct(0), c.X(1), c.X(2)
	if mode == nil {
		return one(g)
	}
	known := c.Info.Const(mode)
	if known != nil && known.Len() == 1 && known.I64[0] == 0 {
		return one(g)
	}
	scale := c.Like(g, 2)
	if ratio != nil {
		scale = c.Unary("Reciprocal", c.Sub(c.Like(g, 1), c.Cast(ratio, g.Type.Elem)))
		if r := c.Info.Const(ratio); r != nil && r.Len() == 1 {
			scale = c.Like(g, 1/(1-r.Float(0)))
		}
	}
	if known == nil {
		scale = c.Where(mode, scale, c.Like(g, 1))
	}
	return one(c.Where(c.Want(1), c.Mul(g, scale), c.Like(g, 0)))
}
