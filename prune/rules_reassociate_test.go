package prune

import (
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

var reassociateCases = []ruleCase{
	{"conv-batchnorm", "g (float[N,2,4,4] x) => (float[N,3,4,4] y) <float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}, float[3] s = {1, 2, 3}, float[3] o = {0.5, 0.25, 1}, float[3] u = {0.1, 0.2, 0.3}, float[3] v = {1, 2, 0.5}> { a = Conv(x, w) y = BatchNormalization(a, s, o, u, v) }", "y = Conv (x)"},
	{"conv-batchnorm", "g (float[N,2,4,4] x) => (float[N,4,4,4] y) <float[4,1,1,1] w = {1, 2, 3, 4}, float[4] b = {1, 2, 3, 4}, float[4] s = {1, 2, 3, 4}, float[4] o = {0.5, 0.25, 1, 0}, float[4] u = {0.1, 0.2, 0.3, 0}, float[4] v = {1, 2, 0.5, 1}> { a = Conv<group = 2>(x, w, b) y = BatchNormalization<epsilon = 0.1>(a, s, o, u, v) }", "y = Conv <group: int = 2> (x)"},
	{"", "g (float[N,2,4,4] x, float[3,2,1,1] w) => (float[N,3,4,4] y) <float[3] s = {1, 2, 3}, float[3] o = {0.5, 0.25, 1}, float[3] u = {0.1, 0.2, 0.3}, float[3] v = {1, 2, 0.5}> { a = Conv(x, w) y = BatchNormalization(a, s, o, u, v) }", ""},
	{"", "g (float[N,2,4,4] x) => (float[N,3,4,4] y, float[N,3,4,4] z) <float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}, float[3] s = {1, 2, 3}, float[3] o = {0.5, 0.25, 1}, float[3] u = {0.1, 0.2, 0.3}, float[3] v = {1, 2, 0.5}> { z = Conv(x, w) y = BatchNormalization(z, s, o, u, v) }", ""},
	{"", "g (float[N,2,4,4] x) => (float[N,3,4,4] y, float[N,3,4,4] z) <float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}, float[3] s = {1, 2, 3}, float[3] o = {0.5, 0.25, 1}, float[3] u = {0.1, 0.2, 0.3}, float[3] v = {1, 2, 0.5}> { a = Conv(x, w) y = BatchNormalization(a, s, o, u, v) b = Neg(x) z = Conv(b, w) }", ""},
	{"conv-mul", "g (float[N,2,4,4] x) => (float[N,3,4,4] y) <float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}, float[3] b = {1, 2, 3}, float[1,3,1,1] c = {3, 5, 7}> { a = Conv(x, w, b) y = Mul(c, a) }", "y = Conv (x)"},
	{"conv-mul", "g (float[N,2,4,4] x) => (float[N,3,4,4] y) <float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}, float c = {3}> { a = Conv(x, w) y = Mul(c, a) }", "y = Conv (x)"},
	{"", "g (float[N,2,4,4] x) => (float[N,3,4,4] y) <float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}, float[4] c = {3, 5, 7, 9}> { a = Conv(x, w) y = Mul(c, a) }", ""},
	{"conv-bias-add", "g (float[N,2,4,4] x) => (float[N,3,4,4] y) <float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}, float[3] b = {1, 2, 3}, float[3,1,1] c = {3, 5, 7}> { a = Conv(x, w, b) y = Add(c, a) }", "y = Conv (x, w)"},
	{"", "g (float[N,2,4,4] x, float[3] b) => (float[N,3,4,4] y) <float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}, float[3,1,1] c = {3, 5, 7}> { a = Conv(x, w, b) y = Add(c, a) }", ""},
	{"conv-pad", "g (float[N,2,4,4] x, float[3,2,2,2] w) => (float[N,3,4,5] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 0, 1}> { a = Pad(x, p) y = Conv<kernel_shape = [2, 2]>(a, w) }", "y = Conv <kernel_shape: ints = [2, 2], pads: ints = [1, 1, 0, 1]> (x, w)"},
	{"", "g (float[N,1,4,4] x, float[3,2,2,2] w) => (float[N,3,3,3] y) <int64[8] p = {0, 1, 0, 0, 0, 0, 0, 0}> { a = Pad(x, p) y = Conv(a, w) }", ""},
	{"", "g (float[N,2,4,4] x, float[3,2,2,2] w) => (float[N,3,4,5] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 0, 1}, float c = {1}> { a = Pad(x, p, c) y = Conv(a, w) }", ""},
	{"mul-mul", "g (float[N,3] x) => (float[N,3] y) <float c = {3}, float[3] d = {5, 6, 7}> { a = Mul(c, x) y = Mul(a, d) }", "y = Mul (x)"},
	{"add-add", "g (float[N,3] x) => (float[N,3] y) <float c = {3}, float[3] d = {5, 6, 7}> { a = Add(c, x) y = Add(a, d) }", "y = Add (x)"},
	{"mul-div", "g (float[N,3] x) => (float[N,3] y) <float c = {3}, float[3] d = {5, 6, 7}> { a = Mul(c, x) y = Div(a, d) }", "y = Mul (x)"},
	{"", "g (float[N,3] x) => (float[N,3] y) <float c = {3}, float[3] d = {5, 6, 7}> { a = Mul(c, x) y = Div(d, a) }", ""},
	{"", "g (float[N,3] x, float[3] d) => (float[N,3] y) <float c = {3}> { a = Mul(c, x) y = Mul(a, d) }", ""},
	{"matmul-transposed-right", "g (float[N,3] x, float[4,3] w) => (float[N,4] y) { a = Transpose(w) y = MatMul(x, a) }", "y = Gemm <transB: int = 1> (x, w)"},
	{"add-pads", "g (float[N,3] x, float[N,2] z) => (float[N,5] y) <int64[4] p = {0, 2, 0, 0}, int64[4] q = {0, 0, 0, 3}> { a = Pad(x, p) b = Pad(z, q) y = Add(b, a) }", "y = Concat <axis: int = 1> (z, x)"},
	{"reduce-mean-expand", "g (float[3] x) => (float[3] y) <int64[2] s = {5, 3}, int64[1] k = {0}> { a = Expand(x, s) b = ReduceMean<keepdims = 0>(a, k) y = Exp(b) }", "y = Exp (x)"},
	{"reduce-sum-expand-float", "g (float[3] x) => (float[3] y) <int64[2] s = {5, 3}, int64[1] k = {0}> { a = Expand(x, s) y = ReduceSum<keepdims = 0>(a, k) }", "y = Mul (x)"},
	{"", "g (float[3] x) => (float[5] y) <int64[2] s = {5, 3}, int64[1] k = {1}> { a = Expand(x, s) y = ReduceSum<keepdims = 0>(a, k) }", ""},
	{"", "g (float[3] x) => (float[3] y) <int64[2] s = {0, 3}, int64[1] k = {0}> { a = Expand(x, s) y = ReduceSum<keepdims = 0>(a, k) }", ""},
}

// TestReassociate checks that the rules hold within rounding, that they leave trained weights alone, and that they are
// not applied unless asked for.
func TestReassociate(t *testing.T) {
	tried := map[string]bool{}
	frozen := Options{Reassociate: true, Frozen: func(*graph.Value) bool { return true }}
	for _, c := range reassociateCases {
		m, original := parse(t, c.in), inferred(t, c.in)
		s, err := Run(m, frozen)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if err := op.Verify(m); err != nil {
			t.Errorf("%s: %v", c.in, err)
		}
		applied := false
		for _, r := range s.Rules {
			tried[r.Name] = true
			applied = applied || r.Name == c.rule
		}
		want := c.want
		if c.rule == "" {
			want = computed(original)
		}
		if got := computed(m); got != want || applied != (c.rule != "") {
			t.Errorf("rule %q on %s\ngot  %s\nwant %s\napplied %v", c.rule, c.in, got, want, s.Rules)
		}
		if diff := agree(t, original, m, effects(s)); diff != "" {
			t.Errorf("rule %q on %s: %s", c.rule, c.in, diff)
		}
		if again, err := Run(m, frozen); err != nil || again.Changed() {
			t.Errorf("%s: a second run does %q, %v", c.in, again, err)
		}
		for _, opt := range []Options{{Frozen: frozen.Frozen}, {Reassociate: true}} {
			m := parse(t, c.in)
			s, err := Run(m, opt)
			if err != nil {
				t.Error(err)
			}
			for _, r := range s.Rules {
				if strings.HasPrefix(r.Name, "conv-b") || r.Name == "conv-mul" || !opt.Reassociate && r.Name == c.rule {
					t.Errorf("%s was applied with %+v to %s", r.Name, opt, c.in)
				}
			}
		}
	}
	for _, r := range ReassociatingRules() {
		if !tried[r.Name] {
			t.Errorf("rule %s has no test", r.Name)
		}
	}
}
