package isa

import "math"

// The element functions of the vector unit. A conversion to float32 around a product keeps a compiler from fusing it.

func bit(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func divI32(a, b, _ int32) int32 {
	if b == 0 {
		return 0
	}
	return a / b // -1<<31 / -1 wraps in Go
}

func modI32(a, b, _ int32) int32 {
	if b == 0 {
		return 0
	}
	return a % b
}

func modF32(a, b, _ float32) float32 { return float32(math.Mod(float64(a), float64(b))) }

// fmaF32 rounds twice.
func fmaF32(a, b, c float32) float32 { return float32(a*b) + c }

func absF32(a, _, _ float32) float32 { return math.Float32frombits(math.Float32bits(a) &^ (1 << 31)) }

func absI32(a, _, _ int32) int32 {
	if a < 0 {
		return -a
	}
	return a
}

func signF32(a, _, _ float32) float32 {
	switch {
	case a > 0:
		return 1
	case a < 0:
		return -1
	}
	return a
}

func signI32(a, _, _ int32) int32 {
	switch {
	case a > 0:
		return 1
	case a < 0:
		return -1
	}
	return 0
}

func floorF32(a, _, _ float32) float32 { return float32(math.Floor(float64(a))) }
func ceilF32(a, _, _ float32) float32  { return float32(math.Ceil(float64(a))) }
func roundF32(a, _, _ float32) float32 { return float32(math.RoundToEven(float64(a))) }
func truncF32(a, _, _ float32) float32 { return float32(math.Trunc(float64(a))) }

// sqrtF32 is correctly rounded: binary64 has more than twice the digits that a root of a float32 needs.
func sqrtF32(a, _, _ float32) float32 { return float32(math.Sqrt(float64(a))) }

func rsqrtF32(a, _, _ float32) float32 { return float32(1 / math.Sqrt(float64(a))) }

// wide lifts a function of binary64 to one of float32: exact widening, one rounding of the result.
func wide(f func(float64) float64) func(a, _, _ float32) float32 {
	return func(a, _, _ float32) float32 { return float32(f(float64(a))) }
}

// powF32 is a to the power b.
func powF32(a, b, _ float32) float32 {
	x, y := float64(a), float64(b)
	switch y {
	case 0:
		return 1
	case 1:
		return a
	case 2:
		return a * a
	case -1:
		return 1 / a
	}
	switch {
	case a == 1:
		return 1
	case a != a || b != b:
		return float32(math.NaN())
	}
	whole := math.Trunc(y) == y
	odd := whole && math.Abs(y) < 1<<53 && math.Mod(y, 2) != 0
	neg := math.Signbit(x)
	mag := math.Abs(x)
	var r float64
	switch {
	case math.IsInf(y, 0):
		switch {
		case mag == 1:
			return 1
		case mag > 1 == (y > 0):
			return float32(math.Inf(1))
		default:
			return 0
		}
	case mag == 0 || math.IsInf(mag, 0):
		if mag == 0 == (y > 0) {
			r = 0
		} else {
			r = math.Inf(1)
		}
		if neg && odd {
			r = -r
		}
		return float32(r)
	case neg && !whole:
		return float32(math.NaN())
	case y == 0.5:
		return float32(math.Sqrt(x))
	case y == -0.5:
		return float32(1 / math.Sqrt(x))
	}
	r = exp64(y * log64(mag))
	if neg && odd {
		r = -r
	}
	return float32(r)
}
