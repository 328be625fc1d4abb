package autodiff

import (
	"errors"
	"math"
	"slices"

	"gradtool/graph"
)

func convRules() []Rule {
	return slices.Concat([]Rule{
		{Name: "Conv", Kind: HasVJP, VJP: convVJP, Check: needWindowRank},
		{Name: "ConvTranspose", Kind: HasVJP, VJP: convTransposeVJP, Check: needWindowRank},
		{Name: "DeformConv", Kind: Decomposed, Check: needWindowRank},
		{Name: "CausalConvWithState", Kind: Decomposed},
	}, columnRules(), noGrad("results are integers", "ConvInteger", "QLinearConv"))
}

// needWindowRank returns an error unless the number of spatial axes of n is known.
func needWindowRank(n *graph.Node) error {
	if y := n.Result(0); y != nil && y.Type.Shape == nil {
		return errors.New("the number of spatial axes is not known")
	}
	return nil
}

// window is the geometry of a convolution or pooling: output o reads, at tap t, position
// o*stride + t*dilation - begin of its input x.
type window struct {
	r                int // spatial axes
	stride, dilation []int64
	begin, end       []int64
	group            int64
	kernel           []graph.Dim // sizes; may be unknown
	ceil             bool        // the last window may stick out of the padded input
	uniform          bool        // all weights are equal
}

// newWindow reads n's attributes; the padding is still that of NOTSET.
func newWindow(n *graph.Node, kernel []graph.Dim) *window {
	r := len(n.Result(0).Type.Shape) - 2
	or := func(v []int64, def int64, size int) []int64 {
		if v != nil {
			return v
		}
		v = make([]int64, size)
		for i := range v {
			v[i] = def
		}
		return v
	}
	pads := or(n.Ints("pads"), 0, 2*r)
	w := &window{r: r, stride: or(n.Ints("strides"), 1, r), dilation: or(n.Ints("dilations"), 1, r),
		begin: append([]int64{}, pads[:r]...), end: append([]int64{}, pads[r:]...), group: n.Int("group", 1), kernel: kernel}
	w.ceil = n.Int("ceil_mode", 0) != 0 && !w.unitStride()
	if n.Str("auto_pad", "NOTSET") != "NOTSET" || n.Ints("output_shape") != nil {
		w.begin, w.end = make([]int64, r), make([]int64, r)
	}
	return w
}

// weightWindow is newWindow with the kernel sizes of a convolution's weights.
func weightWindow(n *graph.Node) *window {
	w := newWindow(n, nil)
	kernel := n.Ints("kernel_shape")
	for i := range w.r {
		if kernel != nil {
			w.kernel = append(w.kernel, graph.Known(kernel[i]))
		} else {
			w.kernel = append(w.kernel, dim(n.Operand(1), 2+i))
		}
	}
	return w
}

// dim returns a dimension of v, unknown if the rank is.
func dim(v *graph.Value, i int) graph.Dim {
	if i >= len(v.Type.Shape) {
		return graph.Unknown()
	}
	return v.Type.Shape[i]
}

// span returns the number of positions from the first tap to the last along a spatial axis.
func (w *window) span(i int) graph.Dim {
	return w.kernel[i].Sub(graph.Known(1)).Mul(graph.Known(w.dilation[i])).Add(graph.Known(1))
}

// taps returns the number of taps, or 0 if it is not known.
func (w *window) taps() int64 {
	n, ok := graph.Shape(w.kernel).Size().Int()
	if !ok {
		return 0
	}
	return n
}

func (w *window) unitStride() bool {
	for _, s := range w.stride {
		if s != 1 {
			return false
		}
	}
	return true
}

// attrs are the attributes of a Conv of this geometry.
func (w *window) attrs() []*graph.Attr {
	return convAttrs(w.stride, w.dilation, w.begin, w.end, w.group)
}

func convAttrs(stride, dilation, begin, end []int64, group int64) []*graph.Attr {
	return []*graph.Attr{graph.IntsAttr("strides", stride...), graph.IntsAttr("dilations", dilation...),
		graph.IntsAttr("pads", append(append([]int64{}, begin...), end...)...), graph.IntAttr("group", group)}
}

// axes returns the axes of the spatial dimensions.
func (w *window) axes() []int64 {
	out := make([]int64, w.r)
	for i := range out {
		out[i] = int64(2 + i)
	}
	return out
}

// spatial returns the spatial dimensions of x as an int64 vector.
func (w *window) spatial(c *Ctx, x *graph.Value) *graph.Value {
	if s := x.Type.Shape; s != nil {
		if n, ok := s[2:].Ints(); ok {
			return c.Ints(n...)
		}
	}
	return c.Op("Shape", []*graph.Value{x}, graph.IntAttr("start", 2))
}

// spans returns the spans as an int64 vector; weights, whose sizes are those of the kernel, may be nil if the kernel is known.
func (w *window) spans(c *Ctx, weights *graph.Value) *graph.Value {
	s := make(graph.Shape, w.r)
	for i := range s {
		s[i] = w.span(i)
	}
	if n, ok := s.Ints(); ok {
		return c.Ints(n...)
	}
	less := c.Sub(w.spatial(c, weights), c.Ints(1))
	return c.Add(c.Mul(less, c.Ints(w.dilation...)), c.Ints(1))
}

// halves splits padding: the front gets the smaller half if upper, else the larger.
func halves(total int64, upper bool) (begin, end int64) {
	if upper {
		return total / 2, total - total/2
	}
	return total - total/2, total / 2
}

// resolve returns n's input x in the form that w's padding, which it sets, applies to. Automatic padding that depends on
// sizes known only at run time is added to x; front then is how much, else nil.
func (w *window) resolve(c *Ctx, n *graph.Node, x, weights *graph.Value) (padded, front *graph.Value) {
	auto := n.Str("auto_pad", "NOTSET")
	if auto == "NOTSET" || auto == "VALID" {
		return x, nil
	}
	upper, known := auto == "SAME_UPPER", true
	for i := range w.r {
		span, ok := w.span(i).Int()
		size, sized := dim(x, 2+i).Int()
		switch s := w.stride[i]; {
		case ok && s == 1:
			w.begin[i], w.end[i] = halves(span-1, upper)
		case ok && sized:
			w.begin[i], w.end[i] = halves(max(0, ((size+s-1)/s-1)*s+span-size), upper)
		default:
			known = false
		}
	}
	if known {
		return x, nil
	}
	w.begin, w.end = make([]int64, w.r), make([]int64, w.r)
	size, stride := w.spatial(c, x), c.Ints(w.stride...)
	outs := c.Div(c.Add(size, c.Sub(stride, c.Ints(1))), stride)
	need := c.Sub(c.Add(c.Mul(c.Sub(outs, c.Ints(1)), stride), w.spans(c, weights)), size)
	front, back := runTimeHalves(c, need, upper)
	return padSpatial(c, x, front, back), front
}

// runTimeHalves is halves for a vector of padding, where negative means none.
func runTimeHalves(c *Ctx, total *graph.Value, upper bool) (begin, end *graph.Value) {
	total = c.Binary("Max", total, c.Ints(0))
	small := c.Div(total, c.Ints(2))
	if upper {
		return small, c.Sub(total, small)
	}
	return c.Sub(total, small), small
}

// padSpatial adds zeros in front of and behind the spatial axes; a negative number removes.
func padSpatial(c *Ctx, x, front, back *graph.Value) *graph.Value {
	none := c.Ints(0, 0)
	return c.Op("Pad", []*graph.Value{x, c.Concat(0, none, front, none, back)})
}

// pad applies w's padding to x and returns the window that is left.
func (w *window) pad(c *Ctx, x *graph.Value) (*graph.Value, *window) {
	inner := *w
	inner.begin, inner.end = make([]int64, w.r), make([]int64, w.r)
	for i := range w.r {
		if w.begin[i] != 0 || w.end[i] != 0 {
			pads := append(append([]int64{0, 0}, w.begin...), append([]int64{0, 0}, w.end...)...)
			return c.Op("Pad", []*graph.Value{x, c.Ints(pads...)}), &inner
		}
	}
	return x, &inner
}

// tap returns what the given tap reads of x, which has no padding left: a strided slice over the spatial axes, of
// the size of the output.
func (w *window) tap(c *Ctx, x *graph.Value, tap []int64) *graph.Value {
	start, end, whole := make([]int64, w.r), make([]int64, w.r), true
	for i := range w.r {
		k, _ := w.kernel[i].Int()
		start[i] = tap[i] * w.dilation[i]
		if end[i] = start[i] - (k-1)*w.dilation[i]; end[i] == 0 {
			end[i] = math.MaxInt64
		}
		whole = whole && k == 1 && w.stride[i] == 1
	}
	if whole {
		return x
	}
	return c.Slice(x, c.Ints(start...), c.Ints(end...), c.Ints(w.axes()...), c.Ints(w.stride...))
}

// eachTap calls f for every tap in row-major order; the kernel must be known.
func (w *window) eachTap(f func(tap []int64)) {
	tap := make([]int64, w.r)
	for range w.taps() {
		f(tap)
		for i := w.r - 1; i >= 0; i-- {
			tap[i]++
			if k, _ := w.kernel[i].Int(); tap[i] < k {
				break
			}
			tap[i] = 0
		}
	}
}

// sumChannels returns the sum of g over all axes but the channels': the cotangent of a bias.
func (w *window) sumChannels(c *Ctx, g *graph.Value) *graph.Value {
	return c.ReduceSum(g, false, append([]int64{0}, w.axes()...)...)
}

// convVJP is the rule of Y = W * X + B, a correlation. X gets the transposed convolution of the cotangent with W, W the
// correlation of X with the cotangent, B the cotangent's sums.
func convVJP(c *Ctx) []*graph.Value {
	x, weights, g := c.X(0), c.X(1), c.Ct(0)
	w := weightWindow(c.Node)
	padded, front := w.resolve(c, c.Node, x, weights)
	out := make([]*graph.Value, len(c.Node.In))
	if c.Need(0) {
		out[0] = w.inputCt(c, g, weights, padded)
		if front != nil {
			out[0] = c.Slice(out[0], front, c.Add(front, w.spatial(c, x)), c.Ints(w.axes()...), nil)
		}
	}
	if c.Need(1) {
		out[1] = w.weightCt(c, padded, g, weights)
	}
	if c.Need(2) {
		out[2] = w.sumChannels(c, g)
	}
	return out
}

// convTransposeVJP is the rule of the transposed convolution: X gets the convolution of the cotangent with W, and W the
// correlation of the cotangent with X.
func convTransposeVJP(c *Ctx) []*graph.Value {
	x, weights, g := c.X(0), c.X(1), c.Ct(0)
	w := weightWindow(c.Node)
	out := make([]*graph.Value, len(c.Node.In))
	if c.Need(2) {
		out[2] = w.sumChannels(c, g)
	}
	if !c.Need(0) && !c.Need(1) {
		return out
	}
	g = w.resolveTransposed(c, g)
	if c.Need(0) {
		out[0] = c.Op("Conv", []*graph.Value{g, weights}, w.attrs()...)
	}
	if c.Need(1) {
		out[1] = w.weightCt(c, g, x, weights)
	}
	return out
}

// resolveTransposed returns the cotangent g of a ConvTranspose's result cropped or padded such that the convolution with
// w's padding, which it sets, gives as many outputs as the node's operand has.
func (w *window) resolveTransposed(c *Ctx, g *graph.Value) *graph.Value {
	n := c.Node
	extra, shape := n.Ints("output_padding"), n.Ints("output_shape")
	if extra == nil {
		extra = make([]int64, w.r)
	}
	auto := n.Str("auto_pad", "NOTSET")
	computed := shape != nil || auto == "SAME_UPPER" || auto == "SAME_LOWER"
	upper, known := auto == "SAME_UPPER", true
	begin, end := append([]int64{}, w.begin...), append([]int64{}, w.end...)
	crop := make([]int64, w.r)
	for i := range w.r {
		span, ok := w.span(i).Int()
		size, sized := dim(n.Operand(0), 2+i).Int()
		over := extra[i] // by how much the padded result is larger than all windows together
		switch s := w.stride[i]; {
		case !computed:
		case ok && shape == nil: // the result is s times the operand
			total := span - s + extra[i]
			begin[i], end[i] = halves(max(0, total), upper)
			over -= min(0, total)
		case ok && sized:
			total := (size-1)*s + span + extra[i] - shape[len(shape)-w.r+i]
			begin[i], end[i] = halves(max(0, total), upper)
			over -= min(0, total)
		default:
			known = false
		}
		// Windows that would start in the excess must not be counted: take it off the padding, or the result.
		if over >= w.stride[i] {
			cut := min(over, end[i])
			end[i] -= cut
			crop[i] = over - cut
		}
	}
	if !known {
		return w.padTransposed(c, g, extra, upper)
	}
	w.begin, w.end = begin, end
	for _, k := range crop {
		if k != 0 {
			stop := make([]int64, w.r)
			for i := range stop {
				if stop[i] = -crop[i]; crop[i] == 0 {
					stop[i] = math.MaxInt64
				}
			}
			return c.Slice(g, c.Ints(make([]int64, w.r)...), c.Ints(stop...), c.Ints(w.axes()...), nil)
		}
	}
	return g
}

// padTransposed is resolveTransposed for sizes known only at run time.
func (w *window) padTransposed(c *Ctx, g *graph.Value, extra []int64, upper bool) *graph.Value {
	x, weights := c.X(0), c.X(1)
	steps := c.Mul(c.Sub(w.spatial(c, x), c.Ints(1)), c.Ints(w.stride...))
	full := c.Add(steps, w.spans(c, weights))
	size := w.spatial(c, g)
	front, _ := runTimeHalves(c, c.Sub(c.Add(full, c.Ints(extra...)), size), upper)
	w.begin, w.end = make([]int64, w.r), make([]int64, w.r)
	return padSpatial(c, g, front, c.Sub(c.Sub(full, size), front))
}
