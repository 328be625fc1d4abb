package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/onnxio"
	"gradtool/prune"
	"gradtool/testmodels"
)

// TestPruneBudget makes sparse updates of the demonstration models with several budgets. What is kept must be what the full
// graph computes, a gradient that is kept in part must be the whole one's part and zero elsewhere, and what is left must
// fit the budget when it is measured again.
func TestPruneBudget(t *testing.T) {
	dir := t.TempDir()
	inPart := 0
	for _, demo := range testmodels.All() {
		full := filepath.Join(dir, demo.Name+".grad.onnx")
		model := filepath.Join(dir, demo.Name+".onnx")
		saveFile(t, model, demo.Build())
		if err := inProcess(t, "grad", model, "--loss", demo.Loss, "-o", full); err != nil {
			t.Fatal(err)
		}
		sized := filepath.Join(dir, demo.Name+".sized.onnx")
		args := []string{"prune", full, "-o", sized}
		for _, name := range inputSymbols(load(t, full)) {
			args = append(args, "--dim", name+"=4")
		}
		if err := inProcess(t, args...); err != nil {
			t.Fatal(err)
		}
		m, in, err := evaluable(sized, "")
		if err != nil {
			t.Fatalf("%s: %v", demo.Name, err)
		}
		want, err := evaluate(m, in, 1)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]*op.Array{}
		for i, v := range m.Graph.Outputs {
			all[v.Name] = want[i]
		}
		updated := int64(0)
		for _, share := range []int{1, 45, 55, 65, 75, 85, 95, 100} {
			name := fmt.Sprintf("%s at %d%%", demo.Name, share)
			out, report := filepath.Join(dir, "out.onnx"), filepath.Join(dir, "report.json")
			err := inProcess(t, "prune", sized, "-o", out, "--report", report, "--budget", fmt.Sprintf("%d%%", share))
			if err != nil {
				if share == 100 {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			var r struct {
				Updates []struct {
					Gradient              string
					Elements, Parts, Axis int64
				}
				Budget int64 `json:"budget_bytes"`
				Peak   int64 `json:"peak_bytes"`
			}
			text, err := os.ReadFile(report)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			small, _, err := evaluable(out, "")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			peak, err := prune.Peak(small)
			if err != nil || peak > r.Budget || peak > r.Peak {
				t.Errorf("%s: %d bytes at once, said %d, budget %d; %v", name, peak, r.Peak, r.Budget, err)
			}
			got, err := evaluate(small, in, 1)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			kept, numbers := 0, int64(0)
			for _, u := range r.Updates {
				i := slices.IndexFunc(small.Graph.Outputs, func(v *graph.Value) bool { return v.Name == u.Gradient })
				if (i < 0) != (u.Parts == 0) {
					t.Errorf("%s: %s is output %d, %d parts", name, u.Gradient, i, u.Parts)
				}
				if i < 0 {
					continue
				}
				kept++
				numbers += u.Elements / u.Parts
				if u.Parts > 1 {
					inPart++
				}
				if msg := partOf(all[u.Gradient], got[i], int(u.Axis), int(u.Parts)); msg != "" {
					t.Errorf("%s: %s: %s", name, u.Gradient, msg)
				}
			}
			if numbers < updated {
				t.Errorf("%s: a larger budget updates %d numbers, a smaller one %d", name, numbers, updated)
			}
			updated = numbers
			if share == 100 && kept != len(r.Updates) {
				t.Errorf("%s: %d of %d gradients", name, kept, len(r.Updates))
			}
		}
	}
	if inPart == 0 {
		t.Error("no gradient was kept in part")
	}
}

// partOf says how b differs from the first of the given number of equal parts of a along an axis, with zeros after it.
func partOf(a, b *op.Array, axis, parts int) string {
	if !slices.Equal(a.Shape, b.Shape) {
		return fmt.Sprintf("shape %v, want %v", b.Shape, a.Shape)
	}
	inner := 1
	for _, d := range a.Shape[min(axis+1, len(a.Shape)):] {
		inner *= d
	}
	for i := range a.Len() {
		want := a.Float(i)
		if parts > 1 && i/inner%a.Shape[axis] >= a.Shape[axis]/parts {
			want = 0
		}
		if got := b.Float(i); math.Abs(got-want) > 1e-6*math.Max(1, math.Abs(want)) {
			return fmt.Sprintf("element %d is %v, want %v", i, got, want)
		}
	}
	return ""
}

func saveFile(t *testing.T, path string, m *graph.Model) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := onnxio.Write(f, m); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, path string) *graph.Model {
	t.Helper()
	m, closer, err := onnxio.Open(path, onnxio.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closer.Close() })
	return m
}
