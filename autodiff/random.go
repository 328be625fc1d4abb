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
// is all true outside training. A mask is multiplied with where the scale is finite, which runtimes do faster.
func dropoutVJP(c *Ctx) []*graph.Value {
	g, ratio, mode := c.Ct(0), c.X(1), c.X(2)
	if mode == nil {
		return one(g)
	}
	known := c.Info.Const(mode)
	if known != nil && known.Len() == 1 && known.I64[0] == 0 {
		return one(g)
	}
	scale, finite := c.Like(g, 2), ratio == nil
	if ratio != nil {
		scale = c.Unary("Reciprocal", c.Sub(c.Like(g, 1), c.Cast(ratio, g.Type.Elem)))
		if r := c.Info.Const(ratio); r != nil && r.Len() == 1 {
			scale, finite = c.Like(g, 1/(1-r.Float(0))), r.Float(0) < 1
		}
	}
	if known == nil {
		scale = c.Where(mode, scale, c.Like(g, 1))
	}
	g = c.Mul(g, scale)
	if finite {
		return one(c.Mul(g, c.Cast(c.Want(1), g.Type.Elem)))
	}
	return one(c.Where(c.Want(1), g, c.Like(g, 0)))
}
