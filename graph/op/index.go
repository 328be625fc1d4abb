package op

import (
	"errors"
	"fmt"
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
			{Name: "scalar of vector", In: []Arg{F(5), IS(3)}},
			{Name: "axis 1", In: []Arg{F(2, 5, 3), I(1, -1, 1)}, Attrs: axis(1)},
			{Name: "matrix of indices", In: []Arg{F(2, 5, 3), TV(graph.Int32, []int{2, 2}, 1, -1, 0, 4)}, Attrs: axis(1)},
			{Name: "last axis", In: []Arg{F(2, 5), I(3, 3)}, Attrs: axis(-1)},
			{Name: "none", In: []Arg{F(4, 2), I()}},
			{Name: "permutation", In: []Arg{F(4, 3), I(2, 0, 3, 1)}},
			{Name: "run-time indices", In: []Arg{F(4, 3), I(-1, 0, 3, 0).Variable()}},
			{Name: "run-time scalar", In: []Arg{F(4, 3), IS(-1).Variable()}, Attrs: axis(1)},
		}},
		{Name: "GatherElements", Infer: tracked(inferGatherElements, evalGatherElements, 0), Eval: evalGatherElements, Cost: free, Samples: []Sample{
			{In: []Arg{F(3, 3), TV(graph.Int64, []int{2, 3}, 1, 2, 0, 2, 0, 0)}},
			{Name: "axis 1", In: []Arg{F(2, 3), TV(graph.Int32, []int{2, 4}, 0, -1, 0, 1, 2, 1, -3, 0)}, Attrs: axis(1)},
			{Name: "smaller index", In: []Arg{F(3, 4, 2), TV(graph.Int64, []int{2, 2, 1}, 1, -1, 3, 0)}, Attrs: axis(1)},
		}},
		{Name: "GatherND", Infer: tracked(inferGatherND, evalGatherND, 0), Eval: evalGatherND, Cost: free, Samples: []Sample{
			{In: []Arg{F(3, 4), TV(graph.Int64, []int{3, 2}, 0, 1, -1, 3, 0, 1)}},
			{Name: "slices", In: []Arg{F(3, 4), TV(graph.Int64, []int{2, 2, 1}, 0, 2, 2, -2)}},
			{Name: "batch", In: []Arg{F(2, 3, 4), TV(graph.Int64, []int{2, 1}, 1, -1)}, Attrs: []*graph.Attr{graph.IntAttr("batch_dims", 1)}},
			{Name: "two batch axes", In: []Arg{F(2, 2, 3), TV(graph.Int64, []int{2, 2, 2, 1}, 1, 1, 0, -1, 2, 0, 1, 0)}, Attrs: []*graph.Attr{graph.IntAttr("batch_dims", 2)}},
			{Name: "vector", In: []Arg{F(3, 4), I(2)}},
			{Name: "one element", In: []Arg{F(3, 4), I(2, -1)}},
		}},
		{Domain: "ai.onnx.ml", Name: "ArrayFeatureExtractor", Infer: inferFeatures, Eval: evalFeatures, Cost: free, Samples: []Sample{
			{In: []Arg{F(2, 4), I(3, 0, 3)}}, {Name: "vector", In: []Arg{F(4), I(1, 1)}},
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
	c.Set(0, c.Elem(0), joined(s[:axis], at, s[axis+1:]))
	return nil
}

// joined returns the shape of all axes of the parts; never nil, which would mean unknown rank.
func joined(parts ...graph.Shape) graph.Shape {
	return append(graph.Shape{}, slices.Concat(parts...)...)
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

func inferGatherElements(c *InferCtx) error {
	s, at := c.Shape(0), c.Shape(1)
	if at == nil && s != nil {
		at = graph.UnknownShape(len(s))
	}
	if s != nil {
		if len(s) != len(at) {
			return c.Errorf("data of rank %d and indices of rank %d", len(s), len(at))
		}
		if _, err := c.Axis(c.Node.Int("axis", 0), len(s)); err != nil {
			return err
		}
	}
	c.Set(0, c.Elem(0), at)
	return nil
}

func evalGatherElements(c *EvalCtx) error {
	x, at := c.In[0], c.In[1]
	y := x.NewLike(at.Shape)
	err := c.eachElement(x, at, func(i, pos int) { y.copyFrom(i, x, pos) })
	if err != nil {
		return err
	}
	c.Set(0, y)
	return nil
}

// eachElement calls f for every element i of the index tensor at, with the position in x that it names: i's own,
// except along the attribute axis, where the element says.
func (c *EvalCtx) eachElement(x, at *Array, f func(i, pos int)) error {
	axis, err := c.axisOf(0, x.Rank())
	if err != nil {
		return err
	}
	if at.Rank() != x.Rank() {
		return c.Errorf("data of rank %d and indices of rank %d", x.Rank(), at.Rank())
	}
	for a, n := range at.Shape {
		if a != axis && n > x.Shape[a] {
			return c.Errorf("indices %v exceed data %v along axis %d", at.Shape, x.Shape, a)
		}
	}
	step := strides(x.Shape)
	coord := make([]int, at.Rank())
	base := 0 // position of coord with 0 along axis
	for i, j := range at.I64 {
		p, err := index(j, x.Shape[axis])
		if err != nil {
			return err
		}
		f(i, base+p*step[axis])
		for a := at.Rank() - 1; a >= 0; a-- {
			s := step[a]
			if a == axis {
				s = 0
			}
			coord[a]++
			base += s
			if coord[a] < at.Shape[a] {
				break
			}
			base -= coord[a] * s
			coord[a] = 0
		}
	}
	return nil
}

func inferGatherND(c *InferCtx) error {
	s, at := c.Shape(0), c.Shape(1)
	batch := int(c.Node.Int("batch_dims", 0))
	if len(at) == 0 {
		if at != nil {
			return c.Errorf("indices must have an axis")
		}
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	depth, ok := at[len(at)-1].Int()
	if s == nil || !ok {
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	if batch < 0 || batch >= len(at) || batch+int(depth) > len(s) {
		return c.Errorf("index tuples of %d and %d batch axes exceed rank %d", depth, batch, len(s))
	}
	out := joined(at[:len(at)-1], s[batch+int(depth):])
	for i := range batch {
		out[i], _ = mergeDim(s[i], at[i])
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

func evalGatherND(c *EvalCtx) error {
	x, at := c.In[0], c.In[1]
	batch := int(c.Node.Int("batch_dims", 0))
	if at.Rank() <= batch || x.Rank() < batch || batch < 0 {
		return c.Errorf("%d batch axes of data %v and indices %v", batch, x.Shape, at.Shape)
	}
	pos, depth, err := tuples(x.Shape, at, batch)
	if err != nil {
		return err
	}
	y := x.NewLike(slices.Concat(at.Shape[:at.Rank()-1], x.Shape[batch+depth:]))
	inner := prod(x.Shape[batch+depth:])
	parallel(len(pos), grainOf(inner), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y.copyRun(i*inner, x, pos[i], inner)
		}
	})
	c.Set(0, y)
	return nil
}

// tuples returns, for every index tuple along the last axis of at, the position of the slice it names in data of
// the given shape, and the length of a tuple. The first batch axes of both run together.
func tuples(shape []int, at *Array, batch int) (pos []int, depth int, err error) {
	last := at.Rank() - 1
	if last < 0 {
		return nil, 0, errors.New("indices must have an axis")
	}
	depth = at.Shape[last]
	if batch+depth > len(shape) {
		return nil, 0, fmt.Errorf("index tuples of %d and %d batch axes exceed rank %d", depth, batch, len(shape))
	}
	if !slices.Equal(shape[:batch], at.Shape[:batch]) {
		return nil, 0, fmt.Errorf("data %v and indices %v differ in the batch axes", shape, at.Shape)
	}
	pos = make([]int, prod(at.Shape[:last]))
	step := strides(shape)
	batches := prod(shape[:batch])
	for i := range pos {
		if batch > 0 {
			pos[i] = i / (len(pos) / batches) * step[batch-1]
		}
		for k := range depth {
			p, err := index(at.I64[i*depth+k], shape[batch+k])
			if err != nil {
				return nil, 0, err
			}
			pos[i] += p * step[batch+k]
		}
	}
	return pos, depth, nil
}

// inferFeatures: the elements of the last axis that the indices name; a vector counts as one row.
func inferFeatures(c *InferCtx) error {
	s, at := c.Shape(0), c.Shape(1)
	switch {
	case s == nil:
		c.Set(0, c.Elem(0), nil)
		return nil
	case len(s) == 0:
		return c.Errorf("a scalar has no features")
	case len(s) == 1:
		s = graph.Shape{graph.Known(1), s[0]}
	}
	out := s.Clone()
	out[len(out)-1] = at.Size()
	c.Set(0, c.Elem(0), out)
	return nil
}

func evalFeatures(c *EvalCtx) error {
	x, at := c.In[0], c.In[1]
	if x.Rank() == 0 {
		return c.Errorf("a scalar has no features")
	}
	if x.Rank() == 1 {
		x = x.WithShape([]int{1, x.Shape[0]})
	}
	shape := slices.Clone(x.Shape)
	n := shape[len(shape)-1]
	shape[len(shape)-1] = at.Len()
	y := x.NewLike(shape)
	for i := range y.Len() {
		p, err := index(at.I64[i%at.Len()], n)
		if err != nil {
			return err
		}
		y.copyFrom(i, x, i/at.Len()*n+p)
	}
	c.Set(0, y)
	return nil
}
