package op

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestConvolve compares the kernels with the definition of a convolution and of its transpose, in sizes that reach every
// path: whole images, rows of large images, small images side by side, depthwise.
func TestConvolve(t *testing.T) {
	for _, c := range []struct {
		name string
		size convSize
		w    window
	}{
		{"plain", convSize{2, 1, 3, 4}, window{kernel: []int{3, 2}, stride: []int{2, 1}, dilation: []int{1, 2}, in: []int{7, 6}, begin: []int{1, 0}, end: []int{0, 2}}},
		{"rows of an image", convSize{1, 1, 60, 2}, window{kernel: []int{3, 3}, stride: []int{1, 1}, dilation: []int{1, 1}, in: []int{34, 40}, begin: []int{1, 1}, end: []int{1, 1}}},
		{"images side by side", convSize{5, 2, 40, 3}, window{kernel: []int{3, 3}, stride: []int{1, 1}, dilation: []int{1, 1}, in: []int{12, 13}, begin: []int{1, 1}, end: []int{1, 1}}},
		{"pointwise", convSize{3, 2, 5, 4}, window{kernel: []int{1, 1}, stride: []int{1, 1}, dilation: []int{1, 1}, in: []int{9, 9}, begin: []int{0, 0}, end: []int{0, 0}}},
		{"depthwise", convSize{2, 3, 1, 2}, window{kernel: []int{3, 3}, stride: []int{2, 2}, dilation: []int{1, 1}, in: []int{8, 9}, begin: []int{1, 1}, end: []int{1, 1}}},
		{"wide padding", convSize{1, 1, 2, 6}, window{kernel: []int{2}, stride: []int{3}, dilation: []int{4}, in: []int{3}, begin: []int{5}, end: []int{4}}},
		{"3-D", convSize{1, 1, 2, 5}, window{kernel: []int{2, 1, 3}, stride: []int{1, 2, 1}, dilation: []int{1, 1, 1}, in: []int{4, 5, 3}, begin: []int{0, 0, 1}, end: []int{1, 0, 1}}},
	} {
		t.Run(c.name, func(t *testing.T) { checkConvolve(t, c.size, c.w) })
	}
}

func checkConvolve(t *testing.T, c convSize, w window) {
	for i := range w.in {
		w.out = append(w.out, (w.in[i]+w.begin[i]+w.end[i]-w.span(i))/w.stride[i]+1)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = rng.Float64() - 0.5
		}
		return x
	}
	in, out, taps := prod(w.in), prod(w.out), prod(w.kernel)
	x, y := random(c.batch*c.groups*c.inPer*in), random(c.batch*c.groups*c.outPer*out)
	weights := random(c.groups * c.outPer * c.inPer * taps)
	wantY, wantX := append([]float64{}, y...), append([]float64{}, x...)
	eachProduct(&w, c, func(xi, wi, yi int) {
		wantY[yi] += weights[wi] * x[xi]
		wantX[xi] += weights[wi] * y[yi]
	})
	gotY, gotX := append([]float64{}, y...), append([]float64{}, x...)
	convolve(&w, c, x, weights, gotY)
	convolveTransposed(&w, c, y, weights, gotX)
	for _, r := range []struct {
		name      string
		got, want []float64
	}{{"convolution", gotY, wantY}, {"transpose", gotX, wantX}} {
		for i := range r.want {
			if math.Abs(r.got[i]-r.want[i]) > 1e-9 {
				t.Fatalf("%s: element %d: got %g, want %g", r.name, i, r.got[i], r.want[i])
			}
		}
	}
}

// eachProduct calls f for every product of an input element and a weight that goes into an output element.
func eachProduct(w *window, c convSize, f func(x, weight, y int)) {
	in, out, taps := prod(w.in), prod(w.out), prod(w.kernel)
	w.taps(func(tapIndex int, tap []int) {
		for o := range out {
			at, rest, inside, scale := 0, o, true, 1
			for a := len(w.in) - 1; a >= 0; a-- {
				p := rest%w.out[a]*w.stride[a] + tap[a]*w.dilation[a] - w.begin[a]
				rest /= w.out[a]
				inside = inside && p >= 0 && p < w.in[a]
				at += p * scale
				scale *= w.in[a]
			}
			if !inside {
				continue
			}
			for n := range c.batch {
				for g := range c.groups {
					for i := range c.inPer {
						for m := range c.outPer {
							f(((n*c.groups+g)*c.inPer+i)*in+at, ((g*c.outPer+m)*c.inPer+i)*taps+tapIndex, ((n*c.groups+g)*c.outPer+m)*out+o)
						}
					}
				}
			}
		}
	})
}
