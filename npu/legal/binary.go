package legal

import (
	"math"

	"gradtool/graph"
)

// binaryOps holds the element-wise operators of several operands, which are broadcast.
func binaryOps() map[string]lowering {
	out := map[string]lowering{}
	for name, o := range map[string]Op{
		"Add": Add, "Sub": Sub, "Mul": Mul, "Div": Div, "And": And, "Or": Or, "Xor": Xor, "Equal": Eq, "Less": Lt,
		"LessOrEqual": Le, "BitwiseAnd": And, "BitwiseOr": Or, "BitwiseXor": Xor,
	} {
		out[name] = broadcasting(func(b *nest, _ *graph.Node, x []reg) reg { return b.do(o, x[0], b.cast(x[1], b.elem(x[0]))) })
	}
	for name, f := range map[string]func(b *nest, n *graph.Node, x []reg) reg{
		"Greater":        func(b *nest, _ *graph.Node, x []reg) reg { return b.do(Lt, x[1], x[0]) },
		"GreaterOrEqual": func(b *nest, _ *graph.Node, x []reg) reg { return b.do(Le, x[1], x[0]) },
		"Mod":            mod,
		"BitShift":       bitShift,
		"Where":          func(b *nest, _ *graph.Node, x []reg) reg { return b.do(Select, x[0], x[1], x[2]) },
		"Max":            fold(Max),
		"Min":            fold(Min),
		"Sum":            fold(Add),
		"Mean": func(b *nest, n *graph.Node, x []reg) reg {
			return b.scaled(fold(Add)(b, n, x), 1/float64(len(x)))
		},
		"PRelu": func(b *nest, _ *graph.Node, x []reg) reg {
			return b.do(Select, b.do(Lt, x[0], b.like(x[0], 0)), b.do(Mul, x[0], x[1]), x[0])
		},
		"SwiGLU": func(b *nest, n *graph.Node, x []reg) reg {
			return b.do(Mul, b.do(Mul, x[0], b.do(Sigmoid, b.scaled(x[0], n.Float("alpha", 1)))), x[1])
		},
	} {
		out[name] = broadcasting(f)
	}
	out["Clip"] = lowerClip
	out["Pow"] = lowerPow
	return out
}

// broadcasting lowers an operator whose operands are broadcast to the shape of its one result.
func broadcasting(f func(b *nest, n *graph.Node, x []reg) reg) lowering {
	return func(l *lowerer, n *graph.Node) error {
		var in []val
		for i := range n.In {
			in = append(in, l.raw(i))
		}
		y := l.result(0)
		r, in := l.refine(y.shape, in...)
		to, _ := y.cut(r)
		b := l.nest(r.dims)
		var x []reg
		for _, v := range in {
			x = append(x, b.load(v))
		}
		b.store(to, b.wrap(f(b, n, x), y.elem))
		b.done()
		return nil
	}
}

func fold(o Op) func(b *nest, n *graph.Node, x []reg) reg {
	return func(b *nest, _ *graph.Node, x []reg) reg {
		y := x[0]
		for _, z := range x[1:] {
			y = b.do(o, y, z)
		}
		return y
	}
}

// mod is the remainder; of integers without fmod it has the sign of the divisor.
func mod(b *nest, n *graph.Node, x []reg) reg {
	r := b.do(Rem, x[0], x[1])
	if n.Int("fmod", 0) != 0 || b.elem(r) == graph.Float {
		return r
	}
	zero := b.like(r, 0)
	differ := b.do(Ne, b.do(Lt, r, zero), b.do(Lt, x[1], zero))
	return b.do(Select, b.do(And, differ, b.do(Ne, r, zero)), b.do(Add, r, x[1]), r)
}

// bitShift shifts; by the width of the type or more gives zero.
func bitShift(b *nest, n *graph.Node, x []reg) reg {
	o := Shr
	if n.Str("direction", "") == "LEFT" {
		o = Shl
	} else if n.In[0].Type.Elem.IsSigned() {
		o = Sar
	}
	if o == Sar {
		return b.do(Sar, x[0], b.do(Min, x[1], b.like(x[1], 31)))
	}
	return b.do(Select, b.do(Lt, x[1], b.like(x[1], 32)), b.do(o, x[0], x[1]), b.like(x[0], 0))
}

// lowerClip is min(max(x, low), high) with either bound optional.
func lowerClip(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	y := l.result(0)
	b := l.nest(x.shape)
	v := b.load(x)
	if low, ok := l.in(1); ok {
		v = b.do(Max, v, b.load(low))
	}
	if high, ok := l.in(2); ok {
		v = b.do(Min, v, b.load(high))
	}
	b.store(y, v)
	b.done()
	return nil
}

// maxPower is the greatest power of integers that becomes products.
const maxPower = 31

// lowerPow lowers powers: of floats, and of integers if the exponent is a known whole number.
func lowerPow(l *lowerer, n *graph.Node) error {
	x, e := l.raw(0), l.raw(1)
	if x.dev() == graph.Float {
		return broadcasting(func(b *nest, _ *graph.Node, x []reg) reg { return b.do(Pow, x[0], b.cast(x[1], graph.Float)) })(l, n)
	}
	if e.imm == nil || *e.imm != math.Trunc(*e.imm) || *e.imm < 0 || *e.imm > maxPower {
		return unsupported("integers to a power that is no known whole number up to %d", maxPower)
	}
	return broadcasting(func(b *nest, _ *graph.Node, x []reg) reg {
		y := b.like(x[0], 1)
		for range int(*e.imm) {
			y = b.do(Mul, y, x[0])
		}
		return y
	})(l, n)
}
