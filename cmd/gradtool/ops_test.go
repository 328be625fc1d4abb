package main

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"

	"gradtool/autodiff"
)

var update = flag.Bool("update", false, "rewrite generated documents")

// TestOpsDocument keeps docs/OPS.md what "gradtool ops --markdown" prints.
func TestOpsDocument(t *testing.T) {
	const path = "../../docs/OPS.md"
	var b bytes.Buffer
	if err := opsMarkdown(&b, opRows()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, b.Bytes()) {
		t.Errorf("%s is stale: go test ./cmd/gradtool -run TestOpsDocument -update", path)
	}
}

// TestCompared holds that the operators of compared.txt exist here, and have a derivative.
func TestCompared(t *testing.T) {
	have := map[string]bool{}
	for _, r := range opRows() {
		if r.kind == autodiff.HasVJP || r.kind == autodiff.Decomposed {
			have[r.Name] = true
		}
	}
	for _, c := range []struct {
		tool  string
		least int
	}{{"onnxruntime", 60}, {"onnx-ad", 120}} {
		theirs := comparedOps(c.tool)
		if len(theirs) < c.least {
			t.Errorf("%s: %d operators read", c.tool, len(theirs))
		}
		for _, name := range slices.Sorted(maps.Keys(theirs)) {
			if !have[name] {
				t.Errorf("%s: %s has no derivative", c.tool, name)
			}
		}
	}
}
