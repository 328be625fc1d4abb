package legal_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/npu/legal"
)

// TestUnpool adds cotangents at the places of max poolings, which becomes a sum over windows where the sizes allow it.
func TestUnpool(t *testing.T) {
	for _, c := range []struct {
		kernel, stride, pad, side int64
		windows                   bool // lowered without a scatter
	}{
		{2, 2, 0, 8, true}, {3, 2, 1, 8, true}, {3, 1, 1, 5, true}, {3, 3, 0, 9, true}, {5, 2, 2, 8, true}, {2, 3, 0, 9, true},
		{3, 2, 1, 7, false}, {6, 1, 2, 8, false},
	} {
		t.Run(fmt.Sprintf("kernel %d stride %d pad %d of %d", c.kernel, c.stride, c.pad, c.side), func(t *testing.T) {
			m := graph.NewModel("unpool", op.SampleOpset)
			x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(2, 3, c.side, c.side)))
			info, err := op.Infer(m)
			if err != nil {
				t.Fatal(err)
			}
			b := op.NewBuilder(m.Graph, info)
			pool := b.Node("MaxPool", []*graph.Value{x}, 2, graph.IntsAttr("kernel_shape", c.kernel, c.kernel),
				graph.IntsAttr("strides", c.stride, c.stride), graph.IntsAttr("pads", c.pad, c.pad, c.pad, c.pad))
			n, _ := pool.Out[0].Type.Shape.Size().Int()
			ct := m.Graph.AddInput("ct", pool.Out[0].Type)
			places := b.ReshapeTo(pool.Out[1], n, 1)
			zeros := b.Full(b.Ints(2*3*c.side*c.side), graph.Float, 0)
			y := b.Op("ScatterND", []*graph.Value{zeros, places, b.ReshapeTo(ct, n)}, graph.StringAttr("reduction", "add"))
			m.Graph.AddOutput(b.ReshapeLike(y, x))
			m.Graph.AddOutput(pool.Out[0])
			if b.Err != nil {
				t.Fatal(b.Err)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			var feed []*op.Array
			for _, v := range m.Graph.Inputs {
				s, _ := v.Type.Shape.Ints()
				shape := make([]int, len(s))
				for i := range s {
					shape[i] = int(s[i])
				}
				a := op.NewArray(graph.Float, shape, false)
				for i := range a.F32 {
					a.F32[i] = float32(rng.NormFloat64())
				}
				feed = append(feed, a)
			}
			want := evaluate(t, m, feed)
			p, err := legal.Lower(m)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Verify(); err != nil {
				t.Fatal(err)
			}
			scatters := 0
			for _, k := range p.Kernels {
				if _, ok := k.(*legal.Scatter); ok {
					scatters++
				}
			}
			if (scatters == 0) != c.windows {
				t.Errorf("%d scatters", scatters)
			}
			compare(t, p, feed, want)
		})
	}
}
