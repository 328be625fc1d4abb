package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/internal/public"
	"gradtool/onnxio"
)

// TestConformanceNode takes the gradient of the standard's node tests at their own inputs and compares it, in float64,
// with central differences along a random direction of every float operand that a derivative reaches.
//
// Cases without such an operand or without float result are skipped, as are those that a rule refuses. Where the two disagree
// the point may be a kink, or lie on the edge of the domain: then the gradient there must be finite (on an edge, the difference
// not), and both must agree at three points nearby. Anything else fails. The counts by operator are logged (scripts/conformance --node).
func TestConformanceNode(t *testing.T) {
	root := public.Path(t, "corpus", "onnx-backend", "node")
	models, _ := filepath.Glob(filepath.Join(root, "*", "model.onnx"))
	slices.Sort(models)
	counts := map[string]*caseCount{}
	for _, path := range models {
		dir := filepath.Dir(path)
		m, closer, err := onnxio.Open(path, onnxio.ReadOptions{})
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(dir), err)
			continue
		}
		name := caseOperator(m, filepath.Base(dir))
		tl := counts[name]
		if tl == nil {
			tl = &caseCount{skipped: map[string]int{}}
			counts[name] = tl
		}
		tl.cases++
		skip, err := checkCase(m, filepath.Join(dir, "test_data_set_0"), false)
		var blocked *autodiff.BlockedError
		if errors.As(err, &blocked) { // again, with integers that decide shapes as constants
			closer.Close()
			if m, closer, err = onnxio.Open(path, onnxio.ReadOptions{}); err != nil {
				t.Fatal(err)
			}
			if skip, err = checkCase(m, filepath.Join(dir, "test_data_set_0"), true); err == nil && skip == "" {
				tl.constants++
			}
			if errors.As(err, &blocked) {
				skip, err = "refused: "+blocked.Blockers[0].Reason, nil
			}
		}
		switch {
		case err != nil:
			tl.failed++
			t.Errorf("%s: %v", filepath.Base(dir), err)
		case skip != "":
			tl.skipped[skip]++
		default:
			tl.passed++
		}
		closer.Close()
	}
	logCounts(t, counts)
}

// caseCount is how the cases of one operator went.
type caseCount struct {
	cases, passed, constants, failed int
	skipped                          map[string]int // by reason
}

func logCounts(t *testing.T, counts map[string]*caseCount) {
	var sum caseCount
	sum.skipped = map[string]int{}
	t.Logf("%-28s %6s %6s %6s  %s", "operator", "cases", "passed", "failed", "skipped")
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		tl := counts[name]
		var why []string
		for _, reason := range slices.Sorted(maps.Keys(tl.skipped)) {
			why = append(why, fmt.Sprintf("%d %s", tl.skipped[reason], reason))
			sum.skipped[reason] += tl.skipped[reason]
		}
		if tl.constants > 0 {
			why = append(why, fmt.Sprintf("(%d passed with integer inputs as constants)", tl.constants))
		}
		t.Logf("%-28s %6d %6d %6d  %s", name, tl.cases, tl.passed, tl.failed, strings.Join(why, "; "))
		sum.cases, sum.passed, sum.failed = sum.cases+tl.cases, sum.passed+tl.passed, sum.failed+tl.failed
	}
	t.Logf("%-28s %6d %6d %6d", "all", sum.cases, sum.passed, sum.failed)
	for _, reason := range slices.Sorted(maps.Keys(sum.skipped)) {
		t.Logf("  %6d skipped: %s", sum.skipped[reason], reason)
	}
	if sum.passed == 0 {
		t.Error("nothing passed")
	}
}

// caseOperator names the operator that a case is about.
func caseOperator(m *graph.Model, name string) string {
	if strings.HasSuffix(name, "_expanded") || strings.Contains(name, "_expanded_ver") {
		return "(function bodies)"
	}
	if len(m.Graph.Nodes) == 0 {
		return "(no node)"
	}
	return op.KeyOf(m.Graph.Nodes[len(m.Graph.Nodes)-1]).String()
}

// checkCase compares the gradient of one case; skip says why there is none to compare.
func checkCase(m *graph.Model, data string, constants bool) (skip string, err error) {
	set, err := readDataset(m, data)
	if err != nil {
		return "", err
	}
	inputs := m.Graph.Inputs
	feed, err := set.feed(m, inputs, appended{})
	if err != nil {
		return "", err
	}
	if constants {
		_, feed = bindIntegers(m, inputs, feed)
	}
	info, err := prepare(m, nil)
	if err != nil {
		return "", err
	}
	for n := range m.Graph.AllNodes() {
		if op.Of(n) == nil {
			return "outside the operator table", nil
		}
	}
	of := autodiff.FloatOutputs(m)
	if len(of) == 0 {
		return "no float result", nil
	}
	wrt := autodiff.Reached(m, of, append(autodiff.FloatInputs(m), autodiff.Params(m, of)...))
	if len(wrt) == 0 {
		return "no float operand with a derivative", nil
	}
	for i, a := range feed {
		feed[i] = wide(a)
	}
	forward, err := interp.New(m, interp.Options{Wide: true})
	if err != nil {
		return "", err
	}
	outs, err := forward.Run(feed)
	if err != nil {
		return "", err
	}
	cts := map[*graph.Value]*op.Array{}
	rng := rand.New(rand.NewPCG(1, 2))
	for i, y := range m.Graph.Outputs {
		ct := op.NewArray(y.Type.Elem, outs[i].Shape, true)
		for j := range ct.F64 {
			if x := outs[i].Float(j); !math.IsNaN(x) && !math.IsInf(x, 0) {
				ct.F64[j] = rng.NormFloat64()
			}
		}
		cts[y] = ct
	}
	res, err := autodiff.Gradient(m, info, autodiff.GradOptions{Of: of, Wrt: wrt, Seeds: true})
	if err != nil {
		return "", err
	}
	for _, y := range of {
		feed = append(feed, cts[y])
	}
	wrong, err := compareAt(m, res, of, feed, -1)
	switch {
	case err != nil && changesShape(err):
		wrong = &verdict{Name: "all", Want: math.Inf(1)}
	case err != nil || wrong == nil:
		return "", err
	}
	if math.IsNaN(wrong.Got) && !math.IsNaN(wrong.Want) {
		return "", fmt.Errorf("gradient of %s is not a number, the difference quotient is %g", wrong.Name, wrong.Want)
	}
	agree := 0
	for trial := uint64(0); trial < 16 && agree < 3; trial++ {
		near, err := compareAt(m, res, of, nearby(m, wrt, feed, trial), -1)
		switch {
		case err != nil && !changesShape(err):
			return "", err
		case err != nil || near != nil && math.IsNaN(near.Want): // outside the domain
		case near != nil:
			return "", fmt.Errorf("gradient of %s: %g, difference quotient %g; nearby, of %s: %g and %g", wrong.Name, wrong.Got, wrong.Want, near.Name, near.Got, near.Want)
		default:
			agree++
		}
	}
	switch {
	case agree < 3 && math.IsInf(wrong.Want, 0):
		return "where the result's shape changes", nil
	case agree < 3:
		return "", fmt.Errorf("gradient of %s: %g, difference quotient %g; too few points nearby are in the domain", wrong.Name, wrong.Got, wrong.Want)
	}
	return "at a kink or edge, agrees nearby", nil
}

// changesShape reports whether an error says that a result has another shape at a point nearby.
func changesShape(err error) bool { return strings.Contains(err.Error(), "so it has no derivative") }

// bindIntegers makes initializers of the inputs that are not of a float type.
func bindIntegers(m *graph.Model, inputs []*graph.Value, feed []*op.Array) ([]*graph.Value, []*op.Array) {
	var left []*graph.Value
	var fed []*op.Array
	for i, v := range inputs {
		if v.Type.IsTensor() && v.Type.Elem.IsInt() {
			v.Init = feed[i].Tensor()
			m.Graph.Inits = append(m.Graph.Inits, v)
			continue
		}
		left, fed = append(left, v), append(fed, feed[i])
	}
	m.Graph.Inputs = left
	return left, fed
}

// nearby returns the inputs of feed with the differentiated ones moved at random by some percent of their size.
func nearby(m *graph.Model, wrt []*graph.Value, feed []*op.Array, seed uint64) []*op.Array {
	rng := rand.New(rand.NewPCG(seed, 11))
	out := slices.Clone(feed)
	for i, v := range m.Graph.Inputs {
		if !slices.Contains(wrt, v) {
			continue
		}
		a := feed[i].Clone()
		size := max(statsOf(a).meanAbs, 1e-2)
		for j := range a.F64 {
			a.F64[j] += 0.03 * size * rng.NormFloat64()
		}
		out[i] = a
	}
	return out
}

// compareAt compares all gradients with difference quotients at one point and returns the first that disagrees. A negative
// atol stands for what rounding of the outputs can explain.
func compareAt(m *graph.Model, res *autodiff.GradResult, of []*graph.Value, feed []*op.Array, atol float64) (*verdict, error) {
	d, err := newDifferences(m, res, of, feed, 0)
	if err != nil {
		return nil, err
	}
	if _, _, err := d.objective(); err != nil { // the cotangents may not fit here
		return nil, err
	}
	machine, err := interp.New(m, interp.Options{Wide: true})
	if err != nil {
		return nil, err
	}
	outs, err := machine.Run(feed)
	if err != nil {
		return nil, err
	}
	for _, g := range res.Grads {
		grad := outs[slices.Index(m.Graph.Outputs, g.Out)]
		if grad.Elem != g.X.Type.Elem || !slices.Equal(grad.Shape, d.feed[d.at[g.X]].Shape) {
			return nil, fmt.Errorf("gradient of %s is %s, want the type of %s", g.X.Name, grad.Type(), d.feed[d.at[g.X]].Type())
		}
		v, err := slopeAgainst(d, g, grad, slopeTolerance, atol)
		if err != nil {
			return nil, err
		}
		if !v.OK {
			return &v, nil
		}
	}
	return nil, nil
}
