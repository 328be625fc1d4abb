package fuse

import (
	"errors"
	"math"

	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// spelling is a function that exporters write in several ways, or as an operator of its own.
type spelling struct {
	name string
	doc  string
	op   string // the operator that is the function, "" without one
	find func() *rewrite.Finder
}

// activations are functions of each element, the more particular first: a GELU holds what a product with a sigmoid is too.
func activations() []spelling {
	return []spelling{
		{"gelu", "x (1 + erf(x / sqrt 2)) / 2", "Gelu", func() *rewrite.Finder { return rewrite.Find(geluWhen, geluErf()...) }},
		{"gelu", "x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2", "", func() *rewrite.Finder { return rewrite.Find(tanhWhen, geluTanh()...) }},
		{"quick-gelu", "x sigmoid(1.702 x)", "", func() *rewrite.Finder { return rewrite.Find(nil, quickGelu()) }},
		{"silu", "x sigmoid(x)", "Swish", func() *rewrite.Finder { return rewrite.Find(nil, silu()) }},
		{"mish", "x tanh(log(1 + e^x))", "Mish", func() *rewrite.Finder { return rewrite.Find(nil, mish()...) }},
		{"hard-swish", "x hardsigmoid(x)", "HardSwish", func() *rewrite.Finder { return rewrite.Find(nil, hardSwish()...) }},
	}
}

// Patterns. x is the argument; constants are captured for the conditions.

func times(a, b *rewrite.Pattern) *rewrite.Pattern { return rewrite.P("Mul", a, b).Commute() }
func plus(a, b *rewrite.Pattern) *rewrite.Pattern  { return rewrite.P("Add", a, b).Commute() }

// geluErf returns the orders in which exporters multiply x, 1 + erf and 1/2.
func geluErf() []*rewrite.Pattern {
	x := func() *rewrite.Pattern { return rewrite.Any("x") }
	half := func() *rewrite.Pattern { return rewrite.Const("half") }
	var out []*rewrite.Pattern
	for _, divided := range []bool{true, false} {
		erf := func() *rewrite.Pattern {
			arg := times(x(), rewrite.Const("root"))
			if divided {
				arg = rewrite.P("Div", x(), rewrite.Const("root"))
			}
			return plus(rewrite.P("Erf", arg), rewrite.Const("one"))
		}
		out = append(out, times(times(x(), erf()), half()), times(x(), times(erf(), half())), times(times(x(), half()), erf()))
	}
	return out
}

// geluWhen checks the constants of geluErf.
func geluWhen(m *rewrite.Match) error {
	root := math.Sqrt2
	if inner := erfArg(m); inner == "Mul" {
		root = 1 / math.Sqrt2
	}
	return constants(m, map[string]float64{"half": 0.5, "one": 1, "root": root})
}

// erfArg returns the operator that scales the argument of erf.
func erfArg(m *rewrite.Match) string {
	for _, n := range m.Nodes() {
		if n.Is("Erf") {
			return n.In[0].Def.Op
		}
	}
	return ""
}

// geluTanh returns the orders of the approximation by tanh.
func geluTanh() []*rewrite.Pattern {
	x := func() *rewrite.Pattern { return rewrite.Any("x") }
	var out []*rewrite.Pattern
	for _, cube := range []func() *rewrite.Pattern{
		func() *rewrite.Pattern { return rewrite.P("Pow", x(), rewrite.Const("three")) },
		func() *rewrite.Pattern { return times(times(x(), x()), x()) },
	} {
		tanh := func() *rewrite.Pattern {
			return plus(rewrite.P("Tanh", times(plus(x(), times(cube(), rewrite.Const("cubic"))), rewrite.Const("scale"))), rewrite.Const("one"))
		}
		out = append(out, times(times(x(), rewrite.Const("half")), tanh()), times(times(x(), tanh()), rewrite.Const("half")), times(x(), times(tanh(), rewrite.Const("half"))))
	}
	return out
}

func tanhWhen(m *rewrite.Match) error {
	want := map[string]float64{"half": 0.5, "one": 1, "cubic": 0.044715, "scale": math.Sqrt(2 / math.Pi)}
	if m.V("three") != nil {
		want["three"] = 3
	}
	return constants(m, want)
}

func quickGelu() *rewrite.Pattern {
	return times(rewrite.Any("x"), rewrite.P("Sigmoid", times(rewrite.Any("x"), rewrite.Const("c"))))
}

func silu() *rewrite.Pattern {
	return times(rewrite.Any("x"), rewrite.P("Sigmoid", rewrite.Any("x")))
}

func mish() []*rewrite.Pattern {
	x := func() *rewrite.Pattern { return rewrite.Any("x") }
	return []*rewrite.Pattern{
		times(x(), rewrite.P("Tanh", rewrite.P("Softplus", x()))),
		times(x(), rewrite.P("Tanh", rewrite.P("Log", plus(rewrite.P("Exp", x()), rewrite.Const("one"))))),
	}
}

func hardSwish() []*rewrite.Pattern {
	x := func() *rewrite.Pattern { return rewrite.Any("x") }
	clip := func() *rewrite.Pattern { return rewrite.P("Clip", plus(x(), rewrite.Const("three"))).More() }
	return []*rewrite.Pattern{
		times(x(), rewrite.P("HardSigmoid", x())),
		times(x(), rewrite.P("Div", clip(), rewrite.Const("six"))),
		rewrite.P("Div", times(x(), clip()), rewrite.Const("six")),
	}
}

// normalizations are functions of the rows of a tensor.
func normalizations() []spelling {
	return []spelling{
		{"layer-norm", "(x - mean x) / sqrt(var x + epsilon)", "LayerNormalization", func() *rewrite.Finder { return rewrite.Find(nil, layerNorm()...) }},
		{"rms-norm", "x / sqrt(mean x^2 + epsilon)", "RMSNormalization", func() *rewrite.Finder { return rewrite.Find(nil, rmsNorm()...) }},
		{"softmax", "e^(x - max x) / sum e^(x - max x)", "Softmax", func() *rewrite.Finder { return rewrite.Find(nil, softmax()) }},
		{"group-norm", "", "GroupNormalization", nil},
		{"instance-norm", "", "InstanceNormalization", nil},
		{"log-softmax", "", "LogSoftmax", nil},
	}
}

// mean is ReduceMean with axes as an attribute or operand, which the conditions look at.
func mean(x *rewrite.Pattern) *rewrite.Pattern { return rewrite.P("ReduceMean", x).More() }

// squares returns the ways to write x^2.
func squares(x func() *rewrite.Pattern) []func() *rewrite.Pattern {
	return []func() *rewrite.Pattern{
		func() *rewrite.Pattern { return rewrite.P("Pow", x(), rewrite.Const("two")) },
		func() *rewrite.Pattern { return rewrite.P("Mul", x(), x()) },
	}
}

// scaled returns the ways to divide x by the square root of v + epsilon.
func scaled(x func() *rewrite.Pattern, v func() *rewrite.Pattern) []*rewrite.Pattern {
	root := func() *rewrite.Pattern { return rewrite.P("Sqrt", plus(v(), rewrite.Const("epsilon"))) }
	return []*rewrite.Pattern{
		rewrite.P("Div", x(), root()),
		times(x(), rewrite.P("Reciprocal", root())),
		times(x(), rewrite.P("Div", rewrite.Const("one"), root())),
		times(x(), rewrite.P("Pow", plus(v(), rewrite.Const("epsilon")), rewrite.Const("minus_half"))),
	}
}

func layerNorm() []*rewrite.Pattern {
	d := func() *rewrite.Pattern { return rewrite.P("Sub", rewrite.Any("x"), mean(rewrite.Any("x")).As("mean")) }
	var out []*rewrite.Pattern
	for _, sq := range squares(d) {
		out = append(out, scaled(d, func() *rewrite.Pattern { return mean(sq()).As("var") })...)
	}
	return out
}

func rmsNorm() []*rewrite.Pattern {
	x := func() *rewrite.Pattern { return rewrite.Any("x") }
	var out []*rewrite.Pattern
	for _, sq := range squares(x) {
		out = append(out, scaled(x, func() *rewrite.Pattern { return mean(sq()).As("var") })...)
	}
	return out
}

func softmax() *rewrite.Pattern {
	e := func() *rewrite.Pattern {
		return rewrite.P("Exp", rewrite.P("Sub", rewrite.Any("x"), rewrite.P("ReduceMax", rewrite.Any("x")).More().As("max"))).As("exp")
	}
	return rewrite.P("Div", e(), rewrite.P("ReduceSum", e()).More().As("sum"))
}

var errConstant = errors.New("a constant has another value")

// constants checks that captured scalars have the given values, up to the rounding of their type.
func constants(m *rewrite.Match, want map[string]float64) error {
	for name, x := range want {
		if !near(m.Const(name), x) {
			return errConstant
		}
	}
	return nil
}

// near reports whether a is one element of the value x as its type can hold it.
func near(a *op.Array, x float64) bool {
	if a == nil || a.Len() != 1 || a.C128 != nil || a.Str != nil {
		return false
	}
	tolerance := 1e-6
	switch {
	case a.Elem.Bits() == 16:
		tolerance = 1e-2
	case a.F64 != nil:
		tolerance = 1e-6 // exporters write float32 constants into double models
	}
	return math.Abs(a.Float(0)-x) <= tolerance*math.Abs(x)
}
