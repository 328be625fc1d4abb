package op

import (
	"runtime"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
)

// matrix is a row-major matrix: element (i, j) is data[i*stride+j].
type matrix[T number] struct {
	data               []T
	rows, cols, stride int
}

// newMatrix returns data, which is contiguous, as a matrix.
func newMatrix[T number](data []T, rows, cols int) matrix[T] {
	return matrix[T]{data, rows, cols, max(cols, 1)}
}

func (m matrix[T]) row(i int) []T {
	if m.cols == 0 {
		return nil
	}
	return m.data[i*m.stride : i*m.stride+m.cols]
}

// gemm computes c = alpha op(a) op(b) + beta c, where op transposes if asked to.
func gemm[T number](transA, transB bool, alpha T, a, b matrix[T], beta T, c matrix[T]) {
	if c.rows == 0 || c.cols == 0 {
		return
	}
	k := a.cols
	if transA {
		k = a.rows
	}
	if parts := min(runtime.GOMAXPROCS(0), k/minDepthPart); parts > 1 && c.rows*c.cols <= maxSplitResult {
		gemmSplit(parts, transA, transB, alpha, a, b, beta, c)
		return
	}
	if k > 0 && gemmBLAS(transA, transB, alpha, a, b, beta, c) {
		return
	}
	gemmPlain(transA, transB, alpha, a, b, beta, c)
}

// gemmPlain is gemm row by row.
func gemmPlain[T number](transA, transB bool, alpha T, a, b matrix[T], beta T, c matrix[T]) {
	if transB {
		b = transposed(b)
	}
	if transA {
		a = transposed(a)
	}
	k := a.cols
	parallel(c.rows, grainOf(k*c.cols), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			out := c.row(i)
			for j := range out {
				if beta == 0 {
					out[j] = 0
				} else {
					out[j] *= beta
				}
			}
			for l := range k {
				x := alpha * a.data[i*a.stride+l]
				for j, y := range b.row(l) {
					out[j] += x * y
				}
			}
		}
	})
}

// Products of few rows and columns but many summed elements are split over cores along the sum.
const (
	minDepthPart   = 2048
	maxSplitResult = 1 << 14
)

// gemmSplit is gemm as a sum of products of equal shares of the summed axis.
func gemmSplit[T number](parts int, transA, transB bool, alpha T, a, b matrix[T], beta T, c matrix[T]) {
	k := a.cols
	if transA {
		k = a.rows
	}
	share := func(m matrix[T], byRow bool, lo, hi int) matrix[T] {
		if byRow {
			return matrix[T]{m.data[lo*m.stride:], hi - lo, m.cols, m.stride}
		}
		return matrix[T]{m.data[lo:], m.rows, hi - lo, m.stride}
	}
	sums := make([]matrix[T], parts)
	parallel(parts, 1, func(first, last int) {
		for i := first; i < last; i++ {
			lo, hi := k*i/parts, k*(i+1)/parts
			sums[i] = newMatrix(make([]T, c.rows*c.cols), c.rows, c.cols)
			x, y := share(a, transA, lo, hi), share(b, !transB, lo, hi)
			if !gemmBLAS(transA, transB, alpha, x, y, 0, sums[i]) {
				gemmPlain(transA, transB, alpha, x, y, 0, sums[i])
			}
		}
	})
	for i := range c.rows {
		out := c.row(i)
		for j := range out {
			var sum T
			for _, s := range sums {
				sum += s.data[i*s.stride+j]
			}
			if beta != 0 {
				sum += beta * out[j]
			}
			out[j] = sum
		}
	}
}

// gemmBLAS is gemm by BLAS kernels, if they fit: for floats, and where the kernels' skipping of products with a zero
// of a hides no infinity or NaN of b.
func gemmBLAS[T number](transA, transB bool, alpha T, a, b matrix[T], beta T, c matrix[T]) bool {
	if (transA || !transB) && !finite(b) {
		return false
	}
	ta, tb := blas.NoTrans, blas.NoTrans
	if transA {
		ta = blas.Trans
	}
	if transB {
		tb = blas.Trans
	}
	switch c := any(c).(type) {
	case matrix[float32]:
		g := func(m matrix[float32]) blas32.General {
			return blas32.General{Rows: m.rows, Cols: m.cols, Stride: m.stride, Data: m.data}
		}
		b := any(b).(matrix[float32])
		if !transA && transB {
			b = b.rowsAligned()
		}
		blas32.Gemm(ta, tb, float32(alpha), g(any(a).(matrix[float32])), g(b), float32(beta), g(c))
	case matrix[float64]:
		g := func(m matrix[float64]) blas64.General {
			return blas64.General{Rows: m.rows, Cols: m.cols, Stride: m.stride, Data: m.data}
		}
		blas64.Gemm(ta, tb, float64(alpha), g(any(a).(matrix[float64])), g(any(b).(matrix[float64])), float64(beta), g(c))
	default:
		return false
	}
	return true
}

// rowLanes is how many elements the kernel of dot products sums side by side. It sums those in front of the first address of its second
// operand that is a multiple of as many one by one.
const rowLanes = 4

// rowsAligned returns m with rows that all begin at such an address, so that the order of sums depends neither on where memory lies nor on
// which of two vectors comes first. What is allocated in multiples of 16 bytes lies at multiples of 16.
func (m matrix[T]) rowsAligned() matrix[T] {
	if m.stride%rowLanes == 0 {
		return m
	}
	w := matrix[T]{rows: m.rows, cols: m.cols, stride: (m.cols + rowLanes - 1) / rowLanes * rowLanes}
	w.data = make([]T, w.rows*w.stride)
	for i := range m.rows {
		copy(w.data[i*w.stride:], m.row(i))
	}
	return w
}

// finite reports whether no element is infinite or NaN. Integers are finite.
func finite[T number](m matrix[T]) bool {
	for i := range m.rows {
		var bad T // stays 0 as long as all elements are finite: x-x is NaN for the others
		for _, x := range m.row(i) {
			bad += x - x
		}
		if bad != 0 {
			return false
		}
	}
	return true
}

func transposed[T number](m matrix[T]) matrix[T] {
	t := newMatrix(make([]T, m.rows*m.cols), m.cols, m.rows)
	for i := range m.rows {
		for j, x := range m.row(i) {
			t.data[j*t.stride+i] = x
		}
	}
	return t
}
