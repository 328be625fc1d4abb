package autodiff

import (
	"gradtool/graph"
)

func signalRules() []Rule {
	rules := []Rule{
		{Name: "DFT", Kind: HasVJP, VJP: dftVJP},
		{Name: "STFT", Kind: Decomposed},
	}
	rules = append(rules, zeroGrad("MelWeightMatrix")...)
	return append(rules, noGrad("a constant but for its size", "HannWindow", "HammingWindow", "BlackmanWindow")...)
}

// dftVJP: a transform is linear; as a map of real and imaginary parts its transpose is the conjugate matrix. With F the
// transform of length N and F⁻¹ its inverse, which divides by N:
//
//	y = F x        dx = N·F⁻¹ g
//	y = F⁻¹ x      dx = (1/N)·F g
//
// each then cut or padded to x's length, and real parts only for a real x. The one-sided forward transform drops
// frequencies, whose cotangents are zero: F⁻¹ pads. The one-sided inverse takes each frequency twice, as itself and
// mirrored, but for the first and, if N is even, the one in the middle: dx is (1/N)·F g at those, else (2/N)·F g.
func dftVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	inverse, onesided := c.Node.Int("inverse", 0) != 0, c.Node.Int("onesided", 0) != 0
	axis := c.IntScalar(-2)
	if a := c.X(2); a != nil {
		axis = c.Squeeze(c.ReshapeTo(a, 1), 0)
	}
	vector := c.Unsqueeze(axis, 0)
	have := c.sizeAlong(x, axis) // x's length, a vector of one element
	n := have
	switch l := c.X(1); {
	case l != nil:
		n = c.ReshapeTo(c.int64s(l), 1)
	case inverse && onesided:
		n = c.times(c.minus(n, c.Ints(1)), c.Ints(2))
	}
	factor := c.Cast(n, g.Type.Elem)
	var dx, length *graph.Value
	switch {
	case inverse && onesided:
		dx = c.Op("DFT", []*graph.Value{g, c.Squeeze(n, 0), axis}, graph.IntAttr("onesided", 1))
		length = c.plus(c.Div(n, c.Ints(2)), c.Ints(1))
		dx = c.Mul(dx, c.mirrored(x, n, length, axis, g.Type.Elem))
		dx = c.Div(dx, factor)
	case inverse:
		dx = c.Op("DFT", []*graph.Value{g, nil, axis})
		dx, length = c.Div(dx, factor), n
	default:
		dx = c.Op("DFT", []*graph.Value{g, c.Squeeze(n, 0), axis}, graph.IntAttr("inverse", 1))
		dx, length = c.Mul(dx, factor), n
	}
	if parts := partsOf(x); parts != 2 {
		dx = c.Slice(dx, c.Ints(0), c.DimOf(x, -1), c.Ints(-1), nil)
	}
	if c.sameNumber(have, length) {
		return one(dx)
	}
	dx = c.Slice(dx, c.Ints(0), have, vector, nil)
	missing := c.most(c.minus(have, length), c.Ints(0))
	return one(c.Op("Pad", []*graph.Value{dx, c.Concat(0, c.Ints(0), missing), nil, vector}))
}

// partsOf returns the size of x's last axis, 0 if it is not known.
func partsOf(x *graph.Value) int64 {
	if s := x.Type.Shape; len(s) > 0 {
		if n, ok := s[len(s)-1].Int(); ok {
			return n
		}
	}
	return 0
}

// sizeAlong returns the size of x along an axis, a scalar that may be known at run time only.
func (c *Ctx) sizeAlong(x, axis *graph.Value) *graph.Value {
	if a := c.Info.Const(axis); a != nil && a.Len() == 1 {
		return c.DimOf(x, int(a.I64[0]))
	}
	return c.Gather(c.Shape(x), c.Unsqueeze(axis, 0), 0)
}

// sameNumber reports whether two int64 vectors of one element are equal for sure.
func (c *Ctx) sameNumber(x, y *graph.Value) bool {
	a, b := c.Info.Dims(x), c.Info.Dims(y)
	return x == y || len(a) == 1 && len(b) == 1 && a[0].Equal(b[0])
}

// mirrored returns how often a one-sided inverse transform of length n takes each of its frequencies, along the axis.
func (c *Ctx) mirrored(x, n, length, axis *graph.Value, elem graph.DataType) *graph.Value {
	k := c.upTo(length)
	self := c.Binary("Equal", c.Op("Mod", []*graph.Value{c.Mul(k, c.Ints(2)), n}), c.IntScalar(0))
	w := c.Where(self, c.Scalar(elem, 1), c.Scalar(elem, 2))
	rank := c.Op("Shape", []*graph.Value{c.Shape(x)})
	if s := x.Type.Shape; s != nil {
		rank = c.Ints(int64(len(s)))
	}
	at := c.fromFront(c.Unsqueeze(axis, 0), rank)
	behind := c.minus(c.minus(rank, at), c.Ints(1))
	return c.Reshape(w, c.Concat(0, c.Ints(-1), c.Full(behind, graph.Int64, 1)))
}
