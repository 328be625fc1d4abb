package onnxio

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/internal/public"
)

// eachFile calls f for every file below a folder of test data with one of the extensions.
func eachFile(t testing.TB, name string, f func(path string), ext ...string) {
	t.Helper()
	root := public.Path(t, name)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, e := range ext {
			if strings.HasSuffix(path, e) {
				f(path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCorpusIdentity reads every public model and writes it back, as it is, after a sort that has
// nothing to do, and to a file in the same folder: the bytes must be the same.
func TestCorpusIdentity(t *testing.T) {
	for _, name := range []string{"onnx-backend", "wild", "ort-transform", "torch-train", "issue-repros"} {
		t.Run(name, func(t *testing.T) {
			models, sorted, unsorted := 0, 0, 0
			eachFile(t, filepath.Join("corpus", name), func(path string) {
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				m, c, err := Open(path, ReadOptions{})
				if fe, ok := errors.AsType[*FormatError](err); ok {
					t.Logf("refused: %v", fe)
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				models++
				check := func(what string) {
					t.Helper()
					var got bytes.Buffer
					if err := (WriteOptions{Dir: filepath.Dir(path)}).Write(&got, m); err != nil {
						t.Errorf("%s: %s: %v", path, what, err)
					} else if !bytes.Equal(got.Bytes(), want) {
						t.Errorf("%s: %s: %d bytes, want %d, not identical", path, what, got.Len(), len(want))
					}
				}
				check("untouched")
				before := order(m.Graph)
				if m.Graph.Sort() == nil {
					if equal(before, order(m.Graph)) {
						sorted++
						check("after a sort")
					} else {
						unsorted++
					}
				}
			}, ".onnx", ".ort", ".pb.onnx")
			t.Logf("%d models identical, %d also after a sort, %d whose order the sort changes", models, sorted, unsorted)
			if models == 0 {
				t.Error("no models")
			}
		})
	}
}

func order(g *graph.Graph) []*graph.Node {
	var out []*graph.Node
	for n := range g.AllNodes() {
		out = append(out, n)
	}
	return out
}

func equal(a, b []*graph.Node) bool { return same(a, b) }

// TestCorpusRebuilt writes every public model as if it had been made anew: it must say the same when
// read again.
func TestCorpusRebuilt(t *testing.T) {
	rebuilt, broken := 0, 0
	eachFile(t, "corpus", func(path string) {
		m, c, err := Open(path, ReadOptions{})
		if err != nil {
			return // see TestCorpusIdentity
		}
		defer c.Close()
		want := dump(m)
		strip(m)
		var b bytes.Buffer
		if err := Write(&b, m); err != nil {
			t.Logf("%.300v", err)
			broken++
			return
		}
		again, _, err := Read(&b, "again", ReadOptions{})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		rebuilt++
		if got := dump(again); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
		}
	}, ".onnx")
	t.Logf("%d models rebuilt, %d with data that cannot be read", rebuilt, broken)
	if rebuilt == 0 {
		t.Error("no models")
	}
}
