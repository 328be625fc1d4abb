package op

import (
	"fmt"

	"gradtool/graph"
)

func convTransposeSamples() []Sample {
	ints, str, group := graph.IntsAttr, graph.StringAttr, func(g int64) *graph.Attr { return graph.IntAttr("group", g) }
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	k3 := ints("kernel_shape", 3, 3)
	return []Sample{
		{In: []Arg{F(2, 3, 3, 4), F(3, 2, 3, 3), F(2)}, Attrs: attrs(k3)},
		{Name: "strides and pads", In: []Arg{F(1, 2, 3, 4), F(2, 3, 3, 3), F(3)}, Attrs: attrs(ints("strides", 2, 3), ints("pads", 1, 0, 1, 2))},
		{Name: "output padding", In: []Arg{F(1, 2, 3, 3), F(2, 2, 3, 2)}, Attrs: attrs(ints("strides", 3, 2), ints("output_padding", 2, 1), ints("pads", 1, 1, 0, 0))},
		{Name: "dilations", In: []Arg{F(1, 2, 4, 3), F(2, 2, 2, 3)}, Attrs: attrs(ints("dilations", 2, 2), ints("pads", 1, 1, 1, 1))},
		{Name: "output shape", In: []Arg{F(1, 2, 3, 3), F(2, 2, 3, 3)}, Attrs: attrs(ints("strides", 3, 2), ints("output_shape", 10, 8))},
		{Name: "smaller output shape", In: []Arg{F(1, 2, 3, 3), F(2, 2, 3, 3)}, Attrs: attrs(ints("strides", 2, 2), ints("output_shape", 4, 6), str("auto_pad", "SAME_UPPER"))},
		{Name: "SAME_UPPER", In: []Arg{F(1, 2, 3, 3), F(2, 2, 4, 3)}, Attrs: attrs(ints("strides", 2, 2), str("auto_pad", "SAME_UPPER"))},
		{Name: "SAME_LOWER", In: []Arg{F(1, 2, 3, 3), F(2, 2, 3, 2)}, Attrs: attrs(ints("strides", 2, 2), str("auto_pad", "SAME_LOWER"))},
		{Name: "empty batch", In: []Arg{F(0, 2, 3, 4), F(2, 3, 3, 3), F(3)}, Attrs: attrs(ints("strides", 2, 2))},
		{Name: "grouped", In: []Arg{F(2, 4, 3, 2), F(4, 3, 2, 3), F(6)}, Attrs: attrs(group(2), ints("strides", 2, 1))},
		{Name: "depthwise", In: []Arg{F(1, 3, 3, 3), F(3, 1, 2, 2)}, Attrs: attrs(group(3), ints("strides", 2, 2))},
		{Name: "pointwise", In: []Arg{F(1, 3, 3, 3), F(3, 2, 1, 1), F(2)}, Attrs: attrs(ints("kernel_shape", 1, 1))},
		{Name: "1-D", In: []Arg{F(2, 3, 4), F(3, 2, 3), F(2)}, Attrs: attrs(ints("strides", 2), ints("pads", 1, 0))},
		{Name: "3-D", In: []Arg{F(1, 2, 2, 3, 2), F(2, 2, 2, 2, 3)}, Attrs: attrs(ints("strides", 1, 2, 2), ints("output_padding", 0, 0, 1))},
	}
}

func inferConvTranspose(c *InferCtx) error {
	n, x, w := c.Node, c.Shape(0), c.Shape(1)
	r := windowRank(n, x, w)
	c.Set(0, c.Elem(0), nil)
	if r < 0 {
		return nil
	}
	if r == 0 {
		return c.Errorf("operand 0 has shape %s, want a batch, channels and spatial axes", x)
	}
	if x != nil && w != nil && (len(x) != len(w) || x[1].ProvablyNot(w[0])) {
		return c.Errorf("operand 0 of shape %s does not fit weights of shape %s", x, w)
	}
	a, err := transposeAttrs(n, r)
	if err != nil {
		return err
	}
	out := graph.UnknownShape(r + 2)
	if x != nil {
		out[0] = x[0]
	}
	if w != nil {
		out[1] = w[1].Mul(graph.Known(n.Int("group", 1)))
	}
	kernel := kernelDims(n, w)
	for i := range r {
		switch {
		case a.shape != nil:
			out[2+i] = graph.Known(a.shape[i])
		case x == nil:
		case a.same:
			out[2+i] = x[2+i].Mul(graph.Known(a.stride[i]))
		case kernel != nil:
			span := kernel[i].Sub(graph.Known(1)).Mul(graph.Known(a.dilation[i])).Add(graph.Known(1))
			steps := x[2+i].Sub(graph.Known(1)).Mul(graph.Known(a.stride[i]))
			out[2+i] = steps.Add(span).Add(graph.Known(a.extra[i] - a.pads[i] - a.pads[r+i]))
		}
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

// transposeGeometry is what a ConvTranspose's attributes say, with defaults filled in.
type transposeGeometry struct {
	stride, dilation, pads, extra []int64 // extra is output_padding
	shape                         []int64 // output_shape's spatial part; nil without
	same                          bool    // the output is stride times the input
	upper                         bool    // the smaller half of computed padding goes in front
}

func transposeAttrs(n *graph.Node, r int) (*transposeGeometry, error) {
	g := &transposeGeometry{extra: make([]int64, r)}
	var err error
	if g.stride, g.dilation, g.pads, err = windowAttrs(n, r); err != nil {
		return nil, err
	}
	if v := n.Ints("output_padding"); v != nil {
		if len(v) != r {
			return nil, fmt.Errorf("attribute output_padding has %d elements, want %d", len(v), r)
		}
		g.extra = v
	}
	if v := n.Ints("output_shape"); v != nil {
		if len(v) < r {
			return nil, fmt.Errorf("attribute output_shape has %d elements, want %d", len(v), r)
		}
		g.shape = v[len(v)-r:] // some exporters write batch and channels too
	}
	switch n.Str("auto_pad", "NOTSET") {
	case "SAME_UPPER":
		g.same, g.upper = true, true
	case "SAME_LOWER":
		g.same = true
	case "VALID":
		g.pads = make([]int64, 2*r)
	}
	return g, nil
}

// window returns the geometry of the convolution whose transpose this is, so that in and out change places: in is
// the result's sizes.
func (g *transposeGeometry) window(in, kernel []int) (*window, error) {
	r := len(in)
	w := &window{kernel: kernel, stride: toInts(g.stride), dilation: toInts(g.dilation), out: in, in: make([]int, r),
		begin: toInts(g.pads[:r]), end: toInts(g.pads[r:])}
	for i := range r {
		full := (in[i]-1)*w.stride[i] + w.span(i) + int(g.extra[i])
		if g.shape == nil && !g.same {
			w.in[i] = full - w.begin[i] - w.end[i]
			if w.in[i] < 0 {
				return nil, fmt.Errorf("spatial axis %d comes out with size %d", i, w.in[i])
			}
			continue
		}
		if w.in[i] = in[i] * w.stride[i]; g.shape != nil {
			w.in[i] = int(g.shape[i])
		}
		total := max(0, full-w.in[i])
		w.begin[i] = total - total/2
		if g.upper {
			w.begin[i] = total / 2
		}
		w.end[i] = total - w.begin[i]
	}
	return w, nil
}

// evalConvTranspose computes Y[n,m,i*stride + t*dilation - pad] = B[m] + the sum of all W[c,m,t] X[n,c,i] that go there.
func evalConvTranspose(c *EvalCtx) error {
	x, weights := c.Arg(0), c.Arg(1)
	groups := int(c.Node.Int("group", 1))
	if x.Rank() < 3 || weights.Rank() != x.Rank() || groups < 1 || x.Shape[1] != weights.Shape[0] || x.Shape[1]%groups != 0 {
		return c.Errorf("operand of shape %v does not fit weights of shape %v in %d groups", x.Shape, weights.Shape, groups)
	}
	g, err := transposeAttrs(c.Node, x.Rank()-2)
	if err != nil {
		return err
	}
	w, err := g.window(x.Shape[2:], weights.Shape[2:])
	if err != nil {
		return err
	}
	size := convSize{batch: x.Shape[0], groups: groups, inPer: weights.Shape[1], outPer: x.Shape[1] / groups}
	y := x.NewLike(append([]int{size.batch, groups * size.inPer}, w.in...))
	if y.F32 != nil {
		convolveTransposed(w, size, x.F32, weights.F32, y.F32)
	} else {
		convolveTransposed(w, size, x.F64, weights.F64, y.F64)
	}
	if err := addBias(y, c.Arg(2)); err != nil {
		return err
	}
	c.Set(0, y)
	return nil
}
