package op

import (
	"strings"

	"gradtool/graph"
)

// contribGemmDefs holds products and convolutions fused with what surrounds them, and products by packed weights.
func contribGemmDefs() []Def {
	i := func(name string, v int64) *graph.Attr { return graph.IntAttr(name, v) }
	f := func(name string, v float32) *graph.Attr { return graph.FloatAttr(name, v) }
	str := graph.StringAttr
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	nbits := func(k, n, bits, block int64) []*graph.Attr {
		return attrs(i("K", k), i("N", n), i("bits", bits), i("block_size", block))
	}
	fused := func(more ...Sample) []Sample {
		return append([]Sample{
			{In: []Arg{F(2, 3), F(3, 4)}},
			{Name: "transposed", In: []Arg{F(2, 4, 3), F(2, 5, 4)}, Attrs: attrs(i("transA", 1), i("transB", 1), f("alpha", 0.5))},
		}, more...)
	}
	packed := func(shape ...int) Arg {
		a := TV(graph.Uint8, shape)
		for k := range prod(shape) {
			a.Values = append(a.Values, float64((37*k+11)%256))
		}
		return a
	}
	return []Def{
		{Name: "FusedMatMul", Decompose: fusedMatMul, Samples: fused(
			Sample{Name: "batch of A", In: []Arg{F(3, 2, 4), F(2, 4, 5)}, Attrs: attrs(i("transBatchA", 1))},
			Sample{Name: "batches", In: []Arg{F(4, 2, 3), F(5, 2, 4)}, Attrs: attrs(i("transBatchA", 1), i("transBatchB", 1), i("transA", 1), i("transB", 1))},
		)},
		{Name: "TransposeMatMul", Decompose: fusedMatMul, Samples: fused()},
		{Name: "FusedMatMulActivation", Decompose: fusedMatMul, Samples: []Sample{
			{In: []Arg{F(2, 3), F(3, 4)}, Attrs: attrs(str("activation", "Tanh"))},
			{Name: "leaky", In: []Arg{F(2, 3), F(3, 4)}, Attrs: attrs(str("activation", "LeakyRelu"), f("activation_alpha", 0.2))},
			{Name: "softmax", In: []Arg{F(2, 3), F(3, 4)}, Attrs: attrs(str("activation", "Softmax"), i("activation_axis", -1))},
		}},
		{Name: "FusedGemm", Decompose: fusedGemm, Samples: []Sample{
			{In: []Arg{F(2, 3), F(3, 4), F(4)}, Attrs: attrs(str("activation", "Sigmoid"))},
			{Name: "hard sigmoid", In: []Arg{F(3, 2), F(4, 3)}, Attrs: attrs(i("transA", 1), i("transB", 1), f("alpha", 0.5), str("activation", "HardSigmoid"), f("activation_alpha", 0.1), f("activation_beta", 0.4))},
		}},
		{Name: "GemmFastGelu", Samples: []Sample{{In: []Arg{F(2, 3, 4), F(4, 5), F(5)}}},
			Decompose: pointwise(func(b *Builder, n *graph.Node, x *graph.Value) *graph.Value {
				return b.gelu(b.plus(b.MatMul(x, n.Operand(1)), n.Operand(2)), true)
			})},
		{Name: "FusedConv", Decompose: fusedConv, Samples: []Sample{
			{In: []Arg{F(1, 2, 4, 4), F(3, 2, 3, 3), F(3)}, Attrs: attrs(str("activation", "Tanh"), graph.IntsAttr("pads", 1, 1, 1, 1))},
			{Name: "sum", In: []Arg{F(1, 2, 4), F(2, 1, 2), {}, F(1, 2, 3)}, Attrs: attrs(str("activation", "LeakyRelu"), graph.FloatsAttr("activation_params", 0.3), i("group", 2))},
			{Name: "clip", In: []Arg{F(1, 1, 4), F(1, 1, 2)}, Attrs: attrs(str("activation", "Clip"), graph.FloatsAttr("activation_params", -0.5, 0.75))},
			{Name: "none", In: []Arg{F(1, 1, 4), F(1, 1, 2)}},
		}},
		{Name: "MatMulNBits", Decompose: matMulNBits, Samples: []Sample{
			{In: []Arg{F(2, 32), packed(2, 2, 8), F(4)}, Attrs: nbits(32, 2, 4, 16)},
			{Name: "rest", In: []Arg{F(2, 20), packed(1, 2, 8), F(1, 2)}, Attrs: nbits(20, 1, 4, 16)},
			{Name: "zero points", In: []Arg{F(1, 2, 48), packed(2, 3, 8), F(2, 3), packed(2, 2), {}, F(2)}, Attrs: nbits(48, 2, 4, 16)},
			{Name: "float zero points", In: []Arg{F(2, 16), packed(2, 1, 8), F(2, 1), FR(6, 9, 2, 1)}, Attrs: nbits(16, 2, 4, 16)},
			{Name: "8 bits", In: []Arg{F(2, 32), packed(2, 2, 16), F(2, 2)}, Attrs: nbits(32, 2, 8, 16)},
			{Name: "2 bits", In: []Arg{F(2, 32), packed(1, 2, 4), F(2), packed(1, 1)}, Attrs: nbits(32, 1, 2, 16)},
			{Name: "group index", In: []Arg{F(2, 4), packed(1, 2, 1), F(2), {}, TV(graph.Int32, []int{4}, 1, 0, 0, 1)}, Attrs: nbits(4, 1, 4, 2)},
		}},
	}
}

// activate applies the activation that a fused node names, with the parameters that the attributes give by position;
// those that are left out take the activation's defaults.
func (b *Builder) activate(x *graph.Value, name string, param func(i int, def float64) float64) *graph.Value {
	attr := func(name string, i int, def float64) *graph.Attr {
		return graph.FloatAttr(name, float32(param(i, def)))
	}
	switch name {
	case "":
		return x
	case "Relu", "Tanh", "Sigmoid", "Softplus", "Softsign", "HardSwish", "Gelu", "Erf":
		return b.Unary(name, x)
	case "LeakyRelu":
		return b.Unary(name, x, attr("alpha", 0, 0.01))
	case "Elu", "ThresholdedRelu":
		return b.Unary(name, x, attr("alpha", 0, 1))
	case "HardSigmoid":
		return b.Unary(name, x, attr("alpha", 0, 0.2), attr("beta", 1, 0.5))
	case "Selu":
		return b.Unary(name, x, attr("alpha", 0, 1.67326319217681884765625), attr("gamma", 1, 1.05070102214813232421875))
	case "Clip":
		return b.Op("Clip", vals(x, b.Like(x, param(0, lowestFinite(x.Type.Elem))), b.Like(x, param(1, -lowestFinite(x.Type.Elem)))))
	case "ScaledTanh":
		return b.MulScalar(b.Unary("Tanh", b.MulScalar(x, param(1, 1))), param(0, 1))
	case "ParametricSoftplus":
		return b.MulScalar(b.Unary("Softplus", b.MulScalar(x, param(1, 1))), param(0, 1))
	}
	b.uncovered("activation %q", name)
	return x
}

// namedParams reads parameters from the attributes activation_alpha, activation_beta and activation_gamma.
func namedParams(n *graph.Node) func(i int, def float64) float64 {
	return func(i int, def float64) float64 {
		return n.Float([]string{"activation_alpha", "activation_beta", "activation_gamma"}[i], def)
	}
}

// turned returns a matrix operand as the product takes it: with the first axis moved behind the batch, then with the last
// two exchanged.
func (b *Builder) turned(x *graph.Value, batch, trans bool) *graph.Value {
	if !batch && !trans {
		return x
	}
	r := len(x.Type.Shape)
	if x.Type.Shape == nil { // an equation serves all ranks
		eq := map[[2]bool]string{{false, true}: "...ij->...ji", {true, false}: "i...j->...ij", {true, true}: "i...j->...ji"}
		return b.Op("Einsum", vals(x), graph.StringAttr("equation", eq[[2]bool{batch, trans}]))
	}
	if r < 2 {
		return x
	}
	perm := make([]int64, r)
	for i := range perm {
		perm[i] = int64(i)
	}
	if batch {
		for i := range r - 2 {
			perm[i] = int64(i + 1)
		}
		perm[r-2] = 0
	}
	if trans {
		perm[r-1], perm[r-2] = perm[r-2], perm[r-1]
	}
	return b.Transpose(x, perm...)
}

// fusedMatMul is alpha·A·B with operands transposed, and an activation.
func fusedMatMul(b *Builder, n *graph.Node) []*graph.Value {
	on := func(name string) bool { return n.Int(name, 0) != 0 }
	y := b.MatMul(b.turned(n.Operand(0), on("transBatchA"), on("transA")), b.turned(n.Operand(1), on("transBatchB"), on("transB")))
	y = b.MulScalar(y, n.Float("alpha", 1))
	if name := n.Str("activation", ""); name == "Softmax" {
		return vals(b.Unary(name, y, graph.IntAttr("axis", n.Int("activation_axis", -1))))
	}
	return vals(b.activate(y, n.Str("activation", ""), namedParams(n)))
}

// kept returns n's attributes but for those whose names begin with prefix.
func kept(n *graph.Node, prefix string) []*graph.Attr {
	var out []*graph.Attr
	for _, a := range n.Attrs {
		if !strings.HasPrefix(a.Name, prefix) {
			out = append(out, a)
		}
	}
	return out
}

// fusedGemm is Gemm with an activation.
func fusedGemm(b *Builder, n *graph.Node) []*graph.Value {
	y := b.Op("Gemm", vals(n.Operand(0), n.Operand(1), n.Operand(2)), kept(n, "activation")...)
	return vals(b.activate(y, n.Str("activation", ""), namedParams(n)))
}

// fusedConv is act(Conv(x, w, bias) + z).
func fusedConv(b *Builder, n *graph.Node) []*graph.Value {
	y := b.Op("Conv", vals(n.Operand(0), n.Operand(1), n.Operand(2)), kept(n, "activation")...)
	var params []float32
	if a := n.Attr("activation_params"); a != nil {
		params = a.Floats
	}
	return vals(b.activate(b.plus(y, n.Operand(3)), n.Str("activation", ""), func(i int, def float64) float64 {
		if i < len(params) {
			return float64(params[i])
		}
		return def
	}))
}

// matMulNBits is A·Wᵀ + bias, with a weight matrix W of N rows and K columns in blocks of columns. The numbers of a block are
// packed into bytes, the first in the lowest bits, and stand for (q - zero point)·scale.
func matMulNBits(b *Builder, n *graph.Node) []*graph.Value {
	bits, k, rows, block := n.Int("bits", 4), n.Int("K", 0), n.Int("N", 0), n.Int("block_size", 0)
	if n.Int("weight_prepacked", 0) != 0 || bits != 2 && bits != 4 && bits != 8 || k < 1 || rows < 1 || block < 1 {
		return b.uncovered("weights of %d bits in blocks of %d, prepacked %d", bits, block, n.Int("weight_prepacked", 0))
	}
	x, index := n.Operand(0), n.Operand(4)
	blocks := (k + block - 1) / block
	elem := x.Type.Elem
	q := b.Cast(b.unpack(n.Operand(1), bits), elem)
	q = b.ReshapeTo(q, rows, blocks, -1)
	scale := b.ReshapeTo(n.Operand(2), rows, blocks)
	zero := b.Scalar(elem, float64(int64(1)<<(bits-1)))
	switch z := n.Operand(3); {
	case z == nil:
	case z.Type.Elem == graph.Uint8:
		zero = b.ReshapeTo(b.unpack(b.ReshapeTo(z, rows, -1), bits), rows, -1)
		zero = b.Cast(b.Slice(zero, b.Ints(0), b.Ints(blocks), b.Ints(1), nil), elem)
	default:
		zero = b.Cast(b.ReshapeTo(z, rows, blocks), elem)
	}
	spread := func(v *graph.Value) *graph.Value { // one column for each of W's
		if v.Type.Shape != nil && len(v.Type.Shape) == 0 {
			return v
		}
		return b.Gather(v, index, 1)
	}
	var w *graph.Value
	if index != nil {
		q = b.Slice(b.ReshapeTo(q, rows, -1), b.Ints(0), b.Ints(k), b.Ints(1), nil)
		w = b.Mul(b.Sub(q, spread(zero)), spread(scale))
	} else {
		if len(zero.Type.Shape) > 0 {
			zero = b.Unsqueeze(zero, 2)
		}
		w = b.ReshapeTo(b.Mul(b.Sub(q, zero), b.Unsqueeze(scale, 2)), rows, -1)
		w = b.Slice(w, b.Ints(0), b.Ints(k), b.Ints(1), nil)
	}
	return vals(b.plus(b.MatMul(x, b.Transpose(w, 1, 0)), n.Operand(5)))
}

// unpack returns the numbers of the given width in bytes, the lowest bits first, along a new last axis.
func (b *Builder) unpack(v *graph.Value, bits int64) *graph.Value {
	v = b.Unsqueeze(v, -1)
	if bits == 8 {
		return v
	}
	shift := NewArray(graph.Uint8, []int{int(8 / bits)}, false)
	for i := range shift.I64 {
		shift.I64[i] = int64(i) * bits
	}
	v = b.Binary("BitShift", v, b.Const(shift.Tensor()), graph.StringAttr("direction", "RIGHT"))
	return b.Binary("BitwiseAnd", v, b.Scalar(graph.Uint8, float64(int64(1)<<bits-1)))
}
