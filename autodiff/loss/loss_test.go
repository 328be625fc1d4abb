package loss

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// attached returns a model that computes loss and derivative of its input y, both as outputs.
func attached(t *testing.T, spec string, elem graph.DataType, shape graph.Shape) *graph.Model {
	t.Helper()
	s, err := Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	m := graph.NewModel("loss", op.SampleOpset)
	y := m.Graph.AddInput("y", graph.TensorOf(elem, shape))
	info, err := op.Infer(m)
	if err != nil {
		t.Fatal(err)
	}
	b := op.NewBuilder(m.Graph, info)
	a, err := Attach(b, s, y)
	if err != nil {
		t.Fatal(err)
	}
	if b.Err != nil {
		t.Fatal(b.Err)
	}
	if a.Loss.Type.Elem != elem || a.Ct.Type.Elem != elem {
		t.Errorf("%s of %s: the loss is %s, its derivative %s", spec, elem, a.Loss.Type, a.Ct.Type)
	}
	m.Graph.SetOutputs(a.Loss, a.Ct)
	return m
}

func run(t *testing.T, m *graph.Model, wide bool, feed ...*op.Array) []*op.Array {
	t.Helper()
	machine, err := interp.New(m, interp.Options{Wide: wide})
	if err != nil {
		t.Fatal(err)
	}
	out, err := machine.Run(feed)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDerivatives compares each loss's derivative with central differences of the loss, element by element.
func TestDerivatives(t *testing.T) {
	for _, c := range []struct {
		spec   string
		shape  []int
		target []int // shape of class targets; nil for mse
	}{
		{"softmax-cross-entropy", []int{3, 4}, []int{3}},
		{"softmax-cross-entropy", []int{4}, []int{}},
		{"softmax-cross-entropy", []int{2, 4, 3}, []int{2, 3}},
		{"softmax-cross-entropy,axis=-1", []int{2, 3, 4}, []int{2, 3}},
		{"softmax-cross-entropy,reduction=sum", []int{3, 4}, []int{3}},
		{"softmax-cross-entropy,ignore=1", []int{3, 4}, []int{3}},
		{"softmax-cross-entropy,axis=-1,ignore=-100,reduction=sum", []int{2, 3, 4}, []int{2, 3}},
		{"mse", []int{3, 2}, nil},
		{"mse,reduction=sum", []int{3, 2}, nil},
	} {
		for _, symbolic := range []bool{false, true} {
			t.Run(fmt.Sprint(c.spec, c.shape, symbolic), func(t *testing.T) {
				y := op.NewArray(graph.Double, c.shape, true)
				for i := range y.F64 {
					y.F64[i] = math.Sin(float64(3*i + 1))
				}
				shape := y.Type().Shape
				if symbolic {
					for i := range shape {
						shape[i] = graph.Sym(fmt.Sprint("N", i))
					}
				}
				target := op.NewArray(graph.Double, c.shape, true)
				if c.target != nil {
					target = op.NewArray(graph.Int64, c.target, true)
					for i := range target.I64 {
						target.I64[i] = int64(i % 4)
					}
				}
				m := attached(t, c.spec, graph.Double, shape)
				ct := run(t, m, true, y, target)[1]
				const h = 1e-6
				for i := range y.F64 {
					up, down := y.Clone(), y.Clone()
					up.F64[i] += h
					down.F64[i] -= h
					slope := (run(t, m, true, up, target)[0].F64[0] - run(t, m, true, down, target)[0].F64[0]) / (2 * h)
					if math.Abs(slope-ct.F64[i]) > 1e-8 {
						t.Errorf("element %d: derivative %g, difference %g", i, ct.F64[i], slope)
					}
				}
			})
		}
	}
}

// TestManyRows has more rows than a 16-bit float can count: loss and derivative must be neither zero nor infinite.
func TestManyRows(t *testing.T) {
	const rows = 70000
	for _, elem := range []graph.DataType{graph.Float16, graph.BFloat16, graph.Float} {
		for _, spec := range []string{"softmax-cross-entropy", "softmax-cross-entropy,ignore=7", "mse"} {
			y := op.NewArray(elem, []int{rows, 2}, false)
			target := op.NewArray(elem, []int{rows, 2}, false)
			wantLoss, wantCt := math.Ln2, 0.5/rows
			if spec == "mse" {
				for i := range y.F32 {
					y.F32[i] = 4
				}
				wantLoss, wantCt = 16, 4.0/rows
			} else {
				target = op.NewArray(graph.Int64, []int{rows}, false)
			}
			out := run(t, attached(t, spec, elem, graph.ShapeOf(rows, 2)), false, y, target)
			// 2^-24 is the spacing of the smallest float16 numbers.
			if got := out[0].Float(0); math.Abs(got-wantLoss) > 5e-3*wantLoss {
				t.Errorf("%s of %s: loss %g, want %g", spec, elem, got, wantLoss)
			}
			if got := out[1].Float(1); math.Abs(got-wantCt) > 5e-3*wantCt+1.0/(1<<25) {
				t.Errorf("%s of %s: derivative %g, want %g", spec, elem, got, wantCt)
			}
		}
	}
}

// TestNothingCounts: a batch of padding alone has no mean loss, but moves no weight either.
func TestNothingCounts(t *testing.T) {
	for _, elem := range []graph.DataType{graph.Float16, graph.Float, graph.Double} {
		y, target := op.NewArray(elem, []int{2, 3}, false), op.NewArray(graph.Int64, []int{2}, false)
		for i := range target.I64 {
			target.I64[i] = -100
		}
		out := run(t, attached(t, "softmax-cross-entropy,ignore=-100", elem, graph.ShapeOf(2, 3)), false, y, target)
		if !math.IsNaN(out[0].Float(0)) {
			t.Errorf("%s: the loss is %g", elem, out[0].Float(0))
		}
		for i := range out[1].Len() {
			if out[1].Float(i) != 0 {
				t.Errorf("%s: derivative %d is %g", elem, i, out[1].Float(i))
			}
		}
	}
}

// TestParse holds that an error says which part is wrong: the kind, the option, or its value.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 `unknown loss ""`,
		"l1":                               `unknown loss "l1"`,
		"mse,axis=1":                       `does not take the option "axis"`,
		"mse,axis=x":                       `does not take the option "axis"`,
		"mse,speed=1":                      `does not take the option "speed"`,
		"softmax-cross-entropy,axis":       "want key=value",
		"softmax-cross-entropy,axis=x":     "axis=x: want an integer",
		"softmax-cross-entropy,axis=":      "axis=: want an integer",
		"softmax-cross-entropy,ignore=1.5": "ignore=1.5: want an integer",
		"softmax-cross-entropy,axis=99999999999999999999": "want an integer of 64 bits",
		"mse,reduction=max": "reduction=max: want mean or sum",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, good := range []string{"mse", "mse,reduction=sum", "softmax-cross-entropy,axis=-1,ignore=-100,reduction=mean"} {
		if _, err := Parse(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}
