package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gradtool/graph"
	"gradtool/onnxio"
)

// viewsOfInputs makes outputs of a model that are views of an input or a constant, and an output that is an input.
func viewsOfInputs(r *rapid.T, m *graph.Model) {
	g := m.Graph
	for i, v := range g.Inputs {
		if v.Type.Kind != graph.KindTensor || rapid.IntRange(0, 3).Draw(r, "") != 0 {
			continue
		}
		y := v
		for range rapid.IntRange(0, 2).Draw(r, "") {
			n := g.NewNode("", []string{"Identity", "Flatten"}[rapid.IntRange(0, 1).Draw(r, "")], []*graph.Value{y}, []string{m.Fresh(fmt.Sprintf("view%d", i))})
			g.Append(n)
			y = n.Out[0]
		}
		g.AddOutput(y)
	}
}

// TestRandomCompositions takes random models, and gradients of them, through stages in random order. Outputs keep their bits, but for
// signs of zeros in gradients; arenas keep to budgets and give the results of an ordinary run; programs give the bits of the numeric
// contract. More of them:
//
//	go test ./cmd/gradtool -run RandomCompositions -rapid.checks=5000
func TestRandomCompositions(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	rapid.Check(t, func(r *rapid.T) {
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "") }
		smooth := draw(2) == 0
		m := randomFile(t, r, file("m.onnx"), smooth)
		if draw(3) == 0 {
			viewsOfInputs(r, m)
			saveFile(t, file("m.onnx"), m)
		}
		same := exactBits
		if smooth && draw(2) == 0 {
			if err := inProcess(t, "grad", file("m.onnx"), "--wrt", "inputs", "-o", file("g.onnx")); err == nil {
				if err := os.Rename(file("g.onnx"), file("m.onnx")); err != nil {
					r.Fatal(err)
				}
				same = sameNumbers
			}
		}
		base := reference(file("m.onnx"), "")
		if base.model == nil || base.err != nil || base.random {
			r.Skip("it is not evaluated")
		}
		var dims []string
		for i, name := range symbolsOf(t, file("m.onnx")) {
			dims = append(dims, "--dim", fmt.Sprintf("%s=%d", name, 2+i%3))
		}
		at := file("m.onnx")
		var done []string
		for i := range 1 + draw(4) {
			step := []string{"prune", "fuse", "fuse --emit flat", "inline", "plan", "plan --keep-order", "plan --budget %d%%", "plan --budget %d%% --barrier none",
				"plan --budget %d%% --barrier shape --policy dots", "plan --budget %d%% --keep-order", "lower"}[draw(11)]
			if strings.Contains(step, "%") {
				step = fmt.Sprintf(step, 20+draw(81))
			}
			done = append(done, step)
			to := file(fmt.Sprintf("%d.onnx", i))
			args := append(strings.Fields(step), at, "-o", to)
			if verb, _, _ := strings.Cut(step, " "); verb == "plan" || verb == "lower" {
				args = append(args, dims...)
			}
			if strings.HasPrefix(step, "plan --budget") {
				args = append(args, "--report", file("r.json"))
			}
			if err := inProcess(t, args...); err != nil {
				switch text := err.Error(); {
				case strings.Contains(text, "internal error"), strings.Contains(text, "please report"):
				case strings.Contains(step, "--budget") && strings.HasPrefix(text, "budget "),
					step == "lower" && (strings.Contains(text, "cannot be lowered") || strings.Contains(text, "give every dimension a size")):
					continue // at stays
				}
				r.Fatalf("%v: %v\n%s", done, err, m)
			}
			switch {
			case step == "lower":
				checkProgram(t, r, to, at, dims, file)
				continue
			case strings.HasPrefix(step, "plan"):
				checkArena(t, r, to, file)
			}
			if strings.HasPrefix(step, "plan --budget") {
				checkBudget(r, file("r.json"))
			}
			at = to
			got, _, err := evaluable(at, "")
			if err != nil {
				r.Fatalf("%v: %v\n%s", done, err, m)
			}
			out, err := evaluate(got, base.in, 1)
			if err != nil {
				r.Fatalf("%v: %v\n%s", done, err, m)
			}
			for k, want := range base.out {
				if !same(want, out[k]) {
					r.Fatalf("%v: %s was %s, is %s\n%s", done, got.Graph.Outputs[k].Name, want, out[k], m)
				}
			}
		}
	})
}

// symbolsOf returns the symbols in the types of a model's inputs, as its file has them.
func symbolsOf(t *testing.T, path string) []string {
	t.Helper()
	m, closer, err := onnxio.Open(path, onnxio.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	return inputSymbols(m)
}

// checkArena runs a planned model in its arena.
func checkArena(t *testing.T, r *rapid.T, path string, file func(string) string) {
	for _, args := range [][]string{{"run", path, "--random", "--plan", "--out-dir", file("plan")}} {
		if err := inProcess(t, args...); err != nil {
			r.Fatalf("%v: %v", args, err)
		}
	}
	p := planned(r, path)
	var dims []string
	for name, n := range p {
		dims = append(dims, "--dim", fmt.Sprintf("%s=%d", name, n))
	}
	if err := inProcess(t, append([]string{"run", path, "--random", "--out-dir", file("free")}, dims...)...); err != nil {
		r.Fatal(err)
	}
	equalFolders(r, file("plan"), file("free"))
}

// planned returns the sizes that the plan of a model is for.
func planned(r *rapid.T, path string) map[string]int64 {
	m, closer, err := onnxio.Open(path, onnxio.ReadOptions{})
	if err != nil {
		r.Fatal(err)
	}
	defer closer.Close()
	var p struct {
		Dims map[string]int64 `json:"dims"`
	}
	if err := json.Unmarshal([]byte(m.Meta.Get("gradtool.plan")), &p); err != nil {
		r.Fatal(err)
	}
	return p.Dims
}

// checkBudget compares the arena in a report with the budget there.
func checkBudget(r *rapid.T, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		r.Fatal(err)
	}
	var x struct {
		Budget int64 `json:"budget"`
		Arena  int64 `json:"arena"`
	}
	if err := json.Unmarshal(data, &x); err != nil {
		r.Fatal(err)
	}
	if x.Arena > x.Budget {
		r.Fatalf("an arena of %d bytes within a budget of %d", x.Arena, x.Budget)
	}
}

// checkProgram runs a program, and the model that it was made of by the numeric contract.
func checkProgram(t *testing.T, r *rapid.T, program, model string, dims []string, file func(string) string) {
	for _, args := range [][]string{
		{"run", program, "--random", "--out-dir", file("sim")},
		append([]string{"run", model, "--random", "--numerics", "ref-edge", "--out-dir", file("contract")}, dims...),
	} {
		if err := inProcess(t, args...); err != nil {
			r.Fatalf("%v: %v", args, err)
		}
	}
	equalFolders(r, file("sim"), file("contract"))
}

// equalFolders compares the files of two folders, which it removes.
func equalFolders(r *rapid.T, a, b string) {
	read := func(dir string) map[string]string {
		out := map[string]string{}
		list, err := os.ReadDir(dir)
		if err != nil {
			r.Fatal(err)
		}
		for _, f := range list {
			data, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				r.Fatal(err)
			}
			out[f.Name()] = string(data)
		}
		os.RemoveAll(dir)
		return out
	}
	if x, y := read(a), read(b); len(x) == 0 || !maps.Equal(x, y) {
		r.Fatalf("%s and %s differ", filepath.Base(a), filepath.Base(b))
	}
}
