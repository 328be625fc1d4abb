package memplan_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/memplan"
)

func parse(t *testing.T, text string) *graph.Model {
	t.Helper()
	m, err := graph.Parse(`<ir_version: 10, opset_import: ["" : 21]>` + text)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Graph.Sort(); err != nil {
		t.Fatal(err)
	}
	if _, err := op.Infer(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// describe writes each buffer as its values, bytes and life.
func describe(l *memplan.Live) string {
	var b strings.Builder
	for _, x := range l.Buffers {
		var names []string
		for _, v := range x.Values {
			names = append(names, v.Name)
		}
		if x.Node != nil {
			names = append(names, "workspace")
		}
		fmt.Fprintf(&b, "%s:%d[%d,%d] ", strings.Join(names, "="), x.Bytes, x.First, x.Last)
	}
	for _, p := range l.State {
		fmt.Fprintf(&b, "%s over input %s ", p.To.Name, p.From.Name)
	}
	return fmt.Sprintf("%speak %d at %d", b.String(), l.Peak, l.At)
}

// TestAnalyze checks which values share bytes, and when they live.
func TestAnalyze(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		opt            memplan.Options
	}{
		{"element-wise results take over dying operands",
			`g (float[4] x) => (float[4] y) { a = Relu(x) b = Tanh(a) y = Exp(b) }`, "a=b=y:16[0,2] peak 16 at 0", memplan.Options{}},
		{"unless that is switched off",
			`g (float[4] x) => (float[4] y) { a = Relu(x) b = Tanh(a) y = Exp(b) }`, "a:16[0,1] b:16[1,2] y:16[2,2] peak 32 at 1", memplan.Options{NoInPlace: true}},
		{"inputs are not written over",
			`g (float[4] x) => (float[4] y) { y = Relu(x) }`, "y:16[0,0] peak 16 at 0", memplan.Options{}},
		{"nor outputs",
			`g (float[4] x) => (float[4] a, float[4] y) { a = Relu(x) y = Tanh(a) }`, "a:16[0,1] y:16[1,1] peak 32 at 1", memplan.Options{}},
		{"nor what another node reads later",
			`g (float[4] x) => (float[4] y) { a = Relu(x) b = Tanh(a) y = Mul(a, b) }`, "a=y:16[0,2] b:16[1,2] peak 32 at 1", memplan.Options{}},
		{"nor broadcast operands, nor wider or narrower ones",
			`g (float[4] x) => (float[2,4] y, bool[4] k) { w = Constant<value: tensor = float[2,1] {1,2}>() a = Relu(x) k = Not(q) q = IsNaN(a) b = Tanh(x) y = Mul(b, w) }`,
			"a:16[1,2] q=k:4[2,5] b:16[4,5] y:32[5,5] peak 52 at 5", memplan.Options{}},
		{"views share bytes",
			`g (float[4] x) => (float[4] y) { s = Constant<value: tensor = int64[2] {2,2}>() a = Relu(x) v = Reshape(a, s) i = Identity(v) f = Flatten<axis=0>(i) b = Exp(v) h = MatMul(b, v) z = Constant<value: tensor = int64[1] {4}>() y = Reshape(h, z) o = Neg(f) }`,
			"a=v=i=f=o:16[1,9] b:16[5,6] h=y:16[6,9] peak 48 at 6", memplan.Options{}},
		{"a view of an input that is an output is a copy",
			`g (float[4] x) => (float[2,2] y, float[4] z) { s = Constant<value: tensor = int64[2] {2,2}>() v = Identity(x) y = Reshape(v, s) z = Neg(v) }`,
			"y:16[2,3] z:16[3,3] peak 32 at 3", memplan.Options{}},
		{"without views each is a copy",
			`g (float[4] x) => (float[2,2] y) { s = Constant<value: tensor = int64[2] {2,2}>() a = Relu(x) y = Reshape(a, s) }`,
			"a:16[1,2] y:16[2,2] peak 32 at 2", memplan.Options{NoViews: true}},
		{"an output that nobody reads has its own bytes",
			`g (float[4] x) => (float[4] y) { a = Relu(x) b, c = Split<axis=0,num_outputs=2>(a) y = Neg(a) }`,
			"a=y:16[0,2] b:8[1,1] c:8[1,1] peak 32 at 1", memplan.Options{}},
		{"both operands the same",
			`g (float[4] x) => (float[4] y) { a = Relu(x) y = Mul(a, a) }`, "a=y:16[0,1] peak 16 at 0", memplan.Options{}},
		{"contributions are added in place",
			`g (float[4] x) => (float[4] y) { a = Relu(x) b = Exp(x) s = Add(a, b) c = Tanh(x) y = Add(s, c) }`,
			"a=s=y:16[0,4] b:16[1,2] c:16[3,4] peak 32 at 1", memplan.Options{}},
		{"integers become floats in place",
			`g (float[4] x) => (float[4] y) { s = Constant<value: tensor = float {0.5}>() q = Cast<to=6>(x) y = DequantizeLinear(q, s) }`, "q=y:16[1,2] peak 16 at 1", memplan.Options{}},
		{"a normalization with known statistics, but not one of a batch",
			`g (float[1,4,2] x, float[4] s) => (float[1,4,2] y, float[1,4,2] z, float[4] m, float[4] v) { a = Relu(x) y = BatchNormalization(a, s, s, s, s) b = Tanh(x) z, m, v = BatchNormalization<training_mode=1>(b, s, s, s, s) }`,
			"a=y:32[0,3] b:32[2,3] z:32[3,3] m:16[3,3] v:16[3,3] peak 128 at 3", memplan.Options{}},
		{"scatter writes over its data",
			`g (float[4] x, int64[1] i, float[1] u) => (float[4] y) { a = Relu(x) y = ScatterElements(a, i, u) }`, "a=y:16[0,1] peak 16 at 0", memplan.Options{}},
		{"but not over what it also reads as updates",
			`g (float[4] x, int64[4] i) => (float[4] y) { a = Relu(x) y = ScatterElements(a, i, a) }`, "a:16[0,1] y:16[1,1] peak 32 at 1", memplan.Options{}},
		{"an optimizer writes over its parameter",
			`g (float[4] w, float[4] d) => (float[4] w_next) { w_next = Sub(w, d) }`, "w_next over input w peak 0 at 0", memplan.Options{}},
		{"but not before the last other reader",
			`g (float[4] w, float[4] d) => (float[4] w_next, float[4] y) { w_next = Sub(w, d) y = Neg(w) }`, "w_next:16[0,1] y:16[1,1] peak 32 at 1", memplan.Options{}},
		{"or reader of a view",
			`g (float[4] w, float[4] d) => (float[4] w_next, float[4] y) { v = Identity(w) w_next = Sub(w, d) y = Neg(v) }`, "w_next:16[1,2] y:16[2,2] peak 32 at 2", memplan.Options{}},
		{"bodies need a workspace",
			`g (float[4] x, bool c) => (float[4] y) { a = Relu(x) y = If(c)<then_branch: graph = t () => (p) { h = Concat<axis=0>(a, a) i = Concat<axis=0>(h, a) p = Slice(i, z, e) }, else_branch: graph = u () => (q) { q = Neg(a) }> z = Constant<value: tensor = int64[1] {0}>() e = Constant<value: tensor = int64[1] {4}>() }`,
			"a:16[0,3] y:16[3,3] workspace:128[3,3] peak 160 at 3", memplan.Options{}},
		{"symbols with a size",
			`g (float[N,4] x) => (float[N,4] y) { y = Relu(x) }`, "y:48[0,0] peak 48 at 0", memplan.Options{Dims: map[string]int64{"N": 3}}},
		{"symbols with a guess",
			`g (float[N,4] x) => (float[N,4] y) { y = Relu(x) }`, "y:32[0,0] peak 32 at 0", memplan.Options{Guess: 2}},
		{"elements that share bytes",
			`g (int4[3] x) => (int4[3] y) { y = Identity(x) }`, "y:2[0,0] peak 2 at 0", memplan.Options{}},
	} {
		l, err := memplan.Analyze(parse(t, c.in).Graph, nil, c.opt)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.opt.Guess == 0 && c.opt.Dims == nil {
			m := parse(t, c.in)
			if err := memplan.Check(m.Graph, planned(t, m)); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if got := describe(l); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestAnalyzeErrors(t *testing.T) {
	m := parse(t, `g (float[N,M] x) => (float[N,M] y) { a = Relu(x) y = Neg(a) }`)
	var unbound *memplan.SymbolError
	if _, err := memplan.Analyze(m.Graph, nil, memplan.Options{Dims: map[string]int64{"M": 2}}); !errors.As(err, &unbound) || err.Error() != "sizes depend on N, which no size is known for" {
		t.Errorf("got %v", err)
	}
	opt := memplan.Options{Guess: 4}
	n := m.Graph.Nodes
	for _, c := range []struct {
		order []*graph.Node
		want  string
	}{
		{[]*graph.Node{n[1], n[0]}, "in front of one that it reads"},
		{[]*graph.Node{n[0]}, "has 1 of 2 nodes"},
		{[]*graph.Node{n[0], n[0]}, "is not in the graph or comes twice"},
	} {
		if _, err := memplan.Analyze(m.Graph, c.order, opt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// TestOutside checks that values without a size that is known beforehand are left out and named.
func TestOutside(t *testing.T) {
	m := parse(t, `g (float[4] x) => (int64[1,k] y) { a = Relu(x) n = NonZero(a) i = Identity(n) y = Neg(i) }`)
	l, err := memplan.Analyze(m.Graph, nil, memplan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := memplan.Check(m.Graph, planned(t, m)); err != nil {
		t.Error(err)
	}
	var names []string
	for _, o := range l.Outside {
		names = append(names, o.Value.Name)
	}
	if got := strings.Join(names, " "); got != "n i y" {
		t.Errorf("outside: %s", got)
	}
}
