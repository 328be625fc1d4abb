package isa

import "math"

// The special functions in binary64, in operations that IEEE 754 defines, so that every machine gives the same bits: series
// and reductions below, and of package math only what is exact or correctly rounded (Sqrt, Floor, Frexp, Ldexp, Mod, ...).
// The conversions around products forbid fusing. Relative errors are below 1e-13, so a float32 result is the
// correctly rounded one but for about one argument in a million near a tie.

const (
	ln2Hi = 6.93147180369123816490e-01 // the upper 33 bits of log 2
	ln2Lo = 1.90821492927058770002e-10 // log 2 - ln2Hi
	log2e = 1.44269504088896338700e+00
)

// inverse factorials: factor[n] is 1/n!, rounded once by the compiler.
var factor = [...]float64{
	1, 1, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
	1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200, 1.0 / 1307674368000,
	1.0 / 20922789888000, 1.0 / 355687428096000, 1.0 / 6402373705728000,
}

// expReduced is exp(r) for |r| <= 0.35: the Taylor series to degree 13.
func expReduced(r float64) float64 {
	s := factor[13]
	for n := 12; n >= 0; n-- {
		s = factor[n] + float64(r*s)
	}
	return s
}

// exp64 is e to the power x, with k = round(x / log 2) and r = x - k log 2 in two steps.
func exp64(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > 710:
		return math.Inf(1)
	case x < -746:
		return 0
	}
	k := math.RoundToEven(x * log2e)
	r := float64(x-float64(k*ln2Hi)) - float64(k*ln2Lo)
	return math.Ldexp(expReduced(r), int(k))
}

// exp2_64 is 2 to the power x.
func exp2_64(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > 1025:
		return math.Inf(1)
	case x < -1080:
		return 0
	}
	k := math.RoundToEven(x)
	return math.Ldexp(expReduced(float64((x-k)*math.Ln2)), int(k))
}

// expm1_64 is exp(x) - 1 without cancellation near 0.
func expm1_64(x float64) float64 {
	if math.Abs(x) > 0.35 || x != x {
		return exp64(x) - 1
	}
	s := factor[15]
	for n := 14; n >= 1; n-- {
		s = factor[n] + float64(x*s)
	}
	return x * s
}

// odd reciprocals: odd[n] is 1/(2n+1).
var odd = [...]float64{
	1, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25,
}

// atanhSeries is 2 atanh(s) for |s| <= 0.1716: the odd series to degree 23.
func atanhSeries(s float64) float64 {
	z := s * s
	t := 0.0
	for n := len(odd) - 2; n >= 0; n-- {
		t = odd[n] + float64(z*t)
	}
	return float64(2*s) * t
}

// logParts returns k and log(m) with x = m * 2^k and m in [sqrt(1/2), sqrt 2), for finite x > 0.
func logParts(x float64) (k, l float64) {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		e--
	}
	return float64(e), atanhSeries((m - 1) / (m + 1))
}

// logSpecial answers the arguments of a logarithm that are not positive and finite.
func logSpecial(x float64) (float64, bool) {
	switch {
	case x < 0:
		return math.NaN(), true
	case x == 0:
		return math.Inf(-1), true
	case x != x || math.IsInf(x, 1):
		return x, true
	}
	return 0, false
}

// log64 is the natural logarithm.
func log64(x float64) float64 {
	if r, ok := logSpecial(x); ok {
		return r
	}
	k, l := logParts(x)
	return float64(k*ln2Hi) + float64(l+float64(k*ln2Lo))
}

// log2_64 is the logarithm to base 2.
func log2_64(x float64) float64 {
	if r, ok := logSpecial(x); ok {
		return r
	}
	k, l := logParts(x)
	return k + float64(l*log2e)
}

// log1p_64 is log(1 + x) without cancellation near 0.
func log1p_64(x float64) float64 {
	if math.Abs(x) > 0.25 || x != x {
		return log64(1 + x)
	}
	return atanhSeries(x / (2 + x))
}

// trigParts reduces x to r in [-pi/4, pi/4] and the quadrant. The argument comes from a float32, so that for magnitudes
// up to 2^20 three parts of pi/2 of 33 bits each keep r good; larger arguments are first brought below 2^20 by
// exact remainders of pi/2 in integer arithmetic.
func trigParts(x float64) (r float64, quadrant int) {
	const (
		p1 = 1.57079632673412561417e+00 // the first 33 bits of pi/2
		p2 = 6.07710050630396597660e-11 // the next 33
		p3 = 2.02226624879595063154e-21 // the rest
	)
	if math.Abs(x) >= 1<<20 {
		return bigTrig(x)
	}
	k := math.RoundToEven(x * (2 / math.Pi))
	r = float64(float64(x-float64(k*p1))-float64(k*p2)) - float64(k*p3)
	return r, int(k) & 3
}

// sinSeries and cosSeries are Taylor series for |r| <= pi/4.
func sinSeries(r float64) float64 {
	z := r * r
	t := 0.0
	for n := 17; n >= 1; n -= 2 {
		t = factor[n] - float64(z*t)
	}
	return r * t
}

func cosSeries(r float64) float64 {
	z := r * r
	t := 0.0
	for n := 18; n >= 0; n -= 2 {
		t = factor[n] - float64(z*t)
	}
	return t
}

func sin64(x float64) float64 {
	if x != x || math.IsInf(x, 0) {
		return math.NaN()
	}
	if x == 0 {
		return x
	}
	switch r, q := trigParts(x); q {
	case 0:
		return sinSeries(r)
	case 1:
		return cosSeries(r)
	case 2:
		return -sinSeries(r)
	default:
		return -cosSeries(r)
	}
}

func cos64(x float64) float64 {
	if x != x || math.IsInf(x, 0) {
		return math.NaN()
	}
	switch r, q := trigParts(x); q {
	case 0:
		return cosSeries(r)
	case 1:
		return -sinSeries(r)
	case 2:
		return -cosSeries(r)
	default:
		return sinSeries(r)
	}
}

func tan64(x float64) float64 { return sin64(x) / cos64(x) }
