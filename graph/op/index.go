package op

import (
	"slices"

	"gradtool/graph"
)

// indexDefs lists the operators that take, put or choose elements by index.
func indexDefs() []Def {
	return slices.Concat(gatherDefs(), scatterDefs(), selectDefs())
}

// gatherDefs lists the operators that take elements by index.
func gatherDefs() []Def {
	axis := func(a int64) []*graph.Attr { return []*graph.Attr{graph.IntAttr("axis", a)} }
	return []Def{
		{Name: "Gather", Infer: tracked(inferGather, evalGather, 0), Eval: evalGather, Cost: free, Samples: []Sample{
			{In: []Arg{F(5, 3), I(4, 0, 0)}},
			{Name: "scalar", In: []Arg{F(5, 3), IS(-2)}},
			{Name: "scalar, last axis", In: []Arg{F(2, 3, 4), IS(1)}, Attrs: axis(-1)},
			{Name: "axis 1", In: []Arg{F(2, 5, 3), I(1, -1, 1)}, Attrs: axis(1)},
			{Name: "matrix of indices", In: []Arg{F(2, 5, 3), TV(graph.Int32, []int{2, 2}, 1, -1, 0, 4)}, Attrs: axis(1)},
			{Name: "last axis", In: []Arg{F(2, 5), I(3, 3)}, Attrs: axis(-1)},
			{Name: "none", In: []Arg{F(4, 2), I()}},
			{Name: "permutation", In: []Arg{F(4, 3), I(2, 0, 3, 1)}},
		}},
	}
}

func inferGather(c *InferCtx) error {
	s, at := c.Shape(0), c.Shape(1)
	if s == nil || at == nil {
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	axis, err := c.Axis(c.Node.Int("axis", 0), len(s))
	if err != nil {
		return err
	}
	if len(s) == 0 {
		return c.Errorf("a scalar has no axis to gather from")
	}
	c.Set(0, c.Elem(0), slices.Concat(s[:axis], at, s[axis+1:]))
	return nil
}

func evalGather(c *EvalCtx) error {
	x, at := c.In[0], c.In[1]
	axis, err := c.axisOf(0, x.Rank())
	if err != nil {
		return err
	}
	if x.Rank() == 0 {
		return c.Errorf("a scalar has no axis to gather from")
	}
	outer, n, inner := around(x.Shape, axis)
	pos := make([]int, len(at.I64))
	for i, j := range at.I64 {
		if pos[i], err = index(j, n); err != nil {
			return err
		}
	}
	y := x.NewLike(slices.Concat(x.Shape[:axis], at.Shape, x.Shape[axis+1:]))
	parallel(outer*len(pos), grainOf(inner), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y.copyRun(i*inner, x, (i/len(pos)*n+pos[i%len(pos)])*inner, inner)
		}
	})
	c.Set(0, y)
	return nil
}
