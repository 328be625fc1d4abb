package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A budget that the logits of a loss are in the way of is refused with what would help; any other is not.
func TestRefusalNamesPieces(t *testing.T) {
	dir := t.TempDir()
	model := written(t, `<ir_version: 10, opset_import: ["" : 21]> g (float[N,8] x, float[50000,8] w) => (float[N,50000] y) { y = Gemm<transB=1>(x, w) }`)
	whole, lone := filepath.Join(dir, "whole.onnx"), filepath.Join(dir, "lone.onnx")
	for _, args := range [][]string{
		{"grad", "-q", "--loss", "softmax-cross-entropy", "--wrt", "inputs", "--of", "y", model, "-o", whole},
		{"prune", "-q", "--keep", "loss", "--keep", "*_grad", whole, "-o", lone},
	} {
		if code, _, errs := gradtool(t, "", args...); code != 0 {
			t.Fatal(errs)
		}
	}
	chain := written(t, `<ir_version: 10, opset_import: ["" : 21]> g (float[N,8] x) => (float[N,8] y) { a = Sin(x) b = Cos(x) c = Mul(a, x) y = Mul(b, c) }`)
	fixed := written(t, `<ir_version: 10, opset_import: ["" : 21]> g (float[1,N] x) => (float[1,N] y) { a = Sin(x) b = Cos(x) c = Mul(a, x) y = Mul(b, c) }`)
	parts := filepath.Join(dir, "parts.onnx")
	if code, _, errs := gradtool(t, "", "fuse", "-q", "--chunk", "batch=4", chain, "-o", parts); code != 0 {
		t.Fatal(errs)
	}
	loop := written(t, `<ir_version: 10, opset_import: ["" : 21]> g (float[N,8] x) => (float[N,8] y) {
  n = Constant<value_int: int = 16>() d = Constant<value_int: int = 1>() c = Cast<to: int = 9>(d)
  y = Loop(n, c, x) <body: graph = b (int64 i, bool k, float[N,8] h) => (bool l, float[N,8] z) { l = Identity(k) z = Tanh(h) }>
}`)
	stack, again := filepath.Join(dir, "stack.onnx"), filepath.Join(dir, "again.onnx")
	for how, file := range map[string]string{"stack": stack, "recompute": again} {
		if code, _, errs := gradtool(t, "", "grad", "-q", "--wrt", "inputs", "--loop", how, loop, "-o", file); code != 0 {
			t.Fatal(errs)
		}
	}
	for _, c := range []struct{ file, want string }{
		{stack, "grad --loop-costs"},
		{again, "--curve shows"},
		{whole, `but not this one: the logits "y" are a graph output, drop it`},
		{lone, `--chunk auto" computes the loss in pieces, which need about`},
		{chain, `fuse --chunk batch=8" computes the step by parts of the batch`},
		{parts, "the step is computed in 4 parts of its batch"},
		{fixed, "--curve shows"},
	} {
		code, _, errs := gradtool(t, "", "plan", "--dim", "N=256", "--budget", "2%", c.file, "-o", filepath.Join(dir, "no.onnx"))
		if code != 1 || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %s", filepath.Base(c.file), code, errs)
		}
	}
}
