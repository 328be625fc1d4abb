package memplan_test

import (
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/memplan"
	"gradtool/memplan/offset"
)

// spread plans m for several memories.
func spread(t *testing.T, m *graph.Model, list ...offset.Memory) *memplan.Plan {
	t.Helper()
	made, err := memplan.Make(m.Graph, memplan.PlanOptions{Effort: 1_000_000, Memories: list})
	if err != nil {
		t.Fatal(err)
	}
	made.Apply()
	return made.Plan(nil)
}

// TestSpreadRandom plans random graphs for memories that hold one, three and all matrices: plans are right, keep to the capacities, and
// what is alive in the first memory is refused elsewhere.
func TestSpreadRandom(t *testing.T) {
	refused := 0
	for seed := range uint64(40) {
		m := randomGraph(t, seed, 5+int(seed)%40)
		p := spread(t, m, offset.Memory{Name: "one", Capacity: 100}, offset.Memory{Name: "three", Capacity: 192}, offset.Memory{Name: "all"})
		if err := memplan.Check(m.Graph, p); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if p.Memories[0].Bytes > 64 || p.Memories[1].Bytes > 192 || p.Memories[0].Bytes+p.Memories[1].Bytes+p.Memories[2].Bytes != p.Arena {
			t.Errorf("seed %d: %+v", seed, p.Memories)
		}
		if _, err := memplan.NewArena(p, m.Graph); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		for _, a := range p.Values {
			for j, b := range p.Values {
				if a.Memory == b.Memory && a.At == b.At || a.First >= b.First || a.Last <= b.First {
					continue
				}
				q := clone(t, p)
				q.Values[j].Memory, q.Values[j].At = a.Memory, a.At
				if memplan.Check(m.Graph, q) == nil {
					t.Fatalf("seed %d: %q moved into %q, and nobody minds", seed, b.Name, a.Name)
				}
				refused++
			}
		}
	}
	if refused < 200 {
		t.Errorf("only %d mutations made", refused)
	}
}

// TestSpreadCheck breaks what a plan says of its memories.
func TestSpreadCheck(t *testing.T) {
	m := parse(t, `g (float[4,4] x) => (float[4,4] z) { a = MatMul(x, x) b = MatMul(a, x) c = MatMul(a, b) z = MatMul(c, a) }`)
	p := spread(t, m, offset.Memory{Name: "near", Capacity: 128}, offset.Memory{Name: "far"})
	for _, c := range []struct {
		name   string
		mutate func(p *memplan.Plan)
		want   string // "" where the plan stays right
	}{
		{"as it is", func(p *memplan.Plan) {}, ""},
		{"an unknown memory", func(p *memplan.Plan) { p.Values[0].Memory = "nowhere" }, `in memory "nowhere", which it does not have`},
		{"no memory", func(p *memplan.Plan) { p.Values[0].Memory = "" }, `which it does not have`},
		{"beyond its end", func(p *memplan.Plan) { p.Values[0].At = 128 }, "at 128, in 128 bytes of memory"},
		{"more than it has", func(p *memplan.Plan) { p.Memories[0].Capacity = 64 }, "which has 64"},
		{"a sum that is wrong", func(p *memplan.Plan) { p.Arena += 64 }, "but says"},
		{"too much for the sum", func(p *memplan.Plan) { p.Arena = 64 }, "64 bytes in all"},
		{"a name twice", func(p *memplan.Plan) { p.Memories[1].Name = "near" }, "comes twice"},
		{"no name", func(p *memplan.Plan) { p.Memories[1].Name = "" }, "is empty"},
		{"one memory for all", func(p *memplan.Plan) { p.Memories = nil }, ""},
	} {
		q := clone(t, p)
		c.mutate(q)
		err := memplan.Check(m.Graph, q)
		if c.name == "one memory for all" { // then offsets of different memories meet
			c.want = "whose bytes"
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
		if _, aerr := memplan.NewArena(q, m.Graph); c.want != "" && c.want != "whose bytes" && aerr == nil {
			t.Errorf("%s: an arena for it", c.name)
		}
	}
}

// TestSpreadPrefers: the first memory gets what moves the most bytes for those that it holds.
func TestSpreadPrefers(t *testing.T) {
	m := parse(t, `g (float[4,4] x) => (float[4,4] z) { a = MatMul(x, x) b = MatMul(x, x) c = MatMul(b, b) d = Gemm(c, c, b) e = Gemm(d, d, b) z = MatMul(a, e) }`)
	made, err := memplan.Make(m.Graph, memplan.PlanOptions{KeepOrder: true, Memories: []offset.Memory{{Name: "near", Capacity: 192}, {Name: "far"}}})
	if err != nil {
		t.Fatal(err)
	}
	if made.Spilled != 128 || made.SpilledBound > 128 || made.SpilledBound < 100 {
		t.Errorf("%d bytes spilled, at least %d, want 128", made.Spilled, made.SpilledBound)
	}
	for _, s := range made.Plan(nil).Values {
		if want := map[bool]string{true: "far", false: "near"}[s.Name == "a"]; s.Memory != want {
			t.Errorf("%q lies in %q, want %q", s.Name, s.Memory, want)
		}
	}
}
