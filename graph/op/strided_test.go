package op

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gradtool/graph"
)

// TestCopyView compares copies between arbitrary regular regions with copies of one element at a time.
func TestCopyView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(0, 5).Draw(t, "rank")
		dims := make([]int, rank)
		src := view{step: make([]int, rank)}
		for i := range dims {
			dims[i] = rapid.SampledFrom([]int{0, 1, 2, 3, 5, 33, 40}[min(1, rank-i-1):]).Draw(t, "size")
			src.step[i] = rapid.IntRange(-3, 40).Draw(t, "step")
		}
		for prod(dims) > 1<<16 {
			dims[slices.Index(dims, slices.Max(dims))] = 2
		}
		// The result is dense, with its axes in any order; the source is large enough for every step.
		order := rapid.Permutation(axesUpTo(rank)).Draw(t, "order")
		dst := view{step: make([]int, rank)}
		n := 1
		for _, a := range order {
			dst.step[a] = n
			n *= dims[a]
		}
		low, high := 0, 0
		for i, size := range dims {
			if reach := src.step[i] * max(0, size-1); reach < 0 {
				low += reach
			} else {
				high += reach
			}
		}
		src.off = -low
		x, y := NewArray(graph.Int64, []int{high - low + 1}, false), NewArray(graph.Int64, []int{prod(dims)}, false)
		for i := range x.I64 {
			x.I64[i] = int64(i) + 1
		}
		copyView(y, dst, x, src, dims)
		index := make([]int, rank)
		for k := range prod(dims) {
			rest := k
			p, q := dst.off, src.off
			for i := rank - 1; i >= 0; i-- {
				index[i], rest = rest%dims[i], rest/dims[i]
				p, q = p+index[i]*dst.step[i], q+index[i]*src.step[i]
			}
			if y.I64[p] != x.I64[q] {
				t.Fatalf("dims %v, from %v to %v: at %v %d, want %d", dims, src, dst, index, y.I64[p], x.I64[q])
			}
		}
	})
}

func axesUpTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
