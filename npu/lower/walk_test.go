package lower_test

import (
	"math"
	"slices"
	"testing"

	"gradtool/graph"
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
			s := b.Add(b.MatMul(x[0], swap(b, x[1])), b.Const(mask(90, 300, 3, 17)))
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
		{"gradients", [][]int64{f(1, 2, 130, 8), f(1, 2, 300, 8), f(1, 2, 300, 8), f(1, 2, 130, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			g := grads{score: func(s *graph.Value) *graph.Value { return b.MulScalar(s, 0.25) }, back: func(_, ds *graph.Value) *graph.Value { return b.MulScalar(ds, 0.25) }}
			return g.build(b, x)
		}, 2},
		{"gradients of 500 queries and 1100 keys", [][]int64{f(1, 1, 500, 4), f(1, 1, 1100, 4), f(1, 1, 1100, 4), f(1, 1, 500, 4)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return (&grads{}).build(b, x)
		}, 2},
		{"gradients, computed again", [][]int64{f(2, 1, 130, 8), f(2, 1, 300, 8), f(2, 1, 300, 8), f(2, 1, 130, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return (&grads{again: true}).build(b, x)
		}, 2},
		{"gradients, a mask with rows all masked", [][]int64{f(2, 2, 90, 8), f(2, 2, 300, 8), f(2, 2, 300, 8), f(2, 2, 90, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			m := b.Const(mask(90, 300, 3, 17))
			return (&grads{score: func(s *graph.Value) *graph.Value { return b.Add(s, m) }}).build(b, x)
		}, 2},
		{"gradients, a triangle", [][]int64{f(2, 2, 90, 8), f(2, 2, 300, 8), f(2, 2, 300, 8), f(2, 2, 90, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			m := b.Const(mask(90, 300))
			return (&grads{score: func(s *graph.Value) *graph.Value { return b.Add(s, m) }}).build(b, x)
		}, 2},
		{"gradients, soft cap", [][]int64{f(1, 2, 130, 8), f(1, 2, 300, 8), f(1, 2, 300, 8), f(1, 2, 130, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			var u *graph.Value
			g := grads{score: func(s *graph.Value) *graph.Value {
				u = b.Unary("Tanh", b.MulScalar(s, 0.5))
				return b.MulScalar(u, 3)
			}, back: func(_, ds *graph.Value) *graph.Value {
				return b.MulScalar(b.Mul(b.MulScalar(ds, 3), b.Sub(b.Like(u, 1), b.Mul(u, u))), 0.5)
			}}
			return g.build(b, x)
		}, 2},
		{"gradients, weights dropped out", [][]int64{f(1, 2, 130, 8), f(1, 2, 300, 8), f(1, 2, 300, 8), f(1, 2, 130, 8), f(1, 2, 130, 300)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			keep := b.Cast(b.Op("Greater", []*graph.Value{x[4], b.Like(x[4], 0)}), graph.Float)
			drop := func(p *graph.Value) *graph.Value { return b.MulScalar(b.Mul(p, keep), 2) }
			return (&grads{drop: drop}).build(b, x[:4])
		}, 2},
		{"gradients, grouped heads, result used further", [][]int64{f(1, 2, 3, 70, 8), f(1, 2, 1, 300, 8), f(1, 2, 1, 300, 8), f(1, 2, 3, 70, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			y := (&grads{}).build(b, x)
			for _, i := range []int{2, 3} {
				y[i] = b.Unary("Tanh", b.Op("ReduceSum", []*graph.Value{y[i], b.Ints(2)}))
			}
			y[0] = b.Unary("Relu", y[0])
			return y
		}, 2},
		{"rows all masked are 0", [][]int64{f(2, 2, 90, 8), f(2, 2, 300, 8), f(2, 2, 300, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			p := softmax(b, b.Add(b.MatMul(x[0], swap(b, x[1])), b.Const(mask(90, 300, 3, 17))))
			return []*graph.Value{b.MatMul(finite(b, p, p), x[2])}
		}, 1},
		{"gradients, rows all masked are 0", [][]int64{f(2, 2, 90, 8), f(2, 2, 300, 8), f(2, 2, 300, 8), f(2, 2, 90, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			m := b.Const(mask(90, 300, 3, 17))
			g := grads{score: func(s *graph.Value) *graph.Value { return b.Add(s, m) }}
			p := (*graph.Value)(nil)
			g.drop = func(y *graph.Value) *graph.Value {
				if p == nil {
					p = y
				}
				return finite(b, p, y)
			}
			return g.build(b, x)
		}, 2},
		{"gradients, rows all masked are 0 in them too", [][]int64{f(2, 2, 90, 8), f(2, 2, 300, 8), f(2, 2, 300, 8), f(2, 2, 90, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			m := b.Const(mask(90, 300, 3, 17))
			g := grads{score: func(s *graph.Value) *graph.Value { return b.Add(s, m) }, guard: func(p *graph.Value) *graph.Value { return finite(b, p, p) }}
			return g.build(b, x)
		}, 2},
		{"gradients, rows all masked but for the least numbers", [][]int64{f(1, 2, 130, 8), f(1, 2, 300, 8), f(1, 2, 300, 8), f(1, 2, 130, 8), f(1, 1, 130, 300)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			keep := b.Op("Greater", []*graph.Value{x[4], b.Like(x[4], 1.98)})
			return (&grads{score: func(s *graph.Value) *graph.Value { return b.Where(keep, s, b.Like(s, -math.MaxFloat32)) }}).build(b, x[:4])
		}, 2},
		{"Attention, causal, grouped heads, limited scores", [][]int64{f(1, 4, 150, 8), f(1, 2, 300, 8), f(1, 2, 300, 12)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.Op("Attention", x, graph.IntAttr("is_causal", 1), graph.FloatAttr("softcap", 2))}
		}, 1},
		{"Attention, heads side by side, a mask of truth values", [][]int64{f(2, 150, 32), f(2, 300, 32), f(2, 300, 32), f(150, 300)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			keep := b.Op("Less", []*graph.Value{x[3], b.Like(x[3], 1)})
			return []*graph.Value{b.Op("Attention", append(x[:3:3], keep), graph.IntAttr("q_num_heads", 4), graph.IntAttr("kv_num_heads", 4))}
		}, 1},
		{"gradients, rows without keys are 0 by a test, and where they are no numbers", [][]int64{f(1, 2, 130, 8), f(1, 2, 300, 8), f(1, 2, 300, 8), f(1, 2, 130, 8), f(1, 1, 130, 300)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			keep := b.Op("Greater", []*graph.Value{x[4], b.Like(x[4], 1.985)})
			some := b.Op("Greater", []*graph.Value{b.Op("ReduceMax", []*graph.Value{b.Cast(keep, graph.Int32), b.Ints(-1)}), b.Cast(b.IntScalar(0), graph.Int32)})
			g := grads{score: func(s *graph.Value) *graph.Value { return b.Where(keep, s, b.Like(s, -math.MaxFloat32)) },
				drop: func(p *graph.Value) *graph.Value { return b.Where(some, p, b.Like(p, 0)) },
				late: func(p *graph.Value) *graph.Value { return finite(b, p, p) },
				back: func(_, ds *graph.Value) *graph.Value { return b.Where(keep, ds, b.Like(ds, 0)) }}
			return g.build(b, x[:4])
		}, 2},
		{"gradients, rows without keys are 0", [][]int64{f(1, 2, 130, 8), f(1, 2, 300, 8), f(1, 2, 300, 8), f(1, 2, 130, 8), f(1, 1, 130, 300)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			keep := b.Op("Greater", []*graph.Value{x[4], b.Like(x[4], 1.985)})
			some := b.Op("Greater", []*graph.Value{b.Op("ReduceMax", []*graph.Value{b.Cast(keep, graph.Int32), b.Ints(-1)}), b.Cast(b.IntScalar(0), graph.Int32)})
			g := grads{score: func(s *graph.Value) *graph.Value { return b.Where(keep, s, b.Like(s, -math.MaxFloat32)) },
				guard: func(p *graph.Value) *graph.Value { return b.Where(some, p, b.Like(p, 0)) },
				back:  func(_, ds *graph.Value) *graph.Value { return b.Where(keep, ds, b.Like(ds, 0)) }}
			return g.build(b, x[:4])
		}, 2},
		{"weights that somebody else reads", [][]int64{f(1, 2, 130, 8), f(1, 2, 300, 8), f(1, 2, 300, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			p := softmax(b, b.MatMul(x[0], swap(b, x[1])))
			return []*graph.Value{b.MatMul(p, x[2]), p}
		}, 0},
		{"weights used in another way", [][]int64{f(1, 2, 130, 8), f(1, 2, 300, 8), f(1, 2, 300, 8)}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.MatMul(b.Unary("Sqrt", softmax(b, b.MatMul(x[0], swap(b, x[1])))), x[2])}
		}, 0},
	} {
		for _, mach := range walkMachines(t) {
			t.Run(c.name+", "+mach.Name, func(t *testing.T) { walkCase(t, mach, c.in, c.build, c.walks) })
		}
	}
}

// walkMachines returns machines on which rows of a few hundred places are long: a small one, one that fuses MACs and flushes denormals, and a larger
// one without most of its memory.
func walkMachines(t *testing.T) []*machine.Machine {
	var out []*machine.Machine
	for i, name := range []string{"ref-small", "ref-small", "ref-edge"} {
		m, err := machine.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		switch i {
		case 1:
			m.Name += ", fused, flushing"
			m.Numerics.Fused, m.Numerics.Flush = true, true
		case 2:
			m.Name += ", little memory"
			m.Scratchpad.Bytes, m.Accumulator.Bytes = 96<<10, 32<<10
		}
		out = append(out, m)
	}
	return out
}

func walkCase(t *testing.T, mach *machine.Machine, in [][]int64, build func(b *op.Builder, x []*graph.Value) []*graph.Value, walks int) {
	r := agree(t, mach, op.Sample{In: uniform(2, in...), Build: build}, 5)
	if n := walkCount(r); n != walks {
		t.Errorf("%d walks, want %d\n%s", n, walks, r.Legal)
	}
}

// grads builds attention and its gradients, of queries, keys, values and the result's cotangent: weights drop(softmax(score(q k^T))).
type grads struct {
	score func(s *graph.Value) *graph.Value
	back  func(s, ds *graph.Value) *graph.Value // from the cotangent of what score gives to that of its operand
	drop  func(p *graph.Value) *graph.Value     // linear
	guard func(p *graph.Value) *graph.Value     // weights as they are used, those of the gradients too
	late  func(p *graph.Value) *graph.Value     // weights as the gradient of the scores uses them
	again bool                                  // the backward pass computes the weights again
}

// build returns the result and the cotangents of queries, keys and values.
func (g *grads) build(b *op.Builder, x []*graph.Value) []*graph.Value {
	q, k, v, do := x[0], x[1], x[2], x[3]
	swap := func(x *graph.Value) *graph.Value {
		if n := len(x.Type.Shape); n == 5 {
			return b.Unary("Transpose", x, graph.IntsAttr("perm", 0, 1, 2, 4, 3))
		}
		return b.Unary("Transpose", x, graph.IntsAttr("perm", 0, 1, 3, 2))
	}
	drop := func(p *graph.Value) *graph.Value {
		if g.drop != nil {
			return g.drop(p)
		}
		return p
	}
	weights := func() (s, p *graph.Value) {
		s = b.MatMul(q, swap(k))
		z := s
		if g.score != nil {
			z = g.score(s)
		}
		p = b.Op("Softmax", []*graph.Value{z})
		if g.guard != nil {
			p = g.guard(p)
		}
		return s, p
	}
	s, p := weights()
	o := b.MatMul(drop(p), v)
	if g.again {
		s, p = weights()
	}
	dv := b.MatMul(swap(drop(p)), do)
	if g.late != nil {
		p = g.late(p)
	}
	dp := drop(b.MatMul(do, swap(v)))
	ds := b.Mul(p, b.Sub(dp, b.Op("ReduceSum", []*graph.Value{b.Mul(dp, p), b.Ints(-1)})))
	if g.back != nil {
		ds = g.back(s, ds)
	}
	return []*graph.Value{o, b.MatMul(ds, k), b.MatMul(swap(ds), q), dv}
}

// finite returns y where p is a number, else 0.
func finite(b *op.Builder, p, y *graph.Value) *graph.Value {
	return b.Where(b.Unary("IsNaN", p), b.Like(y, 0), y)
}

// mask is one of attention: 0 before the diagonal and -inf behind it, and -inf in all of some rows.
func mask(rows, cols int, blank ...int) *graph.Tensor {
	var x []float32
	for i := range rows {
		for j := range cols {
			y := float32(0)
			if j > i*cols/rows || slices.Contains(blank, i) {
				y = float32(math.Inf(-1))
			}
			x = append(x, y)
		}
	}
	return graph.Floats([]int64{int64(rows), int64(cols)}, x...)
}
