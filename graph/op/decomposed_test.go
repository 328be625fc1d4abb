package op_test

import (
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// TestUncoveredForms applies operators of ONNX Runtime in forms that the decompositions do not cover: inference still
// tells element types and reports no error, checking and evaluating say what is missing.
func TestUncoveredForms(t *testing.T) {
	n := func(name string, v int64) *graph.Attr { return graph.IntAttr(name, v) }
	i32 := func(v ...float64) op.Arg { return op.TV(graph.Int32, []int{len(v)}, v...) }
	var no op.Arg
	qkv := []op.Arg{op.F(1, 2, 4), op.F(1, 2, 4), op.F(1, 2, 4)}
	for _, c := range []struct {
		name  string
		in    []op.Arg
		attrs []*graph.Attr
		want  string
	}{
		{"MultiHeadAttention", append(qkv, no, no, no, no, no, i32(1)), []*graph.Attr{n("num_heads", 2)}, "past_sequence_length"},
		{"Attention", []op.Arg{op.F(1, 2, 4), op.F(4, 12)}, []*graph.Attr{n("num_heads", 2), n("do_rotary", 1)}, "rotary"},
		{"GroupQueryAttention", append(qkv, no, no, i32(1), i32(2)), []*graph.Attr{n("num_heads", 2), n("kv_num_heads", 2), n("smooth_softmax", 1)}, "smooth softmax"},
		{"MatMulNBits", []op.Arg{op.F(2, 4), op.TV(graph.Uint8, []int{1, 1, 3}, 1, 2, 3), op.F(1)}, []*graph.Attr{n("K", 4), n("N", 1), n("bits", 6), n("block_size", 4)}, "6 bits"},
		{"FusedGemm", []op.Arg{op.F(2, 3), op.F(3, 2)}, []*graph.Attr{graph.StringAttr("activation", "Swirl")}, `activation "Swirl"`},
		{"QLinearConv", []op.Arg{op.TV(graph.Uint8, []int{1, 1, 1, 1}, 3), op.FV(nil, 1), op.TV(graph.Uint8, nil, 0), op.TV(graph.Uint8, []int{1, 1, 1, 1}, 3), op.FV(nil, 1), op.TV(graph.Uint8, nil, 0), op.FV(nil, 1), op.TV(graph.Uint8, nil, 0)},
			[]*graph.Attr{n("channels_last", 1)}, "channels in the last axis"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := op.Lookup(op.Key{Domain: "com.microsoft", Name: c.name})
			m, feed, err := op.SampleModel(d, op.Sample{In: c.in, Attrs: c.attrs}, 1, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := op.Infer(m); err != nil {
				t.Errorf("inference: %v", err)
			}
			if got := m.Graph.Outputs[0].Type.Elem; got == graph.Undefined {
				t.Error("the result's element type is not inferred")
			}
			if err := op.CheckDecomposition(m.Graph.Nodes[0]); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("check: %v, want %q", err, c.want)
			}
			machine, err := interp.New(m, interp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := machine.Run(feed); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("evaluation: %v, want %q", err, c.want)
			}
		})
	}
}

// TestImpossibleDecompositions demands an error of inference where the standard operators behind a node cannot work.
func TestImpossibleDecompositions(t *testing.T) {
	d := op.Lookup(op.Key{Domain: "com.microsoft", Name: "FusedMatMul"})
	m, _, err := op.SampleModel(d, op.Sample{In: []op.Arg{op.F(2, 3), op.F(4, 5)}}, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := op.Infer(m); err == nil || !strings.Contains(err.Error(), "MatMul") {
		t.Errorf("got %v, want an error about MatMul", err)
	}
}

// TestDecomposedCost expects the work of the operators behind a node.
func TestDecomposedCost(t *testing.T) {
	d := op.Lookup(op.Key{Domain: "com.microsoft", Name: "FusedMatMul"})
	m, _, err := op.SampleModel(d, d.Samples[0], 1, "")
	if err != nil {
		t.Fatal(err)
	}
	got := d.Cost(&op.CostCtx{Node: m.Graph.Nodes[0], In: [][]int{{2, 3}, {3, 4}}, Out: [][]int{{2, 4}}})
	if got != 2*2*3*4 {
		t.Errorf("cost %g, want 48: two operations for each of 24 products", got)
	}
}
