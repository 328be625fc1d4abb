package op_test

import (
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// TestInlineIfs inlines Ifs with known and unknown conditions, nested, with results handed through and names
// used twice, and compares results before and after.
func TestInlineIfs(t *testing.T) {
	known := func(b *op.Builder, yes bool) *graph.Value {
		v := 0.0
		if yes {
			v = 1
		}
		return b.Scalar(graph.Bool, v)
	}
	for _, test := range []struct {
		name  string
		build func(b *op.Builder, x *graph.Value) []*graph.Value
		gone  int
	}{
		{"taken", func(b *op.Builder, x *graph.Value) []*graph.Value {
			return b.If(known(b, true), func(b *op.Builder) []*graph.Value { return []*graph.Value{b.Mul(x, x)} },
				func(b *op.Builder) []*graph.Value { return []*graph.Value{b.Neg(x)} })
		}, 1},
		{"not taken", func(b *op.Builder, x *graph.Value) []*graph.Value {
			return b.If(known(b, false), func(b *op.Builder) []*graph.Value { return []*graph.Value{b.Mul(x, x)} },
				func(b *op.Builder) []*graph.Value { return []*graph.Value{b.Neg(x)} })
		}, 1},
		{"open", func(b *op.Builder, x *graph.Value) []*graph.Value {
			return b.If(b.Binary("Greater", b.ReduceAll(x), b.Like(x, 0)), func(b *op.Builder) []*graph.Value { return []*graph.Value{b.Mul(x, x)} },
				func(b *op.Builder) []*graph.Value { return []*graph.Value{b.Neg(x)} })
		}, 0},
		{"nested, handed through and doubled", func(b *op.Builder, x *graph.Value) []*graph.Value {
			return b.If(known(b, true), func(b *op.Builder) []*graph.Value {
				y := b.Unary("Exp", x)
				z := b.If(known(b, false), func(b *op.Builder) []*graph.Value { return []*graph.Value{x} },
					func(b *op.Builder) []*graph.Value { return []*graph.Value{b.Mul(y, x)} })[0]
				return []*graph.Value{z, x, y, y}
			}, func(b *op.Builder) []*graph.Value { return []*graph.Value{x, x, x, x} })
		}, 2},
		{"in an open one, names used twice", func(b *op.Builder, x *graph.Value) []*graph.Value {
			cond := b.Binary("Greater", b.ReduceAll(x), b.Like(x, 0))
			inner := func(b *op.Builder) []*graph.Value {
				out := b.If(known(b, true), func(b *op.Builder) []*graph.Value {
					w := b.Unary("Exp", x)
					w.Name = "w"
					return []*graph.Value{b.Mul(w, x)}
				}, func(b *op.Builder) []*graph.Value { return []*graph.Value{x} })
				return []*graph.Value{b.Neg(out[0])}
			}
			return b.If(cond, inner, inner)
		}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := graph.NewModel("test", op.SampleOpset)
			x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(3)))
			b := op.NewBuilder(m.Graph, op.NewInfo())
			m.Graph.SetOutputs(test.build(b, x)...)
			if b.Err != nil {
				t.Fatal(b.Err)
			}
			in := op.NewArray(graph.Float, []int{3}, false)
			copy(in.F32, []float32{0.5, -1, 2})
			before := run(t, m, in)
			if got := op.InlineIfs(m, b.Info); got != test.gone {
				t.Errorf("%d inlined, want %d", got, test.gone)
			}
			if err := graph.Verify(m); err != nil {
				t.Error(err)
			}
			after := run(t, m, in)
			for i := range before {
				if before[i].String() != after[i].String() {
					t.Errorf("output %d was %s, is %s", i, before[i], after[i])
				}
			}
			seen := map[string]bool{}
			for g := range m.Graph.Graphs() {
				for v := range g.Values() {
					if seen[v.Name] {
						t.Errorf("two values are named %s", v.Name)
					}
					seen[v.Name] = true
				}
			}
		})
	}
}

func run(t *testing.T, m *graph.Model, in ...*op.Array) []*op.Array {
	t.Helper()
	machine, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := machine.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
