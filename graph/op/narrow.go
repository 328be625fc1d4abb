package op

import "math"

// float16ToFloat32 decodes an IEEE 754 binary16.
func float16ToFloat32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, frac := uint32(h>>10&31), uint32(h&1023)
	switch {
	case exp == 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case exp == 0:
		f := float32(frac) / (1 << 24)
		if sign != 0 {
			f = -f
		}
		return f
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// float16Bits encodes to nearest even; too large becomes infinite.
func float16Bits(x float64) uint16 {
	b := math.Float64bits(x)
	sign := uint16(b >> 48 & 0x8000)
	a := math.Abs(x)
	switch {
	case x != x:
		return sign | 0x7e00
	case a >= 65520:
		return sign | 0x7c00
	case a < 1.0/(1<<14): // subnormal: multiples of 2^-24
		return sign | uint16(math.RoundToEven(a*(1<<24)))
	}
	frac, exp := math.Frexp(a) // a = frac * 2^exp, frac in [0.5, 1)
	m := math.RoundToEven(frac * 2048)
	return sign | (uint16(exp+13)<<10 + uint16(m))
}

// bfloat16ToFloat32 decodes a bfloat16, the upper half of a float32.
func bfloat16ToFloat32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// bfloat16Bits encodes to nearest even.
func bfloat16Bits(x float64) uint16 {
	if x != x {
		return 0x7fc0
	}
	f := float32(x)
	b := math.Float32bits(f)
	if d := float64(f) - x; d != 0 && b&0xffff == 0x8000 && !math.IsInf(float64(f), 0) {
		// float32 rounding made a tie of what was none: break it by the exact value.
		if d > 0 == (x > 0) {
			b--
		} else {
			b++
		}
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
