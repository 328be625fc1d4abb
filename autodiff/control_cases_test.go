package autodiff

import (
	"fmt"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

type vals = []*graph.Value

// controlCases are functions with control flow that single-operator samples do not show.
func controlCases() []op.Sample {
	floats := func(rank int) graph.Type { return graph.TensorOf(graph.Float, graph.UnknownShape(rank)) }
	count := func(n int64) op.Arg { return op.IS(n).Variable() }
	flag := func(x float64) op.Arg {
		return op.Arg{Elem: graph.Bool, Shape: []int{}, Values: []float64{x}}
	}
	// swap carries two values crosswise and a third that never changes.
	swap := func(b *op.Builder, in vals) vals {
		return b.Loop(in[0], nil, in[1:4], nil, func(b *op.Builder, i *graph.Value, s vals) op.LoopBody {
			return op.LoopBody{Next: vals{s[1], b.Mul(s[0], s[2]), s[2]}, Stack: vals{b.Mul(s[0], s[1]), s[2], in[1]}}
		}).Out
	}
	// branch takes another branch in every other iteration; one of them uses a captured value.
	branch := func(b *op.Builder, in vals) vals {
		return b.Loop(in[0], nil, in[1:2], nil, func(b *op.Builder, i *graph.Value, s vals) op.LoopBody {
			odd := b.Binary("Equal", b.Binary("Mod", i, b.IntScalar(2)), b.IntScalar(1))
			y := b.If(odd, func(b *op.Builder) vals { return vals{b.Mul(s[0], in[2])} },
				func(b *op.Builder) vals { return vals{b.Unary("Sin", s[0])} })
			return op.LoopBody{Next: y}
		}).Out
	}
	// triangle runs the inner loop as often as the outer one has run: stacks of the inner one differ in length.
	triangle := func(b *op.Builder, in vals) vals {
		return b.Loop(in[0], nil, in[1:2], nil, func(b *op.Builder, i *graph.Value, s vals) op.LoopBody {
			inner := b.Loop(i, nil, s, nil, func(b *op.Builder, j *graph.Value, t vals) op.LoopBody {
				return op.LoopBody{Next: vals{b.Unary("Sin", b.Mul(t[0], in[2]))}, Stack: vals{b.ReduceAll(t[0])}}
			})
			return op.LoopBody{Next: vals{b.Add(inner.Out[0], b.Mul(s[0], b.ReduceAll(inner.Out[1])))}}
		}).Out
	}
	// while runs without a trip count, with a weight matrix.
	while := func(b *op.Builder, in vals) vals {
		small := func(b *op.Builder, x *graph.Value) *graph.Value {
			return b.Binary("Less", b.ReduceAll(b.Mul(x, x)), b.Like(x, 40))
		}
		return b.Loop(nil, small(b, in[0]), in[:1], nil, func(b *op.Builder, i *graph.Value, s vals) op.LoopBody {
			y := b.MatMul(s[0], in[1])
			return op.LoopBody{Cond: small(b, y), Next: vals{y}, Stack: vals{b.Unary("Tanh", b.MatMul(y, in[1]))}}
		}).Out
	}
	// rows reads rows of a captured matrix, by the iteration's number, from the back, and one fixed.
	rows := func(b *op.Builder, in vals) vals {
		return b.Loop(in[0], nil, in[1:2], nil, func(b *op.Builder, i *graph.Value, s vals) op.LoopBody {
			back := b.Gather(in[2], b.Sub(b.IntScalar(-1), i), 0)
			y := b.Add(b.Mul(s[0], b.Gather(in[2], i, 0)), b.Mul(back, b.Gather(in[2], b.IntScalar(1), 0)))
			return op.LoopBody{Next: vals{y}}
		}).Out
	}
	// list carries a sequence, reads the element before and, in the end, joins all.
	list := func(b *op.Builder, in vals) vals {
		start := b.Op("SequenceConstruct", in[1:2])
		n := b.Loop(in[0], nil, vals{start}, nil, func(b *op.Builder, i *graph.Value, s vals) op.LoopBody {
			last := b.Op("SequenceAt", vals{s[0], i})
			first := b.Op("SequenceAt", vals{s[0], b.IntScalar(0)})
			return op.LoopBody{Next: vals{b.Op("SequenceInsert", vals{s[0], b.Mul(last, b.Mul(first, in[2]))})}}
		})
		return vals{b.Unary("ConcatFromSequence", n.Out[0], graph.IntAttr("axis", 0), graph.IntAttr("new_axis", 1))}
	}
	// pick reads a captured sequence of tensors of different sizes.
	pick := func(b *op.Builder, in vals) vals {
		s := b.Op("SequenceConstruct", in[1:4])
		return b.Loop(in[0], nil, vals{b.Scalar(graph.Float, 1)}, nil, func(b *op.Builder, i *graph.Value, t vals) op.LoopBody {
			x := b.Op("SequenceAt", vals{s, i})
			return op.LoopBody{Next: vals{b.Mul(t[0], b.ReduceAll(b.Mul(x, x)))}}
		}).Out
	}
	optional := func(b *op.Builder, in vals) vals {
		o := b.Op("Optional", in[1:2])
		return b.If(in[0], func(b *op.Builder) vals {
			x := b.Unary("OptionalGetElement", o)
			return vals{b.Mul(x, in[2])}
		}, func(b *op.Builder) vals { return vals{b.Mul(in[2], in[2])} })
	}
	// noise multiplies by what a generator gives, which the reverse form must not draw again.
	noise := func(b *op.Builder, in vals) vals {
		return b.Loop(in[0], nil, in[1:2], nil, func(b *op.Builder, i *graph.Value, s vals) op.LoopBody {
			return op.LoopBody{Next: vals{b.Mul(b.Mul(s[0], s[0]), b.Unary("RandomNormalLike", s[0]))}}
		}).Out
	}
	noisyBranch := func(b *op.Builder, in vals) vals {
		return b.If(in[0], func(b *op.Builder) vals { return vals{b.Mul(in[1], b.Unary("RandomNormalLike", in[1]))} },
			func(b *op.Builder) vals { return vals{in[1]} })
	}
	// heavy has a matrix product in a branch that is kept rather than computed again.
	heavy := func(b *op.Builder, in vals) vals {
		return b.If(in[0], func(b *op.Builder) vals { return vals{b.Unary("Sigmoid", b.MatMul(in[1], in[2]))} },
			func(b *op.Builder) vals { return vals{b.Unary("Exp", b.Mul(in[1], in[2]))} })
	}
	// scanned runs a Scan with a captured weight inside a Loop, the state going round.
	scanned := func(b *op.Builder, in vals) vals {
		return b.Loop(in[0], nil, in[1:2], nil, func(b *op.Builder, i *graph.Value, s vals) op.LoopBody {
			c := b.Inner("cell")
			h, x := c.Param("h", floats(1)), c.Param("x", floats(1))
			next := c.Unary("Tanh", c.Add(c.MatMul(h, in[3]), x))
			c.Return(next, c.Mul(next, next))
			n := b.Node("Scan", vals{s[0], in[2]}, 2, graph.GraphAttr("body", c.G), graph.IntAttr("num_scan_inputs", 1))
			return op.LoopBody{Next: vals{b.Add(n.Out[0], b.ReduceSum(n.Out[1], false, 0))}}
		}).Out
	}
	// picked runs a Scan in whose body shapes change from one iteration to the next, in a branch.
	picked := func(b *op.Builder, in vals) vals {
		return b.If(in[0], func(b *op.Builder) vals {
			s := b.Inner("row")
			x := s.Param("x", floats(1))
			some := s.Binary("Greater", x, s.Like(x, 0))
			p := s.Mul(s.Op("Compress", vals{x, some}), s.Op("Compress", vals{in[2], some}))
			s.Return(s.ReduceAll(s.Mul(s.Unary("Sin", p), p)))
			return b.Node("Scan", in[1:2], 1, graph.GraphAttr("body", s.G), graph.IntAttr("num_scan_inputs", 1)).Out
		}, func(b *op.Builder) vals { return vals{b.ReduceSum(in[1], false, 1)} })
	}
	// old has the forms of old exporters: iteration number and condition as vectors, an initializer in the body.
	old := func(b *op.Builder, in vals) vals {
		s := b.Inner("body")
		i := s.Param("i", graph.TensorOf(graph.Int64, graph.ShapeOf(1)))
		going := s.Param("going", graph.TensorOf(graph.Bool, graph.ShapeOf(1)))
		x := s.Param("x", in[1].Type)
		w := s.G.AddInit(b.G.Model.Fresh("w"), graph.Floats([]int64{2}, 0.5, -1.5))
		y := s.Mul(s.Mul(x, w), s.Add(x, s.Cast(i, graph.Float)))
		s.Return(going, y)
		trips := b.Unsqueeze(in[0], 0)
		return b.LoopOver(s.G, trips, b.Unsqueeze(b.True(), 0), in[1:2]).Out
	}
	// mapped has a SequenceMap with a captured factor in a branch.
	mapped := func(b *op.Builder, in vals) vals {
		s := b.Op("SequenceConstruct", in[1:3])
		return b.If(in[0], func(b *op.Builder) vals {
			f := b.Inner("product")
			x := f.Param("x", floats(1))
			f.Return(f.Mul(f.Mul(x, x), in[3]))
			m := b.Node("SequenceMap", vals{s}, 1, graph.GraphAttr("body", f.G)).Out[0]
			return vals{b.Unary("ConcatFromSequence", m, graph.IntAttr("axis", 0))}
		}, func(b *op.Builder) vals { return vals{in[1]} })
	}
	// constant is a loop whose carried value is overwritten by a captured one: with no iteration it is the operand.
	constant := func(b *op.Builder, in vals) vals {
		return b.Loop(in[0], nil, in[1:2], nil, func(b *op.Builder, i *graph.Value, s vals) op.LoopBody {
			return op.LoopBody{Next: vals{in[2]}, Stack: vals{b.Mul(s[0], s[0])}}
		}).Out[:1]
	}
	return []op.Sample{
		{Name: "swap", In: []op.Arg{count(3), op.F(2), op.F(2), op.F(2)}, Build: swap},
		{Name: "branch in loop", In: []op.Arg{count(4), op.F(3), op.F(3)}, Build: branch},
		{Name: "triangle", In: []op.Arg{count(3), op.F(2), op.F(2)}, Build: triangle},
		{Name: "while", In: []op.Arg{op.FV([]int{2, 2}, 1, 0.2, -0.3, 0.9), op.FV([]int{2, 2}, 1.3, 0.4, -0.2, 1.5)}, Build: while},
		{Name: "while not", In: []op.Arg{op.FR(8, 9, 2, 2), op.F(2, 2)}, Build: func(b *op.Builder, in vals) vals { return while(b, in)[:1] }},
		{Name: "rows", In: []op.Arg{count(3), op.F(2), op.F(4, 2)}, Build: rows},
		{Name: "rows, no trips", In: []op.Arg{count(0), op.F(2), op.F(4, 2)}, Build: rows},
		{Name: "list", In: []op.Arg{count(3), op.F(2), op.F(2)}, Build: list},
		{Name: "list, no trips", In: []op.Arg{count(0), op.F(2), op.F(2)}, Build: list},
		{Name: "pick", In: []op.Arg{count(3), op.F(2), op.F(3), op.F(1)}, Build: pick},
		{Name: "optional", In: []op.Arg{flag(1), op.F(2), op.F(2)}, Build: optional},
		{Name: "optional, not read", In: []op.Arg{flag(0), op.F(2), op.F(2)}, Build: optional},
		{Name: "noise", In: []op.Arg{count(2), op.F(3)}, Build: noise},
		{Name: "noisy branch", In: []op.Arg{flag(1), op.F(3)}, Build: noisyBranch},
		{Name: "noisy branch, not taken", In: []op.Arg{flag(0), op.F(3)}, Build: noisyBranch},
		{Name: "product in branch", In: []op.Arg{flag(1), op.F(2, 2), op.F(2, 2)}, Build: heavy},
		{Name: "product in branch, not taken", In: []op.Arg{flag(0), op.F(2, 2), op.F(2, 2)}, Build: heavy},
		{Name: "scan in loop", In: []op.Arg{count(2), op.F(2), op.F(3, 2), op.F(2, 2)}, Build: scanned},
		{Name: "scan of changing shapes", In: []op.Arg{flag(1), op.FV([]int{3, 3}, 1, -1, 2, -1, -2, 3, 0.5, 0.25, 1.5), op.F(3)}, Build: picked},
		{Name: "old forms", In: []op.Arg{count(3), op.F(2)}, Build: old},
		{Name: "map in branch", In: []op.Arg{flag(1), op.F(2), op.F(2), op.F(2)}, Build: mapped},
		{Name: "overwritten", In: []op.Arg{count(2), op.F(2), op.F(2)}, Build: constant},
		{Name: "overwritten, no trips", In: []op.Arg{count(0), op.F(2), op.F(2)}, Build: constant},
	}
}

// TestControlFlow compares derivatives, first and second, of the cases with differences, for each plan.
func TestControlFlow(t *testing.T) {
	d := op.Lookup(op.Key{Name: "Loop"})
	for _, text := range []string{"stack", "recompute", "checkpoint:2"} {
		for i, s := range controlCases() {
			for _, hide := range []string{"", "rank", "symbols", "all"} {
				for order := 1; order <= 2; order++ {
					t.Run(fmt.Sprintf("%s/%s/%s/%d", text, s.Title(i), hide, order), func(t *testing.T) {
						c, err := newCheck(d, s, hide)
						if err != nil {
							t.Fatal(err)
						}
						c.plan, _ = ParseLoopPlan(text)
						for o := 1; o <= order && err == nil; o++ {
							err = c.differentiate(o)
						}
						if err != nil {
							t.Fatal(err)
						}
						c.compare(t)
						if err := op.Verify(c.m); err != nil {
							t.Error(err)
						}
					})
				}
			}
		}
	}
}

// TestBlockedInside names nodes without a derivative inside subgraphs, and only those on a path.
func TestBlockedInside(t *testing.T) {
	for _, onPath := range []bool{true, false} {
		m := graph.NewModel("test", op.SampleOpset)
		m.SetOpset("elsewhere", 1)
		x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(2)))
		n := m.Graph.AddInput("n", graph.TensorOf(graph.Int64, graph.ShapeOf()))
		b := op.NewBuilder(m.Graph, op.NewInfo())
		y := b.Loop(n, nil, vals{x}, nil, func(b *op.Builder, i *graph.Value, s vals) op.LoopBody {
			w := b.NodeIn("elsewhere", "Mystery", vals{s[0]}, 1).Out[0]
			w.Type = x.Type
			if !onPath {
				return op.LoopBody{Next: vals{b.Neg(s[0])}, Stack: vals{w}}
			}
			return op.LoopBody{Next: vals{b.Mul(s[0], w)}}
		}).Out[0]
		before := len(m.Graph.Nodes)
		_, err := Reverse(b, []Seed{{y, x}}, vals{x})
		switch {
		case onPath && (err == nil || !strings.Contains(err.Error(), "Mystery") || !strings.Contains(err.Error(), "path from x")):
			t.Errorf("error is %v, want one that names Mystery and x", err)
		case onPath && len(m.Graph.Nodes) != before:
			t.Errorf("%d nodes were added before the error", len(m.Graph.Nodes)-before)
		case !onPath && err != nil:
			t.Error(err)
		}
	}
}
