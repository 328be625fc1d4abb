package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/npu/binary"
	"gradtool/npu/sim"
)

// TestRefereeNPU lowers the training graphs of exported networks (GRADTOOL_MODELS names their folder, GRADTOOL_NPU_LIST
// which of them) with the sizes of their reference inputs, runs the programs in the simulator, and compares loss and
// gradients with PyTorch's.
func TestRefereeNPU(t *testing.T) {
	root := os.Getenv("GRADTOOL_MODELS")
	if root == "" {
		t.Skip("GRADTOOL_MODELS names no folder of exported networks; scripts/referee makes one")
	}
	for _, name := range strings.Fields(os.Getenv("GRADTOOL_NPU_LIST")) {
		t.Run(name, func(t *testing.T) { npuModel(t, filepath.Join(root, name)) })
	}
}

// npuTolerance is how far a gradient may be from the reference, relative to its norm.
const npuTolerance = 1e-3

// exactMACs is the number of multiply-accumulates up to which the outputs are compared with those by the numeric contract, bit by bit.
const exactMACs = 5e9

func npuModel(t *testing.T, dir string) {
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
	tmp := t.TempDir()
	train, small, step := filepath.Join(tmp, "train.onnx"), filepath.Join(tmp, "small.onnx"), filepath.Join(tmp, "step.npu")
	must := func(args ...string) string {
		t.Helper()
		code, _, errs := gradtool(t, "", args...)
		if code != 0 {
			t.Fatal(errs)
		}
		return errs
	}
	must("grad", "--loss", "softmax-cross-entropy,axis="+axis, filepath.Join(dir, "model.onnx"), "-o", train)
	must("prune", train, "-o", small)
	x, err := readProto(filepath.Join(dir, "input_0.pb"), graph.Type{})
	if err != nil {
		t.Fatal(err)
	}
	label, err := readProto(filepath.Join(dir, "label.pb"), graph.Type{})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	said := must("lower", "--dim", fmt.Sprintf("N=%d", x.value.Shape[0]), small, "-o", step)
	took := time.Since(start)
	file, err := os.ReadFile(step)
	if err != nil {
		t.Fatal(err)
	}
	p, err := binary.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	res, err := sim.Run(context.Background(), p, map[string][]byte{"x0": rawBytes(t, x.value), "logits_target": rawBytes(t, label.value)}, sim.Options{Workers: runtime.NumCPU()})
	if err != nil {
		t.Fatal(err)
	}
	ran := time.Since(start)
	if p.Cost.MACs < exactMACs {
		inputs := []string{"--in", "x0=" + filepath.Join(dir, "input_0.pb"), "--in", "logits_target=" + filepath.Join(dir, "label.pb")}
		sum := func(args ...string) string {
			out := filepath.Join(tmp, "out.npz")
			os.Remove(out)
			must(append(append(args, inputs...), "-o", out)...)
			file, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%x", sha256.Sum256(file))
		}
		if sum("run", step) != sum("run", "--numerics", "ref-edge", "--dim", fmt.Sprintf("N=%d", x.value.Shape[0]), small) {
			t.Error("the simulator and the numeric contract give other bits")
		}
	}
	got := map[string]*op.Array{}
	for _, y := range p.Outputs {
		elem, _ := graph.ParseDataType(y.Type)
		a, err := op.FromTensor(&graph.Tensor{Elem: elem, Dims: y.Shape, Data: graph.Bytes(res.Outputs[y.Name])}, false)
		if err != nil {
			t.Fatal(err)
		}
		got[y.Name] = a
	}
	largest := 0.0
	for _, r := range want.Grads {
		largest = max(largest, r.Norm)
	}
	// distance returns how far a gradient is from norm and entries that are known, relative to the norm.
	distance := func(a *op.Array, norms float64, at func(i int) float64, k string) float64 {
		r := want.Grads[k]
		e := math.Abs(norm(a)-norms) / r.Norm
		for i := range r.At {
			j, _ := strconv.Atoi(i)
			e = max(e, math.Abs(a.Float(j)-at(j))/r.Norm)
		}
		return e
	}
	far, worst := map[string]float64{}, 0.0
	for _, k := range slices.Sorted(maps.Keys(want.Grads)) {
		r, a := want.Grads[k], got[k+"_grad"]
		if a == nil {
			t.Errorf("no gradient of %s", k)
			continue
		}
		if r.Norm < 1e-5*largest { // zero but for rounding
			if norm(a) > 1e-4*largest {
				t.Errorf("gradient of %s: norm %g, want about %g", k, norm(a), r.Norm)
			}
			continue
		}
		e := distance(a, r.Norm, func(i int) float64 { return r.At[strconv.Itoa(i)] }, k)
		worst = max(worst, e)
		if e > npuTolerance {
			far[k] = e
		}
	}
	if len(far) > 0 {
		// In deep networks with batch normalization over few samples the reference itself is this far from float64: there
		// no gradient may be farther from float64 than the reference is at its worst.
		exact, _ := runTraining(t, train, dir, "--float64")
		reference := 0.0
		for k, r := range want.Grads {
			if r.Norm < 1e-5*largest {
				continue
			}
			x := exact[k+"_grad"]
			e := math.Abs(norm(x)-r.Norm) / r.Norm
			for i, v := range r.At {
				j, _ := strconv.Atoi(i)
				e = max(e, math.Abs(x.Float(j)-v)/r.Norm)
			}
			reference = max(reference, e)
		}
		for _, k := range slices.Sorted(maps.Keys(far)) {
			x := exact[k+"_grad"]
			if e := distance(got[k+"_grad"], norm(x), x.Float, k); e > max(npuTolerance, reference) {
				t.Errorf("gradient of %s: %.2g from the reference, %.2g from float64, from which the reference is %.2g at its worst", k, far[k], e, reference)
			}
		}
		t.Logf("%d gradients are farther than %g from the reference, which is %.2g from float64 at its worst", len(far), npuTolerance, reference)
	}
	loss := math.Abs(got["loss"].Float(0)-want.Loss) / want.Loss
	if loss > 1e-4 {
		t.Errorf("loss %g, want %g", got["loss"].Float(0), want.Loss)
	}
	t.Logf("%s; lowered in %s, run in %s; loss %.1e, gradients %.1e from the reference", strings.TrimSpace(said), took.Round(time.Millisecond),
		ran.Round(time.Millisecond), loss, worst)
}

func rawBytes(t *testing.T, a *op.Array) []byte {
	t.Helper()
	raw, err := a.Tensor().Data.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(raw)
}
