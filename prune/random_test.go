package prune

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
	"gradtool/testmodels"
)

// chooser lets rapid answer for a random model.
func chooser(t *rapid.T) testmodels.Choose {
	return func(n int) int {
		if n <= 1 {
			return 0
		}
		return rapid.IntRange(0, n-1).Draw(t, "")
	}
}

// build makes the model that answers describe; the same answers make the same model.
func build(answers []int, nodes int, smooth bool) *graph.Model {
	at := 0
	return testmodels.Random(func(n int) int {
		a := 0
		if at < len(answers) {
			a = answers[at]
		}
		at++
		return a
	}, nodes, smooth)
}

// twin draws a random model and returns it twice.
func twin(t *rapid.T, smooth bool) (before, after *graph.Model) {
	var answers []int
	choose := chooser(t)
	nodes := 1 + choose(14)
	before = testmodels.Random(func(n int) int {
		a := choose(n)
		answers = append(answers, a)
		return a
	}, nodes, smooth)
	return before, build(answers, nodes, smooth)
}

// sizesOf are sizes for symbols that the random models are evaluated with.
var sizesOf = []map[string]int64{{"N": 3, "M": 2}, {"N": 1, "M": 3}, {"N": 2, "M": 2}, {"N": 0, "M": 1}, {"N": 4, "M": 1}}

// unlike evaluates both models and says how outputs differ, "" if not. Sizes for which before fails say nothing.
func unlike(before, after *graph.Model, wide bool, same func(a, b *op.Array) string) string {
	// What is left over (-1) of no elements could be anything: the standard calls it invalid, runtimes refuse it.
	invalid := false
	ints := map[*graph.Value][]int64{}
	watch := func(v *graph.Value, a *op.Array) {
		if a.I64 != nil {
			ints[v] = a.I64
		}
		if v.Def != nil && v.Def.Is("Reshape") && a.IsTensor() && a.Len() == 0 && slices.Contains(ints[v.Def.In[1]], -1) {
			invalid = true
		}
	}
	p, err := interp.New(before, interp.Options{Wide: wide, Watch: watch})
	if err != nil {
		return ""
	}
	q, err := interp.New(after, interp.Options{Wide: wide})
	if err != nil {
		return err.Error()
	}
	for i, sizes := range sizesOf {
		in := inputsFor(before, sizes, uint64(i), i%2 == 0 && !wide)
		invalid = false
		want, err := p.Run(in)
		if err != nil || invalid {
			continue
		}
		got, err := q.Run(in)
		if err != nil {
			return fmt.Sprintf("sizes %v: %v", sizes, err)
		}
		for k := range want {
			if s := same(want[k], got[k]); s != "" {
				return fmt.Sprintf("sizes %v: output %q: %s\nin  %v", sizes, before.Graph.Outputs[k].Name, s, in)
			}
		}
	}
	return ""
}

// TestRandom prunes random models: every output keeps its bits, and a second run changes nothing. More of them:
//
//	go test ./prune -run Random -rapid.checks=100000
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := twin(t, false)
		if err := op.Verify(before); err != nil {
			t.Skip("samples of operators may go beyond the schemas")
		}
		opt := Options{}
		if rapid.Bool().Draw(t, "frozen") {
			opt.Frozen = func(*graph.Value) bool { return true }
		}
		s, err := Run(after, opt)
		if err != nil {
			t.Fatalf("%v\n%s", err, before.String())
		}
		if err := graph.Verify(after); err != nil {
			t.Fatalf("%v\n%s\nis\n%s", err, before.String(), after.String())
		}
		if err := op.Verify(after); err != nil {
			t.Fatalf("%v\n%s\nis\n%s", err, before.String(), after.String())
		}
		exact := func(a, b *op.Array) string { return differs(a, b, 0) }
		if d := unlike(before, after, false, exact); d != "" {
			t.Fatalf("%s\n%s\nis, by %+v,\n%s", d, before.String(), s, after.String())
		}
		text := after.String()
		if again, err := Run(after, opt); err != nil || again.Changed() {
			t.Fatalf("a second run does %+v, %v\n%s\nis\n%s", again, err, text, after.String())
		}
	})
}

// TestRandomReassociate does so with the rules that round differently, on operators that do not blow small errors up.
func TestRandomReassociate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := twin(t, true)
		opt := Options{Reassociate: true, Frozen: func(*graph.Value) bool { return true }}
		s, err := Run(after, opt)
		if err != nil {
			t.Fatalf("%v\n%s", err, before.String())
		}
		if err := op.Verify(after); err != nil {
			t.Fatalf("%v\n%s\nis\n%s", err, before.String(), after.String())
		}
		close := func(a, b *op.Array) string { return differs(a, b, rewrite.Rounding) }
		if d := unlike(before, after, true, close); d != "" {
			t.Fatalf("%s\n%s\nis, by %+v,\n%s", d, before.String(), s, after.String())
		}
		text := after.String()
		if again, err := Run(after, opt); err != nil || again.Changed() {
			t.Fatalf("a second run does %+v, %v\n%s\nis\n%s", again, err, text, after.String())
		}
	})
}
