package autodiff

import (
	"math"

	"gradtool/graph"
)

// Sizes that decide between formulations of the same cotangent; the ratios between them were measured in ONNX Runtime on
// a CPU.
const (
	minDepth      = 16      // input channels from which one matrix product per tap beats one for all taps, and a convolution
	minPositions  = 64      // output positions of an image from which it does
	shallowTaps   = 16      // taps up to which, with fewer channels, one product for all beats a convolution
	maxColumns    = 1 << 22 // elements per image of a copy of all windows, which that takes
	maxTaps       = 49      // taps up to which a slice for each is worth it
	wideOutput    = 784     // output positions from which, with as many channels, a flipped convolution beats a transposed one
	depthwiseTaps = 25      // as maxTaps, for depthwise convolutions
	smallOutput   = 64      // output positions up to which a grouped convolution beats a sum for each tap
)

// inputCt returns the cotangent of the input x of a convolution with the given weights: the transposed convolution of g,
// with x's spatial sizes.
func (w *window) inputCt(c *Ctx, g, weights, x *graph.Value) *graph.Value {
	if w.flips(g, weights) {
		return w.flipped(c, g, weights)
	}
	begin, end := append([]int64{}, w.begin...), append([]int64{}, w.end...)
	extra := make([]int64, w.r)
	crop := false
	for i := range w.r {
		over, ok := w.uncovered(g, x, i)
		switch {
		case ok && over >= 0: // the last positions, which no window reads
			extra[i] = over
		case ok: // windows stick out
			end[i] -= over
		default: // enough for all cases, then cut
			extra[i], end[i] = w.stride[i]-1, 0
			crop = true
		}
	}
	attrs := convAttrs(w.stride, w.dilation, begin, end, w.group)
	for _, e := range extra {
		if e != 0 {
			attrs = append(attrs, graph.IntsAttr("output_padding", extra...))
			break
		}
	}
	dx := c.Op("ConvTranspose", []*graph.Value{g, weights}, attrs...)
	if crop {
		dx = c.Slice(dx, c.Ints(make([]int64, w.r)...), w.spatial(c, x), c.Ints(w.axes()...), nil)
	}
	return dx
}

// uncovered returns by how much the padded input x is larger along a spatial axis than all windows together, negative
// where windows stick out; ok is false if that is known only at run time.
func (w *window) uncovered(g, x *graph.Value, i int) (over int64, ok bool) {
	free := dim(x, 2+i).Add(graph.Known(w.begin[i] + w.end[i])).Sub(w.span(i))
	steps := dim(g, 2+i).Sub(graph.Known(1)).Mul(graph.Known(w.stride[i]))
	if over, ok = free.Sub(steps).Int(); ok {
		return over, true
	}
	if w.ceil {
		return 0, false
	}
	if w.stride[i] == 1 {
		return 0, true
	}
	return free.Mod(graph.Known(w.stride[i])).Int()
}

// flips decides whether the input's cotangent is computed by a convolution with flipped weights, which needs stride 1.
func (w *window) flips(g, weights *graph.Value) bool {
	if !w.unitStride() || w.ceil {
		return false
	}
	for i := range w.r {
		span, ok := w.span(i).Int()
		if !ok || w.begin[i] >= span || w.end[i] >= span {
			return false
		}
	}
	if w.taps() == 1 || w.depthwise(weights) {
		return true
	}
	size, sized := spatialSize(g)
	depth, ok := dim(weights, 1).Int()
	return w.group == 1 && sized && ok && size >= wideOutput && depth >= minDepth
}

// spatialSize returns the number of spatial positions of x, if it is known.
func spatialSize(x *graph.Value) (int64, bool) {
	if x.Type.Shape == nil {
		return 0, false
	}
	return x.Type.Shape[2:].Size().Int()
}

// depthwise reports whether every channel is convolved by itself, to one channel.
func (w *window) depthwise(weights *graph.Value) bool {
	m, ok := dim(weights, 0).Int()
	per, known := dim(weights, 1).Int()
	return ok && known && m == w.group && per == 1
}

// flipped returns the cotangent of a stride-1 convolution's input as a convolution of g with the weights' taps in reverse
// and their channels exchanged.
func (w *window) flipped(c *Ctx, g, weights *graph.Value) *graph.Value {
	turned := weights
	if w.taps() > 1 && !w.uniform {
		from, to, step := make([]int64, w.r), make([]int64, w.r), make([]int64, w.r)
		for i := range from {
			from[i], to[i], step[i] = -1, math.MinInt64, -1
		}
		turned = c.Slice(turned, c.Ints(from...), c.Ints(to...), c.Ints(w.axes()...), c.Ints(step...))
	}
	if !w.depthwise(weights) {
		turned = w.swapChannels(c, turned)
	}
	begin, end := make([]int64, w.r), make([]int64, w.r)
	for i := range w.r {
		span, _ := w.span(i).Int()
		begin[i], end[i] = span-1-w.begin[i], span-1-w.end[i]
	}
	return c.Op("Conv", []*graph.Value{g, turned}, convAttrs(w.stride, w.dilation, begin, end, w.group)...)
}

// swapChannels turns weights [G*M, C, ...] into [G*C, M, ...].
func (w *window) swapChannels(c *Ctx, weights *graph.Value) *graph.Value {
	if w.group == 1 {
		return c.Transpose(weights, w.perm(1, 0)...)
	}
	tail := w.spatial(c, weights)
	split := c.Op("Reshape", []*graph.Value{weights, c.Concat(0, c.Ints(w.group, -1), c.DimOf(weights, 1), tail)})
	split = c.Transpose(split, w.perm(0, 2, 1)...)
	return c.Op("Reshape", []*graph.Value{split, c.Concat(0, c.Ints(-1), w.perGroup(c, weights, 0), tail)})
}

// perGroup returns dimension axis of x divided by the number of groups, as an int64 vector of one element.
func (w *window) perGroup(c *Ctx, x *graph.Value, axis int) *graph.Value {
	if n, ok := dim(x, axis).Int(); ok {
		return c.Ints(n / w.group)
	}
	return c.Div(c.DimOf(x, axis), c.Ints(w.group))
}

// perm returns the given leading axes and after them the spatial axes.
func (w *window) perm(lead ...int64) []int64 {
	for range w.r {
		lead = append(lead, int64(len(lead)))
	}
	return lead
}

// weightCt returns the cotangent of the weights of a convolution of x whose result has the cotangent g.
func (w *window) weightCt(c *Ctx, x, g, weights *graph.Value) *graph.Value {
	taps := w.taps()
	size, sized := spatialSize(g)
	switch {
	case w.depthwise(weights) && w.unitStride() && taps > 0 && taps <= depthwiseTaps && !(sized && size <= smallOutput):
		return w.weightCtDepthwise(c, x, g, weights)
	case w.group == 1 && taps == 1:
		return w.weightCtColumns(c, x, g, weights, true)
	case w.group == 1 && taps > 0 && taps <= maxTaps:
		depth, ok := dim(weights, 1).Int()
		switch {
		case !ok:
		case depth >= minDepth && (!sized || size >= minPositions):
			return w.weightCtColumns(c, x, g, weights, false)
		case sized && size*depth*taps <= maxColumns && (depth >= minDepth || taps <= shallowTaps):
			return w.weightCtColumns(c, x, g, weights, true)
		}
	}
	return w.weightCtConv(c, x, g, weights)
}

// weightCtDepthwise computes each tap's cotangent as the sum over batch and positions of g times what the tap reads.
func (w *window) weightCtDepthwise(c *Ctx, x, g, weights *graph.Value) *graph.Value {
	x, inner := w.pad(c, x)
	var parts []*graph.Value
	inner.eachTap(func(tap []int64) {
		sum := w.sumChannels(c, c.Mul(g, inner.tap(c, x, tap)))
		parts = append(parts, c.Unsqueeze(sum, 1))
	})
	return c.Reshape(c.Concat(1, parts...), c.Shape(weights))
}

// weightCtColumns computes the cotangent as a matrix product over all positions and images: of g as [M, positions] with
// what the taps read as [taps*C, positions], in one product or one per tap.
func (w *window) weightCtColumns(c *Ctx, x, g, weights *graph.Value, joined bool) *graph.Value {
	matrix := func(v, rows *graph.Value) *graph.Value {
		return c.Op("Reshape", []*graph.Value{v, c.Concat(0, rows, c.Ints(-1))})
	}
	x, inner := w.pad(c, x)
	m, depth := c.DimOf(weights, 0), c.DimOf(weights, 1)
	x, g = c.Transpose(x, w.perm(1, 0)...), matrix(c.Transpose(g, w.perm(1, 0)...), m)
	var parts []*graph.Value
	inner.eachTap(func(tap []int64) { parts = append(parts, inner.tap(c, x, tap)) })
	product := func(columns *graph.Value) *graph.Value {
		return c.Op("Gemm", []*graph.Value{g, columns}, graph.IntAttr("transB", 1))
	}
	if len(parts) == 1 {
		return c.Reshape(product(matrix(parts[0], depth)), c.Shape(weights))
	}
	var dw *graph.Value // [M, taps*C]
	if joined {
		dw = product(matrix(c.Concat(0, parts...), c.Mul(depth, c.Ints(int64(len(parts))))))
	} else {
		for i := range parts {
			parts[i] = product(matrix(parts[i], depth))
		}
		dw = c.Concat(1, parts...)
	}
	dw = c.Op("Reshape", []*graph.Value{dw, c.Concat(0, m, w.spatial(c, weights), depth)})
	perm := []int64{0, int64(w.r + 1)}
	for i := range w.r {
		perm = append(perm, int64(1+i))
	}
	return c.Transpose(dw, perm...)
}

// weightCtConv computes the cotangent as a convolution in which batch and channels change places: of x with g as the
// weights, stride and dilation exchanged. Groups are moved in front of the batch.
func (w *window) weightCtConv(c *Ctx, x, g, weights *graph.Value) *graph.Value {
	if w.group == 1 {
		x, g = c.Transpose(x, w.perm(1, 0)...), c.Transpose(g, w.perm(1, 0)...)
	} else {
		x, g = w.groupMajor(c, x, false), w.groupMajor(c, g, true)
	}
	dw := c.Op("Conv", []*graph.Value{x, g}, convAttrs(w.dilation, w.stride, w.begin, w.end, w.group)...)
	for i := range w.r {
		// Input behind the last window, less than the stride, makes excess outputs where a dilation fits in.
		if w.stride[i] > w.dilation[i] {
			dw = c.Slice(dw, c.Ints(make([]int64, w.r)...), w.spatial(c, weights), c.Ints(w.axes()...), nil)
			break
		}
	}
	return c.Transpose(dw, w.perm(1, 0)...)
}

// groupMajor turns x of [N, G*C, ...] into [C, G*N, ...], or with asWeights into [G*C, N, ...].
func (w *window) groupMajor(c *Ctx, x *graph.Value, asWeights bool) *graph.Value {
	tail := w.spatial(c, x)
	if asWeights {
		return c.Transpose(x, w.perm(1, 0)...)
	}
	// Sizes in full: of an empty batch, -1 would leave open what is meant.
	per, batch := w.perGroup(c, x, 1), c.DimOf(x, 0)
	split := c.Reshape(x, c.Concat(0, batch, c.Ints(w.group), per, tail))
	split = c.Transpose(split, w.perm(2, 1, 0)...)
	if n, ok := dim(x, 0).Int(); ok {
		return c.Reshape(split, c.Concat(0, per, c.Ints(n*w.group), tail))
	}
	return c.Reshape(split, c.Concat(0, per, c.Mul(batch, c.Ints(w.group)), tail))
}
