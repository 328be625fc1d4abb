package op

import (
	"fmt"
	"math"

	"gradtool/graph"
)

func unpoolDefs() []Def {
	ints := graph.IntsAttr
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	at := func(shape []int, v ...float64) Arg { return TV(graph.Int64, shape, v...).Variable() }
	return []Def{
		{Name: "MaxUnpool", Infer: inferMaxUnpool, Eval: evalMaxUnpool, Samples: []Sample{
			{In: []Arg{F(1, 1, 2, 2), at([]int{1, 1, 2, 2}, 5, 7, 13, 15)}, Attrs: attrs(ints("kernel_shape", 2, 2), ints("strides", 2, 2))},
			{Name: "output shape", In: []Arg{F(1, 1, 2, 2), at([]int{1, 1, 2, 2}, 5, 7, 13, 15), I(1, 1, 5, 5)},
				Attrs: attrs(ints("kernel_shape", 2, 2), ints("strides", 2, 2))},
			{Name: "1-D", In: []Arg{F(2, 1, 3), at([]int{2, 1, 3}, 0, 3, 4, 6, 8, 11)}, Attrs: attrs(ints("kernel_shape", 2), ints("strides", 2))},
			{Name: "pads", In: []Arg{F(1, 1, 3), at([]int{1, 1, 3}, 0, 2, 3)}, Attrs: attrs(ints("kernel_shape", 2), ints("strides", 2), ints("pads", 1, 1))},
		}},
		{Name: "MaxRoiPool", Infer: inferMaxRoiPool, Eval: evalMaxRoiPool, Samples: []Sample{
			{In: []Arg{FApart(2, 2, 6, 8), FV([]int{3, 5}, 0, 1, 1, 4, 4, 1, 0, 0, 7, 5, 1, 6, 4, 2, 2).Constant()}, Attrs: attrs(ints("pooled_shape", 2, 2))},
			{Name: "scaled", In: []Arg{FApart(1, 2, 6, 6), FV([]int{2, 5}, 0, 1, 3, 7, 10, 0, 6, 5, 20, 30).Constant()},
				Attrs: attrs(ints("pooled_shape", 2, 4), graph.FloatAttr("spatial_scale", 0.5))},
		}},
	}
}

// unpoolSizes returns the spatial sizes that a MaxUnpool's attributes give for an operand of the given ones.
func unpoolSizes(n *graph.Node, in graph.Shape) (graph.Shape, error) {
	r := len(in)
	stride, _, pads, err := windowAttrs(n, r)
	if err != nil {
		return nil, err
	}
	kernel := n.Ints("kernel_shape")
	if len(kernel) != r {
		return nil, fmt.Errorf("attribute kernel_shape has %d elements, want %d", len(kernel), r)
	}
	out := make(graph.Shape, r)
	for i := range r {
		out[i] = in[i].Sub(graph.Known(1)).Mul(graph.Known(stride[i])).Add(graph.Known(kernel[i] - pads[i] - pads[r+i]))
	}
	return out, nil
}

func inferMaxUnpool(c *InferCtx) error {
	x := c.Shape(0)
	c.Set(0, c.Elem(0), nil)
	if c.Has(2) {
		if d := c.Dims(2); d != nil {
			c.Set(0, c.Elem(0), graph.Shape(d))
		} else if x != nil {
			c.Set(0, c.Elem(0), graph.UnknownShape(len(x)))
		}
		return nil
	}
	if len(x) < 3 {
		if x != nil {
			return c.Errorf("operand 0 has shape %s, want a batch, channels and spatial axes", x)
		}
		if k := c.Node.Ints("kernel_shape"); k != nil {
			c.Set(0, c.Elem(0), graph.UnknownShape(len(k)+2))
		}
		return nil
	}
	s, err := unpoolSizes(c.Node, x[2:])
	if err != nil {
		return err
	}
	c.Set(0, c.Elem(0), append(x[:2].Clone(), s...))
	return nil
}

// evalMaxUnpool puts elements at row-major places of a tensor of zeros. The places count in the shape that the attributes
// give, as the standard's tests have it; a larger output_shape then adds zeros behind. (ONNX Runtime counts in
// output_shape instead.)
func evalMaxUnpool(c *EvalCtx) error {
	x, index := c.Arg(0), c.Arg(1)
	if x.Rank() < 3 || len(index.I64) != x.Len() {
		return c.Errorf("operand 0 has shape %v, the indices %v", x.Shape, index.Shape)
	}
	sizes, err := unpoolSizes(c.Node, x.Type().Shape[2:])
	if err != nil {
		return err
	}
	n, _ := sizes.Ints()
	y := x.NewLike(append([]int{x.Shape[0], x.Shape[1]}, toInts(n)...))
	for i, at := range index.I64 {
		if at < 0 || at >= int64(y.Len()) {
			return c.Errorf("index %d is outside a result of %d elements", at, y.Len())
		}
		y.copyFrom(int(at), x, i)
	}
	if c.Arg(2) != nil {
		if y, err = placed(y, toInts(c.Ints(2))); err != nil {
			return err
		}
	}
	c.Set(0, y)
	return nil
}

// placed returns zeros of the given shape, at least x's along each axis, with x at the front corner.
func placed(x *Array, shape []int) (*Array, error) {
	if len(shape) != x.Rank() {
		return nil, fmt.Errorf("output_shape has %d elements, want %d", len(shape), x.Rank())
	}
	for i := range shape {
		if shape[i] < x.Shape[i] {
			return nil, fmt.Errorf("output_shape %v is smaller than the shape %v that the attributes give", shape, x.Shape)
		}
	}
	y := x.NewLike(shape)
	last := x.Rank() - 1
	width, step := x.Shape[last], strides(shape)
	index := make([]int, last)
	for r := range x.Len() / max(width, 1) {
		at := 0
		for i := range index {
			at += index[i] * step[i]
		}
		y.copyRun(at, x, r*width, width)
		for i := last - 1; i >= 0; i-- {
			if index[i]++; index[i] < x.Shape[i] {
				break
			}
			index[i] = 0
		}
	}
	return y, nil
}

func inferMaxRoiPool(c *InferCtx) error {
	pooled := c.Node.Ints("pooled_shape")
	if len(pooled) != 2 {
		return c.Errorf("attribute pooled_shape has %d elements, want 2", len(pooled))
	}
	out := append(graph.UnknownShape(2), graph.ShapeOf(pooled...)...)
	if x := c.Shape(0); x != nil {
		if len(x) != 4 {
			return c.Errorf("operand 0 has shape %s, want rank 4", x)
		}
		out[1] = x[1]
	}
	if rois := c.Shape(1); rois != nil {
		if len(rois) != 2 || rois[1].ProvablyNot(graph.Known(5)) {
			return c.Errorf("operand 1 has shape %s, want [regions, 5]", rois)
		}
		out[0] = rois[0]
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

// roiBin returns the range of positions that bin i of n covers of a region from start to end inclusive, along an
// axis of the given size. It may be empty. Bounds are computed in float32, as runtimes do, since rounding shows.
func roiBin(start, end, i, n, size int) (lo, hi int) {
	bin := float32(max(end-start+1, 1)) / float32(n)
	lo = start + int(math.Floor(float64(float32(i)*bin)))
	hi = start + int(math.Ceil(float64(float32(i+1)*bin)))
	return min(max(lo, 0), size), min(max(hi, 0), size)
}

// evalMaxRoiPool computes the maximum of each bin of each region (batch index, x1, y1, x2, y2); an empty bin gives 0.
// The bins are those of R. Girshick, Fast R-CNN, 2015, section 2.1.
func evalMaxRoiPool(c *EvalCtx) error {
	x, rois := c.Arg(0), c.Arg(1)
	pooled := toInts(c.Node.Ints("pooled_shape"))
	if x.Rank() != 4 || rois.Rank() != 2 || rois.Shape[1] != 5 || len(pooled) != 2 {
		return c.Errorf("operands have shapes %v and %v, want [N, C, H, W] and [regions, 5]", x.Shape, rois.Shape)
	}
	scale := float32(c.Node.Float("spatial_scale", 1))
	channels, h, w := x.Shape[1], x.Shape[2], x.Shape[3]
	y := x.NewLike([]int{rois.Shape[0], channels, pooled[0], pooled[1]})
	k := 0
	for r := range rois.Shape[0] {
		image := int(rois.Float(r * 5))
		if image < 0 || image >= x.Shape[0] {
			return c.Errorf("region %d is of image %d, but there are %d", r, image, x.Shape[0])
		}
		var at [4]int
		for i := range at {
			at[i] = int(math.Round(float64(float32(rois.Float(r*5+1+i)) * scale)))
		}
		for ch := range channels {
			base := (image*channels + ch) * h * w
			for ph := range pooled[0] {
				top, bottom := roiBin(at[1], at[3], ph, pooled[0], h)
				for pw := range pooled[1] {
					left, right := roiBin(at[0], at[2], pw, pooled[1], w)
					best := math.Inf(-1)
					for i := top; i < bottom; i++ {
						for j := left; j < right; j++ {
							best = max(best, x.Float(base+i*w+j))
						}
					}
					if top >= bottom || left >= right {
						best = 0
					}
					y.SetFloat(k, best)
					k++
				}
			}
		}
	}
	c.Set(0, y)
	return nil
}
