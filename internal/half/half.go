// Package half converts between Go's floats and the narrow floating-point
// formats of ONNX: float16, bfloat16, the float8 family, float4e2m1 and
// float8e8m0.
//
// Values go through float64, which holds every value of every format exactly.
// Encoding rounds once, from the float64, to the nearest value and on a tie to
// the even one. Where ONNX leaves a choice, the operator Cast of its
// specification (Operators.md, "Cast", version 25) is followed.
package half

import (
	"fmt"
	"math"
	"math/bits"
)

// Format is a narrow floating-point format.
type Format uint8

// The formats. Names follow ONNX: FN has no infinities, UZ no negative zero;
// EaMb has a exponent and b fraction bits.
const (
	Float16  Format = iota // IEEE 754 binary16
	BFloat16               // the upper half of binary32
	E4M3FN                 // float8e4m3fn
	E4M3FNUZ               // float8e4m3fnuz
	E5M2                   // float8e5m2, with infinities
	E5M2FNUZ               // float8e5m2fnuz
	E2M1                   // float4e2m1, neither infinities nor NaN
	E8M0                   // float8e8m0, the powers of two from 2^-127 to 2^127, and NaN
)

// Rounding is the way E8M0 rounds a value between two powers of two.
type Rounding uint8

const (
	Up      Rounding = iota // to the larger one; the ONNX default
	Down                    // to the smaller one
	Nearest                 // to the nearer one, the midpoint up
)

// Mode is what ONNX's Cast takes as attributes. The zero Mode is the default of
// that operator.
type Mode struct {
	// NoSaturate is saturate=0: float8 values out of range become infinite or
	// NaN, not the largest value. Float16 and BFloat16 never saturate, E2M1
	// always does.
	NoSaturate bool
	// Round is round_mode, for E8M0 alone.
	Round Rounding
}

// spec is the layout of a format: sign (if any), exponent, fraction.
type spec struct {
	name    string
	bits    uint
	man     uint
	bias    int
	largest uint16 // magnitude of the largest finite value
	inf     uint16 // 0: none
	nan     uint16 // the NaN written; 0: none
	uz      bool   // the pattern of -0 is NaN
}

var specs = [...]spec{
	Float16:  {"float16", 16, 10, 15, 0x7bff, 0x7c00, 0x7e00, false},
	BFloat16: {"bfloat16", 16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, false},
	E4M3FN:   {"float8e4m3fn", 8, 3, 7, 0x7e, 0, 0x7f, false},
	E4M3FNUZ: {"float8e4m3fnuz", 8, 3, 8, 0x7f, 0, 0x80, true},
	E5M2:     {"float8e5m2", 8, 2, 15, 0x7b, 0x7c, 0x7e, false},
	E5M2FNUZ: {"float8e5m2fnuz", 8, 2, 16, 0x7f, 0, 0x80, true},
	E2M1:     {"float4e2m1", 4, 1, 1, 0x7, 0, 0, false},
	E8M0:     {"float8e8m0", 8, 0, 127, 0xfe, 0, 0xff, false},
}

// String returns the ONNX name in lower case, such as "float8e4m3fn".
func (f Format) String() string {
	if int(f) < len(specs) {
		return specs[f].name
	}
	return fmt.Sprintf("half.Format(%d)", uint8(f))
}

// Bits returns the width of a value: 16, 8 or 4.
func (f Format) Bits() int { return int(specs[f].bits) }

// Max returns the largest finite value.
func (f Format) Max() float64 { return f.Decode(specs[f].largest) }

// Decode returns the value of the bit pattern b, exactly. Bits above the width
// of the format are ignored.
func (f Format) Decode(b uint16) float64 {
	s := &specs[f]
	b &= 1<<s.bits - 1
	if f == E8M0 {
		if b == s.nan {
			return math.NaN()
		}
		return math.Float64frombits(uint64(int(b)-127+1023) << 52)
	}
	sign := b >> (s.bits - 1)
	mag := b &^ (1 << (s.bits - 1))
	switch {
	case s.uz && b == s.nan:
		return math.NaN()
	case !s.uz && mag > s.largest:
		if s.inf != 0 && mag == s.inf {
			return math.Inf(1 - 2*int(sign))
		}
		return math.Copysign(math.NaN(), 1-2*float64(sign))
	}
	exp, frac := int(mag>>s.man), uint64(mag&(1<<s.man-1))
	if exp == 0 { // subnormal: frac * 2^(1 - bias - man), an exact product
		v := float64(frac) * math.Float64frombits(uint64(1-s.bias-int(s.man)+1023)<<52)
		return math.Copysign(v, 1-2*float64(sign))
	}
	return math.Float64frombits(uint64(sign)<<63 | uint64(exp-s.bias+1023)<<52 | frac<<(52-s.man))
}

// Encode returns the bit pattern of the value nearest to x, a tie going to the
// even pattern. A float32 is encoded by way of float64, which is exact.
func (f Format) Encode(x float64, m Mode) uint16 {
	s := &specs[f]
	if f == E8M0 {
		return encodeE8M0(x, m)
	}
	word := math.Float64bits(x)
	sign := uint16(word>>63) << (s.bits - 1)
	mag := overflow
	if !math.IsInf(x, 0) && x == x {
		mag = s.round(word &^ (1 << 63))
	}
	switch {
	case x != x && s.uz:
		return s.nan
	case x != x && s.nan == 0:
		return s.largest // float4e2m1: NaN becomes +6
	case x != x:
		return sign | s.nan
	case mag == 0 && s.uz:
		return 0
	case mag <= uint32(s.largest):
		return sign | uint16(mag)
	case s.bits == 16 || m.NoSaturate && s.inf != 0:
		return sign | s.inf
	case m.NoSaturate && s.uz:
		return s.nan
	case m.NoSaturate && s.nan != 0:
		return sign | s.nan
	}
	return sign | s.largest
}

// overflow is a magnitude above that of every format.
const overflow = uint32(math.MaxUint32)

// round returns the magnitude, exponent and fraction bits joined, of the finite
// value >= 0 with the float64 bits word, rounded to the fraction width of s as
// if there were no largest exponent.
func (s *spec) round(word uint64) uint32 {
	exp, man := int(word>>52), word&(1<<52-1)
	if exp == 0 {
		// Subnormal in float64: less than half the least value of any format.
		return 0
	}
	man |= 1 << 52
	exp -= 1023
	// The value is man * 2^(exp-52). It is cut to a multiple of the unit in the
	// last place, 2^(max(exp, least) - s.man), least being the exponent that
	// subnormals share with the smallest normal values.
	least := 1 - s.bias
	shift := uint(52) - s.man
	if exp < least {
		if exp < least-int(s.man)-2 {
			return 0
		}
		shift += uint(least - exp)
		exp = least
	}
	n := man >> shift
	half, rest := uint64(1)<<(shift-1), man&(1<<shift-1)
	if rest > half || rest == half && n&1 == 1 {
		n++
	}
	// n has its leading one at bit s.man when normal, which adds 1 to the
	// exponent field; a carry out of the fraction does so by itself.
	return uint32(exp+s.bias-1)<<s.man + uint32(n)
}

// encodeE8M0 returns the exponent byte for x. Zero and values below 2^-127
// become 2^-127, or NaN without saturation; NaN stays, and so becomes every
// negative number, for which ONNX defines no result.
func encodeE8M0(x float64, m Mode) uint16 {
	const nan, largest = 0xff, 0xfe
	if x != x || x < 0 {
		return nan
	}
	out := func(saturated uint16) uint16 {
		if m.NoSaturate {
			return nan
		}
		return saturated
	}
	if math.IsInf(x, 1) {
		return out(largest)
	}
	if x < 0x1p-127 {
		return out(0)
	}
	word := math.Float64bits(x)
	e, frac := int(word>>52)-1023+127, word&(1<<52-1)
	if m.Round == Up && frac != 0 || m.Round == Nearest && bits.Len64(frac) == 52 {
		e++
	}
	if e > largest {
		return out(largest)
	}
	return uint16(e)
}
