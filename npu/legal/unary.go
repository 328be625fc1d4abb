package legal

import (
	"math"

	"gradtool/graph"
)

// formula computes an element from an operand.
type formula func(b *nest, n *graph.Node, x reg) reg

// unaryOps holds the operators that compute each element of their result from one of their operand.
func unaryOps() map[string]lowering {
	out := map[string]lowering{}
	for name, o := range map[string]Op{
		"Neg": Neg, "Abs": Abs, "Sign": Sign, "Floor": Floor, "Ceil": Ceil, "Round": Round, "Sqrt": Sqrt, "Reciprocal": Rcp, "Exp": Exp,
		"Log": Log, "Sin": Sin, "Cos": Cos, "Tan": Tan, "Asin": Asin, "Acos": Acos, "Atan": Atan, "Sinh": Sinh, "Cosh": Cosh, "Tanh": Tanh,
		"Asinh": Asinh, "Acosh": Acosh, "Atanh": Atanh, "Sigmoid": Sigmoid, "Erf": Erf, "Not": Not,
	} {
		out[name] = elementwise(func(b *nest, _ *graph.Node, x reg) reg { return b.do(o, x) })
	}
	for name, f := range map[string]formula{
		"Relu": func(b *nest, _ *graph.Node, x reg) reg { return b.do(Max, x, b.like(x, 0)) },
		"LeakyRelu": func(b *nest, n *graph.Node, x reg) reg {
			return b.do(Select, b.do(Lt, x, b.like(x, 0)), b.scaled(x, n.Float("alpha", 0.01)), x)
		},
		"ThresholdedRelu": func(b *nest, n *graph.Node, x reg) reg {
			return b.do(Select, b.do(Le, x, b.like(x, n.Float("alpha", 1))), b.like(x, 0), x)
		},
		"Elu": func(b *nest, n *graph.Node, x reg) reg {
			return b.do(Select, b.do(Lt, x, b.like(x, 0)), b.scaled(b.do(Expm1, x), n.Float("alpha", 1)), x)
		},
		"Selu": selu,
		"Celu": func(b *nest, n *graph.Node, x reg) reg {
			alpha := n.Float("alpha", 1)
			low := b.do(Min, b.like(x, 0), b.scaled(b.do(Expm1, b.scaled(x, 1/alpha)), alpha))
			return b.do(Select, b.do(Lt, x, b.like(x, 0)), low, x)
		},
		"Gelu":     gelu,
		"Softplus": softplus,
		"Softsign": func(b *nest, _ *graph.Node, x reg) reg { return b.do(Div, x, b.plus(b.do(Abs, x), 1)) },
		"Mish":     func(b *nest, n *graph.Node, x reg) reg { return b.do(Mul, x, b.do(Tanh, softplus(b, n, x))) },
		"Swish": func(b *nest, n *graph.Node, x reg) reg {
			return b.do(Mul, x, b.do(Sigmoid, b.scaled(x, n.Float("alpha", 1))))
		},
		"HardSigmoid": func(b *nest, n *graph.Node, x reg) reg {
			return hardSigmoid(b, x, n.Float("alpha", 0.2), n.Float("beta", 0.5))
		},
		"HardSwish":  func(b *nest, _ *graph.Node, x reg) reg { return b.do(Mul, x, hardSigmoid(b, x, 1.0/6, 0.5)) },
		"Shrink":     shrink,
		"IsNaN":      func(b *nest, _ *graph.Node, x reg) reg { return b.do(Ne, x, x) },
		"IsInf":      isInf,
		"BitwiseNot": func(b *nest, _ *graph.Node, x reg) reg { return b.do(Xor, x, b.like(x, -1)) },
	} {
		out[name] = elementwise(f)
	}
	out["Cast"] = lowerCast
	out["CastLike"] = lowerCast
	return out
}

// elementwise lowers an operator with one operand and one result.
func elementwise(f formula) lowering {
	return func(l *lowerer, n *graph.Node) error {
		x := l.raw(0)
		r, in := l.refine(x.shape, x)
		y := l.result(0)
		to, _ := y.cut(r)
		b := l.nest(r.dims)
		v := f(b, n, b.load(in[0]))
		b.store(to, b.wrap(v, y.elem))
		b.done()
		return nil
	}
}

func selu(b *nest, n *graph.Node, x reg) reg {
	alpha, gamma := n.Float("alpha", 1.67326319217681884765625), n.Float("gamma", 1.05070102214813232421875)
	low := b.scaled(b.do(Expm1, x), alpha*gamma)
	return b.do(Select, b.do(Le, x, b.like(x, 0)), low, b.scaled(x, gamma))
}

func gelu(b *nest, n *graph.Node, x reg) reg {
	var gate reg
	if n.Str("approximate", "none") == "tanh" {
		cube := b.do(Mul, b.do(Mul, x, x), x)
		gate = b.do(Tanh, b.scaled(b.do(Add, x, b.scaled(cube, 0.044715)), math.Sqrt(2/math.Pi)))
	} else {
		gate = b.do(Erf, b.scaled(x, 1/math.Sqrt2))
	}
	return b.do(Mul, b.scaled(x, 0.5), b.plus(gate, 1))
}

// softplus is max(x, 0) + log1p(exp(-|x|)).
func softplus(b *nest, _ *graph.Node, x reg) reg {
	return b.do(Add, b.do(Max, x, b.like(x, 0)), b.do(Log1p, b.do(Exp, b.do(Neg, b.do(Abs, x)))))
}

func hardSigmoid(b *nest, x reg, alpha, beta float64) reg {
	return b.do(Min, b.do(Max, b.plus(b.scaled(x, alpha), beta), b.like(x, 0)), b.like(x, 1))
}

func shrink(b *nest, n *graph.Node, x reg) reg {
	bias, lambd := n.Float("bias", 0), n.Float("lambd", 0.5)
	elem := b.elem(x)
	x = b.cast(x, graph.Float)
	high := b.do(Select, b.do(Lt, b.like(x, lambd), x), b.plus(x, -bias), b.like(x, 0))
	y := b.do(Select, b.do(Lt, x, b.like(x, -lambd)), b.plus(x, bias), high)
	return b.cast(y, elem)
}

func isInf(b *nest, n *graph.Node, x reg) reg {
	y := b.konst(graph.Int32, 0)
	if n.Int("detect_positive", 1) != 0 {
		y = b.do(Eq, x, b.like(x, math.Inf(1)))
	}
	if n.Int("detect_negative", 1) != 0 {
		y = b.do(Or, y, b.do(Eq, x, b.like(x, math.Inf(-1))))
	}
	return y
}

// lowerCast converts between element types: a view where the types of the program agree and no value is cut off.
func lowerCast(l *lowerer, n *graph.Node) error {
	x, to := l.raw(0), n.Out[0].Type.Elem
	if x.elem == to || x.dev() == device(to) && widens(x.elem, to) {
		return l.alias(0, x)
	}
	return elementwise(func(b *nest, _ *graph.Node, r reg) reg {
		if to == graph.Bool {
			return b.truth(r)
		}
		return b.cast(r, device(to))
	})(l, n)
}

// widens reports whether every value of a is one of b; both are floats or both are integers. The wide integers count as
// equal: values outside of 32 bits do not occur in programs.
func widens(a, b graph.DataType) bool {
	if a.IsFloat() {
		return b == graph.Float
	}
	if a == graph.Bool || b == graph.Int64 || b == graph.Uint64 {
		return b != graph.Bool
	}
	return b != graph.Bool && b.Bits() >= 32 && a.Bits() <= b.Bits()
}

// wrap brings a result into the range of a narrow element type.
func (b *nest) wrap(r reg, elem graph.DataType) reg {
	if x, ok := b.constant(r); ok && (elem == graph.Float16 || elem == graph.BFloat16) {
		o := Half
		if elem == graph.BFloat16 {
			o = BFloat
		}
		return b.konst(graph.Float, unary[o](x))
	}
	switch elem {
	case graph.Float16:
		return b.do(Half, r)
	case graph.BFloat16:
		return b.do(BFloat, r)
	case graph.Uint8, graph.Uint16:
		return b.do(And, r, b.like(r, float64(int64(1)<<elem.Bits()-1)))
	case graph.Int8, graph.Int16:
		by := b.like(r, float64(32-elem.Bits()))
		return b.do(Sar, b.do(Shl, r, by), by)
	}
	return r
}
