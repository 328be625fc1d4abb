package schema

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGenerated writes the tables anew and compares, where a Python with the packages they come from is at hand, in
// the version they were written with: $GRADTOOL_PYTHON, else python3.
func TestGenerated(t *testing.T) {
	python := os.Getenv("GRADTOOL_PYTHON")
	if python == "" {
		python = "python3"
	}
	script, err := filepath.Abs("../../../scripts/gen-schema")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ mode, pkg, table string }{
		{"onnx", "onnx", onnxText},
		{"contrib", "onnxruntime", contribText},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			version := tableVersion(t, tt.table, tt.pkg)
			out, err := exec.Command(python, "-c", "import onnx, "+tt.pkg+" as p; print(p.__version__)").Output()
			if err != nil {
				t.Skipf("%s lacks the packages onnx or %s (set GRADTOOL_PYTHON to one that has them): %v", python, tt.pkg, err)
			}
			if have := strings.TrimSpace(string(out)); have != version {
				t.Skipf("%s has %s %s, the table was written with %s", python, tt.pkg, have, version)
			}
			got, err := exec.Command(python, script, tt.mode).Output()
			if err != nil {
				t.Fatalf("%s %s: %v", script, tt.mode, err)
			}
			compareLines(t, string(got), tt.table)
		})
	}
}

// tableVersion returns the package version that the first line of a table names.
func tableVersion(t *testing.T, table, pkg string) string {
	t.Helper()
	first, _, _ := strings.Cut(table, "\n")
	_, version, ok := strings.Cut(strings.TrimSuffix(first, "."), ": "+pkg+" ")
	if !ok {
		t.Fatalf("the first line %q names no version of %s", first, pkg)
	}
	return version
}

func compareLines(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("line %d: got %q, want %q", i+1, g[i], w[i])
		}
	}
	if len(g) != len(w) {
		t.Fatalf("got %d lines, want %d", len(g), len(w))
	}
}
