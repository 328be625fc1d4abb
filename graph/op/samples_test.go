package op_test

import (
	"fmt"
	"slices"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// TestInferenceAgreesWithEvaluation runs every sample of every definition and compares the inferred types with
// those of the computed arrays: nothing inferred may be contradicted, and with constant shapes
// everything must be inferred. Known integer values must be the computed ones.
func TestInferenceAgreesWithEvaluation(t *testing.T) {
	for _, d := range op.All() {
		if d.Eval == nil || d.Infer == nil || len(d.Samples) == 0 {
			continue
		}
		for i, s := range d.Samples {
			for _, hide := range []string{"", "rank", "symbols", "all"} {
				t.Run(fmt.Sprintf("%s/%s/%s", d.Name, s.Title(i), hide), func(t *testing.T) {
					checkSample(t, d, s, hide)
				})
			}
		}
	}
}

func checkSample(t *testing.T, d *op.Def, s op.Sample, hide string) {
	m, feed, err := op.SampleModel(d, s, 1, hide)
	if err != nil {
		t.Fatal(err)
	}
	info, err := op.Infer(m)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := machine.Run(feed)
	if err != nil {
		t.Fatal(err)
	}
	bind := map[string]int64{}
	for _, a := range feed {
		for _, n := range a.Shape {
			bind[fmt.Sprintf("N%d", n)] = int64(n)
		}
	}
	for i, v := range m.Graph.Outputs {
		got := out[i].Type()
		if !out[i].IsTensor() {
			if v.Type.Kind != got.Kind && v.Type.Kind != graph.KindUnknown {
				t.Errorf("result %d: inferred %s, computed %s", i, v.Type, got)
			}
			continue
		}
		if v.Type.Elem != got.Elem {
			t.Errorf("result %d: inferred element type %s, computed %s", i, v.Type.Elem, got.Elem)
		}
		if v.Type.Shape == nil {
			if hide != "all" && hide != "rank" && !runTimeInts(s) {
				t.Errorf("result %d: rank not inferred, computed %s", i, got)
			}
			continue
		}
		if len(v.Type.Shape) != len(got.Shape) {
			t.Errorf("result %d: inferred %s, computed %s", i, v.Type, got)
			continue
		}
		for j, dim := range v.Type.Shape {
			want, _ := got.Shape[j].Int()
			n, ok := dim.Eval(bind).Int()
			if ok && n != want {
				t.Errorf("result %d: inferred %s, computed %s", i, v.Type, got)
			}
			if !ok && hide == "" && !d.Has(op.DataDependent) && !runTimeInts(s) {
				t.Errorf("result %d: inferred %s leaves dimension %d open, computed %s", i, v.Type, j, got)
			}
		}
		if a := info.Const(v); a != nil && fmt.Sprint(a) != fmt.Sprint(out[i]) {
			t.Errorf("result %d: inferred value %s, computed %s", i, a, out[i])
		}
		if dims := info.Dims(v); dims != nil {
			for j, dim := range dims {
				if n, ok := dim.Eval(bind).Int(); ok && n != out[i].I64[j] {
					t.Errorf("result %d: element %d inferred %s, computed %d", i, j, dim, out[i].I64[j])
				}
			}
		}
	}
}

// TestDefinitionsAreComplete demands of every definition an evaluation, an inference and a sample.
func TestDefinitionsAreComplete(t *testing.T) {
	for _, d := range op.All() {
		if d.Infer == nil {
			t.Errorf("%s has no inference", d.Name)
		}
		if d.Eval == nil && d.Decompose == nil {
			t.Errorf("%s has no evaluation", d.Name)
		}
		if len(d.Samples) == 0 {
			t.Errorf("%s has no sample", d.Name)
		}
	}
}

// runTimeInts reports whether inference does not see the values of an integer operand of s.
func runTimeInts(s op.Sample) bool {
	return slices.ContainsFunc(s.In, func(a op.Arg) bool { return a.Elem.IsInt() && !a.Const })
}
