package main

import (
	"os"
	"path/filepath"
	"testing"
)

// sharedDir returns a folder of test data beside the module, skipping the test where it is absent.
func sharedDir(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Skip("no go.mod above the current folder")
		}
		dir = up
	}
	path := filepath.Join(dir, "..", "shared", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no test data: %v", err)
	}
	return path
}

// TestGradCases checks the gradients of small exported models against those of the framework that exported them,
// with shapes as declared and with every dimension symbolic.
func TestGradCases(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	cases, err := filepath.Glob(filepath.Join(sharedDir(t, "gradcases"), "*", "model.onnx"))
	if err != nil || len(cases) == 0 {
		t.Skipf("no cases: %v", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, path := range cases {
		dir := filepath.Dir(path)
		for _, flag := range []string{"--symbolic=false", "--symbolic"} {
			t.Run(filepath.Base(dir)+flag, func(t *testing.T) {
				p, stderr := newProcess(t)
				p.stdout = null
				if err := p.run([]string{"gradtool", "check", dir, flag, "-q"}); err != nil {
					p.printError(err)
					t.Error(stderr())
				}
			})
		}
	}
}
