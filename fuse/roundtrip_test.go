package fuse_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gradtool/autodiff"
	"gradtool/autodiff/loss"
	"gradtool/fuse"
	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/public"
	"gradtool/onnxio"
	"gradtool/testmodels"
)

// lines describes all that a graph holds, a line per thing, metadata and, if wanted, names included, in an order of its own.
func lines(m *graph.Model, names bool) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	add("ir %d opsets %v functions %d meta %v", m.IRVersion, m.Opsets, len(m.Functions), m.Meta)
	for g := range m.Graph.Graphs() {
		for i, v := range g.Inputs {
			add("%s input %d %s %s", g.Name, i, v.Name, v.Type)
		}
		for i, v := range g.Outputs {
			add("%s output %d %s %s", g.Name, i, v.Name, v.Type)
		}
		for _, v := range g.Inits {
			add("%s init %s %s", g.Name, v.Name, v.Type)
		}
		for _, n := range g.Nodes {
			if !names {
				add("%s node %s %d %d meta %v", g.Name, op.KeyOf(n), len(n.In), len(n.Out), n.Meta)
				continue
			}
			add("%s node %q %s overload %q doc %q meta %v", g.Name, n.Name, n, n.Overload, n.Doc, n.Meta)
		}
	}
	slices.Sort(out)
	return out
}

// difference returns the lines that only one of two sorted lists has.
func difference(a, b []string) string {
	var out []string
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case j == len(b) || i < len(a) && a[i] < b[j]:
			out = append(out, "- "+a[i])
			i++
		case i == len(a) || b[j] < a[i]:
			out = append(out, "+ "+b[j])
			j++
		default:
			i, j = i+1, j+1
		}
	}
	if len(out) > 12 {
		out = append(out[:12], fmt.Sprintf("... %d lines", len(out)))
	}
	return strings.Join(out, "\n")
}

// roundTrip fuses m, checks that it is valid, inlines it and checks that nothing is lost.
func roundTrip(t *testing.T, m *graph.Model) {
	t.Helper()
	if err := m.Graph.Sort(); err != nil {
		t.Skip(err)
	}
	prior := map[string]bool{}
	for _, e := range violations(m) {
		prior[e] = true
	}
	unique := !slices.ContainsFunc(violations(m), func(s string) bool { return strings.HasPrefix(s, "rule 5:") })
	want := lines(m, unique)
	var order []string
	for _, n := range m.Graph.Nodes {
		order = append(order, n.Label())
	}
	r, err := fuse.Run(m, fuse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range violations(m) {
		if !prior[e] {
			t.Fatalf("the fused model is not valid: %s", e)
		}
	}
	calls := 0
	for n := range m.Graph.AllNodes() {
		if n.Domain == fuse.Domain {
			calls++
		}
	}
	if calls != len(r.Clusters) {
		t.Errorf("%d calls, %d clusters", calls, len(r.Clusters))
	}
	for _, f := range m.Functions {
		checkFunction(t, m, f)
	}
	// Places are known of nodes in clusters, and of others if those still stand in the order that they had.
	kept, at := true, 0
	for _, n := range m.Graph.Nodes {
		if n.Domain == fuse.Domain {
			continue
		}
		i := slices.Index(order, n.Label())
		kept = kept && i >= at
		at = i
	}
	n, err := fuse.Inline(m)
	if err != nil {
		t.Fatal(err)
	}
	if n != calls {
		t.Errorf("%d calls inlined, want %d", n, calls)
	}
	if d := difference(want, lines(m, unique)); d != "" {
		t.Errorf("inlining does not restore the graph:\n%s", d)
	}
	for i, n := range m.Graph.Nodes {
		if unique && kept && i < len(order) && n.Label() != order[i] {
			t.Errorf("node %d is %s, was %s", i, n.Label(), order[i])
			break
		}
	}
	for _, e := range violations(m) {
		if !prior[e] {
			t.Errorf("the restored model is not valid: %s", e)
		}
	}
}

func violations(m *graph.Model) []string {
	var out []string
	for _, err := range []error{graph.Verify(m), op.Verify(m)} {
		if j, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range j.Unwrap() {
				v := e.(*graph.VerifyError)
				out = append(out, fmt.Sprintf("rule %d: %s", v.Rule, v.Msg)) // which node defines a value may change
			}
		}
	}
	return out
}

// checkFunction holds a function against the rules for emitted ones.
func checkFunction(t *testing.T, m *graph.Model, f *graph.Function) {
	t.Helper()
	if f.Domain != fuse.Domain {
		return
	}
	if m.IRVersion < 8 || m.Opset(fuse.Domain) == 0 {
		t.Errorf("IR version %d, domain imported at %d", m.IRVersion, m.Opset(fuse.Domain))
	}
	if len(f.Body.Inits) > 0 || len(f.Attrs) > 0 {
		t.Errorf("%s holds initializers or attributes", f.Name)
	}
	if v := f.Opset(""); v != m.Opset("") {
		t.Errorf("%s imports opset %d, the model %d", f.Name, v, m.Opset(""))
	}
	for _, n := range f.Body.Nodes {
		if len(n.Subgraphs()) > 0 || n.Domain == fuse.Domain {
			t.Errorf("%s holds %s", f.Name, n.Label())
		}
		for _, a := range n.Attrs {
			if a.Type == graph.AttrUndefined || a.Ref != "" {
				t.Errorf("%s: %s: attribute %s has no type", f.Name, n.Label(), a.Name)
			}
		}
	}
}

// gradient appends the gradient of a loss, or of all outputs with cotangents.
func gradient(t *testing.T, m *graph.Model, kind string) {
	t.Helper()
	if err := op.Inline(m, nil); err != nil {
		t.Fatal(err)
	}
	if err := op.Upgrade(m); err != nil {
		t.Fatal(err)
	}
	info, err := op.Infer(m)
	if err != nil {
		t.Fatal(err)
	}
	opt := autodiff.GradOptions{Seeds: true}
	for _, v := range m.Graph.Outputs {
		if v.Type.IsTensor() && v.Type.Elem.IsDifferentiable() {
			opt.Of = append(opt.Of, v)
		}
	}
	for _, list := range [][]*graph.Value{m.Graph.Inits, m.Graph.Inputs} {
		for _, v := range list {
			if v.Type.IsTensor() && v.Type.Elem.IsDifferentiable() && !slices.Contains(opt.Wrt, v) {
				opt.Wrt = append(opt.Wrt, v)
			}
		}
	}
	if kind != "" {
		spec, err := loss.Parse(kind)
		if err != nil {
			t.Fatal(err)
		}
		opt.Loss, opt.Of, opt.Seeds = &spec, opt.Of[:1], false
	}
	if _, err := autodiff.Gradient(m, info, opt); err != nil {
		t.Skip(err)
	}
	low, err := op.LowestOpset(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := op.SetOpset(m, low); err != nil {
		t.Fatal(err)
	}
}

func TestRoundTripTestModels(t *testing.T) {
	for _, c := range testmodels.All() {
		t.Run(c.Name, func(t *testing.T) { roundTrip(t, c.Build()) })
		t.Run(c.Name+"/grad", func(t *testing.T) {
			m := c.Build()
			gradient(t, m, c.Loss)
			roundTrip(t, m)
		})
	}
}

func open(t *testing.T, path string) *graph.Model {
	t.Helper()
	m, c, err := onnxio.Open(path, onnxio.ReadOptions{})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { c.Close() })
	return m
}

func TestRoundTripGradcases(t *testing.T) {
	root := public.Path(t, "gradcases")
	files, err := filepath.Glob(filepath.Join(root, "*", "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := filepath.Base(filepath.Dir(f))
		t.Run(name, func(t *testing.T) { roundTrip(t, open(t, f)) })
		t.Run(name+"/grad", func(t *testing.T) {
			m := open(t, f)
			gradient(t, m, "")
			roundTrip(t, m)
		})
	}
}

func TestRoundTripWild(t *testing.T) {
	root := public.Path(t, "corpus", "wild")
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".onnx" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) { roundTrip(t, open(t, f)) })
	}
}

// TestRoundTripModels takes the networks in GRADTOOL_MODELS, with their gradients.
func TestRoundTripModels(t *testing.T) {
	root := os.Getenv("GRADTOOL_MODELS")
	if root == "" {
		t.Skip("GRADTOOL_MODELS names no folder of exported networks; scripts/referee makes one")
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := filepath.Base(filepath.Dir(f))
		t.Run(name, func(t *testing.T) { roundTrip(t, open(t, f)) })
		t.Run(name+"/grad", func(t *testing.T) {
			m := open(t, f)
			gradient(t, m, "softmax-cross-entropy,axis=1")
			roundTrip(t, m)
		})
	}
}
