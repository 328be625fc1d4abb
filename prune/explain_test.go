package prune

import (
	"slices"
	"strings"
	"testing"
)

// TestExplain checks that what nearly happened is told with its reason: of rules, and of what is no rule.
func TestExplain(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"rule", "g (float[2] x) => (float[2] y) <float z = {1}> { c = Constant<value = float {0}>() a = Add(x, c) y = Mul(a, z) }", `add-zero: node (Add): -0 + 0 is +0, and the other operand may be -0`},
		{"inner value", "g (float[2] x, float[2] z) => (float[2] y, float[2] a) { a = Neg(x) y = Add(a, z) }", `add-neg: node (Add): inner value "a" is a graph output`},
		{"shape", "g (float[?] x) => (float[?] y) <int64[1] s = {3}> { y = Reshape(x, s) }", ""},
		{"unknown shape", "g (float[?] x, int64[1] s) => (float[?] y) { y = Reshape(x, s) }", `reshape-same: node (Reshape): the result, float[?], may differ from float[?]`},
		{"rank", "g (float[2,N,3] x, float[4] b) => (float[2,N,4] y) <float[3,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> { a = MatMul(x, w) y = Add(b, a) }", `matmul-add: node (Add): the product has rank 3, Gemm takes matrices`},
		{"trained", "g (float[N,2,4,4] x, float[3,2,1,1] w) => (float[N,3,4,4] y) <float[3,1,1] b = {1, 2, 3}> { a = Conv(x, w) y = Add(b, a) }", `conv-add: node (Add): an operand that matters is not constant`},
		{"rounding", "g (float[N] x) => (float[N] y) { c = Constant<value = float {3}>() d = Constant<value = float {7}>() a = Mul(x, c) y = Mul(a, d) }", `mul-mul-integers: node (Mul): float rounds after each step; --reassociate groups constants anew`},
		{"fold", "g () => (int64[4096] y) <int64 a = {0}, int64 b = {4096}, int64 k = {1}> { y = Range(a, b, k) }", `fold: node (Range): the constant takes 32.0 KiB, its operands that go 24 B, the allowance is 4.0 KiB`},
		{"merge", "g (float[3] x) => (float[3] y) { a = Exp(x)\n[b] b = Exp(x) # meta: \"gradtool.role\": \"recompute\"\ny = Mul(a, b) }", `merge: node "b" (Exp): it and (Exp) compute the same on purpose`},
		{"tie", "g (float[2] x) => (float[2] y) <float[2] a = {3, 2}, float[2] b = {3, 2}> { d = Mul(x, a) y = Add(d, b) }", `tie: initializers "a" and "b" are equal, and may be trained apart; see --frozen`},
		{"constant shape", "g (float[N,M] x) => (float[M,N] y) { n = Shape<end = 1>(x) m = Shape<start = 1>(x) s = Concat<axis = 0>(m, n) y = Reshape(x, s) }", `constant shape: node (Reshape): dimension 1 of [M,N] is left to run time beside another`},
		{"transpose", "g (float[2,3] x) => (float[3,2] y) { a = Transpose(x) y = Exp(a) }", `move-transposes: node (Transpose): moving it across the 1 nodes behind it saves none`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parse(t, c.in)
			s, err := Run(m, Options{Explain: true})
			if err != nil {
				t.Fatal(err)
			}
			plain := strings.NewReplacer(`"a" (`, "(", `"y" (`, "(", `node  (`, "node (")
			if !slices.ContainsFunc(s.Misses, func(miss string) bool { return c.want == "" || strings.Contains(plain.Replace(miss), c.want) }) && (c.want != "" || len(s.Misses) > 0) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(s.Misses, "\n"), c.want)
			}
		})
	}
}
