package autodiff

import (
	"gradtool/graph"
)

// arithmeticRules are the derivatives of element-wise operators of two or more numbers. With g the
// cotangent of the result:
//
//	Add         g, g                         Sub         g, -g
//	Mul         g b, g a                     Div         g/b, -(g/b) y
//	Sum         g each                       Mean        g/n each
//	Max, Min    g to the extreme operand; ties share it evenly
//	Mod (fmod)  g, -g trunc(a/b)             Pow         see powVJP
func arithmeticRules() []Rule {
	return append([]Rule{
		{Name: "Add", Kind: HasVJP, VJP: func(c *Ctx) []*graph.Value { return []*graph.Value{c.Ct(0), c.Ct(0)} }},
		{Name: "Sub", Kind: HasVJP, VJP: func(c *Ctx) []*graph.Value {
			out := []*graph.Value{c.Ct(0), nil}
			if c.Need(1) {
				out[1] = c.Neg(c.Ct(0))
			}
			return out
		}},
		{Name: "Mul", Kind: HasVJP, VJP: mulVJP},
		{Name: "Div", Kind: HasVJP, VJP: divVJP},
		{Name: "Mod", Kind: HasVJP, VJP: modVJP},
		{Name: "Pow", Kind: HasVJP, VJP: powVJP},
		{Name: "Sum", Kind: HasVJP, VJP: func(c *Ctx) []*graph.Value { return c.toAll(c.Ct(0)) }},
		{Name: "Mean", Kind: HasVJP, VJP: func(c *Ctx) []*graph.Value {
			return c.toAll(c.MulScalar(c.Ct(0), 1/float64(len(c.Node.In))))
		}},
		{Name: "Max", Kind: HasVJP, VJP: func(c *Ctx) []*graph.Value { return extremumVJP(c, "Greater", "Less") }},
		{Name: "Min", Kind: HasVJP, VJP: func(c *Ctx) []*graph.Value { return extremumVJP(c, "Less", "Greater") }},
	}, noGrad("works on integers", "BitShift")...)
}

// toAll is the cotangent list that gives every operand g.
func (c *Ctx) toAll(g *graph.Value) []*graph.Value {
	out := make([]*graph.Value, len(c.Node.In))
	for i := range out {
		out[i] = g
	}
	return out
}

// mulVJP: y = a b; a: g b, b: g a.
func mulVJP(c *Ctx) []*graph.Value {
	out := make([]*graph.Value, 2)
	for i := range out {
		if c.Need(i) {
			out[i] = c.Mul(c.Ct(0), c.X(1-i))
		}
	}
	return out
}

// divVJP: y = a/b; a: q = g/b, b: -q y. No b^2 is formed, which could overflow or vanish.
func divVJP(c *Ctx) []*graph.Value {
	q := c.Div(c.Ct(0), c.X(1))
	if !c.Need(1) {
		return one(q)
	}
	return []*graph.Value{q, c.Neg(c.Mul(q, c.Y(0)))}
}

// modVJP: y = a - b trunc(a/b); a: g, b: -g trunc(a/b). The quotient is (a-y)/b, exact but for
// rounding, which Round takes away.
func modVJP(c *Ctx) []*graph.Value {
	g := c.Ct(0)
	if !c.Need(1) {
		return one(g)
	}
	quotient := c.Unary("Round", c.Div(c.Sub(c.X(0), c.Y(0)), c.X(1)))
	return []*graph.Value{g, c.Neg(c.Mul(g, quotient))}
}

// extremumVJP is the rule of Max and Min over any number of operands: an operand that is strictly
// better than the others gets g, k operands that tie get g/k each, the others 0.
func extremumVJP(c *Ctx, better, worse string) []*graph.Value {
	g, n := c.Ct(0), len(c.Node.In)
	switch n {
	case 1:
		return one(g)
	case 2:
		a, b, zero := c.X(0), c.X(1), c.Like(g, 0)
		share := 0.5
		if c.wholeTies() {
			share = 1
		}
		tie := c.Where(c.Binary("Equal", a, b), c.MulScalar(g, share), zero)
		out := make([]*graph.Value, 2)
		for i, cmp := range []string{better, worse} {
			if c.Need(i) {
				out[i] = c.Where(c.Binary(cmp, a, b), g, tie)
			}
		}
		return out
	}
	chosen := make([]*graph.Value, n)
	counts := make([]*graph.Value, n)
	for i := range n {
		chosen[i] = c.Binary("Equal", c.X(i), c.Y(0))
		counts[i] = c.Cast(chosen[i], g.Type.Elem)
	}
	share := g
	if !c.wholeTies() {
		share = c.Div(g, c.Op("Sum", counts))
	}
	out := make([]*graph.Value, n)
	for i := range n {
		if c.Need(i) {
			out[i] = c.Where(chosen[i], share, c.Like(g, 0))
		}
	}
	return out
}

// powVJP: y = a^b; a: g b a^(b-1), b: g y ln a.
//
// Where b = 0 the first is 0 for every a, 0 included: the power is then taken with exponent 0. Where a = 0
// the second is 0: logarithm and result are masked both, for y may be infinite there. Negative a give NaN
// for b, as the derivative does not exist. Exponents of other types are cast to a's.
func powVJP(c *Ctx) []*graph.Value {
	g, a, b, y := c.Ct(0), c.X(0), c.X(1), c.Y(0)
	out := make([]*graph.Value, 2)
	if c.Need(0) {
		out[0] = c.Mul(g, powSlope(c, a, b, y))
	}
	if c.Need(1) {
		atZero := c.Binary("Equal", a, c.Like(a, 0))
		log := c.Unary("Log", c.Where(atZero, c.Like(a, 1), a))
		out[1] = c.Mul(g, c.Mul(c.Where(atZero, c.Like(a, 0), y), log))
	}
	return out
}

// powSlope returns b a^(b-1), simpler for constant exponents.
func powSlope(c *Ctx, a, b, y *graph.Value) *graph.Value {
	elem := a.Type.Elem
	if k := c.Info.Const(b); k != nil && k.Len() == 1 && !c.Need(1) {
		switch p := k.Float(0); p {
		case 0:
			return c.FullLike(a, 0)
		case 1:
			return c.FullLike(a, 1)
		case 2:
			return c.MulScalar(a, 2)
		case -1:
			return c.Neg(c.Mul(y, y))
		case 0.5:
			return c.Div(c.Like(a, 0.5), y)
		default:
			return c.MulScalar(c.Op("Pow", []*graph.Value{a, c.Scalar(elem, p-1)}), p)
		}
	}
	b = c.Cast(b, elem)
	isZero := c.Binary("Equal", b, c.Scalar(elem, 0))
	less := c.AddScalar(c.Where(isZero, c.Scalar(elem, 1), b), -1)
	return c.Mul(b, c.Op("Pow", []*graph.Value{a, less}))
}
