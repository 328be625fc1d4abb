package prune

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// edges are numbers at which identities tend to break.
var edges = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, math.Inf(1), math.Inf(-1), math.NaN(), math.SmallestNonzeroFloat32, -1e-40, math.MaxFloat32}

// inputsFor makes up inputs, with sizes for symbolic dimensions. With special, one element of three is one of edges.
func inputsFor(m *graph.Model, sizes map[string]int64, seed uint64, special bool) []*op.Array {
	r := rand.New(rand.NewPCG(seed, 1))
	var in []*op.Array
	for _, v := range m.Graph.Inputs {
		var shape []int
		for _, d := range v.Type.Shape {
			n, ok := d.Eval(sizes).Int()
			if !ok {
				n = 2
			}
			shape = append(shape, int(n))
		}
		a := op.NewArray(v.Type.Elem, shape, false)
		for i := range a.Len() {
			switch {
			case v.Type.Elem == graph.Bool:
				a.I64[i] = int64(r.IntN(2))
			case a.I64 != nil:
				a.I64[i] = int64(r.IntN(7) - 2)
			case !a.IsFloat():
			case special && r.IntN(3) == 0:
				a.SetFloat(i, edges[r.IntN(len(edges))])
			default:
				a.SetFloat(i, float64(float32(r.NormFloat64())))
			}
		}
		in = append(in, a.Round())
	}
	return in
}

// evaluate runs a model, whose types are inferred anew.
func evaluate(m *graph.Model, in []*op.Array) ([]*op.Array, error) {
	machine, err := interp.New(m, interp.Options{})
	if err != nil {
		return nil, err
	}
	return machine.Run(in)
}

// differs returns how two results differ, "" if not. Under ZeroSign zeros are equal whatever their signs, under Finite
// also everything that is not finite in either, under Rounding numbers that agree to within 1e-5 of the largest.
func differs(a, b *op.Array, e rewrite.Effect) string {
	if a.Elem != b.Elem || !slices.Equal(a.Shape, b.Shape) {
		return fmt.Sprintf("%s%v is %s%v now", a.Elem, a.Shape, b.Elem, b.Shape)
	}
	if !slices.Equal(a.Str, b.Str) || !slices.Equal(a.I64, b.I64) {
		return fmt.Sprintf("%v is %v now", a, b)
	}
	if !a.IsFloat() {
		return ""
	}
	largest := 0.0
	for i := range a.Len() {
		if x := math.Abs(a.Float(i)); !math.IsInf(x, 0) && x > largest {
			largest = x
		}
	}
	for i := range a.Len() {
		x, y := a.Float(i), b.Float(i)
		same := math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y)
		switch e {
		case rewrite.ZeroSign:
			same = same || x == y
		case rewrite.Finite:
			same = same || x == y || math.IsInf(x, 0) || math.IsNaN(x)
		case rewrite.Rounding:
			same = same || math.Abs(x-y) <= 1e-5*largest || math.IsInf(x, 0) || math.IsNaN(x)
		}
		if !same {
			return fmt.Sprintf("element %d was %v, is %v", i, x, y)
		}
	}
	return ""
}

// agree evaluates two models with the same inputs and returns how the outputs differ, "" if not. What fails before may
// fail after, in another way.
func agree(t *testing.T, before, after *graph.Model, effect rewrite.Effect) string {
	t.Helper()
	for seed := range uint64(4) {
		sizes := map[string]int64{"N": 3, "M": 4, "P": 2, "Q": 2}
		if seed == 3 {
			sizes["N"] = 1
		}
		in := inputsFor(before, sizes, seed, seed%2 == 1)
		want, err := evaluate(before, in)
		if err != nil {
			continue
		}
		got, err := evaluate(after, in)
		if err != nil {
			return err.Error()
		}
		for i := range want {
			if s := differs(want[i], got[i], effect); s != "" {
				return fmt.Sprintf("seed %d: output %d: %s", seed, i, s)
			}
		}
	}
	return ""
}

// inferred parses a graph and infers its types.
func inferred(t *testing.T, body string) *graph.Model {
	t.Helper()
	m := parse(t, body)
	if _, err := op.Infer(m); err != nil {
		t.Logf("%s: %v", body, err)
	}
	return m
}

// effects returns the worst effect of the rules that were applied.
func effects(s Stats) rewrite.Effect {
	worst := rewrite.Exact
	for _, table := range append(Rules(), ReassociatingRules()) {
		for _, r := range table {
			if r.Effect != rewrite.Kernel && slices.ContainsFunc(s.Rules, func(c Count) bool { return c.Name == r.Name }) {
				worst = max(worst, r.Effect)
			}
		}
	}
	return worst
}
