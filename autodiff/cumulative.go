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
// replaced by 1. Nothing is divided, so zeros are no exception, at any order.
func cumProdVJP(c *Ctx) []*graph.Value {
	x := c.X(0)
	at := c.Info.Const(c.X(1))
	if at == nil || len(at.I64) != 1 {
		c.Err = fmt.Errorf("the axis is not constant")
		return nil
	}
	axis := at.I64[0]
	if s := x.Type.Shape; s != nil {
		if axis < 0 {
			axis += int64(len(s))
		}
		if n, ok := s[axis].Int(); ok {
			return one(cumProdByDoubling(c, axis, n))
		}
	}
	return one(cumProdByMask(c, axis))
}

// cumProdByDoubling: dx_i = (prod of x_j, j < i) v_i with v_i = g_i + x_{i+1} v_{i+1}, or g_{i+1} + x_{i+1} v_{i+1}
// where y_k leaves x_k out. Writing v_i = b_i + a_i v_{i+s}, a step from s to 2s is b_i + a_i b_{i+s} and a_i a_{i+s}.
func cumProdByDoubling(c *Ctx, axis, n int64) *graph.Value {
	x, g := c.X(0), c.Ct(0)
	reverse := c.Node.Int("reverse", 0)
	ahead := func(v *graph.Value, s int64) *graph.Value { // v_{i+s}, 0 past the end
		zeros := c.Full(c.Concat(0, dimsWith(c, x, axis, s)...), x.Type.Elem, 0)
		if reverse != 0 {
			return c.Concat(axis, zeros, c.cut(v, axis, 0, n-s))
		}
		return c.Concat(axis, c.cut(v, axis, s, n), zeros)
	}
	before := c.Op("CumProd", []*graph.Value{x, c.IntScalar(axis)}, graph.IntAttr("exclusive", 1), graph.IntAttr("reverse", reverse))
	if n == 0 {
		return c.Mul(g, before)
	}
	a, b := ahead(x, 1), g
	if c.Node.Int("exclusive", 0) != 0 {
		b = ahead(g, 1)
	}
	for s := int64(1); s < n; s *= 2 {
		b = c.Add(b, c.Mul(a, ahead(b, s)))
		if 2*s < n {
			a = c.Mul(a, ahead(a, s))
		}
	}
	return c.Mul(before, b)
}

// cumProdByMask lays x out as rows j for every element i, with a one at j = i: quadratic work, for axes whose size only
// run time tells.
func cumProdByMask(c *Ctx, axis int64) *graph.Value {
	x, g := c.X(0), c.Ct(0)
	exclusive, reverse := c.Node.Int("exclusive", 0), c.Node.Int("reverse", 0)
	compare := map[[2]int64]string{{0, 0}: "GreaterOrEqual", {1, 0}: "Greater", {0, 1}: "LessOrEqual", {1, 1}: "Less"}[[2]int64{exclusive, reverse}]
	rows := c.Where(squareMask(c, x, axis, "Equal"), c.Like(x, 1), c.Unsqueeze(x, rowAxis(axis)))
	y := c.Op("CumProd", []*graph.Value{rows, c.IntScalar(colAxis(axis))}, graph.IntAttr("exclusive", exclusive), graph.IntAttr("reverse", reverse))
	terms := c.Where(squareMask(c, x, axis, compare), c.Mul(y, c.Unsqueeze(g, rowAxis(axis))), c.Like(x, 0))
	return c.ReduceSum(terms, false, colAxis(axis))
}
