package prune

import (
	"slices"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// refusals are graphs that the pattern of a rule fits and its condition does not, beyond those among ruleCases and reassociateCases.
var refusals = []struct{ rule, in string }{
	{"neg-times-constant", "g (int32[2] x) => (int32[2] y) { c = Constant<value = int32 {3}>() a = Neg(x) y = Mul(a, c) }"},
	{"neg-of-product", "g (int32[2] x) => (int32[2] y) { c = Constant<value = int32 {3}>() a = Mul(x, c) y = Neg(a) }"},
	{"or-true", "g (bool[2] z, bool[2] t) => (bool[2] y) { y = Or(z, t) }"},
	{"cast-like-same", "g (float[2] x, int32[1] z) => (int32[2] y) { y = CastLike(x, z) }"},
	{"transpose-transpose", "g (x) => (y) { a = Transpose(x) y = Transpose(a) }"},
	{"reshape-flatten", "g (float[2,3,4] x, int64[2] s) => (float[A,B] y) { a = Flatten<axis = 1>(x) y = Reshape(a, s) }"},
	{"reshape-squeeze", "g (float[1,A,B] x, int64[3] s) => (float[C,D,E] y) <int64[1] k = {0}> { a = Squeeze(x, k) y = Reshape(a, s) }"},
	{"reshape-unsqueeze", "g (float[A,B] x, int64[1] s) => (float[C] y) <int64[1] k = {0}> { a = Unsqueeze(x, k) y = Reshape(a, s) }"},
	{"flatten-reshape", "g (float[A,B,C] x, int64[3] s) => (float[D,E] y) { a = Reshape(x, s) y = Flatten<axis = 1>(a) }"},
	{"squeeze-reshape", "g (float[A,B] x, int64[3] s) => (float[C,D] y) <int64[1] k = {0}> { a = Reshape(x, s) y = Squeeze(a, k) }"},
	{"squeeze-squeeze", "g (float[1,1,N] x, int64[1] k) => (y) <int64[1] l = {0}> { a = Squeeze(x, k) y = Squeeze(a, l) }"},
	{"unsqueeze-reshape", "g (float[A,B] x, int64[2] s) => (float[1,C,D] y) <int64[1] k = {0}> { a = Reshape(x, s) y = Unsqueeze(a, k) }"},
	{"unsqueeze-unsqueeze", "g (float[N] x, int64[1] k) => (y) <int64[1] l = {0}> { a = Unsqueeze(x, k) y = Unsqueeze(a, l) }"},
	{"tile-once", "g (float[2] x) => (float[4] y) <int64[1] r = {2}> { y = Tile(x, r) }"},
	{"reduce-prod-ones", "g (float[2,2] x) => (float[2,1] y) <int64[1] k = {1}> { y = ReduceProd(x, k) }"},
	{"expand-expand", "g (float[1,3] x, int64[2] s, int64[2] t) => (float[A,B] y) { a = Expand(x, s) y = Expand(a, t) }"},
	{"reduce-min-expand", "g (float[3] x) => (float[2,1] y) <int64[2] s = {2, 3}, int64[1] k = {1}> { a = Expand(x, s) y = ReduceMin(a, k) }"},
	{"gemm-add", "g (float[2,3] x, float[3,4] w, float[2,1] b) => (float[2,4] y) { a = Gemm(x, w) y = Add(a, b) }"},
	{"mul-mul", "g (float[5,5] x) => (float[5,5] y) <float[5,1] c = {1, 2, 3, 4, 5}, float[1,5] d = {6, 7, 8, 9, 1}> { a = Mul(x, c) y = Mul(a, d) }"},
	{"add-add", "g (float[5,5] x) => (float[5,5] y) <float[5,1] c = {1, 2, 3, 4, 5}, float[1,5] d = {6, 7, 8, 9, 1}> { a = Add(x, c) y = Add(a, d) }"},
	{"mul-div", "g (float[5,5] x) => (float[5,5] y) <float[5,1] c = {1, 2, 3, 4, 5}, float[1,5] d = {6, 7, 8, 9, 1}> { a = Mul(x, c) y = Div(a, d) }"},
	{"matmul-transposed-right", "g (float[N,2,3] x, float[4,3] w) => (float[N,2,4] y) { a = Transpose(w) y = MatMul(x, a) }"},
	{"reduce-mean-expand", "g (float[3] x) => (float[2,1] y) <int64[2] s = {2, 3}, int64[1] k = {1}> { a = Expand(x, s) y = ReduceMean(a, k) }"},
}

// family returns the name that a rule of a generated family shares with the others, whose conditions are one function.
func family(rule string) string {
	for _, f := range []string{"splat-operand-", "splat-", "expand-operand-", "expand-through-"} {
		if strings.HasPrefix(rule, f) {
			return f
		}
	}
	if strings.HasSuffix(rule, "-back") {
		return "-back"
	}
	return rule
}

// TestRefusals checks that each rule with a condition is held back by it in a graph that it would fit otherwise.
func TestRefusals(t *testing.T) {
	refused := map[string]bool{}
	tables := append(Rules(), ReassociatingRules())
	for _, table := range tables {
		for i := range table {
			r := &table[i]
			when := r.When
			if when == nil {
				continue
			}
			r.When = func(m *match) error {
				err := when(m)
				if err != nil {
					refused[r.Name], refused[family(r.Name)] = true, true
				}
				return err
			}
		}
	}
	set, err := rewrite.NewSet(tables...)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(in string) []rewrite.Count {
		m := inferred(t, in)
		info, _ := op.Infer(m)
		p := &pruner{m: m, opt: Options{Frozen: func(*graph.Value) bool { return true }}, info: info, trained: map[*graph.Value]bool{}, made: map[*graph.Value]bool{}}
		r, err := set.Apply(m.Graph, info, rewrite.Options{Known: p.known, Fixed: p.isConstant})
		if err != nil {
			t.Errorf("%s: %v", in, err)
		}
		return r.Counts
	}
	for _, c := range refusals {
		delete(refused, c.rule)
		counts := apply(c.in)
		if !refused[c.rule] {
			t.Errorf("rule %s does not refuse %s", c.rule, c.in)
		}
		if slices.ContainsFunc(counts, func(k rewrite.Count) bool { return k.Rule.Name == c.rule }) {
			t.Errorf("rule %s is applied to %s", c.rule, c.in)
		}
	}
	for _, c := range slices.Concat(ruleCases, reassociateCases) {
		apply(c.in)
	}
	for _, table := range tables {
		for _, r := range table {
			if r.When != nil && !refused[r.Name] && !refused[family(r.Name)] {
				t.Errorf("rule %s has a condition, and no test in which that does not hold", r.Name)
			}
		}
	}
}
