package memplan_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/memplan"
	"gradtool/memplan/offset"
)

// planned returns a model whose nodes stand in the order of a plan, and that plan.
func planned(t *testing.T, m *graph.Model) *memplan.Plan {
	t.Helper()
	made, err := memplan.Make(m.Graph, memplan.PlanOptions{Effort: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	made.Apply()
	return made.Plan(nil)
}

func clone(t *testing.T, p *memplan.Plan) *memplan.Plan {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	q := &memplan.Plan{}
	if err := json.Unmarshal(raw, q); err != nil {
		t.Fatal(err)
	}
	return q
}

// TestCheckRandom plans random graphs, has the plans checked, and has mutations of them refused: a value moved to where another
// one that is alive at the same time lies, unless both are views of one another or one is written over the other.
func TestCheckRandom(t *testing.T) {
	refused := 0
	for seed := range uint64(60) {
		m := randomGraph(t, seed, 5+int(seed)%40)
		p := planned(t, m)
		if err := memplan.Check(m.Graph, p); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, a := range p.Values {
			for j, b := range p.Values {
				// b is made while a is alive, and read later or not at all: both need their bytes when b's node ends.
				if a.At == b.At || a.First >= b.First || a.Last <= b.First {
					continue
				}
				q := clone(t, p)
				q.Values[j].At = a.At
				if err := memplan.Check(m.Graph, q); err == nil {
					t.Fatalf("seed %d: %q moved into %q, and nobody minds", seed, b.Name, a.Name)
				}
				refused++
			}
		}
	}
	if refused < 1000 {
		t.Errorf("only %d mutations made", refused)
	}
}

// TestCheckMutations breaks plans in every other way.
func TestCheckMutations(t *testing.T) {
	const text = `g (float[8,8] x, bool c, float[8,8] w, float[8,8] d) => (float[8,8] y, float[8,8] w_next, float[8,8] z) {
		s = Constant<value: tensor = int64[1] {64}>() q = Constant<value: tensor = int64[2] {8,8}>()
		a = MatMul(x, x) r = Relu(a) f = Reshape(r, s) b = Reshape(f, q) e = MatMul(b, r) k = Tanh(e) y = Add(k, e)
		z = If(c)<then_branch: graph = t () => (p) { h = MatMul(b, b) p = Neg(h) }, else_branch: graph = u () => (o) { o = Neg(b) }>
		p1, p2 = Split<axis=0,num_outputs=2>(y) g1 = Concat<axis=0>(p2, p1) v = Mul(d, g1) w_next = Sub(w, v) }`
	slot := func(p *memplan.Plan, name string) *memplan.Slot {
		for i := range p.Values {
			if p.Values[i].Name == name {
				return &p.Values[i]
			}
		}
		t.Fatalf("no place for %q", name)
		return nil
	}
	for _, c := range []struct {
		name   string
		mutate func(g *graph.Graph, p *memplan.Plan)
		want   string // "" where the plan stays right
	}{
		{"as it is", func(g *graph.Graph, p *memplan.Plan) {}, ""},
		{"another schema", func(g *graph.Graph, p *memplan.Plan) { p.Schema = "x" }, `schema is "x"`},
		{"a step less", func(g *graph.Graph, p *memplan.Plan) { p.Steps-- }, "steps, the graph"},
		{"an arena too small", func(g *graph.Graph, p *memplan.Plan) { p.Arena -= 64 }, "are outside the arena"},
		{"a larger arena", func(g *graph.Graph, p *memplan.Plan) { p.Arena += 64 }, ""},
		{"a negative offset", func(g *graph.Graph, p *memplan.Plan) { slot(p, "e").At = -64 }, "are outside the arena"},
		{"not aligned", func(g *graph.Graph, p *memplan.Plan) { slot(p, "e").At += 4 }, "is no multiple of 64"},
		{"too few bytes", func(g *graph.Graph, p *memplan.Plan) { slot(p, "e").Bytes = 128 }, "takes 256 bytes, the plan says 128"},
		{"a value missing", func(g *graph.Graph, p *memplan.Plan) { p.Values = p.Values[1:] }, `no place for its result "a"`},
		{"a value twice", func(g *graph.Graph, p *memplan.Plan) { p.Values = append(p.Values, p.Values[0]) }, `places "a" twice`},
		{"a value that does not exist", func(g *graph.Graph, p *memplan.Plan) {
			p.Values = append(p.Values, memplan.Slot{Name: "ghost"})
		}, "the graph computes"},
		{"another step", func(g *graph.Graph, p *memplan.Plan) { slot(p, "e").First++ }, "the plan says step"},
		{"a view apart from its base", func(g *graph.Graph, p *memplan.Plan) { p.Arena += 1024; slot(p, "f").At = p.Arena - 256 }, `reads "r", whose bytes`},
		{"a result in place that the plan does not mention", func(g *graph.Graph, p *memplan.Plan) { p.InPlace = nil }, "which the plan does not mention"},
		{"a product over its operand", func(g *graph.Graph, p *memplan.Plan) {
			slot(p, "e").At = slot(p, "r").At
			p.InPlace = append(p.InPlace, [2]string{"r", "e"})
		}, "does not let result"},
		{"results on each other", func(g *graph.Graph, p *memplan.Plan) { slot(p, "p1").At = slot(p, "p2").At }, `results "p1" and "p2" overlap`},
		{"a workspace on an operand", func(g *graph.Graph, p *memplan.Plan) { p.Workspace[0].At = slot(p, "b").At }, "its workspace overlaps its operand"},
		{"a workspace on a result", func(g *graph.Graph, p *memplan.Plan) { p.Workspace[0].At = slot(p, "z").At }, "its workspace overlaps its result"},
		{"a workspace for another node", func(g *graph.Graph, p *memplan.Plan) { p.Workspace[0].Step = 2 }, "has a workspace but no subgraph"},
		{"an output's bytes used again", func(g *graph.Graph, p *memplan.Plan) { slot(p, "g1").At = slot(p, "z").At }, `the end reads "z"`},
		{"an input written over by something else", func(g *graph.Graph, p *memplan.Plan) { p.State[0][0] = "x" }, `which is no input that it reads`},
		{"an input written over by what is no optimizer", func(g *graph.Graph, p *memplan.Plan) { p.State[0][0] = "d" }, `which is no input that it reads`},
		{"an input read after it was written over", func(g *graph.Graph, p *memplan.Plan) {
			k := g.Nodes[len(g.Nodes)-1].Graph.NewNode("", "Neg", []*graph.Value{g.Inputs[2]}, []string{"late"})
			g.Append(k)
			p.Steps++
			p.Outside = append(p.Outside, memplan.Reason{Name: "late"})
		}, `reads input "w", which was written over`},
		{"nodes in another order", func(g *graph.Graph, p *memplan.Plan) {
			for i, n := range g.Nodes {
				if n.Op == "Tanh" {
					g.Nodes[i], g.Nodes[i-1] = g.Nodes[i-1], g.Nodes[i]
				}
			}
		}, "the plan says step"},
	} {
		m := parse(t, text)
		p := planned(t, m)
		c.mutate(m.Graph, p)
		err := memplan.Check(m.Graph, p)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// TestRun runs random graphs in their arenas: every bit is as without.
func TestRun(t *testing.T) {
	for seed := range uint64(60) {
		m := randomGraph(t, 1000+seed, 5+int(seed)%60)
		in := []*op.Array{op.NewArray(graph.Float, []int{4, 4}, false), op.NewArray(graph.Float, []int{4, 4}, false)}
		for i := range 16 {
			in[0].F32[i], in[1].F32[i] = float32(i)/7-1, 1-float32(i*i)/50
		}
		run := func(mem interp.Memory) []*op.Array {
			t.Helper()
			machine, err := interp.New(m, interp.Options{Memory: mem})
			if err != nil {
				t.Fatal(err)
			}
			out, err := machine.Run(in)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return out
		}
		want := run(nil)
		p := planned(t, m)
		if seed%3 == 0 {
			p = spread(t, m, offset.Memory{Name: "near", Capacity: 192}, offset.Memory{Name: "far"})
		}
		arena, err := memplan.NewArena(p, m.Graph)
		if err != nil {
			t.Fatal(err)
		}
		got := run(arena)
		for i := range want {
			if want[i].String() != got[i].String() || string(raw(want[i])) != string(raw(got[i])) {
				t.Errorf("seed %d: output %d is %v, want %v", seed, i, got[i], want[i])
			}
		}
		if arena.Stored != len(p.Values) || int64(arena.Size()) != p.Arena || arena.Beside != 0 {
			t.Errorf("seed %d: %d values of %d in %d bytes of %d, %d beside", seed, arena.Stored, len(p.Values), arena.Size(), p.Arena, arena.Beside)
		}
	}
}

func raw(a *op.Array) []byte {
	b, err := a.Tensor().Data.Bytes()
	if err != nil {
		panic(err)
	}
	return b
}

// TestRunSubgraphs runs models whose subgraphs compute in the workspaces of their nodes.
func TestRunSubgraphs(t *testing.T) {
	for _, c := range []struct {
		name, text string
		inside     int // values that lie in the arena, all subgraphs included
	}{
		{"a branch", `g (float[4,4] x) => (float[4,4] y) { c = Constant<value: tensor = bool {1}>() a = Relu(x)
			y = If(c)<then_branch: graph = t () => (p) { h = MatMul(a, x) k = Tanh(h) l = MatMul(k, h) p = Neg(l) }, else_branch: graph = u () => (q) { q = Neg(a) }> }`, 7},
		{"a loop with a carried value and a stack", `g (float[4,4] x) => (float[4,4] y, float[5,4,4] all) { n = Constant<value: tensor = int64 {5}>() c = Constant<value: tensor = bool {1}>() a = Tanh(x)
			y, all = Loop(n, c, a)<body: graph = b (int64 i, bool k, float[4,4] s) => (k2, s2, e) { k2 = Identity(k) m = MatMul(s, x) r = Tanh(m) s2 = Add(r, s) e = Mul(s2, r) }> }`, 11},
		{"a branch in a loop", `g (float[4,4] x) => (float[4,4] y) { n = Constant<value: tensor = int64 {4}>() c = Constant<value: tensor = bool {1}>() z = Constant<value: tensor = int64 {2}>()
			y = Loop(n, c, x)<body: graph = b (int64 i, bool k, float[4,4] s) => (k2, s2) { k2 = Identity(k) less = Less(i, z) m = MatMul(s, x)
				s2 = If(less)<then_branch: graph = t () => (p) { h = MatMul(m, s) p = Tanh(h) }, else_branch: graph = u () => (q) { g1 = Sigmoid(m) q = Add(g1, s) }> }> }`, 12},
		{"a scan", `g (float[4] x, float[6,4] rows) => (float[4] y, float[6,4] all) {
			y, all = Scan<num_scan_inputs=1, body: graph = b (float[4] s, float[4] r) => (s2, o) { a = Mul(s, r) s2 = Tanh(a) o = Add(s2, r) }>(x, rows) }`, 7},
		{"a condition that is passed through", `g (float[4,4] x) => (float[4,4] y) { n = Constant<value: tensor = int64 {3}>() c = Constant<value: tensor = bool {1}>()
			y = Loop(n, c, x)<body: graph = b (int64 i, bool k, float[4,4] s) => (k, s2) { s2 = Tanh(s) }> }`, 5},
	} {
		m := parse(t, c.text)
		p := planned(t, m)
		if err := memplan.Check(m.Graph, p); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		in := make([]*op.Array, len(m.Graph.Inputs))
		for i, v := range m.Graph.Inputs {
			dims, _ := v.Type.Shape.Ints()
			shape := []int{}
			for _, d := range dims {
				shape = append(shape, int(d))
			}
			in[i] = op.NewArray(graph.Float, shape, false)
			for j := range in[i].F32 {
				in[i].F32[j] = float32(j)/9 - 0.7
			}
		}
		run := func(mem interp.Memory) []*op.Array {
			machine, err := interp.New(m, interp.Options{Memory: mem})
			if err != nil {
				t.Fatal(err)
			}
			out, err := machine.Run(in)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			return out
		}
		arena, err := memplan.NewArena(p, m.Graph)
		if err != nil {
			t.Fatal(err)
		}
		want, got := run(nil), run(arena)
		for i := range want {
			if !bytes.Equal(raw(want[i]), raw(got[i])) {
				t.Errorf("%s: output %d is %v, want %v", c.name, i, got[i], want[i])
			}
		}
		if arena.Beside != 0 || placesIn(p.Values, p.Workspace) != c.inside {
			t.Errorf("%s: %d values have places, want %d; %d computed beside", c.name, placesIn(p.Values, p.Workspace), c.inside, arena.Beside)
		}
		// Two values of a subgraph in one place, of which one is wanted later: both the checker and the run mind.
		breakBody(p.Workspace)
		if err := memplan.Check(m.Graph, p); err == nil {
			t.Errorf("%s: nobody minds a broken plan of a subgraph", c.name)
		}
	}
}

// placesIn counts the values that have a place.
func placesIn(values []memplan.Slot, spaces []memplan.Space) int {
	n := len(values)
	for _, s := range spaces {
		for _, b := range s.Bodies {
			n += placesIn(b.Values, b.Workspace)
		}
	}
	return n
}

// breakBody puts everything in the first subgraph at one place.
func breakBody(spaces []memplan.Space) {
	for i := range spaces[0].Bodies[0].Values {
		spaces[0].Bodies[0].Values[i].At = 0
	}
}

// TestRunWrongPlan checks that an execution finds out by itself that bytes were given away too early.
func TestRunWrongPlan(t *testing.T) {
	m := parse(t, `g (float[4,4] x) => (float[4,4] y) { a = MatMul(x, x) b = MatMul(a, x) c = MatMul(b, a) y = Add(c, b) }`)
	for _, c := range []struct{ moved, to, want string }{
		{"b", "a", `value "a": the plan gave its bytes away before it was read`},
		{"c", "b", `value "b": the plan gave its bytes away`},
	} {
		p := planned(t, m)
		at := map[string]int{}
		for i, s := range p.Values {
			at[s.Name] = i
		}
		p.Values[at[c.moved]].At = p.Values[at[c.to]].At
		arena, err := memplan.NewArena(p, m.Graph)
		if err != nil {
			t.Fatal(err)
		}
		machine, err := interp.New(m, interp.Options{Memory: arena})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := machine.Run([]*op.Array{op.NewArray(graph.Float, []int{4, 4}, false)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in %s: got %v, want %q", c.moved, c.to, err, c.want)
		}
	}
}

// TestArenaRefuses checks that a plan for something else is refused before memory is asked for.
func TestArenaRefuses(t *testing.T) {
	m := parse(t, `g (float[4,4] x) => (float[4,4] y) { a = MatMul(x, x) y = Relu(a) }`)
	for _, c := range []struct {
		mutate func(p *memplan.Plan)
		want   string
	}{
		{func(p *memplan.Plan) { p.Arena = 1 << 60 }, "an arena of 1152921504606846976 bytes for 128 bytes of values"},
		{func(p *memplan.Plan) { p.Arena = -1 }, "in -1 bytes"},
		{func(p *memplan.Plan) { p.Values[0].Bytes = 1 << 60 }, `1152921504606846976 bytes for "a", which is float[4,4]`},
		{func(p *memplan.Plan) { p.Values[0].Name = "ghost" }, `a place for "ghost", which nothing computes`},
		{func(p *memplan.Plan) { p.Workspace = []memplan.Space{{Bytes: 1 << 62}} }, "the workspace of"},
	} {
		p := planned(t, m)
		c.mutate(p)
		if _, err := memplan.NewArena(p, m.Graph); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
