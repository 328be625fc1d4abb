package legal

import (
	"slices"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

// TestAbsorbBorders lowers models, drops borders, and computes both programs.
func TestAbsorbBorders(t *testing.T) {
	pad := func(b *op.Builder, x *graph.Value, fill float64, pads ...int64) *graph.Value {
		return b.Op("Pad", []*graph.Value{x, b.Ints(pads...), b.Scalar(graph.Float, fill)})
	}
	slice := func(b *op.Builder, x *graph.Value, axis, from, to, step int64) *graph.Value {
		return b.Slice(x, b.Ints(from), b.Ints(to), b.Ints(axis), b.Ints(step))
	}
	for _, c := range []struct {
		name  string
		in    [][]int
		build func(b *op.Builder, x []*graph.Value) []*graph.Value
		done  int
	}{
		{"a product", [][]int{{5, 6}, {9, 4}}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.MatMul(pad(b, x[0], 0, 1, 1, 0, 2), x[1])}
		}, 1},
		{"another fill", [][]int{{5, 6}, {9, 4}}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.MatMul(pad(b, x[0], -1.5, 0, 3, 0, 0), x[1])}
		}, 1},
		{"columns", [][]int{{2, 3, 6, 5}, {8, 27}}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			p := pad(b, x[0], 0, 0, 0, 1, 1, 0, 0, 1, 1)
			var taps []*graph.Value
			for i := range int64(9) {
				taps = append(taps, b.Slice(p, b.Ints(i/3, i%3), b.Ints(i/3+6, i%3+5), b.Ints(2, 3), b.Ints(1, 1)))
			}
			return []*graph.Value{b.MatMul(x[1], b.ReshapeTo(b.Concat(1, taps...), 2, 27, 30))}
		}, 1},
		{"every second row of both operands", [][]int{{6, 6}}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			p := pad(b, x[0], 2, 1, 1, 2, 1)
			return []*graph.Value{b.MatMul(slice(b, p, 0, 1, 9, 2), slice(b, p, 0, 0, 8, 1))}
		}, 1},
		{"transposed", [][]int{{4, 6}, {5, 3}}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.MatMul(b.Transpose(pad(b, x[0], 0, 1, 0, 0, 0), 1, 0), x[1])}
		}, 1},
		{"what cuts off reads within", [][]int{{5, 6}, {3, 4}}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.MatMul(pad(b, x[0], 0, 0, -2, 0, -1), x[1])}
		}, 0},
		{"somebody else wants it", [][]int{{5, 6}, {8, 4}}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			p := pad(b, x[0], 0, 1, 1, 0, 1)
			return []*graph.Value{b.MatMul(p, x[1]), b.Unary("Relu", p)}
		}, 0},
		{"it is an output", [][]int{{5, 6}, {8, 4}}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			p := pad(b, x[0], 0, 1, 1, 0, 1)
			return []*graph.Value{b.MatMul(p, x[1]), p}
		}, 0},
		{"rows that go over", [][]int{{4, 5}, {4, 3}}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.MatMul(b.ReshapeTo(pad(b, x[0], 0, 0, 1, 0, 0), 6, 4), x[1])}
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var in []op.Arg
			for _, s := range c.in {
				in = append(in, op.FR(-1, 1, s...))
			}
			m, feed, err := op.SampleModel(&op.Def{}, op.Sample{In: in, Build: c.build}, 5, "")
			if err != nil {
				t.Fatal(err)
			}
			p, err := Lower(m)
			if err != nil {
				t.Fatal(err)
			}
			run := func() [][]float64 {
				t.Helper()
				if err := p.Verify(); err != nil {
					t.Fatal(err)
				}
				mem := make([][]float64, len(p.Buffers))
				for k, x := range p.Inputs {
					for i := range x.Buf.Len {
						mem[x.Buf.ID] = append(mem[x.Buf.ID], feed[k].Float(i))
					}
				}
				if err := p.Run(mem); err != nil {
					t.Fatal(err)
				}
				var out [][]float64
				for _, x := range p.Outputs {
					out = append(out, mem[x.Buf.ID])
				}
				return out
			}
			want, before := run(), len(p.Kernels)
			if n := p.AbsorbBorders(); n != c.done || len(p.Kernels) != before-n {
				t.Errorf("%d borders, %d of %d kernels left, want %d borders\n%s", n, len(p.Kernels), before, c.done, p)
			}
			for i, got := range run() {
				if !slices.Equal(got, want[i]) {
					t.Errorf("output %d: %v, want %v", i, got, want[i])
				}
			}
		})
	}
}
