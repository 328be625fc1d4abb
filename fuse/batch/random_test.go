package batch

import (
	"errors"
	"math/rand/v2"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/testmodels"
)

// feeds returns small random numbers for the inputs of m, with the sizes of symbols given.
func feeds(m *graph.Model, rng *rand.Rand, dims map[string]int64) []*op.Array {
	var in []*op.Array
	for _, v := range m.Graph.Inputs {
		var shape []int
		for _, d := range v.Type.Shape {
			n, _ := d.Eval(dims).Int()
			shape = append(shape, int(n))
		}
		a := op.NewArray(v.Type.Elem, shape, false)
		for i := range a.Len() {
			if a.I64 != nil {
				a.I64[i] = int64(rng.IntN(2))
			} else {
				a.SetFloat(i, rng.Float64()*2-1)
			}
		}
		in = append(in, a)
	}
	return in
}

// TestRandom divides random graphs by each axis of each input. Where sums are made in another order only graphs of smooth
// operators are compared.
func TestRandom(t *testing.T) {
	runs, summed, refused := 0, 0, 0
	for seed := range uint64(600) {
		fresh := func() *graph.Model {
			rng := rand.New(rand.NewPCG(seed, 3))
			return testmodels.Random(rng.IntN, 10+int(seed%40), seed%2 == 0)
		}
		m := fresh()
		random := false
		for n := range m.Graph.AllNodes() {
			random = random || op.Of(n).Has(op.Random) && !n.Is("Dropout")
		}
		if random {
			continue
		}
		dims := map[string]int64{"N": 1 + int64(seed%5), "M": 3}
		feed := feeds(m, rand.New(rand.NewPCG(seed, 4)), dims)
		want, err := machine(t, m).Run(feed)
		if err != nil {
			continue
		}
		valid := op.Verify(m) == nil
		for i, v := range m.Graph.Inputs {
			for a, d := range v.Type.Shape {
				if n, ok := d.Int(); ok && n < 2 || d.IsUnknown() {
					continue
				}
				m := fresh()
				info, err := op.Infer(m)
				if err != nil {
					t.Fatal(err)
				}
				x := m.Graph.Inputs[i]
				before := m.String()
				res, err := split(m, info, Options{Parts: 2 + int(seed%3)}, []origin{{x, plain(a)}}, x.Type.Shape[a])
				if errors.Is(err, ErrNothing) {
					continue
				}
				err = errors.Join(err, graph.Verify(m))
				if valid {
					err = errors.Join(err, op.Verify(m))
				}
				if err != nil {
					t.Fatalf("graph %d, input %d, axis %d: %v\n%s", seed, i, a, err, before)
				}
				got, err := machine(t, m).Run(feed)
				if err != nil {
					if n, _ := d.Eval(dims).Int(); n < int64(res.Parts) {
						refused++ // an operator does not take empty parts
						continue
					}
					t.Fatalf("graph %d, input %d, axis %d: %v\n%s\n%s", seed, i, a, err, before, m)
				}
				runs++
				tol := 0.0
				if res.Summed > 0 {
					if summed++; seed%2 != 0 {
						continue
					}
					tol = 1e-4
				}
				for j := range want {
					if dist, err := distance(want[j], got[j]); err != nil || dist > tol {
						t.Fatalf("graph %d, input %d, axis %d: output %d: %v, distance %v\n%s\n%s", seed, i, a, j, err, dist, before, m)
					}
				}
			}
		}
	}
	t.Logf("%d graphs divided, %d with sums, %d more refused empty parts", runs, summed, refused)
	if runs < 500 || summed < 100 {
		t.Error("too few")
	}
}
