package lower_test

import (
	"reflect"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/npu/isa"
	"gradtool/npu/lower"
	"gradtool/npu/machine"
)

// traffic returns the bytes that a program reads from DRAM and writes there, by purpose.
func traffic(r *lower.Result) (read, written [isa.NumPurposes]int64) {
	for i := range r.List {
		if d, ok := r.List[i].Args.(*isa.DMA); ok {
			w := r.List[i].Work(r.Program.Machine)
			read[d.Purpose] += w.Read
			written[d.Purpose] += w.Written
		}
	}
	return read, written
}

// TestTraffic counts what goes to DRAM and comes from there, of graphs whose values fit on chip and of others, and compares the results with the
// evaluator's. The graphs have the inputs x, w and v.
func TestTraffic(t *testing.T) {
	f := func(d ...int64) []int64 { return d }
	type bytes struct{ stored, loaded, inputs int64 } // of intermediate values, and of inputs
	for _, c := range []struct {
		name    string
		in      [][]int64
		build   func(b *op.Builder, x []*graph.Value) []*graph.Value
		want    bytes
		unfused bytes // at least
	}{
		{"products, activations and a normalization that fit", [][]int64{f(64, 64), f(64, 64), f(64, 64), f(64)},
			func(b *op.Builder, x []*graph.Value) []*graph.Value {
				y := b.Unary("Gelu", b.MatMul(x[0], x[1]))
				z := b.Add(x[0], b.MatMul(y, x[2]))
				return []*graph.Value{b.MatMul(b.Op("LayerNormalization", []*graph.Value{z, x[3], x[3]}), x[1])}
			}, bytes{0, 0, 4 * (3*64*64 + 64)}, bytes{4 * 4 * 64 * 64, 4 * 5 * 64 * 64, 4 * 3 * 64 * 64}},
		{"attention that fits", [][]int64{f(2, 2, 64, 32), f(2, 2, 64, 32), f(2, 2, 64, 32)},
			func(b *op.Builder, x []*graph.Value) []*graph.Value {
				s := b.MatMul(x[0], b.Unary("Transpose", x[1], graph.IntsAttr("perm", 0, 1, 3, 2)))
				return []*graph.Value{b.MatMul(b.Op("Softmax", []*graph.Value{s}), x[2])}
			}, bytes{0, 0, 4 * 3 * 4 * 64 * 32}, bytes{2 * 4 * 4 * 64 * 64, 2 * 4 * 4 * 64 * 64, 4 * 3 * 4 * 64 * 32}},
		// The scores of 1024 places are made, turned into probabilities and used up in strips.
		{"long attention", [][]int64{f(1, 1, 1024, 32), f(1, 1, 1024, 32), f(1, 1, 1024, 32)},
			func(b *op.Builder, x []*graph.Value) []*graph.Value {
				s := b.MatMul(x[0], b.Unary("Transpose", x[1], graph.IntsAttr("perm", 0, 1, 3, 2)))
				return []*graph.Value{b.MatMul(b.Op("Softmax", []*graph.Value{s}), x[2])}
			}, bytes{0, 0, 4 * 3 * 1024 * 32}, bytes{2 * 4 * 1024 * 1024, 2 * 4 * 1024 * 1024, 4 * 3 * 1024 * 32}},
		// The first product is too large to stay: it is stored once and read twice. Its tanh is computed where it is read.
		{"computed again", [][]int64{f(1024, 64), f(64, 512), f(512, 64)},
			func(b *op.Builder, x []*graph.Value) []*graph.Value {
				y := b.MatMul(x[0], x[1])
				u := b.Unary("Tanh", y)
				return []*graph.Value{b.MatMul(y, x[2]), b.Mul(b.MatMul(x[0], b.Unary("Transpose", x[2], graph.IntsAttr("perm", 1, 0))), u)}
			}, bytes{4 * 1024 * 512, 2 * 4 * 1024 * 512, 4 * (1024*64 + 64*512 + 512*64)}, bytes{2 * 4 * 1024 * 512, 3 * 4 * 1024 * 512, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			mach, err := machine.Builtin("ref-edge")
			if err != nil {
				t.Fatal(err)
			}
			m, feed, err := op.SampleModel(&op.Def{}, op.Sample{In: uniform(0.2, c.in...), Build: c.build}, 5, "")
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
			run := func(plain bool) (*lower.Result, bytes) {
				r, err := lower.Model(m, lower.Options{Machine: mach, Plain: plain})
				if err != nil {
					t.Fatal(err)
				}
				read, written := traffic(r)
				return r, bytes{written[isa.Activation], read[isa.Activation], read[isa.Input]}
			}
			r, got := run(false)
			if got != c.want {
				t.Errorf("traffic %+v, want %+v\n%s", got, c.want, r.Tiles())
			}
			compare(t, r, execute(t, r, feed), want)
			if again, _ := run(false); !reflect.DeepEqual(r.Program.Queues, again.Program.Queues) {
				t.Error("lowered twice, the instructions differ")
			}
			if _, u := run(true); u.stored < c.unfused.stored || u.loaded < c.unfused.loaded || u.inputs < c.unfused.inputs {
				t.Errorf("unfused: traffic %+v, want at least %+v", u, c.unfused)
			}
		})
	}
}
