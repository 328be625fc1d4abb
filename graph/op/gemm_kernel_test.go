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

// TestGemmOrder checks that products of rows with rows have the same bits wherever the rows lie in memory, and whichever matrix comes
// first: rewrites that turn a product around count on it.
func TestGemmOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, size := range [][3]int{{3, 5, 5}, {1, 7, 3}, {6, 2, 18}, {9, 8, 64}, {4, 4, 6}, {70, 66, 131}} {
		m, n, k := size[0], size[1], size[2]
		random := func(rows, shift int) matrix[float32] {
			x := newMatrix(make([]float32, rows*k+shift)[shift:], rows, k)
			for i := range x.data {
				x.data[i] = float32(rng.NormFloat64())
			}
			return x
		}
		a, b := random(m, 0), random(n, 0)
		c, d := newMatrix(make([]float32, m*n), m, n), newMatrix(make([]float32, m*n), n, m)
		gemm(false, true, 1, a, b, 0, c)
		gemm(false, true, 1, b, a, 0, d)
		same := func(what string, got matrix[float32]) {
			t.Helper()
			for i, x := range got.data {
				if x != c.data[i] {
					t.Errorf("%v: element %d is %v, %s %v", size, i, c.data[i], what, x)
					return
				}
			}
		}
		same("turned around", transposed(d))
		if k%rowLanes == 0 {
			continue // such rows are allocated at multiples of 16 bytes
		}
		for shift := 1; shift < rowLanes; shift++ {
			moved := random(n, shift)
			copy(moved.data, b.data)
			e := newMatrix(make([]float32, m*n), m, n)
			gemm(false, true, 1, a, moved, 0, e)
			same(fmt.Sprintf("with an operand that lies %d elements on", shift), e)
		}
	}
}
