package main

import (
	"errors"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/onnxio"
)

// TestCallsAreInferred checks that the results of clusters have the types that they have where the clusters are inlined, and that bodies
// keep theirs.
func TestCallsAreInferred(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	calls := 0
	rapid.Check(t, func(r *rapid.T) {
		m := randomFile(t, r, file("m.onnx"), rapid.Bool().Draw(r, ""))
		if err := inProcess(t, "fuse", file("m.onnx"), "-o", file("f.onnx")); err != nil {
			r.Fatalf("%v\n%s", err, m)
		}
		types := func(inline bool) (*graph.Model, map[string]graph.Type) {
			m, _, err := onnxio.Open(file("f.onnx"), onnxio.ReadOptions{})
			if err != nil {
				r.Fatal(err)
			}
			for _, v := range m.Graph.Outputs { // what the file declares does not count
				v.Type = graph.Type{}
			}
			if err := m.Graph.Sort(); err != nil {
				r.Fatal(err)
			}
			if inline {
				err = op.Inline(m, nil)
			}
			if err := errors.Join(err, op.Upgrade(m)); err != nil {
				r.Fatal(err)
			}
			before := bodyTypes(m)
			if _, err := op.Infer(m); err != nil {
				r.Fatal(err)
			}
			for i, after := range bodyTypes(m) {
				if !before[i].Same(after) {
					r.Fatalf("a value in a body was %s, is %s", before[i], after)
				}
			}
			out := map[string]graph.Type{}
			for v := range m.Graph.Values() {
				out[v.Name] = v.Type
			}
			return m, out
		}
		fused, got := types(false)
		_, want := types(true)
		for _, n := range fused.Graph.Nodes {
			if op.Of(n) != nil {
				continue
			}
			calls++
			for _, v := range n.Out {
				if v != nil && !got[v.Name].Same(want[v.Name]) {
					r.Errorf("result %q of %s is %s, inlined it is %s\n%s", v.Name, n.Label(), got[v.Name], want[v.Name], fused)
				}
			}
		}
	})
	if calls == 0 {
		t.Error("no model has a cluster")
	}
}

// bodyTypes returns the types of all values in bodies of functions.
func bodyTypes(m *graph.Model) (list []graph.Type) {
	for _, f := range m.Functions {
		for g := range f.Body.Graphs() {
			for v := range g.Values() {
				list = append(list, v.Type)
			}
		}
	}
	return list
}
