package memplan_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/memplan"
	"gradtool/memplan/offset"
)

// TestHostilePlans gives checker and arena plans with any numbers in them: they answer with errors, not with panics, and an
// execution that does end has the right results.
func TestHostilePlans(t *testing.T) {
	m := parse(t, `g (float[4,4] x) => (float[4,4] y, float[5,4,4] all) { n = Constant<value: tensor = int64 {5}>() c = Constant<value: tensor = bool {1}>() a = Tanh(x) b = MatMul(a, x)
		z, all = Loop(n, c, b)<body: graph = d (int64 i, bool k, float[4,4] s) => (k2, s2, e) { k2 = Identity(k) m = MatMul(s, x) r = Tanh(m) s2 = Add(r, s) e = Mul(s2, r) }> y = Add(z, a) }`)
	var good [2][]byte
	for i, p := range []*memplan.Plan{planned(t, m), spread(t, m, offset.Memory{Name: "near", Capacity: 256}, offset.Memory{Name: "far"})} {
		var err error
		if good[i], err = json.Marshal(p); err != nil {
			t.Fatal(err)
		}
	}
	in := []*op.Array{op.NewArray(graph.Float, []int{4, 4}, false)}
	for i := range in[0].F32 {
		in[0].F32[i] = float32(i) / 16
	}
	machine, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := machine.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	odd := []float64{-1, 0, 1, 64, 4096, -64, 1 << 40, math.MaxInt64 - 1023, math.MinInt64}
	ran := 0
	for i := range 2000 {
		var tree any
		if err := json.Unmarshal(good[i%len(good)], &tree); err != nil {
			t.Fatal(err)
		}
		for range 1 + rng.IntN(2) {
			mutate(rng, tree, odd)
		}
		text, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		p := &memplan.Plan{}
		if json.Unmarshal(text, p) != nil || p.Arena > 1<<20 {
			continue
		}
		wrong := memplan.Check(m.Graph, p)
		arena, err := memplan.NewArena(p, m.Graph)
		if err != nil {
			continue
		}
		machine, err := interp.New(m, interp.Options{Memory: arena})
		if err != nil {
			t.Fatal(err)
		}
		got, err := machine.Run(in)
		if err != nil {
			if wrong == nil {
				t.Errorf("the checker is content with\n%s\nwhich fails: %v", text, err)
			}
			continue
		}
		ran++
		for i := range want {
			if string(raw(want[i])) != string(raw(got[i])) {
				t.Errorf("output %d is wrong under\n%s", i, text)
			}
		}
	}
	if ran < 50 {
		t.Errorf("only %d plans could be run", ran)
	}
}

// mutate changes one number somewhere in a tree of JSON.
func mutate(rng *rand.Rand, tree any, odd []float64) {
	var places []func(float64)
	var now []float64
	var walk func(x any)
	walk = func(x any) {
		switch x := x.(type) {
		case map[string]any:
			for _, k := range []string{"arena_bytes", "memories", "capacity_bytes", "align", "steps", "values", "workspace", "bodies", "offset", "bytes", "first", "last", "step"} {
				if v, ok := x[k].(float64); ok {
					places = append(places, func(f float64) { x[k] = f })
					now = append(now, v)
				} else {
					walk(x[k])
				}
			}
		case []any:
			for _, e := range x {
				walk(e)
			}
		}
	}
	walk(tree)
	i := rng.IntN(len(places))
	if rng.IntN(2) == 0 {
		places[i](now[i] + float64(64*(rng.IntN(9)-4)))
		return
	}
	places[i](odd[rng.IntN(len(odd))])
}
