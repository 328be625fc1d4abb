package legal

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// reduceOps holds the reductions, the searches for extremes and running sums.
func reduceOps() map[string]lowering {
	none := func(_ *nest, x reg, _ int) reg { return x }
	return map[string]lowering{
		"ReduceSum":  reduction(Sum, nil, nil),
		"ReduceProd": reduction(Prod, nil, nil),
		"ReduceMax":  reduction(ReduceMax, nil, nil),
		"ReduceMin":  reduction(ReduceMin, nil, nil),
		"ReduceMean": reduction(Sum, nil, func(b *nest, x reg, n int) reg {
			if b.elem(x) == graph.Int32 {
				return b.do(Div, x, b.like(x, float64(n)))
			}
			return b.scaled(x, 1/float64(n))
		}),
		"ReduceL1":        reduction(Sum, func(b *nest, x reg) reg { return b.do(Abs, x) }, none),
		"ReduceSumSquare": reduction(Sum, square, none),
		"ReduceL2":        reduction(Sum, square, func(b *nest, x reg, _ int) reg { return b.do(Sqrt, x) }),
		"ReduceLogSum":    reduction(Sum, nil, func(b *nest, x reg, _ int) reg { return b.do(Log, x) }),
		"ReduceLogSumExp": lowerLogSumExp,
		"ArgMax":          argument(ReduceMax),
		"ArgMin":          argument(ReduceMin),
		"CumSum":          lowerCumSum,
		"CumProd":         lowerCumProd,
	}
}

func square(b *nest, x reg) reg { return b.do(Mul, x, x) }

// reduceSpace is what a reduction runs over: the operand's axes, cut to pieces, and a view of the result over them.
type reduceSpace struct {
	dims []int // of the nest
	over []int // those that are reduced
	x    val
	y    val // over dims, 1 where reduced
	n    int // elements that become one
}

// reduceSpace sets up a reduction of operand x over axes, with the node's result 0 as result.
func (l *lowerer) reduceSpace(x val, axes []int) *reduceSpace {
	r, in := l.refine(x.shape, x)
	s := &reduceSpace{dims: r.dims, x: in[0], n: 1}
	kept := slices.Clone(x.shape)
	for _, a := range axes {
		kept[a] = 1
		s.n *= x.shape[a]
	}
	y := l.result(0)
	y, _ = y.reshaped(kept)
	view := val{elem: y.elem, buf: y.buf, shape: slices.Clone(r.dims), stride: rowMajor(r.dims)}
	// The result is in row-major order over the pieces that stay.
	n := 1
	for i := len(r.dims) - 1; i >= 0; i-- {
		if slices.Contains(axes, r.from[i]) {
			view.shape[i], view.stride[i] = 1, 0
			s.over = append(s.over, i)
			continue
		}
		view.stride[i] = n
		n *= r.dims[i]
	}
	s.y = view
	return s
}

// put writes r to the result.
func (s *reduceSpace) put(b *nest, r reg) {
	b.storeAt(s.y, s.coordinates(b), r)
}

func (s *reduceSpace) coordinates(b *nest) [][]int {
	n := len(b.k.Dims)
	c := make([][]int, n)
	for i := range c {
		c[i] = along(n, i)
		if s.y.shape[i] == 1 {
			c[i] = still(n)
		}
	}
	return c
}

// axes returns the axes that the node, a reduction, reduces.
func (l *lowerer) axes(rank int) ([]int, error) {
	var list []int64
	if x := l.node.Operand(1); x != nil {
		a := l.info.Const(x)
		if a == nil {
			return nil, unsupported("axes are known at run time only")
		}
		list = a.I64
	}
	axes, err := op.ReduceAxes(list, l.node.Int("noop_with_empty_axes", 0) != 0, rank)
	if err != nil {
		return nil, err
	}
	return axes, nil
}

// reduction lowers a reduction: before is applied to each element, after to the result of n elements.
func reduction(o Op, before func(b *nest, x reg) reg, after func(b *nest, x reg, n int) reg) lowering {
	return func(l *lowerer, n *graph.Node) error {
		x := l.raw(0)
		axes, err := l.axes(len(x.shape))
		if err != nil {
			return err
		}
		s := l.reduceSpace(x, axes)
		b := l.nest(s.dims)
		v := b.load(s.x)
		if before != nil {
			v = before(b, v)
		}
		v = b.reduceOver(o, v, s.over)
		if after != nil {
			v = after(b, v, s.n)
		}
		s.put(b, b.wrap(v, s.y.elem))
		b.done()
		return nil
	}
}

// reduceOver reduces v over dimensions of a nest. Of a value that does not vary along some of them, a sum is multiplied by
// the number of indices, a product raised to that power.
func (b *nest) reduceOver(o Op, v reg, over []int) reg {
	varies := b.variesOf(v)
	var live []int
	still := 1
	for _, d := range over {
		if varies>>d&1 != 0 {
			live = append(live, d)
		} else {
			still *= b.k.Dims[d]
		}
	}
	v = b.reduce(o, v, live...)
	switch {
	case still == 1:
	case o == Sum:
		v = b.do(Mul, v, b.like(v, float64(still)))
	case o == Prod:
		v = b.do(Pow, v, b.like(v, float64(still)))
	}
	return v
}

// variesOf returns the dimensions along which a value of the unfinished nest varies.
func (b *nest) variesOf(r reg) uint32 {
	if r < stmtBase {
		return b.k.loadVaries(b.loads[r])
	}
	s := b.body[r-stmtBase]
	mask := uint32(0)
	for _, a := range s.Args {
		mask |= b.variesOf(reg(a))
	}
	if s.Op == Iota && b.k.Dims[s.Dim] > 1 {
		mask |= 1 << s.Dim
	}
	return mask &^ s.Over
}

// lowerLogSumExp is the log of the sum of exponentials, from the maximum.
func lowerLogSumExp(l *lowerer, n *graph.Node) error {
	x := l.raw(0)
	axes, err := l.axes(len(x.shape))
	if err != nil {
		return err
	}
	s := l.reduceSpace(x, axes)
	b := l.nest(s.dims)
	v := b.load(s.x)
	top := b.reduceOver(ReduceMax, v, s.over)
	top = b.do(Select, b.do(Lt, b.do(Abs, top), b.like(top, 3.4e38)), top, b.like(top, 0))
	sum := b.reduceOver(Sum, b.do(Exp, b.do(Sub, v, top)), s.over)
	s.put(b, b.wrap(b.do(Add, b.do(Log, sum), top), s.y.elem))
	b.done()
	return nil
}

// argument finds the place of an extreme along an axis: the least index, or with select_last_index the greatest, at which
// the element equals it.
func argument(o Op) lowering {
	return func(l *lowerer, n *graph.Node) error {
		x := l.arg(0)
		axis, err := axisOf(n, len(x.shape), 0)
		if err != nil {
			return err
		}
		s := l.reduceSpace(x, []int{axis})
		b := l.nest(s.dims)
		v := b.load(s.x)
		place := b.iota(axis)
		pick, out := ReduceMin, float64(1<<30)
		if n.Int("select_last_index", 0) != 0 {
			pick, out = ReduceMax, -1
		}
		best := b.reduceOver(o, v, s.over)
		at := b.do(Select, b.do(Eq, v, best), place, b.like(place, out))
		s.put(b, b.reduceOver(pick, at, s.over))
		b.done()
		return nil
	}
}

// axisOf returns attribute axis, counted from the front.
func axisOf(n *graph.Node, rank int, def int64) (int, error) {
	a := int(n.Int("axis", def))
	if a < 0 {
		a += rank
	}
	if a < 0 || a >= max(rank, 1) || rank == 0 {
		return 0, unsupported("axis %d of a tensor of rank %d", n.Int("axis", def), rank)
	}
	return a, nil
}

// lowerCumSum adds up along an axis by a sum over the elements that count: those at or before each place.
func lowerCumSum(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	a := l.info.Const(n.In[1])
	if a == nil || len(a.I64) != 1 {
		return unsupported("the axis is known at run time only")
	}
	axis := int(a.I64[0])
	if axis < 0 {
		axis += len(x.shape)
	}
	y := l.result(0)
	dims := append(slices.Clone(x.shape), x.shape[axis])
	last := len(x.shape)
	b := l.nest(dims)
	read, write := make([][]int, last), make([][]int, last)
	for i := range last {
		read[i], write[i] = along(len(dims), i), along(len(dims), i)
	}
	read[axis] = along(len(dims), last)
	v := b.loadAt(x, read, 0)
	to := b.iota(axis)
	from := b.iota(last)
	if n.Int("reverse", 0) != 0 {
		to, from = from, to
	}
	o := Le
	if n.Int("exclusive", 0) != 0 {
		o = Lt
	}
	counted := b.do(Select, b.do(o, from, to), v, b.like(v, 0))
	b.storeAt(y, write, b.wrap(b.reduceOver(Sum, counted, []int{last}), y.elem))
	b.done()
	return nil
}

// lowerCumProd multiplies along an axis in rounds: after round r each place has the product of up to 2^r elements that end there.
func lowerCumProd(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	a := l.info.Const(n.In[1])
	if a == nil || len(a.I64) != 1 {
		return unsupported("the axis is known at run time only")
	}
	axis := int(a.I64[0])
	if axis < 0 {
		axis += len(x.shape)
	}
	back := -1
	if n.Int("reverse", 0) != 0 {
		back = 1
	}
	y := l.result(0)
	// times stores in to the elements of x times those step places before, 1 where there is none; alone leaves the element itself out.
	times := func(to, x val, step int, alone bool) {
		b := l.nest(y.shape)
		at := make([][]int, len(y.shape))
		for i := range at {
			at[i] = along(len(y.shape), i)
		}
		at[axis][len(y.shape)] = back * step
		v := b.loadAt(x, at, 1)
		if !alone {
			v = b.wrap(b.do(Mul, b.load(x), v), y.elem)
		}
		b.store(to, v)
		b.done()
	}
	if n.Int("exclusive", 0) != 0 {
		z := l.temp("cumprod", y.elem, y.shape)
		times(z, x, 1, true)
		x = z
	}
	for step := 1; ; step *= 2 {
		z := y
		if 2*step < y.shape[axis] {
			z = l.temp("cumprod", y.elem, y.shape)
		}
		times(z, x, step, false)
		if 2*step >= y.shape[axis] {
			return nil
		}
		x = z
	}
}
