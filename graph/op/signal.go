package op

import (
	"math"

	"gradtool/graph"
)

// signalDefs holds Fourier transforms, windows and the mel scale.
func signalDefs() []Def {
	i := func(name string, v int64) *graph.Attr { return graph.IntAttr(name, v) }
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	inverse, onesided, both := i("inverse", 1), i("onesided", 1), i("onesided", 0)
	window := func(name string, w func(x float64) float64) Def {
		return Def{Name: name, Infer: inferTaper, Eval: evalTaper(w), Cost: perElement(workExp), Samples: []Sample{
			{In: []Arg{IS(6)}}, {Name: "symmetric", In: []Arg{IS(5)}, Attrs: attrs(i("periodic", 0))},
			{Name: "ints", In: []Arg{IS(4).Variable()}, Attrs: attrs(i("output_datatype", int64(graph.Int32)))},
			{Name: "one", In: []Arg{IS(1)}, Attrs: attrs(i("output_datatype", int64(graph.Double)))},
		}}
	}
	return []Def{
		{Name: "DFT", Infer: inferDFT, Eval: evalDFT, Cost: costFFT, Samples: []Sample{
			{In: []Arg{F(2, 5, 2)}},
			{Name: "real", In: []Arg{F(2, 4, 1)}},
			{Name: "axis, padded", In: []Arg{F(3, 2, 2), IS(5), IS(0)}},
			{Name: "axis from behind, cut", In: []Arg{F(2, 6, 3, 1), IS(4), IS(-3)}},
			{Name: "run-time length and axis", In: []Arg{F(2, 6, 2), IS(7).Variable(), IS(1).Variable()}},
			{Name: "inverse", In: []Arg{F(2, 4, 2)}, Attrs: attrs(inverse)},
			{Name: "inverse of real", In: []Arg{F(2, 3, 1), IS(4)}, Attrs: attrs(inverse)},
			{Name: "one-sided", In: []Arg{F(2, 6, 1)}, Attrs: attrs(onesided)},
			{Name: "one-sided, odd", In: []Arg{F(2, 4, 1), IS(5)}, Attrs: attrs(onesided)},
			{Name: "one-sided inverse", In: []Arg{F(2, 4, 2)}, Attrs: attrs(onesided, inverse)},
			{Name: "one-sided inverse, odd", In: []Arg{F(2, 4, 2), IS(5)}, Attrs: attrs(onesided, inverse)},
			{Name: "one-sided inverse, padded", In: []Arg{F(2, 3, 2), IS(8), IS(1)}, Attrs: attrs(onesided, inverse)},
			{Name: "one element", In: []Arg{F(2, 1, 2)}},
			{Name: "half", In: []Arg{F(2, 4, 1).As(graph.Float16)}},
		}},
		{Name: "STFT", Infer: inferSTFT, Eval: evalSTFT, Cost: costFFT, Decompose: decomposeSTFT, Samples: []Sample{
			{In: []Arg{F(2, 9, 1), IS(2), FR(0.1, 1, 4)}},
			{Name: "length", In: []Arg{F(1, 8, 1), IS(3), {}, IS(5)}},
			{Name: "window and length", In: []Arg{F(1, 8, 1), IS(4), FR(0.1, 1, 4), IS(4)}},
			{Name: "two-sided", In: []Arg{F(2, 7, 1), IS(2), FR(0.1, 1, 3)}, Attrs: attrs(both)},
			{Name: "complex", In: []Arg{F(2, 7, 2), IS(2), FR(0.1, 1, 3)}, Attrs: attrs(both)},
			{Name: "run-time step", In: []Arg{F(1, 8, 1), IS(3).Variable(), {}, IS(5).Variable()}},
		}},
		{Name: "MelWeightMatrix", Infer: inferMel, Eval: evalMel, Samples: []Sample{
			{In: []Arg{IS(4), IS(16), IS(8192), FV(nil, 0), FV(nil, 4096)}, NoGrad: "piecewise constant"},
			{Name: "narrow", In: []Arg{IS(6), IS(16), IS(16000).Variable(), FV(nil, 100), FV(nil, 900)}, Attrs: attrs(i("output_datatype", int64(graph.Double))), NoGrad: "piecewise constant"},
		}},
		window("HannWindow", func(x float64) float64 { return 0.5 - 0.5*math.Cos(x) }),
		window("HammingWindow", func(x float64) float64 { return 25.0/46 - 21.0/46*math.Cos(x) }),
		window("BlackmanWindow", func(x float64) float64 { return 0.42 - 0.5*math.Cos(x) + 0.08*math.Cos(2*x) }),
	}
}

// costFFT counts 5·log2(n) operations per complex element, whatever n.
func costFFT(c *CostCtx) float64 {
	n := 2.0
	if s := c.Out[0]; len(s) > 1 {
		n = float64(max(s[len(s)-2], 2))
	}
	return 2.5 * math.Log2(n) * c.OutLen(0)
}

func inferTaper(c *InferCtx) error {
	elem := graph.DataType(c.Node.Int("output_datatype", int64(graph.Float)))
	size := graph.Unknown()
	if d := c.Dims(0); len(d) == 1 {
		size = d[0]
	}
	c.Set(0, elem, graph.Shape{size})
	return nil
}

// evalTaper computes w(2πn/N) for n < size, with N = size or, for a symmetric window, size - 1. A symmetric window of one
// element is 1.
func evalTaper(w func(x float64) float64) func(*EvalCtx) error {
	return func(c *EvalCtx) error {
		size, err := c.length(0, "size")
		if err != nil {
			return err
		}
		y, err := c.numeric([]int{size})
		if err != nil {
			return err
		}
		period := float64(size)
		if c.Node.Int("periodic", 1) == 0 {
			period--
		}
		for i := range size {
			v := 1.0
			if period > 0 {
				v = w(2 * math.Pi * float64(i) / period)
			}
			y.setNumber(i, v)
		}
		c.Set(0, y)
		return nil
	}
}

// length returns operand i, a count.
func (c *EvalCtx) length(i int, what string) (int, error) {
	v := c.Ints(i)
	if len(v) != 1 || v[0] < 0 || v[0] > math.MaxInt32 {
		return 0, c.Errorf("%s is %v, expected one number from 0 to 2^31-1", what, v)
	}
	return int(v[0]), nil
}

// numeric returns zeros of the type that attribute output_datatype names.
func (c *EvalCtx) numeric(shape []int) (*Array, error) {
	y := c.New(graph.DataType(c.Node.Int("output_datatype", int64(graph.Float))), shape)
	if !y.IsFloat() && y.I64 == nil {
		return nil, c.Errorf("attribute output_datatype: %s is no type of numbers", y.Elem)
	}
	return y, nil
}

func inferMel(c *InferCtx) error {
	s := graph.UnknownShape(2)
	if d := c.Dims(1); len(d) == 1 {
		s[0] = halfSpectrum(d[0])
	}
	if d := c.Dims(0); len(d) == 1 {
		s[1] = d[0]
	}
	c.Set(0, graph.DataType(c.Node.Int("output_datatype", int64(graph.Float))), s)
	return nil
}

// halfSpectrum returns the number of frequencies of a real signal of n elements: n/2 + 1.
func halfSpectrum(n graph.Dim) graph.Dim {
	if n.IsUnknown() {
		return n
	}
	return n.FloorDiv(graph.Known(2)).Add(graph.Known(1))
}

// evalMel computes triangles, one per column, over frequency numbers. Their corners are spaced evenly on the scale
// mel(f) = 2595·log10(1 + f/700) and rounded down to whole frequency numbers.
func evalMel(c *EvalCtx) error {
	bands, err := c.length(0, "num_mel_bins")
	if err != nil {
		return err
	}
	length, err := c.length(1, "dft_length")
	if err != nil {
		return err
	}
	rate, err := c.length(2, "sample_rate")
	if err != nil {
		return err
	}
	lo, hi := c.Arg(3), c.Arg(4)
	if lo.Len() != 1 || hi.Len() != 1 || rate == 0 {
		return c.Errorf("edges %s and %s at sample rate %d", lo.Type(), hi.Type(), rate)
	}
	mel := func(f float64) float64 { return 2595 * math.Log10(1+f/700) }
	low, rows := mel(lo.Float(0)), length/2+1
	step := (mel(hi.Float(0)) - low) / float64(bands+2)
	y, err := c.numeric([]int{rows, bands})
	if err != nil {
		return err
	}
	corner := make([]int, bands+2)
	for i := range corner {
		f := 700 * (math.Pow(10, (low+step*float64(i))/2595) - 1)
		corner[i] = int(math.Floor(float64(length+1) * f / float64(rate)))
		if corner[i] < 0 || corner[i] > rows || corner[i] == rows && i <= bands {
			return c.Errorf("frequency %g Hz is outside the %d frequencies of the spectrum", f, rows)
		}
	}
	for b := range bands {
		left, top, right := corner[b], corner[b+1], corner[b+2]
		for k := left; k < max(top+1, right); k++ {
			v := 1.0
			switch {
			case k < top:
				v = float64(k-left) / float64(top-left)
			case k > top:
				v = float64(right-k) / float64(right-top)
			}
			y.setNumber(k*bands+b, v)
		}
	}
	c.Set(0, y)
	return nil
}
