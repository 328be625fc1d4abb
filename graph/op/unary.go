package op

import (
	"math"

	"gradtool/graph"
)

// Work of functions in elementary operations, for splitting loops and for cost.
const (
	workCheap  = 1  // an instruction or two
	workDivide = 4  // division, square root
	workExp    = 12 // one exponential, logarithm or trigonometric function
	workTwice  = 30 // several of those
)

// unaryDefs defines the functions of one operand that are no activations.
func unaryDefs() []Def {
	apart := FV([]int{2, 3}, -1.7, -0.6, -0.3, 0.4, 0.8, 1.9) // away from 0 and from whole and half numbers
	positive := FR(0.2, 2, 2, 3)
	ints := TV(graph.Int32, []int{3}, -2, 0, 5)
	return []Def{
		numericFunc("Abs", math.Abs, absInt, dimAbs, apart, ints, I(-2, 3).Variable()),
		numericFunc("Neg", func(x float64) float64 { return -x }, func(x int64) int64 { return -x }, graph.Dim.Neg, F(2, 3), F(), ints),
		numericFunc("Sign", sign, signInt, nil, apart, ints),
		floatFunc("Exp", workExp, math.Exp, F(2, 3)),
		floatFunc("Log", workExp, math.Log, positive),
		floatFunc("Sqrt", workDivide, math.Sqrt, positive),
		floatFunc("Reciprocal", workDivide, func(x float64) float64 { return 1 / x }, positive),
		floatFunc("Sin", workExp, math.Sin, F(2, 3)),
		floatFunc("Cos", workExp, math.Cos, F(2, 3)),
		floatFunc("Tan", workExp, math.Tan, FR(-1.2, 1.2, 2, 3)),
		floatFunc("Asin", workExp, math.Asin, FR(-0.9, 0.9, 2, 3)),
		floatFunc("Acos", workExp, math.Acos, FR(-0.9, 0.9, 2, 3)),
		floatFunc("Atan", workExp, math.Atan, F(2, 3)),
		floatFunc("Sinh", workExp, math.Sinh, F(2, 3)),
		floatFunc("Cosh", workExp, math.Cosh, F(2, 3)),
		floatFunc("Tanh", workExp, math.Tanh, F(2, 3)),
		floatFunc("Asinh", workTwice, math.Asinh, F(2, 3)),
		floatFunc("Acosh", workTwice, math.Acosh, FR(1.2, 3, 2, 3)),
		floatFunc("Atanh", workTwice, math.Atanh, FR(-0.9, 0.9, 2, 3)),
		floatFunc("Erf", workExp, math.Erf, F(2, 3)),
		floatFunc("Ceil", workCheap, math.Ceil, apart),
		floatFunc("Floor", workCheap, math.Floor, apart),
		floatFunc("Round", workCheap, math.RoundToEven, apart),
	}
}

// floatFunc is a function of float elements.
func floatFunc(name string, work int, f func(float64) float64, samples ...Arg) Def {
	facts := Elementwise
	if work <= workDivide {
		facts |= CheapRemat
	}
	d := Def{Name: name, Facts: facts, Infer: sameAsFirst, Eval: evalUnary(work, fixed(f, nil)), Cost: perElement(float64(work))}
	for _, a := range samples {
		d.Samples = append(d.Samples, Sample{In: []Arg{a}})
	}
	return d
}

// numericFunc is a cheap function of float and integer elements, which maps symbolic integers by dims.
func numericFunc(name string, f func(float64) float64, ints func(int64) int64, dims func(graph.Dim) graph.Dim, samples ...Arg) Def {
	d := floatFunc(name, workCheap, f, samples...)
	d.Infer, d.Eval = inferUnary(dims), evalUnary(workCheap, fixed(f, ints))
	return d
}

// sign returns -1, 0 or 1, and NaN for NaN.
func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

func signInt(x int64) int64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

func absInt(x int64) int64 { return max(x, -x) }

func dimAbs(d graph.Dim) graph.Dim { return d.Max(d.Neg()) }
