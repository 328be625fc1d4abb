package autodiff

import (
	"fmt"

	"gradtool/graph"
	"gradtool/graph/op"
)

// quantRules: the straight-through estimator (Bengio, Léonard and Courville, 2013). The code that
// QuantizeLinear returns counts as the real number q = x/s + z that it was rounded from, limited to the type's range, and
// has a float cotangent although its type is an integer. With c that cotangent and g DequantizeLinear's:
//
//	DequantizeLinear  y = (q - z) s; q: g s, s: g (q - z)
//	QuantizeLinear    x: in range ? c/s : 0, s: in range ? -c (x/s)/s : 0
//
// A pair with one scale so gives x the cotangent g within the range and 0 outside, and s the gradient
// g (round(x/s) - x/s) within and g (limit - z) outside, which is that of learned step size quantization (Esser et al., 2020).
func quantRules() []Rule {
	return []Rule{
		{Name: "QuantizeLinear", Kind: HasVJP, VJP: quantizeVJP, Check: checkScale},
		{Name: "DequantizeLinear", Kind: HasVJP, VJP: dequantizeVJP, Check: checkScale},
		{Name: "DynamicQuantizeLinear", Kind: HasVJP, VJP: dynamicQuantizeVJP},
	}
}

// quantized reports whether v holds codes that stand for real numbers, as a quantizing operator returns
// them, possibly rearranged. Such values have cotangents, of a float type.
func quantized(v *graph.Value) bool {
	for v != nil && v.Def != nil && v.Def.Result(0) == v {
		n := v.Def
		switch {
		case n.Op == "QuantizeLinear" || n.Op == "DynamicQuantizeLinear":
			return true
		case !n.Is("Transpose") && !op.Of(n).Has(op.View):
			return false
		}
		v = n.Operand(0)
	}
	return false
}

// carries reports whether v has a cotangent.
func carries(v *graph.Value) bool { return carriesGradient(v.Type) || quantized(v) }

// checkScale refuses scales along an axis that cannot be found for want of the tensor's rank.
func checkScale(n *graph.Node) error {
	x, s := n.Operand(0), n.Operand(1)
	single := s.Type.Shape != nil && len(s.Type.Shape) == 0 && n.Int("block_size", 0) == 0
	if len(x.Type.Shape) == 0 && !single && (x.Type.Shape == nil || n.Int("block_size", 0) != 0) {
		return fmt.Errorf("the rank of %q is not known, so neither is the axis of its scale", x.Name)
	}
	return nil
}

// scaleAxis returns the axis along which the scales of a tensor of known rank lie.
func scaleAxis(n *graph.Node, rank int) int {
	axis := int(n.Int("axis", 1))
	if axis < 0 {
		axis += rank
	}
	return max(0, min(axis, rank-1))
}

// spreadScale returns scale s in a shape that broadcasts to x.
func (c *Ctx) spreadScale(s, x *graph.Value) *graph.Value {
	rank := len(x.Type.Shape)
	axis := scaleAxis(c.Node, rank)
	if block := c.Node.Int("block_size", 0); block > 0 { // repeat each element block times
		if n, ok := x.Type.Shape[axis].Int(); ok {
			index := make([]int64, n)
			for i := range index {
				index[i] = int64(i) / block
			}
			return c.Gather(s, c.Ints(index...), int64(axis))
		}
		n := c.Squeeze(c.DimOf(x, axis), 0)
		index := c.Div(c.Op("Range", []*graph.Value{c.IntScalar(0), n, c.IntScalar(1)}), c.IntScalar(block))
		return c.Gather(s, index, int64(axis))
	}
	trailing := rank - 1 - axis
	if shape := s.Type.Shape; shape != nil && len(shape) == 0 || trailing <= 0 {
		return s
	}
	dims := make([]int64, trailing+1)
	dims[0] = -1
	for i := range trailing {
		dims[i+1] = 1
	}
	return c.ReshapeTo(s, dims...)
}

// gatherScale sums d, of x's shape, over the elements that share an element of scale s: the transpose
// of spreadScale.
func (c *Ctx) gatherScale(d, s, x *graph.Value) *graph.Value {
	rank := len(x.Type.Shape)
	axis := scaleAxis(c.Node, rank)
	if block := c.Node.Int("block_size", 0); block > 0 {
		return c.sumBlocks(d, x, axis, block)
	}
	if shape := s.Type.Shape; shape != nil && len(shape) == 0 || rank <= 1 {
		return d
	}
	var axes []int64
	for i := range rank {
		if i != axis {
			axes = append(axes, int64(i))
		}
	}
	return c.ReduceSum(d, false, axes...)
}

// sumBlocks sums each block of consecutive indices of an axis; the last block may be shorter.
func (c *Ctx) sumBlocks(d, x *graph.Value, axis int, block int64) *graph.Value {
	rank := len(x.Type.Shape)
	n := c.DimOf(x, axis)
	blocks := c.Div(c.Add(n, c.Ints(block-1)), c.Ints(block))
	if size, ok := x.Type.Shape[axis].Int(); ok {
		blocks = c.Ints((size + block - 1) / block)
	}
	size, known := x.Type.Shape[axis].Int()
	if !known || size%block != 0 {
		missing := c.Sub(c.Mul(blocks, c.Ints(block)), n)
		d = c.Op("Pad", []*graph.Value{d, c.Concat(0, c.Ints(0), missing), nil, c.Ints(int64(axis))})
	}
	var shape []*graph.Value
	for i := range rank {
		if i == axis {
			shape = append(shape, blocks, c.Ints(block))
		} else {
			shape = append(shape, c.DimOf(x, i))
		}
	}
	return c.ReduceSum(c.Reshape(d, c.Concat(0, shape...)), false, int64(axis+1))
}

// dequantizeVJP: see quantRules.
func dequantizeVJP(c *Ctx) []*graph.Value {
	g, q, s, z := c.Ct(0), c.X(0), c.X(1), c.X(2)
	elem := g.Type.Elem
	out := make([]*graph.Value, 3)
	if c.Need(0) {
		out[0] = c.Mul(g, c.Cast(c.spreadScale(s, q), elem))
	}
	if c.Need(1) {
		steps := c.Cast(q, elem)
		if z != nil {
			steps = c.Sub(steps, c.spreadScale(c.Cast(z, elem), q))
		}
		out[1] = c.gatherScale(c.Mul(g, steps), s, q)
	}
	return out[:len(c.Node.In)]
}

// quantizeVJP: see quantRules. As in the forward pass it is the rounded quotient that is compared with
// the range.
func quantizeVJP(c *Ctx) []*graph.Value {
	ct, x, s, z, y := c.Ct(0), c.X(0), c.X(1), c.X(2), c.Y(0)
	elem := x.Type.Elem
	if s.Type.Elem.IsDifferentiable() {
		elem = s.Type.Elem
	}
	wide := c.Cast(c.spreadScale(s, x), elem)
	quotient := c.Div(c.Cast(x, elem), wide)
	inside := c.inRange(quotient, z, x, y.Type.Elem)
	zero := c.Scalar(elem, 0)
	// A cotangent that has just been multiplied by this scale need not be divided by it again.
	perStep, plain := factorOut(ct, wide)
	perStep = c.Where(inside, c.Cast(perStep, elem), zero)
	if !plain {
		perStep = c.Div(perStep, wide)
	}
	out := one(perStep)
	if c.Need(1) {
		out = append(out, c.gatherScale(c.Neg(c.Mul(perStep, quotient)), s, x))
	}
	return out
}

// inRange tells where the code for quotient x/s is not limited by the range of type t.
func (c *Ctx) inRange(quotient, zero, x *graph.Value, t graph.DataType) *graph.Value {
	elem := quotient.Type.Elem
	code := quotient
	if !t.IsFloat() {
		code = c.Unary("Round", quotient)
	}
	if zero != nil {
		code = c.Add(code, c.spreadScale(c.Cast(zero, elem), x))
	}
	if t.IsFloat() {
		return c.Binary("LessOrEqual", c.Unary("Abs", code), c.Scalar(elem, op.FloatMax(t)))
	}
	lo, hi := op.IntRange(t)
	return c.Binary("And", c.Binary("GreaterOrEqual", code, c.Scalar(elem, lo)), c.Binary("LessOrEqual", code, c.Scalar(elem, hi)))
}

// factorOut returns the other factor of g if g is a product with s, or with s spread likewise; else g.
func factorOut(g, s *graph.Value) (*graph.Value, bool) {
	if n := g.Def; n != nil && n.Is("Mul") && sameValue(n.Operand(1), s) {
		return n.Operand(0), true
	}
	return g, false
}

// sameValue reports whether two values are the same or the same rearrangement of one value.
func sameValue(a, b *graph.Value) bool {
	if a == b {
		return true
	}
	m, n := a.Def, b.Def
	if m == nil || n == nil || m.Op != n.Op || !m.Is("Reshape") && !m.Is("Gather") && !m.Is("Cast") || len(m.In) != len(n.In) {
		return false
	}
	for i := range m.In {
		if !sameValue(m.In[i], n.In[i]) {
			return false
		}
	}
	return m.Int("axis", 0) == n.Int("axis", 0) && m.Int("to", 0) == n.Int("to", 0)
}

// dynamicQuantizeVJP: the scale is s = (max(0, max x) - min(0, min x))/255, so its cotangent over 255 goes to
// the largest element if that is positive and, negated, to the smallest if negative; ties share it. The codes' cotangent c gives x
// c/s, as nothing is out of range.
func dynamicQuantizeVJP(c *Ctx) []*graph.Value {
	x, zero := c.X(0), c.Like(c.X(0), 0)
	var parts []*graph.Value
	if ct := c.Ct(0); ct != nil {
		scale := c.Want(1)
		if g, plain := factorOut(ct, scale); plain {
			parts = append(parts, c.Cast(g, x.Type.Elem))
		} else {
			parts = append(parts, c.Div(c.Cast(ct, x.Type.Elem), scale))
		}
	}
	if ct := c.Ct(1); ct != nil {
		per := c.MulScalar(ct, 1.0/255)
		for _, end := range []struct {
			reduce, beyond string
			sign           float64
		}{{"ReduceMax", "Greater", 1}, {"ReduceMin", "Less", -1}} {
			extreme := c.Op(end.reduce, []*graph.Value{x}, graph.IntAttr("keepdims", 0))
			hit := c.Cast(c.Binary("And", c.Binary("Equal", x, extreme), c.Binary(end.beyond, extreme, zero)), x.Type.Elem)
			count := c.Op("Max", []*graph.Value{c.ReduceAll(hit), c.Like(x, 1)})
			parts = append(parts, c.Mul(c.MulScalar(c.Div(per, count), end.sign), hit))
		}
	}
	if len(parts) == 1 {
		return one(parts[0])
	}
	return one(c.Op("Sum", parts))
}
