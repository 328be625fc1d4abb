package lower_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/npu/machine"
)

// window is a random convolution or pooling: sizes, strides, dilations and paddings that do not divide each other.
type window struct {
	op         string
	in, filter []int64
	attrs      []*graph.Attr
	uniform    bool // the filter is one number, known, repeated
}

func randomWindow(r *rand.Rand) window {
	axes := 1 + r.IntN(3)
	w := window{op: []string{"Conv", "ConvTranspose", "ConvTranspose", "AveragePool", "MaxPool"}[r.IntN(5)], uniform: r.IntN(3) == 0}
	groups := int64(1 + r.IntN(2))
	in, out := groups*int64(1+r.IntN(3)), groups*int64(1+r.IntN(3))
	if w.op == "ConvTranspose" && r.IntN(3) == 0 { // the gradient of an average: one channel, ones
		groups, in, out, w.uniform = 1, 1, 1, true
	}
	w.in = []int64{int64(1 + r.IntN(3)), in}
	w.filter = []int64{out, in / groups}
	if w.op == "ConvTranspose" {
		w.filter = []int64{in, out / groups}
	}
	var kernel, strides, dilations, begin, end, extra []int64
	for range axes {
		k, s, d := int64(1+r.IntN(3)), int64(1+r.IntN(4)), int64(1+r.IntN(2))
		lo, hi := int64(r.IntN(int(k))), int64(r.IntN(int(k)))
		if w.op == "Conv" { // some results see nothing but padding
			lo, hi = int64(r.IntN(4)), int64(r.IntN(4))
		}
		kernel, strides, dilations, begin, end = append(kernel, k), append(strides, s), append(dilations, d), append(begin, lo), append(end, hi)
		extra = append(extra, int64(r.IntN(int(s))))
		w.in = append(w.in, d*(k-1)+1+int64(r.IntN(6)))
	}
	w.filter = append(w.filter, kernel...)
	ints := graph.IntsAttr
	w.attrs = []*graph.Attr{ints("strides", strides...), ints("dilations", dilations...), ints("pads", append(begin, end...)...)}
	switch w.op {
	case "Conv":
		w.attrs = append(w.attrs, graph.IntAttr("group", groups))
	case "ConvTranspose":
		w.attrs = append(w.attrs, graph.IntAttr("group", groups), ints("output_padding", extra...))
	case "AveragePool":
		w.attrs = append(w.attrs, ints("kernel_shape", kernel...), graph.IntAttr("count_include_pad", int64(r.IntN(2))))
	case "MaxPool":
		w.attrs = append(w.attrs, ints("kernel_shape", kernel...))
	}
	return w
}

func (w window) build(b *op.Builder, x []*graph.Value) []*graph.Value {
	y := b.MulScalar(x[0], 0.5)
	switch {
	case w.op == "AveragePool" || w.op == "MaxPool":
		y = b.Unary(w.op, y, w.attrs...)
	case w.uniform:
		y = b.Op(w.op, []*graph.Value{y, b.Full(b.Ints(w.filter...), graph.Float, 1)}, w.attrs...)
	default:
		y = b.Op(w.op, []*graph.Value{y, x[1]}, w.attrs...)
	}
	return []*graph.Value{b.Unary("Tanh", y), y}
}

func (w window) String() string { return fmt.Sprint(w.op, w.in, w.filter, w.uniform, w.attrs) }

// TestWindows lowers random convolutions and poolings between element-wise operators, and compares with the evaluator.
func TestWindows(t *testing.T) {
	count := 150
	if testing.Short() {
		count = 30
	}
	for seed := range count {
		w := randomWindow(rand.New(rand.NewPCG(uint64(seed), 3)))
		name := []string{"ref-small", "ref-edge"}[seed%2]
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			mach, err := machine.Builtin(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(w)
			agree(t, mach, op.Sample{In: uniform(2, w.in, w.filter), Build: w.build}, uint64(seed))
		})
	}
}
