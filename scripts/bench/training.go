//go:build ignore

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/onnxio"
)

var kept = flag.String("train", "", "folder in which training graphs are kept; default: none")

// bench is what programs that measure training graphs have in common.
type bench struct {
	tmp    string // of the program
	train  string // of training graphs
	missed int
	parts  []part // of plan_budgets
}

// part is what one network adds to the means: FLOPs in percent on top for each share, -1 without a plan.
type part struct {
	name string
	more []float64
}

func (b *bench) verdict(ok bool) string {
	if ok {
		return "ok"
	}
	b.missed++
	return "MISSED"
}

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	return v
}

func check(err error) { must(0, err) }

// modelDirs returns the folders to measure.
func modelDirs() []string {
	var roots []string
	if env := os.Getenv("GRADTOOL_MODELS"); env != "" {
		roots = filepath.SplitList(env)
	} else {
		dir := must(os.Getwd())
		for at := dir; ; at = filepath.Dir(at) {
			roots = append(roots, filepath.Join(at, ".cache", "models"), filepath.Join(at, "models"))
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	var dirs []string
	for _, r := range roots {
		list, _ := filepath.Glob(filepath.Join(r, "*", "refs.json"))
		for _, f := range list {
			d := filepath.Dir(f)
			name := filepath.Base(d)
			seen := slices.ContainsFunc(dirs, func(e string) bool { return filepath.Base(e) == name })
			if !seen && (flag.NArg() == 0 || slices.Contains(flag.Args(), name)) {
				dirs = append(dirs, d)
			}
		}
	}
	slices.SortFunc(dirs, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	return dirs
}

// build makes the program.
func (b *bench) build() {
	b.tmp = must(os.MkdirTemp("", "gradtool-bench-"))
	if b.train = b.tmp; *kept != "" {
		b.train = *kept
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(b.tmp, "gradtool"), "./cmd/gradtool")
	cmd.Stderr = os.Stderr
	check(cmd.Run())
}

// training returns the file of the model's training graph.
func (b *bench) training(dir string) string {
	file := filepath.Join(b.train, filepath.Base(dir)+".onnx")
	if _, err := os.Stat(file); err == nil {
		return file
	}
	var refs struct {
		Kind string `json:"loss_kind"`
	}
	check(json.Unmarshal(must(os.ReadFile(filepath.Join(dir, "refs.json"))), &refs))
	axis := "1"
	if strings.Contains(refs.Kind, "last axis") {
		axis = "-1"
	}
	whole := file + ".whole"
	for _, args := range [][]string{
		{"grad", "-q", "--loss", "softmax-cross-entropy,axis=" + axis, filepath.Join(dir, "model.onnx"), "-o", whole},
		{"prune", "-q", whole, "-o", file},
	} {
		cmd := exec.Command(filepath.Join(b.tmp, "gradtool"), args...)
		cmd.Stderr = os.Stderr
		check(cmd.Run())
	}
	os.Remove(whole)
	return file
}

// exported returns the batch that the model was exported with.
func exported(dir string) int64 {
	d, err := onnxio.ReadDatum(filepath.Join(dir, "input_0.pb"), graph.Type{Kind: graph.KindTensor})
	if err != nil || d.Tensor == nil || len(d.Tensor.Dims) == 0 {
		return 8
	}
	return d.Tensor.Dims[0]
}

// load returns the training graph with N bound and types known.
func load(file string, n int64, sgd bool) (*graph.Model, io.Closer) {
	m, c, err := onnxio.Open(file, onnxio.ReadOptions{})
	check(err)
	check(m.Graph.Sort())
	for v := range m.Graph.Values() {
		for i, d := range v.Type.Shape {
			v.Type.Shape[i] = d.Eval(map[string]int64{"N": n})
		}
	}
	check(op.Upgrade(m))
	if sgd {
		descend(m)
	}
	must(op.Infer(m))
	return m, c
}

// cpu returns the processor time of this process so far, in seconds: other programs on the machine do not count.
func cpu() float64 {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// descend gives each parameter its update, at the end, as a training loop does.
func descend(m *graph.Model) {
	g := m.Graph
	lr := g.AddInput(m.Fresh("lr"), graph.TensorOf(graph.Float, graph.ShapeOf()))
	params := map[string]*graph.Value{}
	for _, v := range g.Inits {
		params[v.Name] = v
	}
	var outs []*graph.Value
	for _, y := range g.Outputs {
		name, ok := strings.CutSuffix(y.Name, "_grad")
		p := params[name]
		if !ok || p == nil {
			outs = append(outs, y)
			continue
		}
		g.Inputs = append(g.Inputs, p)
		step := g.NewNode("", "Mul", []*graph.Value{lr, y}, []string{m.Fresh(name + "_step")})
		next := g.NewNode("", "Sub", []*graph.Value{p, step.Out[0]}, []string{name + "_next"})
		for _, n := range []*graph.Node{step, next} {
			n.Meta.Set(graph.MetaRole, graph.RoleOptimizer)
			g.Append(n)
		}
		outs = append(outs, next.Out[0])
	}
	g.SetOutputs(outs...)
}

// processes plans the smallest model in 20 processes, which must write the same bytes on one processor and on all.
func (b *bench) processes(dirs []string, flags ...string) {
	var file string
	var least int64
	for _, d := range dirs {
		f := b.training(d)
		if size := must(os.Stat(f)).Size(); file == "" || size < least {
			file, least = f, size
		}
	}
	var first []byte
	same := true
	for k := range 20 {
		out := filepath.Join(b.tmp, "planned.onnx")
		args := append([]string{"plan", "-q", "--dim", "N=8", file, "-o", out}, flags...)
		cmd := exec.Command(filepath.Join(b.tmp, "gradtool"), args...)
		cmd.Stderr = os.Stderr
		if k%2 == 0 {
			cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		}
		check(cmd.Run())
		raw := must(os.ReadFile(out))
		if first == nil {
			first = raw
		}
		same = same && bytes.Equal(first, raw)
	}
	fmt.Printf("\n%s planned in 20 processes: the same bytes: %s\n", strings.TrimSuffix(filepath.Base(file), ".onnx"), b.verdict(same))
}
