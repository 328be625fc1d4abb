package autodiff

import (
	"fmt"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// TestIndexConventions pins what finite differences cannot see: repeated and negative indices, ties, zero factors,
// equal elements. The cotangent of each result is 1, 2, 3, ...
func TestIndexConventions(t *testing.T) {
	reduce := func(r string) []*graph.Attr { return []*graph.Attr{graph.StringAttr("reduction", r)} }
	vec := func(v ...float64) op.Arg { return op.FV([]int{len(v)}, v...) }
	tuples := op.TV(graph.Int64, []int{3, 1}, 1, -1, 1)
	tests := []struct {
		name, op string
		in       []op.Arg
		attrs    []*graph.Attr
		want     []string // the cotangents of the float operands
	}{
		{"repeated and negative indices accumulate", "Gather", []op.Arg{vec(1, 2, 3), op.I(2, -1, 0)}, nil, []string{"[3 0 3]"}},
		{"repeated tuples accumulate", "GatherND", []op.Arg{op.FV([]int{2, 2}, 1, 2, 3, 4), op.TV(graph.Int64, []int{2, 2}, 1, 1, -1, 1)}, nil, []string{"[0 0 0 3]"}},
		{"repeated elements accumulate", "GatherElements", []op.Arg{vec(1, 2, 3), op.I(0, -3, 2)}, nil, []string{"[3 0 3]"}},
		{"written elements stop", "ScatterElements", []op.Arg{vec(1, 2, 3), op.I(-1), vec(9)}, nil, []string{"[1 2 0]", "[3]"}},
		{"all addends", "ScatterND", []op.Arg{vec(1, 2, 3), tuples, vec(4, 5, 6)}, reduce("add"), []string{"[1 2 3]", "[2 3 2]"}},
		// Place 1 holds 2*4*6, place 2 holds 3*5.
		{"factors", "ScatterND", []op.Arg{vec(1, 2, 3), tuples, vec(4, 5, 6)}, reduce("mul"), []string{"[1 48 15]", "[24 9 16]"}},
		{"one factor is zero", "ScatterND", []op.Arg{vec(1, 2, 3), tuples, vec(0, 5, 6)}, reduce("mul"), []string{"[1 0 15]", "[24 9 0]"}},
		{"two factors are zero", "ScatterND", []op.Arg{vec(1, 2, 3), tuples, vec(0, 5, 0)}, reduce("mul"), []string{"[1 0 15]", "[0 9 0]"}},
		{"data is zero", "ScatterElements", []op.Arg{vec(1, 0, 3), op.I(1, 2, 1), vec(4, 5, 6)}, reduce("mul"), []string{"[1 48 15]", "[0 9 0]"}},
		{"ties share, data among them", "ScatterND", []op.Arg{vec(1, 6, 3), tuples, vec(4, 3, 6)}, reduce("max"), []string{"[1 1 1.5]", "[0 1.5 1]"}},
		{"ties of minima", "ScatterElements", []op.Arg{vec(1, 6, 3), op.I(1, 2, 1), vec(4, 3, 4)}, reduce("min"), []string{"[1 0 1.5]", "[1 1.5 1]"}},
		{"the first of equal elements is chosen", "TopK", []op.Arg{vec(3, 1, 3, 3), op.I(2)}, nil, []string{"[1 0 2 0]"}},
		{"equal elements share", "Unique", []op.Arg{vec(2, 1, 2, 2)}, nil, []string{"[0.6666667 1 0.6666667 0.6666667]"}},
		{"outside the depth is off", "OneHot", []op.Arg{op.I(1, 5, -1), op.IS(2), vec(0, 1)}, nil, []string{"[13 8]"}},
		{"a border of reflections", "Pad", []op.Arg{vec(1, 2, 3), op.I(2, 1)}, []*graph.Attr{graph.StringAttr("mode", "reflect")}, []string{"[3 12 6]"}},
		{"a border of edges", "Pad", []op.Arg{vec(1, 2), op.I(2, 1)}, []*graph.Attr{graph.StringAttr("mode", "edge")}, []string{"[6 9]"}},
		{"a border wrapped round", "Pad", []op.Arg{vec(1, 2, 3), op.I(1, 2)}, []*graph.Attr{graph.StringAttr("mode", "wrap")}, []string{"[7 9 5]"}},
	}
	for _, tt := range tests {
		for _, hide := range []string{"", "all"} {
			t.Run(tt.name+"/"+hide, func(t *testing.T) {
				got, err := gradients(tt.op, tt.in, tt.attrs, hide)
				if err != nil {
					t.Fatal(err)
				}
				if fmt.Sprint(got) != fmt.Sprint(tt.want) {
					t.Errorf("cotangents %v, want %v", got, tt.want)
				}
			})
		}
	}
}

// gradients returns the cotangents of the float operands of one node, for 1, 2, 3, ... as that of its first result.
func gradients(name string, in []op.Arg, attrs []*graph.Attr, hide string) ([]string, error) {
	d := op.Lookup(op.Key{Name: name})
	m, feed, err := op.SampleModel(d, op.Sample{In: in, Attrs: attrs}, 1, hide)
	if err != nil {
		return nil, err
	}
	info, err := op.Infer(m)
	if err != nil {
		return nil, err
	}
	machine, err := interp.New(m, interp.Options{})
	if err != nil {
		return nil, err
	}
	out, err := machine.Run(feed)
	if err != nil {
		return nil, err
	}
	ct := op.NewArray(graph.Float, out[0].Shape, false)
	for i := range ct.F32 {
		ct.F32[i] = float32(i + 1)
	}
	var wrt []*graph.Value
	for _, v := range m.Graph.Inputs {
		if v.Type.Elem.IsFloat() {
			wrt = append(wrt, v)
		}
	}
	b := op.NewBuilder(m.Graph, info)
	grads, err := Reverse(b, []Seed{{m.Graph.Outputs[0], b.Const(ct.Tensor())}}, wrt)
	if err != nil {
		return nil, err
	}
	m.Graph.SetOutputs(grads...)
	if machine, err = interp.New(m, interp.Options{}); err != nil {
		return nil, err
	}
	if out, err = machine.Run(feed); err != nil {
		return nil, err
	}
	var text []string
	for _, a := range out {
		text = append(text, fmt.Sprint(a.F32))
	}
	return text, nil
}
