package op

import (
	"reflect"
	"testing"
)

func TestBroadcastWalk(t *testing.T) {
	tests := []struct {
		name   string
		shapes [][]int
		shape  []int
		dims   []int // after merging
	}{
		{"same shape is one run", [][]int{{2, 3, 4}, {2, 3, 4}}, []int{2, 3, 4}, []int{24}},
		{"scalar is one run", [][]int{{2, 3, 4}, {}}, []int{2, 3, 4}, []int{24}},
		{"trailing row", [][]int{{2, 3, 4}, {4}}, []int{2, 3, 4}, []int{6, 4}},
		{"channel", [][]int{{2, 3, 4, 5}, {3, 1, 1}}, []int{2, 3, 4, 5}, []int{2, 3, 20}},
		{"both broadcast", [][]int{{2, 1}, {3}}, []int{2, 3}, []int{2, 3}},
		{"three operands", [][]int{{2, 1, 4}, {3, 1}, {}}, []int{2, 3, 4}, []int{2, 3, 4}},
		{"scalars", [][]int{{}, {}}, []int{}, []int{1}},
		{"ones", [][]int{{1, 1}, {1}}, []int{1, 1}, []int{1}},
		{"empty", [][]int{{0, 3}, {1, 3}}, []int{0, 3}, []int{0, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := newBroadcast(tt.shapes...)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(p.shape, tt.shape) || !reflect.DeepEqual(p.dims, tt.dims) {
				t.Fatalf("got shape %v, axes %v; want %v, %v", p.shape, p.dims, tt.shape, tt.dims)
			}
			for k := range tt.shapes {
				want := naiveOffsets(tt.shape, tt.shapes[k])
				for cut := 0; cut <= len(want); cut++ { // any split gives the same walk
					got := make([]int, len(want))
					visit := func(out, n int, at []int) {
						for i := range n {
							got[out+i] = at[k]
							if p.advances(k) {
								got[out+i] += i
							}
						}
					}
					p.runs(0, cut, visit)
					p.runs(cut, len(want), visit)
					if !reflect.DeepEqual(got, want) {
						t.Fatalf("operand %d, cut at %d: offsets %v, want %v", k, cut, got, want)
					}
				}
			}
		})
	}
}

// naiveOffsets returns, for every element of a result, the element of the operand that it reads.
func naiveOffsets(shape, operand []int) []int {
	out := make([]int, prod(shape))
	for i := range out {
		rest, at, step := i, 0, 1
		for j := len(shape) - 1; j >= 0; j-- {
			pos := rest % shape[j]
			rest /= shape[j]
			if k := j - (len(shape) - len(operand)); k >= 0 {
				if operand[k] != 1 {
					at += pos * step
				}
				step *= operand[k]
			}
		}
		out[i] = at
	}
	return out
}

func TestBroadcastErrors(t *testing.T) {
	if _, err := newBroadcast([]int{2, 3}, []int{2}); err == nil {
		t.Error("3 against 2 was accepted")
	}
	if _, err := broadcastTo([]int{3}, []int{2, 3}); err == nil {
		t.Error("a higher rank was accepted one way")
	}
	if _, err := broadcastTo([]int{1}, []int{3}); err == nil {
		t.Error("a larger size was accepted one way")
	}
}
