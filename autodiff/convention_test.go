package autodiff

import (
	"fmt"
	"math"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// TestConventions evaluates first derivatives in the operand's own precision at the points where a formula
// can go wrong: kinks, ties, zeros, and arguments at which a step of the computation overflows. Every
// cotangent element is 1 unless given.
func TestConventions(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	f := func(name string, v float32) *graph.Attr { return graph.FloatAttr(name, v) }
	tests := []struct {
		name  string
		op    string
		attrs []*graph.Attr
		in    [][]float64 // operands, vectors
		ct    []float64   // nil: ones
		want  [][]float64 // gradients; nil where not asked for
		half  bool        // in float16
	}{
		{name: "relu", op: "Relu", in: [][]float64{{-1, 0, 2, 1e30}}, want: [][]float64{{0, 0, 1, 1}}},
		{name: "relu blocks infinity", op: "Relu", in: [][]float64{{-1, 2}}, ct: []float64{inf, inf}, want: [][]float64{{0, inf}}},
		{name: "leaky relu", op: "LeakyRelu", attrs: []*graph.Attr{f("alpha", -0.5)}, in: [][]float64{{-1, 0, 2}}, want: [][]float64{{-0.5, -0.5, 1}}},
		{name: "abs", op: "Abs", in: [][]float64{{-3, 0, 2}}, want: [][]float64{{-1, 0, 1}}},
		{name: "clip", op: "Clip", in: [][]float64{{-1, 0, 3, 6, 7}, {0}, {6}}, want: [][]float64{{0, 1, 1, 1, 0}, {1}, {1}}},
		{name: "clip crossed", op: "Clip", in: [][]float64{{1, 7}, {6}, {0}}, want: [][]float64{{0, 0}, {0}, {2}}},
		{name: "clip crossed, at max", op: "Clip", in: [][]float64{{-1, 0, 1, 2}, {3}, {1}}, want: [][]float64{{0, 0, 0, 0}, {0}, {4}}},
		{name: "max ties", op: "Max", in: [][]float64{{1, 2, 3}, {1, 3, 2}}, want: [][]float64{{0.5, 0, 1}, {0.5, 1, 0}}},
		{name: "min of three", op: "Min", in: [][]float64{{1, 2, 3}, {1, 2, 9}, {1, 5, 4}}, want: [][]float64{{1.0 / 3, 0.5, 1}, {1.0 / 3, 0.5, 0}, {1.0 / 3, 0, 0}}},
		{name: "sqrt", op: "Sqrt", in: [][]float64{{0, 4}}, want: [][]float64{{0, 0.25}}},
		{name: "sqrt of nothing asked", op: "Sqrt", in: [][]float64{{0, 4}}, ct: []float64{0, 1}, want: [][]float64{{0, 0.25}}},
		{name: "pow at zero", op: "Pow", in: [][]float64{{0, 0, 0, 0, 2}, {0, 1, 2, 3, 3}}, want: [][]float64{{0, 1, 0, 0, 12}, {0, 0, 0, 0, 8 * math.Ln2}}},
		{name: "pow, negative base", op: "Pow", in: [][]float64{{-2, -2, -3}, {2, 3, 0}}, want: [][]float64{{-4, 12, 0}, nil}},
		{name: "pow, negative exponent at zero", op: "Pow", in: [][]float64{{0}, {-1}}, want: [][]float64{nil, {0}}},
		{name: "div", op: "Div", in: [][]float64{{1e-30, 1}, {1e-30, 1e25}}, want: [][]float64{{1e30, 1e-25}, {-1e30, 0}}},
		{name: "fmod", op: "Mod", attrs: []*graph.Attr{graph.IntAttr("fmod", 1)}, in: [][]float64{{7.5, -7.5, 1}, {2, 2, 5}}, want: [][]float64{{1, 1, 1}, {-3, 3, 0}}},
		{name: "softplus", op: "Softplus", in: [][]float64{{-200, 0, 200}}, want: [][]float64{{0, 0.5, 1}}},
		{name: "mish", op: "Mish", in: [][]float64{{-200, 0, 200}}, want: [][]float64{{0, 0.6, 1}}},
		{name: "elu", op: "Elu", in: [][]float64{{-200, 0, 200}}, want: [][]float64{{0, 1, 1}}},
		{name: "celu", op: "Celu", attrs: []*graph.Attr{f("alpha", 0.5)}, in: [][]float64{{-200, 0, 200}}, want: [][]float64{{0, 1, 1}}},
		{name: "selu", op: "Selu", in: [][]float64{{-200, 200}}, want: [][]float64{{0, op.SeluGamma}}},
		{name: "hard sigmoid", op: "HardSigmoid", in: [][]float64{{-2.5, -3, 0, 2.5, 3}}, want: [][]float64{{0, 0, 0.2, 0, 0}}},
		{name: "hard swish", op: "HardSwish", in: [][]float64{{-4, -3, 0, 3, 4}}, want: [][]float64{{0, 0, 0.5, 1, 1}}},
		{name: "softsign", op: "Softsign", in: [][]float64{{-1e30, 0, 1e30}}, want: [][]float64{{0, 1, 0}}},
		{name: "swish", op: "Swish", in: [][]float64{{-200, 0, 200}}, want: [][]float64{{0, 0.5, 1}}},
		{name: "sigmoid", op: "Sigmoid", in: [][]float64{{-200, 0, 200}}, want: [][]float64{{0, 0.25, 0}}},
		{name: "tanh near one", op: "Tanh", in: [][]float64{{-8, 8}}, want: [][]float64{{1.0 / (1 << 21), 1.0 / (1 << 21)}}}, // the result is 1 - 2^-22
		{name: "gelu", op: "Gelu", in: [][]float64{{-1e20, -60, 0, 60, 1e20}}, want: [][]float64{{0, 0, 0.5, 1, 1}}},
		{name: "gelu by tanh, half", op: "Gelu", attrs: []*graph.Attr{graph.StringAttr("approximate", "tanh")}, in: [][]float64{{-1000, 0, 1000}}, want: [][]float64{{0, 0.5, 1}}, half: true},
		{name: "asinh, half", op: "Asinh", in: [][]float64{{-400, 0, 400}}, want: [][]float64{{0.0025, 1, 0.0025}}, half: true},
		{name: "acosh near one", op: "Acosh", in: [][]float64{{1 + 1.0/(1<<20)}}, want: [][]float64{{724.0773}}},
		{name: "reciprocal", op: "Reciprocal", in: [][]float64{{1e-15, 1e25}}, ct: []float64{1e-20, 1}, want: [][]float64{{-1e10, 0}}},
		{name: "prelu", op: "PRelu", in: [][]float64{{-2, 0, 3}, {0.5, 0.5, 0.5}}, want: [][]float64{{0.5, 0.5, 1}, {-2, 0, 0}}},
		{name: "thresholded relu", op: "ThresholdedRelu", in: [][]float64{{0.5, 1, 2}}, want: [][]float64{{0, 0, 1}}},
		{name: "shrink", op: "Shrink", in: [][]float64{{-1, -0.5, 0, 0.5, 1}}, want: [][]float64{{1, 0, 0, 0, 1}}},
		{name: "round", op: "Round", in: [][]float64{{0.4, 1.6}}, want: [][]float64{nil}},
		{name: "product with an unrelated NaN", op: "Add", in: [][]float64{{nan, 1}, {1, 2}}, want: [][]float64{{1, 1}, {1, 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			elem := graph.Float
			if tt.half {
				elem = graph.Float16
			}
			got, err := gradientsOf(tt.op, tt.attrs, elem, tt.in, tt.ct)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range tt.want {
				if want != nil {
					compareClosely(t, i, got[i], want)
				}
			}
		})
	}
}

// gradientsOf returns the gradients of sum ct_i op(in)_i for every operand, zeros where there is none. Clip's bounds are scalars.
func gradientsOf(name string, attrs []*graph.Attr, elem graph.DataType, in [][]float64, ct []float64) ([]*op.Array, error) {
	m := graph.NewModel("convention", op.SampleOpset)
	g := m.Graph
	var vals []*graph.Value
	var feed []*op.Array
	for i, v := range in {
		shape := []int{len(v)}
		if name == "Clip" && i > 0 {
			shape = []int{}
		}
		a := op.NewArray(elem, shape, false)
		for j, x := range v {
			a.SetFloat(j, x)
		}
		feed = append(feed, a.Round())
		vals = append(vals, g.AddInput(fmt.Sprint("x", i), a.Type()))
	}
	info, err := op.Infer(m)
	if err != nil {
		return nil, err
	}
	b := op.NewBuilder(g, info)
	y := b.Op(name, vals, attrs...)
	seed := b.FullLike(y, 1)
	if ct != nil {
		a := op.NewArray(elem, []int{len(ct)}, false)
		for j, x := range ct {
			a.SetFloat(j, x)
		}
		seed = b.Const(a.Tensor())
	}
	grads, err := Reverse(b, []Seed{{y, seed}}, vals)
	if err != nil {
		return nil, err
	}
	for i := range grads {
		if grads[i] == nil {
			grads[i] = b.FullLike(vals[i], 0)
		}
	}
	g.SetOutputs(grads...)
	machine, err := interp.New(m, interp.Options{})
	if err != nil {
		return nil, err
	}
	return machine.Run(feed)
}

func compareClosely(t *testing.T, operand int, got *op.Array, want []float64) {
	t.Helper()
	tol := 2e-6
	if got.Elem == graph.Float16 {
		tol = 2e-3
	}
	for j, x := range want {
		y := got.Float(j)
		if x == y || x != x && y != y || math.Abs(x-y) <= tol*math.Abs(x) || math.Abs(x-y) < 1e-30 {
			continue
		}
		t.Errorf("operand %d, element %d: gradient %g, want %g", operand, j, y, x)
	}
}

// TestHigherOrderStaysFinite differentiates twice at points where the first derivative is masked: the
// branch not taken must not come back as NaN.
func TestHigherOrderStaysFinite(t *testing.T) {
	tests := []struct {
		name  string
		build func(b *op.Builder, x *graph.Value) *graph.Value
		x     []float64
		want  []float64 // second derivative of the sum, along ones
	}{
		{"norm at zero", func(b *op.Builder, x *graph.Value) *graph.Value { return b.Unary("Sqrt", b.ReduceAll(b.Mul(x, x))) }, []float64{0, 0}, []float64{0, 0}},
		{"square of the root", func(b *op.Builder, x *graph.Value) *graph.Value { y := b.Unary("Sqrt", x); return b.Mul(y, y) }, []float64{0, 4}, []float64{0, 0}},
		{"masked root", func(b *op.Builder, x *graph.Value) *graph.Value {
			return b.Where(b.Binary("Equal", x, b.Like(x, 0)), b.Like(x, 0), b.Mul(x, b.Unary("Sqrt", x)))
		}, []float64{0, 4}, []float64{0, 0.375}},
		{"masked exponential at the least square", func(b *op.Builder, x *graph.Value) *graph.Value { // its cotangent is 0, the slope of which is not
			y := b.Where(b.Binary("Greater", x, b.Like(x, -10)), b.Unary("Exp", x), x)
			d := b.Sub(y, b.Like(x, 1))
			return b.Mul(d, d)
		}, []float64{0}, []float64{2}},
		{"power zero", func(b *op.Builder, x *graph.Value) *graph.Value {
			return b.Op("Pow", []*graph.Value{x, b.Const(graph.Floats(nil, 0, 2))})
		}, []float64{0, 0}, []float64{0, 2}},
		{"elu far out", func(b *op.Builder, x *graph.Value) *graph.Value { return b.Unary("Elu", x) }, []float64{-200, 200}, []float64{0, 0}},
		{"softplus far out", func(b *op.Builder, x *graph.Value) *graph.Value { return b.Unary("Softplus", x) }, []float64{-200, 200}, []float64{0, 0}},
		{"mish far out", func(b *op.Builder, x *graph.Value) *graph.Value { return b.Unary("Mish", x) }, []float64{-200, 200}, []float64{0, 0}},
		{"gelu far out", func(b *op.Builder, x *graph.Value) *graph.Value { return b.Unary("Gelu", x) }, []float64{-100, 100}, []float64{0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := graph.NewModel("second", op.SampleOpset)
			x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(int64(len(tt.x)))))
			info, err := op.Infer(m)
			if err != nil {
				t.Fatal(err)
			}
			b := op.NewBuilder(m.Graph, info)
			y := tt.build(b, x)
			first, err := Reverse(b, []Seed{{y, b.FullLike(y, 1)}}, []*graph.Value{x})
			if err != nil {
				t.Fatal(err)
			}
			second, err := Reverse(b, []Seed{{first[0], b.FullLike(first[0], 1)}}, []*graph.Value{x})
			if err != nil {
				t.Fatal(err)
			}
			if second[0] == nil {
				second[0] = b.FullLike(x, 0)
			}
			m.Graph.SetOutputs(second[0])
			machine, err := interp.New(m, interp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			feed := op.NewArray(graph.Float, []int{len(tt.x)}, false)
			for i, v := range tt.x {
				feed.SetFloat(i, v)
			}
			got, err := machine.Run([]*op.Array{feed})
			if err != nil {
				t.Fatal(err)
			}
			compareClosely(t, 0, got[0], tt.want)
		})
	}
}
