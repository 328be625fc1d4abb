package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/public"
)

// TestRefereeJacobians holds whole Jacobians of the public cases, times the tangents there, and what jvp writes, against
// the derivatives by PyTorch, in each engine.
func TestRefereeJacobians(t *testing.T) {
	root := public.Path(t, "gradcases")
	list, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range engines(t) {
		held := 0
		for _, e := range list {
			data := filepath.Join(root, e.Name(), "test_data_set_0")
			tangents, wants := readAll(t, data, "tangent"), readAll(t, data, "jvp")
			if len(tangents) == 0 || len(wants) == 0 {
				continue
			}
			t.Run(engine+"/"+e.Name(), func(t *testing.T) {
				model := filepath.Join(root, e.Name(), "model.onnx")
				var wrt []string
				for _, x := range tangents {
					wrt = append(wrt, "--wrt", x.name)
				}
				got := runDerived(t, engine, data, append([]string{"jvp", model}, wrt...), tangents)
				for _, want := range wants {
					if y := got[want.name+"_tangent"]; y == nil {
						t.Errorf("jvp: no tangent of %s", want.name)
					} else {
						near(t, "jvp of "+want.name, y, want.value)
					}
				}
				got = runDerived(t, engine, data, append([]string{"grad", "--jacobian", model}, wrt...), nil)
				for _, want := range wants {
					sum := op.NewArray(want.value.Elem, want.value.Shape, true)
					for _, x := range tangents {
						j := got[want.name+"_"+x.name+"_jacobian"]
						if j == nil || !slices.Equal(j.Shape, slices.Concat(want.value.Shape, x.value.Shape)) {
							t.Fatalf("Jacobian of %s with respect to %s: %v", want.name, x.name, j)
						}
						n := x.value.Len()
						for i := range j.Len() {
							sum.F64[i/n] += j.Float(i) * x.value.Float(i%n)
						}
					}
					near(t, "Jacobian of "+want.name, sum, want.value)
				}
				held++
			})
		}
		t.Logf("%s: %d cases hold", engine, held)
	}
}

// readAll reads the values PREFIX_0.pb, PREFIX_1.pb, ... of a folder.
func readAll(t *testing.T, dir, prefix string) []named {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, prefix+"_*.pb"))
	if err != nil {
		t.Fatal(err)
	}
	var out []named
	for _, f := range files {
		x, err := readProto(f, graph.TensorOf(graph.Undefined, nil))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

// runDerived writes a model by a command line, runs it on the inputs of a folder and the tangents, and returns its outputs by name.
func runDerived(t *testing.T, engine, data string, args []string, tangents []named) map[string]*op.Array {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "model.onnx")
	if code, _, errs := gradtool(t, "", append(args, "-q", "-o", path)...); code != 0 {
		t.Fatal(errs)
	}
	line := []string{"run", path, "--engine", engine, "--out-dir", dir}
	inputs, _ := filepath.Glob(filepath.Join(data, "input_*.pb"))
	for _, f := range inputs {
		line = append(line, "--in", f)
	}
	if tangents != nil {
		files, _ := filepath.Glob(filepath.Join(data, "tangent_*.pb"))
		for i, f := range files {
			line = append(line, "--in", tangents[i].name+"_tangent="+f)
		}
	}
	if code, _, errs := gradtool(t, "", line...); code != 0 {
		t.Fatal(errs)
	}
	out := map[string]*op.Array{}
	for _, x := range readAll(t, dir, "output") {
		out[x.name] = x.value
	}
	return out
}

// near compares with the tolerances of check.
func near(t *testing.T, what string, got, want *op.Array) {
	t.Helper()
	rtol, atol := 1e-3, 1e-4
	if want.Elem == graph.Double {
		rtol, atol = 1e-9, 1e-9
	}
	if !slices.Equal(got.Shape, want.Shape) {
		t.Errorf("%s: shape %v, want %v", what, got.Shape, want.Shape)
		return
	}
	for i := range want.Len() {
		if e := math.Abs(got.Float(i) - want.Float(i)); !(e <= atol+rtol*math.Abs(want.Float(i))) {
			t.Errorf("%s: element %d: got %.9g, want %.9g", what, i, got.Float(i), want.Float(i))
			return
		}
	}
}
