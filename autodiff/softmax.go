package autodiff

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

func softmaxRules() []Rule {
	return append([]Rule{
		// y = softmax x; dx = y (g - sum(g y)). A row of minus infinities alone is NaN; where a Where behind
		// replaces such rows, they get nothing.
		unary("Softmax", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			y = c.definedRows(y)
			return c.Mul(y, c.Sub(g, c.ReduceSum(c.Mul(g, y), true, c.Node.Int("axis", -1))))
		}),
		// y = x - log(sum(exp x)); dx = g - exp(y) sum g.
		unary("LogSoftmax", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			return c.Sub(g, c.Mul(c.definedRows(c.Unary("Exp", y)), c.ReduceSum(g, true, c.Node.Int("axis", -1))))
		}),
	}, zeroGrad("Hardmax")...)
}

// definedRows returns the probabilities p with 0 for NaN if the node's result is replaced somewhere.
func (c *Ctx) definedRows(p *graph.Value) *graph.Value {
	if !replacedBehind(c.Y(0), 4) {
		return p
	}
	return c.Where(c.Unary("IsNaN", p), c.Like(p, 0), p)
}

// replacedBehind reports whether a Where chooses between v and something else, directly or behind at most
// hops operators that keep the elements.
func replacedBehind(v *graph.Value, hops int) bool {
	for _, u := range v.Uses() {
		n := u.Node
		switch {
		case n == nil:
		case n.Is("Where") && u.Index > 0:
			return true
		case hops > 0 && u.Index == 0 && (n.Is("Cast") || n.Is("CastLike") || n.Is("Identity") || op.Of(n).Has(op.View) || n.Is("Transpose")):
			if replacedBehind(n.Out[0], hops-1) {
				return true
			}
		}
	}
	return false
}
