package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/ort"
)

// TestRefereeSamples writes the gradient graph of every sample in the operator table, as ONNX Runtime gets
// it, runs it there and in the evaluator, and compares all outputs. A sample that ONNX Runtime does not run
// forward, or whose forward results it sees otherwise (random numbers, corners of the standard), is listed and left out; where
// forward agrees, the gradient has to.
func TestRefereeSamples(t *testing.T) {
	if err := ort.Available(); err != nil {
		t.Skip(err)
	}
	s := &session{process: &process{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}}
	passed := 0
	var unable, differ []string
	for _, d := range op.All() {
		r := autodiff.Lookup(op.Key{Domain: d.Domain, Name: d.Name})
		if r == nil || r.Kind != autodiff.HasVJP && r.Kind != autodiff.Decomposed {
			continue
		}
		for i, sample := range d.Samples {
			for _, hide := range []string{"", "rank"} {
				name := fmt.Sprintf("%s/%s/%s", d.Name, sample.Title(i), hide)
				t.Run(name, func(t *testing.T) {
					got, want, err := sampleInRuntime(s, d, sample, hide, false)
					if err != nil {
						unable = append(unable, name+": "+firstLine(err))
						t.Skipf("ONNX Runtime does not run it forward: %v", err)
					}
					if err := disagreement(got, want); err != nil {
						differ = append(differ, name+": "+err.Error())
						why := forwardDiffers[d.Name+"/"+sample.Title(i)]
						if why == "" {
							t.Fatalf("forward: %v", err)
						}
						t.Skipf("ONNX Runtime computes it otherwise: %s", why)
					}
					got, want, err = sampleInRuntime(s, d, sample, hide, true)
					var blocked *autodiff.BlockedError
					if r.Check != nil && errors.As(err, &blocked) {
						t.Skipf("the rule refuses the node: %v", err)
					}
					if err != nil {
						t.Fatal(err)
					}
					if err := disagreement(got, want); err != nil {
						t.Fatal(err)
					}
					passed++
				})
			}
		}
	}
	t.Logf("ONNX Runtime %s: %d gradient graphs agree; %d samples are not run even forward, %d are computed otherwise", ort.Version(), passed, len(unable), len(differ))
	for _, line := range append(unable, differ...) {
		t.Log("  ", line)
	}
	if passed < 4*len(unable) {
		t.Errorf("only %d gradient graphs were compared, %d could not be run", passed, len(unable))
	}
}

// forwardDiffers names the samples that ONNX Runtime computes otherwise than the standard, or than we, and why.
var forwardDiffers = map[string]string{
	"Dropout/training":                         "the random numbers differ",
	"Dropout/training-default":                 "the random numbers differ",
	"Dropout/training-run-time":                "the random numbers differ",
	"DFT/one-sided inverse, odd":               "one-sided inverse transforms of odd length",
	"DFT/one-sided inverse, padded":            "one-sided inverse transforms of padded length",
	"LSTM/lengths, both directions, peepholes": "the state after a sequence of length 0: theirs is zero, ours the initial state",
	"MaxUnpool/output shape":                   "indices count in the unpadded output there, in output_shape in the standard",
	"Pad/wrap more than once":                  "reads outside the tensor there",
	"STFT/complex":                             "reads outside the tensor there",
	"TopK/unsorted":                            "unsorted results have no defined order",
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// sampleInRuntime runs a sample, with its gradient if asked for, in ONNX Runtime and in the evaluator.
func sampleInRuntime(s *session, d *op.Def, sample op.Sample, hide string, gradient bool) (got, want []*op.Array, err error) {
	m, feed, err := sampleGradient(s, d, sample, hide, gradient)
	if err != nil {
		return nil, nil, err
	}
	if want, err = (&engine{s: s, name: "interp"}).run(m, feed, 1); err != nil {
		return nil, nil, err
	}
	got, err = (&engine{s: s, name: "ort"}).run(m, feed, 1)
	return got, want, err
}

// sampleGradient returns a sample's model, with its gradient if asked for, and its inputs.
func sampleGradient(s *session, d *op.Def, sample op.Sample, hide string, gradient bool) (*graph.Model, []*op.Array, error) {
	m, feed, err := op.SampleModel(d, sample, 3, hide)
	if err != nil {
		return nil, nil, err
	}
	m.Origin, m.IRVersion = 13, 8 // so that it is written at the lowest opset that has every operator
	info, err := op.Infer(m)
	if err != nil {
		return nil, nil, err
	}
	forward, err := (&engine{s: s, name: "interp"}).run(m, feed, 1)
	if err != nil {
		return nil, nil, err
	}
	of := autodiff.FloatOutputs(m)
	wrt := append(autodiff.FloatInputs(m), autodiff.Params(m, of)...)
	if gradient && len(of) > 0 && len(wrt) > 0 {
		results := slices.Clone(m.Graph.Outputs)
		if _, err := autodiff.Gradient(m, info, autodiff.GradOptions{Of: of, Wrt: wrt, Seeds: true}); err != nil {
			return nil, nil, err
		}
		for _, y := range of { // the cotangents, in the order of their inputs
			feed = append(feed, cotangentLike(forward[slices.Index(results, y)]))
		}
	}
	return m, feed, nil
}

// disagreement compares outputs, to a tolerance of the element type relative to the largest element.
func disagreement(got, want []*op.Array) error {
	for j, w := range want {
		g := got[j]
		if g.Elem != w.Elem || !slices.Equal(g.Shape, w.Shape) {
			return fmt.Errorf("output %d: got %s, want %s", j, g.Type(), w.Type())
		}
		tolerance := 2e-5
		if w.Elem.Bits() == 16 {
			tolerance = 4e-3
		}
		largest := 0.0
		for i := range w.Len() {
			largest = max(largest, math.Abs(w.Float(i)))
		}
		for i := range w.Len() {
			a, b := g.Float(i), w.Float(i)
			if !(math.Abs(a-b) <= 1e-6+tolerance*largest) && !(math.IsNaN(a) && math.IsNaN(b)) && a != b {
				return fmt.Errorf("output %d, element %d: got %g, want %g", j, i, a, b)
			}
		}
	}
	return nil
}
