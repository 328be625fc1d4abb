package lower_test

import (
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/npu/lower"
	"gradtool/npu/machine"
)

// TestWalkTraffic lowers long attention, forward and backward, and counts what goes to DRAM and comes from there: it grows as the operands, read again
// for each tile of rows or columns, and not as the square.
func TestWalkTraffic(t *testing.T) {
	mach, err := machine.Builtin("ref-edge")
	if err != nil {
		t.Fatal(err)
	}
	const depth = 64
	for _, c := range []struct {
		name  string
		build func(b *op.Builder, x []*graph.Value) []*graph.Value
		ins   int
		sizes []int64
		most  int64 // times that operands and results move, at 4096 places and fewer
	}{
		{"forward", func(b *op.Builder, x []*graph.Value) []*graph.Value {
			s := b.MatMul(x[0], b.Unary("Transpose", x[1], graph.IntsAttr("perm", 0, 1, 3, 2)))
			return []*graph.Value{b.MatMul(b.Op("Softmax", []*graph.Value{s}), x[2])}
		}, 3, []int64{1024, 4096, 8192}, 5},
		{"with gradients", func(b *op.Builder, x []*graph.Value) []*graph.Value { return (&grads{}).build(b, x) }, 4, []int64{1024, 4096}, 12},
		{"with gradients, computed again", func(b *op.Builder, x []*graph.Value) []*graph.Value { return (&grads{again: true}).build(b, x) }, 4, []int64{2048}, 12},
	} {
		for _, n := range c.sizes {
			var shapes [][]int64
			for range c.ins {
				shapes = append(shapes, []int64{1, 1, n, depth})
			}
			m, _, err := op.SampleModel(&op.Def{}, op.Sample{In: uniform(1, shapes...), Build: c.build}, 5, "")
			if err != nil {
				t.Fatal(err)
			}
			r, err := lower.Model(m, lower.Options{Machine: mach})
			if err != nil {
				t.Fatal(err)
			}
			read, written := traffic(r)
			total := int64(0)
			for i := range read {
				total += read[i] + written[i]
			}
			operands := int64(len(r.Program.Inputs)+len(r.Program.Outputs)) * 4 * n * depth
			square := 4 * n * n
			t.Logf("%s, %d places: %d KiB, operands and results %d KiB, square %d KiB", c.name, n, total>>10, operands>>10, square>>10)
			if total > c.most*operands*max(n/4096, 1) {
				t.Errorf("%s, %d places: %d bytes move, the operands and results are %d", c.name, n, total, operands)
			}
			if n >= 4096 && total > 2*square {
				t.Errorf("%s, %d places: %d bytes move, a square is %d", c.name, n, total, square)
			}
			for _, b := range r.Legal.Buffers {
				if int64(b.Len) > n*depth {
					t.Errorf("%s, %d places: buffer %q has %d elements", c.name, n, b.Name, b.Len)
				}
			}
		}
	}
}
