package lower_test

import (
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/npu/lower"
	"gradtool/npu/machine"
)

// TestClusters lowers graphs in which the nodes of the values named are a cluster, and expects one kernel, or reasons why not.
func TestClusters(t *testing.T) {
	for _, c := range []struct {
		name, text, nodes string
		kernels           int
		together          bool
		want              []string // parts of borders
	}{
		{"product, bias, activation", `(float[64,64] x, float[64,64] w, float[64] b) => (float[64,64] y) { a = MatMul(x, w) c = Add(a, b) y = Relu(c) }`, "a c y", 1, false, nil},
		{"softmax", `(float[64,256] x) => (float[64,256] y) { y = Softmax(x) }`, "y", 1, false, nil},
		{"layer normalization behind a product", `(float[64,64] x, float[64,64] w, float[64] b) => (float[64,64] y) { a = MatMul(x, w) y = LayerNormalization(a, b) }`, "a y", 1, false, nil},
		{"batch normalization in training", `(float[4,8,8,8] x, float[8] s) => (float[4,8,8,8] y) { y, m, v = BatchNormalization<training_mode=1>(x, s, s, s, s) z = Relu(y) }`, "y z", 1, false, nil},
		{"convolution, activation, pooling", `(float[4,3,16,16] x, float[8,3,3,3] w) => (float[4,8,7,7] y) { a = Conv(x, w) b = Relu(a) y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(b) }`, "a b y", 1, false, nil},
		{"two readers of one value", `(float[256,256] x) => (float[256,256] y, float[256,256] z) { y = Exp(x) z = Tanh(x) }`, "y z", 1, false, nil},
		{"two products that fit", `(float[64,64] x, float[64,64] w) => (float[64,64] y) { a = MatMul(x, w) b = Relu(a) y = MatMul(b, w) }`, "a b y", 2, true,
			[]string{`"b", 16.0 KiB, stays on chip: two products`}},
		{"two products that do not", `(float[1024,64] x, float[64,1024] w, float[1024,64] v) => (float[1024,64] y, float[1024,1024] b) { a = MatMul(x, w) b = Relu(a) y = MatMul(b, v) }`, "a b y", 2, false,
			[]string{`"b", 4.0 MiB, stored and loaded: two products`}},
		{"rows that do not fit", `(float[1024,4,64,64] x, float[4] s) => (float[1024,4,64,64] y) { y, m, v = BatchNormalization<training_mode=1>(x, s, s, s, s) }`, "y", 3, true,
			[]string{"needed whole leave no room"}},
		{"a gather", `(float[64,64] x, int64[8] i) => (float[8,64] y) { a = Gather(x, i) y = Relu(a) }`, "a y", 2, true, []string{"a gather has no epilogue"}},
		{"nothing in common", `(float[64,64] x, float[32] w) => (float[64,64] y, float[32] z) { y = Relu(x) z = Relu(w) }`, "y z", 2, true, []string{"nothing in common"}},
		{"another is needed between", `(float[64,64] x, float[64,64] w) => (float[64,64] y) { a = Relu(x) b = MatMul(a, w) c = MatMul(b, w) y = Add(a, c) }`, "a y", 2, false,
			[]string{"stands between them"}},
		{"more loops than sums", `(float[64,64] x, float[64,64] w, float[8,64,64] z) => (float[8,64,64] y) { a = MatMul(x, w) y = Add(a, z) }`, "a y", 2, true,
			[]string{"more dimensions than the sums"}},
		{"two ways", `(float[64,64] x) => (float[64,64] y) { a = Softmax(x) b = Transpose<perm=[1,0]>(a) y = Mul(a, b) }`, "a b y", 2, true, []string{"read in several ways"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			mach, err := machine.Builtin("ref-edge")
			if err != nil {
				t.Fatal(err)
			}
			m, err := graph.Parse(`<ir_version: 10, opset_import: ["" : 21]> g ` + c.text)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range m.Graph.Nodes {
				for name := range strings.FieldsSeq(c.nodes) {
					if n.Out[0].Name == name {
						n.Meta.Set(graph.MetaCluster, "c1")
					}
				}
			}
			r, err := lower.Model(m, lower.Options{Machine: mach})
			if err != nil || r.Program == nil {
				t.Fatal(err, r.Legal.Fallbacks)
			}
			list := r.Explained()
			if len(list) != 1 {
				t.Fatalf("%d clusters", len(list))
			}
			got := list[0]
			if got.Name != "c1" || got.Kernels != c.kernels || got.Together != c.together {
				t.Errorf("%+v, want %d kernels, together %v\n%s", got, c.kernels, c.together, r.Legal)
			}
			if got.Kernels == 1 && len(got.Borders) > 0 || got.Kernels > 1 && len(got.Borders) != got.Kernels-1 {
				t.Errorf("%d borders", len(got.Borders))
			}
			for i, want := range c.want {
				if i >= len(got.Borders) || !strings.Contains(got.Borders[i].String(), want) {
					t.Errorf("borders %v, want %q", got.Borders, want)
				}
			}
		})
	}
}
