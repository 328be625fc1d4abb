package op

import (
	"slices"

	"gradtool/graph"
)

// imageDefs holds the operators that sample images: Resize, GridSample and AffineGrid.
func imageDefs() []Def {
	return []Def{
		{Name: "Resize", Facts: DataDependent, Infer: inferResize, Eval: evalResize, Cost: perElement(8), Samples: resizeSamples()},
		{Name: "GridSample", Infer: inferGridSample, Eval: evalGridSample, Decompose: decomposeGridSample, Cost: perElement(16), Samples: gridSampleSamples()},
		{Name: "AffineGrid", Infer: inferAffineGrid, Eval: evalAffineGrid, Decompose: decomposeAffineGrid, Cost: perElement(6), Samples: affineGridSamples()},
	}
}

// inferResize computes sizes from scales or sizes, where those are known, for the axes that they are about.
func inferResize(c *InferCtx) error {
	s := c.Shape(0)
	if s == nil {
		if sizes := c.Dims(3); sizes != nil && !c.Node.HasAttr("axes") {
			s = graph.UnknownShape(len(sizes)) // one for each axis
		} else if scales := c.Const(2); scales != nil && scales.Len() > 0 && !c.Node.HasAttr("axes") {
			s = graph.UnknownShape(scales.Len())
		}
	}
	if s == nil {
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	axes, err := resizeAxes(c.Node, len(s))
	if err != nil {
		return err
	}
	out := s.Clone()
	for _, a := range axes {
		out[a] = graph.Unknown()
	}
	stretch := c.Node.Str("keep_aspect_ratio_policy", "stretch") == "stretch"
	in, known := s.Ints()
	switch sizes, scales := c.Dims(3), c.Const(2); {
	case c.Has(3) && stretch && sizes != nil:
		if len(sizes) != len(axes) {
			return c.Errorf("%d sizes for %d axes", len(sizes), len(axes))
		}
		for i, a := range axes {
			out[a] = sizes[i]
		}
	case c.Has(3) && known:
		if list, ok := c.Ints(3); ok {
			plan, err := planResize(c.Node, toInts(in), nil, nil, list)
			if err != nil {
				return err
			}
			for _, p := range plan {
				out[p.axis] = graph.Known(int64(p.out))
			}
		}
	case scales != nil && scales.Len() > 0:
		if scales.Len() != len(axes) {
			return c.Errorf("%d scales for %d axes", scales.Len(), len(axes))
		}
		roi := c.Const(1)
		if c.Node.Str("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" && roi == nil {
			break // sizes are measured on the region
		}
		for i, a := range axes {
			out[a] = scaleDim(s[a], scales.Float(i))
		}
		if known {
			plan, err := planResize(c.Node, toInts(in), roi, scales, nil)
			if err != nil {
				return err
			}
			for _, p := range plan {
				out[p.axis] = graph.Known(int64(p.out))
			}
		}
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

// scaleDim returns floor(d * scale), where the scale is a whole number or one over one.
func scaleDim(d graph.Dim, scale float64) graph.Dim {
	if n, ok := d.Int(); ok {
		return graph.Known(int64(float64(n) * scale))
	}
	if k := int64(scale); float64(k) == scale && k > 0 {
		return d.Mul(graph.Known(k))
	}
	if k := int64(1 / scale); scale > 0 && float64(k)*scale == 1 {
		return d.FloorDiv(graph.Known(k))
	}
	return graph.Unknown()
}

// resizeAxes returns the axes that roi, scales and sizes are about.
func resizeAxes(n *graph.Node, rank int) ([]int, error) {
	if !n.HasAttr("axes") {
		all := make([]int, rank)
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	return normAxes(n.Ints("axes"), rank)
}

func evalResize(c *EvalCtx) error {
	x := c.Arg(0)
	plan, err := planResize(c.Node, x.Shape, c.Arg(1), c.Arg(2), c.Ints(3))
	if err != nil {
		return err
	}
	final := slices.Clone(x.Shape)
	for _, p := range plan {
		final[p.axis] = p.out
	}
	if err := CheckSize(x.Elem, final, c.Wide); err != nil { // before a part of the work is done
		return err
	}
	y := x
	for _, p := range plan {
		if p.out == p.in && p.isIdentity() {
			continue
		}
		if y, err = resizeAxis(y, p); err != nil {
			return err
		}
	}
	if y == x {
		y = x.Clone()
	}
	c.Set(0, y)
	return nil
}

// resizeAxis resizes x along one axis.
func resizeAxis(x *Array, p axisResize) (*Array, error) {
	shape := slices.Clone(x.Shape)
	shape[p.axis] = p.out
	y := x.NewLike(shape)
	outer, inner := prod(x.Shape[:p.axis]), prod(x.Shape[p.axis+1:])
	if p.in == 0 && y.Len() > 0 {
		return nil, errEmptyResize
	}
	taps := p.taps()
	switch {
	case x.F32 != nil:
		interpolate(y.F32, x.F32, taps, p, outer, inner)
	case x.F64 != nil:
		interpolate(y.F64, x.F64, taps, p, outer, inner)
	default:
		if p.mode != "nearest" {
			return resizeInts(x, y, taps, p, outer, inner), nil
		}
		for o := range outer {
			for i, t := range taps {
				for k := range inner {
					y.copyFrom((o*p.out+i)*inner+k, x, (o*p.in+t[0].index)*inner+k)
				}
			}
		}
	}
	return y, nil
}

// interpolate fills y[outer,out,inner] with weighted sums of x[outer,in,inner].
func interpolate[T float32 | float64](y, x []T, taps [][]tap, p axisResize, outer, inner int) {
	parallel(outer*p.out, grainOf(inner*4), func(lo, hi int) {
		sum := make([]float64, inner)
		for r := lo; r < hi; r++ {
			o, i := r/p.out, r%p.out
			row := y[r*inner : (r+1)*inner]
			if taps[i] == nil {
				for k := range row {
					row[k] = T(p.outside)
				}
				continue
			}
			clear(sum)
			for _, t := range taps[i] {
				src := x[(o*p.in+t.index)*inner:][:inner]
				for k, v := range src {
					sum[k] += t.weight * float64(v)
				}
			}
			for k := range row {
				row[k] = T(sum[k])
			}
		}
	})
}

// resizeInts interpolates integers: sums are cut off towards zero and limited to what the type holds.
func resizeInts(x, y *Array, taps [][]tap, p axisResize, outer, inner int) *Array {
	lo, hi := intLimits(x.Elem)
	for o := range outer {
		for i, list := range taps {
			for k := range inner {
				sum := 0.0
				if list == nil {
					sum = p.outside
				}
				for _, t := range list {
					sum += t.weight * x.Float((o*p.in+t.index)*inner+k)
				}
				y.I64[(o*p.out+i)*inner+k] = int64(min(max(sum, lo), hi))
			}
		}
	}
	return y
}

// intLimits returns the least and greatest value of an integer type, as far as float64 and int64 go.
func intLimits(t graph.DataType) (lo, hi float64) {
	bits := t.Bits()
	if t == graph.Bool {
		return 0, 1
	}
	if t.IsUnsigned() {
		return 0, float64(uint64(1)<<min(bits, 62)) - 1
	}
	return -float64(int64(1) << min(bits-1, 62)), float64(int64(1)<<min(bits-1, 62)) - 1
}

func resizeSamples() []Sample {
	mode := func(m string, more ...*graph.Attr) []*graph.Attr {
		return append([]*graph.Attr{graph.StringAttr("mode", m)}, more...)
	}
	coord := func(s string) *graph.Attr { return graph.StringAttr("coordinate_transformation_mode", s) }
	scales := func(v ...float64) Arg { return FV([]int{len(v)}, v...).Constant() }
	var none Arg
	x := F(1, 2, 4, 5)
	out := []Sample{
		{Name: "nearest x2", In: []Arg{x, none, scales(1, 1, 2, 2)}, Attrs: mode("nearest")},
		{Name: "nearest x3, asymmetric floor", In: []Arg{x, none, scales(1, 1, 3, 1)}, Attrs: mode("nearest", coord("asymmetric"), graph.StringAttr("nearest_mode", "floor"))},
		{Name: "nearest down", In: []Arg{x, none, scales(1, 1, 0.6, 0.6)}, Attrs: mode("nearest")},
		{Name: "nearest ceil sizes", In: []Arg{x, none, none, I(1, 2, 7, 8)}, Attrs: mode("nearest", coord("half_pixel"), graph.StringAttr("nearest_mode", "ceil"))},
		{Name: "linear x2", In: []Arg{x, none, scales(1, 1, 2, 2)}, Attrs: mode("linear")},
		{Name: "linear align corners", In: []Arg{x, none, none, I(1, 2, 7, 3)}, Attrs: mode("linear", coord("align_corners"))},
		{Name: "linear pytorch", In: []Arg{x, none, none, I(1, 2, 1, 9)}, Attrs: mode("linear", coord("pytorch_half_pixel"))},
		{Name: "linear asymmetric", In: []Arg{x, none, scales(1, 1, 1.5, 2.5)}, Attrs: mode("linear", coord("asymmetric"))},
		{Name: "linear symmetric", In: []Arg{x, none, scales(1, 1, 2.3, 2.94)}, Attrs: mode("linear", coord("half_pixel_symmetric"))},
		{Name: "linear antialias", In: []Arg{F(1, 1, 8, 9), none, scales(1, 1, 0.6, 0.4)}, Attrs: mode("linear", graph.IntAttr("antialias", 1))},
		{Name: "cubic", In: []Arg{x, none, scales(1, 1, 2, 0.8)}, Attrs: mode("cubic")},
		{Name: "cubic excluding outside", In: []Arg{x, none, none, I(1, 2, 9, 10)}, Attrs: mode("cubic", graph.IntAttr("exclude_outside", 1), graph.FloatAttr("cubic_coeff_a", -0.5))},
		{Name: "cubic antialias", In: []Arg{F(1, 1, 8, 9), none, none, I(1, 1, 4, 5)}, Attrs: mode("cubic", graph.IntAttr("antialias", 1))},
		{Name: "crop", In: []Arg{x, FV([]int{8}, 0, 0, 0.4, 0.6, 1, 1, 0.9, 1.3).Constant(), none, I(1, 2, 3, 4)}, Attrs: mode("linear", coord("tf_crop_and_resize"), graph.FloatAttr("extrapolation_value", 10))},
		{Name: "axes", In: []Arg{x, none, none, I(3, 6)}, Attrs: mode("linear", graph.IntsAttr("axes", 2, 3))},
		{Name: "not larger", In: []Arg{x, none, none, I(7, 8)}, Attrs: mode("nearest", graph.IntsAttr("axes", 2, 3), graph.StringAttr("keep_aspect_ratio_policy", "not_larger"))},
		{Name: "one axis", In: []Arg{F(2, 3, 5), none, scales(1, 1, 2)}, Attrs: mode("linear")},
		{Name: "three axes", In: []Arg{F(1, 1, 2, 3, 4), none, scales(1, 1, 2, 1.5, 0.5)}, Attrs: mode("linear")},
		{Name: "integers", In: []Arg{{Elem: graph.Int32, Shape: []int{1, 1, 2, 2}, Values: []float64{1, 2, 3, 4}}, none, scales(1, 1, 2, 2)}, Attrs: mode("nearest"), NoGrad: "integers"},
		{Name: "run-time scales", In: []Arg{x, none, FV([]int{4}, 1, 1, 2, 2).As(graph.Float)}, Attrs: mode("linear"), NoGrad: "the scales are no variables of the derivative"},
	}
	return out
}
