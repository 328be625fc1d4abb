package legal

import (
	"math"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// poolOps holds what combines the elements of windows, or of all positions.
func poolOps() map[string]lowering {
	global := func(f func(b *nest, x reg, over []int, n int) reg) lowering {
		return func(l *lowerer, n *graph.Node) error {
			x := l.arg(0)
			y := l.result(0)
			b := l.nest(x.shape)
			over, count := from(x.shape, 2)
			b.storeStill(y, b.wrap(f(b, b.load(x), over, count), y.elem))
			b.done()
			return nil
		}
	}
	return map[string]lowering{
		"MaxPool":     lowerMaxPool,
		"AveragePool": lowerAveragePool,
		"LpPool":      lowerLpPool,
		"GlobalAveragePool": global(func(b *nest, x reg, over []int, n int) reg {
			return b.scaled(b.reduceOver(Sum, x, over), 1/float64(n))
		}),
		"GlobalMaxPool": global(func(b *nest, x reg, over []int, _ int) reg { return b.reduceOver(ReduceMax, x, over) }),
	}
}

// windows is a nest over images, channels, output positions and taps.
type windows struct {
	*nest
	g          *op.Geometry
	x          val
	out, tap   []int // dimensions
	read, keep [][]int
}

func (l *lowerer) windows(n *graph.Node) (*windows, error) {
	x := l.arg(0)
	if len(x.shape) < 3 {
		return nil, unsupported("an operand of rank %d", len(x.shape))
	}
	g, err := op.WindowGeometry(n, x.shape[2:], ints(n.Ints("kernel_shape")))
	if err != nil {
		return nil, err
	}
	s := &space{}
	img, ch := s.add(x.shape[0], Batch), s.add(x.shape[1], Batch)
	w := &windows{g: g, x: x, out: s.list(g.Out, Batch)}
	w.tap = s.list(g.Kernel, K)
	w.nest = l.nest(s.dims)
	w.read, w.keep = [][]int{s.at(0, img, 1), s.at(0, ch, 1)}, [][]int{s.at(0, img, 1), s.at(0, ch, 1)}
	for i := range g.Out {
		w.read = append(w.read, s.at(-g.Begin[i], w.out[i], g.Stride[i], w.tap[i], g.Dilation[i]))
		w.keep = append(w.keep, s.at(0, w.out[i], 1))
	}
	return w, nil
}

func lowerMaxPool(l *lowerer, n *graph.Node) error {
	w, err := l.windows(n)
	if err != nil {
		return err
	}
	low := math.Inf(-1)
	if w.x.dev() == graph.Int32 {
		low = math.MinInt32
	}
	v := w.loadAt(w.x, w.read, low)
	best := w.reduceOver(ReduceMax, v, w.tap)
	w.storeAt(l.result(0), w.keep, best)
	if n.Result(1) == nil {
		w.done()
		return nil
	}
	// The index of a position is a sum over axes; of those that hold the maximum the first counts.
	step := rowMajor(w.x.shape)
	order := step // by which the first is told, and what is stored
	if n.Int("storage_order", 0) != 0 {
		order = slices.Clone(step)
		at := 1
		for i := 2; i < len(order); i++ {
			order[i] = at
			at *= w.x.shape[i]
		}
	}
	place := w.placeOf(step)
	first := w.reduceOver(ReduceMin, w.do(Select, w.do(Eq, v, best), place, w.like(place, math.MaxInt32)), w.tap)
	if n.Int("storage_order", 0) != 0 {
		chosen := w.do(Eq, place, first)
		first = w.reduceOver(ReduceMax, w.do(Select, chosen, w.placeOf(order), w.like(place, -1)), w.tap)
	}
	w.storeAt(l.result(1), w.keep, first)
	w.done()
	return nil
}

// placeOf returns the position that a window and tap stand for, as a sum over axes of coordinate times step.
func (w *windows) placeOf(step []int) reg {
	total := reg(-1)
	off := 0
	add := func(dim, factor int) {
		if w.k.Dims[dim] == 1 {
			return
		}
		r := w.scaled(w.iota(dim), float64(factor))
		if total >= 0 {
			r = w.do(Add, total, r)
		}
		total = r
	}
	add(0, step[0])
	add(1, step[1])
	for i := range w.out {
		add(w.out[i], w.g.Stride[i]*step[2+i])
		add(w.tap[i], w.g.Dilation[i]*step[2+i])
		off -= w.g.Begin[i] * step[2+i]
	}
	if total < 0 {
		return w.konst(graph.Int32, float64(off))
	}
	return w.plus(total, float64(off))
}

// lowerAveragePool divides by the number of taps that count.
func lowerAveragePool(l *lowerer, n *graph.Node) error {
	w, err := l.windows(n)
	if err != nil {
		return err
	}
	sum := w.reduceOver(Sum, w.loadAt(w.x, w.read, 0), w.tap)
	y := l.result(0)
	padded := n.Int("count_include_pad", 0) != 0
	var inverse reg = -1
	constant := 1.0
	for i := range w.out {
		counts := make([]float64, w.g.Out[i])
		for o := range counts {
			c := 0
			for t := range w.g.Kernel[i] {
				p := o*w.g.Stride[i] + t*w.g.Dilation[i] - w.g.Begin[i]
				if padded && p < w.g.In[i]+w.g.End[i] || p >= 0 && p < w.g.In[i] {
					c++
				}
			}
			counts[o] = 1 / float64(max(c, 1))
		}
		if slices.Min(counts) == slices.Max(counts) {
			constant *= counts[0]
			continue
		}
		v := l.floats("counts", counts)
		r := w.loadAt(v, [][]int{along(len(w.k.Dims), w.out[i])}, 0)
		if inverse >= 0 {
			r = w.do(Mul, inverse, r)
		}
		inverse = r
	}
	sum = w.scaled(sum, constant)
	if inverse >= 0 {
		sum = w.do(Mul, sum, inverse)
	}
	w.storeAt(y, w.keep, w.wrap(sum, y.elem))
	w.done()
	return nil
}

// floats makes a constant vector.
func (l *lowerer) floats(name string, x []float64) val {
	f := make([]float32, len(x))
	for i := range x {
		f[i] = float32(x[i])
	}
	return l.tensor(name, graph.Floats([]int64{int64(len(f))}, f...))
}

func lowerLpPool(l *lowerer, n *graph.Node) error {
	w, err := l.windows(n)
	if err != nil {
		return err
	}
	p := float64(n.Int("p", 2))
	v := w.do(Abs, w.loadAt(w.x, w.read, 0))
	sum := w.reduceOver(Sum, w.do(Pow, v, w.like(v, p)), w.tap)
	y := l.result(0)
	w.storeAt(y, w.keep, w.wrap(w.do(Pow, sum, w.like(sum, 1/p)), y.elem))
	w.done()
	return nil
}
