package autodiff

import (
	"fmt"

	"gradtool/graph"
)

func cumulativeRules() []Rule {
	return []Rule{
		// y_k = sum of x_j, j <= k; dx_j = sum of g_k, k >= j: the same in the other direction.
		unary("CumSum", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			return c.Op("CumSum", []*graph.Value{g, c.X(1)}, graph.IntAttr("exclusive", c.Node.Int("exclusive", 0)),
				graph.IntAttr("reverse", 1-c.Node.Int("reverse", 0)))
		}),
		{Name: "CumProd", Kind: HasVJP, Check: checkCumProd, VJP: cumProdVJP},
	}
}

func checkCumProd(n *graph.Node) error {
	if v := n.Operand(1); v != nil && v.Init == nil && (v.Def == nil || v.Def.Op != "Constant") {
		return fmt.Errorf("the axis must be constant for the derivative of a product")
	}
	return nil
}

// cumProdVJP: y_k = prod of x_j, j <= k; dx_i = sum over k >= i of g_k y_k^(i), where y^(i) is y with x_i
// replaced by 1. Nothing is divided, so zeros are no exception; the work is quadratic in the axis.
func cumProdVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	at := c.Info.Const(c.X(1))
	if at == nil || len(at.I64) != 1 {
		c.Err = fmt.Errorf("the axis is not constant")
		return nil
	}
	axis := at.I64[0]
	if r := int64(len(x.Type.Shape)); x.Type.Shape != nil && axis < 0 {
		axis += r
	}
	exclusive, reverse := c.Node.Int("exclusive", 0), c.Node.Int("reverse", 0)
	compare := map[[2]int64]string{{0, 0}: "GreaterOrEqual", {1, 0}: "Greater", {0, 1}: "LessOrEqual", {1, 1}: "Less"}[[2]int64{exclusive, reverse}]
	rows := c.Where(squareMask(c, x, axis, "Equal"), c.Like(x, 1), c.Unsqueeze(x, rowAxis(axis)))
	y := c.Op("CumProd", []*graph.Value{rows, c.IntScalar(colAxis(axis))}, graph.IntAttr("exclusive", exclusive), graph.IntAttr("reverse", reverse))
	terms := c.Where(squareMask(c, x, axis, compare), c.Mul(y, c.Unsqueeze(g, rowAxis(axis))), c.Like(x, 0))
	return one(c.ReduceSum(terms, false, colAxis(axis)))
}
