package half

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

var signed = []Format{Float16, BFloat16, E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ, E2M1}

// patterns returns the number of bit patterns of f.
func patterns(f Format) int { return 1 << f.Bits() }

// TestDecode compares every pattern with the formula of the format's
// definition, worked out with math.Ldexp.
func TestDecode(t *testing.T) {
	for _, c := range []struct {
		f         Format
		exp, man  int
		bias      int
		inf, nans []uint16 // magnitudes
		uz        bool
	}{
		{Float16, 5, 10, 15, []uint16{0x7c00}, span(0x7c01, 0x7fff), false},
		{BFloat16, 8, 7, 127, []uint16{0x7f80}, span(0x7f81, 0x7fff), false},
		{E4M3FN, 4, 3, 7, nil, []uint16{0x7f}, false},
		{E4M3FNUZ, 4, 3, 8, nil, nil, true},
		{E5M2, 5, 2, 15, []uint16{0x7c}, []uint16{0x7d, 0x7e, 0x7f}, false},
		{E5M2FNUZ, 5, 2, 16, nil, nil, true},
		{E2M1, 2, 1, 1, nil, nil, false},
	} {
		for b := range patterns(c.f) {
			mag := b & (patterns(c.f)/2 - 1)
			neg := b != mag
			exp, frac := mag>>c.man, mag&(1<<c.man-1)
			want := math.Ldexp(float64(frac), 1-c.bias-c.man)
			if exp > 0 {
				want = math.Ldexp(float64(frac+1<<c.man), exp-c.bias-c.man)
			}
			switch {
			case slices.Contains(c.inf, uint16(mag)):
				want = math.Inf(1)
			case slices.Contains(c.nans, uint16(mag)), c.uz && neg && mag == 0:
				want = math.NaN()
			}
			if neg {
				want = -want
			}
			got := c.f.Decode(uint16(b))
			if want != want && got != got {
				continue
			}
			if math.Float64bits(got) != math.Float64bits(want) {
				t.Fatalf("%v %#x is %v, want %v", c.f, b, got, want)
			}
		}
	}
	for b := range 255 {
		if got, want := E8M0.Decode(uint16(b)), math.Ldexp(1, b-127); got != want {
			t.Fatalf("float8e8m0 %#x is %v, want %v", b, got, want)
		}
	}
	if v := E8M0.Decode(0xff); v == v {
		t.Errorf("float8e8m0 0xff is %v, want NaN", v)
	}
}

func span(a, b uint16) []uint16 {
	var out []uint16
	for ; a <= b; a++ {
		out = append(out, a)
	}
	return out
}

func TestMax(t *testing.T) {
	for f, want := range map[Format]float64{Float16: 65504, BFloat16: 0x1.fep127, E4M3FN: 448, E4M3FNUZ: 240,
		E5M2: 57344, E5M2FNUZ: 57344, E2M1: 6, E8M0: 0x1p127} {
		if f.Max() != want {
			t.Errorf("%v: largest value %v, want %v", f, f.Max(), want)
		}
	}
}

// TestRoundTrip encodes the value of every pattern back to the pattern; a NaN
// stays a NaN with its sign.
func TestRoundTrip(t *testing.T) {
	for _, f := range append(slices.Clone(signed), E8M0) {
		for _, m := range []Mode{{}, {NoSaturate: true}, {NoSaturate: true, Round: Nearest}, {Round: Down}} {
			for b := range patterns(f) {
				v := f.Decode(uint16(b))
				got := f.Encode(v, m)
				switch back := f.Decode(got); {
				case v != v:
					if back == back || math.Signbit(v) != math.Signbit(back) {
						t.Fatalf("%v: NaN %#x becomes %#x", f, b, got)
					}
				case math.IsInf(v, 0) && !m.NoSaturate && f == E5M2:
					if math.Abs(back) != f.Max() || math.Signbit(v) != math.Signbit(back) {
						t.Fatalf("%v: %v saturates to %v", f, v, back)
					}
				case got != uint16(b):
					t.Fatalf("%v: %#x = %v becomes %#x", f, b, v, got)
				}
			}
		}
	}
}

// finite returns the non-negative finite patterns in order of value, and the
// value that would follow the largest.
func finite(f Format) (values []float64, next float64) {
	for b := 0; b <= int(specs[f].largest); b++ {
		values = append(values, f.Decode(uint16(b)))
	}
	n := len(values)
	return values, 2*values[n-1] - values[n-2]
}

// TestRounding checks, between any two neighbours of each format, the midpoint
// and the float64 values next to it.
func TestRounding(t *testing.T) {
	for _, f := range signed {
		values, next := finite(f)
		values = append(values, next)
		for i, lo := range values[:len(values)-1] {
			hi := values[i+1]
			mid := lo + (hi-lo)/2 // exact: a few bits in a float64
			even := uint16(i + i&1)
			for _, c := range []struct {
				x    float64
				want uint16
			}{
				{math.Nextafter(lo, hi), uint16(i)},
				{math.Nextafter(mid, 0), uint16(i)},
				{mid, even},
				{math.Nextafter(mid, hi), uint16(i + 1)},
				{math.Nextafter(hi, 0), uint16(i + 1)},
			} {
				over := c.want > specs[f].largest
				pos, neg := f.Encode(c.x, Mode{NoSaturate: true}), f.Encode(-c.x, Mode{NoSaturate: true})
				wantPos, wantNeg := c.want, c.want|1<<(f.Bits()-1)
				switch s := specs[f]; {
				case over && f == E2M1:
					wantPos, wantNeg = 7, 15
				case over && s.inf != 0:
					wantPos, wantNeg = s.inf, s.inf|1<<(f.Bits()-1)
				case over && s.uz:
					wantPos, wantNeg = s.nan, s.nan
				case over:
					wantPos, wantNeg = s.nan, s.nan|0x80
				case s.uz && c.want == 0:
					wantNeg = 0
				}
				if pos != wantPos || neg != wantNeg {
					t.Fatalf("%v: ±%v become %#x and %#x, want %#x and %#x", f, c.x, pos, neg, wantPos, wantNeg)
				}
				if over && f.Bits() == 8 {
					if got := f.Encode(c.x, Mode{}); got != specs[f].largest {
						t.Fatalf("%v: %v saturates to %#x", f, c.x, got)
					}
				}
			}
		}
	}
}

// TestNearest compares random float64 values with a search for the nearest
// value in exact arithmetic.
func TestNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range signed {
		values, next := finite(f)
		for range 5000 {
			x := math.Ldexp(1+r.Float64(), r.IntN(50)-30)
			if f == BFloat16 {
				x = math.Ldexp(1+r.Float64(), r.IntN(260)-135)
			}
			if x >= values[len(values)-1]+(next-values[len(values)-1])/2 {
				continue
			}
			i, _ := slices.BinarySearch(values, x) // values[i-1] < x <= values[i]
			want := i
			if i == len(values) {
				want = i - 1
			} else if i > 0 {
				below := new(big.Float).SetPrec(2000).Sub(big.NewFloat(x), big.NewFloat(values[i-1]))
				above := new(big.Float).SetPrec(2000).Sub(big.NewFloat(values[i]), big.NewFloat(x))
				if c := below.Cmp(above); c < 0 || c == 0 && i%2 == 1 {
					want = i - 1
				}
			}
			if got := f.Encode(x, Mode{}); got != uint16(want) {
				t.Fatalf("%v: %v becomes %#x = %v, want %#x = %v", f, x, got, f.Decode(got), want, values[want])
			}
		}
	}
}

// TestNoDoubleRounding takes values that rounding to float32 first would bring
// to a tie, and from there to the wrong side.
func TestNoDoubleRounding(t *testing.T) {
	for _, c := range []struct {
		f    Format
		x    float64
		want float64
	}{
		{Float16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10},
		{Float16, 1 + 0x3p-11 - 0x1p-40, 1 + 0x1p-10},
		{BFloat16, 1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7},
		{E4M3FN, 1 + 0x1p-4 + 0x1p-40, 1 + 0x1p-3},
		{Float16, 0x1p-25 + 0x1p-70, 0x1p-24},
		{Float16, 0x1p-25, 0},
	} {
		if got := c.f.Decode(c.f.Encode(c.x, Mode{})); got != c.want {
			t.Errorf("%v: %v becomes %v, want %v", c.f, c.x, got, c.want)
		}
	}
}

// TestSpecial follows the tables of Cast in ONNX's Operators.md.
func TestSpecial(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	negZero := math.Copysign(0, -1)
	negNaN := math.Copysign(nan, -1)
	x := []float64{0, negZero, nan, negNaN, inf, -inf, 1e10, -1e10, 5e-324, -5e-324}
	for _, c := range []struct {
		f    Format
		m    Mode
		want []uint16
	}{
		{Float16, Mode{}, []uint16{0, 0x8000, 0x7e00, 0xfe00, 0x7c00, 0xfc00, 0x7c00, 0xfc00, 0, 0x8000}},
		{E4M3FN, Mode{}, []uint16{0, 0x80, 0x7f, 0xff, 0x7e, 0xfe, 0x7e, 0xfe, 0, 0x80}},
		{E4M3FNUZ, Mode{}, []uint16{0, 0, 0x80, 0x80, 0x7f, 0xff, 0x7f, 0xff, 0, 0}},
		{E5M2, Mode{}, []uint16{0, 0x80, 0x7e, 0xfe, 0x7b, 0xfb, 0x7b, 0xfb, 0, 0x80}},
		{E5M2FNUZ, Mode{}, []uint16{0, 0, 0x80, 0x80, 0x7f, 0xff, 0x7f, 0xff, 0, 0}},
		{E4M3FN, Mode{NoSaturate: true}, []uint16{0, 0x80, 0x7f, 0xff, 0x7f, 0xff, 0x7f, 0xff, 0, 0x80}},
		{E4M3FNUZ, Mode{NoSaturate: true}, []uint16{0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0}},
		{E5M2, Mode{NoSaturate: true}, []uint16{0, 0x80, 0x7e, 0xfe, 0x7c, 0xfc, 0x7c, 0xfc, 0, 0x80}},
		{E5M2FNUZ, Mode{NoSaturate: true}, []uint16{0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0}},
		{E2M1, Mode{}, []uint16{0, 8, 7, 7, 7, 15, 7, 15, 0, 8}},
	} {
		for i, want := range c.want {
			if got := c.f.Encode(x[i], c.m); got != want {
				t.Errorf("%v %+v: %v becomes %#x, want %#x", c.f, c.m, x[i], got, want)
			}
		}
	}
}

func TestE8M0(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		x        float64
		m        Mode
		want     uint16
		wantHard uint16 // with NoSaturate
	}{
		{0, Mode{}, 0, 0xff},
		{math.NaN(), Mode{}, 0xff, 0xff},
		{-1, Mode{}, 0xff, 0xff},
		{inf, Mode{}, 0xfe, 0xff},
		{0x1p-128, Mode{}, 0, 0xff},
		{0x1p-127, Mode{}, 0, 0},
		{0x1p127, Mode{}, 0xfe, 0xfe},
		{0x1.8p127, Mode{}, 0xfe, 0xff},
		{0x1.8p127, Mode{Round: Down}, 0xfe, 0xfe},
		{0x1.4p127, Mode{Round: Nearest}, 0xfe, 0xfe},
		{1, Mode{}, 127, 127},
		{1.1, Mode{}, 128, 128},
		{1.1, Mode{Round: Down}, 127, 127},
		{1.1, Mode{Round: Nearest}, 127, 127},
		{1.5, Mode{Round: Nearest}, 128, 128},
		{math.Nextafter(1.5, 0), Mode{Round: Nearest}, 127, 127},
		{0.124, Mode{}, 124, 124},
	} {
		hard := c.m
		hard.NoSaturate = true
		if got := E8M0.Encode(c.x, c.m); got != c.want {
			t.Errorf("%v %+v: %#x, want %#x", c.x, c.m, got, c.want)
		}
		if got := E8M0.Encode(c.x, hard); got != c.wantHard {
			t.Errorf("%v %+v: %#x, want %#x", c.x, hard, got, c.wantHard)
		}
	}
}

func BenchmarkEncodeFloat16(b *testing.B) {
	for i := range b.N {
		Float16.Encode(float64(float32(i)*0.37), Mode{})
	}
}

func BenchmarkDecodeFloat16(b *testing.B) {
	var s float64
	for i := range b.N {
		s += Float16.Decode(uint16(i))
	}
	_ = s
}
