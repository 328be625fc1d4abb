package prune

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// productRules let the operators that sum products add the bias, and transpose what they multiply. The standard defines them as the product plus the bias,
// so nothing changes by the formula; a kernel may add the bias before all products are summed. ONNX Runtime 1.30 gives the
// same bits for Conv, and for Gemm of up to 256 summed products; beyond, the bias comes after the first 256, which moves
// results by about one unit in the last place of the largest.
func productRules() []rewrite.Rule {
	P, Any := rewrite.P, rewrite.Any
	return []rewrite.Rule{
		{Name: "matmul-add", Doc: "MatMul(x, w) + b = Gemm(x, w, b), for matrices and a bias of one row", Effect: rewrite.Kernel,
			Root: P("Add", P("MatMul", Any("x"), Any("w")).As("z"), Any("b")).Commute(), When: all(singleRounding("x"), rowBias),
			Emit: one(func(b *op.Builder, m *match) *graph.Value {
				return b.Op("Gemm", values(m.V("x"), m.V("w"), m.V("b")))
			})},
		{Name: "gemm-add", Doc: "Gemm(x, w) + b = Gemm(x, w, b), for a bias of one row", Effect: rewrite.Kernel,
			Root: P("Add", P("Gemm", Any("x"), Any("w")).As("z"), Any("b")).Commute(), When: all(singleRounding("x"), rowBias),
			Emit: one(func(b *op.Builder, m *match) *graph.Value {
				n := b.Node("Gemm", values(m.V("x"), m.V("w"), m.V("b")), 1, m.Node("z").Attrs...)
				n.SetAttr(graph.FloatAttr("beta", 1))
				return n.Out[0]
			})},
		{Name: "matmul-transposed", Doc: "MatMul(Transpose(x), w) = Gemm(x, w, transA=1), for matrices", Effect: rewrite.Kernel,
			Root: P("MatMul", P("Transpose", Any("x")).As("t"), Any("w")), When: all(swapped, singleRounding("x"), matrices, withoutBias),
			Emit: one(func(b *op.Builder, m *match) *graph.Value {
				return b.Op("Gemm", values(m.V("x"), m.V("w")), graph.IntAttr("transA", 1))
			})},
		{Name: "gemm-transposed", Doc: "Gemm(Transpose(x), w, b) = Gemm(x, w, b, transA=1)", Effect: rewrite.Kernel,
			Root: P("Gemm", P("Transpose", Any("x")).As("t"), Any("w"), Any("b").Opt()), When: all(swapped, singleRounding("x"), plainRight),
			Emit: one(func(b *op.Builder, m *match) *graph.Value {
				attrs := slices.DeleteFunc(slices.Clone(m.Root.Attrs), func(a *graph.Attr) bool { return a.Name == "transA" })
				return b.Op("Gemm", values(m.V("x"), m.V("w"), m.V("b")), append(attrs, graph.IntAttr("transA", 1-m.Root.Int("transA", 0)))...)
			})},
		{Name: "transpose-gemm", Doc: "(x^T w)^T = w^T x, and (x w^T)^T = w x^T", Effect: rewrite.Kernel,
			Root: P("Transpose", P("Gemm", Any("x"), Any("w")).As("z")), When: func(m *match) error {
				n := m.Node("z")
				switch a, b := n.Int("transA", 0) != 0, n.Int("transB", 0) != 0; {
				case !slices.Equal(permOf(m.Root), []int64{1, 0}):
					return rewrite.ErrUnlike
				case n.Float("alpha", 1) != 1:
					return reason("alpha would scale the other operand")
				case a == b: // kernels sum in another order for what would come of it
					return reason("the product would be one of other operands than transposed and plain")
				}
				return nil
			}, Emit: one(func(b *op.Builder, m *match) *graph.Value {
				z := m.Node("z")
				return b.Op("Gemm", values(m.V("w"), m.V("x")), graph.IntAttr("transA", 1-z.Int("transB", 0)), graph.IntAttr("transB", 1-z.Int("transA", 0)))
			})},
		{Name: "conv-add", Doc: "Conv(x, w) + b = Conv(x, w, b), for a constant of one number per channel", Effect: rewrite.Kernel,
			Root: P("Add", P("Conv", Any("x"), Any("w")).As("z"), Any("c")).Commute(), When: all(singleRounding("x"), perChannel),
			Emit: one(func(b *op.Builder, m *match) *graph.Value {
				return b.Op("Conv", values(m.V("x"), m.V("w"), channelVector(b, m)), m.Node("z").Attrs...)
			})},
	}
}

// singleRounding returns a condition that the captured value has a type in which products are summed: narrower ones are
// rounded once more between the product and the addition.
func singleRounding(name string) func(m *match) error {
	return func(m *match) error {
		if t := m.V(name).Type.Elem; t != graph.Float && t != graph.Double {
			return reason("%s is rounded between the product and the sum", t)
		}
		return nil
	}
}

// swapped holds where the Transpose t exchanges the axes of a matrix.
func swapped(m *match) error {
	if !slices.Equal(permOf(m.Node("t")), []int64{1, 0}) {
		return rewrite.ErrUnlike
	}
	return nil
}

// matrices holds where the root multiplies two matrices.
func matrices(m *match) error {
	x, w := m.V("x").Type.Shape, m.V("w").Type.Shape
	if x == nil || w == nil {
		return errUnknown
	}
	if len(x) != 2 || len(w) != 2 {
		return rewrite.ErrUnlike
	}
	return nil
}

// withoutBias holds where the model may use a Gemm that adds nothing: there was none before opset 11.
func withoutBias(m *match) error {
	if o := m.Root.Graph.Model.Origin; o > 0 && o < 11 {
		return reason("before opset 11 a Gemm must add something")
	}
	return nil
}

// plainRight holds where the root reads its right operand as it is: else kernels sum in another order.
func plainRight(m *match) error {
	if m.Root.Int("transB", 0) != 0 {
		return reason("the right operand is transposed too")
	}
	return nil
}

// rowBias holds where the root adds b, one row at most, to z, a matrix.
func rowBias(m *match) error {
	z, b := m.V("z").Type.Shape, m.V("b").Type.Shape
	x, w := m.V("x").Type.Shape, m.V("w").Type.Shape
	switch {
	case z == nil || b == nil || x == nil || w == nil:
		return errUnknown
	case len(z) != 2 || len(x) != 2 || len(w) != 2:
		return reason("the product has rank %d, Gemm takes matrices", len(z))
	case len(b) > 2:
		return errBroadcast
	case len(b) == 2:
		if n, ok := b[0].Int(); !ok || n != 1 {
			return reason("what is added may differ from row to row")
		}
	}
	if !narrow(b, z) {
		return errBroadcast
	}
	return nil
}

// perChannel holds where c is a constant of one element, or of one for each channel of z, a batch of images.
func perChannel(m *match) error {
	if !m.Fixed(m.V("c")) {
		return errTrains
	}
	z, w, c := m.V("z").Type.Shape, m.V("w").Type.Shape, m.V("c").Type.Shape
	if z == nil || w == nil || len(w) != len(z) {
		return errUnknown
	}
	channels, ok := w[0].Int()
	dims, ok2 := c.Ints()
	if !ok || !ok2 || len(dims) > len(z) {
		return errUnknown
	}
	for i, n := range dims {
		axis := len(z) - len(dims) + i
		if n != 1 && (axis != 1 || n != channels) {
			return reason("what is added differs along axis %d", axis)
		}
	}
	return nil
}

// channelVector returns c, for which perChannel holds, as a vector of one element per channel. The nodes it adds are folded.
func channelVector(b *op.Builder, m *match) *graph.Value {
	channels, _ := m.V("w").Type.Shape[0].Int()
	c := m.V("c")
	if n, ok := c.Type.Shape.Size().Int(); ok && n == 1 && channels != 1 {
		return b.Expand(b.ReshapeTo(c, 1), b.Ints(channels))
	}
	return b.ReshapeTo(c, channels)
}
