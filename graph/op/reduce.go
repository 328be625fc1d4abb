package op

import (
	"slices"
	"strings"

	"gradtool/graph"
)

// reduceDefs holds the reductions, the arg-reductions and the cumulative operators.
//
// A reduction takes its axes as an optional operand; without axes, or with an empty list, it reduces over all of
// them, or with noop_with_empty_axes over none, which leaves the step by element (the square of
// ReduceSumSquare, say).
func reduceDefs() []Def {
	reduction := func(name string, fold func(dims []graph.Dim) graph.Dim, samples ...Sample) Def {
		return Def{
			Name:    name,
			Infer:   func(c *InferCtx) error { return inferReduce(c, fold) },
			Eval:    func(c *EvalCtx) error { return evalReduce(c, name) },
			Cost:    func(c *CostCtx) float64 { return float64(prod(c.In[0])) },
			Samples: append(reduceSamples(), samples...),
		}
	}
	defs := []Def{
		reduction("ReduceSum", sumDims, noGradSamples(TV(graph.Int64, []int{3}, 4, 5, 6))...),
		reduction("ReduceMean", nil),
		reduction("ReduceMax", foldDims(graph.Dim.Max), append(noGradSamples(TV(graph.Uint8, []int{3}, 4, 255, 6)), tieSamples()...)...),
		reduction("ReduceMin", foldDims(graph.Dim.Min), append(noGradSamples(TV(graph.Bool, []int{3}, 1, 0, 1)), tieSamples()...)...),
		reduction("ReduceProd", prodDims, append(noGradSamples(TV(graph.Int64, []int{3}, 4, 5, 6)), zeroSamples()...)...),
		reduction("ReduceL1", nil),
		reduction("ReduceL2", nil, Sample{Name: "zero vector", In: []Arg{FV([]int{2, 2}, 0, 0, 3, 4), I(1)},
			NoGrad: "the norm has no derivative at the zero vector"}),
		reduction("ReduceLogSum", nil),
		reduction("ReduceLogSumExp", nil, Sample{Name: "far apart", In: []Arg{FR(-300, 300, 3, 4), I(1)}}),
		reduction("ReduceSumSquare", nil),
	}
	for i := range defs {
		for j := range defs[i].Samples {
			s := &defs[i].Samples[j]
			switch {
			case defs[i].Name == "ReduceLogSum" && s.In[0].Values == nil:
				s.In[0].Lo, s.In[0].Hi = 0.5, 2
			case defs[i].Name == "ReduceProd" && strings.HasPrefix(s.Name, "run-time"):
				s.NoGrad = "the rule needs constant axes"
			}
		}
	}
	return append(append(defs, argReduceDefs()...), cumulativeDefs()...)
}

func reduceSamples() []Sample {
	keep := graph.IntAttr("keepdims", 1)
	drop := graph.IntAttr("keepdims", 0)
	noop := graph.IntAttr("noop_with_empty_axes", 1)
	return []Sample{
		{In: []Arg{FApart(2, 3, 4), I(1)}, Attrs: []*graph.Attr{keep}},
		{Name: "drop", In: []Arg{FApart(2, 3, 4), I(-1, 0)}, Attrs: []*graph.Attr{drop}},
		{Name: "all", In: []Arg{FApart(2, 3)}, Attrs: []*graph.Attr{drop}},
		{Name: "all keep", In: []Arg{FApart(2, 3)}},
		{Name: "noop", In: []Arg{FApart(2, 3)}, Attrs: []*graph.Attr{noop}},
		{Name: "scalar", In: []Arg{FApart()}},
		{Name: "run-time axes", In: []Arg{FApart(2, 3, 2), I(2, 0).Variable()}, Attrs: []*graph.Attr{keep}},
		{Name: "run-time axes, drop", In: []Arg{FApart(2, 3, 2), I(2, 0).Variable()}, Attrs: []*graph.Attr{drop}},
		{Name: "run-time axes, none", In: []Arg{FApart(2, 3), I().Variable()}, Attrs: []*graph.Attr{drop}},
		{Name: "run-time axes, none, noop", In: []Arg{FApart(2, 3), I().Variable()}, Attrs: []*graph.Attr{drop, noop}},
		{Name: "size one", In: []Arg{FApart(3, 1, 2), I(1)}, Attrs: []*graph.Attr{drop}},
	}
}

// noGradSamples are applications to integers, whose values inference follows.
func noGradSamples(x Arg) []Sample {
	return []Sample{
		{Name: "integers", In: []Arg{x, I(0)}, NoGrad: "integers"},
		{Name: "integers, drop", In: []Arg{x.Variable(), I(0)}, Attrs: []*graph.Attr{graph.IntAttr("keepdims", 0)}, NoGrad: "integers"},
	}
}

func tieSamples() []Sample {
	return []Sample{{Name: "ties", In: []Arg{FV([]int{2, 3}, 1, 1, 0, 2, 2, 2), I(1)}, NoGrad: "ties are points of non-differentiability"}}
}

// zeroSamples have no, one, two and three zeros among the factors.
func zeroSamples() []Sample {
	return []Sample{{Name: "zeros", In: []Arg{FV([]int{4, 3}, 1, 2, 3, 0, 2, 3, 0, 0, 3, 0, 0, 0), I(1)}}}
}

// reduceAxes returns the axes to reduce over, sorted, for a known rank; known is false if only run time tells.
func reduceAxes(axes []int64, given bool, noop bool, rank int) ([]int, error) {
	if !given || len(axes) == 0 {
		if noop {
			return []int{}, nil
		}
		all := make([]int, rank)
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	if rank == 0 && !slices.ContainsFunc(axes, func(a int64) bool { return a != 0 && a != -1 }) {
		return []int{}, nil // a scalar reduced over its axis 0, which runtimes allow
	}
	out, err := normAxes(axes, rank)
	slices.Sort(out)
	return out, err
}

// inferReduce infers a reduction. The operand fold, if not nil, combines symbolic elements of a shape vector.
func inferReduce(c *InferCtx, fold func([]graph.Dim) graph.Dim) error {
	n := c.Node
	keep, noop := n.Int("keepdims", 1) != 0, n.Int("noop_with_empty_axes", 0) != 0
	s := c.Shape(0)
	axes, sure := []int64(nil), true
	if c.Has(1) {
		axes, sure = c.Ints(1)
	}
	switch {
	case s == nil && !c.Has(1) && !noop && !keep:
		c.Set(0, c.Elem(0), graph.Shape{})
		return nil
	case s == nil && !c.Has(1) && noop, s == nil:
		c.Set(0, c.Elem(0), nil)
		return nil
	case !sure && keep:
		c.Set(0, c.Elem(0), graph.UnknownShape(len(s)))
		return nil
	case !sure:
		c.Set(0, c.Elem(0), runTimeReduced(c, s, noop))
		return nil
	}
	list, err := reduceAxes(axes, c.Has(1), noop, len(s))
	if err != nil {
		return err
	}
	out := graph.Shape{}
	for i, d := range s {
		switch {
		case !slices.Contains(list, i):
			out = append(out, d)
		case keep:
			out = append(out, graph.Known(1))
		}
	}
	c.Set(0, c.Elem(0), out)
	if dims := c.Dims(0); fold != nil && dims != nil && len(s) == 1 && len(list) == 1 {
		c.SetDims(0, []graph.Dim{fold(dims)})
	}
	return nil
}

// runTimeReduced is the shape after dropping axes of which at most the number is known.
func runTimeReduced(c *InferCtx, s graph.Shape, noop bool) graph.Shape {
	a := c.Shape(1)
	if len(a) != 1 {
		return nil
	}
	n, ok := a[0].Int()
	switch {
	case !ok || n < 0 || n > int64(len(s)):
		return nil
	case n == 0 && !noop:
		return graph.Shape{}
	}
	return graph.UnknownShape(len(s) - int(n))
}

func sumDims(d []graph.Dim) graph.Dim {
	sum := graph.Known(0)
	for _, x := range d {
		sum = sum.Add(x)
	}
	return sum
}

func prodDims(d []graph.Dim) graph.Dim { return graph.Shape(d).Size() }

// foldDims combines one or more dimensions; none give an unknown one.
func foldDims(f func(a, b graph.Dim) graph.Dim) func([]graph.Dim) graph.Dim {
	return func(d []graph.Dim) graph.Dim {
		if len(d) == 0 {
			return graph.Unknown()
		}
		for _, x := range d {
			if x.IsUnknown() {
				return x
			}
		}
		m := d[0]
		for _, x := range d[1:] {
			m = f(m, x)
		}
		return m
	}
}
