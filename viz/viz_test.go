package viz

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"gradtool/graph"
)

func chain(n int) *graph.Model {
	m := graph.NewModel("m", 21)
	g := m.Graph
	v := g.AddInput("x", graph.TensorOf(graph.Float, graph.Shape{graph.Sym("N"), graph.Known(3)}))
	for i := range n {
		n := g.NewNode("", "Mul", []*graph.Value{v, v}, []string{fmt.Sprintf("v%d", i)})
		n.Name = fmt.Sprintf("/block%d/inner%d/Mul", i/10, i/5)
		if i >= 6 {
			n.Meta.Set(graph.MetaRole, graph.RoleBackward)
		}
		g.Append(n)
		v = n.Out[0]
		v.Type = g.Inputs[0].Type
	}
	g.AddOutput(v)
	return m
}

func draw(t *testing.T, m *graph.Model, opt Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := DOT(&b, m, opt); err != nil {
		t.Fatal(err)
	}
	if dot, err := exec.LookPath("dot"); err == nil {
		cmd := exec.Command(dot, "-Tdot")
		cmd.Stdin = bytes.NewReader(b.Bytes())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("dot refuses it: %v\n%s\n%s", err, out, b.String())
		}
	}
	return b.String()
}

func TestDOT(t *testing.T) {
	got := draw(t, chain(8), Options{})
	for want, n := range map[string]int{`label="Mul\n/block0/inner0/Mul"`: 5, "filled,dashed": 2, ` -> `: 2*8 + 1, "shape=\"ellipse\"": 2, "float[N,3]": 2 + 17} {
		if c := strings.Count(got, want); c != n {
			t.Errorf("%q occurs %d times, want %d in\n%s", want, c, n, got)
		}
	}
	if again := draw(t, chain(8), Options{}); again != got {
		t.Error("two drawings of one graph differ")
	}
}

func TestCollapsed(t *testing.T) {
	got := draw(t, chain(100), Options{Max: 30})
	if n := strings.Count(got, "box3d"); n != 21 { // 20 inner scopes, the second in two roles
		t.Errorf("%d boxes, want 21 in\n%s", n, got)
	}
	if got := draw(t, chain(100), Options{Max: 12}); strings.Count(got, "box3d") != 11 {
		t.Errorf("outer scopes are not used in\n%s", got)
	}
	m := chain(100)
	for _, n := range m.Graph.Nodes {
		n.Name = ""
	}
	if n := strings.Count(draw(t, m, Options{Max: 20}), "box3d"); n > 20 || n < 5 {
		t.Errorf("nodes without scope: %d boxes", n)
	}
}

func TestAround(t *testing.T) {
	m := chain(100)
	got := draw(t, m, Options{Around: m.Graph.Nodes[50], Hops: 2})
	if n := strings.Count(got, `shape="box"`); n != 5 {
		t.Errorf("%d boxes, want 5", n)
	}
}

// TestLargePictures: dot needs minutes for curved arrows in a large picture, so those are drawn straight.
func TestLargePictures(t *testing.T) {
	for _, c := range []struct {
		nodes int
		want  bool
	}{{8, false}, {manyArrows + 10, true}} {
		if got := strings.Contains(draw(t, chain(c.nodes), Options{}), "splines=line"); got != c.want {
			t.Errorf("%d nodes: straight arrows %v, want %v", c.nodes, got, c.want)
		}
	}
}
