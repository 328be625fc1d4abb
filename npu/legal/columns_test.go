package legal

import (
	"slices"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

// TestColumns counts kernels: what a concatenation and a convolution read where it lies is not copied.
func TestColumns(t *testing.T) {
	ints := graph.IntsAttr
	for _, c := range []struct {
		name    string
		in      [][]int
		build   func(b *op.Builder, x []*graph.Value) []*graph.Value
		kernels int
	}{
		{"columns of a padded image", [][]int{{2, 3, 6, 6}, {8, 27}}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			p := b.Op("Pad", []*graph.Value{x[0], b.Ints(0, 0, 1, 1, 0, 0, 1, 1)})
			var taps []*graph.Value
			for i := range int64(9) {
				taps = append(taps, b.Slice(p, b.Ints(i/3, i%3), b.Ints(i/3+6, i%3+6), b.Ints(2, 3), b.Ints(1, 1)))
			}
			return []*graph.Value{b.MatMul(x[1], b.ReshapeTo(b.Concat(1, taps...), 2, 27, 36))}
		}, 2}, // the padding and the product
		{"halves the other way round", [][]int{{4, 8}}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.Concat(1, b.Slice(x[0], b.Ints(4), b.Ints(8), b.Ints(1), b.Ints(1)), b.Slice(x[0], b.Ints(0), b.Ints(4), b.Ints(1), b.Ints(1)))}
		}, 2},
		{"depthwise weight gradient", [][]int{{2, 4, 6, 6}, {2, 4, 6, 6}}, func(b *op.Builder, x []*graph.Value) []*graph.Value {
			return []*graph.Value{b.Op("Conv", []*graph.Value{b.ReshapeTo(b.Transpose(x[0], 1, 0, 2, 3), 1, 8, 6, 6), b.ReshapeTo(b.Transpose(x[1], 1, 0, 2, 3), 4, 2, 6, 6)},
				ints("pads", 1, 1, 1, 1), graph.IntAttr("group", 4))}
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var in []op.Arg
			for _, s := range c.in {
				in = append(in, op.FR(-1, 1, s...))
			}
			m, _, err := op.SampleModel(&op.Def{}, op.Sample{In: in, Build: c.build}, 5, "")
			if err != nil {
				t.Fatal(err)
			}
			p, err := Lower(m)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Kernels) != c.kernels {
				t.Errorf("%d kernels, want %d\n%s", len(p.Kernels), c.kernels, p)
			}
		})
	}
}

func TestDigits(t *testing.T) {
	for _, c := range []struct {
		at   []int
		want []part
		ok   bool
	}{
		{[]int{5}, nil, true},
		{[]int{0, 3}, []part{{2, 3}}, true},
		{[]int{0, 0, 0}, []part{{3, 0}}, true},
		{[]int{0, 1, 2, 10, 11, 12, 20, 21, 22}, []part{{3, 10}, {3, 1}}, true},
		{[]int{0, 1, 4, 5, 100, 101, 104, 105}, []part{{2, 100}, {2, 4}, {2, 1}}, true},
		{[]int{0, 1, 3}, nil, false},
		{[]int{0, 1, 10, 12}, nil, false},
		{[]int{4, 0}, nil, false},
		{[]int{10, 11, 0, 1}, nil, false},
	} {
		got, ok := digits(c.at)
		if ok != c.ok || ok && !slices.Equal(got, c.want) {
			t.Errorf("digits(%v) = %v, %v, want %v, %v", c.at, got, ok, c.want, c.ok)
		}
	}
}
