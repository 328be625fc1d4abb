package main

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gradtool/graph/op"
	"gradtool/internal/ort"
	"gradtool/internal/public"
	"gradtool/internal/size"
)

// Referee tests hold gradtool against others: PyTorch's gradients of public cases, and an unmodified
// ONNX Runtime, which has to load what gradtool writes and give the same numbers. They skip, and say why, where
// the cases (the folder shared beside the project's) or the library (build tag ort) are missing.

// engines returns the engines to compare with.
func engines(t *testing.T) []string {
	if err := ort.Available(); err != nil {
		t.Logf("without ONNX Runtime: %v", err)
		return []string{"interp"}
	}
	return []string{"interp", "ort"}
}

// gradtool runs a command line in this process and returns its exit code and what it printed.
func gradtool(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	in, out, errs := file("in"), file("out"), file("err")
	defer out.Close()
	defer errs.Close()
	if stdin != "" {
		in.Close()
		var err error
		if in, err = os.Open(stdin); err != nil {
			t.Fatal(err)
		}
	}
	defer in.Close()
	p := &process{stdin: in, stdout: out, stderr: errs, getenv: os.Getenv}
	err := p.run(append([]string{"gradtool"}, args...))
	if err != nil {
		p.printError(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	return exitCode(err), read("out"), read("err")
}

// TestRefereeGradients checks outputs, gradients, JVPs and products of Hessians with vectors of the public cases by PyTorch, in each
// engine: as the file is, with every input dimension symbolic, and read from standard input.
func TestRefereeGradients(t *testing.T) {
	root := public.Path(t, "gradcases")
	list, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range engines(t) {
		passed, compared := 0, map[string]int{}
		for _, e := range list {
			dir := filepath.Join(root, e.Name())
			model := filepath.Join(dir, "model.onnx")
			t.Run(engine+"/"+e.Name(), func(t *testing.T) {
				for _, form := range []struct {
					name, stdin string
					args        []string
				}{
					{"file", "", []string{"check", dir}},
					{"symbolic", "", []string{"check", model, "--data", dir, "--symbolic"}},
					{"stdin", model, []string{"check", "-", "--data", dir}},
				} {
					code, out, errs := gradtool(t, form.stdin, append(form.args, "--engine", engine)...)
					if code != 0 {
						t.Errorf("%s: exit code %d\n%s%s", form.name, code, out, errs)
						return
					}
					for _, what := range []string{"grad", "jvp", "hvp"} {
						files, _ := filepath.Glob(filepath.Join(dir, "test_data_set_0", what+"_*.pb"))
						if n := strings.Count(out, map[string]string{"grad": " gradient ", "jvp": " jvp ", "hvp": " hvp "}[what]); n != len(files) {
							t.Errorf("%s: %d values of kind %s compared, there are %d\n%s", form.name, n, what, len(files), out)
						}
						compared[what] += len(files)
					}
				}
				passed++
			})
		}
		t.Logf("%s: %d of %d cases hold, each from a file, with symbolic dimensions and from standard input: %d gradients, %d JVPs, %d HVPs",
			engine, passed, len(list), compared["grad"]/3, compared["jvp"]/3, compared["hvp"]/3)
	}
}

// refs is the file that comes with an exported network.
type refs struct {
	Kind  string  `json:"loss_kind"`
	Loss  float64 `json:"loss"`
	Grads map[string]struct {
		Norm float64            `json:"norm"`
		At   map[string]float64 `json:"at"`
	} `json:"grads"`
}

// TestRefereeModels appends loss and gradient to exported networks (GRADTOOL_MODELS names their folder,
// GRADTOOL_MODEL_LIST which of them), runs the result in ONNX Runtime, and compares loss, gradient norms and sampled entries
// with PyTorch's float32 ones, as it is and after prune | fuse, with the loss or the whole graph in parts. Errors are relative to the gradient's norm. Two kinds of gradients cannot be held
// against a float32 reference alone, so the evaluator's float64 gradient is asked too: those that are zero but for rounding (of biases in
// front of a batch normalization) must be below 1e-5 of the largest gradient; and in deep networks with batch normalization over few samples,
// where the reference itself is farther than the tolerance from float64, ours must be no farther from float64 than the reference at its worst.
func TestRefereeModels(t *testing.T) {
	root := os.Getenv("GRADTOOL_MODELS")
	if root == "" {
		t.Skip("GRADTOOL_MODELS names no folder of exported networks; scripts/referee makes one")
	}
	if err := ort.Available(); err != nil {
		t.Skip(err)
	}
	const tolerance = 1e-3
	t.Logf("%-20s %13s %7s %8s %9s | %9s %9s %9s", "model", "nodes", "grad", "memory", "loss", "ours-ref", "ours-f64", "ref-f64")
	for _, name := range strings.Fields(os.Getenv("GRADTOOL_MODEL_LIST")) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(root, name)
			b, err := os.ReadFile(filepath.Join(dir, "refs.json"))
			if err != nil {
				t.Skipf("not exported: %v", err)
			}
			var want refs
			if err := json.Unmarshal(b, &want); err != nil {
				t.Fatal(err)
			}
			axis := "1"
			if strings.Contains(want.Kind, "last axis") {
				axis = "-1"
			}
			train := filepath.Join(t.TempDir(), "train.onnx")
			start := time.Now()
			errs, memory := gradOf(t, "--loss", "softmax-cross-entropy,axis="+axis, filepath.Join(dir, "model.onnx"), "-o", train)
			took := time.Since(start)
			nodes := errs
			if i := strings.Index(nodes, "nodes,"); i >= 0 {
				nodes = strings.ReplaceAll(strings.TrimPrefix(nodes[:i], "grad: "), " nodes", "")
			}
			exact, _ := runTraining(t, train, dir, "--float64")
			if len(want.Grads) <= maxInParts {
				inParts(t, train, dir, exact)
			}
			largest := 0.0
			for _, r := range want.Grads {
				largest = max(largest, r.Norm)
			}
			var worst [3]float64 // ours against the reference; ours, and the reference, against float64
			var rel float64      // of the loss
			for _, form := range []string{"rows=48", "classes=64", "batch=2", "batch=4", ""} {
				if strings.HasPrefix(form, "batch") && len(want.Grads) > maxInParts {
					continue
				}
				path := train
				if form != "" {
					path = fusedTraining(t, train, form)
				}
				ours, loss := runTraining(t, path, dir, "--engine", "ort")
				worst = [3]float64{}
				errors := map[string][3]float64{}
				for k, r := range want.Grads {
					a, e := ours[k+"_grad"], exact[k+"_grad"]
					if a == nil {
						t.Errorf("%s no gradient of %s", form, k)
						continue
					}
					if norm(e) < 1e-9*largest {
						if norm(a) > 1e-5*largest {
							t.Errorf("%s gradient of %s: norm %.2g, want zero but for rounding", form, k, norm(a))
						}
						continue
					}
					err := [3]float64{math.Abs(norm(a)-r.Norm) / r.Norm, math.Abs(norm(a)-norm(e)) / r.Norm, math.Abs(r.Norm-norm(e)) / r.Norm}
					for at, x := range r.At {
						i, _ := strconv.Atoi(at)
						err[0] = max(err[0], math.Abs(a.Float(i)-x)/r.Norm)
						err[1] = max(err[1], math.Abs(a.Float(i)-e.Float(i))/r.Norm)
						err[2] = max(err[2], math.Abs(x-e.Float(i))/r.Norm)
					}
					errors[k] = err
					for i := range worst {
						worst[i] = max(worst[i], err[i])
					}
				}
				for _, k := range slices.Sorted(maps.Keys(errors)) {
					err := errors[k]
					if err[0] <= tolerance || err[1] <= max(tolerance, worst[2]) {
						continue
					}
					if form != "" && worst[2] > tolerance {
						// Here one rounding more or less moves gradients by as much as float32 and float64 differ
						// anyway, and whether it is for the better is chance: the graph itself is held to that, its fused forms are not.
						t.Logf("%s gradient of %s: %.2g from float64, from which the reference is %.2g at its worst", form, k, err[1], worst[2])
					} else {
						t.Errorf("%s gradient of %s: %.2g from the reference, %.2g from float64, from which the reference is %.2g at its worst", form, k, err[0], err[1], worst[2])
					}
				}
				rel = math.Abs(loss-want.Loss) / want.Loss
				if rel > 1e-4 {
					t.Errorf("%s loss %g, want %g", form, loss, want.Loss)
				}
			}
			t.Logf("%-20s %13s %7s %8s %9.1e | %9.1e %9.1e %9.1e", name, nodes, took.Round(time.Millisecond), memory, rel, worst[0], worst[1], worst[2])
		})
	}
}

// maxInParts is the number of gradients of the largest network that is computed by parts here: beyond, that takes minutes.
const maxInParts = 80

// inParts checks that parts of the batch change nothing but the order of sums: in float64 that is next to nothing.
func inParts(t *testing.T, train, dir string, exact map[string]*op.Array) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "parts.onnx")
	if code, _, errs := gradtool(t, "", "fuse", "-q", "--chunk", "batch=3", train, "-o", path); code != 0 {
		t.Fatal(errs)
	}
	parts, _ := runTraining(t, path, dir, "--float64")
	largest := 0.0
	for _, e := range exact {
		largest = max(largest, norm(e))
	}
	for _, k := range slices.Sorted(maps.Keys(exact)) {
		e, a := exact[k], parts[k]
		if a == nil || a.Len() != e.Len() {
			t.Errorf("by parts of the batch there is no %s", k)
			continue
		}
		worst := 0.0
		for i := range e.Len() {
			worst = max(worst, math.Abs(a.Float(i)-e.Float(i)))
		}
		if worst > 1e-9*max(norm(e), 1e-3*largest) {
			t.Errorf("%s by parts of the batch is %.2g off, of a norm of %.2g", k, worst, norm(e))
		}
	}
}

// fusedTraining returns the file of a training step after prune | fuse, with the standard operators that ONNX Runtime is fast with and the
// loss in pieces by so many rows or classes, where there are as many.
func fusedTraining(t *testing.T, train, by string) string {
	t.Helper()
	dir := t.TempDir()
	pruned, fast, out := filepath.Join(dir, "pruned.onnx"), filepath.Join(dir, "fast.onnx"), filepath.Join(dir, "fused.onnx")
	for _, args := range [][]string{
		{"prune", "-q", "--keep", "loss", "--keep", "*_grad", train, "-o", pruned},
		{"fuse", "-q", "--chunk", by, "--for", "ort", pruned, "-o", fast},
		{"fuse", "-q", fast, "-o", out},
	} {
		if code, _, errs := gradtool(t, "", args...); code != 0 {
			t.Fatalf("%s: %s", strings.Join(args[:1], " "), errs)
		}
	}
	return out
}

// gradOf runs the verb grad: the program that GRADTOOL_BIN names, whose peak resident memory (mapped pages of the
// model that were touched included) is returned too, or without one in this process. It returns what went to standard error.
func gradOf(t *testing.T, args ...string) (stderr, memory string) {
	t.Helper()
	args = append([]string{"grad"}, args...)
	bin := os.Getenv("GRADTOOL_BIN")
	if bin == "" {
		code, _, errs := gradtool(t, "", args...)
		if code != 0 {
			t.Fatal(errs)
		}
		return errs, "-"
	}
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.Command(bin, append(args, "--report", report)...)
	var b strings.Builder
	cmd.Stderr = &b
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, b.String())
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Peak int64 `json:"peak_memory_bytes"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return b.String(), size.Bytes(r.Peak)
}

func norm(a *op.Array) float64 {
	sum := 0.0
	for i := range a.Len() {
		sum += a.Float(i) * a.Float(i)
	}
	return math.Sqrt(sum)
}

// runTraining runs a training graph on the network's inputs and labels and returns its outputs, and the loss.
func runTraining(t *testing.T, model, dir string, args ...string) (map[string]*op.Array, float64) {
	t.Helper()
	line := []string{"--in", "logits_target=" + filepath.Join(dir, "label.pb")}
	inputs, _ := filepath.Glob(filepath.Join(dir, "input_*.pb"))
	for _, f := range inputs {
		line = append(line, "--in", f)
	}
	res := runModel(t, model, append(line, args...)...)
	return res, res["loss"].Float(0)
}
