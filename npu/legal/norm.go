package legal

import (
	"slices"

	"gradtool/graph"
)

// normOps holds the normalizations.
func normOps() map[string]lowering {
	return map[string]lowering{
		"BatchNormalization":        lowerBatchNorm,
		"LayerNormalization":        lowerLayerNorm,
		"RMSNormalization":          lowerRMSNorm,
		"InstanceNormalization":     lowerInstanceNorm,
		"GroupNormalization":        lowerGroupNorm,
		"MeanVarianceNormalization": lowerMeanVariance,
		"LpNormalization": alongAxisOf(func(b *nest, n *graph.Node, x reg, over []int) reg {
			var norm reg
			if n.Int("p", 2) == 1 {
				norm = b.reduceOver(Sum, b.do(Abs, x), over)
			} else {
				norm = b.do(Sqrt, b.reduceOver(Sum, b.do(Mul, x, x), over))
			}
			zero := b.like(x, 0)
			return b.do(Select, b.do(Eq, norm, zero), zero, b.do(Div, x, norm))
		}),
		"LRN": lowerLRN,
	}
}

func alongAxisOf(f func(b *nest, n *graph.Node, x reg, over []int) reg) lowering {
	return func(l *lowerer, n *graph.Node) error {
		return alongAxis(func(b *nest, x reg, over []int) reg { return f(b, n, x, over) })(l, n)
	}
}

// moments returns mean and variance over dimensions that hold n elements.
func (b *nest) moments(x reg, over []int, n int) (mean, centred, variance reg) {
	mean = b.scaled(b.reduceOver(Sum, x, over), 1/float64(n))
	centred = b.do(Sub, x, mean)
	variance = b.scaled(b.reduceOver(Sum, b.do(Mul, centred, centred), over), 1/float64(n))
	return mean, centred, variance
}

// channel reads v, a value per channel, along axis 1.
func (b *nest) channel(v val) reg {
	n := len(b.k.Dims)
	return b.loadAt(v, [][]int{along(n, min(1, n-1))}, 0)
}

func lowerBatchNorm(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	if len(x.shape) < 2 {
		return unsupported("an operand of rank %d", len(x.shape))
	}
	scale, bias, mean, variance := l.arg(1), l.arg(2), l.arg(3), l.arg(4)
	eps := n.Float("epsilon", 1e-5)
	y := l.result(0)
	b := l.nest(x.shape)
	v := b.load(x)
	if n.Int("training_mode", 0) == 0 {
		factor := b.do(Mul, b.channel(scale), b.do(Rsqrt, b.plus(b.channel(variance), eps)))
		// The mean is taken off first: a shift of bias - mean*factor would cancel where means are large.
		b.store(y, b.wrap(b.do(Add, b.do(Mul, b.do(Sub, v, b.channel(mean)), factor), b.channel(bias)), y.elem))
		b.done()
		return nil
	}
	var over []int
	count := 1
	for i, d := range x.shape {
		if i != 1 {
			over = append(over, i)
			count *= d
		}
	}
	m, centred, vr := b.moments(v, over, count)
	factor := b.do(Mul, b.channel(scale), b.do(Rsqrt, b.plus(vr, eps)))
	b.store(y, b.wrap(b.do(Add, b.do(Mul, centred, factor), b.channel(bias)), y.elem))
	momentum := n.Float("momentum", 0.9)
	for i, stat := range []struct {
		old val
		now reg
	}{{mean, m}, {variance, vr}} {
		if n.Result(1+i) == nil {
			continue
		}
		running := b.do(Add, b.scaled(b.channel(stat.old), momentum), b.scaled(stat.now, 1-momentum))
		b.storeAt(l.result(1+i), [][]int{along(len(x.shape), 1)}, running)
	}
	b.done()
	return nil
}

// from returns the dimensions from axis on, and how many elements they hold.
func from(shape []int, axis int) (over []int, n int) {
	n = 1
	for i := axis; i < len(shape); i++ {
		over = append(over, i)
		n *= shape[i]
	}
	return over, n
}

func lowerLayerNorm(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	axis, err := axisOf(n, len(x.shape), -1)
	if err != nil {
		return err
	}
	y := l.result(0)
	b := l.nest(x.shape)
	over, count := from(x.shape, axis)
	mean, centred, variance := b.moments(b.load(x), over, count)
	inv := b.do(Rsqrt, b.plus(variance, n.Float("epsilon", 1e-5)))
	v := b.do(Mul, b.do(Mul, centred, inv), b.load(l.arg(1)))
	if bias, ok := l.in(2); ok {
		v = b.do(Add, v, b.load(bias))
	}
	b.store(y, b.wrap(v, y.elem))
	for i, r := range []reg{mean, inv} {
		if n.Result(1+i) != nil {
			b.storeStill(l.result(1+i), r)
		}
	}
	b.done()
	return nil
}

// storeStill writes r to v, which has 1 where r does not vary.
func (b *nest) storeStill(v val, r reg) {
	n := len(b.k.Dims)
	c := make([][]int, n)
	for i := range c {
		c[i] = along(n, i)
		if v.shape[i] == 1 {
			c[i] = still(n)
		}
	}
	b.storeAt(v, c, r)
}

func lowerRMSNorm(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	axis, err := axisOf(n, len(x.shape), -1)
	if err != nil {
		return err
	}
	y := l.result(0)
	b := l.nest(x.shape)
	over, count := from(x.shape, axis)
	v := b.load(x)
	mean := b.scaled(b.reduceOver(Sum, b.do(Mul, v, v), over), 1/float64(count))
	inv := b.do(Rsqrt, b.plus(mean, n.Float("epsilon", 1e-5)))
	b.store(y, b.wrap(b.do(Mul, b.do(Mul, v, inv), b.load(l.arg(1))), y.elem))
	b.done()
	return nil
}

func lowerInstanceNorm(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	y := l.result(0)
	b := l.nest(x.shape)
	over, count := from(x.shape, 2)
	_, centred, variance := b.moments(b.load(x), over, count)
	factor := b.do(Mul, b.channel(l.arg(1)), b.do(Rsqrt, b.plus(variance, n.Float("epsilon", 1e-5))))
	b.store(y, b.wrap(b.do(Add, b.do(Mul, centred, factor), b.channel(l.arg(2))), y.elem))
	b.done()
	return nil
}

// lowerGroupNorm normalizes over the channels of a group and all behind them.
func lowerGroupNorm(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	groups := int(n.Int("num_groups", 1))
	if groups < 1 || len(x.shape) < 2 || x.shape[1]%groups != 0 {
		return unsupported("%d groups of %v", groups, x.shape)
	}
	shape := slices.Concat([]int{x.shape[0], groups, x.shape[1] / groups}, x.shape[2:])
	x, err := l.reshape(x, shape)
	if err != nil {
		return err
	}
	x = l.plain(x)
	out := l.result(0)
	y, _ := out.reshaped(shape)
	b := l.nest(shape)
	over, count := from(shape, 2)
	_, centred, variance := b.moments(b.load(x), over, count)
	perChannel := func(v val) reg {
		w, _ := v.reshaped([]int{groups, shape[2]})
		return b.loadAt(w, [][]int{along(len(shape), 1), along(len(shape), 2)}, 0)
	}
	factor := b.do(Mul, perChannel(l.arg(1)), b.do(Rsqrt, b.plus(variance, n.Float("epsilon", 1e-5))))
	b.store(y, b.wrap(b.do(Add, b.do(Mul, centred, factor), perChannel(l.arg(2))), y.elem))
	b.done()
	return nil
}

func lowerMeanVariance(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	axes := n.Ints("axes")
	if axes == nil {
		axes = []int64{0, 2, 3}
	}
	var over []int
	count := 1
	for _, a := range axes {
		if a < 0 {
			a += int64(len(x.shape))
		}
		if a < 0 || int(a) >= len(x.shape) {
			return unsupported("axis %d of a tensor of rank %d", a, len(x.shape))
		}
		over = append(over, int(a))
		count *= x.shape[a]
	}
	y := l.result(0)
	b := l.nest(x.shape)
	_, centred, variance := b.moments(b.load(x), over, count)
	b.store(y, b.wrap(b.do(Div, centred, b.plus(b.do(Sqrt, variance), 1e-9)), y.elem))
	b.done()
	return nil
}

// lowerLRN divides by a power of the sum of squares over neighbouring channels.
func lowerLRN(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	size := int(n.Int("size", 1))
	dims := append(slices.Clone(x.shape), size)
	last := len(x.shape)
	y := l.result(0)
	b := l.nest(dims)
	read, write := make([][]int, last), make([][]int, last)
	for i := range last {
		read[i], write[i] = along(len(dims), i), along(len(dims), i)
	}
	v := b.loadAt(x, write, 0)
	read[1] = along(len(dims), 1)
	read[1][last], read[1][len(dims)] = 1, -((size - 1) / 2)
	near := b.loadAt(x, read, 0)
	sum := b.reduceOver(Sum, b.do(Mul, near, near), []int{last})
	base := b.plus(b.scaled(sum, n.Float("alpha", 1e-4)/float64(size)), n.Float("bias", 1))
	b.storeAt(y, write, b.wrap(b.do(Mul, v, b.do(Pow, base, b.like(base, -n.Float("beta", 0.75)))), y.elem))
	b.done()
	return nil
}
