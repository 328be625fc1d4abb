package legal

import (
	"math"
	"slices"

	"gradtool/graph"
)

// indexOps holds what reads or writes elements whose place is data. Places become numbers of rows of a flat table first.
func indexOps() map[string]lowering {
	return map[string]lowering{
		"Gather": lowerGather, "GatherElements": lowerGatherElements, "GatherND": lowerGatherND,
		"ScatterElements": lowerScatterElements, "ScatterND": lowerScatterND, "OneHot": lowerOneHot, "TopK": lowerTopK,
	}
}

// contiguous returns v in order and in the type that kernels compute with, a copy if need be.
func (l *lowerer) contiguous(v val) val {
	if v.imm == nil && v.parts == nil && v.inOrder() && v.buf.Stored == graph.Undefined {
		return v
	}
	return l.copyOf("contiguous", v)
}

// rows returns the access to a flat value as a table of rows of the given width.
func (v val) rows(width int) *Access {
	n := prod(v.shape) / width
	return &Access{Buf: v.buf, Base: v.base, Axes: []Axis{
		{Size: n, Stride: width, Coef: []int{1, 0}}, {Size: width, Stride: 1, Coef: []int{0, 1}}}}
}

func (v val) list() *Access {
	return &Access{Buf: v.buf, Base: v.base, Axes: []Axis{{Size: prod(v.shape), Stride: 1, Coef: []int{1}}}}
}

// positive returns an index into n elements, counted from the front.
func (b *nest) positive(i reg, n int) reg {
	return b.do(Select, b.do(Lt, i, b.like(i, 0)), b.plus(i, float64(n)), i)
}

func lowerGather(l *lowerer, n *graph.Node) error {
	x, index := l.arg(0), l.arg(1)
	axis, err := axisOf(n, len(x.shape), 0)
	if err != nil {
		return err
	}
	d := x.shape[axis]
	if x.imm != nil {
		return l.alias(0, splat(x.elem, l.shapeOf(n.Out[0]), *x.imm))
	}
	if index.imm != nil { // one place
		i := int(*index.imm)
		if i < 0 {
			i += d
		}
		if i < 0 || i >= d {
			return unsupported("index %g of %d", *index.imm, d)
		}
		one := x.sliced(axis, i, 0, prod(index.shape))
		return l.alias(0, one)
	}
	x = l.contiguous(x)
	outer, width := prod(x.shape[:axis]), prod(x.shape[axis+1:])
	y := l.result(0)
	flat := l.contiguous(index)
	if outer > 1 {
		count := prod(index.shape)
		flat = l.temp("rows", graph.Int32, []int{outer, count})
		list, err := l.reshape(index, []int{count})
		if err != nil {
			return err
		}
		b := l.nest(flat.shape)
		o := b.scaled(b.iota(0), float64(d))
		b.store(flat, b.do(Add, o, b.positive(b.load(l.plain(list)), d)))
		b.done()
	}
	l.gather(x, flat, y, width)
	return nil
}

func (l *lowerer) gather(table, index, y val, width int) {
	l.add(&Gather{Rows: prod(index.shape), Width: width, TableRows: prod(table.shape) / width, Table: table.rows(width),
		Index: index.list(), Out: y.rows(width)})
}

// places returns the flat place of each element of index in a table of the given shape: the index along axis, the
// element's own coordinates along the others.
func (l *lowerer) places(index val, shape []int, axis int) val {
	index = l.plain(index)
	flat := l.temp("places", graph.Int32, index.shape)
	step := rowMajor(shape)
	b := l.nest(index.shape)
	total := b.scaled(b.positive(b.load(index), shape[axis]), float64(step[axis]))
	for i := range shape {
		if i != axis && index.shape[i] > 1 {
			total = b.do(Add, total, b.scaled(b.iota(i), float64(step[i])))
		}
	}
	b.store(flat, total)
	b.done()
	return flat
}

func lowerGatherElements(l *lowerer, n *graph.Node) error {
	x, index := l.contiguous(l.arg(0)), l.arg(1)
	axis, err := axisOf(n, len(x.shape), 0)
	if err != nil {
		return err
	}
	l.gather(x, l.places(index, x.shape, axis), l.result(0), 1)
	return nil
}

// tuples returns the row that each tuple of index, whose last axis is the tuple, stands for in a table of the given shape.
// The first batch axes are the element's own.
func (l *lowerer) tuples(index val, shape []int, batch int) (val, int) {
	index = l.plain(index)
	r := len(index.shape) - 1
	size := index.shape[r]
	width := prod(shape[batch+size:])
	flat := l.temp("rows", graph.Int32, index.shape[:r])
	step := rowMajor(shape[:batch+size])
	b := l.nest(index.shape[:r])
	total := reg(-1)
	add := func(v reg) {
		if total >= 0 {
			v = b.do(Add, total, v)
		}
		total = v
	}
	for i := range batch {
		if index.shape[i] > 1 {
			add(b.scaled(b.iota(i), float64(step[i])))
		}
	}
	for i := range size {
		part := index.sliced(r, i, 1, 1)
		part.shape, part.stride = part.shape[:r], part.stride[:r]
		add(b.scaled(b.positive(b.load(part), shape[batch+i]), float64(step[batch+i])))
	}
	if total < 0 {
		total = b.konst(graph.Int32, 0)
	}
	b.store(flat, total)
	b.done()
	return flat, width
}

func lowerGatherND(l *lowerer, n *graph.Node) error {
	x := l.contiguous(l.arg(0))
	flat, width := l.tuples(l.arg(1), x.shape, int(n.Int("batch_dims", 0)))
	l.gather(x, flat, l.result(0), width)
	return nil
}

// modes are the reductions of the scattering operators.
var modes = map[string]Op{"none": Mov, "add": Add, "mul": Mul, "max": Max, "min": Min}

// scatter copies x to the result and combines rows of updates into it.
func (l *lowerer) scatter(n *graph.Node, x, flat, updates val, width int) error {
	mode, ok := modes[n.Str("reduction", "none")]
	if !ok {
		return unsupported("reduction %q", n.Str("reduction", ""))
	}
	y := l.result(0)
	r, in := l.refine(y.shape, x)
	to, _ := y.cut(r)
	b := l.nest(r.dims)
	b.store(to, b.load(in[0]))
	b.done()
	updates = l.contiguous(updates)
	l.add(&Scatter{Rows: prod(flat.shape), Width: width, TableRows: prod(y.shape) / width, Table: y.rows(width), Index: flat.list(),
		From: updates.rows(width), Mode: mode})
	return nil
}

func lowerScatterElements(l *lowerer, n *graph.Node) error {
	x := l.raw(0)
	axis, err := axisOf(n, len(x.shape), 0)
	if err != nil {
		return err
	}
	return l.scatter(n, x, l.places(l.arg(1), x.shape, axis), l.arg(2), 1)
}

func lowerScatterND(l *lowerer, n *graph.Node) error {
	if done, err := l.unpool(n); done || err != nil {
		return err
	}
	x := l.raw(0)
	flat, width := l.tuples(l.arg(1), x.shape, 0)
	return l.scatter(n, x, flat, l.arg(2), width)
}

// lowerOneHot compares each index with each place of the new axis.
func lowerOneHot(l *lowerer, n *graph.Node) error {
	index, values := l.arg(0), l.arg(2)
	y := l.result(0)
	axis := int(n.Int("axis", -1))
	if axis < 0 {
		axis += len(y.shape)
	}
	b := l.nest(y.shape)
	var at [][]int
	for i := range y.shape {
		if i != axis {
			at = append(at, along(len(y.shape), i))
		}
	}
	i := b.loadAt(index, at, 0)
	i = b.cast(i, graph.Int32)
	place := b.iota(axis)
	hit := b.do(Eq, b.positive(i, y.shape[axis]), place)
	pick := func(k int) reg {
		if values.imm != nil {
			return b.konst(values.dev(), *values.imm)
		}
		v := values.sliced(0, k, 0, 1)
		return b.loadAt(v, [][]int{still(len(y.shape))}, 0)
	}
	off, on := pick(0), pick(1)
	b.store(y, b.do(Select, hit, on, off))
	b.done()
	return nil
}

// maxRank bounds the axis that TopK ranks by comparing each element with each other.
const maxRank = 2048

// lowerTopK ranks the elements: the place of an element is the number of those that come before it.
func lowerTopK(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	axis, err := axisOf(n, len(x.shape), -1)
	if err != nil {
		return err
	}
	d := x.shape[axis]
	if d > maxRank {
		return unsupported("an axis of %d elements; %d are ranked at most", d, maxRank)
	}
	last := len(x.shape)
	rank := l.temp("rank", graph.Int32, x.shape)
	b := l.nest(append(slices.Clone(x.shape), d))
	mine, other := make([][]int, last), make([][]int, last)
	for i := range last {
		mine[i], other[i] = along(last+1, i), along(last+1, i)
	}
	other[axis] = along(last+1, last)
	a, c := b.loadAt(x, mine, 0), b.loadAt(x, other, 0)
	i := b.iota(axis)
	j := b.iota(last)
	before := b.do(Lt, a, c)
	if n.Int("largest", 1) == 0 {
		before = b.do(Lt, c, a)
	}
	tie := b.do(And, b.do(Eq, a, c), b.do(Lt, j, i))
	b.storeAt(rank, mine, b.reduceOver(Sum, b.do(Or, before, tie), []int{last}))
	b.done()

	k := l.shapeOf(n.Out[0])[axis]
	dims := append(slices.Clone(x.shape), d)
	dims[axis] = k
	p := l.nest(dims)
	v, r := p.loadAt(x, other, 0), p.loadAt(rank, other, 0)
	hit := p.do(Eq, r, p.iota(axis))
	low := p.like(v, math.Inf(-1))
	if p.elem(v) == graph.Int32 {
		low = p.like(v, math.MinInt32)
	}
	p.storeAt(l.result(0), mine, p.reduceOver(ReduceMax, p.do(Select, hit, v, low), []int{last}))
	if n.Result(1) != nil {
		place := p.iota(last)
		p.storeAt(l.result(1), mine, p.reduceOver(ReduceMax, p.do(Select, hit, place, p.like(place, -1)), []int{last}))
	}
	p.done()
	return nil
}
