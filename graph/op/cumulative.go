package op

import "gradtool/graph"

// axisRuns splits a tensor at an axis: element i of run (o, k) lies at (o*n+i)*inner + k.
func axisRuns(shape []int, axis int) (outer, n, inner int) {
	if len(shape) == 0 {
		return 1, 1, 1
	}
	return prod(shape[:axis]), shape[axis], prod(shape[axis+1:])
}

// eachRun calls f with the first position of every run along the axis, and the distance of neighbours in it.
func eachRun(shape []int, axis int, f func(at, n, step int)) {
	outer, n, inner := axisRuns(shape, axis)
	parallel(outer*inner, grainOf(4*n), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			f(r/inner*n*inner+r%inner, n, inner)
		}
	})
}

// argReduceDefs holds ArgMax and ArgMin: the index of the first (or, with select_last_index, last) extreme
// element along an axis. NaN counts as extreme, as in numpy.
func argReduceDefs() []Def {
	def := func(name string, sign float64) Def {
		return Def{
			Name:  name,
			Infer: inferArgReduce,
			Eval:  func(c *EvalCtx) error { return evalArgReduce(c, sign) },
			Cost:  func(c *CostCtx) float64 { return float64(prod(c.In[0])) },
			Samples: []Sample{
				{In: []Arg{F(2, 3, 4)}, Attrs: []*graph.Attr{graph.IntAttr("axis", 1)}},
				{Name: "drop", In: []Arg{F(2, 3)}, Attrs: []*graph.Attr{graph.IntAttr("axis", -1), graph.IntAttr("keepdims", 0)}},
				{Name: "last", In: []Arg{FV([]int{2, 3}, 1, 1, 0, 2, 2, 2)},
					Attrs: []*graph.Attr{graph.IntAttr("axis", 1), graph.IntAttr("select_last_index", 1)}},
				{Name: "integers", In: []Arg{TV(graph.Int32, []int{3}, 4, 9, -1)}},
			},
		}
	}
	return []Def{def("ArgMax", 1), def("ArgMin", -1)}
}

func inferArgReduce(c *InferCtx) error {
	s := c.Shape(0).Clone()
	if s != nil {
		a, err := c.Axis(c.Node.Int("axis", 0), len(s))
		switch {
		case err != nil:
			return err
		case len(s) == 0:
		case c.Node.Int("keepdims", 1) != 0:
			s[a] = graph.Known(1)
		default:
			s = append(s[:a], s[a+1:]...)
		}
	}
	c.Set(0, graph.Int64, s)
	return nil
}

func evalArgReduce(c *EvalCtx, sign float64) error {
	x := c.Arg(0)
	a, err := normAxis(c.Node.Int("axis", 0), x.Rank())
	if err != nil {
		return err
	}
	p := planReduction(x.Shape, []int{a}[:min(1, x.Rank())], c.Node.Int("keepdims", 1) != 0)
	if len(p.offs) == 0 && len(p.bases) > 0 {
		return c.Errorf("axis %d of %v has no elements", a, x.Shape)
	}
	last := c.Node.Int("select_last_index", 0) != 0
	beats := func(i, j int) bool { // element i counts for more than element j, which comes before it
		if x.I64 != nil {
			v, w := x.I64[i], x.I64[j]
			if x.Elem == graph.Uint64 { // moved so that signed comparison orders them
				v, w = v^(-1<<63), w^(-1<<63)
			}
			return v != w && v > w == (sign > 0) || v == w && last
		}
		v, w := sign*x.Float(i), sign*x.Float(j)
		switch {
		case w != w:
			return v != v && last
		case v != v:
			return true
		}
		return v > w || v == w && last
	}
	y := c.New(graph.Int64, p.out)
	for o, base := range p.bases {
		best := 0
		for i, off := range p.offs {
			if i > 0 && beats(base+off, base+p.offs[best]) {
				best = i
			}
		}
		y.I64[o] = int64(best)
	}
	c.Set(0, y)
	return nil
}

// cumulativeDefs holds CumSum and CumProd: y[i] combines x[0..i] along an axis, without x[i] itself if exclusive, from
// the other end if reverse.
func cumulativeDefs() []Def {
	def := func(name string, unit float64, noRunTimeAxis string, extra ...Sample) Def {
		excl, rev := graph.IntAttr("exclusive", 1), graph.IntAttr("reverse", 1)
		return Def{
			Name: name,
			Infer: func(c *InferCtx) error {
				c.SetType(0, c.In(0))
				if axis, ok := c.Ints(1); ok && len(axis) == 1 && c.Shape(0) != nil {
					_, err := c.Axis(axis[0], len(c.Shape(0)))
					return err
				}
				return nil
			},
			Eval: func(c *EvalCtx) error { return evalCumulative(c, unit) },
			Samples: append([]Sample{
				{In: []Arg{F(2, 3, 2), IS(1)}},
				{Name: "exclusive", In: []Arg{F(3, 2), IS(0)}, Attrs: []*graph.Attr{excl}},
				{Name: "reverse", In: []Arg{F(2, 4), IS(-1)}, Attrs: []*graph.Attr{rev}},
				{Name: "both", In: []Arg{F(2, 4), IS(1)}, Attrs: []*graph.Attr{excl, rev}},
				{Name: "integers", In: []Arg{TV(graph.Int32, []int{4}, 1, 2, 3, 4), TV(graph.Int32, []int{}, 0)}, NoGrad: "integers"},
				{Name: "run-time axis", In: []Arg{F(2, 3), TV(graph.Int32, []int{}, 1).Variable()}, NoGrad: noRunTimeAxis},
			}, extra...),
		}
	}
	return []Def{
		def("CumSum", 0, ""),
		def("CumProd", 1, "the rule needs a constant axis",
			Sample{Name: "zeros", In: []Arg{FV([]int{3, 5}, 1, 2, 0, 3, 4, 0, 2, 0, 3, 1, 1, 0, 0, 0, 2), IS(1)}},
			Sample{Name: "zeros, both", In: []Arg{FV([]int{2, 4}, 1, 0, 3, 0, 0, 0, 2, 1), IS(1)}, Attrs: []*graph.Attr{graph.IntAttr("exclusive", 1), graph.IntAttr("reverse", 1)}}),
	}
}

func evalCumulative(c *EvalCtx, unit float64) error {
	x := c.Arg(0)
	axis := c.Ints(1)
	if len(axis) != 1 {
		return c.Errorf("the axis has %d elements, expected 1", len(axis))
	}
	a, err := normAxis(axis[0], x.Rank())
	if err != nil {
		return err
	}
	exclusive, reverse := c.Node.Int("exclusive", 0) != 0, c.Node.Int("reverse", 0) != 0
	y := x.NewLike(x.Shape)
	eachRun(x.Shape, a, func(at, n, step int) {
		if reverse {
			at, step = at+(n-1)*step, -step
		}
		switch {
		case x.F32 != nil:
			accumulateRun(x.F32, y.F32, at, n, step, float64(unit), exclusive)
		case x.F64 != nil:
			accumulateRun(x.F64, y.F64, at, n, step, float64(unit), exclusive)
		case x.I64 != nil:
			accumulateRun(x.I64, y.I64, at, n, step, int64(unit), exclusive)
		}
	})
	c.Set(0, y)
	return nil
}

// accumulateRun sums (unit 0) or multiplies (unit 1) along a run, in the accumulator's type A.
func accumulateRun[T, A int64 | float32 | float64](x, y []T, at, n, step int, unit A, exclusive bool) {
	acc := unit
	for range n {
		if exclusive {
			y[at] = T(acc)
		}
		if unit == 0 {
			acc += A(x[at])
		} else {
			acc *= A(x[at])
		}
		if !exclusive {
			y[at] = T(acc)
		}
		at += step
	}
}
