package recompute_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/memplan/recompute"
)

// chain returns a model of n layers and, as in training, nodes that read their results in the opposite order.
func chain(t testing.TB, n int, op string, attrs ...*graph.Attr) *graph.Model {
	t.Helper()
	return chainOf(t, 64, n, op, attrs...)
}

// chainOf is chain with results of so many floats.
func chainOf(t testing.TB, floats int64, n int, op string, attrs ...*graph.Attr) *graph.Model {
	t.Helper()
	m := graph.NewModel("chain", 21)
	g := m.Graph
	x := g.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(floats)))
	add := func(name, op string, in ...*graph.Value) *graph.Node {
		k := g.NewNode("", op, in, []string{name})
		k.Name = name
		g.Append(k)
		return k
	}
	list := []*graph.Value{x}
	for i := range n {
		k := add(fmt.Sprint("f", i), op, list[i])
		for _, a := range attrs {
			k.SetAttr(a)
		}
		list = append(list, k.Out[0])
	}
	d := list[n]
	for i := n - 1; i >= 0; i-- {
		k := add(fmt.Sprint("b", i), "Mul", d, list[i])
		k.Meta.Set(graph.MetaRole, graph.RoleBackward)
		d = k.Out[0]
	}
	g.AddOutput(d)
	infer(t, m)
	return m
}

// TestChain plans a chain of 1,000 layers within a budget of the order of the square root of its length.
func TestChain(t *testing.T) {
	m := chain(t, 1000, "Sin")
	p, err := recompute.New(m, recompute.Options{})
	if err != nil {
		t.Fatal(err)
	}
	front, err := p.Front(p.Peak, 50_000)
	if err != nil {
		t.Fatal(err)
	}
	const root = 80 * 256 // 80 of 1,000 layers
	f, err := p.Choose(front, root)
	if err != nil {
		t.Fatal(err)
	}
	if nodes, _ := p.Again(f.Sequence); nodes > 1500 {
		t.Errorf("%d nodes are computed again", nodes)
	}
	if made, err := p.Apply(f.Sequence, recompute.BarrierData); err != nil || made.Again < 800 {
		t.Errorf("%d nodes were added, %v", made.Again, err)
	}
}

// TestFrontIsMonotone goes down 60 budgets: peaks and costs never turn, and equal problems have equal plans.
func TestFrontIsMonotone(t *testing.T) {
	for seed := range uint64(4) {
		m := randomModel(t, seed, 25)
		p, peaks, choose := planned(t, m, recompute.Options{})
		_, _, again := planned(t, randomModel(t, seed, 25), recompute.Options{})
		last := int64(0)
		for k := range int64(60) {
			budget := peaks[0] - (peaks[0]-peaks[len(peaks)-1])*k/59
			s, err := choose(budget)
			if err != nil {
				t.Fatal(err)
			}
			var cost int64
			for _, u := range s {
				cost += p.Graph.Cost[u]
			}
			if cost < last {
				t.Fatalf("seed %d: budget %d costs %d, a larger one %d", seed, budget, cost, last)
			}
			last = cost
			if other, err := again(budget); err != nil || !slices.Equal(s, other) {
				t.Fatalf("seed %d: budget %d: another plan of the same problem: %v", seed, budget, err)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	p, peaks, choose := planned(t, chain(t, 40, "Sin"), recompute.Options{})
	_, err := choose(256)
	var low *recompute.BudgetError
	if !errors.As(err, &low) || !low.Proved || low.Lowest <= 256 || len(low.Alive) == 0 {
		t.Fatalf("%v, want the node that needs more", err)
	}
	if _, err := choose(peaks[len(peaks)-1] - 1); !errors.As(err, &low) || low.Lowest != peaks[len(peaks)-1] && !low.Proved || !strings.Contains(err.Error(), "kept for") && !low.Proved {
		t.Errorf("%v, want what is alive", err)
	}
	_ = p
}

// TestPolicies keeps what must not be computed again.
func TestPolicies(t *testing.T) {
	seed := graph.FloatAttr("seed", 3)
	mark := func(m *graph.Model, how string) *graph.Model {
		for _, n := range m.Graph.Nodes {
			n.Meta.Set(recompute.MetaRemat, how)
		}
		return m
	}
	for _, tc := range []struct {
		name string
		m    *graph.Model
		p    recompute.Policy
		none bool // nothing is computed again
	}{
		{"default", chain(t, 12, "Sin"), recompute.Policy{}, false},
		{"kept by name", chain(t, 12, "Sin"), recompute.Policy{Keep: func(n *graph.Node) bool { return n.Op == "Sin" }}, true},
		{"dots keep no Sin", chain(t, 12, "Sin"), recompute.Policy{Dots: true}, false},
		{"marked keep", mark(chain(t, 12, "Sin"), "keep"), recompute.Policy{}, true},
		{"random", chain(t, 12, "RandomNormalLike"), recompute.Policy{}, true},
		{"random with a seed", chain(t, 12, "RandomNormalLike", seed), recompute.Policy{}, false},
		{"random, marked again", mark(chain(t, 12, "Bernoulli"), "again"), recompute.Policy{}, false},
	} {
		p, peaks, choose := planned(t, tc.m, recompute.Options{Policy: tc.p})
		s, err := choose(peaks[len(peaks)-1])
		if err != nil {
			t.Fatal(err)
		}
		if nodes, _ := p.Again(s); (nodes == 0) != tc.none {
			t.Errorf("%s: %d nodes are computed again", tc.name, nodes)
		}
	}
}

func TestCosts(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"node,cost\nf0,5\nf1,1000\n", ""},
		{"cost,node,more\n5,f0,x\n", ""},
		{`[{"cat":"Node","name":"f0_kernel_time","dur":7},{"cat":"Session","name":"x","dur":1},{"cat":"Node","name":"f0_kernel_time","dur":9}]`, ""},
		{"", "the file is empty"},
		{"node,seconds\nf0,1\n", "want node and cost"},
		{"node,cost\nf0,-1\n", `line 2: cost "-1" of node "f0"`},
		{"node,cost\nf0,NaN\n", `cost "NaN"`},
		{`[{"cat":"Session","name":"x","dur":1}]`, "no kernel times"},
		{"[1", "not a profile"},
	} {
		c, err := recompute.ReadCosts(strings.NewReader(tc.text))
		if tc.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.text, err, tc.want)
		}
		if err != nil {
			continue
		}
		if _, err := recompute.New(chain(t, 3, "Sin"), recompute.Options{Costs: c}); err != nil {
			t.Errorf("%q: %v", tc.text, err)
		}
	}
	// A node that was measured as dear is not the one that is computed again.
	c, err := recompute.ReadCosts(strings.NewReader("node,cost\nf3,1\nf4,1\nf5,100000\nf6,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, peaks, choose := planned(t, chain(t, 12, "Sin"), recompute.Options{Costs: c})
	s, err := choose(peaks[len(peaks)/2])
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for _, u := range s {
		if p.Nodes[u] != nil {
			times[p.Nodes[u].Name]++
		}
	}
	if times["f5"] != 1 || len(s) == len(times)+1 {
		t.Errorf("f5 is computed %d times, of %d nodes in %d steps", times["f5"], len(times), len(s))
	}
	if c, err = recompute.ReadCosts(strings.NewReader("node,cost\nnobody,1\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := recompute.New(chain(t, 3, "Sin"), recompute.Options{Costs: c}); err == nil || !strings.Contains(err.Error(), "none of the 1 nodes") {
		t.Errorf("%v, want that no node is in the model", err)
	}
}

// A plan of some size begins with results as large as the outputs and as the peak; a small plan does not.
func TestRoom(t *testing.T) {
	for _, floats := range []int64{64, 1 << 20} {
		for _, kind := range []recompute.Barrier{recompute.BarrierData, recompute.BarrierShape} {
			m := chainOf(t, floats, 12, "Sin")
			want := outputs(t, m, nil)
			p, peaks, choose := planned(t, m, recompute.Options{})
			peak := peaks[len(peaks)/2]
			s, err := choose(peak)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Apply(s, kind); err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("%d floats, barrier %s", floats, kind)
			check(t, what, m, want, peak, kind)
			var rooms []int64
			for _, n := range m.Graph.Nodes {
				if n.Is("ConstantOfShape") {
					size, ok := n.Out[0].Type.Shape.Size().Int()
					if !ok {
						t.Fatalf("%s: nobody knows the size of a room", what)
					}
					rooms = append(rooms, size)
				}
			}
			if floats == 64 || kind == recompute.BarrierShape {
				if len(rooms) > 0 {
					t.Errorf("%s: %d rooms", what, len(rooms))
				}
				continue
			}
			if len(rooms) != 2 || rooms[0] < 4*floats || rooms[0] > rooms[1] || rooms[1] > peak || rooms[1] < peak*9/10 {
				t.Errorf("%s: rooms of %d bytes, peak %d", what, rooms, peak)
			}
		}
	}
}
