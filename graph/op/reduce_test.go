package op_test

import (
	"fmt"
	"math"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// evaluate applies an operator to the given operands and returns its results.
func evaluate(t *testing.T, name string, outs int, in []op.Arg, attrs ...*graph.Attr) []*op.Array {
	t.Helper()
	d := op.Lookup(op.Key{Name: name})
	m, feed, err := op.SampleModel(d, op.Sample{In: in, Attrs: attrs, Outs: outs}, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := op.Infer(m); err != nil {
		t.Fatal(err)
	}
	machine, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := machine.Run(feed)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReduceValues(t *testing.T) {
	inf := math.Inf(1)
	empty := op.FV([]int{2, 0}, []float64{}...)
	empty.Values = []float64{}
	emptyInt := op.TV(graph.Int32, []int{2, 0})
	emptyInt.Values = []float64{}
	drop := graph.IntAttr("keepdims", 0)
	noop := graph.IntAttr("noop_with_empty_axes", 1)
	x := op.FV([]int{2, 2}, 3, -4, 0, 2)
	cases := []struct {
		op    string
		in    []op.Arg
		attrs []*graph.Attr
		want  string
	}{
		{"ReduceSum", []op.Arg{empty, op.I(1)}, []*graph.Attr{drop}, "float[2] [0 0]"},
		{"ReduceProd", []op.Arg{empty, op.I(1)}, []*graph.Attr{drop}, "float[2] [1 1]"},
		{"ReduceMax", []op.Arg{empty, op.I(1)}, []*graph.Attr{drop}, "float[2] [-Inf -Inf]"},
		{"ReduceMin", []op.Arg{empty, op.I(1)}, []*graph.Attr{drop}, "float[2] [+Inf +Inf]"},
		{"ReduceLogSumExp", []op.Arg{empty, op.I(1)}, []*graph.Attr{drop}, "float[2] [-Inf -Inf]"},
		{"ReduceMax", []op.Arg{emptyInt, op.I(1)}, []*graph.Attr{drop}, "int32[2] [-2147483648 -2147483648]"},
		{"ReduceMin", []op.Arg{emptyInt, op.I(1)}, []*graph.Attr{drop}, "int32[2] [2147483647 2147483647]"},
		{"ReduceSumSquare", []op.Arg{x}, []*graph.Attr{noop}, "float[2,2] [9 16 0 4]"},
		{"ReduceL1", []op.Arg{x, op.I()}, []*graph.Attr{noop}, "float[2,2] [3 4 0 2]"},
		{"ReduceL2", []op.Arg{x, op.I(-1)}, []*graph.Attr{drop}, "float[2] [5 2]"},
		{"ReduceMean", []op.Arg{op.TV(graph.Int32, []int{3}, 4, 5, 9), op.I(0)}, nil, "int32[1] [6]"},
		{"ReduceMax", []op.Arg{op.TV(graph.Bool, []int{3}, 0, 1, 0)}, []*graph.Attr{drop}, "bool[] [1]"},
		{"ReduceMax", []op.Arg{op.FV([]int{3}, 1, math.NaN(), 2)}, []*graph.Attr{drop}, "float[] [NaN]"},
		{"ReduceLogSumExp", []op.Arg{op.FV([]int{2}, -inf, -inf)}, []*graph.Attr{drop}, "float[] [-Inf]"},
		{"ReduceSum", []op.Arg{op.TV(graph.Uint32, []int{2}, 4294967295, 2)}, []*graph.Attr{drop}, "uint32[] [1]"},
		{"ArgMax", []op.Arg{op.FV([]int{4}, 1, 7, 7, 0)}, []*graph.Attr{drop}, "int64[] [1]"},
		{"ArgMax", []op.Arg{op.FV([]int{4}, 1, 7, 7, 0)}, []*graph.Attr{drop, graph.IntAttr("select_last_index", 1)}, "int64[] [2]"},
		{"ArgMin", []op.Arg{op.TV(graph.Uint64, []int{2}, -1, 5)}, []*graph.Attr{drop}, "int64[] [1]"},
		{"CumSum", []op.Arg{op.FV([]int{3}, 1, 2, 3), op.IS(0)}, []*graph.Attr{graph.IntAttr("exclusive", 1), graph.IntAttr("reverse", 1)}, "float[3] [5 3 0]"},
		{"CumProd", []op.Arg{op.FV([]int{3}, 1, 2, 3), op.IS(0)}, []*graph.Attr{graph.IntAttr("exclusive", 1)}, "float[3] [1 1 2]"},
		{"LpNormalization", []op.Arg{op.FV([]int{2, 2}, 0, 0, 3, 4)}, nil, "float[2,2] [0 0 0.6 0.8]"},
		{"Hardmax", []op.Arg{op.FV([]int{3}, 2, 5, 5)}, nil, "float[3] [0 1 0]"},
	}
	for _, c := range cases {
		t.Run(fmt.Sprint(c.op, c.want), func(t *testing.T) {
			if got := fmt.Sprint(evaluate(t, c.op, 1, c.in, c.attrs...)[0]); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestReduceFollowsShapes: the number of elements of a symbolic shape is its product.
func TestReduceFollowsShapes(t *testing.T) {
	cases := []struct{ op, want string }{
		{"ReduceProd", "6*N"}, {"ReduceSum", "N + 5"}, {"ReduceMax", "max(N, 3)"}, {"ReduceMin", "min(N, 2)"},
	}
	for _, c := range cases {
		m := graph.NewModel("shapes", op.SampleOpset)
		x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.Shape{graph.Sym("N"), graph.Known(2), graph.Known(3)}))
		info, err := op.Infer(m)
		if err != nil {
			t.Fatal(err)
		}
		b := op.NewBuilder(m.Graph, info)
		v := b.Unary(c.op, b.Shape(x), graph.IntAttr("keepdims", 0))
		if d := info.Dims(v); len(d) != 1 || d[0].String() != c.want {
			t.Errorf("%s: got %v, want %s", c.op, d, c.want)
		}
	}
}

// TestAttentionMaskedRow: a query that sees no key has the result 0, not NaN.
func TestAttentionMaskedRow(t *testing.T) {
	q, k := op.FV([]int{1, 1, 2, 1}, 1, 2), op.FV([]int{1, 1, 2, 1}, 3, 5)
	mask := op.TV(graph.Bool, []int{2, 2}, 0, 0, 1, 0)
	y := evaluate(t, "Attention", 1, []op.Arg{q, k, k, mask})[0]
	if got := fmt.Sprint(y.F32); got != "[0 3]" {
		t.Errorf("got %s, want [0 3]", got)
	}
}
