package isa

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactFMA is a*b + c by exact rational arithmetic and one rounding.
func exactFMA(a, b, c float32) float32 {
	x, y, z := float64(a), float64(b), float64(c)
	sum := new(big.Float).SetPrec(2000).SetMode(big.ToNearestEven)
	sum.Mul(new(big.Float).SetPrec(2000).SetFloat64(x), big.NewFloat(y))
	sum.Add(sum, big.NewFloat(z))
	if sum.Sign() == 0 {
		return float32(x*y + z) // the sign of a zero sum is that of any rounding
	}
	r, _ := sum.Float32()
	return r
}

func TestFMA32(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200_000 {
		a := math.Float32frombits(r.Uint32()&^(0xff<<23) | uint32(r.IntN(60)+97)<<23)
		b := math.Float32frombits(r.Uint32()&^(0xff<<23) | uint32(r.IntN(60)+97)<<23)
		c := math.Float32frombits(r.Uint32()&^(0xff<<23) | uint32(r.IntN(120)+67)<<23)
		if r.IntN(3) == 0 { // near ties
			a = math.Float32frombits(math.Float32bits(a) &^ 0xfff)
			b = math.Float32frombits(math.Float32bits(b) &^ 0xfff)
		}
		if got, want := fma32(a, b, c), exactFMA(a, b, c); math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("fma32(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
	}
	if r := fma32(float32(math.Inf(1)), 0, 1); r == r {
		t.Errorf("inf * 0 + 1 = %v", r)
	}
	if got := fma32(0x1p-100, 0x1p-50, 0x1p-148); got != 0x1p-148 {
		t.Errorf("tie among denormals: %x", got)
	}
}
