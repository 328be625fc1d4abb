package isa

import (
	"math"
	"math/big"
)

// halfPi is pi/2 with 256 bits, enough for the remainder of the largest float32.
const halfPi = "1.5707963267948966192313216916397514420985846996875529104874722961539082031431044993140174126710585339910740432566411533235"

// bigTrig is trigParts for |x| >= 2^20, by an exact multiple and one subtraction with 400 bits.
func bigTrig(x float64) (r float64, quadrant int) {
	const prec = 400
	h, _, err := big.ParseFloat(halfPi, 10, prec, big.ToNearestEven)
	if err != nil {
		panic("isa: " + err.Error()) // the text is a constant
	}
	q := new(big.Float).SetPrec(prec).Quo(big.NewFloat(x), h)
	half := big.NewFloat(0.5)
	if x < 0 {
		half.Neg(half)
	}
	k, _ := new(big.Float).SetPrec(prec).Add(q, half).Int(nil) // truncates: rounds q to nearest
	rest := new(big.Float).SetPrec(prec).Mul(new(big.Float).SetPrec(prec).SetInt(k), h)
	r, _ = rest.Sub(new(big.Float).SetPrec(prec).SetFloat64(x), rest).Float64()
	return r, int(new(big.Int).And(k, big.NewInt(3)).Int64())
}

// atan64 halves the angle twice, after x > 1 became 1/x, and sums the series for what is left, at most 0.2.
func atan64(x float64) float64 {
	if x != x || x == 0 {
		return x
	}
	a := math.Abs(x)
	inverse := a > 1
	if inverse {
		a = 1 / a
	}
	for range 2 {
		a = a / (1 + math.Sqrt(1+float64(a*a)))
	}
	z := a * a
	t := 0.0
	for n := len(odd) - 1; n >= 0; n-- {
		t = odd[n] - float64(z*t)
	}
	r := float64(4*a) * t
	if inverse {
		r = math.Pi/2 - r
	}
	return math.Copysign(r, x)
}

func asin64(x float64) float64 { return atan64(x / math.Sqrt(float64((1-x)*(1+x)))) }

func acos64(x float64) float64 { return 2 * atan64(math.Sqrt((1-x)/(1+x))) }

func sinh64(x float64) float64 {
	if x == 0 {
		return x
	}
	e := expm1_64(math.Abs(x))
	if math.IsInf(e, 1) {
		return math.Copysign(e, x)
	}
	return math.Copysign(0.5*(e+float64(e/(e+1))), x)
}

func cosh64(x float64) float64 {
	e := exp64(math.Abs(x))
	return 0.5 * (e + 1/e)
}

func tanh64(x float64) float64 {
	a := math.Abs(x)
	switch {
	case x == 0 || x != x:
		return x
	case a > 20:
		return math.Copysign(1, x)
	}
	e := expm1_64(2 * a)
	return math.Copysign(e/(e+2), x)
}

func asinh64(x float64) float64 {
	if x == 0 || x != x || math.IsInf(x, 0) {
		return x
	}
	a := math.Abs(x)
	s := a * a
	return math.Copysign(log1p_64(a+s/(1+math.Sqrt(1+s))), x)
}

func acosh64(x float64) float64 {
	if x < 1 {
		return math.NaN()
	}
	if math.IsInf(x, 1) {
		return x
	}
	d := x - 1
	return log1p_64(d + math.Sqrt(float64(d*(x+1))))
}

func atanh64(x float64) float64 {
	if x == 0 {
		return x
	}
	return 0.5 * log1p_64(float64(2*x)/(1-x))
}

func sigmoid64(x float64) float64 { return 1 / (1 + exp64(-x)) }

// erf64 sums 2/sqrt(pi) exp(-x^2) * sum of 2^n x^(2n+1) / (1*3*...*(2n+1)), whose terms are all positive. From 4 on the
// float32 is 1.
func erf64(x float64) float64 {
	a := math.Abs(x)
	switch {
	case x != x || x == 0:
		return x
	case a >= 4:
		return math.Copysign(1, x)
	}
	z := float64(2 * a * a)
	term, sum := a, a
	for n := 3.0; term > 1e-17*sum; n += 2 {
		term = float64(term*z) / n
		sum += term
	}
	return math.Copysign(float64(2/math.SqrtPi*exp64(-float64(a*a)))*sum, x)
}
