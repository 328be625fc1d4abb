package fuse_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gradtool/fuse"
	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// compute runs m in double precision on inputs that depend on the seed only; symbolic dimensions are 3.
func compute(t *testing.T, m *graph.Model, seed uint64) []*op.Array {
	t.Helper()
	out, err := tryCompute(m, seed)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryCompute(m *graph.Model, seed uint64) ([]*op.Array, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var feed []*op.Array
	for _, v := range m.Graph.Inputs {
		var shape []int
		for _, d := range v.Type.Shape {
			n, ok := d.Int()
			if !ok {
				n = 3
			}
			shape = append(shape, int(n))
		}
		a := op.NewArray(v.Type.Elem, shape, true)
		for i := range a.Len() {
			if a.IsFloat() {
				a.SetFloat(i, rng.NormFloat64())
			}
		}
		feed = append(feed, a)
	}
	machine, err := interp.New(m, interp.Options{Wide: true})
	if err != nil {
		return nil, err
	}
	return machine.Run(feed)
}

// canonical parses a model at an opset and makes it ready for rules.
func canonical(t *testing.T, text string) (*graph.Model, *op.Info) {
	t.Helper()
	m, info, err := tryCanonical(text)
	if err != nil {
		t.Fatal(err)
	}
	return m, info
}

func tryCanonical(text string) (*graph.Model, *op.Info, error) {
	m, err := graph.Parse(`<ir_version: 10, opset_import: ["" : 21]>` + text)
	if err != nil {
		return nil, nil, err
	}
	if err := op.Upgrade(m); err != nil {
		return nil, nil, err
	}
	info, err := op.Infer(m)
	return m, info, err
}

// ops lists the operators of the main graph, without constants.
func ops(m *graph.Model) string {
	var out []string
	for _, n := range m.Graph.Nodes {
		if !n.Is("Constant") {
			out = append(out, n.Op)
		}
	}
	return strings.Join(out, " ")
}

func TestRewrite(t *testing.T) {
	const norm = `e = Constant<value: tensor = float {1e-5}>() k = Constant<value: tensor = float {2}>() a = Constant<value: tensor = int64[1] {-1}>() m = ReduceMean(x, a) d = Sub(x, m) q = Pow(d, k) v = ReduceMean(q, a) w = Add(v, e) s = Sqrt(w) `
	const weights = `<float[2,3,1,1] w = {1,2,3,-4,5,6}, float[2] c = {1,-1}, float[2] s = {2,0.5}, float[2] t = {0.25,3}, float[2] u = {0.5,-1}, float[2] v = {1,4}>`
	const transposed = `<float[4,3,1,1] w = {1,2,3,-4,5,6,7,-8,9,1,2,3}, float[6] s = {2,0.5,1,3,4,0.25}, float[6] t = {1,2,3,4,5,6}, float[6] u = {0.5,-1,1,2,3,4}, float[6] v = {1,4,2,2,1,9}>`
	applied, refused := map[string]bool{}, map[string]bool{}
	// variant is a rule without the number that tells ways to write a function apart.
	variant := func(name string) string { return strings.TrimRight(name, "-0123456789") }
	for _, c := range []struct {
		name, in, want string
		opset          int64
		misses         string
	}{
		{"bias", `g (float[N,4] x, float[4,5] w, float[5] b) => (float[N,5] y) { a = MatMul(x, w) y = Add(b, a) }`, "Gemm", 21, ""},
		{"scalar bias", `g (float[N,4] x, float[4,5] w, float b) => (float[N,5] y) { a = MatMul(x, w) y = Add(a, b) }`, "Gemm", 21, ""},
		{"bias of unknown size", `g (float[N,4] x, float[4,K] w, float[M] b) => (float[N,K] y) { a = MatMul(x, w) y = Add(a, b) }`, "MatMul Add", 21, "bias is not known"},
		{"bias by row", `g (float[N,4] x, float[4,5] w, float[N,1] b) => (float[N,5] y) { a = MatMul(x, w) y = Add(a, b) }`, "MatMul Add", 21, ""},
		{"batches of matrices", `g (float[N,2,4] x, float[4,5] w, float[5] b) => (float[N,2,5] y) { a = MatMul(x, w) y = Add(a, b) }`, "MatMul Add", 21, ""},
		{"integers", `g (int32[N,4] x, int32[4,5] w, int32[5] b) => (int32[N,5] y) { a = MatMul(x, w) y = Add(a, b) }`, "MatMul Add", 21, "not of floats"},
		{"product read elsewhere", `g (float[N,4] x, float[4,5] w, float[5] b) => (float[N,5] y, float[N,5] a) { a = MatMul(x, w) y = Add(a, b) }`, "MatMul Add", 21, "is a graph output"},
		{"transposed weights", `g (float[N,4] x, float[5,4] w, float[5] b) => (float[N,5] y) { t = Transpose<perm=[1,0]>(w) a = MatMul(x, t) y = Add(a, b) }`, "Gemm", 21, ""},
		{"transposed left", `g (float[N,4] x, float[N,5] w) => (float[4,5] y) { t = Transpose(x) y = MatMul(t, w) }`, "Gemm", 21, ""},
		{"both transposed", `g (float[N,4] x, float[5,N] w) => (float[4,5] y) { t = Transpose(x) u = Transpose(w) y = MatMul(t, u) }`, "Gemm", 21, ""},
		{"gemm of a transposed one", `g (float[4,N] x, float[4,5] w, float[5] b) => (float[N,5] y) { t = Transpose(x) y = Gemm<alpha=0.5>(t, w, b) }`, "Gemm", 21, ""},
		{"gemm of a transposed one, oblong", `g (float[N,4] x, float[4,5] w) => (float[N,5] y) { t = Transpose<perm=[1,0]>(w) y = Gemm<transB=1>(x, t) }`, "Gemm", 21, ""},
		{"no gemm without bias at opset 9", `g (float[N,4] x, float[4,5] w, float[5] b) => (float[N,5] y) { a = MatMul(x, w) y = Add(a, b) }`, "MatMul Add", 9, ""},
		{"layer norm", `g (float[N,8] x) => (float[N,8] y) { ` + norm + `y = Div(d, s) }`, "LayerNormalization", 21, ""},
		{"layer norm, scale and bias", `g (float[N,8] x, float[8] g, float[8] b) => (float[N,8] y) { ` + norm + `n = Div(d, s) p = Mul(g, n) y = Add(p, b) }`, "LayerNormalization", 21, ""},
		{"scale that broadcasts otherwise", `g (float[8,8] x, float[8,1] g) => (float[8,8] y) { ` + norm + `n = Div(d, s) y = Mul(n, g) }`, "LayerNormalization Mul", 21, "one element per column"},
		{"opset without layer norm", `g (float[N,8] x) => (float[N,8] y) { ` + norm + `y = Div(d, s) }`, "ReduceMean Sub Pow ReduceMean Add Sqrt Div", 16, ""},
		{"another axis", `g (float[N,8] x) => (float[N,8] y) { ` + strings.Replace(norm, "{-1}", "{0}", 1) + `y = Div(d, s) }`, "ReduceMean Sub Pow ReduceMean Add Sqrt Div", 21, "not over the last axis"},
		{"cube in place of square", `g (float[N,8] x) => (float[N,8] y) { ` + strings.Replace(norm, "float {2}", "float {4}", 1) + `y = Div(d, s) }`, "ReduceMean Sub Pow ReduceMean Add Sqrt Div", 21, ""},
		{"axis that does not stay", `g (float[8] x) => (float[8] y) { ` + strings.ReplaceAll(norm, "ReduceMean(", "ReduceMean<keepdims=0>(") + `y = Div(d, s) }`, "ReduceMean Sub Pow ReduceMean Add Sqrt Div", 21, "does not stay"},
		{"rms norm", `g (float[N,8] x, float[8] g) => (float[N,8] y) { e = Constant<value: tensor = float {1e-5}>() a = Constant<value: tensor = int64[1] {-1}>() q = Mul(x, x) v = ReduceMean(q, a) w = Add(v, e) s = Sqrt(w) r = Reciprocal(s) n = Mul(x, r) y = Mul(n, g) }`, "RMSNormalization", 23, ""},
		{"softmax", `g (float[N,8] x) => (float[N,8] y) { a = Constant<value: tensor = int64[1] {0}>() m = ReduceMax(x, a) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, a) y = Div(e, s) }`, "Softmax", 21, ""},
		{"two axes are no softmax", `g (float[N,8] x) => (float[N,8] y) { a = Constant<value: tensor = int64[2] {0,1}>() m = ReduceMax(x, a) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, a) y = Div(e, s) }`, "ReduceMax Sub Exp ReduceSum Div", 21, "same single axis"},
		{"gelu", `g (float[N,8] x) => (float[N,8] y) { r = Constant<value: tensor = float {1.4142135}>() o = Constant<value: tensor = float {1}>() h = Constant<value: tensor = float {0.5}>() d = Div(x, r) e = Erf(d) p = Add(e, o) q = Mul(x, p) y = Mul(q, h) }`, "Gelu", 20, ""},
		{"gelu by tanh", `g (float[N,8] x) => (float[N,8] y) { k = Constant<value: tensor = float {3}>() c = Constant<value: tensor = float {0.044715}>() s = Constant<value: tensor = float {0.7978846}>() o = Constant<value: tensor = float {1}>() h = Constant<value: tensor = float {0.5}>()
			x3 = Pow(x, k) x4 = Mul(x3, c) x5 = Add(x, x4) x6 = Mul(x5, s) x7 = Tanh(x6) x8 = Add(x7, o) x9 = Mul(x, h) y = Mul(x9, x8) }`, "Gelu", 20, ""},
		{"attention", `g (float[2,3,N,4] q, float[2,3,M,4] k, float[2,3,M,5] v) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v) }`, "Attention", 23, ""},
		{"attention, opset without", `g (float[2,3,N,4] q, float[2,3,M,4] k, float[2,3,M,5] v) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v) }`, "Transpose MatMul Softmax MatMul", 22, ""},
		{"attention, scale and mask", `g (float[2,N,4] q, float[2,M,4] k, float[2,M,5] v, float[N,M] m) => (float[2,N,5] y) { c = Constant<value: tensor = float {2}>() t = Transpose<perm=[0,2,1]>(k) s = MatMul(q, t) d = Div(s, c) e = Add(m, d) p = Softmax(e) y = MatMul(p, v) }`, "Attention", 23, ""},
		{"attention, mask by batch", `g (float[2,N,4] q, float[2,M,4] k, float[2,M,5] v, float[1,N,M] m) => (float[2,N,5] y) { c = Constant<value: tensor = float {0.3}>() t = Transpose<perm=[0,2,1]>(k) u = Mul(t, c) s = MatMul(q, u) e = Add(s, m) p = Softmax(e) y = MatMul(p, v) }`, "Unsqueeze Attention", 23, ""},
		{"attention, probabilities read elsewhere", `g (float[2,N,4] q, float[2,M,4] k, float[2,M,5] v) => (float[2,N,5] y, float[2,N,M] p) { t = Transpose<perm=[0,2,1]>(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v) }`, "Transpose MatMul Softmax MatMul", 23, "is a graph output"},
		{"attention, one head of keys for all", `g (float[2,3,N,4] q, float[2,1,M,4] k, float[2,1,M,5] v) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v) }`, "Attention", 23, ""},
		{"attention, keys for another batch", `g (float[2,3,N,4] q, float[1,3,M,4] k, float[1,3,M,5] v) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v) }`, "Transpose MatMul Softmax MatMul", 23, "as many"},
		{"attention, mask by key", `g (float[2,N,4] q, float[2,M,4] k, float[2,M,5] v, float[1,M] m) => (float[2,N,5] y) { t = Transpose<perm=[0,2,1]>(k) s = MatMul(q, t) e = Add(s, m) p = Softmax(e) y = MatMul(p, v) }`, "Shape Concat Expand Attention", 23, ""},
		{"attention, mask by key of each batch", `g (float[2,3,N,4] q, float[2,3,M,4] k, float[2,3,M,5] v, float[2,1,1,M] m) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) e = Add(s, m) p = Softmax(e) y = MatMul(p, v) }`, "Shape Concat Expand Attention", 23, ""},
		{"attention, mask that is larger", `g (float[1,3,N,4] q, float[1,3,M,4] k, float[1,3,M,5] v, float[2,1,N,M] m) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) e = Add(s, m) p = Softmax(e) y = MatMul(p, v) }`, "Transpose MatMul Add Softmax MatMul", 23, "for each score"},
		{"attention, two masks, scaled behind", `g (float[2,3,N,4] q, float[2,3,M,4] k, float[2,3,M,5] v, float[N,M] m, float[2,1,N,M] w) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) c = Constant<value: tensor = float {0.5}>() e = Add(s, m) f = Mul(e, c) h = Sub(f, w) p = Softmax(h) y = MatMul(p, v) }`, "Mul Neg Add Attention", 23, ""},
		{"attention, scale on both sides", `g (float[2,3,N,4] q, float[2,3,M,4] k, float[2,3,M,5] v) => (float[2,3,N,5] y) { c = Constant<value: tensor = float {0.5}>() d = Constant<value: tensor = float {4}>() u = Mul(c, q) t = Transpose<perm=[0,1,3,2]>(k) w = Div(t, d) s = MatMul(u, w) p = Softmax(s) y = MatMul(p, v) }`, "Attention", 23, ""},
		{"attention, scale that is negative", `g (float[2,3,N,4] q, float[2,3,M,4] k, float[2,3,M,5] v) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) c = Constant<value: tensor = float {-0.5}>() e = Mul(s, c) p = Softmax(e) y = MatMul(p, v) }`, "Transpose MatMul Mul Softmax MatMul", 23, "no positive number"},
		{"attention, scale that is computed", `g (float[2,3,N,4] q, float[2,3,M,4] k, float[2,3,M,5] v, float c) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) e = Mul(s, c) p = Softmax(e) y = MatMul(p, v) }`, "Transpose MatMul Mul Softmax MatMul", 23, "no product, scaled and masked"},
		{"attention, chosen by a mask", `g (float[2,3,N,4] q, float[2,3,M,4] k, float[2,3,M,5] v, bool[2,1,N,M] m) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) c = Constant<value: tensor = float {-3.4028235e38}>() e = Where(m, s, c) p = Softmax(e) y = MatMul(p, v) }`, "Where Attention", 23, ""},
		{"attention, filled by a mask", `g (float[2,3,N,4] q, float[2,3,M,4] k, float[2,3,M,5] v, bool[2,1,N,M] m) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) c = Constant<value: tensor = float {-3.4028235e38}>() e = Where(m, c, s) p = Softmax(e) y = MatMul(p, v) }`, "Where Attention", 23, ""},
		{"attention, filled with a number that shows", `g (float[2,3,N,4] q, float[2,3,M,4] k, float[2,3,M,5] v, bool[2,1,N,M] m) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) c = Constant<value: tensor = float {-10000}>() e = Where(m, s, c) p = Softmax(e) y = MatMul(p, v) }`, "Transpose MatMul Where Softmax MatMul", 23, "would be uniform"},
		{"attention, half precision and its least number", `g (float16[2,3,N,4] q, float16[2,3,M,4] k, float16[2,3,M,4] v, bool[N,M] m) => (float16[2,3,N,4] y) { c = Constant<value: tensor = float16 {64511}>() t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) e = Where(m, s, c) p = Softmax(e) y = MatMul(p, v) }`, "Transpose MatMul Where Softmax MatMul", 23, "would be uniform"},
		{"attention, softmax in single precision", `g (float16[2,3,N,4] q, float16[2,3,M,4] k, float16[2,3,M,4] v) => (float16[2,3,N,4] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) e = Cast<to=1>(s) p = Softmax(e) r = Cast<to=10>(p) y = MatMul(r, v) }`, "Attention", 23, ""},
		{"attention, no heads", `g (float[2,0,N,4] q, float[2,0,M,4] k, float[2,0,M,5] v) => (float[2,0,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v) }`, "Transpose MatMul Softmax MatMul", 23, "nothing to compute"},
		{"attention, batches and heads in a row", `g (float[6,4,4] q, float[6,5,4] k, float[6,5,7] v, float[2,1,4,5] m) => (float[6,4,7] y) { c = Constant<value: tensor = float {2}>() four = Constant<value: tensor = int64[4] {2,3,4,5}>() three = Constant<value: tensor = int64[3] {6,4,5}>() t = Transpose<perm=[0,2,1]>(k) s = MatMul(q, t) r = Reshape(s, four) d = Div(r, c) e = Add(d, m) p = Softmax(e) f = Reshape(p, three) y = MatMul(f, v) }`, "Reshape Reshape Reshape Attention Reshape", 23, ""},
		{"attention, batches and heads in a row, mask by key", `g (float[6,4,4] q, float[6,5,4] k, float[6,5,7] v, float[2,1,1,5] m) => (float[6,4,7] y) { c = Constant<value: tensor = float {2}>() four = Constant<value: tensor = int64[4] {2,3,4,5}>() three = Constant<value: tensor = int64[3] {6,4,5}>() t = Transpose<perm=[0,2,1]>(k) s = MatMul(q, t) r = Reshape(s, four) d = Div(r, c) e = Add(d, m) p = Softmax(e) f = Reshape(p, three) y = MatMul(f, v) }`, "Reshape Reshape Reshape Expand Attention Reshape", 23, ""},
		{"attention, scores in another order", `g (float[6,4,4] q, float[6,5,4] k, float[6,5,7] v, float[2,1,5,4] m) => (float[6,4,7] y) { c = Constant<value: tensor = float {2}>() four = Constant<value: tensor = int64[4] {2,3,5,4}>() three = Constant<value: tensor = int64[3] {6,4,5}>() t = Transpose<perm=[0,2,1]>(k) s = MatMul(q, t) r = Reshape(s, four) d = Div(r, c) e = Add(d, m) p = Softmax(e) f = Reshape(p, three) y = MatMul(f, v) }`, "Transpose MatMul Reshape Div Add Softmax Reshape MatMul", 23, ""},
		{"attention, masked before the axes are split", `g (float[6,4,4] q, float[6,5,4] k, float[6,5,7] v, float[6,4,5] m) => (float[6,4,7] y) { four = Constant<value: tensor = int64[4] {2,3,4,5}>() three = Constant<value: tensor = int64[3] {6,4,5}>() t = Transpose<perm=[0,2,1]>(k) s = MatMul(q, t) e = Add(s, m) r = Reshape(e, four) p = Softmax(r) f = Reshape(p, three) y = MatMul(f, v) }`, "Transpose MatMul Add Reshape Softmax Reshape MatMul", 23, "no product, scaled and masked"},
		{"attention, causal constant", `g (float[2,3,4,4] q, float[2,3,4,4] k, float[2,3,4,5] v) => (float[2,3,4,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) b = Constant<value: tensor = bool[1,1,4,4] {1,0,0,0,1,1,0,0,1,1,1,0,1,1,1,1}>() c = Constant<value: tensor = float {-10000}>() e = Where(b, s, c) p = Softmax(e) y = MatMul(p, v) }`, "Attention", 23, ""},
		{"attention, no triangle", `g (float[2,3,4,4] q, float[2,3,4,4] k, float[2,3,4,5] v) => (float[2,3,4,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) b = Constant<value: tensor = bool[1,1,4,4] {1,0,0,0,1,1,0,0,1,1,0,0,1,1,1,1}>() c = Constant<value: tensor = float {-3e38}>() e = Where(b, s, c) p = Softmax(e) y = MatMul(p, v) }`, "Where Attention", 23, ""},
		{"attention, causal by Trilu", `g (float[2,3,N,4] q, float[2,3,N,4] k, float[2,3,N,5] v) => (float[2,3,N,5] y) { a = Shape<start=2, end=3>(q) d = Concat<axis=0>(a, a) o = ConstantOfShape<value: tensor = float[1] {1}>(d) l = Trilu<upper=0>(o) z = Constant<value: tensor = float {0}>() b = Equal(l, z) c = Constant<value: tensor = float {-inf}>() t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) e = Where(b, c, s) p = Softmax(e) y = MatMul(p, v) }`, "Attention", 23, ""},
		{"attention, causal penalty", `g (float[2,3,N,4] q, float[2,3,N,4] k, float[2,3,N,5] v) => (float[2,3,N,5] y) { a = Shape<start=2, end=3>(q) d = Concat<axis=0>(a, a) o = ConstantOfShape<value: tensor = float[1] {-inf}>(d) i = Constant<value: tensor = int64 {1}>() l = Trilu(o, i) t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) e = Add(s, l) p = Softmax(e) y = MatMul(p, v) }`, "Attention", 23, ""},
		{"attention, triangle that hides the own place", `g (float[2,3,N,4] q, float[2,3,N,4] k, float[2,3,N,5] v) => (float[2,3,N,5] y) { a = Shape<start=2, end=3>(q) d = Concat<axis=0>(a, a) o = ConstantOfShape<value: tensor = float[1] {-1e30}>(d) l = Trilu(o) t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) e = Add(s, l) p = Softmax(e) y = MatMul(p, v) }`, "Shape Concat ConstantOfShape Trilu Attention", 23, ""},
		{"attention, causal by places", `g (float[2,3,N,4] q, float[2,3,N,4] k, float[2,3,N,5] v) => (float[2,3,N,5] y) { z = Constant<value: tensor = int64 {0}>() i = Constant<value: tensor = int64 {1}>() a = Shape<start=2, end=3>(q) n = Squeeze(a) r = Range(z, n, i) ax = Constant<value: tensor = int64[1] {1}>() w = Unsqueeze(r, ax) b = LessOrEqual(r, w) c = Constant<value: tensor = float {-inf}>() t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) e = Where(b, s, c) p = Softmax(e) y = MatMul(p, v) }`, "Attention", 23, ""},
		{"attention, limited scores", `g (float[2,3,N,4] q, float[2,3,M,4] k, float[2,3,M,5] v, float[N,M] m) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) c = Constant<value: tensor = float {3}>() d = Div(s, c) e = Tanh(d) f = Mul(e, c) h = Add(f, m) p = Softmax(h) y = MatMul(p, v) }`, "Attention", 23, ""},
		{"attention, masked and then limited", `g (float[2,3,N,4] q, float[2,3,M,4] k, float[2,3,M,5] v, float[N,M] m) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) c = Constant<value: tensor = float {3}>() h = Add(s, m) d = Div(h, c) e = Tanh(d) f = Mul(e, c) p = Softmax(f) y = MatMul(p, v) }`, "Transpose MatMul Add Div Tanh Mul Softmax MatMul", 23, "before they are limited"},
		{"attention, guarded rows", `g (float[2,3,N,4] q, float[2,3,M,4] k, float[2,3,M,5] v, bool[N,M] m) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) c = Constant<value: tensor = float {-inf}>() z = Constant<value: tensor = float {0}>() e = Where(m, s, c) p = Softmax(e) n = IsNaN(p) r = Where(n, z, p) y = MatMul(r, v) }`, "Where Attention", 23, ""},
		{"attention, some probabilities 0", `g (float[2,3,N,4] q, float[2,3,M,4] k, float[2,3,M,5] v, bool[2,3,N,M] m) => (float[2,3,N,5] y) { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) z = Constant<value: tensor = float {0}>() o = Not(m) p = Softmax(s) r = Where(o, z, p) y = MatMul(r, v) }`, "Transpose MatMul Not Softmax Where MatMul", 23, "set to 0 elsewhere"},
		{"attention, heads repeated by Expand", `g (float[2,4,N,4] q, float[2,2,M,4] k, float[2,2,M,4] v) => (float[2,4,N,4] y) { ax = Constant<value: tensor = int64[1] {2}>() sh = Constant<value: tensor = int64[5] {1,1,2,1,1}>() ti = Constant<value: tensor = int64[5] {1,1,2,1,1}>() ks = Constant<value: tensor = int64[4] {0,4,-1,4}>() ku = Unsqueeze(k, ax) ke = Expand(ku, sh) kr = Reshape(ke, ks) vu = Unsqueeze(v, ax) ve = Expand(vu, sh) vr = Reshape(ve, ks) t = Transpose<perm=[0,1,3,2]>(kr) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, vr) }`, "Attention", 23, ""},
		{"attention, heads repeated by Tile", `g (float[2,4,N,4] q, float[2,2,M,4] k, float[2,2,M,4] v) => (float[2,4,N,4] y) { ax = Constant<value: tensor = int64[1] {2}>() sh = Constant<value: tensor = int64[5] {1,1,2,1,1}>() ti = Constant<value: tensor = int64[5] {1,1,2,1,1}>() ks = Constant<value: tensor = int64[4] {0,4,-1,4}>() ku = Unsqueeze(k, ax) ke = Tile(ku, ti) kr = Reshape(ke, ks) vu = Unsqueeze(v, ax) ve = Tile(vu, ti) vr = Reshape(ve, ks) t = Transpose<perm=[0,1,3,2]>(kr) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, vr) }`, "Attention", 23, ""},
		{"attention, heads repeated by Concat", `g (float[2,4,N,4] q, float[2,2,M,4] k, float[2,2,M,4] v) => (float[2,4,N,4] y) { ax = Constant<value: tensor = int64[1] {2}>() sh = Constant<value: tensor = int64[5] {1,1,2,1,1}>() ti = Constant<value: tensor = int64[5] {1,1,2,1,1}>() ks = Constant<value: tensor = int64[4] {0,4,-1,4}>() ku = Unsqueeze(k, ax) ke = Concat<axis=2>(ku, ku) kr = Reshape(ke, ks) vu = Unsqueeze(v, ax) ve = Concat<axis=2>(vu, vu) vr = Reshape(ve, ks) t = Transpose<perm=[0,1,3,2]>(kr) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, vr) }`, "Attention", 23, ""},
		{"attention, heads repeated in turn", `g (float[2,4,N,4] q, float[2,2,M,4] k, float[2,2,M,4] v) => (float[2,4,N,4] y) { kr = Concat<axis=1>(k, k) vr = Concat<axis=1>(v, v) t = Transpose<perm=[0,1,3,2]>(kr) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, vr) }`, "Concat Concat Attention", 23, ""},
		{"attention, softmax of columns", `g (float[2,N,4] q, float[2,N,4] k, float[2,N,5] v) => (float[2,N,5] y) { t = Transpose<perm=[0,2,1]>(k) s = MatMul(q, t) p = Softmax<axis=1>(s) y = MatMul(p, v) }`, "Transpose MatMul Softmax MatMul", 23, ""},
		{"attention of heads", `g (float[B,N,3,4] q, float[B,M,3,4] k, float[B,M,3,5] v) => (float[B,N,3,5] y) { a = Transpose<perm=[0,2,1,3]>(q) t = Transpose<perm=[0,2,3,1]>(k) c = Transpose<perm=[0,2,1,3]>(v) s = MatMul(a, t) p = Softmax(s) o = MatMul(p, c) y = Transpose<perm=[0,2,1,3]>(o) }`, "Reshape Reshape Reshape Attention Reshape", 23, ""},
		{"transposed product", `g (float[N,4] x, float[N,5] g) => (float[5,4] y) { a = Gemm<transA=1>(x, g) y = Transpose<perm=[1,0]>(a) }`, "Gemm", 21, ""},
		{"transposed MatMul", `g (float[3,4] x, float[4,5] g) => (float[5,3] y) { a = MatMul(x, g) y = Transpose(a) }`, "Gemm", 21, ""},
		{"transposed sum", `g (float[3,4] x, float[4,5] g, float[5] b) => (float[5,3] y) { a = Gemm(x, g, b) y = Transpose(a) }`, "Gemm Transpose", 21, ""},
		{"scatter on zeros", `g (float[6,4] x, float[2,4] u) => (float[6,4] y) { s = Constant<value: tensor = int64[2] {6,4}>() z = ConstantOfShape(s) i = Constant<value: tensor = int64[2,1] {1,1}>() a = ScatterND<reduction="add">(z, i, u) y = Add(a, x) }`, "ScatterND", 21, ""},
		{"scatter on ones", `g (float[6,4] x, float[2,4] u) => (float[6,4] y) { s = Constant<value: tensor = int64[2] {6,4}>() z = ConstantOfShape<value: tensor = float[1] {1}>(s) i = Constant<value: tensor = int64[2,1] {1,1}>() a = ScatterND<reduction="add">(z, i, u) y = Add(a, x) }`, "ConstantOfShape ScatterND Add", 21, ""},
		{"scatter that replaces", `g (float[6,4] x, float[2,4] u) => (float[6,4] y) { s = Constant<value: tensor = int64[2] {6,4}>() z = ConstantOfShape(s) i = Constant<value: tensor = int64[2,1] {1,2}>() a = ScatterND(z, i, u) y = Add(a, x) }`, "ConstantOfShape ScatterND Add", 21, ""},
		{"rotary", `g (float[2,3,5,4] x, float[2,5,2] f) => (float[2,3,5,4] y) { z = Constant<value: tensor = int64[1] {0}>() h = Constant<value: tensor = int64[1] {2}>() w = Constant<value: tensor = int64[1] {9223372036854775807}>() l = Constant<value: tensor = int64[1] {3}>() o = Constant<value: tensor = int64[1] {1}>()
			e = Concat<axis=-1>(f, f) c = Cos(e) s = Sin(e) cu = Unsqueeze(c, o) su = Unsqueeze(s, o) x1 = Slice(x, z, h, l, o) x2 = Slice(x, h, w, l, o) n = Neg(x2) r = Concat<axis=-1>(n, x1) p = Mul(x, cu) q = Mul(r, su) y = Add(p, q) }`, "Concat Cos Sin Unsqueeze Unsqueeze Slice Squeeze Slice Squeeze RotaryEmbedding", 23, ""},
		{"rotary, one table for all", `g (float[B,3,5,4] x, float[1,5,2] f) => (float[B,3,5,4] y) { z = Constant<value: tensor = int64[1] {0}>() h = Constant<value: tensor = int64[1] {2}>() w = Constant<value: tensor = int64[1] {9223372036854775807}>() l = Constant<value: tensor = int64[1] {3}>() o = Constant<value: tensor = int64[1] {1}>()
			e = Concat<axis=-1>(f, f) c = Cos(e) s = Sin(e) cu = Unsqueeze(c, o) su = Unsqueeze(s, o) x1 = Slice(x, z, h, l, o) x2 = Slice(x, h, w, l, o) n = Neg(x2) r = Concat<axis=-1>(n, x1) p = Mul(x, cu) q = Mul(r, su) y = Add(p, q) }`, "Concat Cos Sin Unsqueeze Unsqueeze Slice Squeeze Shape Concat Expand Slice Squeeze Shape Concat Expand RotaryEmbedding", 23, ""},
		{"rotary, halves that differ", `g (float[2,3,5,4] x, float[2,5,2] f, float[2,5,2] k) => (float[2,3,5,4] y) { z = Constant<value: tensor = int64[1] {0}>() h = Constant<value: tensor = int64[1] {2}>() w = Constant<value: tensor = int64[1] {9223372036854775807}>() l = Constant<value: tensor = int64[1] {3}>() o = Constant<value: tensor = int64[1] {1}>()
			e = Concat<axis=-1>(f, k) c = Cos(e) s = Sin(e) cu = Unsqueeze(c, o) su = Unsqueeze(s, o) x1 = Slice(x, z, h, l, o) x2 = Slice(x, h, w, l, o) n = Neg(x2) r = Concat<axis=-1>(n, x1) p = Mul(x, cu) q = Mul(r, su) y = Add(p, q) }`, "Concat Cos Sin Unsqueeze Unsqueeze Slice Slice Neg Concat Mul Mul Add", 23, "halves of the table"},
		{"rotary, opset without", `g (float[2,3,5,4] x, float[2,5,2] f) => (float[2,3,5,4] y) { z = Constant<value: tensor = int64[1] {0}>() h = Constant<value: tensor = int64[1] {2}>() w = Constant<value: tensor = int64[1] {9223372036854775807}>() l = Constant<value: tensor = int64[1] {3}>() o = Constant<value: tensor = int64[1] {1}>()
			e = Concat<axis=-1>(f, f) c = Cos(e) s = Sin(e) cu = Unsqueeze(c, o) su = Unsqueeze(s, o) x1 = Slice(x, z, h, l, o) x2 = Slice(x, h, w, l, o) n = Neg(x2) r = Concat<axis=-1>(n, x1) p = Mul(x, cu) q = Mul(r, su) y = Add(p, q) }`, "Concat Cos Sin Unsqueeze Unsqueeze Slice Slice Neg Concat Mul Mul Add", 22, ""},
		{"transposed by no exchange", `g (float[N,4] x, float[4,5] w) => (float[N,5] y) { t = Transpose<perm=[0,1]>(x) u = Transpose<perm=[0,1]>(w) y = MatMul(t, u) }`, "Transpose Transpose MatMul", 21, ""},
		{"gemm of what is not exchanged", `g (float[N,4] x, float[4,5] w, float[5] b) => (float[N,5] y) { t = Transpose<perm=[0,1]>(x) u = Transpose<perm=[0,1]>(w) y = Gemm(t, u, b) }`, "Transpose Transpose Gemm", 21, ""},
		{"gemm and a bias by row", `g (float[N,4] x, float[4,5] w, float[N,1] b) => (float[N,5] y) { a = Gemm(x, w) y = Add(a, b) }`, "Gemm Add", 21, ""},
		{"products that are not exchanged", `g (float[3,4] x, float[4,5] g) => (float[3,5] y, float[3,5] z) { a = MatMul(x, g) y = Transpose<perm=[0,1]>(a) b = Gemm<alpha=0.5>(x, g) z = Transpose<perm=[0,1]>(b) }`, "MatMul Transpose Gemm Transpose", 21, ""},
		{"rms norm over another axis", `g (float[N,8] x, float[8] g) => (float[N,8] y) { e = Constant<value: tensor = float {1e-5}>() a = Constant<value: tensor = int64[1] {0}>() q = Mul(x, x) v = ReduceMean(q, a) w = Add(v, e) s = Sqrt(w) y = Div(x, s) }`, "Mul ReduceMean Add Sqrt Div", 23, "not over the last axis"},
		{"rms norm, scale by row", `g (float[8,8] x, float[8,1] g) => (float[8,8] y) { e = Constant<value: tensor = float {1e-5}>() a = Constant<value: tensor = int64[1] {-1}>() q = Mul(x, x) v = ReduceMean(q, a) w = Add(v, e) s = Sqrt(w) n = Div(x, s) y = Mul(n, g) }`, "RMSNormalization Mul", 23, "one element per column"},
		{"layer norm, bias by row", `g (float[8,8] x, float[8] g, float[8,1] b) => (float[8,8] y) { n = LayerNormalization(x, g) y = Add(n, b) }`, "LayerNormalization Add", 21, ""},
		{"erf of another scale", `g (float[N,8] x) => (float[N,8] y) { r = Constant<value: tensor = float {2}>() o = Constant<value: tensor = float {1}>() h = Constant<value: tensor = float {0.5}>() d = Div(x, r) e = Erf(d) p = Add(e, o) q = Mul(x, p) y = Mul(q, h) }`, "Div Erf Add Mul Mul", 20, "another value"},
		{"tanh of another cube", `g (float[N,8] x) => (float[N,8] y) { k = Constant<value: tensor = float {3}>() c = Constant<value: tensor = float {0.05}>() s = Constant<value: tensor = float {0.7978846}>() o = Constant<value: tensor = float {1}>() h = Constant<value: tensor = float {0.5}>() x3 = Pow(x, k) x4 = Mul(x3, c) x5 = Add(x, x4) x6 = Mul(x5, s) x7 = Tanh(x6) x8 = Add(x7, o) x9 = Mul(x, h) y = Mul(x9, x8) }`, "Pow Mul Add Mul Tanh Add Mul Mul", 20, "another value"},
		{"attention of heads, as many as there are", `g (float[B,N,H,4] q, float[B,M,H,4] k, float[B,M,H,5] v) => (float[B,N,H,5] y) { a = Transpose<perm=[0,2,1,3]>(q) t = Transpose<perm=[0,2,3,1]>(k) c = Transpose<perm=[0,2,1,3]>(v) s = MatMul(a, t) p = Softmax(s) o = MatMul(p, c) y = Transpose<perm=[0,2,1,3]>(o) }`, "Transpose Transpose Transpose Attention Transpose", 23, "number of heads"},
		{"scatter of rows that may be smaller", `g (float[1,4] x, float[2,4] u) => (float[6,4] y) { s = Constant<value: tensor = int64[2] {6,4}>() z = ConstantOfShape(s) i = Constant<value: tensor = int64[2,1] {1,1}>() a = ScatterND<reduction="add">(z, i, u) y = Add(a, x) }`, "ConstantOfShape ScatterND Add", 21, "equal shapes"},
		{"scatter of elements on zeros", `g (float[6,4] x, float[2,4] u) => (float[6,4] y) { s = Constant<value: tensor = int64[2] {6,4}>() z = ConstantOfShape(s) i = Constant<value: tensor = int64[2,4] {1,1,2,3,0,0,0,0}>() a = ScatterElements<reduction="add">(z, i, u) y = Add(x, a) }`, "ScatterElements", 21, ""},
		{"scatter of elements that replace", `g (float[6,4] x, float[2,4] u) => (float[6,4] y) { s = Constant<value: tensor = int64[2] {6,4}>() z = ConstantOfShape(s) i = Constant<value: tensor = int64[2,4] {1,1,2,3,0,0,0,0}>() a = ScatterElements(z, i, u) y = Add(x, a) }`, "ConstantOfShape ScatterElements Add", 21, ""},
		{"transposed conv, frozen not all", `g (float[N,4,3,3] x, float[6] s) => (float[N,6,3,3] y) ` + strings.Replace(transposed, "float[6] s = {2,0.5,1,3,4,0.25}, ", "", 1) + ` { a = ConvTranspose<group=2>(x, w) y = BatchNormalization(a, s, t, u, v) }`, "ConvTranspose BatchNormalization", 21, "not frozen"},
		{"rotary of halves", `g (float[2,3,N,4] x, float[2,1,N,2] c, float[2,1,N,2] s) => (float[2,3,N,4] y) { x1, x2 = Split<axis=-1, num_outputs=2>(x) a = Mul(x1, c) b = Mul(x2, s) d = Sub(a, b) e = Mul(s, x1) f = Mul(x2, c) h = Add(e, f) y = Concat<axis=-1>(d, h) }`, "Squeeze Squeeze RotaryEmbedding", 23, ""},
		{"rotary of slices, one table", `g (float[2,3,N,4] x, float[N,2] c, float[N,2] s) => (float[2,3,N,4] y) { z = Constant<value: tensor = int64[1] {0}>() hf = Constant<value: tensor = int64[1] {2}>() w = Constant<value: tensor = int64[1] {9223372036854775807}>() l = Constant<value: tensor = int64[1] {-1}>() x1 = Slice(x, z, hf, l) x2 = Slice(x, hf, w, l) a = Mul(x1, c) b = Mul(x2, s) d = Sub(a, b) e = Mul(s, x1) f = Mul(x2, c) h = Add(f, e) y = Concat<axis=3>(d, h) }`, "Unsqueeze Expand Unsqueeze Expand RotaryEmbedding", 23, ""},
		{"rotary, places before heads", `g (float[B,N,3,4] x, float[B,N,1,2] c, float[B,N,1,2] s) => (float[B,N,3,4] y) { x1, x2 = Split<axis=-1, num_outputs=2>(x) a = Mul(x1, c) b = Mul(x2, s) d = Sub(a, b) e = Mul(s, x1) f = Mul(x2, c) h = Add(e, f) y = Concat<axis=-1>(d, h) }`, "Reshape Squeeze Squeeze RotaryEmbedding Reshape", 23, ""},
		{"rotary, a table for each head", `g (float[2,3,N,4] x, float[2,3,N,2] c, float[2,3,N,2] s) => (float[2,3,N,4] y) { x1, x2 = Split<axis=-1, num_outputs=2>(x) a = Mul(x1, c) b = Mul(x2, s) d = Sub(a, b) e = Mul(s, x1) f = Mul(x2, c) h = Add(e, f) y = Concat<axis=-1>(d, h) }`, "Split Mul Mul Sub Mul Mul Add Concat", 23, "entry for each position"},
		{"rotary of unequal parts", `g (float[2,3,N,4] x, float[2,1,N,1] c, float[2,1,N,1] s) => (float[2,3,N,6] y) { k = Constant<value: tensor = int64[2] {1,3}>() x1, x2 = Split<axis=-1>(x, k) a = Mul(x1, c) b = Mul(x2, s) d = Sub(a, b) e = Mul(s, x1) f = Mul(x2, c) h = Add(e, f) y = Concat<axis=-1>(d, h) }`, "Split Mul Mul Sub Mul Mul Add Concat", 23, "those of one value"},
		{"rotary without heads", `g (float[2,N,4] x, float[N,2] c, float[1,N,2] s) => (float[2,N,4] y) { x1, x2 = Split<axis=-1, num_outputs=2>(x) a = Mul(x1, c) b = Mul(x2, s) d = Sub(a, b) e = Mul(s, x1) f = Mul(x2, c) h = Add(e, f) y = Concat<axis=-1>(d, h) }`, "Unsqueeze Expand Expand RotaryEmbedding", 23, ""},
		{"rotary of pairs", `g (float[2,3,N,4] x, float[2,1,N,2] c, float[2,1,N,2] s) => (float[2,3,N,4] y) { z = Constant<value: tensor = int64[1] {0}>() o = Constant<value: tensor = int64[1] {1}>() t = Constant<value: tensor = int64[1] {2}>() w = Constant<value: tensor = int64[1] {9223372036854775807}>() l = Constant<value: tensor = int64[1] {3}>() m = Constant<value: tensor = int64[1] {-1}>() sh = Constant<value: tensor = int64[4] {0,0,0,-1}>()
			x1 = Slice(x, z, w, l, t) x2 = Slice(x, o, w, l, t) a = Mul(x1, c) b = Mul(x2, s) d = Sub(a, b) e = Mul(s, x1) f = Mul(x2, c) h = Add(e, f) du = Unsqueeze(d, m) hu = Unsqueeze(h, m) j = Concat<axis=-1>(du, hu) y = Reshape(j, sh) }`, "Squeeze Squeeze RotaryEmbedding", 23, ""},
		{"rotary of pairs the other way round", `g (float[2,3,N,4] x, float[2,1,N,2] c, float[2,1,N,2] s) => (float[2,3,N,4] y) { z = Constant<value: tensor = int64[1] {0}>() o = Constant<value: tensor = int64[1] {1}>() t = Constant<value: tensor = int64[1] {2}>() w = Constant<value: tensor = int64[1] {9223372036854775807}>() l = Constant<value: tensor = int64[1] {3}>() m = Constant<value: tensor = int64[1] {-1}>() sh = Constant<value: tensor = int64[4] {0,0,0,-1}>()
			x1 = Slice(x, o, w, l, t) x2 = Slice(x, z, w, l, t) a = Mul(x1, c) b = Mul(x2, s) d = Sub(a, b) e = Mul(s, x1) f = Mul(x2, c) h = Add(e, f) du = Unsqueeze(d, m) hu = Unsqueeze(h, m) j = Concat<axis=-1>(du, hu) y = Reshape(j, sh) }`, "Slice Slice Mul Mul Sub Mul Mul Add Unsqueeze Unsqueeze Concat Reshape", 23, "those of one value"},
		{"conv and batch norm", `g (float[N,3,4,4] x) => (float[N,2,4,4] y) ` + weights + ` { a = Conv(x, w, c) y = BatchNormalization<epsilon=0.001>(a, s, t, u, v) }`, "Conv", 21, ""},
		{"conv without bias", `g (float[N,3,4,4] x) => (float[N,2,4,4] y) ` + weights + ` { a = Conv<strides=[2,2]>(x, w) b = BatchNormalization(a, s, t, u, v) y = Relu(b) }`, "Conv Relu", 21, ""},
		{"conv read elsewhere", `g (float[N,3,4,4] x) => (float[N,2,4,4] y, float[N,2,4,4] z) ` + weights + ` { a = Conv(x, w) y = BatchNormalization(a, s, t, u, v) z = Neg(a) }`, "Conv BatchNormalization Neg", 21, "is read elsewhere"},
		{"weights of another conv", `g (float[N,3,4,4] x) => (float[N,2,4,4] y, float[N,2,4,4] z) ` + weights + ` { a = Conv(x, w) y = BatchNormalization(a, s, t, u, v) z = Conv(x, w) }`, "Conv Conv", 21, ""},
		{"transposed conv in groups", `g (float[N,4,3,3] x) => (float[N,6,3,3] y) ` + transposed + ` { a = ConvTranspose<group=2>(x, w) y = BatchNormalization(a, s, t, u, v) }`, "ConvTranspose", 21, ""},
		{"frozen not all", `g (float[N,3,4,4] x, float[2] s) => (float[N,2,4,4] y) ` + strings.Replace(weights, "float[2] s = {2,0.5}, ", "", 1) + ` { a = Conv(x, w) y = BatchNormalization(a, s, t, u, v) }`, "Conv BatchNormalization", 21, "not frozen"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plain, _ := canonical(t, c.in)
			m, info := canonical(t, c.in)
			r, err := fuse.Rewrite(m, info, fuse.Target{Standard: true, Opset: c.opset, Frozen: func(*graph.Value) bool { return true }, Explain: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := ops(m); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if err := graph.Verify(m); err != nil {
				t.Error(err)
			}
			if err := op.Verify(m); err != nil {
				t.Error(err)
			}
			refusals(t, c.in, c.opset, func(rule string) { refused[variant(rule)] = true })
			var misses []string
			for _, x := range r.Misses {
				misses = append(misses, x.String())
			}
			for _, k := range r.Counts {
				applied[variant(k.Rule.Name)] = true
			}
			if got := strings.Join(misses, "\n"); !strings.Contains(got, c.misses) {
				t.Errorf("near misses %q, want %q", got, c.misses)
			}
			if c.name == "integers" {
				return // compute makes floats only
			}
			for seed := range uint64(3) {
				want, got := compute(t, plain, seed), compute(t, m, seed)
				for i := range want {
					for k := range want[i].Len() {
						if d := math.Abs(want[i].Float(k) - got[i].Float(k)); !(d <= 1e-6*(1+math.Abs(want[i].Float(k)))) {
							t.Fatalf("output %d, element %d: %g, was %g", i, k, got[i].Float(k), want[i].Float(k))
						}
					}
				}
			}
		})
	}
	for _, table := range fuse.Tables(fuse.Target{Standard: true, Opset: 30, Frozen: func(*graph.Value) bool { return true }}) {
		for _, r := range table {
			if !applied[variant(r.Name)] {
				t.Errorf("rule %s has no test in which it is applied", r.Name)
			}
			if r.When != nil && !refused[variant(r.Name)] {
				t.Errorf("rule %s has a condition, and no test in which that does not hold", r.Name)
			}
		}
	}
}

// refusals applies the rules for an opset to a model and calls note for each whose condition does not hold where its pattern fits.
func refusals(t *testing.T, text string, opset int64, note func(rule string)) {
	t.Helper()
	tables := fuse.Tables(fuse.Target{Standard: true, Opset: opset, Frozen: func(*graph.Value) bool { return true }})
	for _, table := range tables {
		for i := range table {
			r := &table[i]
			when := r.When
			if when == nil {
				continue
			}
			r.When = func(m *rewrite.Match) error {
				err := when(m)
				if err != nil {
					note(r.Name)
				}
				return err
			}
		}
	}
	set, err := rewrite.NewSet(tables...)
	if err != nil {
		t.Fatal(err)
	}
	m, info := canonical(t, text)
	if _, err := set.Apply(m.Graph, info, rewrite.Options{}); err != nil {
		t.Error(err)
	}
}

// TestFoldAsks checks that weights that training changes are left alone.
func TestFoldAsks(t *testing.T) {
	m, info := canonical(t, `g (float[N,1,4,4] x) => (float[N,1,4,4] y) <float[1,1,1,1] w = {2}, float[1] s = {2}> { a = Conv(x, w) y = BatchNormalization(a, s, s, s, s) }`)
	r, err := fuse.Rewrite(m, info, fuse.Target{Standard: true, Opset: 21})
	if err != nil {
		t.Fatal(err)
	}
	if r.Rewrites != 0 || ops(m) != "Conv BatchNormalization" {
		t.Errorf("%d rewrites: %s", r.Rewrites, ops(m))
	}
	r, err = fuse.Rewrite(m, info, fuse.Target{Opset: 21, Frozen: func(v *graph.Value) bool { return v.Name == "w" }})
	if err != nil {
		t.Fatal(err)
	}
	if r.Rewrites != 0 {
		t.Errorf("%d rewrites although the scale is not frozen", r.Rewrites)
	}
}
