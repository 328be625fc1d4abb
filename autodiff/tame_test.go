package autodiff_test

import (
	"testing"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/graph/op"
)

// TestMask checks where a gradient multiplies with a mask and where it uses Where: an infinite cotangent that only some
// elements have must not become NaN in those that the mask takes out.
func TestMask(t *testing.T) {
	for _, c := range []struct {
		name, model string
		where       bool
	}{
		{"product behind", `(float[N,4] x, float[4,3] w) => (float[N,3] y) { r = Relu(x) y = MatMul(r, w) }`, false},
		{"convolution behind a pool", `(float[N,4,8,8] x, float[3,4,3,3] w) => (float[N,3,2,2] y) { r = Relu(x) p = MaxPool<kernel_shape=[2,2],strides=[2,2]>(r) y = Conv(p, w) }`, false},
		{"logarithm behind", `(float[N,4] x) => (float[N,4] y) { r = Relu(x) y = Log(r) }`, true},
		{"logarithm behind a sum", `(float[N,4] x) => (float[N,4] y) { r = Relu(x) s = Add(r, r) y = Log(s) }`, true},
		{"one of two ways", `(float[N,4] x, float[4,4] w) => (float[N,4] y) { r = Relu(x) a = MatMul(r, w) b = Sqrt(r) y = Add(a, b) }`, true},
		{"an output", `(float[N,4] x) => (float[N,4] y) { y = Relu(x) }`, true},
		{"a bias", `(float[N,4] x, float[4] v, float[4,4] w) => (float[N,4] y) { r = Relu(v) y = Gemm(x, w, r) }`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := graph.Parse(`<ir_version: 10, opset_import: ["" : 21]> g ` + c.model)
			if err != nil {
				t.Fatal(err)
			}
			info, err := op.Infer(m)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := autodiff.Gradient(m, info, autodiff.GradOptions{Wrt: m.Graph.Inputs}); err != nil {
				t.Fatal(err)
			}
			where := false
			for _, n := range m.Graph.Nodes {
				where = where || n.Is("Where") && n.Meta.Get(graph.MetaFrom) != "" && n.Meta.Get(graph.MetaRole) == graph.RoleBackward
			}
			if where != c.where {
				t.Errorf("uses Where: %v, want %v", where, c.where)
			}
		})
	}
}
