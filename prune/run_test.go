package prune

import (
	"strings"
	"testing"

	"gradtool/graph"
)

// TestRunWholeGraph covers what is no rule: folding, merging, tying, shapes, control flow.
func TestRunWholeGraph(t *testing.T) {
	frozen := func(*graph.Value) bool { return true }
	for _, c := range []struct {
		name, in, want string
		opt            Options
		stats          string
	}{
		{"fold integers", "g (int64[3] x) => (int64[3] y) <int64 a = {2}, int64 b = {3}> { c = Mul(a, b) y = Add(x, c) }", "y = Add (x)", Options{},
			"1 node folded, 2 unused initializers"},
		{"trained weights stay", "g (float[3] x) => (float[3] y) <float a = {2}, float b = {3}> { c = Mul(a, b) y = Add(x, c) }", "c = Mul (a, b)\ny = Add (x, c)", Options{}, ""},
		{"a weight that trains is not one", "g (float[3] x) => (float[3] y) <float a = {1}> { y = Mul(x, a) }", "y = Mul (x, a)", Options{}, ""},
		{"frozen weights", "g (float[3] x) => (float[3] y) <float a = {2}, float b = {3}> { c = Mul(a, b) y = Add(x, c) }", "y = Add (x)", Options{Frozen: frozen},
			"1 node folded, 2 unused initializers"},
		{"shape of a weight", "g (float[3] x) => (int64[1] y) <float[3] a = {2, 3, 4}> { s = Shape(a) t = Shape(x) y = Add(s, t) }", "", Options{},
			"1 dead node, 3 nodes folded, 1 node merged, 1 unused initializer"},
		{"random", "g () => (float[3] y) { r = RandomNormal<shape = [3]>() y = Neg(r) }", "r = RandomNormal <shape: ints = [3]>\ny = Neg (r)", Options{}, ""},
		{"training", "g (float[3] x) => (float[3] y) <bool t = {1}, float r = {0.5}, float[3] k = {1, 2, 3}> { d = Dropout(k, r, t) y = Add(x, d) }",
			"d = Dropout (k, r, t)\ny = Add (x, d)", Options{Frozen: frozen}, ""},
		{"too large", "g (float[2000] x) => (float[2000] y) <int64 a = {0}, int64 b = {2000}, int64 k = {1}> { r = Range(a, b, k) f = Cast<to = 1>(r) y = Mul(x, f) }",
			"r = Range (a, b, k)\nf = Cast <to: int = 1> (r)\ny = Mul (x, f)", Options{}, ""},
		{"hostile", "g () => (float[?] y) <int64[2] s = {4611686018427387904, 4}> { c = ConstantOfShape(s) y = Neg(c) }",
			"y = ConstantOfShape <value: tensor = float[1] {-0}>", Options{}, "1 unused initializer"},
		{"merge", "g (float[3] x) => (float[3] y) { a = Exp(x) b = Exp(x) y = Mul(a, b) }", "a = Exp (x)\ny = Mul (a, a)", Options{}, "1 node merged"},
		{"merge asks for attributes", "g (float[2,2] x) => (float[2,2] y) { a = Softmax<axis = 0>(x) b = Softmax<axis = 1>(x) y = Mul(a, b) }",
			"a = Softmax <axis: int = 0> (x)\nb = Softmax <axis: int = 1> (x)\ny = Mul (a, b)", Options{}, ""},
		{"merge of outputs", "g (float[3] x) => (float[3] a, float[3] b) { a = Exp(x) b = Exp(x) }", "a = Exp (x)\nb = Identity (a)", Options{}, "1 node merged"},
		{"merge into an output", "g (float[3] x) => (float[3] b, float[3] y) { a = Exp(x) b = Exp(x) y = Neg(a) }", "b = Exp (x)\ny = Neg (b)", Options{}, "1 node merged"},
		{"recomputed on purpose", "g (float[3] x) => (float[3] y) { a = Exp(x)\n[b] b = Exp(x) # meta: \"gradtool.role\": \"recompute\"\ny = Mul(a, b) }",
			"a = Exp (x)\nb = Exp (x)\ny = Mul (a, b)", Options{}, ""},
		{"random is not merged", "g () => (float[3] y) { a = RandomNormal<shape = [3]>() b = RandomNormal<shape = [3]>() y = Mul(a, b) }",
			"a = RandomNormal <shape: ints = [3]>\nb = RandomNormal <shape: ints = [3]>\ny = Mul (a, b)", Options{}, ""},
		{"merge by shape", "g (float[N,3] x, float[N,4] z) => (int64[1] y) { a = Shape<end = 1>(x) b = Shape<end = 1>(z) y = Mul(a, b) }",
			"a = Shape <end: int = 1> (x)\ny = Mul (a, a)", Options{}, "1 node merged"},
		{"merge with the graph around", "g (bool c, float[3] x) => (float[3] y) { a = Exp(x) d = If(c) <then_branch = t () => (float[3] u) { e = Exp(x) u = Neg(e) }, else_branch = f () => (float[3] v) { v = Abs(x) }> y = Mul(a, d) }",
			"a = Exp (x)\nd = If (c)\ny = Mul (a, d)\nu = Neg (a)\nv = Abs (x)", Options{}, "1 node merged"},
		{"tie", "g (float[2] x) => (float[2] y) <float[2] a = {1, 2}, float[2] b = {1, 2}, float[2] c = {1, 3}> { d = Mul(x, a) e = Add(d, b) y = Sub(e, c) }",
			"d = Mul (x, a)\ne = Add (d, a)\ny = Sub (e, c)", Options{Frozen: frozen}, "1 equal initializer, 1 unused initializer"},
		{"target of Reshape", "g (float[N,6] x) => (float[N,2,3] y) { n = Shape<end = 1>(x) t = Constant<value = int64[2] {2, 3}>() s = Concat<axis = 0>(n, t) y = Reshape(x, s) }",
			"y = Reshape (x)", Options{}, "3 dead nodes, 1 shape made constant"},
		{"target with two unknown dimensions", "g (float[N,M] x) => (float[M,N] y) { n = Shape<end = 1>(x) m = Shape<start = 1>(x) s = Concat<axis = 0>(m, n) y = Reshape(x, s) }",
			"n = Shape <end: int = 1> (x)\nm = Shape <start: int = 1> (x)\ns = Concat <axis: int = 0> (m, n)\ny = Reshape (x, s)", Options{}, ""},
		{"target of Expand", "g (float[N,1] x) => (float[N,3] y) { n = Shape<end = 1>(x) t = Constant<value = int64[1] {3}>() s = Concat<axis = 0>(n, t) y = Expand(x, s) }",
			"y = Expand (x)", Options{}, "3 dead nodes, 1 shape made constant"},
		{"If", "g (float[3] x) => (float[3] y) <bool c = {1}> { d = If(c) <then_branch = t () => (float[3] u) { u = Neg(x) }, else_branch = f () => (float[3] v) { v = Abs(x) }> y = Exp(d) }",
			"d = Neg (x)\ny = Exp (d)", Options{}, "1 If inlined, 1 unused initializer"},
		{"Loop of one", "g (float[3] x) => (float[3] y, float[1,3] z) <int64 m = {1}> { a, z = Loop(m, \"\", x) <body = b (int64 i, bool c, float[3] v) => (bool d, float[3] w, float[3] s) { d = Identity(c) w = Exp(v) s = Neg(v) }> y = Abs(a) }",
			"w = Exp (x)\ns = Neg (x)\nz = Unsqueeze (s)\ny = Abs (w)", Options{}, "2 dead nodes, 2 identities, 1 Loop inlined, 1 unused initializer"},
		{"Loop of none", "g (float[3] x) => (float[3] y) <int64 m = {0}> { a = Loop(m, \"\", x) <body = b (int64 i, bool c, float[3] v) => (bool d, float[3] w) { d = Identity(c) w = Exp(v) }> y = Abs(a) }",
			"y = Abs (x)", Options{}, "1 Loop inlined, 1 unused initializer"},
		{"Loop of many", "g (float[3] x) => (float[3] y) <int64 m = {2}> { y = Loop(m, \"\", x) <body = b (int64 i, bool c, float[3] v) => (bool d, float[3] w) { d = Identity(c) w = Exp(v) }> }",
			"y = Loop (m, \"\", x)\nd = Identity (c)\nw = Exp (v)", Options{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parse(t, c.in)
			s, err := Run(m, c.opt)
			if err != nil {
				t.Fatal(err)
			}
			if err := graph.Verify(m); err != nil {
				t.Error(err)
			}
			got := computed(m)
			for _, sub := range []string{" <body: graph = b {...}>", " <then_branch: graph = t {...}, else_branch: graph = f {...}>"} {
				got = strings.ReplaceAll(got, sub, "")
			}
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			s.Rules = nil
			if s.String() != c.stats {
				t.Errorf("did %q, want %q", s, c.stats)
			}
			if again, err := Run(m, c.opt); err != nil || again.Changed() {
				t.Errorf("a second run does %q, %v", again, err)
			}
		})
	}
}

// TestAllowance folds many nodes, each of which may grow, until the allowance for the model is used up; a second run must
// not begin anew.
func TestAllowance(t *testing.T) {
	var b strings.Builder
	b.WriteString("g (int64[500] x) => (int64[500] y0")
	const count = 300
	b.WriteString(") <int64 a = {0}, int64 b = {500}, int64 k = {1}> { r = Range(a, b, k)\n")
	last := "x"
	for i := range count {
		n := string(rune('a'+i/26)) + string(rune('a'+i%26))
		b.WriteString("c" + n + " = Constant<value = int64[1] {" + strings.Repeat("1", 1+i%9) + "}>()\nt" + n + " = Tile(c" + n + ", five)\ns" + n + " = Add(" + last + ", t" + n + ")\n")
		last = "s" + n
	}
	b.WriteString("y0 = Add(" + last + ", r) }")
	text := strings.Replace(b.String(), "int64 k = {1}>", "int64 k = {1}, int64[1] five = {500}>", 1)
	m := parse(t, text)
	s, err := Run(m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Folded == 0 {
		t.Error("nothing is folded")
	}
	total := int64(0)
	for n := range m.Graph.AllNodes() {
		if a := n.Attr("value"); a != nil && a.T != nil {
			total += a.T.ByteLen()
		}
	}
	for _, v := range m.Graph.Inits {
		total += v.Init.ByteLen()
	}
	if total > ModelAllowance+64<<10 {
		t.Errorf("constants take %d bytes", total)
	}
	if again, err := Run(m, Options{}); err != nil || again.Changed() {
		t.Errorf("a second run does %q, %v", again, err)
	}
}
