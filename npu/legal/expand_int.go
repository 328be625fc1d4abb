package legal

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// intExpansions holds the products of 8-bit codes. The array multiplies floats, which hold sums of 256 products of codes exactly; longer sums are added up
// in integers.
func intExpansions() map[string]expansion {
	return map[string]expansion{"MatMulInteger": expandMatMulInteger, "ConvInteger": expandConvInteger}
}

// exactTerms is the number of products of differences of 8-bit codes whose sum a float holds exactly: 256 * 255 * 255 < 1<<24.
const exactTerms = 256

// codes returns x less its zero point as float. The zero point, which may be nil, is broadcast in the given shape.
func codes(b *op.Builder, x, zero *graph.Value, shape ...int64) *graph.Value {
	v := b.Cast(x, graph.Int32)
	if zero != nil {
		v = b.Sub(v, b.Cast(b.ReshapeTo(zero, shape...), graph.Int32))
	}
	return b.Cast(v, graph.Float)
}

// narrowCodes returns why operands are not 8-bit codes of known shape.
func narrowCodes(values ...*graph.Value) error {
	for _, v := range values {
		if t := v.Type.Elem; t != graph.Int8 && t != graph.Uint8 {
			return unsupported("value %q has elements of type %s", v.Name, t)
		}
		if _, err := sizes(v); err != nil {
			return err
		}
	}
	return nil
}

// length returns the number of elements of v, which may be nil, 1 if that is not known.
func length(v *graph.Value) int64 {
	if v == nil {
		return 1
	}
	s, ok := v.Type.Shape.Ints()
	if !ok {
		return 1
	}
	return int64(prod(ints(s)))
}

// expandMatMulInteger adds up products of parts of the inner axis.
func expandMatMulInteger(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	if err := narrowCodes(n.In[0], n.In[1]); err != nil {
		return nil, err
	}
	for _, z := range []*graph.Value{n.Operand(2), n.Operand(3)} {
		if z != nil && len(z.Type.Shape) > 1 {
			return nil, unsupported("zero points of rank %d", len(z.Type.Shape))
		}
	}
	x, _ := sizes(n.In[0])
	y, _ := sizes(n.In[1])
	inner := x[len(x)-1]
	return func(b *op.Builder) []*graph.Value {
		rows := []int64{length(n.Operand(2))}
		if rows[0] > 1 {
			rows = append(rows, 1)
		}
		left, right := codes(b, n.In[0], n.Operand(2), rows...), codes(b, n.In[1], n.Operand(3), length(n.Operand(3)))
		var sum *graph.Value
		for at := int64(0); at < inner; at += exactTerms {
			p, q := left, right
			if inner > exactTerms {
				end := min(at+exactTerms, inner)
				p = b.Slice(left, b.Ints(at), b.Ints(end), b.Ints(int64(len(x)-1)), b.Ints(1))
				q = b.Slice(right, b.Ints(at), b.Ints(end), b.Ints(int64(max(len(y)-2, 0))), b.Ints(1))
			}
			part := b.Cast(b.MatMul(p, q), graph.Int32)
			if sum == nil {
				sum = part
			} else {
				sum = b.Add(sum, part)
			}
		}
		return []*graph.Value{sum}
	}, nil
}

// expandConvInteger adds up convolutions of groups of channels.
func expandConvInteger(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	if err := narrowCodes(n.In[0], n.In[1]); err != nil {
		return nil, err
	}
	w, _ := sizes(n.In[1])
	if len(w) < 3 {
		return nil, unsupported("weights of rank %d", len(w))
	}
	taps := int64(prod(ints(w[2:])))
	channels, step := w[1], w[1]
	if channels*taps > exactTerms {
		if step = exactTerms / taps; step < 1 || n.Int("group", 1) != 1 {
			return nil, unsupported("sums of %d products of codes", channels*taps)
		}
	}
	return func(b *op.Builder) []*graph.Value {
		perChannel := make([]int64, len(w))
		for i := range perChannel {
			perChannel[i] = 1
		}
		perChannel[0] = length(n.Operand(3))
		x, k := codes(b, n.In[0], n.Operand(2)), codes(b, n.In[1], n.Operand(3), perChannel...)
		var sum *graph.Value
		for at := int64(0); at < channels; at += step {
			p, q := x, k
			if step < channels {
				end := min(at+step, channels)
				p, q = b.Slice(x, b.Ints(at), b.Ints(end), b.Ints(1), b.Ints(1)), b.Slice(k, b.Ints(at), b.Ints(end), b.Ints(1), b.Ints(1))
			}
			part := b.Cast(b.Op("Conv", []*graph.Value{p, q}, n.Attrs...), graph.Int32)
			if sum == nil {
				sum = part
			} else {
				sum = b.Add(sum, part)
			}
		}
		return []*graph.Value{sum}
	}, nil
}
