package autodiff

import (
	"math"

	"gradtool/graph"
)

// unaryRules are the derivatives of the functions of one operand that are no activations. With g the
// cotangent of y:
//
//	Abs         g sign(x)                    Neg         -g
//	Exp         g y                          Log         g / x
//	Sqrt        g / (2 y), 0 where y = 0     Reciprocal  -g y^2
//	Sin         g cos x                      Cos         -g sin x
//	Tan         g (1 + y^2)                  Atan        g / (1 + x^2)
//	Asin        g / sqrt((1-x)(1+x))         Acos        -g / sqrt((1-x)(1+x))
//	Sinh        g cosh x                     Cosh        g sinh x
//	Tanh        g (1-y)(1+y)                 Atanh       g / ((1-x)(1+x))
//	Asinh       g / cosh y                   Acosh       g / sinh y
//	Erf         g exp(-x^2) 2/sqrt(pi)
//
// The products (1-x)(1+x) lose no digits near 1, where 1 - x^2 does. Asinh and Acosh divide by functions of
// y because sqrt(x^2 + 1) overflows for float16 from x = 256 and sqrt(x^2 - 1) cancels near 1.
func unaryRules() []Rule {
	rules := []Rule{
		elementwise("Abs", func(c *Ctx, x, y *graph.Value) *graph.Value { return c.Unary("Sign", x) }),
		unary("Neg", func(c *Ctx, x, y, g *graph.Value) *graph.Value { return c.Neg(g) }),
		elementwise("Exp", func(c *Ctx, x, y *graph.Value) *graph.Value { return y }),
		unary("Log", func(c *Ctx, x, y, g *graph.Value) *graph.Value { return c.Div(g, x) }),
		unary("Sqrt", sqrtVJP),
		unary("Reciprocal", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			return c.Neg(c.Mul(c.Mul(g, y), y)) // y^2 itself could overflow where g y does not
		}),
		elementwise("Sin", func(c *Ctx, x, y *graph.Value) *graph.Value { return c.Unary("Cos", x) }),
		elementwise("Cos", func(c *Ctx, x, y *graph.Value) *graph.Value { return c.Neg(c.Unary("Sin", x)) }),
		elementwise("Tan", func(c *Ctx, x, y *graph.Value) *graph.Value { return c.AddScalar(c.Mul(y, y), 1) }),
		unary("Asin", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			return c.Div(g, c.Unary("Sqrt", oneMinusSquare(c, x)))
		}),
		unary("Acos", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			return c.Neg(c.Div(g, c.Unary("Sqrt", oneMinusSquare(c, x))))
		}),
		unary("Atan", func(c *Ctx, x, y, g *graph.Value) *graph.Value { return c.Div(g, c.AddScalar(c.Mul(x, x), 1)) }),
		elementwise("Sinh", func(c *Ctx, x, y *graph.Value) *graph.Value { return c.Unary("Cosh", x) }),
		elementwise("Cosh", func(c *Ctx, x, y *graph.Value) *graph.Value { return c.Unary("Sinh", x) }),
		elementwise("Tanh", func(c *Ctx, x, y *graph.Value) *graph.Value { return oneMinusSquare(c, y) }),
		unary("Asinh", func(c *Ctx, x, y, g *graph.Value) *graph.Value { return c.Div(g, c.Unary("Cosh", y)) }),
		unary("Acosh", func(c *Ctx, x, y, g *graph.Value) *graph.Value { return c.Div(g, c.Unary("Sinh", y)) }),
		unary("Atanh", func(c *Ctx, x, y, g *graph.Value) *graph.Value { return c.Div(g, oneMinusSquare(c, x)) }),
		elementwise("Erf", func(c *Ctx, x, y *graph.Value) *graph.Value {
			return c.MulScalar(c.Unary("Exp", c.Neg(c.Mul(x, x))), 2/math.Sqrt(math.Pi))
		}),
	}
	return append(rules, zeroGrad("Ceil", "Floor", "Round", "Sign")...)
}

// sqrtVJP is g / (2 y). At y = 0 the derivative is infinite; dividing by infinity instead makes the
// contribution 0, so that the norm sqrt(sum x^2) has gradient 0 at the zero vector and a masked branch sends no
// NaN. The replacement is on the divisor, so derivatives of any order stay finite there.
func sqrtVJP(c *Ctx, x, y, g *graph.Value) *graph.Value {
	if c.rev.policy != nil && c.rev.policy.Singular == SingularFormula {
		return c.Div(c.MulScalar(g, 0.5), y)
	}
	safe := c.Where(c.Binary("Equal", y, c.Like(y, 0)), c.Like(y, math.Inf(1)), y)
	return c.Div(c.MulScalar(g, 0.5), safe)
}

// oneMinusSquare returns 1 - v^2 as (1-v)(1+v).
func oneMinusSquare(c *Ctx, v *graph.Value) *graph.Value {
	one := c.Like(v, 1)
	return c.Mul(c.Sub(one, v), c.Add(one, v))
}
