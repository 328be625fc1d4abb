package op

import (
	"math"
	"slices"

	"gradtool/graph"
)

func poolDefs() []Def {
	return slices.Concat([]Def{
		{Name: "MaxPool", Infer: inferPool, Eval: evalMaxPool, Cost: costPool, Samples: maxPoolSamples()},
		{Name: "AveragePool", Infer: inferPool, Eval: evalAveragePool, Cost: costPool, Samples: averagePoolSamples()},
		{Name: "LpPool", Infer: inferPool, Eval: evalLpPool, Cost: costPool, Samples: lpPoolSamples()},
	}, globalPoolDefs(), unpoolDefs(), regionDefs())
}

func maxPoolSamples() []Sample {
	ints, str := graph.IntsAttr, graph.StringAttr
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	return []Sample{
		{In: []Arg{FApart(2, 2, 4, 6)}, Attrs: attrs(ints("kernel_shape", 2, 2), ints("strides", 2, 2))},
		{Name: "overlapping", In: []Arg{FApart(2, 2, 5, 6)}, Attrs: attrs(ints("kernel_shape", 3, 2), ints("pads", 1, 1, 1, 0)), Outs: 2},
		{Name: "dilated", In: []Arg{FApart(1, 2, 7, 6)}, Attrs: attrs(ints("kernel_shape", 2, 3), ints("dilations", 3, 2), ints("strides", 1, 2)), Outs: 2},
		{Name: "ceil", In: []Arg{FApart(1, 2, 6, 7)}, Attrs: attrs(ints("kernel_shape", 3, 3), ints("strides", 2, 2), graph.IntAttr("ceil_mode", 1)), Outs: 2},
		{Name: "column-major", In: []Arg{FApart(1, 2, 4, 5)}, Attrs: attrs(ints("kernel_shape", 2, 2), graph.IntAttr("storage_order", 1)), Outs: 2},
		{Name: "1-D", In: []Arg{FApart(2, 2, 7)}, Attrs: attrs(ints("kernel_shape", 3), ints("strides", 2))},
		{Name: "3-D", In: []Arg{FApart(1, 2, 4, 3, 4)}, Attrs: attrs(ints("kernel_shape", 2, 2, 2), ints("strides", 2, 1, 2)), Outs: 2},
		{Name: "SAME_UPPER", In: []Arg{FApart(1, 2, 5, 4)}, Attrs: attrs(ints("kernel_shape", 2, 3), ints("strides", 2, 2), str("auto_pad", "SAME_UPPER"))},
		{Name: "SAME_LOWER", In: []Arg{FApart(1, 2, 5, 4)}, Attrs: attrs(ints("kernel_shape", 2, 3), ints("strides", 2, 2), str("auto_pad", "SAME_LOWER"))},
		{Name: "int8", In: []Arg{TV(graph.Int8, []int{1, 1, 4}, -5, -7, -3, -9)}, Attrs: attrs(ints("kernel_shape", 2)), Outs: 2},
	}
}

func averagePoolSamples() []Sample {
	ints, str, count := graph.IntsAttr, graph.StringAttr, graph.IntAttr("count_include_pad", 1)
	ceil := graph.IntAttr("ceil_mode", 1)
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	return []Sample{
		{In: []Arg{F(2, 2, 4, 6)}, Attrs: attrs(ints("kernel_shape", 2, 2), ints("strides", 2, 2))},
		{Name: "remainder", In: []Arg{F(1, 2, 5, 7)}, Attrs: attrs(ints("kernel_shape", 2, 3), ints("strides", 2, 3))},
		{Name: "overlapping", In: []Arg{F(2, 2, 5, 6)}, Attrs: attrs(ints("kernel_shape", 3, 2), ints("pads", 1, 1, 1, 0))},
		{Name: "padding counts", In: []Arg{F(1, 2, 5, 6)}, Attrs: attrs(ints("kernel_shape", 3, 3), ints("pads", 1, 1, 1, 2), ints("strides", 2, 2), count)},
		{Name: "ceil", In: []Arg{F(1, 2, 6, 8)}, Attrs: attrs(ints("kernel_shape", 3, 3), ints("strides", 2, 3), ceil)},
		{Name: "ceil, padding counts", In: []Arg{F(1, 2, 6, 7)}, Attrs: attrs(ints("kernel_shape", 3, 3), ints("strides", 2, 2), ints("pads", 1, 1, 1, 1), ceil, count)},
		{Name: "dilated", In: []Arg{F(1, 2, 7, 8)}, Attrs: attrs(ints("kernel_shape", 2, 3), ints("dilations", 2, 3), ints("strides", 2, 1), ints("pads", 1, 1, 1, 1))},
		{Name: "1-D", In: []Arg{F(2, 3, 7)}, Attrs: attrs(ints("kernel_shape", 3), ints("strides", 2), ints("pads", 1, 0))},
		{Name: "3-D", In: []Arg{F(1, 2, 3, 4, 3)}, Attrs: attrs(ints("kernel_shape", 2, 2, 2), ints("pads", 0, 1, 1, 1, 0, 0))},
		{Name: "SAME_UPPER", In: []Arg{F(1, 2, 5, 4)}, Attrs: attrs(ints("kernel_shape", 2, 3), ints("strides", 2, 2), str("auto_pad", "SAME_UPPER"))},
		{Name: "SAME_LOWER", In: []Arg{F(1, 2, 5, 4)}, Attrs: attrs(ints("kernel_shape", 4, 3), ints("strides", 2, 2), str("auto_pad", "SAME_LOWER"), count)},
	}
}

func lpPoolSamples() []Sample {
	ints := graph.IntsAttr
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	return []Sample{
		{In: []Arg{FR(0.2, 2, 2, 2, 5, 4)}, Attrs: attrs(ints("kernel_shape", 2, 2), ints("strides", 2, 1))},
		{Name: "p=1", In: []Arg{FApart(1, 2, 4, 4)}, Attrs: attrs(ints("kernel_shape", 2, 2), graph.IntAttr("p", 1), ints("pads", 1, 0, 0, 1))},
		{Name: "p=3", In: []Arg{FApart(1, 2, 6)}, Attrs: attrs(ints("kernel_shape", 3), graph.IntAttr("p", 3), ints("strides", 2))},
		{Name: "dilated", In: []Arg{FApart(1, 2, 6, 5)}, Attrs: attrs(ints("kernel_shape", 2, 2), ints("dilations", 2, 3), ints("pads", 1, 1, 1, 1))},
		{Name: "ceil", In: []Arg{FApart(1, 1, 6, 5)}, Attrs: attrs(ints("kernel_shape", 3, 2), ints("strides", 2, 2), graph.IntAttr("ceil_mode", 1))},
		{Name: "SAME_UPPER", In: []Arg{FApart(1, 2, 5, 4)}, Attrs: attrs(ints("kernel_shape", 2, 3), ints("strides", 2, 2), graph.StringAttr("auto_pad", "SAME_UPPER"))},
	}
}

// costPool is one FLOP per result element and tap.
func costPool(c *CostCtx) float64 {
	return float64(prod(toInts(c.Node.Ints("kernel_shape")))) * c.OutLen(0)
}

func inferPool(c *InferCtx) error {
	x := c.Shape(0)
	kernel := c.Node.Ints("kernel_shape")
	if kernel == nil {
		return c.Errorf("attribute kernel_shape is missing")
	}
	var out graph.Shape
	if x == nil {
		out = graph.UnknownShape(len(kernel) + 2)
	} else {
		if len(x) < 3 {
			return c.Errorf("operand 0 has shape %s, want a batch, channels and spatial axes", x)
		}
		s, err := inferWindow(c.Node, x[2:], graph.ShapeOf(kernel...))
		if err != nil {
			return err
		}
		out = append(x[:2].Clone(), s...)
	}
	c.Set(0, c.Elem(0), out)
	c.Set(1, graph.Int64, out)
	return nil
}

// poolPlan resolves the geometry of a pooling node.
func poolPlan(c *EvalCtx) (*lines, error) {
	x := c.Arg(0)
	if x.Rank() < 3 {
		return nil, c.Errorf("operand 0 has shape %v, want a batch, channels and spatial axes", x.Shape)
	}
	w, err := newWindow(c.Node, x.Shape[2:], toInts(c.Node.Ints("kernel_shape")))
	if err != nil {
		return nil, err
	}
	return newLines(w), nil
}

// evalMaxPool computes the maximum of each window and the place of its first occurrence.
func evalMaxPool(c *EvalCtx) error {
	x := c.Arg(0)
	l, err := poolPlan(c)
	if err != nil {
		return err
	}
	shape := append(slices.Clone(x.Shape[:2]), l.out...)
	y := x.NewLike(shape)
	index := NewArray(graph.Int64, shape, false)
	channels := prod(x.Shape[:2])
	switch {
	case x.F32 != nil:
		maxPool(l, channels, x.F32, y.F32, index.I64)
	case x.F64 != nil:
		maxPool(l, channels, x.F64, y.F64, index.I64)
	default:
		maxPool(l, channels, x.I64, y.I64, index.I64)
	}
	if c.Node.Int("storage_order", 0) != 0 {
		columnMajor(index.I64, l.in)
	}
	c.Set(0, y)
	c.Set(1, index)
	return nil
}

func maxPool[T number](l *lines, channels int, x, y []T, index []int64) {
	in, out, width, s := prod(l.in), prod(l.out), l.width(), l.lastStride()
	parallel(channels, grainOf(2*out*len(l.at)), func(lo, hi int) {
		for ch := lo; ch < hi; ch++ {
			src, base := x[ch*in:][:in], int64(ch*in)
			for r := range l.rows {
				best, at := y[ch*out+r*width:][:width], index[ch*out+r*width:][:width]
				fill(at, -1)
				for i := range l.at {
					lo, hi, first := l.row(i, r)
					for j, p := lo, first; j < hi; j, p = j+1, p+s {
						if v := src[p]; at[j] < 0 || v > best[j] || v != v {
							best[j], at[j] = v, base+int64(p)
						}
					}
				}
				for j := range at {
					if at[j] < 0 { // nothing but padding
						at[j] = base
					}
				}
			}
		}
	})
}

// columnMajor renumbers row-major indices into tensors of the given spatial sizes.
func columnMajor(index []int64, in []int) {
	size := int64(prod(in))
	for k, i := range index {
		p, n, step := i%size, i-i%size, size
		for a := len(in) - 1; a >= 0; a-- {
			step /= int64(in[a])
			n += p % int64(in[a]) * step
			p /= int64(in[a])
		}
		index[k] = n
	}
}

// counts returns, by axis and output, how many taps the average divides by: those inside the input or, with
// padding counted, those not beyond the padding.
func (w *window) counts(includePad bool) [][]float64 {
	out := make([][]float64, len(w.in))
	for i := range w.in {
		out[i] = make([]float64, w.out[i])
		for o := range out[i] {
			for t := range w.kernel[i] {
				p := o*w.stride[i] + t*w.dilation[i] - w.begin[i]
				if includePad && p < w.in[i]+w.end[i] || p >= 0 && p < w.in[i] {
					out[i][o]++
				}
			}
		}
	}
	return out
}

func evalAveragePool(c *EvalCtx) error {
	l, err := poolPlan(c)
	if err != nil {
		return err
	}
	counts := l.counts(c.Node.Int("count_include_pad", 0) != 0)
	last := len(counts) - 1
	rowCount := []float64{1} // by output row: the product over the axes but the last
	for _, axis := range counts[:last] {
		var next []float64
		for _, a := range rowCount {
			for _, b := range axis {
				next = append(next, a*b)
			}
		}
		rowCount = next
	}
	return poolSum(c, l, func(x float64) float64 { return x }, func(sum float64, r, j int) float64 {
		return sum / max(1, rowCount[r]*counts[last][j])
	})
}

// evalLpPool computes (sum of |x|^p)^(1/p) over each window.
func evalLpPool(c *EvalCtx) error {
	l, err := poolPlan(c)
	if err != nil {
		return err
	}
	term, root := lpNorm(c.Node.Int("p", 2))
	return poolSum(c, l, term, func(sum float64, _, _ int) float64 { return root(sum) })
}

// lpNorm returns what is summed for a p-norm, and what makes the norm of the sum.
func lpNorm(p int64) (term, root func(float64) float64) {
	switch p {
	case 1:
		return math.Abs, func(s float64) float64 { return s }
	case 2:
		return func(x float64) float64 { return x * x }, math.Sqrt
	}
	return func(x float64) float64 { return math.Pow(math.Abs(x), float64(p)) },
		func(s float64) float64 { return math.Pow(s, 1/float64(p)) }
}

// poolSum sums a function of the elements of each window; finish makes the result of the sum for column j of
// output row r.
func poolSum(c *EvalCtx, l *lines, term func(float64) float64, finish func(sum float64, r, j int) float64) error {
	x := c.Arg(0)
	y := x.NewLike(append(slices.Clone(x.Shape[:2]), l.out...))
	if x.F32 != nil {
		sumWindows(l, prod(x.Shape[:2]), x.F32, y.F32, term, finish)
	} else {
		sumWindows(l, prod(x.Shape[:2]), x.F64, y.F64, term, finish)
	}
	c.Set(0, y)
	return nil
}

func sumWindows[T float32 | float64](l *lines, channels int, x, y []T, term func(float64) float64, finish func(float64, int, int) float64) {
	in, out, width, s := prod(l.in), prod(l.out), l.width(), l.lastStride()
	parallel(channels, grainOf(4*out*len(l.at)), func(lo, hi int) {
		acc := make([]float64, width)
		for ch := lo; ch < hi; ch++ {
			src := x[ch*in:][:in]
			for r := range l.rows {
				clear(acc)
				for i := range l.at {
					lo, hi, first := l.row(i, r)
					for j, p := lo, first; j < hi; j, p = j+1, p+s {
						acc[j] += term(float64(src[p]))
					}
				}
				for j, sum := range acc {
					y[ch*out+r*width+j] = T(finish(sum, r, j))
				}
			}
		}
	})
}
