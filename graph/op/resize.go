package op

import (
	"errors"
	"fmt"
	"math"

	"gradtool/graph"
)

var errEmptyResize = errors.New("an empty axis cannot be resized to a size that is not zero")

// axisResize is what Resize does along one axis.
type axisResize struct {
	axis, in, out int
	scale         float64 // out / in, before rounding
	start, end    float64 // region, as fractions of the axis; 0 and 1 without one
	mode, nearest string
	coord         string
	a             float64 // coefficient of cubic interpolation
	antialias     bool
	exclude       bool    // weights of samples outside the axis are dropped
	outside       float64 // value where a crop reaches outside
}

// tap is one term of a weighted sum.
type tap struct {
	index  int
	weight float64
}

// planResize works out what the node does along each axis. Exactly one of scales and sizes is given.
func planResize(n *graph.Node, shape []int, roi, scales *Array, sizes []int64) ([]axisResize, error) {
	axes, err := resizeAxes(n, len(shape))
	if err != nil {
		return nil, err
	}
	if scales != nil && scales.Len() == 0 {
		scales = nil
	}
	switch {
	case scales == nil && sizes == nil:
		return nil, errors.New("neither scales nor sizes are given")
	case scales != nil && scales.Len() != len(axes), sizes != nil && len(sizes) != len(axes):
		return nil, fmt.Errorf("scales or sizes must be given for each of %d axes", len(axes))
	}
	base := axisResize{mode: n.Str("mode", "nearest"), nearest: n.Str("nearest_mode", "round_prefer_floor"),
		coord: n.Str("coordinate_transformation_mode", "half_pixel"), a: n.Float("cubic_coeff_a", -0.75),
		antialias: n.Int("antialias", 0) != 0, exclude: n.Int("exclude_outside", 0) != 0,
		outside: n.Float("extrapolation_value", 0), end: 1}
	crop := base.coord == "tf_crop_and_resize"
	if crop && (roi == nil || roi.Len() != 2*len(axes)) {
		return nil, fmt.Errorf("tf_crop_and_resize needs a region of %d numbers", 2*len(axes))
	}
	policy := n.Str("keep_aspect_ratio_policy", "stretch")
	common := 0.0 // the scale of all axes, if the aspect ratio is kept
	if sizes != nil && policy != "stretch" {
		for i, a := range axes {
			s := float64(sizes[i]) / float64(shape[a])
			if i == 0 || policy == "not_larger" && s < common || policy == "not_smaller" && s > common {
				common = s
			}
		}
	}
	var plan []axisResize
	for i, a := range axes {
		p := base
		p.axis, p.in = a, shape[a]
		if crop {
			p.start, p.end = roi.Float(i), roi.Float(i+len(axes))
		}
		switch {
		case sizes != nil && policy != "stretch":
			p.scale, p.out = common, int(common*float64(p.in)+0.5)
		case sizes != nil:
			p.out = int(sizes[i])
			p.scale = float64(p.out) / float64(p.in)
		default:
			p.scale = scales.Float(i)
			if !(p.scale > 0) {
				return nil, fmt.Errorf("scale %g is not positive", p.scale)
			}
			width := float64(p.in)
			if crop {
				width *= p.end - p.start
			}
			p.out = int(width * p.scale)
		}
		if p.out < 0 {
			return nil, fmt.Errorf("size %d is negative", p.out)
		}
		plan = append(plan, p)
	}
	return plan, nil
}

// isIdentity reports whether the axis is kept as it is.
func (p axisResize) isIdentity() bool {
	return p.in == p.out && p.scale == 1 && p.start == 0 && p.end == 1
}

// source returns the coordinate on the input axis of output position i.
func (p axisResize) source(i int) float64 {
	x, in, out := float64(i), float64(p.in), p.scale*float64(p.in)
	switch p.coord {
	case "align_corners":
		if out == 1 {
			return 0
		}
		return x * (in - 1) / (out - 1)
	case "asymmetric":
		return x / p.scale
	case "tf_crop_and_resize":
		if p.out == 1 {
			return 0.5 * (p.start + p.end) * (in - 1)
		}
		return p.start*(in-1) + x*(p.end-p.start)*(in-1)/(float64(p.out)-1)
	case "pytorch_half_pixel":
		if p.out <= 1 {
			return -0.5
		}
	case "half_pixel_symmetric":
		adjust := float64(p.out) / out
		return in/2*(1-adjust) + (x+0.5)/p.scale - 0.5
	}
	return (x+0.5)/p.scale - 0.5
}

// taps returns the terms of each output position; nil where a crop reaches outside.
func (p axisResize) taps() [][]tap {
	all := scratch[[]tap](p.out)
	for i := range all {
		x := p.source(i)
		if p.coord == "tf_crop_and_resize" && (x < 0 || x > float64(p.in-1)) {
			continue
		}
		all[i] = p.tapsAt(x)
	}
	return all
}

// tapsAt returns the terms for the source coordinate x. The filter's centre is between the last sample
// before x and the next.
func (p axisResize) tapsAt(x float64) []tap {
	clamp := func(i int) int { return min(max(i, 0), p.in-1) }
	if p.mode == "nearest" {
		return []tap{{clamp(p.nearestTo(x)), 1}}
	}
	base := int(math.Ceil(x)) - 1
	ratio := x - float64(base) // in (0, 1]
	stretch := 1.0             // how far the filter is stretched when sizes shrink
	if p.antialias {
		stretch = 1 / min(p.scale, 1)
	}
	filter, radius := linearFilter, 1.0
	if p.mode == "cubic" {
		filter, radius = func(d float64) float64 { return cubicFilter(d, p.a) }, 2
	}
	first := int(math.Floor(-radius*stretch)) + 1
	var list []tap
	sum := 0.0
	for k := first; k <= 1-first; k++ {
		w := filter((float64(k) - ratio) / stretch)
		if i := base + k; p.exclude && (i < 0 || i >= p.in) {
			w = 0
		}
		list = append(list, tap{clamp(base + k), w})
		sum += w
	}
	if p.antialias || p.exclude {
		for i := range list {
			list[i].weight /= sum
		}
	}
	return list
}

func (p axisResize) nearestTo(x float64) int {
	switch p.nearest {
	case "round_prefer_ceil":
		return int(math.Floor(x + 0.5))
	case "floor":
		return int(math.Floor(x))
	case "ceil":
		return int(math.Ceil(x))
	}
	return int(math.Ceil(x - 0.5))
}

// linearFilter is the triangle of radius 1.
func linearFilter(d float64) float64 { return max(0, 1-math.Abs(d)) }

// cubicFilter is the cubic convolution kernel of radius 2 (Keys, "Cubic convolution interpolation for
// digital image processing", 1981).
func cubicFilter(d, a float64) float64 {
	d = math.Abs(d)
	switch {
	case d <= 1:
		return ((a+2)*d-(a+3))*d*d + 1
	case d < 2:
		return ((a*d-5*a)*d+8*a)*d - 4*a
	}
	return 0
}

// ResizeAxes returns the axes that a Resize node's roi, scales and sizes are about, in their order; nil if the node's
// attribute is not valid.
func ResizeAxes(n *graph.Node, rank int) []int {
	axes, _ := resizeAxes(n, rank)
	return axes
}

// ResizeMatrix returns the matrix [in, out] by which a Resize node, whose operand x has known shape and
// whose sizes are known, resizes the i-th of its axes.
func ResizeMatrix(n *graph.Node, x graph.Type, info *Info, i int) *graph.Tensor {
	shape, _ := x.Shape.Ints()
	var list []int64
	for _, d := range info.Dims(n.In[3]) {
		k, _ := d.Int()
		list = append(list, k)
	}
	plan, err := planResize(n, toInts(shape), nil, nil, list)
	if err != nil {
		return NewArray(x.Elem, []int{0, 0}, false).Tensor()
	}
	p := plan[i]
	m := NewArray(x.Elem, []int{p.in, p.out}, false)
	for o, taps := range p.taps() {
		for _, t := range taps {
			at := t.index*p.out + o
			m.SetFloat(at, m.Float(at)+t.weight)
		}
	}
	return m.Tensor()
}
