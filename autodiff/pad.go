package autodiff

import (
	"gradtool/graph"
)

func padRules() []Rule {
	return []Rule{
		{Name: "Pad", Kind: HasVJP, Stop: []int{1, 3}, VJP: padVJP},
		// y is x cropped or padded around its centre; cropping and padding to x's size again is the transpose.
		{Name: "CenterCropPad", Kind: HasVJP, Stop: []int{1}, VJP: func(c *Ctx) []*graph.Value {
			shape := c.Shape(c.X(0))
			if axes := c.Node.Ints("axes"); axes != nil {
				shape = c.sizesAt(c.X(0), axes)
			}
			return one(c.Op("CenterCropPad", []*graph.Value{c.Ct(0), shape}, c.sameAttrs()...))
		}},
	}
}

// sameAttrs returns the node's attributes for use on another node.
func (c *Ctx) sameAttrs() []*graph.Attr {
	out := make([]*graph.Attr, len(c.Node.Attrs))
	for i, a := range c.Node.Attrs {
		b := *a
		out[i] = &b
	}
	return out
}

// padVJP: y is x with a border. dx in mode constant is g without the border, that is g padded by the negative
// amounts, and the constant gets the sum of the border. In the other modes the border holds elements of x,
// to which its cotangents are added.
func padVJP(c *Ctx) []*graph.Value {
	x, pads, value, axes, g := c.X(0), c.X(1), c.X(2), c.X(3), c.Ct(0)
	if c.Node.Str("mode", "constant") != "constant" {
		return one(c.unpadMapped(x, g))
	}
	out := make([]*graph.Value, 3)
	if c.Need(0) {
		out[0] = c.Op("Pad", []*graph.Value{g, c.minus(c.Ints(0), pads), nil, axes})
	}
	if value != nil && c.Need(2) {
		border := c.Op("Pad", []*graph.Value{c.FullLike(x, 0), pads, c.Like(x, 1), axes})
		out[2] = c.ReduceAll(c.Mul(g, border))
	}
	return out
}

// unpadMapped is padVJP for the modes that repeat elements. Axis by axis, the strips of the border are added to where
// they were taken from, if the pads and the necessary sizes are known and no strip is longer than the dimension;
// else every element is scattered to its row-major position in x.
func (c *Ctx) unpadMapped(x, g *graph.Value) *graph.Value {
	axes, before, after, ok := c.strips(x)
	if !ok {
		in := append([]*graph.Value{c.flatPositions(x)}, c.Node.In[1:]...)
		pos := c.Op("Pad", in, c.sameAttrs()...)
		return c.scatterFlat(x, pos, g)
	}
	for i, a := range axes {
		if before[i] != 0 || after[i] != 0 {
			g = c.foldStrips(g, a, before[i], after[i])
		}
	}
	return g
}

// strips returns the padded axes and the widths of the border before and after each, if foldStrips covers them.
func (c *Ctx) strips(x *graph.Value) (axes, before, after []int64, ok bool) {
	pads, ok := c.numbers(c.X(1))
	if !ok {
		return nil, nil, nil, false
	}
	n := len(pads) / 2
	if c.X(3) != nil {
		if axes, ok = c.numbers(c.X(3)); !ok {
			return nil, nil, nil, false
		}
	} else {
		for i := range n {
			axes = append(axes, int64(i))
		}
	}
	before, after = pads[:n], pads[n:]
	for i, a := range axes {
		wide := max(before[i], after[i])
		size, known := dimAt(x, int(a)).Int()
		switch {
		case before[i] < 0 || after[i] < 0:
			return nil, nil, nil, false
		case wide == 0 || c.Node.Str("mode", "") == "edge":
		case !known || c.Node.Str("mode", "") == "reflect" && wide > size-1 || wide > size:
			return nil, nil, nil, false
		}
	}
	return axes, before, after, true
}

// foldStrips adds the strips of g before and after x's place along one axis to the elements they repeat.
func (c *Ctx) foldStrips(g *graph.Value, axis, before, after int64) *graph.Value {
	a := c.Ints(axis)
	const far = 1<<63 - 1
	end := int64(far)
	if after > 0 {
		end = -after
	}
	sum := c.Slice(g, c.Ints(before), c.Ints(end), a, nil)
	n := c.sizesAt(c.X(0), []int64{axis})
	place := func(strip, front, back *graph.Value) {
		sum = c.Add(sum, c.borderOne(strip, axis, front, back))
	}
	zero, one := c.Ints(0), c.Ints(1)
	left := func() *graph.Value { return c.Slice(g, zero, c.Ints(before), a, nil) }
	right := func() *graph.Value { return c.Slice(g, c.Ints(-after), c.Ints(far), a, nil) }
	flip := func(v *graph.Value) *graph.Value { return c.Slice(v, c.Ints(-1), c.Ints(-far), a, c.Ints(-1)) }
	switch c.Node.Str("mode", "") {
	case "edge":
		rest := c.minus(n, one)
		if before > 0 {
			place(c.ReduceSum(left(), true, axis), zero, rest)
		}
		if after > 0 {
			place(c.ReduceSum(right(), true, axis), rest, zero)
		}
	case "reflect":
		if before > 0 {
			place(flip(left()), one, c.minus(n, c.Ints(before+1)))
		}
		if after > 0 {
			place(flip(right()), c.minus(n, c.Ints(after+1)), one)
		}
	case "wrap":
		if before > 0 {
			place(left(), c.minus(n, c.Ints(before)), zero)
		}
		if after > 0 {
			place(right(), zero, c.minus(n, c.Ints(after)))
		}
	}
	return sum
}
