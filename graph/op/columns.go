package op

import (
	"fmt"

	"gradtool/graph"
)

func columnDefs() []Def {
	ints := graph.IntsAttr
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	return []Def{{Name: "Col2Im", Infer: inferCol2Im, Eval: evalCol2Im, Samples: []Sample{
		{In: []Arg{F(2, 4, 9), I(4, 4), I(2, 2)}},
		{Name: "strides and pads", In: []Arg{F(1, 12, 6), I(5, 4), I(3, 2)}, Attrs: attrs(ints("strides", 2, 2), ints("pads", 0, 1, 1, 1))},
		{Name: "remainder", In: []Arg{F(1, 4, 4), I(5, 5), I(2, 2)}, Attrs: attrs(ints("strides", 2, 2))},
		{Name: "dilations", In: []Arg{F(1, 4, 10), I(6, 6), I(2, 2)}, Attrs: attrs(ints("dilations", 1, 4))},
		{Name: "3-D", In: []Arg{F(1, 8, 8), I(3, 3, 3), I(2, 2, 2)}},
		{Name: "complex", In: []Arg{TV(graph.Complex64, []int{1, 2, 2}, 1, 2, 3, 4), I(1, 3), I(1, 2)}},
	}}}
}

func inferCol2Im(c *InferCtx) error {
	image, block := c.Dims(1), c.Dims(2)
	c.Set(0, c.Elem(0), nil)
	if image == nil {
		return nil
	}
	out := append(graph.UnknownShape(2), image...)
	if x := c.Shape(0); x != nil {
		if len(x) != 3 {
			return c.Errorf("operand 0 has shape %s, want rank 3", x)
		}
		out[0] = x[0]
		if n, ok := graph.Shape(block).Size().Int(); ok && n > 0 {
			out[1] = x[1].FloorDiv(graph.Known(n))
		}
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

// evalCol2Im adds up, for each position of an image, the elements of the blocks that cover it: the transpose of cutting
// an image into blocks.
func evalCol2Im(c *EvalCtx) error {
	x := c.Arg(0)
	image, block := toInts(c.Ints(1)), toInts(c.Ints(2))
	taps := prod(block)
	if x.Rank() != 3 || len(image) == 0 || taps < 1 || x.Shape[1]%taps != 0 {
		return c.Errorf("operand of shape %v does not hold blocks of %v", x.Shape, block)
	}
	w, err := newWindow(c.Node, image, block)
	if err != nil {
		return err
	}
	if prod(w.out) != x.Shape[2] {
		return fmt.Errorf("operand of shape %v holds %d blocks, an image of %v has %d", x.Shape, x.Shape[2], image, prod(w.out))
	}
	y := x.NewLike(append([]int{x.Shape[0], x.Shape[1] / taps}, image...))
	l, channels := newLines(w), x.Shape[0]*x.Shape[1]/taps
	switch {
	case y.F32 != nil:
		addBlocks(l, channels, x.F32, y.F32)
	case y.F64 != nil:
		addBlocks(l, channels, x.F64, y.F64)
	case y.I64 != nil:
		addBlocks(l, channels, x.I64, y.I64)
	case y.C128 != nil: // the parts one after the other
		re, im := make([]float64, x.Len()), make([]float64, x.Len())
		for i, v := range x.C128 {
			re[i], im[i] = real(v), imag(v)
		}
		sumRe, sumIm := make([]float64, y.Len()), make([]float64, y.Len())
		addBlocks(l, channels, re, sumRe)
		addBlocks(l, channels, im, sumIm)
		for i := range y.C128 {
			y.C128[i] = complex(sumRe[i], sumIm[i])
		}
	default:
		return c.Errorf("blocks of %s cannot be added", x.Elem)
	}
	c.Set(0, y)
	return nil
}

func addBlocks[T number](l *lines, channels int, x, y []T) {
	in, block := prod(l.in), len(l.at)*prod(l.out)
	parallel(channels, grainOf(2*block), func(lo, hi int) {
		for ch := lo; ch < hi; ch++ {
			addColumns(l, y[ch*in:][:in], 0, l.rows, x[ch*block:][:block], prod(l.out))
		}
	})
}
