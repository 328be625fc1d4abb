package autodiff

import (
	"fmt"
	"math"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// gradientOf returns the gradient of <ct, y> with respect to the first operand, for an operator with result y.
func gradientOf(t *testing.T, name string, in []op.Arg, ct []float64, attrs ...*graph.Attr) *op.Array {
	t.Helper()
	m, feed, err := op.SampleModel(op.Lookup(op.Key{Name: name}), op.Sample{In: in, Attrs: attrs}, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	info, err := op.Infer(m)
	if err != nil {
		t.Fatal(err)
	}
	b := op.NewBuilder(m.Graph, info)
	y := m.Graph.Outputs[0]
	shape, _ := y.Type.Shape.Ints()
	dims := make([]int, len(shape))
	for i, n := range shape {
		dims[i] = int(n)
	}
	a := op.NewArray(graph.Float, dims, false)
	for i := range a.Len() {
		a.SetFloat(i, ct[i%len(ct)])
	}
	grads, err := Reverse(b, []Seed{{y, b.Const(a.Tensor())}}, m.Graph.Inputs[:1])
	if err != nil {
		t.Fatal(err)
	}
	m.Graph.SetOutputs(grads...)
	machine, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := machine.Run(feed)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// TestSingularPoints states the derivatives where there is none, or where formulas divide by zero or subtract infinities.
func TestSingularPoints(t *testing.T) {
	inf := math.Inf(1)
	drop := graph.IntAttr("keepdims", 0)
	row := func(v ...float64) []op.Arg { return []op.Arg{op.FV([]int{1, len(v)}, v...), op.I(1)} }
	alone := func(v ...float64) []op.Arg { return []op.Arg{op.FV([]int{1, len(v)}, v...)} }
	two := op.FV([]int{1, 1, 2, 1}, 1, 2)
	nothing := op.TV(graph.Bool, []int{2, 2}, 0, 0, 1, 1)
	cases := []struct {
		name, op string
		in       []op.Arg
		ct       []float64
		attrs    []*graph.Attr
		want     string
	}{
		{"ties share evenly", "ReduceMax", row(.5, .5, .25), []float64{1}, nil, "[0.5 0.5 0]"},
		{"ties share evenly", "ReduceMin", row(2, 1, 1, 1, 1), []float64{1}, nil, "[0 0.25 0.25 0.25 0.25]"},
		{"infinite cotangent reaches the chosen alone", "ReduceMax", row(1, 2), []float64{inf}, nil, "[0 +Inf]"},
		{"no zero", "ReduceProd", row(2, 3, 4), []float64{1}, nil, "[12 8 6]"},
		{"one zero", "ReduceProd", row(2, 0, 4), []float64{1}, nil, "[0 8 0]"},
		{"two zeros", "ReduceProd", row(0, 3, 0), []float64{1}, nil, "[0 0 0]"},
		{"two zeros", "CumProd", []op.Arg{op.FV([]int{4}, 2, 0, 3, 0), op.IS(0)}, []float64{1}, nil, "[1 8 0 0]"},
		{"zero vector", "ReduceL2", row(0, 0), []float64{1}, nil, "[0 0]"},
		{"zero", "ReduceL1", row(-2, 0, 3), []float64{1}, nil, "[-1 0 1]"},
		{"zero vector", "LpNormalization", alone(0, 0), []float64{1}, nil, "[0 0]"},
		{"all masked", "ReduceLogSumExp", row(-inf, -inf), []float64{1}, []*graph.Attr{drop}, "[0 0]"},
		{"one masked", "ReduceLogSumExp", row(-inf, 0), []float64{1}, nil, "[0 1]"},
		{"one masked", "Softmax", alone(0, -inf, 0), []float64{1, 5, 3}, nil, "[-0.5 0 0.5]"},
		{"constant group", "MeanVarianceNormalization", []op.Arg{op.FV([]int{1, 1, 1, 2}, 3, 3)}, []float64{1}, nil, "[0 0]"},
		{"ignored labels", "SoftmaxCrossEntropyLoss", []op.Arg{op.FV([]int{2, 2}, 0, 0, 1, 1), op.TV(graph.Int64, []int{2}, 1, -100)},
			[]float64{1}, []*graph.Attr{graph.IntAttr("ignore_index", -100)}, "[0.5 -0.5 0 0]"},
		{"query that sees nothing", "Attention", []op.Arg{two, two, two, nothing}, []float64{1, 0}, nil, "[0 0]"},
	}
	for _, c := range cases {
		t.Run(c.op+"/"+c.name, func(t *testing.T) {
			g := gradientOf(t, c.op, c.in, c.ct, c.attrs...)
			for i, x := range g.F32 {
				g.F32[i] = x + 0 // no negative zeros
			}
			if got := fmt.Sprint(g.F32); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestMaskedRows: a softmax row with everything masked is NaN; where the model replaces it, its scores have gradient
// 0 and the other rows theirs.
func TestMaskedRows(t *testing.T) {
	inf := math.Inf(-1)
	m := graph.NewModel("masked", op.SampleOpset)
	g := m.Graph
	x := g.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(2, 2)))
	info, err := op.Infer(m)
	if err != nil {
		t.Fatal(err)
	}
	b := op.NewBuilder(g, info)
	p := b.Unary("Softmax", x)
	masked := b.Binary("Equal", b.Op("ReduceMax", []*graph.Value{x, b.Ints(1)}), b.Like(x, inf))
	y := b.Where(masked, b.Like(p, 0), b.Unary("Identity", p))
	weights := op.NewArray(graph.Float, []int{2, 2}, false)
	copy(weights.F32, []float32{1, 2, 3, 4})
	grads, err := Reverse(b, []Seed{{y, b.Const(weights.Tensor())}}, []*graph.Value{x})
	if err != nil {
		t.Fatal(err)
	}
	g.SetOutputs(grads[0])
	machine, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	feed := op.NewArray(graph.Float, []int{2, 2}, false)
	copy(feed.F32, []float32{float32(inf), float32(inf), 0, 0})
	out, err := machine.Run([]*op.Array{feed})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(out[0].F32), "[0 0 -0.25 0.25]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
