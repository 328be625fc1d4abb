package op

import (
	"math"

	"gradtool/graph"
)

// regionDefs holds the operators of detectors: pooling of regions at fractional places and the choice among boxes.
func regionDefs() []Def {
	i := func(name string, v int64) *graph.Attr { return graph.IntAttr(name, v) }
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	size := func(h, w int64, more ...*graph.Attr) []*graph.Attr {
		return append([]*graph.Attr{i("output_height", h), i("output_width", w)}, more...)
	}
	ratio, most := i("sampling_ratio", 2), graph.StringAttr("mode", "max")
	legacy := graph.StringAttr("coordinate_transformation_mode", "output_half_pixel")
	x := F(2, 2, 6, 7)
	rois := FV([]int{3, 4}, 1.13, 0.72, 5.31, 4.46, -2.2, 2.37, 8.71, 7.94, 3.27, 3.07, 3.79, 4.22)
	image := TV(graph.Int64, []int{3}, 1, 0, 1)
	boxes := FV([]int{1, 6, 4}, 0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, -0.1, 1, 0.9, 0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100, 1, 101)
	scores := FV([]int{1, 1, 6}, 0.9, 0.75, 0.6, 0.95, 0.5, 0.3)
	return []Def{
		{Name: "RoiAlign", Infer: inferRoiAlign, Eval: evalRoiAlign, Decompose: decomposeRoiAlign, Cost: costRoiAlign, Samples: []Sample{
			{In: []Arg{x, rois, image}, Attrs: size(2, 3)},
			{Name: "ratio", In: []Arg{x, rois, image}, Attrs: size(2, 2, ratio)},
			{Name: "max", In: []Arg{FApart(2, 2, 6, 7), rois, image}, Attrs: size(2, 2, most)},
			{Name: "max, ratio, scaled", In: []Arg{FApart(2, 2, 6, 7), rois, image.Variable()}, Attrs: size(3, 2, ratio, most, graph.FloatAttr("spatial_scale", 0.7))},
			{Name: "without half a pixel", In: []Arg{x, rois, image.Variable()}, Attrs: size(2, 2, legacy)},
			{Name: "one", In: []Arg{F(1, 3, 4, 4), FV([]int{1, 4}, 0.2, 0.3, 2.4, 3.1), TV(graph.Int64, []int{1}, 0)}},
		}},
		{Name: "NonMaxSuppression", Facts: DataDependent, Infer: inferSuppress, Eval: evalSuppress, Samples: []Sample{
			{In: []Arg{boxes, scores, IS(3), FV(nil, 0.5), FV(nil, 0.4)}},
			{Name: "centres", In: []Arg{boxes, scores, IS(2).Variable()}, Attrs: attrs(i("center_point_box", 1))},
			{Name: "none", In: []Arg{boxes, scores}},
		}},
	}
}

func inferRoiAlign(c *InferCtx) error {
	h, w := c.Node.Int("output_height", 1), c.Node.Int("output_width", 1)
	if h < 1 || w < 1 {
		return c.Errorf("output_height and output_width are %d and %d, expected at least 1", h, w)
	}
	out := graph.Shape{graph.Unknown(), graph.Unknown(), graph.Known(h), graph.Known(w)}
	for i, rank := range []int{4, 2, 1} {
		if s := c.Shape(i); s != nil && len(s) != rank {
			return c.Errorf("operand %d has shape %s, expected rank %d", i, s, rank)
		}
	}
	if x := c.Shape(0); x != nil {
		out[1] = x[1]
	}
	if r := c.Shape(1); r != nil {
		if r[1].ProvablyNot(graph.Known(4)) {
			return c.Errorf("regions have shape %s, expected [regions, 4]", r)
		}
		out[0] = r[0]
	}
	if b := c.Shape(2); b != nil && out[0].IsUnknown() {
		out[0] = b[0]
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

// costRoiAlign counts eight operations for each of the points of a bin.
func costRoiAlign(c *CostCtx) float64 {
	n := float64(max(c.Node.Int("sampling_ratio", 0), 1))
	return 8 * n * n * c.OutLen(0)
}

// samplePoint is a place between two positions of an axis, with the weights of these. No weights: it lies outside.
type samplePoint struct {
	lo, hi   int
	wLo, wHi float64
}

// roiAxis returns the points of an axis of the given size at which the bins of a region from start to end are
// sampled, and how many a bin has: ratio, or, for 0, as many as the bin is long, rounded up.
func roiAxis(start, end float64, bins, ratio, size int, halfPixel bool) ([]samplePoint, int) {
	length := end - start
	if !halfPixel {
		length = math.Max(length, 1)
	}
	bin := length / float64(bins)
	n := ratio
	if n <= 0 {
		n = int(math.Max(math.Ceil(bin), 0))
	}
	points := make([]samplePoint, 0, bins*n)
	for p := range bins {
		for i := range n {
			at := start + float64(p)*bin + (float64(i)+0.5)*bin/float64(n)
			if !(at >= -1 && at <= float64(size)) {
				points = append(points, samplePoint{})
				continue
			}
			at = math.Max(at, 0)
			lo := min(int(at), size-1)
			hi := min(lo+1, size-1)
			frac := math.Min(at, float64(size-1)) - float64(lo)
			points = append(points, samplePoint{lo, hi, 1 - frac, frac})
		}
	}
	return points, n
}

// evalRoiAlign samples each bin of each region at a grid of points, each interpolated between the four positions around it,
// and takes the mean (K. He et al., Mask R-CNN, 2017, section 3). Mode max takes the largest of the positions' weighted
// values, before they are added, as the standard's reference does.
func evalRoiAlign(c *EvalCtx) error {
	x, rois, image := c.Arg(0), c.Arg(1), c.Ints(2)
	if x.Rank() != 4 || rois.Rank() != 2 || rois.Shape[1] != 4 || len(image) != rois.Shape[0] {
		return c.Errorf("operands are %s, %s and %d batch indices, expected [N, C, H, W], [regions, 4] and one per region", x.Type(), rois.Type(), len(image))
	}
	n := c.Node
	bins := [2]int{int(n.Int("output_height", 1)), int(n.Int("output_width", 1))}
	ratio, scale := int(n.Int("sampling_ratio", 0)), n.Float("spatial_scale", 1)
	halfPixel := n.Str("coordinate_transformation_mode", "half_pixel") == "half_pixel"
	largest := n.Str("mode", "avg") == "max"
	channels, h, w := x.Shape[1], x.Shape[2], x.Shape[3]
	if h == 0 || w == 0 || bins[0] < 1 || bins[1] < 1 {
		return c.Errorf("cannot pool %d by %d bins of %s", bins[0], bins[1], x.Type())
	}
	for r, b := range image {
		if b < 0 || b >= int64(x.Shape[0]) {
			return c.Errorf("region %d is of image %d, but there are %d", r, b, x.Shape[0])
		}
	}
	y := x.NewLike([]int{len(image), channels, bins[0], bins[1]})
	parallel(len(image), 1, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			edge := func(i int) float64 {
				v := rois.Float(4*r+i) * scale
				if halfPixel {
					v -= 0.5
				}
				return v
			}
			rows, nh := roiAxis(edge(1), edge(3), bins[0], ratio, h, halfPixel)
			cols, nw := roiAxis(edge(0), edge(2), bins[1], ratio, w, halfPixel)
			for ch := range channels {
				base := (int(image[r])*channels + ch) * h * w
				for p := range bins[0] {
					for q := range bins[1] {
						v := pointsOf(x, base, w, rows[p*nh:(p+1)*nh], cols[q*nw:(q+1)*nw], largest)
						y.SetFloat(((r*channels+ch)*bins[0]+p)*bins[1]+q, v)
					}
				}
			}
		}
	})
	c.Set(0, y)
	return nil
}

// pointsOf returns the mean, or the largest weighted value, over a grid of points; 0 for none.
func pointsOf(x *Array, base, width int, rows, cols []samplePoint, largest bool) float64 {
	if len(rows) == 0 || len(cols) == 0 {
		return 0
	}
	sum, best := 0.0, math.Inf(-1)
	for _, r := range rows {
		top, bottom := base+r.lo*width, base+r.hi*width
		for _, q := range cols {
			a, b := r.wLo*q.wLo*x.Float(top+q.lo), r.wLo*q.wHi*x.Float(top+q.hi)
			d, e := r.wHi*q.wLo*x.Float(bottom+q.lo), r.wHi*q.wHi*x.Float(bottom+q.hi)
			sum += a + b + d + e
			best = max(best, a, b, d, e)
		}
	}
	if largest {
		return best
	}
	return sum / float64(len(rows)*len(cols))
}
