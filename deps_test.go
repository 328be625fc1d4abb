package gradtool_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// order says which packages may import which: in "a < b", b may import a and all that a may import. Sets are separated
// by commas, chains by semicolons. A name that ends in /... stands for a package and all below it. DO NOT EXTEND THIS
// TABLE TO MEND A BUILD: an import that it forbids is a question of design.
//
// Packages under internal know nothing of graphs. A stage does not import another stage, except that npu reads the plans
// of memplan. The machine (npu/machine, npu/isa and what handles programs) knows nothing of graphs.
const order = `
	internal/suggest < internal/selector;
	internal/suggest, internal/half, internal/size < graph;

	graph/op/schema, graph < graph/op;
	graph/op < graph/rewrite, graph/pass, graph/interp, testmodels;

	graph/op, graph/rewrite, graph/pass, graph/interp
	< autodiff/loss, autodiff/optim
	< autodiff;

	graph/op, graph/rewrite, graph/pass, graph/interp < prune, fuse, fuse/batch, memplan;
	memplan/offset, memplan/remat < memplan < memplan/recompute < cmd/...;

	npu/machine, internal/half < npu/isa < npu/token, npu/binary, npu/asm;
	npu/isa, internal/suggest < npu/sim < npu/profile;
	npu/token < npu/internal/sample;
	memplan < npu/legal;
	npu/legal, npu/isa < npu/emit;
	npu/emit, npu/token, npu/sim < npu/lower;

	internal/size, internal/table, internal/suggest, graph < viz;

	onnxio/onnxpb < onnxio/internal/...;
	onnxio/internal/..., onnxio/onnxpb, internal/atomicfile, graph < onnxio, onnxio/onnxgo;
	onnxio < onnxio/onnxgo;

	autodiff, prune, fuse, fuse/batch, npu/lower, npu/binary, npu/asm, npu/profile, viz, onnxio/onnxgo, testmodels,
	internal/selector, internal/size, internal/table, internal/term, internal/npz, internal/ort, internal/atomicfile
	< cmd/...;
`

// outside says who may import modules that are not the standard library's: others may not.
var outside = []struct {
	module string
	by     []string
}{
	{"github.com/owulveryck/onnx-go", []string{"onnxio/onnxgo"}},
	{"gorgonia.org/tensor", []string{"onnxio/onnxgo"}},
	{"github.com/urfave/cli/v2", []string{"cmd/..."}},
	{"golang.org/x/term", []string{"internal/term"}},
	{"google.golang.org/protobuf", []string{"onnxio", "onnxio/onnxpb", "onnxio/internal/...", "onnxio/onnxgo", "cmd/..."}},
	{"gonum.org/v1/gonum/blas", []string{"graph/op", "graph/interp"}},
	{"gonum.org/v1/gonum/graph", []string{"graph", "viz", "prune", "fuse", "memplan", "npu/...", "onnxio/onnxgo"}},
	{"github.com/yalue/onnxruntime_go", []string{"internal/ort"}},
}

// matches reports whether a package is one of a table's entry.
func matches(entry, pkg string) bool {
	base, all := strings.CutSuffix(entry, "/...")
	return pkg == base || all && strings.HasPrefix(pkg, base+"/")
}

// below maps each entry of the table to the entries that it may import, directly or not.
func below(table string) (map[string]map[string]bool, []string) {
	direct := map[string][]string{}
	var entries []string
	for _, chain := range strings.Split(table, ";") {
		var lower []string
		for _, set := range strings.Split(chain, "<") {
			var names []string
			for _, name := range strings.Split(set, ",") {
				if name = strings.TrimSpace(name); name != "" {
					names = append(names, name)
				}
			}
			for _, name := range names {
				if !slices.Contains(entries, name) {
					entries = append(entries, name)
				}
				direct[name] = append(direct[name], lower...)
			}
			lower = names
		}
	}
	closed := map[string]map[string]bool{}
	var reach func(from, to string)
	reach = func(from, to string) {
		for _, next := range direct[to] {
			if !closed[from][next] {
				closed[from][next] = true
				reach(from, next)
			}
		}
	}
	for _, e := range entries {
		closed[e] = map[string]bool{}
		reach(e, e)
	}
	return closed, entries
}

// allowed reports whether package p may import package q of this module.
func allowed(closed map[string]map[string]bool, entries []string, p, q string) bool {
	for _, e := range entries {
		if !matches(e, p) {
			continue
		}
		if matches(e, q) {
			return true // packages of one entry, such as npu/..., are of one stage
		}
		for low := range closed[e] {
			if matches(low, q) {
				return true
			}
		}
	}
	return false
}

// imports returns the packages of the module in dir with what their files other than tests import.
func imports(t *testing.T, dir string) (names []string, of map[string][]string) {
	t.Helper()
	of = map[string][]string{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); file != dir && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		if strings.Contains(string(src[:f.Package-1]), "//go:build ignore") {
			return nil
		}
		rel, err := filepath.Rel(dir, filepath.Dir(file))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		if _, ok := of[pkg]; !ok {
			of[pkg] = nil
			names = append(names, pkg)
		}
		for _, s := range f.Imports {
			p, err := strconv.Unquote(s.Path.Value)
			if err != nil {
				return err
			}
			if !slices.Contains(of[pkg], p) {
				of[pkg] = append(of[pkg], p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names, of
}

// forbidden returns what is wrong with package p importing q, "" if nothing is.
func forbidden(closed map[string]map[string]bool, entries []string, p, q string) string {
	if own, ok := strings.CutPrefix(q, "gradtool/"); ok {
		if !allowed(closed, entries, p, own) {
			return fmt.Sprintf("%s imports %s", p, own)
		}
		return ""
	}
	if first, _, _ := strings.Cut(q, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	for _, o := range outside {
		if q == o.module || strings.HasPrefix(q, o.module+"/") {
			if slices.ContainsFunc(o.by, func(e string) bool { return matches(e, p) }) {
				return ""
			}
			return fmt.Sprintf("%s imports %s, which is for %s", p, q, strings.Join(o.by, ", "))
		}
	}
	return fmt.Sprintf("%s imports %s, which is not in the table", p, q)
}

func TestImports(t *testing.T) {
	closed, entries := below(order)
	for _, e := range entries {
		if closed[e][e] {
			t.Errorf("the table has a cycle through %s", e)
		}
	}
	names, of := imports(t, ".")
	for _, p := range names {
		known := slices.ContainsFunc(entries, func(e string) bool { return matches(e, p) })
		if strings.HasPrefix(p, "scripts/") {
			continue // programs for developers
		}
		for _, q := range of[p] {
			// A package that the table does not name may import the standard library.
			if msg := forbidden(closed, entries, p, q); msg != "" {
				t.Errorf("%s (in the table: %v)", msg, known)
			}
		}
	}
}

// TestImportTable checks the checker on edges that must and must not be.
func TestImportTable(t *testing.T) {
	closed, entries := below(order)
	for _, c := range []struct {
		p, q string
		ok   bool
	}{
		{"graph/op", "gradtool/graph", true},
		{"graph", "gradtool/graph/op", false},
		{"autodiff", "gradtool/graph/op/schema", true},
		{"autodiff", "gradtool/prune", false},
		{"prune", "gradtool/autodiff", false},
		{"fuse", "gradtool/graph/rewrite", true},
		{"graph/rewrite", "gradtool/graph/pass", false},
		{"npu/lower", "gradtool/memplan", true},
		{"npu/sim", "gradtool/npu/isa", true},
		{"npu/sim", "gradtool/graph", false},
		{"npu/isa", "gradtool/npu/sim", false},
		{"npu/legal", "gradtool/npu/emit", false},
		{"memplan", "gradtool/npu", false},
		{"memplan", "gradtool/memplan/offset", true},
		{"memplan/offset", "gradtool/graph", false},
		{"viz", "gradtool/graph", true},
		{"viz", "gradtool/graph/op", false},
		{"onnxio", "gradtool/graph/op", false},
		{"internal/table", "gradtool/graph", false},
		{"cmd/gradtool", "gradtool/npu/sim", true},
		{"cmd/gradtool", "gradtool/graph/pass", true},
		{"onnxio/onnxgo", "github.com/owulveryck/onnx-go/backend/x", true},
		{"onnxio", "github.com/owulveryck/onnx-go", false},
		{"graph", "fmt", true},
		{"graph", "example.com/x", false},
	} {
		if msg := forbidden(closed, entries, c.p, c.q); (msg == "") != c.ok {
			t.Errorf("%s importing %s: allowed is %v, want %v", path.Clean(c.p), c.q, msg == "", c.ok)
		}
	}
}
