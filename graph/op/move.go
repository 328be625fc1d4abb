package op

import (
	"slices"

	"gradtool/graph"
)

// moveDefs lists the operators that put elements in other places.
func moveDefs() []Def {
	return slices.Concat(joinDefs(), padDefs(), blockDefs())
}

// joinDefs lists the operators that join and part tensors.
func joinDefs() []Def {
	axis := func(a int64) []*graph.Attr { return []*graph.Attr{graph.IntAttr("axis", a)} }
	parts := func(a, n int64) []*graph.Attr { return append(axis(a), graph.IntAttr("num_outputs", n)) }
	return []Def{
		{Name: "Concat", Infer: tracked(inferConcat, evalConcat), Eval: evalConcat, Cost: free, Facts: CheapRemat, Samples: []Sample{
			{In: []Arg{F(2, 3), F(1, 3), F(4, 3)}, Attrs: axis(0)},
			{Name: "last axis", In: []Arg{F(2, 3), F(2, 2)}, Attrs: axis(-1)},
			{Name: "middle axis", In: []Arg{F(2, 3, 2), F(2, 1, 2)}, Attrs: axis(1)},
			{Name: "one", In: []Arg{F(2, 3)}, Attrs: axis(1)},
			{Name: "empty part", In: []Arg{F(2, 3), F(2, 0)}, Attrs: axis(1)},
		}},
		{Name: "Split", Infer: tracked(inferSplit, evalSplit, 0), Eval: evalSplit, Cost: free, Facts: CheapRemat, Samples: []Sample{
			{In: []Arg{F(6, 2), I(2, 4)}, Outs: 2},
			{Name: "equal parts", In: []Arg{F(2, 6)}, Attrs: parts(1, 3), Outs: 3},
			{Name: "uneven", In: []Arg{F(2, 7)}, Attrs: parts(-1, 3), Outs: 3},
			{Name: "empty part", In: []Arg{F(2, 3), I(0, 3)}, Attrs: axis(1), Outs: 2},
			{Name: "run-time sizes", In: []Arg{F(2, 5), I(4, 1).Variable()}, Attrs: axis(1), Outs: 2},
		}},
		{Name: "Slice", Infer: tracked(inferSlice, evalSlice, 0), Eval: evalSlice, Cost: free, Facts: CheapRemat, Samples: []Sample{
			{In: []Arg{F(5, 4), I(1, 0), I(4, 3), I(0, 1)}},
			{Name: "no axes", In: []Arg{F(5, 4), I(1), I(3)}},
			{Name: "negative", In: []Arg{F(5, 4), I(-3, -9), I(-1, 1<<62), I(-2, -1)}},
			{Name: "steps", In: []Arg{F(7, 4), I(1, 0), I(7, 4), I(0, 1), I(2, 3)}},
			{Name: "reversed", In: []Arg{F(5, 4), I(-1), I(-1 << 62), I(0), I(-1)}},
			{Name: "backwards", In: []Arg{F(8, 3), I(6, 9), I(0, -9), I(0, 1), I(-2, -1)}},
			{Name: "nothing", In: []Arg{F(5, 4), I(3), I(2), I(0)}},
			{Name: "beyond", In: []Arg{F(5, 4), I(7), I(9), I(0)}},
			{Name: "steps of long rows", In: []Arg{F(7, 65), I(5), I(-99), I(0), I(-2)}},
			{Name: "run-time ends, steps of long rows", In: []Arg{F(7, 65), I(1).Variable(), I(-1).Variable(), I(0), I(3)}},
			{Name: "steps, none taken", In: []Arg{F(2, 5), I(4), I(1), I(1), I(2)}},
			{Name: "steps backwards, none taken", In: []Arg{F(2, 5), I(4), I(4), I(-1), I(-2)}},
			{Name: "run-time ends", In: []Arg{F(5, 4), I(1, -3).Variable(), I(9, -1).Variable(), I(0, 1)}},
			{Name: "run-time ends, int32", In: []Arg{F(5, 4), TV(graph.Int32, []int{1}, 2).Variable(), TV(graph.Int32, []int{1}, 4).Variable(), TV(graph.Int32, []int{1}, 1)}},
			{Name: "run-time ends, steps", In: []Arg{F(7, 6), I(-9, 5).Variable(), I(6, 0).Variable(), I(0, 1), I(2, -3)}},
			{Name: "run-time axes and steps", In: []Arg{F(5, 4), I(1, 0), I(5, 3), I(1, 0).Variable(), I(2, -1).Variable()}},
		}},
	}
}

func inferConcat(c *InferCtx) error {
	var out graph.Shape
	for i := range c.NumIn() {
		if s := c.Shape(i); s != nil {
			out = graph.UnknownShape(len(s))
			break
		}
	}
	if out == nil {
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	axis, err := c.Axis(c.Node.Int("axis", 0), len(out))
	if err != nil {
		return err
	}
	sum := graph.Known(0)
	for i := range c.NumIn() {
		s := c.Shape(i)
		if s == nil {
			sum = graph.Unknown()
			continue
		}
		if len(s) != len(out) {
			return c.Errorf("operands of rank %d and %d", len(out), len(s))
		}
		for j, d := range s {
			if j == axis {
				sum = sum.Add(d)
				continue
			}
			var clash bool
			if out[j], clash = mergeDim(out[j], d); clash {
				return c.Errorf("operand %d has size %v along axis %d, others do not", i, d, j)
			}
		}
	}
	out[axis] = sum
	c.Set(0, c.Elem(0), out)
	return nil
}

func evalConcat(c *EvalCtx) error {
	first := c.In[0]
	axis, err := c.axisOf(0, first.Rank())
	if err != nil {
		return err
	}
	shape := slices.Clone(first.Shape)
	if len(shape) == 0 {
		return c.Errorf("a scalar cannot be joined")
	}
	shape[axis] = 0
	for _, x := range c.In {
		if x.Rank() != len(shape) {
			return c.Errorf("operands of rank %d and %d", len(shape), x.Rank())
		}
		for j, n := range x.Shape {
			if j != axis && n != shape[j] {
				return c.Errorf("operands of shape %v and %v differ along axis %d", first.Shape, x.Shape, j)
			}
		}
		shape[axis] += x.Shape[axis]
	}
	y := first.NewLike(shape)
	step, at := strides(shape), 0
	for _, x := range c.In {
		copyView(y, view{at * step[axis], step}, x, dense(x.Shape), x.Shape)
		at += x.Shape[axis]
	}
	c.Set(0, y)
	return nil
}

func inferSplit(c *InferCtx) error {
	s := c.Shape(0)
	n := len(c.Node.Out)
	if s == nil {
		for i := range n {
			c.Set(i, c.Elem(0), nil)
		}
		return nil
	}
	axis, err := c.Axis(c.Node.Int("axis", 0), len(s))
	if err != nil {
		return err
	}
	part := make([]graph.Dim, n)
	if c.Has(1) {
		given := c.Dims(1)
		if given != nil && len(given) != n {
			return c.Errorf("%d sizes for %d results", len(given), n)
		}
		copy(part, given)
		sum := graph.Known(0)
		for _, d := range part {
			sum = sum.Add(d)
		}
		if sum.ProvablyNot(s[axis]) {
			return c.Errorf("parts %v of a dimension of %v", graph.Shape(part), s[axis])
		}
	} else {
		size := s[axis].CeilDiv(graph.Known(int64(n)))
		for i := range part {
			part[i] = size
		}
		part[n-1] = s[axis].Sub(size.Mul(graph.Known(int64(n - 1))))
		if negative(part[n-1]) {
			return c.Errorf("a dimension of %v cannot be parted in %d", s[axis], n)
		}
	}
	for i := range part {
		out := s.Clone()
		out[axis] = part[i]
		c.Set(i, c.Elem(0), out)
	}
	return nil
}

// negative reports whether d is provably below zero.
func negative(d graph.Dim) bool { return d.Less(graph.Known(0)) }

func evalSplit(c *EvalCtx) error {
	x := c.In[0]
	axis, err := c.axisOf(0, x.Rank())
	if err != nil {
		return err
	}
	n := len(c.Out)
	part, err := sizes(c.Ints(1))
	if err != nil {
		return err
	}
	if c.Arg(1) == nil {
		size := (x.Shape[axis] + n - 1) / n
		part = slices.Repeat([]int{size}, n)
		part[n-1] = x.Shape[axis] - size*(n-1)
	}
	sum := 0
	for _, p := range part {
		sum += p
	}
	if len(part) != n || sum != x.Shape[axis] || part[n-1] < 0 {
		return c.Errorf("a dimension of %d cannot be parted in %v", x.Shape[axis], part)
	}
	step, at := strides(x.Shape), 0
	for i, p := range part {
		shape := slices.Clone(x.Shape)
		shape[axis] = p
		y := x.NewLike(shape)
		copyView(y, dense(shape), x, view{at * step[axis], step}, shape)
		c.Set(i, y)
		at += p
	}
	return nil
}

// inferSlice computes the size along each sliced axis from start, end and step, which may be symbolic where
// their signs are known.
func inferSlice(c *InferCtx) error {
	s := c.Shape(0)
	if s == nil {
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	out := s.Clone()
	starts, ends := c.Dims(1), c.Dims(2)
	n := max(len(starts), len(ends))
	axes, steps := c.Dims(3), c.Dims(4)
	if !c.Has(3) {
		axes = make([]graph.Dim, n)
		for i := range axes {
			axes[i] = graph.Known(int64(i))
		}
	}
	named, ok := known(axes)
	if axes == nil || n == 0 && starts == nil || !ok { // which axes are sliced is not known
		c.Set(0, c.Elem(0), graph.UnknownShape(len(s)))
		return nil
	}
	at, err := normAxes(named, len(s))
	if err != nil {
		return err
	}
	pick := func(list []graph.Dim, i int) graph.Dim {
		if i < len(list) {
			return list[i]
		}
		return graph.Unknown()
	}
	for i, a := range at {
		step := pick(steps, i)
		if !c.Has(4) {
			step = graph.Known(1)
		}
		if n, ok := step.Int(); ok && n == 0 {
			return c.Errorf("step 0 along axis %d", a)
		}
		out[a] = sliceSize(s[a], pick(starts, i), pick(ends, i), step)
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

// known returns the numbers that dims are, if all are.
func known(dims []graph.Dim) ([]int64, bool) { return graph.Shape(dims).Ints() }

// farEnd is the least number that means "to the end" of a dimension of any size.
const farEnd = 1<<31 - 1

// sliceSize returns the number of elements of [start:end:step] in a dimension of size n.
func sliceSize(n, start, end, step graph.Dim) graph.Dim {
	k, ok := step.Int()
	if !ok {
		return graph.Unknown()
	}
	zero := graph.Known(0)
	if k > 0 {
		lo, ok1 := fromFront(n, start)
		hi, ok2 := fromFront(n, end)
		if !ok1 || !ok2 {
			return graph.Unknown()
		}
		if e, ok := end.Int(); ok && e >= farEnd {
			hi = n
		} else if !hi.LessEq(n) {
			hi = hi.Min(n)
		}
		if s, ok := start.Int(); ok && s >= farEnd {
			return zero
		}
		return hi.Sub(lo.Max(zero)).Max(zero).CeilDiv(step)
	}
	// Backwards from start, clamped to [0, n-1], to end, clamped to [-1, n-1].
	last := n.Sub(graph.Known(1))
	lo, ok1 := fromFront(n, start)
	hi, ok2 := fromFront(n, end)
	if !ok1 || !ok2 {
		return graph.Unknown()
	}
	if s, ok := start.Int(); ok && s >= farEnd {
		lo = last
	} else {
		lo = lo.Max(zero).Min(last)
	}
	if e, ok := end.Int(); ok && e <= -farEnd {
		hi = graph.Known(-1)
	} else if e, ok := end.Int(); ok && e >= farEnd {
		hi = last
	} else {
		hi = hi.Max(graph.Known(-1)).Min(last)
	}
	return lo.Sub(hi).Max(zero).CeilDiv(step.Neg())
}

// fromFront returns a start or end counted from the front of n elements, where its sign is known.
func fromFront(n, at graph.Dim) (graph.Dim, bool) {
	switch {
	case negative(at):
		return n.Add(at), true
	case graph.Known(0).LessEq(at):
		return at, true
	}
	return at, false
}

func evalSlice(c *EvalCtx) error {
	x := c.In[0]
	starts, ends, steps := c.Ints(1), c.Ints(2), c.Ints(4)
	axes := c.Ints(3)
	if c.Arg(3) == nil {
		for i := range starts {
			axes = append(axes, int64(i))
		}
	}
	at, err := normAxes(axes, x.Rank())
	if err != nil {
		return err
	}
	if len(starts) != len(at) || len(ends) != len(at) || c.Arg(4) != nil && len(steps) != len(at) {
		return c.Errorf("%d starts, %d ends and %d steps for %d axes", len(starts), len(ends), len(steps), len(at))
	}
	shape, from := slices.Clone(x.Shape), dense(x.Shape)
	for i, a := range at {
		step := int64(1)
		if c.Arg(4) != nil {
			step = steps[i]
		}
		if step == 0 {
			return c.Errorf("step 0 along axis %d", a)
		}
		var first int
		first, shape[a] = sliceRange(x.Shape[a], starts[i], ends[i], step)
		from.off += first * from.step[a]
		from.step[a] *= int(step)
	}
	y := x.NewLike(shape)
	copyView(y, dense(shape), x, from, shape)
	c.Set(0, y)
	return nil
}

// sliceRange returns the first position and the number of positions of [start:end:step] in n elements.
func sliceRange(n int, start, end, step int64) (first, count int) {
	size := int64(n)
	clamp := func(x, lo, hi int64) int64 {
		if x < 0 {
			x += size
		}
		return max(lo, min(x, hi))
	}
	if step > 0 {
		lo, hi := clamp(start, 0, size), clamp(end, 0, size)
		if hi <= lo {
			return 0, 0
		}
		return int(lo), int((hi-lo-1)/step + 1)
	}
	lo, hi := clamp(start, 0, size-1), clamp(end, -1, size-1)
	if lo <= hi || size == 0 {
		return 0, 0
	}
	if step == -1<<63 {
		return int(lo), 1
	}
	return int(lo), int((lo-hi-1)/-step + 1)
}
