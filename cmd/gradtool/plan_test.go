package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gradtool/testmodels"
)

// TestPlanDemos plans a training step of every model that comes with the program, in the order given and in a better one, and runs
// it in its arena: all outputs are equal to the last bit.
func TestPlanDemos(t *testing.T) {
	dir := t.TempDir()
	must := func(args ...string) {
		t.Helper()
		if code, _, errs := gradtool(t, "", args...); code != 0 {
			t.Fatalf("%v ended with %d: %s", args, code, errs)
		}
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, m := range testmodels.All() {
		must("demo", m.Name, "-q", "-o", path("m.onnx"))
		must("grad", "--loss", m.Loss, "-q", path("m.onnx"), "-o", path("g.onnx"))
		var dims []string
		for _, name := range inputSymbols(m.Build()) {
			dims = append(dims, "--dim", name+"=3")
		}
		must(append([]string{"run", "--random", path("g.onnx"), "-o", path("want.npz")}, dims...)...)
		for _, flags := range [][]string{{}, {"--keep-order"}} {
			must(slices.Concat([]string{"plan", "-q", path("g.onnx"), "-o", path("p.onnx")}, dims, flags)...)
			must("run", "--plan", "--random", path("p.onnx"), "-o", path("got.npz"))
			want, err := os.ReadFile(path("want.npz"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path("got.npz"))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, got) {
				t.Errorf("%s %v: outputs differ in the arena", m.Name, flags)
			}
		}
	}
}
