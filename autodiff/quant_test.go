package autodiff

import (
	"math"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// TestStraightThrough quantizes and dequantizes, and compares the gradients of the sum of the result times weights
// with those of learned step size quantization, worked out by element.
func TestStraightThrough(t *testing.T) {
	tests := []struct {
		name  string
		shape []int
		scale []int // shape of the scales
		elem  graph.DataType
		zero  int64
		attrs []*graph.Attr
		at    func(i int) int // scale of element i
		twice bool            // two scales of equal value, so that nothing cancels
	}{
		{name: "one scale", shape: []int{2, 3}, scale: []int{}, elem: graph.Int8, at: func(int) int { return 0 }},
		{name: "zero point", shape: []int{2, 3}, scale: []int{}, elem: graph.Uint8, zero: 100, at: func(int) int { return 0 }},
		{name: "separate scales", shape: []int{2, 3}, scale: []int{}, elem: graph.Uint8, zero: 100, at: func(int) int { return 0 }, twice: true},
		{name: "last axis", shape: []int{2, 3}, scale: []int{3}, elem: graph.Int8, zero: -3, at: func(i int) int { return i % 3 }},
		{name: "first axis", shape: []int{2, 3}, scale: []int{2}, elem: graph.Int8, attrs: []*graph.Attr{graph.IntAttr("axis", 0)}, at: func(i int) int { return i / 3 }},
		{name: "middle axis", shape: []int{2, 2, 3}, scale: []int{2}, elem: graph.Int4, zero: 1, at: func(i int) int { return i / 3 % 2 }},
		{name: "even blocks", shape: []int{2, 4}, scale: []int{2, 2}, elem: graph.Int4, attrs: []*graph.Attr{graph.IntAttr("block_size", 2)}, at: func(i int) int { return i/4*2 + i%4/2 }},
		{name: "short last block", shape: []int{2, 3}, scale: []int{2, 2}, elem: graph.Int4, attrs: []*graph.Attr{graph.IntAttr("block_size", 2)}, at: func(i int) int { return i/3*2 + i%3/2 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkStraightThrough(t, tt.shape, tt.scale, tt.elem, tt.zero, tt.attrs, tt.at, tt.twice)
		})
	}
}

func checkStraightThrough(t *testing.T, shape, scaleShape []int, elem graph.DataType, zero int64, attrs []*graph.Attr, at func(int) int, twice bool) {
	x, s := op.NewArray(graph.Float, shape, false), op.NewArray(graph.Float, scaleShape, false)
	w, z := op.NewArray(graph.Float, shape, false), op.NewArray(elem, scaleShape, false)
	for i := range x.F32 {
		x.F32[i], w.F32[i] = 0.37*float32(i*i)-1.3*float32(i), float32(i)-1.5
	}
	x.F32[0], x.F32[1] = 1000, -1000 // out of every range
	for i := range s.F32 {
		s.F32[i], z.I64[i] = 0.05*float32(i+1), zero
	}
	m := graph.NewModel("qat", op.SampleOpset)
	g := m.Graph
	vx, vs, vz := g.AddInput("x", x.Type()), g.AddInput("s", s.Type()), g.AddInit("z", z.Tensor())
	info, err := op.Infer(m)
	if err != nil {
		t.Fatal(err)
	}
	wrt, feed, other := []*graph.Value{vx, vs}, []*op.Array{x, s}, vs
	if twice {
		other = g.AddInput("s2", s.Type())
		wrt, feed = append(wrt, other), append(feed, s)
	}
	b := op.NewBuilder(g, info)
	q := b.Op("QuantizeLinear", []*graph.Value{vx, vs, vz}, attrs...)
	y := b.Op("DequantizeLinear", []*graph.Value{q, other, vz}, attrs...)
	grads, err := Reverse(b, []Seed{{y, b.Const(w.Tensor())}}, wrt)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range grads {
		if v == nil {
			t.Fatalf("no gradient of %s", wrt[i].Name)
		}
	}
	g.SetOutputs(grads...)
	machine, err := interp.New(m, interp.Options{Wide: true})
	if err != nil {
		t.Fatal(err)
	}
	got, err := machine.Run(feed)
	if err != nil {
		t.Fatal(err)
	}
	wantX, wantS := make([]float64, x.Len()), make([]float64, s.Len())
	lo, hi := op.IntRange(elem)
	for i := range wantX {
		scale := float64(s.F32[at(i)])
		u := float64(x.F32[i]) / scale
		code := math.RoundToEven(u) + float64(zero)
		g := float64(w.F32[i])
		if code >= lo && code <= hi {
			wantX[i] = g
			wantS[at(i)] += g * (math.RoundToEven(u) - u)
		} else {
			wantS[at(i)] += g * (math.Max(lo, math.Min(hi, code)) - float64(zero))
		}
	}
	sum := got[1]
	if twice { // the parts through either operator
		for i := range sum.F64 {
			sum.F64[i] += got[2].F64[i]
		}
	}
	compareFloats(t, "x", got[0], wantX)
	compareFloats(t, "s", sum, wantS)
}

func compareFloats(t *testing.T, name string, got *op.Array, want []float64) {
	t.Helper()
	if got.Len() != len(want) {
		t.Fatalf("gradient of %s is %s, want %d elements", name, got, len(want))
	}
	for i, x := range want {
		if math.Abs(got.Float(i)-x) > 1e-9*(1+math.Abs(x)) {
			t.Errorf("gradient of %s: element %d is %g, want %g", name, i, got.Float(i), x)
		}
	}
}

// TestQuantizedPath follows the cotangent through operators that rearrange codes.
func TestQuantizedPath(t *testing.T) {
	m := graph.NewModel("qat", op.SampleOpset)
	g := m.Graph
	x := g.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(2, 3)))
	info, err := op.Infer(m)
	if err != nil {
		t.Fatal(err)
	}
	b := op.NewBuilder(g, info)
	s := b.Scalar(graph.Float, 0.5)
	q := b.ReshapeTo(b.Transpose(b.Op("QuantizeLinear", []*graph.Value{x, s}), 1, 0), 6)
	y := b.Op("DequantizeLinear", []*graph.Value{q, s})
	grads, err := Reverse(b, []Seed{{y, b.Const(graph.Floats(nil, 1, 2, 3, 4, 5, 6))}}, []*graph.Value{x})
	if err != nil {
		t.Fatal(err)
	}
	g.SetOutputs(grads...)
	machine, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	feed := op.NewArray(graph.Float, []int{2, 3}, false)
	copy(feed.F32, []float32{1, -1, 2, 3, 4, 500})
	got, err := machine.Run([]*op.Array{feed})
	if err != nil {
		t.Fatal(err)
	}
	compareFloats(t, "x", got[0], []float64{1, 0, 5, 2, 4, 0})
}
