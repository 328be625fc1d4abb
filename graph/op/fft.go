package op

import (
	"math"
	"math/bits"
	"math/cmplx"
)

// fft computes discrete Fourier transforms of one length: y[k] = sum x[n]·w^(kn), w = exp(∓2πi/N). Lengths that are
// powers of two are split in halves (J. Cooley and J. Tukey, 1965), others become a convolution of such a length
// (L. Bluestein, 1970). A plan is read only and serves many goroutines.
type fft struct {
	n     int
	roots []complex128 // exp(-2πik/size) for k < size/2, size the power of two in use
	chirp []complex128 // exp(-πik²/n); nil for powers of two
	inner *fft         // of the convolution
	conv  []complex128 // the transform of the chirp's conjugate
}

// newFFT returns a plan for n ≥ 1 elements.
func newFFT(n int) *fft {
	f := &fft{n: n}
	if n&(n-1) == 0 {
		f.roots = scratch[complex128](n / 2)
		for k := range f.roots {
			f.roots[k] = unit(-2*k, n)
		}
		return f
	}
	size := 1 << bits.Len(uint(2*n-2))
	f.inner, f.chirp, f.conv = newFFT(size), scratch[complex128](n), scratch[complex128](size)
	for k := range f.chirp {
		f.chirp[k] = unit(-(k * k % (2 * n)), n)
		c := cmplx.Conj(f.chirp[k])
		f.conv[k] = c
		if k > 0 {
			f.conv[size-k] = c
		}
	}
	f.inner.forward(f.conv)
	return f
}

// unit returns exp(πik/n).
func unit(k, n int) complex128 {
	sin, cos := math.Sincos(math.Pi * float64(k) / float64(n))
	return complex(cos, sin)
}

// transform replaces x by its transform, for the inverse divided by the length.
func (f *fft) transform(x []complex128, inverse bool) {
	if !inverse {
		f.forward(x)
		return
	}
	for i, v := range x {
		x[i] = cmplx.Conj(v)
	}
	f.forward(x)
	for i, v := range x {
		x[i] = cmplx.Conj(v) / complex(float64(f.n), 0)
	}
}

func (f *fft) forward(x []complex128) {
	if f.chirp == nil {
		f.radix2(x)
		return
	}
	t := scratch[complex128](f.inner.n)
	for k, c := range f.chirp {
		t[k] = x[k] * c
	}
	f.inner.forward(t)
	for k := range t {
		t[k] *= f.conv[k]
	}
	f.inner.transform(t, true)
	for k, c := range f.chirp {
		x[k] = t[k] * c
	}
}

// radix2 puts the elements in bit-reversed order and joins transforms of half the length, from the shortest on.
func (f *fft) radix2(x []complex128) {
	if f.n < 2 {
		return
	}
	shift := 64 - bits.Len(uint(f.n-1))
	for i := range x {
		if j := int(bits.Reverse64(uint64(i)) >> shift); j > i {
			x[i], x[j] = x[j], x[i]
		}
	}
	for half := 1; half < f.n; half *= 2 {
		step := f.n / (2 * half)
		for at := 0; at < f.n; at += 2 * half {
			lo, hi := x[at:at+half], x[at+half:at+2*half]
			for k := range lo {
				v := hi[k] * f.roots[k*step]
				lo[k], hi[k] = lo[k]+v, lo[k]-v
			}
		}
	}
}
