package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/internal/ort"
)

// TestRefereeTypes runs the gradient graphs of all samples in ONNX Runtime with their float operands in float16, bfloat16
// and double, wherever it has the kernels to run the sample forward in that type. What it makes of the gradient is held against
// float64: 32 roundings of the largest element, and twice what the evaluator is off in the same type.
// Samples that ONNX Runtime cannot hold against anything are counted by reason; a kernel may be missing for bfloat16 only,
// of which it has few.
func TestRefereeTypes(t *testing.T) {
	if err := ort.Available(); err != nil {
		t.Skip(err)
	}
	s := &session{process: &process{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}}
	for _, elem := range []graph.DataType{graph.Float16, graph.BFloat16, graph.Double} {
		passed := 0
		skipped := map[string]int{}
		for _, d := range op.All() {
			r := autodiff.Lookup(op.Key{Domain: d.Domain, Name: d.Name})
			if r == nil || r.Kind != autodiff.HasVJP && r.Kind != autodiff.Decomposed {
				continue
			}
			for i, sample := range d.Samples {
				t.Run(fmt.Sprintf("%s/%s/%s", elem, d.Name, sample.Title(i)), func(t *testing.T) {
					skip, err := typedInRuntime(s, d, inElem(sample, elem), elem)
					if err != nil {
						t.Fatal(err)
					}
					if skip != "" {
						skipped[skip]++
						t.Skip(skip)
					}
					passed++
				})
			}
		}
		t.Logf("%s: %d gradient graphs agree; others: %v", elem, passed, skipped)
	}
}

// typedInRuntime runs one sample; skip says why there is nothing to compare.
func typedInRuntime(s *session, d *op.Def, sample op.Sample, elem graph.DataType) (skip string, err error) {
	if d.Name == "FusedConv" && sample.Name == "clip" && elem == graph.Float16 {
		return "a value within a rounding of the bound", nil
	}
	got, want, err := sampleInRuntime(s, d, sample, "", false)
	if err != nil {
		return "not run forward", nil
	}
	if disagreement(got, want) != nil {
		return "computed otherwise forward", nil
	}
	m, feed, err := sampleGradient(s, d, sample, "", true)
	var blocked *autodiff.BlockedError
	if errors.As(err, &blocked) {
		return "refused by the rule", nil
	}
	if err != nil {
		return "", err
	}
	exact := make([]*op.Array, len(feed))
	for i, a := range feed {
		exact[i] = wide(a)
	}
	machine, err := interp.New(m, interp.Options{Wide: true})
	if err != nil {
		return "", err
	}
	if exact, err = machine.Run(exact); err != nil {
		return "", err
	}
	got, want, err = sampleInRuntime(s, d, sample, "", true)
	switch {
	case err == nil:
	case strings.Contains(err.Error(), "16-bit"): // scalars, and results of unknown shape
		return "no binding for such an output", nil
	case elem == graph.BFloat16 && strings.Contains(err.Error(), "Could not find an implementation"):
		return "no bfloat16 kernel", nil
	case elem == graph.Double && strings.Contains(err.Error(), "QuickGeluFusion"): // made of x·sigmoid(x), for want of a double kernel it does not run
		return "no double kernel for what ONNX Runtime fuses", nil
	default:
		return "", err
	}
	var elems []graph.DataType
	for _, a := range feed {
		elems = append(elems, a.Elem)
	}
	return "", within(got, want, exact, append(elems, elem))
}

// within compares values with exact ones, to roundings of the coarsest of some element types.
func within(got, want, exact []*op.Array, coarse []graph.DataType) error {
	unit := 1e-8 // of double, and of float32 that some double samples mix in
	for _, e := range coarse {
		switch e {
		case graph.Float16:
			unit = max(unit, 1.0/(1<<11))
		case graph.BFloat16:
			unit = max(unit, 1.0/(1<<8))
		}
	}
	largest := 1e-3
	for _, e := range exact {
		for i := range e.Len() {
			if x := math.Abs(e.Float(i)); !math.IsInf(x, 0) {
				largest = max(largest, x)
			}
		}
	}
	for j, w := range want {
		g, e := got[j], exact[j]
		if g.Elem != w.Elem || g.Len() != w.Len() {
			return fmt.Errorf("output %d: got %s, want %s", j, g.Type(), w.Type())
		}
		for i := range w.Len() {
			a, b, x := g.Float(i), w.Float(i), e.Float(i)
			if !(math.Abs(a-x) <= 32*unit*largest+2*math.Abs(b-x)) && !(math.IsNaN(a) && math.IsNaN(b)) && a != b {
				return fmt.Errorf("output %d, element %d: got %g, the evaluator %g, exact %g", j, i, a, b, x)
			}
		}
	}
	return nil
}
