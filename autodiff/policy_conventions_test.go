package autodiff

import (
	"fmt"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// TestSelectableConventions states what ties and singular points give under each choice, in reverse and forward mode.
func TestSelectableConventions(t *testing.T) {
	all := &Policy{Ties: TiesAll}
	formula := &Policy{Singular: SingularFormula}
	axis := op.I(0)
	for _, c := range []struct {
		op     string
		in     []op.Arg
		policy *Policy
		want   string // gradient of operand 0 for a cotangent of ones
		slope  string // tangent of the result along ones of operand 0
	}{
		{"Max", []op.Arg{op.FV([]int{2}, 1, 2), op.FV([]int{2}, 1, 1)}, nil, "[0.5 1]", "[0.5 1]"},
		{"Max", []op.Arg{op.FV([]int{2}, 1, 2), op.FV([]int{2}, 1, 1)}, all, "[1 1]", "[1 1]"},
		{"Min", []op.Arg{op.FV([]int{1}, 1), op.FV([]int{1}, 1), op.FV([]int{1}, 1)}, all, "[1]", "[1]"},
		{"ReduceMax", []op.Arg{op.FV([]int{3}, 2, 2, 1), axis}, nil, "[0.5 0.5 0]", "[1]"},
		{"ReduceMax", []op.Arg{op.FV([]int{3}, 2, 2, 1), axis}, all, "[1 1 0]", "[2]"},
		{"Sqrt", []op.Arg{op.FV([]int{2}, 0, 4)}, nil, "[0 0.25]", "[0 0.25]"},
		{"Sqrt", []op.Arg{op.FV([]int{2}, 0, 4)}, formula, "[+Inf 0.25]", "[+Inf 0.25]"},
		{"ReduceL2", []op.Arg{op.FV([]int{2}, 0, 0), axis}, nil, "[0 0]", "[0]"},
		{"ReduceL2", []op.Arg{op.FV([]int{2}, 0, 0), axis}, formula, "[NaN NaN]", "[NaN]"},
	} {
		name := fmt.Sprintf("%s/%v", c.op, c.policy)
		m, feed, err := op.SampleModel(op.Lookup(op.Key{Name: c.op}), op.Sample{In: c.in}, 1, "")
		if err != nil {
			t.Fatal(err)
		}
		info, err := op.Infer(m)
		if err != nil {
			t.Fatal(err)
		}
		b := op.NewBuilder(m.Graph, info)
		x, y := m.Graph.Inputs[0], m.Graph.Outputs[0]
		grads, err := ReverseWith(b, []Seed{{y, b.FullLike(y, 1)}}, []*graph.Value{x}, LoopPlan{}, c.policy)
		if err != nil {
			t.Fatal(err)
		}
		slopes, err := ForwardWith(b, []Tangent{{x, b.FullLike(x, 1)}}, []*graph.Value{y}, c.policy)
		if err != nil {
			t.Fatal(err)
		}
		m.Graph.SetOutputs(grads[0], slopes[0])
		machine, err := interp.New(m, interp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		out, err := machine.Run(feed)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(out[0].F32); got != c.want {
			t.Errorf("%s: gradient %s, want %s", name, got, c.want)
		}
		if got := fmt.Sprint(out[1].F32); got != c.slope {
			t.Errorf("%s: slope %s, want %s", name, got, c.slope)
		}
	}
}
