package autodiff

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// The cotangent of a sequence is a sequence of as many elements, each the cotangent of one. The cotangent of an optional
// is that of its element.

func sequenceRules() []Rule {
	return append([]Rule{
		// s = [x0, x1, ...]; dx_i = g[i].
		{Name: "SequenceConstruct", Kind: HasVJP, VJP: func(c *Ctx) []*graph.Value {
			var cts []*graph.Value
			for i := range c.Node.In {
				var g *graph.Value
				if c.Need(i) {
					g = c.at(c.Ct(0), c.IntScalar(int64(i)))
				}
				cts = append(cts, g)
			}
			return cts
		}},
		{Name: "SequenceInsert", Kind: HasVJP, Stop: []int{2}, VJP: sequenceInsertVJP},
		{Name: "SequenceErase", Kind: HasVJP, Stop: []int{1}, VJP: sequenceEraseVJP},
		{Name: "SequenceAt", Kind: HasVJP, Stop: []int{1}, VJP: sequenceAtVJP},
		{Name: "SplitToSequence", Kind: HasVJP, Stop: []int{1}, VJP: splitToSequenceVJP},
		{Name: "ConcatFromSequence", Kind: HasVJP, VJP: concatFromSequenceVJP},
		// o = optional(x) and x = element(o): the cotangent of an optional is its element's.
		unary("Optional", func(c *Ctx, x, y, g *graph.Value) *graph.Value { return g }),
		unary("OptionalGetElement", func(c *Ctx, x, y, g *graph.Value) *graph.Value { return g }),
	}, noGrad("the result is no float", "SequenceEmpty", "SequenceLength", "OptionalHasElement")...)
}

// at returns element i, a scalar, of sequence s.
func (c *Ctx) at(s, i *graph.Value) *graph.Value { return c.Op("SequenceAt", []*graph.Value{s, i}) }

// position returns operand i, a position among length elements, counted from the front as an int64 scalar; the last one
// without the operand. length is asked for only where it matters.
func (c *Ctx) position(i int, length func() *graph.Value) *graph.Value {
	p := c.X(i)
	if p == nil {
		return c.Sub(length(), c.IntScalar(1))
	}
	if a := c.Info.Const(p); a != nil && len(a.I64) == 1 {
		if a.I64[0] >= 0 {
			return c.IntScalar(a.I64[0])
		}
		return c.Add(length(), c.IntScalar(a.I64[0]))
	}
	p = c.Cast(p, graph.Int64)
	return c.Where(c.Binary("Less", p, c.IntScalar(0)), c.Add(p, length()), p)
}

func (c *Ctx) length(s *graph.Value) *graph.Value { return c.Op("SequenceLength", []*graph.Value{s}) }

// sequenceInsertVJP: t is s with x inserted at p; dx = g[p], ds = g without it.
func sequenceInsertVJP(c *Ctx) []*graph.Value {
	g := c.Ct(0)
	last := func() *graph.Value { return c.Sub(c.length(g), c.IntScalar(1)) } // s is one shorter; p may be behind its end
	var p *graph.Value
	if c.X(2) == nil {
		p = last()
	} else {
		p = c.position(2, last)
	}
	var cts [2]*graph.Value
	if c.Need(0) {
		cts[0] = c.Op("SequenceErase", []*graph.Value{g, p})
	}
	if c.Need(1) {
		cts[1] = c.at(g, p)
	}
	return cts[:]
}

// sequenceEraseVJP: t is s without element p; ds is g with zeros inserted there.
func sequenceEraseVJP(c *Ctx) []*graph.Value {
	g, s := c.Ct(0), c.X(0)
	p := c.position(1, func() *graph.Value { return c.Add(c.length(g), c.IntScalar(1)) })
	return one(c.Op("SequenceInsert", []*graph.Value{g, zeros(c.Builder, c.at(s, p)), p}))
}

// sequenceAtVJP: x = s[p]; ds is g at p and zeros elsewhere.
func sequenceAtVJP(c *Ctx) []*graph.Value {
	z := zeros(c.Builder, c.X(0))
	p := c.position(1, func() *graph.Value { return c.length(z) })
	rest := c.Op("SequenceErase", []*graph.Value{z, p})
	return one(c.Op("SequenceInsert", []*graph.Value{rest, c.Ct(0), p}))
}

// splitToSequenceVJP: s holds x's pieces along an axis; dx joins the pieces of g. Without sizes each piece is one slice,
// with or without the axis.
func splitToSequenceVJP(c *Ctx) []*graph.Value {
	axis, fresh := c.Node.Int("axis", 0), int64(0)
	if c.X(1) == nil && c.Node.Int("keepdims", 1) == 0 {
		fresh = 1
	}
	return one(c.Unary("ConcatFromSequence", c.Ct(0), graph.IntAttr("axis", axis), graph.IntAttr("new_axis", fresh)))
}

// concatFromSequenceVJP: y joins the elements of s along an axis, old or new; ds holds the pieces of g, of the elements'
// sizes.
func concatFromSequenceVJP(c *Ctx) []*graph.Value {
	s, g := c.X(0), c.Ct(0)
	axis := c.Node.Int("axis", 0)
	if c.Node.Int("new_axis", 0) != 0 {
		return one(c.Op("SplitToSequence", []*graph.Value{g}, graph.IntAttr("axis", axis), graph.IntAttr("keepdims", 0)))
	}
	sizes := c.Loop(c.length(s), nil, nil, nil, func(b *op.Builder, i *graph.Value, _ []*graph.Value) op.LoopBody {
		n := b.DimOf(b.Op("SequenceAt", []*graph.Value{s, i}), int(axis))
		return op.LoopBody{Stack: []*graph.Value{b.Squeeze(n, 0)}}
	}).Out[0]
	return one(c.Op("SplitToSequence", []*graph.Value{g, sizes}, graph.IntAttr("axis", axis)))
}

// zeros returns the cotangent of v that is zero: of a tensor zeros of its shape, of a sequence one of zeros, of an
// optional zeros for its element or, without one, an empty tensor or sequence.
func zeros(b *op.Builder, v *graph.Value) *graph.Value {
	t := v.Type
	switch t.Kind {
	case graph.KindSequence:
		return eachElement(b, v, func(b *op.Builder, i *graph.Value) *graph.Value {
			return zeros(b, b.Op("SequenceAt", []*graph.Value{v, i}))
		})
	case graph.KindOptional:
		return b.If(b.Unary("OptionalHasElement", v), func(b *op.Builder) []*graph.Value {
			return []*graph.Value{zeros(b, b.Unary("OptionalGetElement", v))}
		}, func(b *op.Builder) []*graph.Value {
			if t.Inner != nil && t.Inner.Kind == graph.KindSequence {
				return []*graph.Value{b.Op("SequenceEmpty", nil, graph.IntAttr("dtype", int64(elementType(t))))}
			}
			return []*graph.Value{b.Full(b.Ints(0), elementType(t), 0)}
		})[0]
	}
	return b.FullLike(v, 0)
}

// sum returns x + y, of sequences element by element.
func sum(b *op.Builder, x, y *graph.Value) *graph.Value {
	if x.Type.Kind != graph.KindSequence {
		return b.Add(x, y)
	}
	return eachElement(b, x, func(b *op.Builder, i *graph.Value) *graph.Value {
		return b.Add(b.Op("SequenceAt", []*graph.Value{x, i}), b.Op("SequenceAt", []*graph.Value{y, i}))
	})
}

// eachElement returns the sequence of what f gives for the positions of s.
func eachElement(b *op.Builder, s *graph.Value, f func(b *op.Builder, i *graph.Value) *graph.Value) *graph.Value {
	empty := b.Op("SequenceEmpty", nil, graph.IntAttr("dtype", int64(elementType(s.Type))))
	length := b.Op("SequenceLength", []*graph.Value{s})
	n := b.Loop(length, nil, []*graph.Value{empty}, []graph.Type{s.Type}, func(b *op.Builder, i *graph.Value, t []*graph.Value) op.LoopBody {
		return op.LoopBody{Next: []*graph.Value{b.Op("SequenceInsert", []*graph.Value{t[0], f(b, i)})}}
	})
	return n.Out[0]
}

// elementType returns the element type of the tensors in t.
func elementType(t graph.Type) graph.DataType {
	for t.Inner != nil {
		t = *t.Inner
	}
	return t.Elem
}
