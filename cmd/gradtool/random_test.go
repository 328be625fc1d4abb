package main

import (
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/testmodels"
)

// randomFile writes a random model to a file.
func randomFile(t *testing.T, r *rapid.T, path string, smooth bool) *graph.Model {
	choose := func(n int) int {
		if n <= 1 {
			return 0
		}
		return rapid.IntRange(0, n-1).Draw(r, "")
	}
	m := testmodels.Random(choose, 1+choose(12), smooth)
	saveFile(t, path, m)
	return m
}

// TestRandomStages takes random models through prune, fuse and inline: outputs keep their bits, and what inline makes of
// what fuse made is what there was. More of them:
//
//	go test ./cmd/gradtool -run RandomStages -rapid.checks=20000
func TestRandomStages(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	rapid.Check(t, func(r *rapid.T) {
		m := randomFile(t, r, file("m.onnx"), false)
		base := reference(file("m.onnx"), "")
		if base.model == nil {
			r.Fatalf("%v\n%s", base.err, m)
		}
		if base.err != nil {
			r.Skip(base.err)
		}
		for _, step := range [][]string{
			{"prune", file("m.onnx"), "-o", file("p.onnx")},
			{"fuse", file("m.onnx"), "-o", file("f.onnx")},
			{"fuse", file("p.onnx"), "-o", file("pf.onnx")},
			{"inline", file("f.onnx"), "-o", file("fi.onnx")},
			{"prune", file("fi.onnx"), "--frozen", "*", "-o", file("fip.onnx")},
		} {
			if err := inProcess(t, step...); err != nil {
				r.Fatalf("%v: %v\n%s", step[:1], err, m)
			}
			out := step[len(step)-1]
			if msg := sameResults(base, out); msg != "" {
				r.Fatalf("%s: %s\n%s", filepath.Base(out), msg, m)
			}
		}
	})
}

// sameResults evaluates a model on the inputs of base, and says how the outputs differ, "" if not.
func sameResults(base run, path string) string {
	m, _, err := evaluable(path, "")
	if err != nil {
		return err.Error()
	}
	got, err := evaluate(m, base.in, 1)
	if err != nil {
		return err.Error()
	}
	for i, want := range base.out {
		if !exactBits(want, got[i]) {
			return m.Graph.Outputs[i].Name + " was " + want.String() + ", is " + got[i].String()
		}
	}
	return ""
}

// TestRandomGradients prunes gradients of random models. The sign of a zero may differ.
func TestRandomGradients(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	rapid.Check(t, func(r *rapid.T) {
		m := randomFile(t, r, file("m.onnx"), true)
		if err := inProcess(t, "grad", file("m.onnx"), "--wrt", "inputs", "-o", file("g.onnx")); err != nil {
			if strings.Contains(err.Error(), "internal error") {
				r.Fatalf("%v\n%s", err, m)
			}
			r.Skip(err)
		}
		base := reference(file("g.onnx"), "")
		if base.err != nil {
			r.Skip(base.err)
		}
		if msg := pruned(t, file("g.onnx"), dir, nil, base, func(a, b *op.Array) bool { return sameNumbers(a, b) }); msg != "" {
			r.Fatalf("%s\n%s", msg, m)
		}
	})
}
