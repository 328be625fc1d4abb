package main

import (
	"math"
	"testing"

	"gradtool/graph"
)

// TestInfoTotals checks that totals which no number holds are the largest number, not a negative or a small one.
func TestInfoTotals(t *testing.T) {
	for _, c := range []struct {
		dims          [][]int64
		params, bytes int64
	}{
		{[][]int64{{3, 4}, {5}}, 17, 68},
		{[][]int64{{1 << 40, 1 << 22}}, 1 << 62, math.MaxInt64},
		{[][]int64{{1 << 40, 1 << 22}, {1 << 40, 1 << 22}}, math.MaxInt64, math.MaxInt64},
		{[][]int64{{1 << 40, 1 << 40}}, math.MaxInt64, math.MaxInt64},
		{[][]int64{{1 << 40, 1 << 40, 0}}, 0, 0},
	} {
		m := graph.NewModel("m", 21)
		for _, d := range c.dims {
			m.Graph.AddInit(m.Fresh("w"), &graph.Tensor{Elem: graph.Float, Dims: d})
		}
		if f := factsOf(m); f.Params != c.params || f.Bytes != c.bytes {
			t.Errorf("%v: %d parameters in %d bytes, want %d in %d", c.dims, f.Params, f.Bytes, c.params, c.bytes)
		}
	}
}
