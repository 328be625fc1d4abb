package batch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

// parsed returns a model and what inference found.
func parsed(t *testing.T, text string) (*graph.Model, *op.Info) {
	t.Helper()
	m, err := graph.Parse(`<ir_version: 10, opset_import: ["" : 21]> ` + text)
	if err != nil {
		t.Fatal(err)
	}
	info, err := op.Infer(m)
	if err != nil {
		t.Fatal(err)
	}
	return m, info
}

// listed returns the operators of m's nodes in order, without constants.
func listed(m *graph.Model) string {
	var list []string
	for _, n := range m.Graph.Nodes {
		if !n.Is("Constant") {
			list = append(list, n.Op)
		}
	}
	return strings.Join(list, " ")
}

// TestOrder checks what becomes of small graphs, node by node: parts one after the other as far as none waits for another.
func TestOrder(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"chain", `g (float[4,3] x) => (float[4,3] y) { a = Sin(x) b = Cos(a) y = Tanh(b) }`,
			"Slice Sin Cos Tanh Slice Sin Cos Tanh Concat"},
		{"gradient of a weight", `g (float[4,3] x, float[4,2] d) => (float[3,2] w) { a = Sin(x) w = Gemm<transA=1>(a, d) }`,
			"Slice Sin Slice Gemm Slice Sin Slice Gemm"},
		{"terms of several uses", `g (float[4,3] x, float[4,2] d) => (float[3,2] w) { a = Sin(x) b = Cos(x) p = Gemm<transA=1>(a, d) q = Gemm<transA=1>(b, d) w = Add(p, q) }`,
			"Slice Sin Cos Slice Gemm Gemm Add Slice Sin Cos Slice Gemm Gemm Add Add"},
		{"statistics", `g (float[4,3] x) => (float[4,3] y) { a = Sin(x) i = Constant<value_ints=[0]>() m = ReduceSum(a, i) d = Sub(a, m) y = Cos(d) }`,
			"Slice Sin ReduceSum Slice Sin ReduceSum Add Sub Cos Sub Cos Concat"},
		{"work of no part stands in front of its reader", `g (float[4,3] x, float[3,3] w) => (float[4,3] y) { t = Transpose(w) a = Sin(x) b = MatMul(a, t) y = Cos(b) }`,
			"Slice Sin Transpose MatMul Cos Slice Sin MatMul Cos Concat"},
		{"an embedding's gradient has one table", `g (int64[4,1] i, float[4,3] d, float[9,3] z) => (float[9,3] w) { e = Neg(d) w = ScatterND<reduction="add">(z, i, e) }`,
			"Slice Neg Slice ScatterND Slice Neg Slice ScatterND"},
		{"a border", `g (float[4,3] x) => (float[4,3] y, float[U] u) { a = Sin(x) u = Unique(a) b = Cos(a) y = Tanh(b) }`,
			"Slice Sin Cos Tanh Slice Sin Cos Tanh Concat Unique Concat"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, info := parsed(t, c.text)
			if _, err := Split(m, info, Options{Parts: 2}); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(graph.Verify(m), op.Verify(m)); err != nil {
				t.Error(err)
			}
			if got := listed(m); got != c.want {
				t.Errorf("nodes are\n%s, want\n%s\n%s", got, c.want, m)
			}
		})
	}
}

// TestBorders checks that what must not be divided is whole, with the reason.
func TestBorders(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"dropout", `g (float[N,3] x) => (float[N,3] y) { r = Constant<value: tensor = float {0.5}>() t = Constant<value: tensor = bool {1}>() a = Sin(x) [b] y = Dropout(a, r, t) }`, "random"},
		{"dropout of unknown mode", `g (float[N,3] x, bool t) => (float[N,3] y) { r = Constant<value: tensor = float {0.5}>() a = Sin(x) [b] y = Dropout(a, r, t) }`, "random"},
		{"softmax over the batch", `g (float[N,3] x) => (float[N,3] y) { a = Sin(x) [b] y = Softmax<axis=0>(a) }`, "mixes"},
		{"all pairs", `g (float[N,3] x) => (float[N,N] y) { a = Sin(x) t = Transpose(a) [b] c = CumSum(a, z) y = MatMul(a, t) z = Constant<value: tensor = int64 {0}>() }`, "mixes"},
		{"a slice of the batch", `g (float[N,3] x) => (float[M,3] y) { a = Sin(x) s = Constant<value_ints=[1]>() e = Constant<value_ints=[3]>() z = Constant<value_ints=[0]>() [b] y = Slice(a, s, e, z) }`, "mixes"},
		{"captured", `g (float[N,3] x, bool c) => (float[N,3] y) { a = Sin(x) [b] y = If(c) <then_branch: graph = t () => (float[N,3] u) { u = Cos(a) }, else_branch: graph = e () => (float[N,3] v) { v = Neg(a) }> }`, "subgraph"},
		{"samples across an axis", `g (float[N,3] x) => (float[M] y) { s = Constant<value_ints=[3,-1]>() a = Sin(x) [b] c = Reshape(a, s) d = Sin(c) z = Constant<value_ints=[-1]>() y = Reshape(d, z) }`, "no single axis"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := parsed(t, c.text)
			if err := m.Graph.Sort(); err != nil {
				t.Fatal(err)
			}
			info, _ := op.Infer(m)
			r, err := Split(m, info, Options{Parts: 3})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(graph.Verify(m), op.Verify(m)); err != nil {
				t.Error(err)
			}
			i := slices.IndexFunc(r.Borders, func(b Border) bool { return strings.HasPrefix(b.Node, `"b" `) })
			if i < 0 || !strings.Contains(r.Borders[i].Why, c.want) {
				t.Errorf("borders are %v", r.Borders)
			}
		})
	}
}

// TestNamedBatch divides by an axis that is not the leading one.
func TestNamedBatch(t *testing.T) {
	m, _ := parsed(t, `g (float[T,N,3] x, float[4,N] m, float[T] w) => (float[T,N,3] y) { a = Sin(x) i = Constant<value_ints=[0]>() b = CumSum(a, z) y = Cos(b) z = Constant<value: tensor = int64 {0}>() }`)
	if err := m.Graph.Sort(); err != nil {
		t.Fatal(err)
	}
	info, _ := op.Infer(m)
	r, err := Split(m, info, Options{Parts: 2, Dim: "N"})
	if err != nil || len(r.Borders) > 0 || r.Divided != 3 || r.Axis != "N" {
		t.Errorf("%+v, %v", r, err)
	}
	m, info = parsed(t, `g (float[T,3] x) => (float[T,3] y) { y = Sin(x) }`)
	if _, err := Split(m, info, Options{Parts: 2, Dim: "N"}); !errors.Is(err, ErrNoBatch) {
		t.Errorf("a dimension that is not there: %v", err)
	}
}

// TestRefusals checks what has nothing to divide, and that a second division is refused.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		text string
		want error
	}{
		{`g (float x) => (float y) { y = Sin(x) }`, ErrNoBatch},
		{`g (float[1,8] x) => (float[1,8] y) { y = Sin(x) }`, ErrNoBatch},
		{`g (float[N,8] x) => (int64[2] y) { y = Shape(x) }`, ErrNothing},
	} {
		m, info := parsed(t, c.text)
		if _, err := Split(m, info, Options{Parts: 2}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.text, err, c.want)
		}
	}
	m, info := parsed(t, `g (float[N,8] x) => (float[N,8] y) { y = Sin(x) }`)
	if _, err := Split(m, info, Options{Parts: 1}); err == nil {
		t.Error("one part is taken")
	}
	if r, err := Split(m, info, Options{Parts: 2}); err != nil || r.Divided != 1 {
		t.Errorf("%v, %v", r, err)
	}
	if _, err := Split(m, info, Options{Parts: 2}); !errors.Is(err, ErrTwice) {
		t.Errorf("a second time: %v", err)
	}
	m, info = parsed(t, `g (float[3,8] x) => (float[3,8] y) { y = Sin(x) }`)
	if r, err := Split(m, info, Options{Parts: 8}); err != nil || r.Parts != 3 {
		t.Errorf("of three samples: %v, %v", r, err)
	}
}

// TestDeterminism divides a graph with many borders again and again.
func TestDeterminism(t *testing.T) {
	var first string
	for range 20 {
		m, info := parsed(t, `g (float[N,8] x, float[N,8] z) => (float[N,8] y, float[8] s, float[U] u) {
			a = Sin(x) b = Cos(z) c = Mul(a, b) i = Constant<value_ints=[0]>() s = ReduceMean<keepdims=0>(c, i) d = Sub(c, s) u = Unique(d) y = Softmax<axis=0>(d) }`)
		if _, err := Split(m, info, Options{Parts: 3}); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = m.String()
		}
		if m.String() != first {
			t.Fatal("two results")
		}
	}
}

// TestParts checks the choice of the number of parts.
func TestParts(t *testing.T) {
	size := func(v *graph.Value) float64 {
		n, _ := v.Type.Shape.Size().Eval(map[string]int64{"N": 32}).Int()
		return float64(n)
	}
	var long strings.Builder
	for i := range 40 { // each is read at the end
		fmt.Fprintf(&long, " a%d = Sin(x)", i)
	}
	sum := "a0"
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&long, " s%d = Add(%s, a%d)", i, sum, i)
		sum = fmt.Sprintf("s%d", i)
	}
	for _, c := range []struct {
		text string
		want int
	}{
		{`g (float[N,8] x) => (float[N,8] y) { a = Sin(x) y = Cos(a) }`, 8}, // two of two values at each node
		{`g (float[3,8] x) => (float[3,8] y) { a = Sin(x) y = Cos(a) }`, 2},
		{`g (float[N,8] x) => (float[N,8] y) {` + long.String() + ` y = Sin(` + sum + `) }`, 2},
		{`g (float x) => (float y) { y = Sin(x) }`, 2},
	} {
		m, _ := parsed(t, c.text)
		if got := Parts(m, "", size); got != c.want {
			t.Errorf("%.60s: %d parts, want %d", c.text, got, c.want)
		}
	}
}

// TestZeros checks that zeros are made for each part, in its size, and that nobody merges them.
func TestZeros(t *testing.T) {
	m, info := parsed(t, `g (float[4,1,4,4] x, float[4,1,2,2] d) => (float[64] z) {
		p, i = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)
		f = Constant<value_ints=[-1,1]>() l = Constant<value_ints=[-1]>() s = Constant<value_ints=[64]>()
		at = Reshape(i, f) of = Reshape(d, l) o = ConstantOfShape(s) z = ScatterND<reduction="add">(o, at, of) }`)
	if _, err := Split(m, info, Options{Parts: 2}); err != nil {
		t.Fatal(err)
	}
	zeros := 0
	for _, n := range m.Graph.Nodes {
		if n.Is("ConstantOfShape") {
			zeros++
			if size, _ := n.Out[0].Type.Shape.Size().Int(); size != 32 || n.Meta.Get(graph.MetaRole) != graph.RoleRecompute {
				t.Errorf("%s makes %d zeros for part of 64", n, size)
			}
		}
	}
	if zeros != 2 {
		t.Errorf("zeros are made %d times, want 2\n%s", zeros, m)
	}
}
