package legal

import "gradtool/graph"

// softmaxOps holds what divides exponentials by their sum along an axis.
func softmaxOps() map[string]lowering {
	return map[string]lowering{
		"Softmax": alongAxis(func(b *nest, x reg, over []int) reg {
			e := b.do(Exp, b.do(Sub, x, b.reduceOver(ReduceMax, x, over)))
			return b.do(Mul, e, b.do(Rcp, b.reduceOver(Sum, e, over)))
		}),
		"LogSoftmax": alongAxis(func(b *nest, x reg, over []int) reg {
			z := b.do(Sub, x, b.reduceOver(ReduceMax, x, over))
			return b.do(Sub, z, b.do(Log, b.reduceOver(Sum, b.do(Exp, z), over)))
		}),
		"Hardmax": func(l *lowerer, n *graph.Node) error {
			x := l.arg(0)
			axis, err := axisOf(n, len(x.shape), -1)
			if err != nil {
				return err
			}
			return alongAxis(func(b *nest, v reg, over []int) reg {
				place := b.iota(axis)
				best := b.reduceOver(ReduceMax, v, over)
				first := b.reduceOver(ReduceMin, b.do(Select, b.do(Eq, v, best), place, b.like(place, 1<<30)), over)
				return b.cast(b.do(Eq, place, first), graph.Float)
			})(l, n)
		},
	}
}

// alongAxis lowers an operator that works along attribute axis and keeps the shape.
func alongAxis(f func(b *nest, x reg, over []int) reg) lowering {
	return func(l *lowerer, n *graph.Node) error {
		x := l.arg(0)
		axis, err := axisOf(n, len(x.shape), -1)
		if err != nil {
			return err
		}
		y := l.result(0)
		b := l.nest(x.shape)
		b.store(y, b.wrap(f(b, b.load(x), []int{axis}), y.elem))
		b.done()
		return nil
	}
}
