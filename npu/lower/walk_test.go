package lower_test

import (
	"fmt"
	"math"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/npu/legal"
	"gradtool/npu/lower"
	"gradtool/npu/machine"
)

// walkCount returns how many kernels of a program are walks.
func walkCount(r *lower.Result) int {
	n := 0
	for _, k := range r.Legal.Kernels {
		if _, ok := k.(*legal.Walk); ok {
			n++
		}
	}
	return n
}

// TestWalks lowers attention with rows that do not fit on chip, executes it in the simulator and compares with the evaluator, and with the
// numeric contract bit by bit.
func TestWalks(t *testing.T) {
	f := func(d ...int64) []int64 { return d }
	swap := func(b *op.Builder, x *graph.Value) *graph.Value {
		return b.Unary("Transpose", x, graph.IntsAttr("perm", 0, 1, 3, 2))
	}
	softmax := func(b *op.Builder, x *graph.Value) *graph.Value { return b.Op("Softmax", []*graph.Value{x}) }
	for _, c := range []struct {
		name  string
		in    [][]int64
		build func(b *op.Builder, x []*graph.Value) []*graph.Value
		walks int
	}{
		{"plain", [][]int64{f(1, 2, 130, 8), f(1, 2, 700, 8), f(1, 2, 700, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.MatMul(softmax(b, b.MulScalar(b.MatMul(x[0], swap(b, x[1])), 0.25)), x[2])}
		}, 1},
		{"4096 keys", [][]int64{f(1, 1, 40, 8), f(1, 1, 4096, 8), f(1, 1, 4096, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.MatMul(softmax(b, b.MatMul(x[0], swap(b, x[1]))), x[2])}
		}, 1},
		{"scores that grow along the row", [][]int64{f(1, 1, 40, 8), f(1, 1, 600, 8), f(1, 1, 600, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			s := b.Add(b.MatMul(x[0], swap(b, x[1])), b.Cast(b.Op("Range", []*graph.Value{b.IntScalar(0), b.IntScalar(600), b.IntScalar(1)}), graph.Float))
			return []*graph.Value{b.MatMul(softmax(b, s), x[2])}
		}, 1},
		{"a mask for all heads, with rows all masked", [][]int64{f(2, 2, 90, 8), f(2, 2, 300, 8), f(2, 2, 300, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			s := b.Add(b.MatMul(x[0], swap(b, x[1])), b.Const(mask(90, 300)))
			return []*graph.Value{b.MatMul(softmax(b, s), x[2])}
		}, 1},
		{"soft cap, grouped heads, result transposed", [][]int64{f(1, 2, 3, 70, 8), f(1, 2, 1, 300, 8), f(1, 2, 1, 300, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			s := b.MatMul(x[0], b.Unary("Transpose", x[1], graph.IntsAttr("perm", 0, 1, 2, 4, 3)))
			s = b.MulScalar(b.Unary("Tanh", b.MulScalar(s, 0.1)), 10)
			o := b.Unary("Transpose", b.MatMul(softmax(b, s), x[2]), graph.IntsAttr("perm", 0, 3, 1, 2, 4))
			return []*graph.Value{b.ReshapeTo(o, 1, 70, 48)}
		}, 1},
		{"a softmax of its parts, weights multiplied, an epilogue", [][]int64{f(1, 2, 130, 8), f(1, 2, 300, 8), f(1, 2, 300, 8), f(130, 300), f(130, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			s := b.MatMul(x[0], swap(b, x[1]))
			e := b.Unary("Exp", b.Sub(s, b.Op("ReduceMax", []*graph.Value{s, b.Ints(-1)})))
			p := b.Mul(b.Div(e, b.Op("ReduceSum", []*graph.Value{e, b.Ints(-1)})), x[3])
			return []*graph.Value{b.Unary("Relu", b.Add(b.MatMul(p, x[2]), x[4]))}
		}, 1},
		{"columns, and a sum of the result", [][]int64{f(1, 2, 300, 8), f(1, 2, 110, 8), f(1, 2, 8, 300)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			p := b.Op("Softmax", []*graph.Value{b.MatMul(x[0], swap(b, x[1]))}, graph.IntAttr("axis", 2))
			y := b.MatMul(x[2], p)
			return []*graph.Value{y, b.Op("ReduceMean", []*graph.Value{y, b.Ints(-1)})}
		}, 1},
		{"weights that somebody else reads", [][]int64{f(1, 2, 130, 8), f(1, 2, 300, 8), f(1, 2, 300, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			p := softmax(b, b.MatMul(x[0], swap(b, x[1])))
			return []*graph.Value{b.MatMul(p, x[2]), p}
		}, 0},
		{"weights used in another way", [][]int64{f(1, 2, 130, 8), f(1, 2, 300, 8), f(1, 2, 300, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.MatMul(b.Unary("Sqrt", softmax(b, b.MatMul(x[0], swap(b, x[1])))), x[2])}
		}, 0},
	} {
		for _, fused := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fused %v", c.name, fused), func(t *testing.T) { walkCase(t, c.in, c.build, c.walks, fused) })
		}
	}
}

func walkCase(t *testing.T, in [][]int64, build func(b *op.Builder, x []*graph.Value) []*graph.Value, walks int, fused bool) {
	mach, err := machine.Builtin("ref-small")
	if err != nil {
		t.Fatal(err)
	}
	mach.Numerics.Fused = fused
	m, feed, err := op.SampleModel(&op.Def{}, op.Sample{In: uniform(2, in...), Build: build}, 5, "")
	if err != nil {
		t.Fatal(err)
	}
	ref, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := ref.Run(feed)
	if err != nil {
		t.Fatal(err)
	}
	r, err := lower.Model(m, lower.Options{Machine: mach})
	if err != nil {
		t.Fatal(err)
	}
	if n := walkCount(r); n != walks {
		t.Errorf("%d walks, want %d\n%s", n, walks, r.Legal)
	}
	compare(t, r, execute(t, r, feed), want)
}

// mask is one of attention: 0 before the diagonal and -inf behind it, rows 3 and 17 all -inf.
func mask(rows, cols int) *graph.Tensor {
	var x []float32
	for i := range rows {
		for j := range cols {
			y := float32(0)
			if j > i*cols/rows || i == 3 || i == 17 {
				y = float32(math.Inf(-1))
			}
			x = append(x, y)
		}
	}
	return graph.Floats([]int64{int64(rows), int64(cols)}, x...)
}
