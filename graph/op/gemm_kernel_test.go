package op

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestGemm compares products of all forms and sizes, those split over cores included, with the definition.
func TestGemm(t *testing.T) {
	for _, size := range [][3]int{{1, 1, 1}, {3, 4, 5}, {70, 65, 130}, {2, 3, 3 * minDepthPart}, {4, 5, 0}, {0, 3, 2}} {
		for form := range 4 {
			t.Run(fmt.Sprint(size, form), func(t *testing.T) {
				checkGemm(t, size[0], size[1], size[2], form&1 != 0, form&2 != 0, false)
				checkGemm(t, size[0], size[1], size[2], form&1 != 0, form&2 != 0, true)
			})
		}
	}
}

func checkGemm(t *testing.T, m, n, k int, transA, transB, special bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(rows, cols int) matrix[float64] {
		x := newMatrix(make([]float64, rows*cols), rows, cols)
		for i := range x.data {
			x.data[i] = rng.Float64() - 0.5
		}
		return x
	}
	a, b, c := random(m, k), random(k, n), random(m, n)
	if transA {
		a = transposed(a)
	}
	if transB {
		b = transposed(b)
	}
	if special && m*n*k > 0 { // a zero times an infinity is NaN
		a.data[0], b.data[0] = 0, math.Inf(1)
	}
	at := func(x matrix[float64], trans bool, i, j int) float64 {
		if trans {
			i, j = j, i
		}
		return x.data[i*x.stride+j]
	}
	want := make([]float64, m*n)
	for i := range m {
		for j := range n {
			sum := 3 * c.data[i*n+j]
			for l := range k {
				sum += 2 * at(a, transA, i, l) * at(b, transB, l, j)
			}
			want[i*n+j] = sum
		}
	}
	gemm(transA, transB, 2, a, b, 3, c)
	for i, w := range want {
		if got := c.data[i]; !(math.Abs(got-w) <= 1e-9) && !(math.IsNaN(got) && math.IsNaN(w)) && got != w {
			t.Fatalf("element %d: got %g, want %g", i, got, w)
		}
	}
}
