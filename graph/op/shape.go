package op

import (
	"fmt"

	"gradtool/graph"
)

// shapeDefs lists the operators that read or change shapes.
func shapeDefs() []Def {
	return []Def{
		{Name: "Shape", Facts: ShapeOnly, Infer: inferShape, Eval: evalShape, Cost: free, Samples: []Sample{
			{In: []Arg{F(2, 3, 4)}},
			{Name: "start", In: []Arg{F(2, 3, 4)}, Attrs: []*graph.Attr{graph.IntAttr("start", -2)}},
			{Name: "start end", In: []Arg{F(2, 3, 4)}, Attrs: []*graph.Attr{graph.IntAttr("start", 1), graph.IntAttr("end", -1)}},
			{Name: "clamped", In: []Arg{F(2, 3, 4)}, Attrs: []*graph.Attr{graph.IntAttr("start", -7), graph.IntAttr("end", 9)}},
			{Name: "empty", In: []Arg{F(2, 3, 4)}, Attrs: []*graph.Attr{graph.IntAttr("start", 2), graph.IntAttr("end", 1)}},
			{Name: "scalar", In: []Arg{F()}},
		}},
		{Name: "Size", Facts: ShapeOnly, Infer: inferSize, Eval: evalSize, Cost: free, Samples: []Sample{
			{In: []Arg{F(2, 3, 4)}}, {Name: "scalar", In: []Arg{F()}}, {Name: "empty", In: []Arg{F(2, 0)}},
		}},
		{Name: "Reshape", Facts: View, Infer: tracked(inferReshape, evalReshape, 0), Eval: evalReshape, Cost: free, Samples: []Sample{
			{In: []Arg{F(2, 3, 4), I(4, 6)}},
			{Name: "copied and left over", In: []Arg{F(2, 3, 4), I(0, -1)}},
			{Name: "left over in the middle", In: []Arg{F(2, 3, 4), I(2, -1, 2)}},
			{Name: "to scalar", In: []Arg{F(1, 1), I()}},
			{Name: "of scalar", In: []Arg{F(), I(1, -1)}},
			{Name: "zero kept", In: []Arg{F(0, 3), I(3, 0, 2)}, Attrs: []*graph.Attr{graph.IntAttr("allowzero", 1)}},
			{Name: "ints", In: []Arg{I(1, 2, 3, 4), I(2, 2)}},
			{Name: "run-time shape", In: []Arg{F(2, 6), I(0, 3, -1).Variable()}},
		}},
		{Name: "Flatten", Facts: View, Infer: tracked(inferFlatten, evalFlatten), Eval: evalFlatten, Cost: free, Samples: []Sample{
			{In: []Arg{F(2, 3, 4)}},
			{Name: "axis 0", In: []Arg{F(2, 3)}, Attrs: []*graph.Attr{graph.IntAttr("axis", 0)}},
			{Name: "axis -1", In: []Arg{F(2, 3, 4)}, Attrs: []*graph.Attr{graph.IntAttr("axis", -1)}},
			{Name: "axis is rank", In: []Arg{F(2, 3)}, Attrs: []*graph.Attr{graph.IntAttr("axis", 2)}},
		}},
		{Name: "Squeeze", Facts: View, Infer: tracked(inferSqueeze, evalSqueeze, 0), Eval: evalSqueeze, Cost: free, Samples: []Sample{
			{In: []Arg{F(1, 3, 1, 4), I(0, -2)}},
			{Name: "all", In: []Arg{F(1, 1), I(0, 1)}},
			{Name: "no axes", In: []Arg{F(1, 3, 1).Constant()}},
			{Name: "run-time axes", In: []Arg{F(1, 3, 1), I(2).Variable()}},
		}},
		{Name: "Unsqueeze", Facts: View, Infer: tracked(inferUnsqueeze, evalUnsqueeze, 0), Eval: evalUnsqueeze, Cost: free, Samples: []Sample{
			{In: []Arg{F(3, 4), I(0, -1)}},
			{Name: "unordered", In: []Arg{F(3, 4), I(3, 0)}},
			{Name: "scalar", In: []Arg{F(), I(0)}},
			{Name: "run-time axes", In: []Arg{F(3), I(0, -1).Variable()}},
		}},
		{Name: "Expand", Infer: tracked(inferExpand, evalExpand, 0), Eval: evalExpand, Cost: free, Facts: CheapRemat, Samples: []Sample{
			{In: []Arg{F(3, 1), I(2, 1, 4)}},
			{Name: "both ways", In: []Arg{F(3, 4), I(2, 1, 1)}},
			{Name: "to fewer axes", In: []Arg{F(2, 1, 4), I(3, 1)}},
			{Name: "scalar", In: []Arg{F(), I(2, 3)}},
			{Name: "to empty", In: []Arg{F(2, 1), I(2, 0)}},
			{Name: "ints", In: []Arg{I(7), I(3)}},
			{Name: "run-time shape", In: []Arg{F(2, 1), I(3, 1, 4).Variable()}},
		}},
		{Name: "Tile", Infer: tracked(inferTile, evalTile, 0), Eval: evalTile, Cost: free, Facts: CheapRemat, Samples: []Sample{
			{In: []Arg{F(2, 3), I(2, 3)}},
			{Name: "one axis", In: []Arg{F(2, 3, 2), I(1, 4, 1)}},
			{Name: "once", In: []Arg{F(2, 3), I(1, 1)}},
			{Name: "not at all", In: []Arg{F(2, 3), I(1, 0)}},
			{Name: "scalar", In: []Arg{F(), I()}},
			{Name: "run-time repeats", In: []Arg{F(2, 3), I(2, 3).Variable()}},
		}},
		{Name: "Transpose", Infer: tracked(inferTranspose, evalTranspose), Eval: evalTranspose, Cost: free, Facts: CheapRemat, Samples: []Sample{
			{In: []Arg{F(2, 3, 4)}},
			{Name: "perm", In: []Arg{F(2, 3, 4)}, Attrs: []*graph.Attr{graph.IntsAttr("perm", 1, 2, 0)}},
			{Name: "last two", In: []Arg{F(2, 3, 4, 5)}, Attrs: []*graph.Attr{graph.IntsAttr("perm", 0, 1, 3, 2)}},
			{Name: "blocks", In: []Arg{F(37, 40)}},
			{Name: "strings", In: []Arg{F(2, 2).As(graph.String)}},
			{Name: "scalar", In: []Arg{F()}},
		}},
	}
}

// free is the cost of operators that compute nothing.
func free(*CostCtx) float64 { return 0 }

// shapeRange returns the range of axes that a Shape node reads of an operand of the given rank.
func shapeRange(n *graph.Node, rank int) (lo, hi int) {
	clamp := func(a int64) int {
		if a < 0 {
			a += int64(rank)
		}
		return int(min(max(a, 0), int64(rank)))
	}
	lo, hi = clamp(n.Int("start", 0)), rank
	if n.HasAttr("end") {
		hi = clamp(n.Int("end", 0))
	}
	return lo, max(lo, hi)
}

func inferShape(c *InferCtx) error {
	s := c.Shape(0)
	if s == nil {
		c.Set(0, graph.Int64, graph.UnknownShape(1))
		return nil
	}
	lo, hi := shapeRange(c.Node, len(s))
	c.Set(0, graph.Int64, graph.ShapeOf(int64(hi-lo)))
	c.SetDims(0, s[lo:hi].Clone())
	return nil
}

func evalShape(c *EvalCtx) error {
	x := c.In[0]
	lo, hi := shapeRange(c.Node, x.Rank())
	y := c.New(graph.Int64, []int{hi - lo})
	for i, n := range x.Shape[lo:hi] {
		y.I64[i] = int64(n)
	}
	c.Set(0, y)
	return nil
}

func inferSize(c *InferCtx) error {
	c.Set(0, graph.Int64, graph.ShapeOf())
	c.SetDims(0, []graph.Dim{c.Shape(0).Size()})
	return nil
}

func evalSize(c *EvalCtx) error {
	c.Set(0, IntScalar(int64(c.In[0].Len())))
	return nil
}

func inferFlatten(c *InferCtx) error {
	s := c.Shape(0)
	if s == nil {
		c.Set(0, c.Elem(0), graph.UnknownShape(2))
		return nil
	}
	k, err := flattenAxis(c.Node, len(s))
	if err != nil {
		return err
	}
	c.Set(0, c.Elem(0), graph.Shape{s[:k].Size(), s[k:].Size()})
	return nil
}

// flattenAxis returns the axis before which Flatten parts the shape: 0 to rank.
func flattenAxis(n *graph.Node, rank int) (int, error) {
	a := n.Int("axis", 1)
	k := a
	if k < 0 {
		k += int64(rank)
	}
	if k < 0 || k > int64(rank) {
		return 0, fmt.Errorf("axis %d is outside -%d to %[2]d", a, rank)
	}
	return int(k), nil
}

func evalFlatten(c *EvalCtx) error {
	x := c.In[0]
	k, err := flattenAxis(c.Node, x.Rank())
	if err != nil {
		return err
	}
	c.Set(0, x.WithShape([]int{prod(x.Shape[:k]), prod(x.Shape[k:])}))
	return nil
}

func inferExpand(c *InferCtx) error {
	target := c.Dims(1)
	if target == nil {
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	s, err := broadcastShapes(c.Shape(0), graph.Shape(target))
	if err != nil {
		return err
	}
	c.Set(0, c.Elem(0), s)
	return nil
}

func evalExpand(c *EvalCtx) error {
	x := c.In[0]
	target, err := sizes(c.Ints(1))
	if err != nil {
		return err
	}
	p, err := newBroadcast(x.Shape, target)
	if err != nil {
		return err
	}
	c.Set(0, expand(x, p.shape))
	return nil
}

// expand returns x broadcast to a shape that it broadcasts to.
func expand(x *Array, shape []int) *Array {
	y := x.NewLike(shape)
	lead := len(shape) - x.Rank()
	from := view{step: make([]int, len(shape))}
	for i, step := range strides(x.Shape) {
		if x.Shape[i] != 1 {
			from.step[lead+i] = step
		}
	}
	copyView(y, dense(shape), x, from, shape)
	return y
}

// sizes returns the elements of a shape operand as sizes, which must not be negative.
func sizes(dims []int64) ([]int, error) {
	out := make([]int, len(dims))
	for i, n := range dims {
		if n < 0 || n > 1<<40 {
			return nil, fmt.Errorf("shape %v has the impossible size %d", dims, n)
		}
		out[i] = int(n)
	}
	return out, nil
}

func inferTile(c *InferCtx) error {
	s, reps := c.Shape(0), c.Dims(1)
	switch {
	case s == nil && reps != nil:
		s = graph.UnknownShape(len(reps))
	case s == nil:
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	if reps != nil && len(reps) != len(s) {
		return c.Errorf("%d repeats for a tensor of rank %d", len(reps), len(s))
	}
	out := graph.UnknownShape(len(s))
	for i := range reps {
		if n, ok := reps[i].Int(); ok && n < 0 {
			return c.Errorf("axis %d is repeated %d times", i, n)
		}
		out[i] = s[i].Mul(reps[i])
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

func evalTile(c *EvalCtx) error {
	x := c.In[0]
	reps, err := sizes(c.Ints(1))
	if err != nil {
		return err
	}
	if len(reps) != x.Rank() {
		return c.Errorf("%d repeats for a tensor of rank %d", len(reps), x.Rank())
	}
	// Every axis becomes two, repetition and position: x is repeated along the first of them.
	n := x.Rank()
	shape, dims, from := make([]int, n), make([]int, 2*n), view{step: make([]int, 2*n)}
	for i, step := range strides(x.Shape) {
		shape[i] = reps[i] * x.Shape[i]
		dims[2*i], dims[2*i+1], from.step[2*i+1] = reps[i], x.Shape[i], step
	}
	y := x.NewLike(shape)
	copyView(y, dense(dims), x, from, dims)
	c.Set(0, y)
	return nil
}

// permOf returns the permutation of a Transpose node: by default the axes in reverse.
func permOf(n *graph.Node, rank int) ([]int, error) {
	out := make([]int, rank)
	if !n.HasAttr("perm") {
		for i := range out {
			out[i] = rank - 1 - i
		}
		return out, nil
	}
	perm := n.Ints("perm")
	if len(perm) != rank {
		return nil, fmt.Errorf("perm %v does not fit a tensor of rank %d", perm, rank)
	}
	seen := make([]bool, rank)
	for i, p := range perm {
		if p < 0 || p >= int64(rank) || seen[p] {
			return nil, fmt.Errorf("perm %v is not a permutation of %d axes", perm, rank)
		}
		seen[p], out[i] = true, int(p)
	}
	return out, nil
}

func inferTranspose(c *InferCtx) error {
	s := c.Shape(0)
	if s == nil {
		if c.Node.HasAttr("perm") {
			s = graph.UnknownShape(len(c.Node.Ints("perm")))
		}
		c.Set(0, c.Elem(0), s)
		return nil
	}
	perm, err := permOf(c.Node, len(s))
	if err != nil {
		return err
	}
	out := make(graph.Shape, len(s))
	for i, p := range perm {
		out[i] = s[p]
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

func evalTranspose(c *EvalCtx) error {
	perm, err := permOf(c.Node, c.In[0].Rank())
	if err != nil {
		return err
	}
	c.Set(0, permuted(c.In[0], perm))
	return nil
}
