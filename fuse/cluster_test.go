package fuse_test

import (
	"slices"
	"strings"
	"testing"

	"gradtool/fuse"
	"gradtool/graph"
	"gradtool/testmodels"
)

func parse(t *testing.T, text string) *graph.Model {
	t.Helper()
	m, err := graph.Parse(`<ir_version: 8, opset_import: ["" : 18]>` + text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// rules returns what the clusters of a model are, in order.
func rules(t *testing.T, m *graph.Model) []string {
	t.Helper()
	r, err := fuse.Run(m, fuse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range r.Clusters {
		out = append(out, c.Rule)
	}
	return out
}

func TestRules(t *testing.T) {
	const weights = `float[16,16] w, float[16] b`
	for _, c := range []struct{ name, in, want string }{
		{"matmul, bias, relu", `g (float[N,16] x, ` + weights + `) => (float[N,16] y) { a = MatMul(x, w) c = Add(a, b) y = Relu(c) }`, "linear-relu"},
		{"bias first", `g (float[N,16] x, ` + weights + `) => (float[N,16] y) { a = MatMul(x, w) c = Add(b, a) y = Tanh(c) }`, "linear-tanh"},
		{"gemm with residual", `g (float[N,16] z, ` + weights + `) => (float[N,16] y, float[N,16] x) { x = Gelu(z) a = Gemm(x, w, b) r = Relu(a) y = Add(x, r) }`, "linear-relu-residual"},
		{"conv", `g (float[N,3,8,8] x, float[4,3,3,3] w, float[4] s) => (float[N,4,6,6] y) { a = Conv(x, w) c = BatchNormalization(a, s, s, s, s) y = Relu(c) }`, "conv-batch-norm-relu"},
		{"gelu by erf", `g (float[N,16] x) => (float[N,16] y) { r = Constant<value: tensor = float {1.4142135}>() o = Constant<value: tensor = float {1}>() h = Constant<value: tensor = float {0.5}>()
			d = Div(x, r) e = Erf(d) p = Add(e, o) q = Mul(x, p) y = Mul(q, h) }`, "gelu"},
		{"gelu by erf, other order", `g (float[N,16] x) => (float[N,16] y) { r = Constant<value: tensor = float {0.70710677}>() o = Constant<value: tensor = float {1}>() h = Constant<value: tensor = float {0.5}>()
			d = Mul(x, r) e = Erf(d) p = Add(o, e) q = Mul(h, x) y = Mul(q, p) }`, "gelu"},
		{"erf of another scale is no gelu", `g (float[N,16] x) => (float[N,16] y) { r = Constant<value: tensor = float {2}>() o = Constant<value: tensor = float {1}>() h = Constant<value: tensor = float {0.5}>()
			d = Div(x, r) e = Erf(d) p = Add(e, o) q = Mul(x, p) y = Mul(q, h) }`, "elementwise"},
		{"gelu by tanh", `g (float[N,16] x) => (float[N,16] y) { k = Constant<value: tensor = float {3}>() c = Constant<value: tensor = float {0.044715}>() s = Constant<value: tensor = float {0.7978846}>()
			o = Constant<value: tensor = float {1}>() h = Constant<value: tensor = float {0.5}>()
			x3 = Pow(x, k) x4 = Mul(x3, c) x5 = Add(x, x4) x6 = Mul(x5, s) x7 = Tanh(x6) x8 = Add(x7, o) x9 = Mul(x, h) y = Mul(x9, x8) }`, "gelu"},
		{"silu", `g (float[N,16] x) => (float[N,16] y) { s = Sigmoid(x) y = Mul(s, x) }`, "silu"},
		{"mish", `g (float[N,16] x) => (float[N,16] y) { s = Softplus(x) u = Tanh(s) y = Mul(x, u) }`, "mish"},
		{"layer norm", `g (float[N,16] x) => (float[N,16] y) { e = Constant<value: tensor = float {1e-5}>() k = Constant<value: tensor = float {2}>()
			a = Constant<value: tensor = int64[1] {-1}>() m = ReduceMean(x, a) d = Sub(x, m) q = Pow(d, k) v = ReduceMean(q, a) w = Add(v, e) s = Sqrt(w) y = Div(d, s) }`, "layer-norm"},
		{"rms norm", `g (float[N,16] x, float[16] w) => (float[N,16] y) { e = Constant<value: tensor = float {1e-5}>() a = Constant<value: tensor = int64[1] {-1}>()
			q = Mul(x, x) v = ReduceMean(q, a) p = Add(v, e) s = Sqrt(p) r = Reciprocal(s) n = Mul(x, r) y = Mul(n, w) }`, "rms-norm"},
		{"softmax", `g (float[N,16] x) => (float[N,16] y) { a = Constant<value: tensor = int64[1] {-1}>() m = ReduceMax(x, a) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, a) y = Div(e, s) }`, "softmax"},
		{"attention", `g (float[N,4,8,16] q, float[N,4,8,16] k, float[N,4,8,16] v, float[N,1,8,8] mask) => (float[N,4,8,16] y) { c = Constant<value: tensor = float {4}>()
			t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) d = Div(s, c) a = Add(d, mask) p = Softmax<axis=-1>(a) y = MatMul(p, v) }`, "attention"},
		{"attention, softmax spelled", `g (float[N,4,8,16] q, float[N,4,8,16] k, float[N,4,8,16] v) => (float[N,4,8,16] y) { ax = Constant<value: tensor = int64[1] {-1}>()
			t = Transpose<perm=[0,1,3,2]>(k) x = MatMul(q, t) m = ReduceMax(x, ax) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, ax) p = Div(e, s) y = MatMul(p, v) }`, "attention"},
		{"norm between products is no attention", `g (float[N,16] x, float[16,16] w, float[16] s) => (float[N,16] y) { a = MatMul(x, w) n = LayerNormalization(a, s, s) y = MatMul(n, w) }`, "linear-layer-norm"},
		{"swiglu", `g (float[N,16] x, float[16,32] u, float[16,32] v) => (float[N,32] y) { a = MatMul(x, u) b = MatMul(x, v) s = Sigmoid(a) h = Mul(a, s) y = Mul(h, b) }`, "gated-linear-silu"},
		{"embedding and position", `g (int64[N,8] t, float[100,16] w, float[8,16] p) => (float[N,8,16] y) { e = Gather(w, t) y = Add(e, p) }`, "embedding"},
		{"gradient of a product", `g (float[N,16] z, float[N,8] d, float[16,8] w) => (float[N,16] dx, float[16,8] dw) { x = Tanh(z) g = Tanh(d) v = Transpose<perm=[1,0]>(w) dx = MatMul(g, v) u = Transpose<perm=[1,0]>(x) dw = MatMul(u, g) }`, "linear-backward"},
		{"all of a large tensor is reduced first", `g (float[1000,1000] x) => (float[1000,1000] y) { s = ReduceSum<keepdims=0>(x) r = Sqrt(s) y = Div(x, r) }`, "reduction"},
		{"shapes", `g (float[N,M] x) => (float z, int64[1] s) { a = Shape(x) i = Constant<value: tensor = int64 {0}>() d = Gather(a, i) o = Constant<value: tensor = int64[1] {0}>() s = Unsqueeze(d, o) z = ReduceSum<keepdims=0>(x) }`, "shape"},
		{"nothing to fuse", `g (float[N,16] x) => (float[N,16] y) { y = Relu(x) }`, ""},
		{"dead nodes", `g (float[N,16] x) => (float[N,16] y) { a = Exp(x) b = Neg(a) y = Relu(x) }`, ""},
		{"random numbers stay outside", `g (float[N,16] x) => (float[N,16] y) { r = RandomUniformLike(x) y = Mul(x, r) }`, ""},
		{"two products in a row stay apart", `g (float[N,16] x, ` + weights + `) => (float[N,16] y) { a = MatMul(x, w) c = Add(a, b) d = MatMul(c, w) y = Add(d, b) }`, "linear linear"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(rules(t, parse(t, c.in)), " "); got != c.want {
				t.Errorf("clusters are %q, want %q", got, c.want)
			}
			roundTrip(t, parse(t, c.in))
		})
	}
}

// TestShared checks that equal clusters share a function, and that a constant tells functions apart.
func TestShared(t *testing.T) {
	layer := func(in, out, axis string) string {
		return strings.NewReplacer("IN", in, "OUT", out, "AX", axis).Replace(`aOUT = Constant<value: tensor = int64[1] {AX}>() mOUT = MatMul(IN, w) bOUT = Add(mOUT, b) sOUT = ReduceSum(bOUT, aOUT) OUT = Sub(bOUT, sOUT) `)
	}
	for _, c := range []struct {
		second string
		want   int
	}{{"-1", 1}, {"1", 2}} {
		m := parse(t, `g (float[N,16] x, float[16,16] w, float[16] b) => (float[N,16] y) { `+layer("x", "h", "-1")+layer("h", "y", c.second)+`}`)
		r, err := fuse.Run(m, fuse.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Clusters) != 2 || len(m.Functions) != c.want || r.Shared != c.want {
			t.Errorf("axis %s: %d clusters, %d functions, want %d\n%s", c.second, len(r.Clusters), len(m.Functions), c.want, m)
		}
	}
}

// TestPairs checks that forward and backward clusters name each other.
func TestPairs(t *testing.T) {
	c, _ := testmodels.Lookup("transformer")
	m := c.Build()
	gradient(t, m, c.Loss)
	r, err := fuse.Run(m, fuse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*fuse.Cluster{}
	for _, c := range r.Clusters {
		by[c.ID] = c
	}
	backward := 0
	for _, c := range r.Clusters {
		for _, id := range c.Pair {
			if by[id] == nil || !slices.Contains(by[id].Pair, c.ID) {
				t.Errorf("%s names %s, which does not name it", c.ID, id)
			}
		}
		if got := c.Call.Meta.Get(fuse.MetaPair); got != strings.Join(c.Pair, " ") {
			t.Errorf("%s: metadata %q, pair %v", c.ID, got, c.Pair)
		}
		if base, ok := strings.CutSuffix(c.Rule, "-backward"); ok && base != "loss" {
			backward++
			if !slices.ContainsFunc(c.Pair, func(id string) bool { return by[id].Rule == base }) {
				t.Errorf("%s (%s) goes with %v", c.ID, c.Rule, c.Pair)
			}
		}
	}
	if backward < 5 {
		t.Errorf("%d clusters of the backward part", backward)
	}
}

// TestSaved counts bytes by hand: z = relu(x w + b) writes and reads two intermediate results of 64 N bytes.
func TestSaved(t *testing.T) {
	m := parse(t, `g (float[N,16] x, float[16,16] w, float[16] b) => (float[N,16] z) { a = MatMul(x, w) c = Add(a, b) z = Relu(c) }`)
	r, err := fuse.Run(m, fuse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Before.Total.String(); got != "384*N + 1088" {
		t.Errorf("before: %s bytes", got)
	}
	if got := r.After.Total.String(); got != "128*N + 1088" {
		t.Errorf("after: %s bytes", got)
	}
	if got := r.Clusters[0].Saved.String(); got != "256*N" {
		t.Errorf("the cluster saves %s bytes", got)
	}
	if got := r.Before.Between.String() + " " + r.After.Between.String(); got != "256*N 0" {
		t.Errorf("between kernels: %s", got)
	}
	if got := strings.Join(r.Clusters[0].Inside, " "); got != "a c" {
		t.Errorf("inside: %s", got)
	}
}
