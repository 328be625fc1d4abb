package prune

import (
	"slices"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

func TestLayouts(t *testing.T) {
	const to, back = "<perm = [0, 3, 1, 2]>", "<perm = [0, 2, 3, 1]>"
	for _, c := range []struct {
		name, in, want string
		moved          bool
	}{
		{"there and back across an activation", "g (float[N,4,4,3] x) => (float[N,4,4,3] y) { a = Transpose" + to + "(x) b = Relu(a) c = Transpose" + back + "(b) y = Exp(c) }",
			"Relu = Relu (x)\ny = Exp (Relu)", true},
		{"an output in between", "g (float[N,4,4,3] x) => (float[N,4,4,3] y, float[N,3,4,4] b) { a = Transpose" + to + "(x) b = Relu(a) c = Transpose" + back + "(b) y = Exp(c) }",
			"", true},
		{"two operands", "g (float[2,3] x, float[2,3] z) => (float[3,2] y) { a = Transpose(x) b = Transpose(z) y = Add(a, b) }",
			"", true},
		{"one operand", "g (float[2,3] x, float[3,2] z) => (float[3,2] y) { a = Transpose(x) y = Add(a, z) }", "", false},
		{"two permutations", "g (float[3,3,3] x) => (float[3,3,3] y) { a = Transpose<perm = [1, 0, 2]>(x) b = Transpose<perm = [0, 2, 1]>(x) y = Add(a, b) }", "", false},
		{"a constant", "g (float[N,4,4,3] x) => (float[N,4,4,3] y) { k = Constant<value = float[3,1,1] {1, 2, 3}>() a = Transpose" + to + "(x) b = Mul(a, k) c = Transpose" + back + "(b) y = Exp(c) }",
			"Mul = Mul (x)\ny = Exp (Mul)", true},
		{"a trained constant", "g (float[N,4,4,3] x, float[3,1,1] k) => (float[N,4,4,3] y) { a = Transpose" + to + "(x) b = Mul(a, k) c = Transpose" + back + "(b) y = Exp(c) }", "", false},
		{"Pad and Slice", "g (float[N,4,5,3] x) => (float[N,5,4,3] y) <int64[8] p = {0, 1, 1, 0, 0, 0, 0, 2}, int64[2] s = {1, 1}, int64[2] e = {4, 5}, int64[2] i = {1, 3}> { a = Transpose" + to + "(x) b = Pad(a, p) c = Slice(b, s, e, i) d = Transpose" + back + "(c) y = Exp(d) }",
			"", true},
		{"Concat and Split", "g (float[N,2,3] x, float[N,2,3] z) => (float[N,2,2] y, float[N,2,4] w) <int64[2] s = {2, 4}> { a = Transpose<perm = [0, 2, 1]>(x) b = Transpose<perm = [0, 2, 1]>(z) c = Concat<axis = 1>(a, b) d, e = Split<axis = 1>(c, s) f = Transpose<perm = [0, 2, 1]>(d) h = Transpose<perm = [0, 2, 1]>(e) y = Exp(f) w = Exp(h) }",
			"", true},
		{"ReduceMax", "g (float[N,3,4,5] x) => (float[N,3] y) <int64[2] k = {1, 2}> { a = Transpose" + back + "(x) y = ReduceMax<keepdims = 0>(a, k) }", "y = ReduceMax <keepdims: int = 0> (x)", true},
		{"ReduceSum depends on order", "g (float[N,3,4,5] x) => (float[N,3] y) <int64[2] k = {1, 2}> { a = Transpose" + back + "(x) y = ReduceSum<keepdims = 0>(a, k) }", "", false},
		{"Gather", "g (float[2,N,3] x) => (float[N,3] y) <int64 i = {1}> { a = Transpose<perm = [1, 0, 2]>(x) y = Gather<axis = 1>(a, i) }", "y = Gather <axis: int = 0> (x, i)", true},
		{"Gather of several", "g (float[2,N,3] x) => (float[2,2,N,3] y) <int64[2,2] i = {1, 0, 0, 1}> { a = Transpose<perm = [1, 0, 2]>(x) b = Gather<axis = 1>(a, i) c = Transpose<perm = [1, 2, 0, 3]>(b) y = Exp(c) }", "", true},
		{"Squeeze and Unsqueeze", "g (float[N,1,2,3] x) => (float[N,3,1,2] y) <int64[1] s = {2}, int64[1] u = {2}> { a = Transpose<perm = [0, 3, 1, 2]>(x) b = Squeeze(a, s) c = Unsqueeze(b, u) y = Exp(c) }", "", false},
		{"Unsqueeze and back", "g (float[N,2,3] x) => (float[N,2,3,1] y) <int64[1] u = {1}> { a = Transpose<perm = [0, 2, 1]>(x) b = Unsqueeze(a, u) c = Transpose<perm = [0, 3, 2, 1]>(b) y = Exp(c) }", "", true},
		{"Reshape that takes apart", "g (float[6,4] x) => (float[2,3,4] y) <int64[3] s = {4, 2, 3}> { a = Transpose(x) b = Reshape(a, s) c = Transpose<perm = [1, 2, 0]>(b) y = Exp(c) }", "", true},
		{"Reshape that joins", "g (float[2,3,N] x) => (float[6,N] y) <int64[2] s = {-1, 6}> { a = Transpose<perm = [2, 0, 1]>(x) b = Reshape(a, s) c = Transpose(b) y = Exp(c) }", "", true},
		{"Reshape that mixes", "g (float[2,3,4] x) => (float[6,4] y) <int64[2] s = {4, 6}> { a = Transpose<perm = [2, 1, 0]>(x) b = Reshape(a, s) c = Transpose(b) y = Exp(c) }", "", false},
		{"more branches than Transposes", "g (float[N,4,4,3] x, float[3,3,1,1] w) => (float[N,4,4,3] y, float[N,3,4,4] u, float[N,3,4,4] v) { a = Transpose" + to + "(x) b = Relu(a) c = Transpose" + back + "(b) y = Exp(c) d = Neg(b) e = Sqrt(b) u = Conv(d, w) v = Conv(e, w) }", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, m := inferred(t, c.in), parse(t, c.in)
			s, err := Run(m, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := graph.Verify(m); err != nil {
				t.Error(err)
			}
			if err := op.Verify(m); err != nil {
				t.Error(err)
			}
			if got := computed(m); c.want != "" && got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			moved := slices.ContainsFunc(s.Rules, func(r Count) bool { return r.Name == ruleLayout })
			if moved != c.moved {
				t.Errorf("moved is %v: %v\n%s", moved, s.Rules, computed(m))
			}
			if moved && strings.Count(computed(m), "\n") >= strings.Count(computed(before), "\n") {
				t.Errorf("no fewer nodes:\n%s", computed(m))
			}
			if s := agree(t, before, m, rewrite.Exact); s != "" {
				t.Errorf("%s\n%s", s, computed(m))
			}
			if again, err := Run(m, Options{}); err != nil || again.Changed() {
				t.Errorf("a second run does %q, %v", again, err)
			}
		})
	}
}
