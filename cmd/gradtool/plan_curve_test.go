package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gradtool/testmodels"
)

// TestCurveBudgets asks for budgets that --curve prints, the lowest and some others: each has a plan.
func TestCurveBudgets(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	must := func(args ...string) {
		t.Helper()
		if code, _, errs := gradtool(t, "", args...); code != 0 {
			t.Fatalf("%v ended with %d: %s", args, code, errs)
		}
	}
	raised := 0
	for _, m := range testmodels.All() {
		must("demo", m.Name, "-q", "-o", path("m.onnx"))
		must("grad", "--loss", m.Loss, "-q", path("m.onnx"), "-o", path("g.onnx"))
		flags := []string{"plan", path("g.onnx"), "-q", "--effort", "1"}
		for _, name := range inputSymbols(m.Build()) {
			flags = append(flags, "--dim", name+"=8")
		}
		must(slices.Concat(flags, []string{"--curve", "--report", path("r.json")})...)
		raw, err := os.ReadFile(path("r.json"))
		if err != nil {
			t.Fatal(err)
		}
		var r struct {
			Curve []struct{ Budget, Peak int64 }
		}
		if err := json.Unmarshal(raw, &r); err != nil || len(r.Curve) == 0 {
			t.Fatalf("%s: no curve: %v in %s", m.Name, err, raw)
		}
		for i := len(r.Curve) - 1; i >= max(0, len(r.Curve)-2); i-- {
			x := r.Curve[i]
			if x.Budget > x.Peak {
				raised++
			}
			if i > 0 && r.Curve[i-1].Budget < x.Budget {
				t.Errorf("%s: budget %d stands behind %d", m.Name, x.Budget, r.Curve[i-1].Budget)
			}
			must(slices.Concat(flags, []string{"--budget", fmt.Sprint(x.Budget), "-o", path("p.onnx"), "-f"})...)
		}
	}
	if raised == 0 {
		t.Error("no plan has gaps between its values: this tests nothing")
	}
}
