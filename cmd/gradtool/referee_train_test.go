package main

import (
	"encoding/csv"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/public"
)

// TestRefereeTorchTrain appends gradients to public models that end in their loss, and compares each with PyTorch's, in the
// evaluator and in ONNX Runtime: in every element, 1e-3 of it plus 1e-5 of the tensor's largest. Gradients that are zero
// but for rounding, by the evaluator's float64 (of biases in front of a batch normalization), must be below 1e-5 of the largest gradient.
// The list of what has a gradient must be PyTorch's too: parameters that the manifest calls frozen have none, running
// statistics neither. Models that draw random numbers have no reference; finite differences of the same draw take its place.
func TestRefereeTorchTrain(t *testing.T) {
	root := public.Path(t, "corpus", "torch-train")
	rows, err := readTable(filepath.Join(root, "manifest.csv"))
	if err != nil {
		t.Fatal(err)
	}
	compared := map[string]int{}
	for _, row := range rows {
		t.Run(row["name"], func(t *testing.T) {
			dir := filepath.Join(root, row["name"])
			model, data := filepath.Join(dir, "model.onnx"), filepath.Join(dir, "test_data_set_0")
			if _, err := os.Stat(model); err != nil {
				t.Skipf("listed, but not here: %v", err)
			}
			var args []string
			for _, part := range strings.FieldsFunc(row["frozen"], func(r rune) bool { return r == ';' }) {
				args = append(args, "--freeze", "*"+part+"*")
			}
			inputs, _ := filepath.Glob(filepath.Join(data, "input_*.pb"))
			var in []string
			for _, f := range inputs {
				in = append(in, "--in", f)
			}
			if row["deterministic"] == "0" {
				code, out, errs := gradtool(t, "", append(append([]string{"check", model}, args...), in...)...)
				if code != 0 {
					t.Errorf("finite differences: exit code %d\n%s%s", code, out, errs)
				}
				return
			}
			train := filepath.Join(t.TempDir(), "train.onnx")
			if code, _, errs := gradtool(t, "", append([]string{"grad", model, "-o", train}, args...)...); code != 0 {
				t.Fatal(errs)
			}
			want := readFolder(t, filepath.Join(data, "grad_*.pb"))
			loss := readFolder(t, filepath.Join(data, "output_*.pb"))["loss"]
			exact := runModel(t, train, append(in, "--float64")...)
			for _, engine := range append(engines(t), "rows=3", "classes=64") {
				var got map[string]*op.Array
				if strings.Contains(engine, "=") { // fused, with the loss in such pieces, and run by the last engine
					list := engines(t)
					got = runModel(t, fusedTraining(t, train, engine), append(in, "--engine", list[len(list)-1])...)
				} else {
					got = runModel(t, train, append(in, "--engine", engine)...)
				}
				if e := math.Abs(got["loss"].Float(0) - loss.Float(0)); !(e <= 1e-4*math.Abs(loss.Float(0))) {
					t.Errorf("%s: loss %g, want %g", engine, got["loss"].Float(0), loss.Float(0))
				}
				if len(got)-1 != len(want) {
					t.Errorf("%s: %d gradients, want %d", engine, len(got)-1, len(want))
				}
				compared[engine] += compareGradients(t, engine, got, want, exact)
			}
		})
	}
	if len(compared) == 0 {
		t.Error("nothing compared")
	}
	t.Logf("gradients that agree with PyTorch's, by engine: %v", compared)
}

// compareGradients compares the gradients by their parameters' names and returns how many hold.
func compareGradients(t *testing.T, engine string, got, want, exact map[string]*op.Array) int {
	largest, held := 0.0, 0
	for _, w := range want {
		largest = max(largest, norm(w))
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w, g, e := want[name], got[name+"_grad"], exact[name+"_grad"]
		if g == nil {
			t.Errorf("%s: no gradient of %s", engine, name)
			continue
		}
		if norm(e) < 1e-9*largest {
			if norm(g) > 1e-5*largest {
				t.Errorf("%s: gradient of %s: norm %.2g, want zero but for rounding", engine, name, norm(g))
				continue
			}
			held++
			continue
		}
		top := 0.0
		for i := range w.Len() {
			top = max(top, math.Abs(w.Float(i)))
		}
		ok := g.Elem == w.Elem && g.Len() == w.Len()
		for i := 0; ok && i < w.Len(); i++ {
			if e := math.Abs(g.Float(i) - w.Float(i)); !(e <= 1e-3*math.Abs(w.Float(i))+1e-5*top) {
				t.Errorf("%s: gradient of %s, element %d: got %g, want %g", engine, name, i, g.Float(i), w.Float(i))
				ok = false
			}
		}
		if ok {
			held++
		}
	}
	return held
}

// runModel runs a model and returns its outputs by name.
func runModel(t *testing.T, model string, args ...string) map[string]*op.Array {
	t.Helper()
	out := t.TempDir()
	if code, _, errs := gradtool(t, "", append([]string{"run", model, "--out-dir", out}, args...)...); code != 0 {
		t.Fatal(errs)
	}
	return readFolder(t, filepath.Join(out, "output_*.pb"))
}

// readFolder reads tensor files by the names in them.
func readFolder(t *testing.T, pattern string) map[string]*op.Array {
	t.Helper()
	files, _ := filepath.Glob(pattern)
	res := map[string]*op.Array{}
	for _, f := range files {
		x, err := readProto(f, graph.TensorOf(graph.Undefined, nil))
		if err != nil {
			t.Fatal(err)
		}
		res[x.name] = x.value
	}
	return res
}

// readTable reads a file of comma-separated values with a header line.
func readTable(path string) ([]map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, x := range line {
			row[lines[0][i]] = x
		}
		rows = append(rows, row)
	}
	return rows, nil
}
