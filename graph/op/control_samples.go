package op

import (
	"gradtool/graph"
)

// boolArg is a bool operand that inference does not see.
func boolArg(v float64) Arg { return Arg{Elem: graph.Bool, Shape: []int{}, Values: []float64{v}} }

func ifSamples() []Sample {
	branches := func(b *Builder, in []*graph.Value) []*graph.Value {
		x, y := in[1], in[2]
		return b.If(in[0], func(b *Builder) []*graph.Value {
			return vals(b.Mul(x, y), x)
		}, func(b *Builder) []*graph.Value {
			return vals(b.Sub(b.Unary("Exp", x), b.Like(x, 1)), b.Unary("Sin", x))
		})
	}
	uneven := func(b *Builder, in []*graph.Value) []*graph.Value {
		x := in[1]
		return b.If(in[0], func(b *Builder) []*graph.Value {
			return vals(b.Mul(x, x))
		}, func(b *Builder) []*graph.Value {
			return vals(b.Concat(0, x, b.Unary("Neg", x)))
		})
	}
	nested := func(b *Builder, in []*graph.Value) []*graph.Value {
		x, y := in[2], in[3]
		return b.If(in[0], func(b *Builder) []*graph.Value {
			z := b.Mul(x, y)
			return b.If(in[1], func(b *Builder) []*graph.Value { return vals(b.Mul(z, z)) },
				func(b *Builder) []*graph.Value { return vals(b.Add(z, x)) })
		}, func(b *Builder) []*graph.Value { return vals(x) })
	}
	return []Sample{
		{Name: "then", In: []Arg{boolArg(1), F(2, 3), F(2, 3)}, Build: branches},
		{Name: "else", In: []Arg{boolArg(0), F(2, 3), F(2, 3)}, Build: branches},
		{Name: "broadcast", In: []Arg{boolArg(1), F(2, 3), F(2, 1)}, Build: func(b *Builder, in []*graph.Value) []*graph.Value {
			return branches(b, in)[:1]
		}},
		{Name: "known", In: []Arg{boolArg(1).Constant(), F(2, 3), F(2, 3)}, Build: branches},
		{Name: "other shape", In: []Arg{boolArg(0).Constant(), F(2, 3)}, Build: uneven},
		{Name: "nested 11", In: []Arg{boolArg(1), boolArg(1), F(3), F(3)}, Build: nested},
		{Name: "nested 10", In: []Arg{boolArg(1), boolArg(0), F(3), F(3)}, Build: nested},
		{Name: "nested 00", In: []Arg{boolArg(0), boolArg(0), F(3), F(3)}, Build: nested},
	}
}

// countArg is an int64 scalar that inference does not see.
func countArg(n int64) Arg { return IS(n).Variable() }

func loopSamples() []Sample {
	// power: y = x^n.
	power := func(b *Builder, in []*graph.Value) []*graph.Value {
		n, x := in[0], in[1]
		return b.Loop(n, nil, vals(b.FullLike(x, 1)), nil, func(b *Builder, i *graph.Value, s []*graph.Value) LoopBody {
			return LoopBody{Next: vals(b.Mul(s[0], x))}
		}).Out
	}
	// stop: h = tanh(h*w + x[i]), collected, until the sum is over a limit.
	stop := func(b *Builder, in []*graph.Value) []*graph.Value {
		n, x, w, h := in[0], in[1], in[2], in[3]
		return b.Loop(n, b.True(), vals(h), nil, func(b *Builder, i *graph.Value, s []*graph.Value) LoopBody {
			h := b.Unary("Tanh", b.Add(b.Mul(s[0], w), b.Gather(x, i, 0)))
			return LoopBody{Cond: b.Binary("Less", b.ReduceAll(h), b.Like(h, 1)), Next: vals(h), Stack: vals(b.Mul(h, s[0]))}
		}).Out
	}
	nested := func(b *Builder, in []*graph.Value) []*graph.Value {
		n, m, x := in[0], in[1], in[2]
		return b.Loop(n, nil, vals(x), nil, func(b *Builder, i *graph.Value, s []*graph.Value) LoopBody {
			inner := b.Loop(m, nil, vals(s[0]), nil, func(b *Builder, j *graph.Value, t []*graph.Value) LoopBody {
				return LoopBody{Next: vals(b.Add(b.Unary("Sin", t[0]), b.Mul(s[0], x)))}
			})
			return LoopBody{Next: vals(b.Mul(inner.Out[0], x))}
		}).Out
	}
	// grow: the carried value gets longer in every iteration.
	grow := func(b *Builder, in []*graph.Value) []*graph.Value {
		n, x := in[0], in[1]
		t := graph.TensorOf(graph.Float, graph.Shape{graph.Unknown()})
		return b.Loop(n, nil, vals(x), []graph.Type{t}, func(b *Builder, i *graph.Value, s []*graph.Value) LoopBody {
			return LoopBody{Next: vals(b.Concat(0, b.Mul(s[0], s[0]), x))}
		}).Out
	}
	return []Sample{
		{Name: "power", In: []Arg{countArg(5), FR(0.5, 1.5, 3)}, Build: power},
		{Name: "zero trips", In: []Arg{countArg(0), FR(0.5, 1.5, 3)}, Build: power},
		{Name: "known trips", In: []Arg{IS(3), FR(0.5, 1.5, 3)}, Build: power},
		{Name: "early exit", In: []Arg{countArg(6), FV([]int{6, 2}, 0.1, -0.3, 0.3, 0.2, 0.9, 0.8, 0.1, 0.1, 0.2, 0.2, 0.3, 0.3), F(2), FR(-0.5, 0, 2)},
			Build: stop},
		{Name: "exit before start", In: []Arg{countArg(0), F(6, 2), F(2), F(2)}, Build: func(b *Builder, in []*graph.Value) []*graph.Value { return stop(b, in)[:1] }},
		{Name: "nested", In: []Arg{countArg(2), countArg(3), F(3)}, Build: nested},
		{Name: "nested, inner zero trips", In: []Arg{countArg(2), countArg(0), F(3)}, Build: nested},
		{Name: "growing", In: []Arg{countArg(3), FR(0.5, 1, 2)}, Build: grow},
		{Name: "growing, zero trips", In: []Arg{countArg(0), FR(0.5, 1, 2)}, Build: grow},
	}
}

func scanSamples() []Sample {
	// cell: state h' = tanh(h*w + x_t*u_t), collected h' and h*x_t.
	cell := func(attrs ...*graph.Attr) func(b *Builder, in []*graph.Value) []*graph.Value {
		return func(b *Builder, in []*graph.Value) []*graph.Value {
			w, h, x, u := in[0], in[1], in[2], in[3]
			s := b.Inner("cell")
			t := graph.TensorOf(graph.Float, graph.UnknownShape(1))
			hIn, xIn, uIn := s.Param("h", t), s.Param("x", t), s.Param("u", t)
			next := s.Unary("Tanh", s.Add(s.Mul(hIn, w), s.Mul(xIn, uIn)))
			s.Return(next, next, s.Mul(hIn, xIn))
			attrs := append([]*graph.Attr{graph.GraphAttr("body", s.G), graph.IntAttr("num_scan_inputs", 2)}, attrs...)
			return b.Node("Scan", vals(h, x, u), 3, attrs...).Out
		}
	}
	return []Sample{
		{Name: "forward", In: []Arg{F(2), F(2), F(4, 2), F(4, 2)}, Build: cell()},
		{Name: "axes and directions", In: []Arg{F(2), F(2), F(2, 4), F(4, 2)}, Build: cell(
			graph.IntsAttr("scan_input_axes", 1, 0), graph.IntsAttr("scan_input_directions", 0, 1),
			graph.IntsAttr("scan_output_axes", -1, 0), graph.IntsAttr("scan_output_directions", 1, 0))},
		{Name: "no state", In: []Arg{F(3, 2)}, Build: func(b *Builder, in []*graph.Value) []*graph.Value {
			s := b.Inner("square")
			x := s.Param("x", graph.TensorOf(graph.Float, graph.UnknownShape(1)))
			s.Return(s.Mul(x, x))
			return b.Node("Scan", in, 1, graph.GraphAttr("body", s.G), graph.IntAttr("num_scan_inputs", 1)).Out
		}},
	}
}

func sequenceMapSamples() []Sample {
	two := func(b *Builder, in []*graph.Value) []*graph.Value {
		seq := b.Op("SequenceConstruct", in[:3])
		other := b.Op("SequenceConstruct", vals(in[2], in[0], in[1]))
		s := b.Inner("product")
		t := graph.TensorOf(graph.Float, graph.UnknownShape(1))
		x, y, w := s.Param("x", t), s.Param("y", t), s.Param("w", t)
		s.Return(s.Mul(s.Mul(x, y), w), s.Unary("Exp", x))
		n := b.Node("SequenceMap", vals(seq, other, in[3]), 2, graph.GraphAttr("body", s.G))
		return vals(stackSequence(b, n.Out[0]), stackSequence(b, n.Out[1]))
	}
	return []Sample{{In: []Arg{F(2), F(2), F(2), F(2)}, Build: two}}
}

// stackSequence joins the elements of a sequence along a new first axis.
func stackSequence(b *Builder, s *graph.Value) *graph.Value {
	return b.Unary("ConcatFromSequence", s, graph.IntAttr("axis", 0), graph.IntAttr("new_axis", 1))
}
