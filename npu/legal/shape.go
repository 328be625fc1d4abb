package legal

import (
	"math"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// shapeOps holds what makes views, and what makes values from shapes alone.
func shapeOps() map[string]lowering {
	same := func(l *lowerer, _ *graph.Node) error { return l.alias(0, l.raw(0)) }
	return map[string]lowering{
		"Identity": same, "Reshape": same, "Flatten": same, "Squeeze": same, "Unsqueeze": same,
		"Transpose":       lowerTranspose,
		"Expand":          func(l *lowerer, n *graph.Node) error { return l.alias(0, l.raw(0).broadcast(l.shapeOf(n.Out[0]))) },
		"Slice":           lowerSlice,
		"Split":           lowerSplit,
		"DepthToSpace":    lowerDepthToSpace,
		"SpaceToDepth":    lowerSpaceToDepth,
		"Constant":        lowerConstant,
		"ConstantOfShape": lowerConstantOfShape,
		"Shape":           lowerShape,
		"Size":            lowerShape,
		"EyeLike":         lowerEyeLike,
		"Range":           lowerRange,
		"Dropout":         lowerDropout,
	}
}

func (l *lowerer) shapeOf(v *graph.Value) []int {
	s, _ := v.Type.Shape.Ints()
	return ints(s)
}

func lowerTranspose(l *lowerer, n *graph.Node) error {
	x := l.raw(0)
	perm := ints(n.Ints("perm"))
	if n.Ints("perm") == nil {
		for i := range x.shape {
			perm = append(perm, len(x.shape)-1-i)
		}
	}
	if x.imm != nil {
		return l.alias(0, splat(x.elem, l.shapeOf(n.Out[0]), *x.imm))
	}
	return l.alias(0, x.permuted(perm))
}

// lowerSlice makes a view. Ends do not matter: the shape of the result tells how many elements there are.
func lowerSlice(l *lowerer, n *graph.Node) error {
	x := l.raw(0)
	out := l.shapeOf(n.Out[0])
	if x.imm != nil {
		return l.alias(0, splat(x.elem, out, *x.imm))
	}
	var list [5][]int64
	for _, i := range []int{1, 3, 4} {
		if v := n.Operand(i); v != nil {
			a := l.info.Const(v)
			if a == nil {
				return unsupported("operand %d is known at run time only", i)
			}
			list[i] = a.I64
		}
	}
	axes, steps := list[3], list[4]
	if axes == nil {
		for i := range list[1] {
			axes = append(axes, int64(i))
		}
	}
	for i, a := range axes {
		if a < 0 {
			a += int64(len(x.shape))
		}
		axis, step := int(a), int64(1)
		if steps != nil {
			step = steps[i]
		}
		if out[axis] == x.shape[axis] && step == 1 {
			continue
		}
		x = l.plain(x)
		d := int64(x.shape[axis])
		start := list[1][i]
		if start < 0 {
			start = max(start, math.MinInt64+d) + d
		}
		if step > 0 {
			start = min(max(start, 0), d)
		} else {
			start = min(max(start, 0), d-1)
		}
		x = x.sliced(axis, int(start), int(min(max(step, -d), d)), out[axis])
	}
	return l.alias(0, x)
}

func lowerSplit(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	axis, err := axisOf(n, len(x.shape), 0)
	if err != nil {
		return err
	}
	at := 0
	for i, y := range n.Out {
		if y == nil {
			return unsupported("an omitted result")
		}
		size := l.shapeOf(y)[axis]
		if err := l.alias(i, x.sliced(axis, at, 1, size)); err != nil {
			return err
		}
		at += size
	}
	return nil
}

func lowerDepthToSpace(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	b := int(n.Int("blocksize", 1))
	s := x.shape
	c := s[1] / (b * b)
	shape, perm := []int{s[0], b, b, c, s[2], s[3]}, []int{0, 3, 4, 1, 5, 2}
	if n.Str("mode", "DCR") == "CRD" {
		shape, perm = []int{s[0], c, b, b, s[2], s[3]}, []int{0, 1, 4, 2, 5, 3}
	}
	return l.shuffled(x, shape, perm)
}

func lowerSpaceToDepth(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	b := int(n.Int("blocksize", 1))
	s := x.shape
	return l.shuffled(x, []int{s[0], s[1], s[2] / b, b, s[3] / b, b}, []int{0, 3, 5, 1, 2, 4})
}

// shuffled makes result 0 a view of x cut into more axes, those in another order.
func (l *lowerer) shuffled(x val, shape, perm []int) error {
	x, err := l.reshape(x, shape)
	if err != nil {
		return err
	}
	return l.alias(0, l.plain(x).permuted(perm))
}

func lowerConstant(l *lowerer, n *graph.Node) error {
	a := n.Attr("value")
	if a == nil || a.T == nil {
		return unsupported("a constant without tensor")
	}
	arr, err := op.FromTensor(a.T, false)
	if err != nil {
		return err
	}
	v, ok := l.constant(n.Out[0].Name, arr)
	if !ok {
		return unsupported("an integer of more than 32 bits")
	}
	l.vals[n.Out[0]] = v
	return nil
}

func lowerConstantOfShape(l *lowerer, n *graph.Node) error {
	x := 0.0
	if a := n.Attr("value"); a != nil && a.T != nil {
		arr, err := op.FromTensor(a.T, false)
		if err != nil || arr.Len() != 1 {
			return unsupported("a fill value that is no scalar")
		}
		x = arr.Float(0)
	}
	l.vals[n.Out[0]] = splat(n.Out[0].Type.Elem, l.shapeOf(n.Out[0]), x)
	return nil
}

func lowerShape(l *lowerer, n *graph.Node) error {
	d := l.info.Dims(n.Out[0])
	if d == nil {
		return unsupported("the shape is not known")
	}
	var out []int64
	for _, x := range d {
		i, ok := x.Int()
		if !ok {
			return unsupported("the shape is not known")
		}
		out = append(out, i)
	}
	v, _ := l.constant(n.Out[0].Name, op.Ints(out...))
	if v.imm == nil {
		v, _ = v.reshaped(l.shapeOf(n.Out[0]))
	} else {
		v = splat(v.elem, l.shapeOf(n.Out[0]), *v.imm)
	}
	l.vals[n.Out[0]] = v
	return nil
}

func lowerEyeLike(l *lowerer, n *graph.Node) error {
	y := l.result(0)
	b := l.nest(y.shape)
	row := b.iota(0)
	col := b.iota(1)
	b.store(y, b.cast(b.do(Eq, b.plus(row, float64(n.Int("k", 0))), col), y.dev()))
	b.done()
	return nil
}

// lowerRange counts from a start that may be known at run time only.
func lowerRange(l *lowerer, n *graph.Node) error {
	y := l.result(0)
	b := l.nest(y.shape)
	i := b.cast(b.iota(0), y.dev())
	b.store(y, b.do(Add, b.load(l.arg(0)), b.do(Mul, i, b.load(l.arg(2)))))
	b.done()
	return nil
}

// lowerDropout lowers what drops nothing.
func lowerDropout(l *lowerer, n *graph.Node) error {
	off := func(i int) bool {
		v := n.Operand(i)
		if v == nil {
			return i == 2
		}
		a := l.info.Const(v)
		return a != nil && a.Len() == 1 && a.Float(0) == 0
	}
	if !off(1) && !off(2) {
		return unsupported("random numbers")
	}
	if n.Result(1) != nil {
		l.vals[n.Out[1]] = splat(graph.Bool, l.shapeOf(n.Out[1]), 1)
	}
	return l.alias(0, l.raw(0))
}

// moveOps holds what copies elements to other places.
func moveOps() map[string]lowering {
	return map[string]lowering{
		"Concat": lowerConcat, "Pad": lowerPad, "Tile": lowerTile, "Trilu": lowerTrilu, "Resize": lowerResize,
	}
}

func lowerConcat(l *lowerer, n *graph.Node) error {
	axis, err := axisOf(n, len(l.shapeOf(n.Out[0])), 0)
	if err != nil {
		return err
	}
	if v, ok := l.columns(n, axis); ok {
		l.vals[n.Out[0]] = v
		return nil
	}
	y := l.result(0)
	at := 0
	for _, o := range n.In {
		if prod(l.shapeOf(o)) == 0 {
			continue
		}
		x := l.value(o)
		r, in := l.refine(x.shape, x)
		to, ok := y.sliced(axis, at, 1, x.shape[axis]).cut(r)
		if !ok {
			return unsupported("parts of %v", x.shape)
		}
		b := l.nest(r.dims)
		b.store(to, b.load(in[0]))
		b.done()
		at += x.shape[axis]
	}
	return nil
}

func lowerPad(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	pads := l.info.Const(n.In[1])
	if pads == nil {
		return unsupported("the padding is known at run time only")
	}
	begin, end := make([]int, len(x.shape)), make([]int, len(x.shape))
	axes := []int64{}
	if v := n.Operand(3); v != nil {
		a := l.info.Const(v)
		if a == nil {
			return unsupported("the axes are known at run time only")
		}
		axes = a.I64
	} else {
		for i := range x.shape {
			axes = append(axes, int64(i))
		}
	}
	for i, a := range axes {
		if a < 0 {
			a += int64(len(x.shape))
		}
		begin[a], end[a] = int(pads.I64[i]), int(pads.I64[len(axes)+i])
	}
	switch mode := n.Str("mode", "constant"); mode {
	case "constant":
		return l.padConstant(n, x, begin)
	case "edge", "reflect", "wrap":
		return l.padCopy(x, begin, end, mode)
	default:
		return unsupported("mode %q", mode)
	}
}

func (l *lowerer) padConstant(n *graph.Node, x val, begin []int) error {
	fill, known := 0.0, true
	if v := n.Operand(2); v != nil {
		a := l.info.Const(v)
		if known = a != nil; known {
			fill = a.Float(0)
		}
	}
	y := l.result(0)
	b := l.nest(y.shape)
	var at [][]int
	for i := range x.shape {
		c := along(len(y.shape), i)
		c[len(y.shape)] = -begin[i]
		at = append(at, c)
	}
	v := b.loadAt(x, at, fill)
	if !known {
		ones := l.materialize(splat(graph.Float, x.shape, 1))
		inside := b.loadAt(ones, at, 0)
		v = b.do(Select, b.do(Ne, inside, b.konst(graph.Float, 0)), v, b.load(l.arg(2)))
	}
	b.store(y, v)
	b.done()
	return nil
}

// padCopy pads axis by axis with elements of x itself.
func (l *lowerer) padCopy(x val, begin, end []int, mode string) error {
	for axis := range x.shape {
		d := x.shape[axis]
		lo, hi := begin[axis], end[axis]
		if lo == 0 && hi == 0 {
			continue
		}
		if lo < 0 || hi < 0 || mode == "reflect" && max(lo, hi) >= d || mode == "wrap" && max(lo, hi) > d {
			return unsupported("mode %s with padding %d and %d of %d elements", mode, lo, hi, d)
		}
		shape := slices.Clone(x.shape)
		shape[axis] = d + lo + hi
		y := l.temp("pad", x.elem, shape)
		piece := func(at, count int, from val) {
			if count == 0 {
				return
			}
			b := l.nest(from.shape)
			b.store(y.sliced(axis, at, 1, count), b.load(from))
			b.done()
		}
		piece(lo, d, x)
		switch mode {
		case "edge":
			piece(0, lo, x.sliced(axis, 0, 0, lo))
			piece(lo+d, hi, x.sliced(axis, d-1, 0, hi))
		case "reflect":
			piece(0, lo, x.sliced(axis, lo, -1, lo))
			piece(lo+d, hi, x.sliced(axis, d-2, -1, hi))
		default:
			piece(0, lo, x.sliced(axis, d-lo, 1, lo))
			piece(lo+d, hi, x.sliced(axis, 0, 1, hi))
		}
		x = y
	}
	return l.alias(0, x)
}

// lowerTile writes each repetition of each axis as a dimension of its own.
func lowerTile(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	y := l.result(0)
	r := &refined{}
	for i, d := range x.shape {
		r.dims, r.from = append(r.dims, y.shape[i]/d, d), append(r.from, i, i)
	}
	to, _ := y.cut(r)
	b := l.nest(r.dims)
	var at [][]int
	for i := range x.shape {
		at = append(at, along(len(r.dims), 2*i+1))
	}
	b.store(to, b.loadAt(x, at, 0))
	b.done()
	return nil
}

func lowerTrilu(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	k, known := 0.0, true
	if v := n.Operand(1); v != nil {
		a := l.info.Const(v)
		if known = a != nil; known {
			k = min(max(a.Float(0), -1<<30), 1<<30)
		}
	}
	y := l.result(0)
	b := l.nest(x.shape)
	row := b.plus(b.iota(len(x.shape)-2), k)
	if !known { // a diagonal that int64 has and int32 has not is as far off as any
		row = b.do(Add, row, b.load(l.arg(1)))
	}
	col := b.iota(len(x.shape) - 1)
	keep := b.do(Le, row, col)
	if n.Int("upper", 1) == 0 {
		keep = b.do(Le, col, row)
	}
	v := b.load(x)
	b.store(y, b.do(Select, keep, v, b.like(v, 0)))
	b.done()
	return nil
}
