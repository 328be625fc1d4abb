package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/onnxio"
)

// written parses a model and writes it to a file.
func written(t *testing.T, text string) string {
	t.Helper()
	m, err := graph.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := onnxio.WriteFile(path, m); err != nil {
		t.Fatal(err)
	}
	return path
}

// operators counts the operators of a model, subgraphs included.
func operators(t *testing.T, path string) map[string]int {
	t.Helper()
	m, c, err := onnxio.Open(path, onnxio.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out := map[string]int{}
	for n := range m.Graph.AllNodes() {
		out[n.Op]++
	}
	return out
}

// TestChunk computes loss tails of many spellings in pieces and compares them with the whole ones, in double precision and in the
// models' own, for several numbers of rows: none, fewer than a piece, and some that leave a rest.
func TestChunk(t *testing.T) {
	const head = `<ir_version: 10, opset_import: ["" : 21]> g `
	for _, c := range []struct {
		name, model, loss string
		wrt               string
		by                string // what --chunk says; empty: rows=4 and classes=64 in turn
		why               string // part of the reason why nothing was done
	}{
		{name: "weights by class", loss: "softmax-cross-entropy,axis=-1",
			model: `(float[N,3,8] x, float[128,8] w) => (float[N,3,128] y) { v = Transpose<perm=[1,0]>(w) y = MatMul(x, v) }`},
		{name: "weights by depth", loss: "softmax-cross-entropy,axis=-1",
			model: `(float[N,3,8] x, float[8,128] w) => (float[N,3,128] y) { y = MatMul(x, w) }`},
		{name: "bias", loss: "softmax-cross-entropy,axis=-1",
			model: `(float[N,3,8] x, float[128,8] w, float[128] b) => (float[N,3,128] y) { v = Transpose<perm=[1,0]>(w) z = MatMul(x, v) y = Add(b, z) }`},
		{name: "gemm", loss: "softmax-cross-entropy",
			model: `(float[N,8] x, float[128,8] w, float[128] b) => (float[N,128] y) { y = Gemm<transB=1>(x, w, b) }`},
		{name: "gemm by depth", loss: "softmax-cross-entropy",
			model: `(float[N,8] x, float[8,128] w, float[128] b) => (float[N,128] y) { y = Gemm(x, w, b) }`},
		{name: "sum", loss: "softmax-cross-entropy,reduction=sum",
			model: `(float[N,8] x, float[128,8] w) => (float[N,128] y) { y = Gemm<transB=1>(x, w) }`},
		{name: "ignored rows", loss: "softmax-cross-entropy,ignore=0,axis=2",
			model: `(float[N,2,8] x, float[128,8] w, float[128] b) => (float[N,2,128] y) { v = Transpose(w) z = MatMul(x, v) y = Add(z, b) }`},
		{name: "tied", loss: "softmax-cross-entropy,axis=2",
			model: `(int64[N,5] x, float[128,8] w) => (float[N,5,128] y) { e = Gather(w, x) h = Tanh(e) v = Transpose(w) y = MatMul(h, v) }`},
		{name: "flattened", loss: "softmax-cross-entropy",
			model: `(float[N,2,8] x, float[8,128] w) => (float[M,128] y) { z = MatMul(x, w) s = Constant<value: tensor = int64[2] {-1,128}>() y = Reshape(z, s) }`},
		{name: "frozen weights", loss: "softmax-cross-entropy", wrt: "x", by: "rows=4",
			model: `(float[N,8] x, float[128,8] w) => (float[N,128] y) { y = Gemm<transB=1>(x, w) }`},
		{name: "weights only", loss: "softmax-cross-entropy", wrt: "w",
			model: `(float[N,8] x, float[128,8] w) => (float[N,128] y) { y = Gemm<transB=1>(x, w) }`},
		{name: "fixed rows", loss: "softmax-cross-entropy",
			model: `(float[8,8] x, float[128,8] w, float[128] b) => (float[8,128] y) { y = Gemm<transB=1>(x, w, b) }`},
		{name: "double", loss: "softmax-cross-entropy",
			model: `(double[N,8] x, double[128,8] w) => (double[N,128] y) { y = Gemm<transB=1>(x, w) }`},
		{name: "sixteen bits", loss: "softmax-cross-entropy", by: "rows=4",
			model: `(float16[N,8] x, float16[128,8] w, float16[128] b) => (float16[N,128] y) { y = Gemm<transB=1>(x, w, b) }`},
		{name: "loss in the model", loss: "",
			model: `(float[N,8] x, float[128,8] w, float[128] b, int64[N] t) => (float y) { z = Gemm<transB=1>(x, w, b) y = SoftmaxCrossEntropyLoss(z, t) }`},
		{name: "loss in the model, ignored rows", loss: "",
			model: `(float[N,8] x, float[128,8] w, int64[N] t) => (float y) { z = Gemm<transB=1>(x, w) y = SoftmaxCrossEntropyLoss<ignore_index=1, reduction="sum">(z, t) }`},

		{name: "shared weights", loss: "softmax-cross-entropy", why: "read by several nodes",
			model: `(float[N,8] x, float[128,8] w) => (float[N,128] y, float[N,128] s) { y = Gemm<transB=1>(x, w) s = Sigmoid(y) }`},
		{name: "classes first", loss: "softmax-cross-entropy,axis=1", why: "there is no softmax cross entropy",
			model: `(float[N,8,3] x, float[128,8] w) => (float[N,128,3] y) { y = MatMul(w, x) }`},
		{name: "convolution", loss: "softmax-cross-entropy,axis=-1", why: "made by",
			model: `(float[N,3,16] x, float[4,3,1] w) => (float[N,4,16] y) { y = Conv(x, w) }`},
		{name: "prime", loss: "softmax-cross-entropy", by: "classes=10", why: "no divisor",
			model: `(float[N,8] x, float[74,8] w) => (float[N,74] y) { y = Gemm<transB=1>(x, w) }`},
		{name: "scaled", loss: "softmax-cross-entropy", why: "scales or transposes",
			model: `(float[N,8] x, float[128,8] w) => (float[N,128] y) { y = Gemm<transB=1, alpha=0.5>(x, w) }`},
		{name: "small", loss: "softmax-cross-entropy", by: "auto", why: "less than",
			model: `(float[N,8] x, float[128,8] w) => (float[N,128] y) { y = Gemm<transB=1>(x, w) }`},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := written(t, head+c.model)
			dir := t.TempDir()
			whole := filepath.Join(dir, "whole.onnx")
			args := []string{"grad", "-q", "--of", "y", model, "-o", whole}
			if c.loss != "" {
				args = append(args, "--loss", c.loss)
			}
			for _, w := range strings.Fields(strings.ReplaceAll(cond(c.wrt == "", "inputs", c.wrt), ",", " ")) {
				args = append(args, "--wrt", w)
			}
			if code, _, errs := gradtool(t, "", args...); code != 0 {
				t.Fatal(errs)
			}
			pruned := filepath.Join(dir, "pruned.onnx")
			keep := []string{"prune", "-q", "--keep", "*_grad", whole, "-o", pruned, "--keep", cond(c.loss == "", "y", "loss")}
			if strings.Contains(c.model, "Sigmoid") {
				keep = append(keep, "--keep", "s")
			}
			if code, _, errs := gradtool(t, "", keep...); code != 0 {
				t.Fatal(errs)
			}
			ways := []string{c.by}
			if c.by == "" {
				ways = []string{"rows=4", "classes=64"}
			}
			for _, by := range ways {
				out := filepath.Join(dir, by+".onnx")
				code, _, errs := gradtool(t, "", "fuse", "--emit", "flat", "--chunk", by, pruned, "-o", out)
				if code != 0 {
					t.Fatal(errs)
				}
				count := operators(t, out)
				done := count["Loop"]+count["Scan"] > 0
				if c.why != "" {
					if done || !strings.Contains(errs, c.why) {
						t.Errorf("%s: done %v, said %q, want %q", by, done, errs, c.why)
					}
					continue
				}
				if !done {
					t.Errorf("%s: nothing was done: %s", by, errs)
					continue
				}
				for _, n := range []int{0, 1, 3, 8} {
					tol := "1e-5"
					if strings.Contains(c.model, "float16") {
						tol = "2e-3"
					}
					dims := []string{"--dim", fmt.Sprintf("N=%d", n)}
					if strings.Contains(c.model, "[8,8] x") {
						dims = nil
					}
					if code, text, errs := gradtool(t, "", append([]string{"check", "--equiv", "--rtol", tol, "--atol", tol, pruned, out}, dims...)...); code != 0 {
						t.Errorf("%s with %d rows:\n%s%s", by, n, text, errs)
					}
				}
				if again := filepath.Join(dir, "again.onnx"); c.by == "" {
					if code, _, errs := gradtool(t, "", "fuse", "-q", "--emit", "flat", "--chunk", by, out, "-o", again); code != 0 {
						t.Fatal(errs)
					}
					if a := operators(t, again); fmt.Sprint(a) != fmt.Sprint(count) {
						t.Errorf("%s: a second run makes %v of %v", by, a, count)
					}
				}
			}
		})
	}
}

func cond(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}
