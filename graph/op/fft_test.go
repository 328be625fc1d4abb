package op

import (
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// TestFFT compares transforms of lengths of every kind with the sum that defines them, and the inverse with the original.
func TestFFT(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 30, 64, 97, 100, 127, 128, 360} {
		x := make([]complex128, n)
		for i := range x {
			x[i] = complex(rng.Float64()-0.5, rng.Float64()-0.5)
		}
		y := append([]complex128{}, x...)
		f := newFFT(n)
		f.transform(y, false)
		for k := range n {
			want := complex128(0)
			for i, v := range x {
				want += v * unit(-2*(k*i%n), n)
			}
			if e := cmplx.Abs(y[k] - want); e > 1e-12*float64(n) {
				t.Fatalf("length %d, frequency %d: got %v, want %v", n, k, y[k], want)
			}
		}
		f.transform(y, true)
		for i := range x {
			if e := cmplx.Abs(y[i] - x[i]); e > 1e-13*float64(n) {
				t.Fatalf("length %d: the inverse gives %v at %d, want %v", n, y[i], i, x[i])
			}
		}
	}
}
