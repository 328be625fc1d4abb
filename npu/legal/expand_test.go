package legal_test

import (
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/npu/legal"
)

// TestExpansionLimits lowers nodes whose expansion would be too large: they are listed before anything of that size is made.
func TestExpansionLimits(t *testing.T) {
	const huge = 1 << 40
	ints := func(v ...int64) func(b *op.Builder) *graph.Value {
		return func(b *op.Builder) *graph.Value { return b.Ints(v...) }
	}
	none := func(*op.Builder) *graph.Value { return nil }
	for _, c := range []struct {
		name, op string
		in       [][]int64
		more     []func(b *op.Builder) *graph.Value
		attrs    []*graph.Attr
		want     string
	}{
		{"resize", "Resize", [][]int64{{1, 1, 1 << 20, 1}}, []func(b *op.Builder) *graph.Value{none, none, ints(1, 1, huge, 1)},
			[]*graph.Attr{graph.StringAttr("mode", "linear")}, "an axis of 1048576 elements becomes one of 1099511627776"},
		{"transform", "DFT", [][]int64{{1, huge, 2}}, nil, nil, "a transform of 1099511627776 elements"},
		{"columns", "Col2Im", [][]int64{{1, huge, 9}}, []func(b *op.Builder) *graph.Value{ints(4, 4), ints(2, 2)}, nil, "1099511627776 blocks of 4 elements"},
		{"sequences", "ReverseSequence", [][]int64{{huge, 2}}, []func(b *op.Builder) *graph.Value{ints(1, 2)}, nil, "a sequence of 1099511627776 elements"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := graph.NewModel("limits", op.SampleOpset)
			var in []*graph.Value
			for i, s := range c.in {
				in = append(in, m.Graph.AddInput(string(rune('a'+i)), graph.TensorOf(graph.Float, graph.ShapeOf(s...))))
			}
			info, err := op.Infer(m)
			if err != nil {
				t.Fatal(err)
			}
			b := op.NewBuilder(m.Graph, info)
			for _, f := range c.more {
				in = append(in, f(b))
			}
			m.Graph.AddOutput(b.Op(c.op, in, c.attrs...))
			if b.Err != nil {
				t.Fatal(b.Err)
			}
			p, err := legal.Lower(m)
			if err != nil {
				t.Fatal(err)
			}
			if !listed(p, c.want) {
				t.Errorf("%+v, want %q", p.Fallbacks, c.want)
			}
		})
	}
}

// TestLongLoop lowers a loop that is too long to be written out.
func TestLongLoop(t *testing.T) {
	m := graph.NewModel("loop", op.SampleOpset)
	x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(2)))
	info, err := op.Infer(m)
	if err != nil {
		t.Fatal(err)
	}
	b := op.NewBuilder(m.Graph, info)
	n := b.Loop(b.IntScalar(1<<40), nil, []*graph.Value{x}, nil, func(b *op.Builder, _ *graph.Value, state []*graph.Value) op.LoopBody {
		return op.LoopBody{Next: []*graph.Value{b.Add(state[0], state[0])}}
	})
	m.Graph.AddOutput(n.Out[0])
	p, err := legal.Lower(m)
	if err != nil {
		t.Fatal(err)
	}
	if !listed(p, "more than 4096") {
		t.Errorf("%+v", p.Fallbacks)
	}
}

// listed reports whether a node is left for a reason that holds the text.
func listed(p *legal.Program, text string) bool {
	for _, f := range p.Fallbacks {
		if strings.Contains(f.Reason, text) {
			return true
		}
	}
	return false
}
