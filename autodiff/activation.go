package autodiff

import (
	"math"

	"gradtool/graph"
	"gradtool/graph/op"
)

// activationRules are the derivatives of activation functions. They are direct rules, not those of the
// standard's function bodies, which overflow (Softplus, Mish, Elu, Selu, Celu) or share ties (Relu,
// HardSigmoid). With g the cotangent of y:
//
//	Relu             y > 0 ? g : 0
//	LeakyRelu        x > 0 ? g : alpha g
//	ThresholdedRelu  x > alpha ? g : 0
//	Shrink           |x| > lambd ? g : 0
//	Elu              x > 0 ? g : g (y + alpha)
//	Selu             x > 0 ? gamma g : g (y + gamma alpha)
//	Celu             x > 0 ? g : g (y/alpha + 1)
//	Sigmoid          g y (1-y)
//	HardSigmoid      0 < y < 1 ? alpha g : 0
//	HardSwish        g times x <= -3 ? 0 : x >= 3 ? 1 : x/3 + 1/2
//	Softplus         g sigmoid(x)
//	Softsign         g / (1+|x|)^2
//	Swish            g (s + alpha y (1-s)), s = sigmoid(alpha x)
//	Mish             g (t + x s (1-t)(1+t)), t = tanh(softplus(x)), s = sigmoid(x)
func activationRules() []Rule {
	return []Rule{
		unary("Relu", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			return c.mask(c.positive(y), g)
		}),
		unary("LeakyRelu", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			alpha := c.Node.Float("alpha", 0.01)
			if alpha > 0 { // then y has the sign of x, and x need not be kept
				x = y
			}
			return c.Where(c.positive(x), g, c.MulScalar(g, alpha))
		}),
		unary("ThresholdedRelu", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			return c.Where(c.Binary("Greater", x, c.Like(x, c.Node.Float("alpha", 1))), g, c.Like(g, 0))
		}),
		unary("Shrink", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			return c.Where(c.Binary("Greater", c.Unary("Abs", x), c.Like(x, c.Node.Float("lambd", 0.5))), g, c.Like(g, 0))
		}),
		unary("Elu", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			alpha := c.Node.Float("alpha", 1)
			if alpha > 0 {
				x = y
			}
			return c.Where(c.positive(x), g, c.Mul(g, c.AddScalar(y, alpha)))
		}),
		unary("Selu", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			alpha, gamma := c.Node.Float("alpha", op.SeluAlpha), c.Node.Float("gamma", op.SeluGamma)
			if gamma > 0 && alpha > 0 {
				x = y
			}
			return c.Mul(g, c.Where(c.positive(x), c.Like(y, gamma), c.AddScalar(y, gamma*alpha)))
		}),
		unary("Celu", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			alpha := c.Node.Float("alpha", 1)
			return c.Where(c.positive(y), g, c.Mul(g, c.AddScalar(c.MulScalar(y, 1/alpha), 1)))
		}),
		unary("Gelu", geluVJP),
		elementwise("Sigmoid", func(c *Ctx, x, y *graph.Value) *graph.Value { return c.Mul(y, c.Sub(c.Like(y, 1), y)) }),
		unary("HardSigmoid", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			inside := c.Binary("And", c.positive(y), c.Binary("Less", y, c.Like(y, 1)))
			return c.mask(inside, c.MulScalar(g, c.Node.Float("alpha", 0.2)))
		}),
		elementwise("HardSwish", func(c *Ctx, x, y *graph.Value) *graph.Value {
			// y = x h with h = hardsigmoid(x): the slope is h, and between the corners also x/6. Clip keeps x finite.
			h := c.Unary("HardSigmoid", x, graph.FloatAttr("alpha", 1.0/6))
			between := c.Cast(c.Binary("Less", c.Unary("Abs", x), c.Like(x, 3)), x.Type.Elem)
			part := c.Op("Clip", []*graph.Value{x, c.Like(x, -3), c.Like(x, 3)})
			return c.Add(h, c.Mul(c.MulScalar(part, 1.0/6), between))
		}),
		elementwise("Softplus", func(c *Ctx, x, y *graph.Value) *graph.Value { return c.Unary("Sigmoid", x) }),
		unary("Softsign", func(c *Ctx, x, y, g *graph.Value) *graph.Value {
			d := c.AddScalar(c.Unary("Abs", x), 1)
			return c.Div(c.Div(g, d), d) // d^2 could overflow
		}),
		elementwise("Swish", func(c *Ctx, x, y *graph.Value) *graph.Value {
			slope, _ := swishSlope(c, x, y, c.Node.Float("alpha", 1))
			return slope
		}),
		elementwise("Mish", func(c *Ctx, x, y *graph.Value) *graph.Value {
			t := c.Unary("Tanh", c.Unary("Softplus", x))
			return c.Add(t, c.Mul(c.Mul(x, c.Unary("Sigmoid", x)), oneMinusSquare(c, t)))
		}),
		{Name: "PRelu", Kind: HasVJP, VJP: preluVJP},
		{Name: "SwiGLU", Kind: HasVJP, VJP: swigluVJP},
		{Name: "Clip", Kind: HasVJP, VJP: clipVJP},
	}
}

// positive returns x > 0.
func (c *Ctx) positive(x *graph.Value) *graph.Value { return c.Binary("Greater", x, c.Like(x, 0)) }

// geluVJP: exact, g (P + x p) with P and p the normal distribution function and density at x;
// approximate, g ((1+t)/2 + x/2 (1-t)(1+t) u'), t = tanh(u), u = sqrt(2/pi) (x + 0.044715 x^3).
func geluVJP(c *Ctx, x, y, g *graph.Value) *graph.Value {
	if c.Node.Str("approximate", "none") != "tanh" {
		dist := c.MulScalar(c.AddScalar(c.Unary("Erf", c.MulScalar(x, 1/math.Sqrt2)), 1), 0.5)
		density := c.MulScalar(c.Unary("Exp", c.MulScalar(c.Mul(x, x), -0.5)), 1/math.Sqrt(2*math.Pi))
		return c.Mul(g, c.Add(dist, c.Mul(x, density)))
	}
	if x.Type.Elem == graph.Float16 {
		// Beyond 10 tanh is 1 in any precision, and x^2 would overflow from 256: infinity times 0.
		x = c.Op("Clip", []*graph.Value{x, c.Like(x, -10), c.Like(x, 10)})
	}
	const k, cubic = 0.7978845608028654, 0.044715 // sqrt(2/pi)
	xx := c.Mul(x, x)
	u := c.Mul(x, c.AddScalar(c.MulScalar(xx, k*cubic), k))
	du := c.AddScalar(c.MulScalar(xx, 3*k*cubic), k)
	t := c.Unary("Tanh", u)
	tail := c.Mul(c.Mul(c.MulScalar(x, 0.5), du), oneMinusSquare(c, t))
	return c.Mul(g, c.Add(c.MulScalar(c.AddScalar(t, 1), 0.5), tail))
}

// swishSlope returns s + alpha y (1-s), the derivative of y = x s, and s = sigmoid(alpha x).
func swishSlope(c *Ctx, x, y *graph.Value, alpha float64) (slope, s *graph.Value) {
	s = c.Unary("Sigmoid", c.MulScalar(x, alpha))
	return c.Add(s, c.Mul(c.MulScalar(y, alpha), c.Sub(c.Like(s, 1), s))), s
}

// swigluVJP: y = a s b with s = sigmoid(alpha a); a: g b times the slope of a s, b: g a s.
func swigluVJP(c *Ctx) []*graph.Value {
	g, a, b := c.Ct(0), c.X(0), c.X(1)
	alpha := c.Node.Float("alpha", 1)
	s := c.Unary("Sigmoid", c.MulScalar(a, alpha))
	swish := c.Mul(a, s)
	out := make([]*graph.Value, 2)
	if c.Need(0) {
		slope := c.Add(s, c.Mul(c.MulScalar(swish, alpha), c.Sub(c.Like(s, 1), s)))
		out[0] = c.Mul(c.Mul(g, b), slope)
	}
	if c.Need(1) {
		out[1] = c.Mul(g, swish)
	}
	return out
}

// preluVJP: x: x > 0 ? g : slope g; slope: x > 0 ? 0 : x g.
func preluVJP(c *Ctx) []*graph.Value {
	g, x, slope := c.Ct(0), c.X(0), c.X(1)
	above := c.positive(x)
	out := make([]*graph.Value, 2)
	if c.Need(0) {
		out[0] = c.Where(above, g, c.Mul(g, slope))
	}
	if c.Need(1) {
		out[1] = c.Where(above, c.Like(g, 0), c.Mul(g, x))
	}
	return out
}

// inOrder reports whether a <= b is known.
func inOrder(c *Ctx, a, b *graph.Value) bool {
	x, y := c.Info.Const(a), c.Info.Const(b)
	return x != nil && y != nil && x.Len() == 1 && y.Len() == 1 && x.Float(0) <= y.Float(0)
}

// clipVJP: y = min(hi, max(x, lo)).
//
// x gets g where lo <= x <= hi, bounds included, which is where y = x unless lo > hi. lo gets g where x < lo <= hi; hi
// gets g where x > hi or lo > hi.
func clipVJP(c *Ctx) []*graph.Value {
	g, x, lo, hi := c.Ct(0), c.X(0), c.X(1), c.X(2)
	if lo == nil && hi == nil {
		return one(g)
	}
	zero := c.Like(g, 0)
	out := make([]*graph.Value, 3)
	if c.Need(0) {
		inside := c.Binary("Equal", x, c.Y(0))
		if lo != nil && hi != nil && !inOrder(c, lo, hi) {
			inside = c.Binary("And", inside, c.Binary("LessOrEqual", lo, hi))
		}
		out[0] = c.mask(inside, g)
	}
	if c.Need(1) {
		binds := c.Binary("Less", x, lo)
		if hi != nil {
			binds = c.Binary("And", binds, c.Binary("LessOrEqual", lo, hi))
		}
		out[1] = c.Where(binds, g, zero)
	}
	if c.Need(2) {
		binds := c.Binary("Greater", x, hi)
		if lo != nil {
			binds = c.Binary("Or", binds, c.Binary("Greater", lo, hi))
		}
		out[2] = c.Where(binds, g, zero)
	}
	return out[:len(c.Node.In)]
}
