package rewrite_test

import (
	"errors"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

func parse(t *testing.T, body string) (*graph.Model, *op.Info) {
	t.Helper()
	m, err := graph.Parse(`<ir_version: 10, opset_import: ["" : 21]>` + body)
	if err != nil {
		t.Fatal(err)
	}
	info, err := op.Infer(m)
	if err != nil {
		t.Fatal(err)
	}
	return m, info
}

// lines returns a graph's nodes, one per line.
func lines(g *graph.Graph) string {
	var out []string
	for n := range g.AllNodes() {
		c := graph.Node{Op: n.Op, In: n.In, Out: n.Out, Attrs: n.Attrs}
		out = append(out, c.String())
	}
	return strings.Join(out, "\n")
}

func give(name string) func(*op.Builder, *rewrite.Match) []*graph.Value {
	return func(b *op.Builder, m *rewrite.Match) []*graph.Value { return []*graph.Value{m.V(name)} }
}

var negNeg = rewrite.Rule{Name: "neg-neg", Doc: "-(-x) = x", Root: rewrite.P("Neg", rewrite.P("Neg", rewrite.Any("x")).Shared()), Emit: give("x")}

var timesSigmoid = rewrite.Rule{
	Name: "times-sigmoid", Doc: "x * sigmoid(x) = Swish(x)",
	Root: rewrite.P("Mul", rewrite.Any("x"), rewrite.P("Sigmoid", rewrite.Any("x"))).Commute(),
	Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
		return []*graph.Value{b.Unary("Swish", m.V("x"))}
	},
}

var twice = rewrite.Rule{
	Name: "twice", Doc: "x * 2 = x + x",
	Root: rewrite.P("Mul", rewrite.Any("x"), rewrite.Const("c")).Commute(),
	When: func(m *rewrite.Match) error {
		c := m.Const("c")
		switch {
		case c.Len() != 1 || c.Rank() != 0:
			return rewrite.ErrUnlike
		case c.Float(0) != 2:
			return errors.New("the factor is not 2")
		}
		return nil
	},
	Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
		return []*graph.Value{b.Add(m.V("x"), m.V("x"))}
	},
}

func TestApply(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		rules          []rewrite.Rule
		misses         string
	}{
		{"handed through", `g (float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) y = Abs(b) }`,
			"y = Abs (x)", []rewrite.Rule{negNeg}, ""},
		{"an output gets the name", `g (float[2] x) => (float[2] y) { z = Abs(x) a = Neg(z) y = Neg(a) }`,
			"y = Abs (x)", []rewrite.Rule{negNeg}, ""},
		{"an input cannot", `g (float[2] x) => (float[2] y) { a = Neg(x) y = Neg(a) }`,
			"y = Identity (x)", []rewrite.Rule{negNeg}, ""},
		{"an output keeps its own", `g (float[2] x) => (float[2] z, float[2] y) { z = Abs(x) a = Neg(z) y = Neg(a) }`,
			"z = Abs (x)\ny = Identity (z)", []rewrite.Rule{negNeg}, ""},
		{"chain", `g (float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) c = Neg(b) d = Neg(c) y = Neg(d) }`,
			"y = Neg (x)", []rewrite.Rule{negNeg}, ""},
		{"shared", `g (float[2] x) => (float[2] y, float[2] a) { a = Neg(x) b = Neg(a) y = Abs(b) }`,
			"a = Neg (x)\ny = Abs (x)", []rewrite.Rule{negNeg}, ""},
		{"fresh result", `g (float[2] x) => (float[2] y) { s = Sigmoid(x) p = Mul(s, x) y = Abs(p) }`,
			"p = Swish (x)\ny = Abs (p)", []rewrite.Rule{timesSigmoid}, ""},
		{"read elsewhere", `g (float[2] x) => (float[2] y) { s = Sigmoid(x) p = Mul(x, s) y = Add(p, s) }`,
			"s = Sigmoid (x)\np = Mul (x, s)\ny = Add (p, s)", []rewrite.Rule{timesSigmoid}, `times-sigmoid: node "p" (Mul): inner value "s" is read elsewhere`},
		{"inner output", `g (float[2] x) => (float[2] y, float[2] s) { s = Sigmoid(x) y = Mul(x, s) }`,
			"s = Sigmoid (x)\ny = Mul (x, s)", []rewrite.Rule{timesSigmoid}, `times-sigmoid: node "y" (Mul): inner value "s" is a graph output`},
		{"another value", `g (float[2] x, float[2] z) => (float[2] y) { s = Sigmoid(x) y = Mul(z, s) }`,
			"s = Sigmoid (x)\ny = Mul (z, s)", []rewrite.Rule{timesSigmoid}, ""},
		{"constant", `g (float[2] x) => (float[2] y) <float c = {2}, float d = {3}> { a = Mul(c, x) y = Mul(a, d) }`,
			"a = Add (x, x)\ny = Mul (a, d)", []rewrite.Rule{twice}, `twice: node "y" (Mul): the factor is not 2`},
		{"subgraph", `g (bool k, float[2] x) => (float[2] y) { a = Neg(x) y = If (k) <then_branch = t () => (float[2] u) { b = Neg(a) u = Abs(b) }, else_branch = e () => (float[2] v) { v = Neg(a) }> }`,
			"y = If (k) <then_branch: graph = t {...}, else_branch: graph = e {...}>\nu = Abs (x)\nv = Identity (x)", []rewrite.Rule{negNeg}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, info := parse(t, c.in)
			s, err := rewrite.NewSet(c.rules)
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Apply(m.Graph, info, rewrite.Options{Explain: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := graph.Verify(m); err != nil {
				t.Error(err)
			}
			if got := lines(m.Graph); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			var misses []string
			for _, x := range r.Misses {
				misses = append(misses, x.String())
			}
			if got := strings.Join(misses, "\n"); got != c.misses {
				t.Errorf("near misses: %q, want %q", got, c.misses)
			}
		})
	}
}

// rename is a rule that turns one unary operator into another.
func rename(from, to string, benefit int) rewrite.Rule {
	return rewrite.Rule{Name: from + "-" + to, Doc: from + "(x) = " + to + "(x)", Benefit: benefit, Root: rewrite.P(from, rewrite.Any("x")),
		Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value { return []*graph.Value{b.Unary(to, m.V("x"))} }}
}

func TestBenefitAndOrder(t *testing.T) {
	for _, c := range []struct {
		rules []rewrite.Rule
		want  string
	}{
		{[]rewrite.Rule{rename("Abs", "Exp", 0), rename("Abs", "Tanh", 0)}, "y = Exp (x)"},
		{[]rewrite.Rule{rename("Abs", "Exp", 0), rename("Abs", "Tanh", 1)}, "y = Tanh (x)"},
	} {
		m, info := parse(t, `g (float[2] x) => (float[2] y) { y = Abs(x) }`)
		s, err := rewrite.NewSet(c.rules)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Apply(m.Graph, info, rewrite.Options{}); err != nil {
			t.Fatal(err)
		}
		if got := lines(m.Graph); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestWrongRules(t *testing.T) {
	grow := rewrite.Rule{Name: "grow", Doc: "wrong", Root: rewrite.P("Abs", rewrite.Any("x")),
		Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
			return []*graph.Value{b.Unary("Abs", b.Unary("Neg", m.V("x")))}
		}}
	shape := rewrite.Rule{Name: "shape", Doc: "wrong", Root: rewrite.P("Abs", rewrite.Any("x")),
		Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value { return []*graph.Value{b.Shape(m.V("x"))} }}
	for _, c := range []struct {
		rules []rewrite.Rule
		want  string
	}{
		{[]rewrite.Rule{rename("Abs", "Exp", 0), rename("Exp", "Abs", 0)}, "undo each other's work: Abs-Exp, Exp-Abs"},
		{[]rewrite.Rule{grow}, "undo each other's work: grow"},
		{[]rewrite.Rule{shape}, `rule shape at node "y" (Abs): result 0 (y) is float[2], its replacement int64[1]`},
	} {
		m, info := parse(t, `g (float[2] x) => (float[2] y) { y = Abs(x) }`)
		s, err := rewrite.NewSet(c.rules)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Apply(m.Graph, info, rewrite.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	for _, c := range []struct {
		rules []rewrite.Rule
		want  string
	}{
		{[]rewrite.Rule{negNeg, negNeg}, `two rules are called "neg-neg"`},
		{[]rewrite.Rule{{Name: "a", Doc: "a"}}, `rule "a" is not complete`},
	} {
		if _, err := rewrite.NewSet(c.rules); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestAllow(t *testing.T) {
	m, info := parse(t, `g (float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) c = Abs(b) d = Neg(c) e = Neg(d) y = Abs(e) }`)
	s, err := rewrite.NewSet([]rewrite.Rule{negNeg})
	if err != nil {
		t.Fatal(err)
	}
	left := 1
	r, err := s.Apply(m.Graph, info, rewrite.Options{Allow: func(string, ...any) bool { left--; return left >= 0 }})
	if err != nil || !r.Stopped || r.Rewrites != 1 || r.Counts[0].N != 1 {
		t.Errorf("got %+v, %v", r, err)
	}
	if got, want := lines(m.Graph), "c = Abs (x)\nd = Neg (c)\ne = Neg (d)\ny = Abs (e)"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestKey(t *testing.T) {
	m, _ := parse(t, `g (float[2,2] x, float[2,2] z) => (float[2,2] y) {
		a = Transpose<perm = [1, 0]>(x) b = Transpose<perm = [1, 0]>(x) c = Transpose<perm = [0, 1]>(x) d = Transpose<perm = [1, 0]>(z)
		e = Constant<value = float {0}>() f = Constant<value = float {-0.0}>() h = Constant<value = float {0}>() y = Add(a, b) }`)
	key := map[string]string{}
	for _, n := range m.Graph.Nodes {
		k, ok := rewrite.Key(n, func(v *graph.Value) string { return v.Name })
		if !ok {
			t.Errorf("no key for %s", n.Label())
		}
		key[n.Out[0].Name] = k
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{{"a", "b", true}, {"a", "c", false}, {"a", "d", false}, {"e", "f", false}, {"e", "h", true}} {
		if (key[c.a] == key[c.b]) != c.same {
			t.Errorf("keys of %s and %s: same %v, want %v", c.a, c.b, !c.same, c.same)
		}
	}
}
