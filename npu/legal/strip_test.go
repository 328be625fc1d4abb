package legal_test

import (
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

// TestStrips does products in strips where that saves more than it reads again, and runs what comes of it.
func TestStrips(t *testing.T) {
	transposed := func(b *op.Builder, x *graph.Value) *graph.Value {
		return b.Unary("Transpose", x, graph.IntsAttr("perm", 0, 2, 1))
	}
	for _, c := range []struct {
		name    string
		in      [][]int64
		build   func(b *op.Builder, x []*graph.Value) *graph.Value
		strips  int // buffers that become strips of 4 KiB
		kernels int
	}{
		{"attention", [][]int64{{2, 40, 8}, {2, 40, 8}, {2, 40, 8}}, func(b *op.Builder, x []*graph.Value) *graph.Value {
			return b.MatMul(b.Op("Softmax", []*graph.Value{b.MatMul(x[0], transposed(b, x[1]))}), x[2])
		}, 1, 8},
		{"weights that each strip would read again", [][]int64{{40, 32}, {32, 40}, {40, 32}}, func(b *op.Builder, x []*graph.Value) *graph.Value {
			return b.MatMul(b.Unary("Relu", b.MatMul(x[0], x[1])), x[2])
		}, 0, 2},
		{"a sum over the rows", [][]int64{{2, 40, 8}, {2, 40, 8}, {2, 8, 40}}, func(b *op.Builder, x []*graph.Value) *graph.Value {
			s := b.Op("Softmax", []*graph.Value{b.MatMul(x[0], transposed(b, x[1]))}, graph.IntAttr("axis", 1))
			return b.MatMul(transposed(b, s), transposed(b, x[2]))
		}, 0, 2},
		{"read twice", [][]int64{{2, 40, 8}, {2, 40, 8}, {2, 40, 8}}, func(b *op.Builder, x []*graph.Value) *graph.Value {
			s := b.MatMul(x[0], transposed(b, x[1]))
			return b.Add(b.MatMul(s, x[2]), b.MatMul(transposed(b, s), x[2]))
		}, 0, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, feed, err := op.SampleModel(&op.Def{}, op.Sample{In: uniform(2, c.in...), Build: func(b *op.Builder, x []*graph.Value) []*graph.Value {
				return []*graph.Value{c.build(b, x)}
			}}, 5, "")
			if err != nil {
				t.Fatal(err)
			}
			want := evaluate(t, m, feed)
			p := fused(t, m)
			if n := p.Strips(4096); n != c.strips || len(p.Kernels) != c.kernels {
				t.Errorf("%d buffers in strips, %d kernels; want %d, %d\n%s", n, len(p.Kernels), c.strips, c.kernels, p)
			}
			if err := p.Verify(); err != nil {
				t.Fatalf("%v\n%s", err, p)
			}
			compare(t, p, feed, want)
		})
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
