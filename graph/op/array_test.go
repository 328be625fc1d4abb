package op

import (
	"testing"

	"gradtool/graph"
)

// TestTensorRoundTrip writes the values that a type can hold and reads them back, in both modes.
func TestTensorRoundTrip(t *testing.T) {
	for e := graph.Float; e <= graph.Int2; e++ {
		if !e.Valid() {
			continue
		}
		for _, wide := range []bool{false, true} {
			a := NewArray(e, []int{3, 3}, wide)
			for i := range a.Len() {
				switch {
				case e == graph.Float8E8M0: // holds powers of two only
					a.SetFloat(i, float64(int(1)<<i))
				case a.IsFloat():
					a.SetFloat(i, float64(i%4)/2)
				case a.I64 != nil:
					a.I64[i] = int64(i - 4)
				case a.C128 != nil:
					a.C128[i] = complex(float64(i), -float64(i))
				case a.Str != nil:
					a.Str[i] = string(rune('a' + i))
				}
			}
			a.Round()
			tensor := a.Tensor()
			if err := tensor.Check(); err != nil {
				t.Errorf("%s: %v", e, err)
			}
			b, err := FromTensor(tensor, wide)
			if err != nil {
				t.Errorf("%s: %v", e, err)
				continue
			}
			if a.String() != b.String() {
				t.Errorf("%s: wrote %s, read %s", e, a, b)
			}
		}
	}
}

func TestRound(t *testing.T) {
	for _, c := range []struct {
		elem graph.DataType
		in   int64
		want int64
	}{{graph.Int8, 128, -128}, {graph.Uint8, -1, 255}, {graph.Bool, 7, 1}, {graph.Int4, 8, -8}, {graph.Uint4, 17, 1}, {graph.Int2, 2, -2}, {graph.Uint32, -1, 1<<32 - 1}} {
		a := NewArray(c.elem, []int{1}, false)
		a.I64[0] = c.in
		if got := a.Round().I64[0]; got != c.want {
			t.Errorf("%s: %d becomes %d, want %d", c.elem, c.in, got, c.want)
		}
	}
	a := NewArray(graph.Float16, []int{1}, false)
	a.F32[0] = 1.0002
	if got := a.Round().F32[0]; got != 1 {
		t.Errorf("float16: 1.0002 becomes %g, want 1", got)
	}
}
