package legal_test

import (
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/npu/legal"
)

// TestWalks makes walks of products with a square between them and executes what comes of it, kernel by kernel.
func TestWalks(t *testing.T) {
	swap := func(b *op.Builder, x *graph.Value) *graph.Value {
		return b.Unary("Transpose", x, graph.IntsAttr("perm", 0, 2, 1))
	}
	weights := func(b *op.Builder, x []*graph.Value) *graph.Value {
		return b.Op("Softmax", []*graph.Value{b.MatMul(x[0], swap(b, x[1]))})
	}
	grads := func(b *op.Builder, x []*graph.Value, p *graph.Value) (dq, dk, dv *graph.Value) {
		dp := b.MatMul(x[3], swap(b, x[2]))
		ds := b.Mul(p, b.Sub(dp, b.Op("ReduceSum", []*graph.Value{b.Mul(dp, p), b.Ints(-1)})))
		return b.MatMul(ds, x[1]), b.MatMul(swap(b, ds), x[0]), b.MatMul(swap(b, p), x[3])
	}
	shape := [][]int64{{2, 20, 8}, {2, 30, 8}, {2, 30, 8}, {2, 20, 8}}
	for _, c := range []struct {
		name  string
		in    int
		build func(b *op.Builder, x []*graph.Value) []*graph.Value
		walks int
		text  string // part of the program
	}{
		{"forward", 3, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.MatMul(weights(b, x), x[2])}
		}, 1, "sink over i2 of v5 * b2[0 + 240*(i0<2) + 8*(i2<30) + 1*(i4<8)], * v7"},
		{"with gradients", 4, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			p := weights(b, x)
			dq, dk, dv := grads(b, x, p)
			return []*graph.Value{b.MatMul(p, x[2]), dq, dk, dv}
		}, 2, "sink over i1 of"},
		{"with gradients, weights computed again", 4, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			o := b.MatMul(weights(b, x), x[2])
			dq, dk, dv := grads(b, x, weights(b, x))
			return []*graph.Value{o, dq, dk, dv}
		}, 2, "sink over i1 of"},
		{"gradients without the forward pass: nothing gives the sums of rows", 4, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			dq, dk, dv := grads(b, x, weights(b, x))
			return []*graph.Value{dq, dk, dv}
		}, 0, "contract"},
		{"weights handed out", 3, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			p := weights(b, x)
			return []*graph.Value{b.MatMul(p, x[2]), p}
		}, 0, "contract"},
		{"a maximum that something else uses", 3, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			s := b.MatMul(x[0], swap(b, x[1]))
			most := b.Op("ReduceMax", []*graph.Value{s, b.Ints(-1)})
			e := b.Mul(b.Unary("Exp", b.Sub(s, most)), most)
			return []*graph.Value{b.MatMul(e, x[2])}
		}, 0, "contract"},
		{"not an exponential", 3, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			s := b.MatMul(x[0], swap(b, x[1]))
			e := b.Unary("Tanh", b.Sub(s, b.Op("ReduceMax", []*graph.Value{s, b.Ints(-1)})))
			return []*graph.Value{b.MatMul(e, x[2])}
		}, 0, "contract"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, feed, err := op.SampleModel(&op.Def{}, op.Sample{In: uniform(2, shape[:c.in]...), Build: c.build}, 5, "")
			if err != nil {
				t.Fatal(err)
			}
			want := evaluate(t, m, feed)
			p := fused(t, m)
			w := &legal.Walker{Large: 1000, Better: func(*legal.Walk, []legal.Kernel) bool { return true }}
			if n := w.Walks(p); n != c.walks {
				t.Errorf("%d walks, want %d\n%s", n, c.walks, p)
			}
			if err := p.Verify(); err != nil {
				t.Fatalf("%v\n%s", err, p)
			}
			if !strings.Contains(p.String(), c.text) {
				t.Errorf("no %q in\n%s", c.text, p)
			}
			compare(t, p, feed, want)
		})
	}
}
