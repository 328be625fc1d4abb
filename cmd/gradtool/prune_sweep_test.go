package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/internal/public"
	"gradtool/onnxio"
	"gradtool/prune"
)

// sweepStep is which share of the public models the tests prune; the environment variable GRADTOOL_SWEEP=all makes it all.
const sweepStep = 17

// TestPruneKeepsBits prunes public models: outputs must be the same bit by bit, a second run must change no byte, and the
// file must not grow by more than the allowance.
func TestPruneKeepsBits(t *testing.T) {
	for _, c := range []struct {
		name, dir string
		step      int
	}{
		{"ort-transform", "corpus/ort-transform", sweepStep},
		{"wild", "corpus/wild", sweepStep},
		{"torch-train", "corpus/torch-train", 4},
		{"onnx-backend", "corpus/onnx-backend/node", 5 * sweepStep},
		{"issue-repros", "corpus/issue-repros", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			sweep(t, models(t, public.Path(t, filepath.FromSlash(c.dir)), c.step), nil, [][]string{nil, {"--frozen", "*"}}, exactBits)
		})
	}
}

// TestPruneKeepsNumbers prunes public models with rules that round differently: outputs may differ by 1e-4 of the largest.
func TestPruneKeepsNumbers(t *testing.T) {
	for _, dir := range []string{"corpus/ort-transform", "corpus/wild"} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			sweep(t, models(t, public.Path(t, filepath.FromSlash(dir)), sweepStep), nil, [][]string{{"--frozen", "*", "--reassociate"}}, closeNumbers)
		})
	}
}

// TestPruneKeepsGradients prunes the gradients of public cases. The sign of a zero may differ.
func TestPruneKeepsGradients(t *testing.T) {
	sweep(t, models(t, public.Path(t, "gradcases"), 8), []string{"--wrt", "inputs"}, [][]string{nil, {"--frozen", "*"}}, sameNumbers)
}

// models returns every step-th model below a folder, if it is small; all of them with GRADTOOL_SWEEP=all.
func models(t *testing.T, dir string, step int) []string {
	t.Helper()
	var all, out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".onnx") {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("GRADTOOL_SWEEP") == "all" {
		return all
	}
	for i := 0; i < len(all); i += step {
		if fileSize(t, all[i]) < 1<<20 {
			out = append(out, all[i])
		}
	}
	return out
}

// tally is what became of the models of a sweep.
type tally struct{ same, unread, unrun, random, refused int }

func (c tally) String() string {
	return fmt.Sprintf("%d the same; %d that gradtool refuses, %d that cannot be evaluated before, %d random", c.same, c.unread+c.refused, c.unrun, c.random)
}

// sweep prunes files with each set of flags. With grad the models are first extended by their gradient, with those flags.
func sweep(t *testing.T, files, grad []string, variants [][]string, equal func(a, b *op.Array) bool) {
	var c tally
	dir := t.TempDir()
	for _, f := range files {
		start := time.Now()
		source := f
		if grad != nil {
			source = filepath.Join(dir, "grad.onnx")
			if err := inProcess(t, append([]string{"grad", f, "-o", source}, grad...)...); err != nil {
				c.refused++
				continue
			}
		}
		base := reference(source, filepath.Join(filepath.Dir(f), "test_data_set_0"))
		for _, flags := range variants {
			if msg := pruned(t, source, dir, flags, base, equal); msg != "" {
				t.Errorf("%s %v: %s", f, flags, msg)
			}
		}
		if d := time.Since(start); d > 2*time.Second {
			t.Logf("%s takes %v", f, d)
		}
		switch {
		case base.model == nil:
			c.unread++
		case base.random:
			c.random++
		case base.err != nil:
			c.unrun++
			if testing.Verbose() {
				t.Logf("%s is not evaluated: %v", f, base.err)
			}
		default:
			c.same++
		}
	}
	t.Logf("%d models: %s", len(files), c)
}

// inProcess runs a command line; its error is the run's.
func inProcess(t *testing.T, args ...string) error {
	p, _ := newProcess(t)
	defer p.stderr.Close()
	return p.run(append([]string{"gradtool"}, append(args, "-q")...))
}

// run is a model with what it computes.
type run struct {
	model   *graph.Model
	in, out []*op.Array
	random  bool  // the outputs differ from run to run
	err     error // why there are no outputs
}

// reference evaluates a model on the inputs in a folder or on random ones. The result has no model if the file is none.
func reference(path, data string) run {
	m, in, err := evaluable(path, data)
	r := run{model: m, in: in, err: err}
	if err != nil {
		return r
	}
	if r.out, r.err = evaluate(m, in, 1); r.err == nil {
		again, err := evaluate(m, in, 2)
		r.random = err != nil || !slices.EqualFunc(r.out, again, exactBits)
	}
	return r
}

// evaluable reads a model, and its inputs from a folder or made up. The model is nil if it is none, the error says why it
// cannot be evaluated.
func evaluable(path, data string) (*graph.Model, []*op.Array, error) {
	m, _, err := onnxio.Open(path, onnxio.ReadOptions{})
	if err != nil {
		return nil, nil, err
	}
	if err := m.Graph.Sort(); err != nil {
		return nil, nil, err
	}
	given := map[*graph.Value]*op.Array{}
	if list, err := readDir(m, data); err == nil {
		for i, a := range list {
			if v := m.Graph.Inputs[i]; feedable(v.Type, a) { // the folder may be another model's
				given[v] = a
			}
		}
	}
	if _, err := prepare(m, nil); err != nil {
		return m, nil, err
	}
	sizes := bindGiven(m, given)
	for i, name := range inputSymbols(m) {
		if _, ok := sizes[name]; !ok {
			sizes[name] = int64(2 + i%3)
		}
	}
	for _, v := range m.Graph.Inputs {
		v.Type.Shape = v.Type.Shape.Clone()
		for i, d := range v.Type.Shape {
			if d.IsUnknown() {
				v.Type.Shape[i] = graph.Known(2)
			}
		}
	}
	if work(m, sizes) > maxWork() {
		return m, nil, errors.New("it is too large")
	}
	if err := randomInputs(m, given, sizes, 1, indexBound); err != nil {
		return m, nil, err
	}
	in := make([]*op.Array, len(m.Graph.Inputs))
	for i, v := range m.Graph.Inputs {
		in[i] = given[v]
	}
	return m, in, nil
}

// feedable reports whether an input of type t takes a.
func feedable(t graph.Type, a *op.Array) bool {
	if !t.IsTensor() || t.Shape == nil {
		return true
	}
	if t.Elem != a.Elem || len(t.Shape) != len(a.Shape) {
		return false
	}
	for i, d := range t.Shape {
		if n, ok := d.Int(); ok && int(n) != a.Shape[i] {
			return false
		}
	}
	return true
}

// maxWork returns the number of operations that a model in a sweep may take.
func maxWork() float64 {
	if os.Getenv("GRADTOOL_SWEEP") == "all" {
		return 3e8
	}
	return 1e7
}

// work estimates the operations that a model takes for the given sizes.
func work(m *graph.Model, sizes map[string]int64) float64 {
	total := 0.0
	for _, v := range m.Graph.Inputs {
		if n, ok := v.Type.Shape.Size().Eval(sizes).Int(); ok {
			total += 10 * float64(n)
		}
	}
	shapes := func(list []*graph.Value) ([][]int, bool) {
		out := make([][]int, len(list))
		for i, v := range list {
			if v == nil {
				continue
			}
			out[i] = []int{}
			for _, d := range v.Type.Shape {
				n, ok := d.Eval(sizes).Int()
				if !ok || n < 0 {
					return nil, false
				}
				out[i] = append(out[i], int(n))
			}
		}
		return out, true
	}
	for n := range m.Graph.AllNodes() {
		d := op.Of(n)
		in, ok := shapes(n.In)
		out, ok2 := shapes(n.Out)
		if d == nil || d.Cost == nil || !ok || !ok2 || len(n.Subgraphs()) > 0 {
			continue
		}
		total += d.Cost(&op.CostCtx{Node: n, In: in, Out: out})
	}
	return total
}

// evaluate runs a model that was prepared.
func evaluate(m *graph.Model, in []*op.Array, seed uint64) (out []*op.Array, err error) {
	machine, err := interp.New(m, interp.Options{Seed: seed})
	if err != nil {
		return nil, err
	}
	return machine.Run(in)
}

// pruned prunes a file and returns what is wrong with the result, "" if nothing.
func pruned(t *testing.T, path, dir string, flags []string, base run, equal func(a, b *op.Array) bool) string {
	once, twice := filepath.Join(dir, "once.onnx"), filepath.Join(dir, "twice.onnx")
	where := []string{"--base-dir", filepath.Dir(path)}
	if err := inProcess(t, slices.Concat([]string{"prune", path, "-o", once}, flags, where)...); err != nil {
		var ce *codeError
		var ee *onnxio.ExternalError
		if base.model == nil || errors.As(err, &ce) && ce.code == codeBadModel || errors.As(err, &ee) {
			return "" // it is no model, or not whole
		}
		return "prune: " + err.Error()
	}
	if err := inProcess(t, slices.Concat([]string{"prune", once, "-o", twice}, flags, where)...); err != nil {
		return "prune again: " + err.Error()
	}
	first, err := os.ReadFile(once)
	if err != nil {
		return err.Error()
	}
	second, err := os.ReadFile(twice)
	if err != nil {
		return err.Error()
	}
	if !bytes.Equal(first, second) {
		return fmt.Sprintf("a second run changes %d bytes to %d", len(first), len(second))
	}
	before, err := os.Stat(path)
	if err != nil {
		return err.Error()
	}
	if grown := int64(len(first)) - before.Size(); grown > prune.ModelAllowance {
		return fmt.Sprintf("the file grows by %d bytes", grown)
	}
	if base.model == nil || base.err != nil || base.random {
		return ""
	}
	m, closer, err := onnxio.Open(once, onnxio.ReadOptions{BaseDir: filepath.Dir(path)})
	if err != nil {
		return err.Error()
	}
	defer func(c io.Closer) { c.Close() }(closer)
	for _, pair := range [][2][]*graph.Value{{base.model.Graph.Inputs, m.Graph.Inputs}, {base.model.Graph.Outputs, m.Graph.Outputs}} {
		if !slices.Equal(names(pair[0]), names(pair[1])) {
			return fmt.Sprintf("%v are called %v now", names(pair[0]), names(pair[1]))
		}
	}
	if err := m.Graph.Sort(); err != nil {
		return err.Error()
	}
	if _, err := prepare(m, nil); err != nil {
		return "the result is not fit for use: " + err.Error()
	}
	got, err := evaluate(m, base.in, 1)
	if err != nil {
		return "the result cannot be evaluated: " + err.Error()
	}
	for i, want := range base.out {
		if !equal(want, got[i]) {
			return fmt.Sprintf("output %q is %s, was %s", m.Graph.Outputs[i].Name, got[i], want)
		}
	}
	return ""
}

// exactBits reports whether two values are the same, bit by bit but for the payload of NaNs.
func exactBits(a, b *op.Array) bool {
	return sameBy(a, b, func(x, y float64) bool {
		return math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y)
	})
}

// sameNumbers is exactBits but for the sign of zeros.
func sameNumbers(a, b *op.Array) bool {
	return sameBy(a, b, func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) })
}

// closeNumbers reports whether numbers agree to within 1e-4 of the largest, where both are finite.
func closeNumbers(a, b *op.Array) bool {
	largest := 0.0
	if a.IsFloat() {
		for i := range a.Len() {
			if x := math.Abs(a.Float(i)); !math.IsInf(x, 0) && x > largest {
				largest = x
			}
		}
	}
	return sameBy(a, b, func(x, y float64) bool {
		return x == y || math.Abs(x-y) <= 1e-4*largest || math.IsNaN(x) || math.IsInf(x, 0)
	})
}

func sameBy(a, b *op.Array, same func(x, y float64) bool) bool {
	if a.Kind != b.Kind && !(a.IsTensor() && b.IsTensor()) || a.Elem != b.Elem || len(a.Seq) != len(b.Seq) {
		return false
	}
	for i := range a.Seq {
		if !sameBy(a.Seq[i], b.Seq[i], same) {
			return false
		}
	}
	if !a.IsTensor() {
		return true
	}
	if !slices.Equal(a.Shape, b.Shape) || !slices.Equal(a.I64, b.I64) || !slices.Equal(a.Str, b.Str) || !slices.Equal(a.C128, b.C128) {
		return false
	}
	if a.IsFloat() {
		for i := range a.Len() {
			if !same(a.Float(i), b.Float(i)) {
				return false
			}
		}
	}
	return true
}
