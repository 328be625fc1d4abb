package lower_test

import (
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/npu/machine"
)

// TestChains lowers chains of operators on tensors that do not fit on chip, so that kernels are fused, cut into tiles and
// accumulated across them, and compares with the evaluator.
func TestChains(t *testing.T) {
	f := func(d ...int64) []int64 { return d }
	ints := graph.IntsAttr
	norm := func(b *op.Builder, x *graph.Value, c int64) *graph.Value {
		one := b.Full(b.Ints(c), graph.Float, 1)
		zero := b.Full(b.Ints(c), graph.Float, 0)
		return b.Node("BatchNormalization", []*graph.Value{x, one, zero, zero, one}, 3, graph.IntAttr("training_mode", 1)).Out[0]
	}
	for _, c := range []struct {
		name  string
		in    [][]int64
		build func(b *op.Builder, x []*graph.Value) []*graph.Value
	}{
		{"depthwise, norm, relu, mean", [][]int64{f(8, 4, 32, 32), f(4, 1, 3, 3)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			y := b.Op("Conv", x, ints("pads", 1, 1, 1, 1), graph.IntAttr("group", 4))
			z := b.Unary("Relu", norm(b, y, 4))
			return []*graph.Value{z, b.Unary("GlobalAveragePool", z)}
		}},
		{"depthwise strided, norm", [][]int64{f(8, 3, 33, 33), f(3, 1, 5, 5)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			y := b.Op("Conv", x, ints("pads", 2, 2, 2, 2), ints("strides", 2, 2), graph.IntAttr("group", 3))
			return []*graph.Value{norm(b, y, 3)}
		}},
		{"conv, norm, relu, pool", [][]int64{f(4, 6, 20, 20), f(20, 6, 3, 3)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			y := b.Unary("Relu", norm(b, b.Op("Conv", x, ints("pads", 1, 1, 1, 1)), 20))
			p := b.Node("MaxPool", []*graph.Value{y}, 2, ints("kernel_shape", 3, 3), ints("strides", 2, 2))
			return []*graph.Value{p.Out[0], p.Out[1]}
		}},
		{"transposed conv", [][]int64{f(2, 16, 15, 15), f(16, 8, 4, 3)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.Unary("Tanh", b.Op("ConvTranspose", x, ints("strides", 3, 2), ints("pads", 1, 0, 1, 1)))}
		}},
		{"wide softmax", [][]int64{f(7, 2000)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.Op("Softmax", x), b.Op("LogSoftmax", x)}
		}},
		{"sums of rows and columns", [][]int64{f(150, 90), f(150, 90)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			y := b.Mul(x[0], x[1])
			return []*graph.Value{b.Op("ReduceSum", []*graph.Value{y, b.Ints(0)}), b.Op("ReduceSum", []*graph.Value{y, b.Ints(1)}),
				b.Op("ReduceMax", []*graph.Value{y}), y}
		}},
		{"linear, gelu, linear, residual, norm", [][]int64{f(70, 48), f(48, 130), f(130, 48), f(48)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			y := b.Add(x[0], b.MatMul(b.Unary("Gelu", b.MatMul(x[0], x[1])), x[2]))
			return []*graph.Value{b.Op("LayerNormalization", []*graph.Value{y, x[3], x[3]})}
		}},
		{"attention", [][]int64{f(2, 40, 3, 16), f(2, 40, 3, 16), f(2, 40, 3, 16)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			var h []*graph.Value
			for _, v := range x {
				h = append(h, b.Unary("Transpose", v, ints("perm", 0, 2, 1, 3)))
			}
			s := b.MulScalar(b.MatMul(h[0], b.Unary("Transpose", h[1], ints("perm", 0, 1, 3, 2))), 0.25)
			o := b.Unary("Transpose", b.MatMul(b.Op("Softmax", []*graph.Value{s}), h[2]), ints("perm", 0, 2, 1, 3))
			return []*graph.Value{b.ReshapeTo(o, 80, 48)}
		}},
		{"long attention", [][]int64{f(2, 300, 2, 16), f(2, 300, 2, 16), f(2, 300, 2, 16), f(300, 300)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			var h []*graph.Value
			for _, v := range x[:3] {
				h = append(h, b.Unary("Transpose", v, ints("perm", 0, 2, 1, 3)))
			}
			s := b.Add(b.MulScalar(b.MatMul(h[0], b.Unary("Transpose", h[1], ints("perm", 0, 1, 3, 2))), 0.25), x[3])
			o := b.Unary("Transpose", b.MatMul(b.Op("Softmax", []*graph.Value{s}), h[2]), ints("perm", 0, 2, 1, 3))
			return []*graph.Value{b.ReshapeTo(o, 600, 32)}
		}},
		{"columns of a convolution", [][]int64{f(4, 6, 9, 9), f(6*9, 20)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			p := b.Op("Pad", []*graph.Value{x[0], b.Ints(0, 0, 1, 1, 0, 0, 1, 1)})
			var taps []*graph.Value
			for i := range int64(9) {
				taps = append(taps, b.Slice(p, b.Ints(i/3, i%3), b.Ints(i/3+9, i%3+9), b.Ints(2, 3), b.Ints(1, 1)))
			}
			c := b.ReshapeTo(b.Transpose(b.Concat(1, taps...), 0, 2, 3, 1), 4*81, 6*9)
			return []*graph.Value{b.MatMul(c, x[1]), b.Unary("Relu", b.Concat(0, taps[1], taps[4], taps[7]))}
		}},
		{"slices that are no columns", [][]int64{f(12, 40)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			part := func(i int64) *graph.Value { return b.Slice(x[0], b.Ints(i), b.Ints(i+8), b.Ints(1), b.Ints(1)) }
			return []*graph.Value{b.Concat(1, part(0), part(1), part(5)), b.Concat(1, part(9), part(3)), b.Concat(0, part(2), part(2)),
				b.Concat(1, part(0), part(8), part(16)), b.Concat(1, part(0), part(1), part(7), part(8), part(16), part(17))}
		}},
		{"depthwise weight gradient", [][]int64{f(3, 5, 8, 8), f(3, 5, 8, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			swapped := func(v *graph.Value) *graph.Value { return b.ReshapeTo(b.Transpose(v, 1, 0, 2, 3), 1, 15, 8, 8) }
			w := b.ReshapeTo(b.Transpose(x[1], 1, 0, 2, 3), 5, 3, 8, 8)
			return []*graph.Value{b.Op("Conv", []*graph.Value{swapped(x[0]), w}, ints("pads", 1, 1, 1, 1), graph.IntAttr("group", 5)),
				b.Op("Conv", []*graph.Value{swapped(x[0]), w}, ints("pads", 1, 1, 1, 1), ints("strides", 2, 2), graph.IntAttr("group", 5))}
		}},
		{"grouped convolution of a view", [][]int64{f(4, 2, 3, 7, 7), f(8, 3, 3, 3)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			v := b.ReshapeTo(b.Transpose(x[0], 1, 2, 0, 3, 4), 3, 8, 7, 7) // 6 channels of 4 in rows of 3x8: axes with parts
			w := b.ReshapeTo(b.Transpose(b.ReshapeTo(x[1], 2, 4, 27), 1, 0, 2), 8, 27)
			return []*graph.Value{b.Op("Conv", []*graph.Value{v, b.ReshapeTo(w, 12, 2, 3, 3)}, graph.IntAttr("group", 4))}
		}},
		{"split heads, concatenate", [][]int64{f(64, 96)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			n := b.Node("Split", x, 3, graph.IntAttr("axis", 1), graph.IntAttr("num_outputs", 3))
			y := b.Op("Concat", []*graph.Value{n.Out[2], b.Unary("Relu", n.Out[0]), n.Out[1]}, graph.IntAttr("axis", 1))
			return []*graph.Value{b.Unary("Transpose", y)}
		}},
	} {
		for _, name := range []string{"ref-small", "ref-edge"} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				mach, err := machine.Builtin(name)
				if err != nil {
					t.Fatal(err)
				}
				agree(t, mach, op.Sample{In: uniform(2, c.in...), Build: c.build}, 5)
			})
		}
	}
}

// uniform is operands of the given shapes, of numbers in [-bound, bound].
func uniform(bound float64, shapes ...[]int64) []op.Arg {
	var in []op.Arg
	for _, s := range shapes {
		var shape []int
		for _, n := range s {
			shape = append(shape, int(n))
		}
		in = append(in, op.FR(-bound, bound, shape...))
	}
	return in
}
