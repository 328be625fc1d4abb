package lower_test

import (
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
	for _, c := range []struct {
		name  string
		in    [][]int64
		build func(b *op.Builder, x []*graph.Value) []*graph.Value
		walks int
	}{
		{"plain", [][]int64{f(1, 2, 130, 8), f(1, 2, 700, 8), f(1, 2, 700, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			s := b.MulScalar(b.MatMul(x[0], swap(b, x[1])), 0.25)
			return []*graph.Value{b.MatMul(b.Op("Softmax", []*graph.Value{s}), x[2])}
		}, 1},
	} {
		for _, fused := range []bool{false, true} {
			mach, err := machine.Builtin("ref-small")
			if err != nil {
				t.Fatal(err)
			}
			mach.Numerics.Fused = fused
			m, feed, err := op.SampleModel(&op.Def{}, op.Sample{In: uniform(2, c.in...), Build: c.build}, 5, "")
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
			if n := walkCount(r); n != c.walks {
				t.Errorf("%d walks, want %d\n%s", n, c.walks, r.Legal)
			}
			compare(t, r, execute(t, r, feed), want)
		}
	}
}
