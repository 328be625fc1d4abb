package op

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gradtool/graph"
)

func TestElements(t *testing.T) {
	for _, c := range []struct {
		shape []int
		n     int
		why   string
	}{
		{nil, 1, ""}, {[]int{2, 3}, 6, ""}, {[]int{1 << 31}, 1 << 31, ""}, {[]int{0, 1 << 40, 1 << 40}, 0, ""}, {[]int{1 << 40, 1 << 40, 0}, 0, ""},
		{[]int{1<<31 + 1}, 0, "2^31"}, {[]int{1 << 40, 1 << 40, 2, 3}, 0, "2^31"}, {[]int{1 << 32, 1 << 32}, 0, "2^31"},
		{[]int{math.MaxInt, math.MaxInt}, 0, "2^31"}, {[]int{2, -1}, 0, "negative size -1 along axis 1"}, {[]int{0, -1}, 0, "negative"},
	} {
		n, why := elements(c.shape)
		if n != c.n || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%v: %d, %q, want %d, %q", c.shape, n, why, c.n, c.why)
		}
	}
}

// TestMemoryRefuses checks the arithmetic on machines of any size.
func TestMemoryRefuses(t *testing.T) {
	for _, c := range []struct {
		total, used, n uint64
		want           string
	}{
		{0, 1 << 40, 1 << 50, ""}, // not known
		{8 << 30, 0, 8 << 30, ""},
		{8 << 30, 0, 8<<30 + 1, "would take 8.0 GiB, the machine has 8.0 GiB"},
		{8 << 30, 5 << 30, 3 << 30, ""},
		{8 << 30, 5 << 30, 4 << 30, "would take 4.0 GiB beside the 5.0 GiB in use, the machine has 8.0 GiB"},
	} {
		m := machineMemory{c.total, func() uint64 { return c.used }}
		if got := m.refuses(c.n); got != c.want {
			t.Errorf("%d beside %d of %d: %q, want %q", c.n, c.used, c.total, got, c.want)
		}
	}
	if got := meminfo("MemTotal:   1024 kB\nMemFree: 7 kB\nSwapTotal:  1 kB\nHugePages_Total:  3\n"); got != 1025<<10 {
		t.Errorf("meminfo: %d", got)
	}
}

// TestHugeResults evaluates operators whose operands or attributes ask for results that no machine can hold: each is an
// error that says so, and none ends the program.
func TestHugeResults(t *testing.T) {
	const huge = 1 << 38
	x := FV([]int{1, 1, 1, 1}, 1)
	ints := func(name string, v ...int64) *graph.Attr { return graph.IntsAttr(name, v...) }
	for _, c := range []struct {
		op    string
		in    []Arg
		attrs []*graph.Attr
	}{
		{"Expand", []Arg{x, I(huge, 1, 1, 1)}, nil},
		{"Expand", []Arg{x, I(1<<40, 1<<40, 2, 3)}, nil},
		{"Tile", []Arg{x, I(huge, 1, 1, 1)}, nil},
		{"Tile", []Arg{x, I(1<<32, 1<<32, 1, 1)}, nil},
		{"Pad", []Arg{x, I(huge, 0, 0, 0, 0, 0, 0, 0)}, nil},
		{"Pad", []Arg{x, I(huge, 0, 0, 0, 0, 0, 0, 0)}, []*graph.Attr{graph.StringAttr("mode", "edge")}},
		{"Pad", []Arg{x, I(1<<29, 1<<29, 0, 0, 0, 0, 0, 0)}, []*graph.Attr{graph.StringAttr("mode", "wrap")}},
		{"CenterCropPad", []Arg{x, I(huge, 1, 1, 1)}, nil},
		{"Resize", []Arg{x, {}, {}, I(1, 1, huge, 1)}, nil},
		{"Resize", []Arg{x, {}, {}, I(1, 1, 1<<33, 1<<33)}, []*graph.Attr{graph.StringAttr("mode", "linear")}},
		{"Resize", []Arg{x, {}, FV([]int{4}, 1, 1, 1e12, 1)}, nil},
		{"OneHot", []Arg{I(1, 2), IS(huge), FV([]int{2}, 0, 1)}, nil},
		{"ConstantOfShape", []Arg{I(huge)}, nil},
		{"ConstantOfShape", []Arg{I(1<<40, 1<<40, 2)}, nil},
		{"Range", []Arg{IS(0), IS(huge), IS(1)}, nil},
		{"RandomNormal", nil, []*graph.Attr{ints("shape", huge)}},
		{"RandomUniform", nil, []*graph.Attr{ints("shape", 1<<39, 1<<39)}},
		{"Multinomial", []Arg{F(1, 2)}, []*graph.Attr{graph.IntAttr("sample_size", huge)}},
		{"MelWeightMatrix", []Arg{IS(1 << 30), IS(1 << 30), IS(8192), FV(nil, 0), FV(nil, 4096)}, nil},
		{"AffineGrid", []Arg{F(1, 2, 3), I(1, 1, 1<<30, 1<<30)}, nil},
		{"MaxUnpool", []Arg{x, TV(graph.Int64, []int{1, 1, 1, 1}, 0), I(1, 1, huge, 1)}, []*graph.Attr{ints("kernel_shape", 1, 1)}},
		{"ConvTranspose", []Arg{x, x}, []*graph.Attr{ints("output_padding", huge, 0), ints("strides", huge+1, 1)}},
		{"RoiAlign", []Arg{x, F(1, 4), TV(graph.Int64, []int{1}, 0)}, []*graph.Attr{graph.IntAttr("output_height", huge)}},
		{"DFT", []Arg{F(1, 2, 1), IS(1<<31 - 1)}, nil},
		{"MatMul", []Arg{F(1<<20, 1), F(1, 1<<20)}, nil},
		{"Mul", []Arg{F(1<<20, 1), F(1 << 20)}, nil},
		{"Einsum", []Arg{F(1 << 20), F(1 << 20)}, []*graph.Attr{graph.StringAttr("equation", "i,j->ij")}},
	} {
		t.Run(fmt.Sprint(c.op, " ", c.attrs, len(c.in)), func(t *testing.T) {
			err := evalSample(t, c.op, c.in, c.attrs)
			var size *SizeError
			if !errors.As(err, &size) && !errors.Is(err, errTooLarge) && (err == nil || !strings.Contains(err.Error(), "2^31")) {
				t.Errorf("%v", err)
			}
		})
	}
}

// evalSample applies an operator and returns the error of evaluating it.
func evalSample(t *testing.T, name string, in []Arg, attrs []*graph.Attr) error {
	t.Helper()
	d := Lookup(Key{Name: name})
	for i := range in {
		in[i].Const = false
	}
	m, feed, err := SampleModel(d, Sample{In: in, Attrs: attrs}, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	n := m.Graph.Nodes[0]
	c := &EvalCtx{Node: n, In: make([]*Array, len(n.In)), Out: make([]*Array, len(n.Out))}
	for i, v := range n.In {
		if v != nil {
			c.In[i], feed = feed[0], feed[1:]
		}
	}
	return c.Eval(d)
}
