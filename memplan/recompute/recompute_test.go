package recompute_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/memplan"
	"gradtool/memplan/recompute"
	"gradtool/prune"
)

// randomModel returns a graph in the shape of training: nodes of many kinds whose results are read soon, and others that
// read them in the opposite order.
func randomModel(t testing.TB, seed uint64, n int) *graph.Model {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	m := graph.NewModel("g", 21)
	g := m.Graph
	matrix := graph.TensorOf(graph.Float, graph.ShapeOf(4, 4))
	x := g.AddInput("x", matrix)
	w := g.AddInit("w", graph.Floats([]int64{4, 4}, 1, .5, 0, 0, 0, 1, .5, 0, 0, 0, 1, .5, .5, 0, 0, 1))
	flat, square := g.AddInit("flat", graph.Ints(nil, 16)), g.AddInit("square", graph.Ints(nil, 4, 4))
	zero := g.AddInit("zero", graph.Floats(nil, 0))
	role := ""
	add := func(outs int, name string, in []*graph.Value, attrs ...*graph.Attr) *graph.Node {
		var names []string
		for range outs {
			names = append(names, m.Fresh(strings.ToLower(name)))
		}
		k := g.NewNode("", name, in, names, attrs...)
		k.Name = m.FreshNode(name)
		if role != "" {
			k.Meta.Set(graph.MetaRole, role)
		}
		g.Append(k)
		return k
	}
	values := func(v ...*graph.Value) []*graph.Value { return v }
	step := func(x, old *graph.Value) *graph.Value {
		switch rng.IntN(9) {
		case 0:
			return add(1, "Tanh", values(x)).Out[0]
		case 1:
			return add(1, "MatMul", values(x, w)).Out[0]
		case 2:
			return add(1, "Add", values(x, old)).Out[0]
		case 3:
			r := add(1, "Reshape", values(x, flat)).Out[0]
			r = add(1, "Sin", values(r)).Out[0]
			return add(1, "Reshape", values(r, square)).Out[0]
		case 4:
			k := add(2, "Split", values(x), graph.IntAttr("axis", 1), graph.IntAttr("num_outputs", 2))
			return add(1, "Concat", values(k.Out[1], k.Out[0]), graph.IntAttr("axis", 1)).Out[0]
		case 5:
			s := add(1, "ReduceSum", values(x)).Out[0]
			s = add(1, "Reshape", values(s, add(1, "Reshape", values(flat, add(1, "Shape", values(flat)).Out[0])).Out[0])).Out[0]
			_ = s
			return add(1, "Mul", values(x, add(1, "Cos", values(old)).Out[0])).Out[0]
		case 6:
			c := add(1, "Greater", values(old, zero)).Out[0]
			return add(1, "Where", values(c, x, old)).Out[0]
		case 7:
			return add(1, "Dropout", values(x)).Out[0]
		}
		return add(1, "RandomNormalLike", values(x)).Out[0]
	}
	saved := []*graph.Value{x}
	for range n {
		var y *graph.Value
		for y == nil {
			func() {
				y = step(saved[len(saved)-1], saved[rng.IntN(len(saved))])
			}()
		}
		saved = append(saved, y)
	}
	role = graph.RoleBackward
	d := add(1, "Neg", values(saved[len(saved)-1])).Out[0]
	for i := len(saved) - 1; i > 0; i-- {
		d = add(1, "Mul", values(d, add(1, "Sin", values(saved[i])).Out[0])).Out[0]
		if rng.IntN(3) == 0 {
			g.AddOutput(add(1, "MatMul", values(d, saved[i-1])).Out[0])
		}
	}
	g.AddOutput(d)
	if rng.IntN(2) == 0 {
		g.AddOutput(saved[1+rng.IntN(len(saved)-1)])
	}
	if _, err := prune.Run(m, prune.Options{}); err != nil { // drops what nobody reads
		t.Fatal(err)
	}
	if err := g.Sort(); err != nil {
		t.Fatal(err)
	}
	infer(t, m)
	return m
}

func infer(t testing.TB, m *graph.Model) {
	t.Helper()
	if _, err := op.Infer(m); err != nil {
		t.Fatal(err)
	}
}

// outputs evaluates the model, whose node names decide what random operators draw.
func outputs(t testing.TB, m *graph.Model, watch func(*graph.Value, *op.Array)) []*op.Array {
	t.Helper()
	machine, err := interp.New(m, interp.Options{Seed: 5, Watch: watch})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(9, 9))
	var in []*op.Array
	for _, v := range m.Graph.Inputs {
		s, _ := v.Type.Shape.Ints()
		shape := make([]int, len(s))
		for i := range s {
			shape[i] = int(s[i])
		}
		a := op.NewArray(v.Type.Elem, shape, false)
		for i := range a.Len() {
			a.SetFloat(i, rng.Float64()*2-1)
		}
		in = append(in, a)
	}
	out, err := machine.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func equal(a, b *op.Array) bool {
	if a.Len() != b.Len() || a.Elem != b.Elem {
		return false
	}
	for i := range a.Len() {
		if x, y := a.Float(i), b.Float(i); math.Float64bits(x) != math.Float64bits(y) {
			return false
		}
	}
	return true
}

// planned returns the front of a model in budgets down from its peak.
func planned(t testing.TB, m *graph.Model, opt recompute.Options) (*recompute.Problem, []int64, func(budget int64) ([]int32, error)) {
	t.Helper()
	p, err := recompute.New(m, opt)
	if err != nil {
		t.Fatal(err)
	}
	front, err := p.Front(p.Peak, 20_000)
	if err != nil {
		t.Fatal(err)
	}
	var peaks []int64
	for _, f := range front {
		peaks = append(peaks, f.Peak)
	}
	return p, peaks, func(budget int64) ([]int32, error) {
		c, err := p.Choose(front, budget)
		return c.Sequence, err
	}
}

// TestPlansOfRandomModels writes plans for several budgets into random models: outputs and recomputed values keep every bit,
// memory is what the plan says, the model stays valid, nothing random is drawn twice, and prune undoes nothing.
func TestPlansOfRandomModels(t *testing.T) {
	again := 0
	for seed := range uint64(12) {
		base := randomModel(t, seed, 12)
		want := outputs(t, base, nil)
		_, peaks, _ := planned(t, base, recompute.Options{})
		for _, peak := range []int64{peaks[0], peaks[len(peaks)/2], peaks[len(peaks)-1]} {
			for _, kind := range []recompute.Barrier{recompute.BarrierData, recompute.BarrierShape, recompute.BarrierNone} {
				m := randomModel(t, seed, 12)
				p, _, choose := planned(t, m, recompute.Options{})
				sequence, err := choose(peak)
				if err != nil {
					t.Fatal(err)
				}
				made, err := p.Apply(sequence, kind)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				again += made.Again
				check(t, fmt.Sprintf("seed %d, peak %d, barrier %s", seed, peak, kind), m, want, peak, kind)
			}
		}
	}
	if again < 100 {
		t.Errorf("only %d nodes were computed again", again)
	}
}

func check(t *testing.T, what string, m *graph.Model, want []*op.Array, peak int64, kind recompute.Barrier) {
	t.Helper()
	if err := errors.Join(graph.Verify(m), op.Verify(m)); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	position := map[*graph.Node]int{}
	for i, n := range m.Graph.Nodes {
		position[n] = i
		for _, v := range n.In {
			if v != nil && v.Def != nil {
				if at, ok := position[v.Def]; !ok {
					t.Fatalf("%s: node %s reads %s, which comes later (%d)", what, n.Label(), v.Name, at)
				}
			}
		}
		if n.Meta.Get(graph.MetaRole) == graph.RoleRecompute && op.Of(n).Has(op.Random) && n.Op != "Dropout" {
			t.Fatalf("%s: %s draws again", what, n.Label())
		}
	}
	infer(t, m)
	live, err := memplan.Analyze(m.Graph, nil, memplan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(live.Outside) > 0 {
		t.Fatalf("%s: %q has no known size: %s", what, live.Outside[0].Value.Name, live.Outside[0].Why)
	}
	const barriers = 400 // bytes of zeros and shapes
	if live.Peak > peak+barriers {
		t.Fatalf("%s: needs %d bytes", what, live.Peak)
	}
	originals := map[string]*op.Array{}
	got := outputs(t, m, func(v *graph.Value, a *op.Array) {
		originals[v.Name] = a
		if v.Def.Meta.Get(graph.MetaRole) != graph.RoleRecompute || v.Def.Meta.Get(graph.MetaFrom) == "" {
			return
		}
		for _, n := range m.Graph.Nodes {
			if n.Name != v.Def.Meta.Get(graph.MetaFrom) || n.Result(v.Index) == nil {
				continue
			}
			if o := originals[n.Out[v.Index].Name]; o == nil || !equal(o, a) {
				t.Errorf("%s: %q is not what %q was", what, v.Name, n.Out[v.Index].Name)
			}
		}
	})
	for i := range want {
		if !equal(got[i], want[i]) {
			t.Fatalf("%s: output %q differs", what, m.Graph.Outputs[i].Name)
		}
	}
	if kind != recompute.BarrierData {
		return
	}
	waits := waiting(m)
	for _, n := range m.Graph.Nodes {
		if n.Meta.Get(graph.MetaFrom) != "" && n.Meta.Get(graph.MetaRole) == graph.RoleRecompute && memplan.Viewed(n.Out[0]) == nil && !waits[n] {
			t.Fatalf("%s: %s waits for nothing", what, n.Label())
		}
	}
	before := copies(m)
	if _, err := prune.Run(m, prune.Options{}); err != nil {
		t.Fatal(err)
	}
	if after := copies(m); !slices.Equal(before, after) {
		t.Fatalf("%s: prune left %q of %q", what, after, before)
	}
}

// waiting returns the nodes that depend on a barrier.
func waiting(m *graph.Model) map[*graph.Node]bool {
	waits := map[*graph.Node]bool{}
	for _, n := range m.Graph.Nodes {
		waits[n] = n.Meta.Get(graph.MetaBarrier) != ""
		for _, v := range n.In {
			if v != nil && v.Def != nil && waits[v.Def] {
				waits[n] = true
			}
		}
	}
	return waits
}

// copies returns the operators that are computed again, but for moves, which rules may put in one.
func copies(m *graph.Model) []string {
	var list []string
	for _, n := range m.Graph.Nodes {
		if n.Meta.Get(graph.MetaFrom) != "" && n.Meta.Get(graph.MetaRole) == graph.RoleRecompute && slices.Contains([]string{"Tanh", "MatMul", "Sin", "Cos", "Mul", "Add"}, n.Op) {
			list = append(list, n.Op+" "+n.Meta.Get(graph.MetaFrom))
		}
	}
	return list
}
