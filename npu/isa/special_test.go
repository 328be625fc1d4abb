package isa

import (
	"math"
	"testing"
)

// TestSpecialFunctions holds the functions against package math: the float32 results differ by one unit in the last place at
// most, and nearly always not at all.
func TestSpecialFunctions(t *testing.T) {
	for _, c := range []struct {
		op     Op
		ref    func(float64) float64
		lo, hi float64
	}{
		{OpExp, math.Exp, -110, 90},
		{OpExp2, math.Exp2, -155, 129},
		{OpExpm1, math.Expm1, -20, 90},
		{OpLog, math.Log, 1e-44, 20},
		{OpLog, math.Log, 0.9, 1.1},
		{OpLog2, math.Log2, 1e-30, 1e30},
		{OpLog1p, math.Log1p, -0.999, 3},
		{OpSin, math.Sin, -100, 100},
		{OpCos, math.Cos, -100, 100},
		{OpSin, math.Sin, 1e5, 1e6},
		{OpSin, math.Sin, 1e20, 1e30},
		{OpCos, math.Cos, -1e30, -1e20},
		{OpTan, math.Tan, -1.5, 1.5},
		{OpAsin, math.Asin, -1, 1},
		{OpAcos, math.Acos, -1, 1},
		{OpAtan, math.Atan, -50, 50},
		{OpSinh, math.Sinh, -20, 20},
		{OpCosh, math.Cosh, -20, 20},
		{OpTanh, math.Tanh, -6, 6},
		{OpAsinh, math.Asinh, -30, 30},
		{OpAcosh, math.Acosh, 1, 30},
		{OpAtanh, math.Atanh, -1, 1},
		{OpErf, math.Erf, -4.5, 4.5},
		{OpSigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, -100, 30},
		{OpSqrt, math.Sqrt, 0, 1e10},
		{OpRsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) }, 1e-20, 1e10},
	} {
		f := c.op.Intrinsic().F32
		const n = 20000
		diff := 0
		for i := range n + 1 {
			x := float32(c.lo + (c.hi-c.lo)*float64(i)/n)
			got, want := f(x, 0, 0), float32(c.ref(float64(x)))
			if got == want || got != got && want != want {
				continue
			}
			diff++
			if d := int64(math.Float32bits(got)) - int64(math.Float32bits(want)); d > 1 || d < -1 {
				t.Fatalf("%s(%v) = %v, want %v", c.op, x, got, want)
			}
		}
		if diff > n/1000 {
			t.Errorf("%s on [%g, %g]: %d of %d results differ in the last place", c.op, c.lo, c.hi, diff, n)
		}
	}
}

// TestSpecialEdges checks what the functions give for zeros, infinities and NaN.
func TestSpecialEdges(t *testing.T) {
	inf, nan, negZero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	for _, c := range []struct {
		op   Op
		x, y float64
	}{
		{OpExp, inf, inf}, {OpExp, -inf, 0}, {OpExp, 0, 1}, {OpExp2, 127, 1 << 127}, {OpExp2, 10, 1024}, {OpExp2, -inf, 0},
		{OpExpm1, negZero, negZero}, {OpExpm1, -inf, -1}, {OpLog, 0, -inf}, {OpLog, -1, nan}, {OpLog, inf, inf}, {OpLog, 1, 0},
		{OpLog2, 8, 3}, {OpLog2, 0.125, -3}, {OpLog1p, negZero, negZero}, {OpLog1p, -1, -inf},
		{OpSin, inf, nan}, {OpSin, negZero, negZero}, {OpCos, 0, 1}, {OpCos, -inf, nan}, {OpTan, negZero, negZero},
		{OpAsin, 1, math.Pi / 2}, {OpAsin, 2, nan}, {OpAsin, negZero, negZero}, {OpAcos, -1, math.Pi}, {OpAcos, 1, 0},
		{OpAtan, inf, math.Pi / 2}, {OpAtan, -inf, -math.Pi / 2}, {OpAtan, negZero, negZero},
		{OpSinh, inf, inf}, {OpSinh, -inf, -inf}, {OpSinh, negZero, negZero}, {OpCosh, -inf, inf}, {OpTanh, inf, 1}, {OpTanh, -inf, -1}, {OpTanh, negZero, negZero},
		{OpAsinh, -inf, -inf}, {OpAsinh, negZero, negZero}, {OpAcosh, 1, 0}, {OpAcosh, 0.5, nan}, {OpAcosh, inf, inf},
		{OpAtanh, 1, inf}, {OpAtanh, -1, -inf}, {OpAtanh, 2, nan}, {OpAtanh, negZero, negZero},
		{OpErf, inf, 1}, {OpErf, -inf, -1}, {OpErf, negZero, negZero}, {OpSigmoid, -inf, 0}, {OpSigmoid, inf, 1}, {OpSigmoid, 0, 0.5},
		{OpSqrt, -1, nan}, {OpRsqrt, 0, inf}, {OpRecip, negZero, -inf},
	} {
		got, want := c.op.Intrinsic().F32(float32(c.x), 0, 0), float32(c.y)
		if got != got && want != want {
			continue
		}
		if math.Float32bits(got) != math.Float32bits(want) {
			t.Errorf("%s(%v) = %v, want %v", c.op, c.x, got, want)
		}
		if in := c.op.Intrinsic(); c.op != OpErf {
			if r := in.F32(float32(nan), 0, 0); r == r {
				t.Errorf("%s(NaN) = %v", c.op, r)
			}
		}
	}
}

func TestPow(t *testing.T) {
	vals := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, -2, 3, -3, 2.5, -2.5, 10, 1e30, -1e30, 1e-30, math.Inf(1), math.Inf(-1), math.NaN()}
	for _, x := range vals {
		for _, y := range vals {
			a, b := float32(x), float32(y)
			got, want := powF32(a, b, 0), float32(math.Pow(float64(a), float64(b)))
			if got != got && want != want {
				continue
			}
			d := int64(math.Float32bits(got)) - int64(math.Float32bits(want))
			if d > 1 || d < -1 || math.Signbit(float64(got)) != math.Signbit(float64(want)) {
				t.Errorf("pow(%v, %v) = %v, want %v", a, b, got, want)
			}
		}
	}
}
