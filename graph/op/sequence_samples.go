package op

import (
	"gradtool/graph"
)

// sequenceOf returns a build function that hands f the sequence of the first n operands and the other operands.
func sequenceOf(n int, f func(b *Builder, s *graph.Value, rest []*graph.Value) *graph.Value) func(*Builder, []*graph.Value) []*graph.Value {
	return func(b *Builder, in []*graph.Value) []*graph.Value {
		return vals(f(b, b.Op("SequenceConstruct", in[:n:n]), in[n:]))
	}
}

func constructSamples() []Sample {
	return []Sample{{In: []Arg{F(2, 3), F(2, 3), F(2, 3)}, Build: sequenceOf(3, func(b *Builder, s *graph.Value, _ []*graph.Value) *graph.Value {
		return stackSequence(b, s)
	})}}
}

func emptySamples() []Sample {
	return []Sample{{In: []Arg{F(2)}, Build: func(b *Builder, in []*graph.Value) []*graph.Value {
		s := b.Op("SequenceEmpty", nil)
		return vals(b.Op("SequenceLength", vals(s)), stackSequence(b, b.Op("SequenceInsert", vals(s, in[0]))))
	}}}
}

func insertSamples() []Sample {
	insert := sequenceOf(2, func(b *Builder, s *graph.Value, rest []*graph.Value) *graph.Value {
		return stackSequence(b, b.Op("SequenceInsert", append(vals(s), rest...)))
	})
	return []Sample{
		{Name: "end", In: []Arg{F(3), F(3), F(3)}, Build: insert},
		{Name: "front", In: []Arg{F(3), F(3), F(3), IS(0)}, Build: insert},
		{Name: "from the back", In: []Arg{F(3), F(3), F(3), countArg(-1)}, Build: insert},
	}
}

func eraseSamples() []Sample {
	erase := sequenceOf(3, func(b *Builder, s *graph.Value, rest []*graph.Value) *graph.Value {
		return stackSequence(b, b.Op("SequenceErase", append(vals(s), rest...)))
	})
	return []Sample{
		{Name: "end", In: []Arg{F(3), F(3), F(3)}, Build: erase},
		{Name: "middle", In: []Arg{F(3), F(3), F(3), countArg(1)}, Build: erase},
		{Name: "from the back", In: []Arg{F(3), F(3), F(3), IS(-3)}, Build: erase},
	}
}

func atSamples() []Sample {
	get := sequenceOf(3, func(b *Builder, s *graph.Value, rest []*graph.Value) *graph.Value {
		x := b.Op("SequenceAt", append(vals(s), rest...))
		return b.Mul(x, x)
	})
	return []Sample{
		{Name: "known", In: []Arg{F(3), F(4), F(2), IS(1)}, Build: get},
		{Name: "run time", In: []Arg{F(3), F(4), F(2), countArg(0)}, Build: get},
		{Name: "from the back", In: []Arg{F(3), F(4), F(2), countArg(-1)}, Build: get},
	}
}

func lengthSamples() []Sample {
	return []Sample{{In: []Arg{F(3), F(4)}, Build: sequenceOf(2, func(b *Builder, s *graph.Value, _ []*graph.Value) *graph.Value {
		return b.Op("SequenceLength", vals(s))
	})}}
}

func splitToSequenceSamples() []Sample {
	// split squares and joins the pieces.
	split := func(at int64, attrs ...*graph.Attr) func(b *Builder, in []*graph.Value) []*graph.Value {
		return func(b *Builder, in []*graph.Value) []*graph.Value {
			x := b.Op("SequenceAt", vals(b.Op("SplitToSequence", in, attrs...), b.IntScalar(at)))
			return vals(b.Mul(x, x))
		}
	}
	axis := graph.IntAttr("axis", -1)
	return []Sample{
		{Name: "ones", In: []Arg{F(3, 2)}, Build: split(1)},
		{Name: "dropped axis", In: []Arg{F(3, 2)}, Build: split(-1, axis, graph.IntAttr("keepdims", 0))},
		{Name: "even", In: []Arg{F(6, 2), IS(3)}, Build: split(1)},
		{Name: "remainder", In: []Arg{F(2, 7), IS(3)}, Build: split(2, axis)},
		{Name: "listed", In: []Arg{F(2, 6), I(1, 3, 2)}, Build: split(1, axis)},
		{Name: "run time", In: []Arg{F(2, 6), I(1, 3, 2).Variable()}, Build: split(1, axis)},
	}
}

func concatFromSequenceSamples() []Sample {
	join := func(axis, fresh int64) func(*Builder, []*graph.Value) []*graph.Value {
		return func(b *Builder, in []*graph.Value) []*graph.Value {
			y := b.Unary("ConcatFromSequence", b.Op("SequenceConstruct", in), graph.IntAttr("axis", axis), graph.IntAttr("new_axis", fresh))
			return vals(b.Mul(y, y))
		}
	}
	return []Sample{
		{Name: "rows", In: []Arg{F(1, 2), F(3, 2), F(2, 2)}, Build: join(0, 0)},
		{Name: "columns", In: []Arg{F(2, 1), F(2, 3)}, Build: join(-1, 0)},
		{Name: "new axis", In: []Arg{F(2, 3), F(2, 3)}, Build: join(1, 1)},
		{Name: "new last axis", In: []Arg{F(2, 3), F(2, 3)}, Build: join(-1, 1)},
	}
}

func optionalSamples() []Sample {
	wrap := func(b *Builder, in []*graph.Value) []*graph.Value {
		o := b.Op("Optional", in)
		x := b.Op("OptionalGetElement", vals(o))
		return vals(b.Mul(x, x), b.Op("OptionalHasElement", vals(o)))
	}
	return []Sample{
		{Name: "tensor", In: []Arg{F(2, 3)}, Build: wrap},
		{Name: "sequence", In: []Arg{F(2, 3), F(2, 3)}, Build: func(b *Builder, in []*graph.Value) []*graph.Value {
			o := b.Op("Optional", vals(b.Op("SequenceConstruct", in)))
			return vals(stackSequence(b, b.Op("OptionalGetElement", vals(o))))
		}},
		{Name: "empty", Build: func(b *Builder, in []*graph.Value) []*graph.Value {
			o := b.Op("Optional", nil, &graph.Attr{Name: "type", Type: graph.AttrTypeProto,
				Types: []graph.Type{graph.TensorOf(graph.Float, graph.ShapeOf(2))}})
			return vals(b.Op("OptionalHasElement", vals(o)))
		}},
	}
}

func optionalGetSamples() []Sample {
	return []Sample{{Name: "tensor", In: []Arg{F(2, 3)}, Build: func(b *Builder, in []*graph.Value) []*graph.Value {
		return vals(b.Op("OptionalGetElement", in))
	}}}
}

func optionalHasSamples() []Sample {
	return []Sample{
		{Name: "tensor", In: []Arg{F(2, 3)}, Build: func(b *Builder, in []*graph.Value) []*graph.Value {
			return vals(b.Op("OptionalHasElement", in))
		}},
		{Name: "omitted", Build: func(b *Builder, in []*graph.Value) []*graph.Value {
			return vals(b.Op("OptionalHasElement", nil))
		}},
	}
}
