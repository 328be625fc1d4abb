package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gradtool/fuse"
	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/ort"
	"gradtool/internal/public"
	"gradtool/onnxio"
	"gradtool/testmodels"
)

// runtimeOutputs runs a model file in ONNX Runtime at an optimisation level.
func runtimeOutputs(path, level string, m *graph.Model, feed map[string]*op.Array) ([]ort.Tensor, error) {
	var names []string
	var in []ort.Tensor
	for _, v := range m.Graph.Inputs {
		a := feed[v.Name]
		if a == nil {
			continue
		}
		if !a.IsTensor() || a.Str != nil {
			return nil, fmt.Errorf("input %q is %s", v.Name, a.Type())
		}
		t := a.Tensor()
		raw, err := t.Data.Bytes()
		if err != nil {
			return nil, err
		}
		names = append(names, v.Name)
		in = append(in, ort.Tensor{Name: v.Name, Elem: int32(t.Elem), Shape: t.Dims, Data: raw})
	}
	var out []ort.Output
	for _, v := range m.Graph.Outputs {
		if !v.Type.IsTensor() {
			return nil, fmt.Errorf("output %q is %s", v.Name, v.Type)
		}
		o := ort.Output{Name: v.Name, Elem: int32(v.Type.Elem)}
		o.Shape, _ = v.Type.Shape.Ints()
		out = append(out, o)
	}
	s, err := ort.Load(path, names, out, ort.Options{Optimize: level})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Run(in)
}

// apart returns how far two results are from each other, relative to the largest element, and the first output that is not
// the same bit by bit.
func apart(a, b []ort.Tensor) (worst float64, first string) {
	for i := range a {
		if bytes.Equal(a[i].Data, b[i].Data) {
			continue
		}
		if first == "" {
			first = a[i].Name
		}
		x, err := op.FromTensor(&graph.Tensor{Elem: graph.DataType(a[i].Elem), Dims: a[i].Shape, Data: graph.Bytes(a[i].Data)}, false)
		y, err2 := op.FromTensor(&graph.Tensor{Elem: graph.DataType(b[i].Elem), Dims: b[i].Shape, Data: graph.Bytes(b[i].Data)}, false)
		if err != nil || err2 != nil || x.Len() != y.Len() {
			return math.Inf(1), first
		}
		diff, size := 0.0, 0.0
		for k := range x.Len() {
			if d := distance(number(x, k), number(y, k)); d > diff || math.IsNaN(d) {
				diff = d
			}
			size = max(size, magnitude(number(x, k)))
		}
		if rel := diff / max(size, 1e-30); rel > worst || math.IsNaN(rel) {
			worst = rel
		}
	}
	return worst, first
}

// fusedInRuntime fuses the model in a file and compares both in ONNX Runtime: bit by bit where nothing is optimised, since bodies hold the
// same nodes; within a tolerance where ONNX Runtime fuses on its own, which it may do in another order.
func fusedInRuntime(t *testing.T, path string, dims map[string]int64) (clusters int) {
	t.Helper()
	m, c, err := onnxio.Open(path, onnxio.ReadOptions{})
	if err != nil {
		t.Skip(err)
	}
	defer c.Close()
	m.File = path
	fused := filepath.Join(t.TempDir(), "fused.onnx")
	if code, _, errs := gradtool(t, "", "fuse", "-q", path, "-o", fused); code != 0 {
		if code, _, _ := gradtool(t, "", "prune", "-q", path, "-o", fused); code != 0 {
			t.Skipf("the model cannot be written at all: %s", errs) // external data are missing
		}
		t.Fatal(errs)
	}
	standard := filepath.Join(t.TempDir(), "standard.onnx")
	if code, _, errs := gradtool(t, "", "fuse", "-q", "--for", "ort", path, "-o", standard); code != 0 {
		if code != codeBadModel { // operators of which nothing is known have no newest form
			t.Fatal(errs)
		}
		standard = path
	}
	f, c2, err := onnxio.Open(fused, onnxio.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c2.Close()
	for _, n := range f.Graph.Nodes {
		if n.Domain == fuse.Domain {
			clusters++
		}
	}
	sizes := map[string]int64{}
	if moved := tensorBytes(m); moved > 1<<29 {
		t.Skipf("its values are %d MB in all: too much for a test", moved>>20)
	}
	for _, s := range inputSymbols(m) {
		sizes[s] = 3
	}
	for k, v := range dims {
		sizes[k] = v
	}
	given := map[*graph.Value]*op.Array{}
	if err := randomInputs(m, given, sizes, 7, indexBound); err != nil {
		t.Skip(err)
	}
	feed := map[string]*op.Array{}
	for v, a := range given {
		feed[v.Name] = a
	}
	for _, n := range m.Graph.Nodes {
		if op.Of(n).Has(op.Random) && !n.Is("Dropout") {
			t.Skipf("node %s draws random numbers", n.Label())
		}
	}
	for _, level := range []string{"disable", ""} {
		want, err := runtimeOutputs(path, level, m, feed)
		if err != nil {
			t.Skipf("ONNX Runtime does not run the model itself: %s", firstLine(err))
		}
		got, err := runtimeOutputs(fused, level, m, feed)
		if err != nil {
			t.Fatalf("ONNX Runtime does not run the fused model at level %q: %v", level, err)
		}
		diff, first := apart(want, got)
		if level == "disable" {
			if first != "" {
				t.Errorf("output %q differs, by %.1e", first, diff)
			}
			continue
		}
		if !(diff <= 1e-4) {
			t.Errorf("optimised, output %q differs by %.1e", first, diff)
		}
		if got, err = runtimeOutputs(standard, level, m, feed); err != nil {
			t.Fatalf("ONNX Runtime does not run the model with standard operators: %v", err)
		}
		if diff, first := apart(want, got); !(diff <= 1e-4) {
			t.Errorf("with standard operators output %q differs by %.1e", first, diff)
		}
	}
	return clusters
}

// tensorBytes returns the bytes of all values whose sizes are known.
func tensorBytes(m *graph.Model) int64 {
	copied, c, err := onnxio.Open(m.File, onnxio.ReadOptions{})
	if err != nil {
		return 0
	}
	defer c.Close()
	if _, err := prepare(copied, nil); err != nil {
		return 0
	}
	total := int64(0)
	for v := range copied.Graph.Values() {
		if n, ok := v.Type.Shape.Size().Int(); ok {
			total += n * int64(v.Type.Elem.Bits()) / 8
		}
	}
	return total
}

// TestRefereeFused loads what fuse writes in ONNX Runtime: small models, public ones, and exported networks with their
// gradients.
func TestRefereeFused(t *testing.T) {
	if err := ort.Available(); err != nil {
		t.Skip(err)
	}
	models, clusters := 0, 0
	run := func(name, path string, dims map[string]int64) {
		t.Run(name, func(t *testing.T) {
			n := fusedInRuntime(t, path, dims)
			models++
			clusters += n
		})
	}
	dir := t.TempDir()
	for _, c := range testmodels.All() {
		plain, train := filepath.Join(dir, c.Name+".onnx"), filepath.Join(dir, c.Name+".grad.onnx")
		if code, _, errs := gradtool(t, "", "demo", c.Name, "-q", "-o", plain); code != 0 {
			t.Fatal(errs)
		}
		if code, _, errs := gradtool(t, "", "grad", "-q", "--loss", c.Loss, plain, "-o", train); code != 0 {
			t.Fatal(errs)
		}
		run(c.Name, plain, nil)
		run(c.Name+"/grad", train, nil)
	}
	if root := os.Getenv("GRADTOOL_MODELS"); root != "" {
		for _, name := range strings.Fields(os.Getenv("GRADTOOL_MODEL_LIST")) {
			plain, train := filepath.Join(root, name, "model.onnx"), filepath.Join(dir, name+".grad.onnx")
			if !fileExists(plain) {
				continue
			}
			axis := "1"
			if refs, err := os.ReadFile(filepath.Join(root, name, "refs.json")); err == nil && strings.Contains(string(refs), "last axis") {
				axis = "-1"
			}
			run(name, plain, map[string]int64{"N": 2})
			if code, _, errs := gradtool(t, "", "grad", "-q", "--loss", "softmax-cross-entropy,axis="+axis, plain, "-o", train); code != 0 {
				t.Errorf("%s: %s", name, errs)
				continue
			}
			run(name+"/grad", train, map[string]int64{"N": 2})
		}
	}
	t.Logf("%d models, %d clusters: as without fuse", models, clusters)
	t.Run("wild", func(t *testing.T) {
		root := public.Path(t, "corpus", "wild")
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".onnx" {
				run(filepath.Base(path), path, nil)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("with public ones %d models, %d clusters", models, clusters)
}
