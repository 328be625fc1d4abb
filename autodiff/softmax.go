package autodiff

import "gradtool/graph"

func softmaxRules() []Rule {
	return append([]Rule{
		// y = softmax x; dx = y (g - sum(g y)).
		unary("Softmax", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			return c.Mul(y, c.Sub(g, c.ReduceSum(c.Mul(g, y), true, c.Node.Int("axis", -1))))
		}),
		// y = x - log(sum(exp x)); dx = g - exp(y) sum g.
		unary("LogSoftmax", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			return c.Sub(g, c.Mul(c.Unary("Exp", y), c.ReduceSum(g, true, c.Node.Int("axis", -1))))
		}),
	}, zeroGrad("Hardmax")...)
}
