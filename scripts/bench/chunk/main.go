// Chunk measures what computing a loss tail piece by piece saves (fuse --chunk): peak live memory by memplan's account of values,
// and what ONNX Runtime takes on top of the loaded model, each run in a fresh process.
//
//	go run -tags ort ./scripts/bench/chunk [-rows 1024,2048,4096] [-classes 50257] [-depth 768]
//
// The tail is that of GPT-2 small: logits = x w^T with tied weights [classes, depth], softmax cross entropy, and the gradients of x
// and w. Without -tags ort the account alone is printed.
package main

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/ort"
	"gradtool/internal/size"
	"gradtool/internal/table"
	"gradtool/memplan"
	"gradtool/onnxio"
)

func main() {
	log.SetFlags(0)
	rows := flag.String("rows", "1024,2048,4096", "numbers of rows, separated by commas")
	classes := flag.Int64("classes", 50257, "number of classes")
	depth := flag.Int64("depth", 768, "columns of x")
	child := flag.String("child", "", "run this model file once and print bytes and seconds")
	threads := flag.Int("threads", 2, "threads of ONNX Runtime")
	flag.Parse()
	b := &bench{classes: *classes, depth: *depth, threads: *threads}
	if *child != "" {
		n, err := strconv.ParseInt(*rows, 10, 64)
		if err == nil {
			err = b.once(*child, n)
		}
		if err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := b.run(strings.Split(*rows, ",")); err != nil {
		log.Fatal(err)
	}
}

type bench struct {
	classes, depth int64
	threads        int
}

// run measures each number of rows in each way.
func (b *bench) run(rows []string) error {
	dir, err := os.MkdirTemp("", "bench-chunk-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, whole := filepath.Join(dir, "gradtool"), filepath.Join(dir, "whole.onnx")
	if out, err := exec.Command("go", "build", "-o", bin, "./cmd/gradtool").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	model := filepath.Join(dir, "model.onnx")
	if err := b.model(model); err != nil {
		return err
	}
	grad := filepath.Join(dir, "grad.onnx")
	for _, args := range [][]string{
		{"grad", "-q", "--loss", "softmax-cross-entropy,axis=-1", "--wrt", "w", "--wrt", "x", model, "-o", grad},
		{"prune", "-q", "--keep", "loss", "--keep", "*_grad", grad, "-o", whole},
	} {
		if out, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	t := table.New(table.Column{Title: "rows", Right: true}, table.Column{Title: "way"}, table.Column{Title: "live", Right: true},
		table.Column{Title: "", Right: true}, table.Column{Title: "runtime", Right: true}, table.Column{Title: "", Right: true}, table.Column{Title: "seconds", Right: true})
	for _, r := range rows {
		n, err := strconv.ParseInt(r, 10, 64)
		if err != nil {
			return err
		}
		var first [2]float64
		for i, way := range []string{"whole", "rows", "classes"} {
			path := whole
			if way != "whole" {
				path = filepath.Join(dir, way+".onnx")
				if out, err := exec.Command(bin, "fuse", "-q", "--emit", "flat", "--chunk", way, "--dim", "N="+r, whole, "-o", path).CombinedOutput(); err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
			}
			live, err := peak(path, n)
			if err != nil {
				return err
			}
			taken, seconds, err := fresh(path, r, b)
			if err != nil {
				return err
			}
			if i == 0 {
				first = [2]float64{float64(live), taken}
			}
			t.Row(r, way, size.Bytes(live), times(first[0]/float64(live)), mega(taken), times(first[1]/taken), fmt.Sprintf("%.2f", seconds))
		}
	}
	fmt.Printf("tail of %d classes and depth %d: the most bytes alive at one time beside inputs and weights, and what ONNX Runtime %s takes on top of the loaded model\n", b.classes, b.depth, ort.Version())
	return t.Write(os.Stdout, table.Options{})
}

func times(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) || x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fx", x)
}

func mega(bytes float64) string {
	if bytes == 0 {
		return "-"
	}
	return size.Bytes(int64(bytes))
}

// model writes the model whose gradient has the tail.
func (b *bench) model(path string) error {
	m := graph.NewModel("tail", 18)
	g := m.Graph
	raw := make([]byte, 4*b.classes*b.depth)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(raw); i += 4 {
		binary.LittleEndian.PutUint32(raw[i:], math.Float32bits(float32(rng.NormFloat64()*0.02)))
	}
	x := g.AddInput("x", graph.TensorOf(graph.Float, graph.Shape{graph.Sym("N"), graph.Known(b.depth)}))
	w := g.AddInit("w", &graph.Tensor{Elem: graph.Float, Dims: []int64{b.classes, b.depth}, Data: graph.Bytes(raw)})
	turn := g.NewNode("", "Transpose", []*graph.Value{w}, []string{"turned"}, graph.IntsAttr("perm", 1, 0))
	mul := g.NewNode("", "MatMul", []*graph.Value{x, turn.Out[0]}, []string{"logits"})
	g.Append(turn, mul)
	mul.Out[0].Type = graph.TensorOf(graph.Float, graph.Shape{graph.Sym("N"), graph.Known(b.classes)})
	g.AddOutput(mul.Out[0])
	return onnxio.WriteFile(path, m)
}

// peak returns the most bytes alive at one time.
func peak(path string, rows int64) (int64, error) {
	m, c, err := onnxio.Open(path, onnxio.ReadOptions{})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := op.Upgrade(m); err != nil {
		return 0, err
	}
	if _, err := op.Infer(m); err != nil {
		return 0, err
	}
	l, err := memplan.Analyze(m.Graph, nil, memplan.Options{Dims: map[string]int64{"N": rows}})
	if err != nil {
		return 0, err
	}
	return l.Peak, nil
}

// fresh runs the model in a process of its own.
func fresh(path, rows string, b *bench) (bytes, seconds float64, err error) {
	if ort.Available() != nil {
		return 0, 0, nil
	}
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	out, err := exec.Command(self, "-child", path, "-rows", rows, "-classes", fmt.Sprint(b.classes), "-depth", fmt.Sprint(b.depth), "-threads", fmt.Sprint(b.threads)).Output()
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscan(string(out), &bytes, &seconds)
	return bytes, seconds, err
}

// once runs the model and prints by how much memory grew since it was loaded, and what the run took.
func (b *bench) once(path string, rows int64) error {
	s, err := ort.Load(path, []string{"x", "logits_target"}, []ort.Output{
		{Name: "loss", Elem: int32(graph.Float), Shape: []int64{}},
		{Name: "w_grad", Elem: int32(graph.Float), Shape: []int64{b.classes, b.depth}},
		{Name: "x_grad", Elem: int32(graph.Float), Shape: []int64{rows, b.depth}}}, ort.Options{Threads: b.threads, Discard: true})
	if err != nil {
		return err
	}
	defer s.Close()
	rng := rand.New(rand.NewPCG(3, 4))
	x, labels := make([]byte, 4*rows*b.depth), make([]byte, 8*rows)
	for i := 0; i < len(x); i += 4 {
		binary.LittleEndian.PutUint32(x[i:], math.Float32bits(float32(rng.NormFloat64())))
	}
	for i := 0; i < len(labels); i += 8 {
		binary.LittleEndian.PutUint64(labels[i:], rng.Uint64N(uint64(b.classes)))
	}
	in := []ort.Tensor{{Name: "x", Elem: int32(graph.Float), Shape: []int64{rows, b.depth}, Data: x}, {Name: "logits_target", Elem: int32(graph.Int64), Shape: []int64{rows}, Data: labels}}
	before := status("VmRSS")
	// The peak up to now is forgotten, that of loading among it.
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		before = status("VmHWM")
	}
	start := time.Now()
	if _, err := s.Run(in); err != nil {
		return err
	}
	taken := time.Since(start)
	fmt.Println(status("VmHWM")-before, taken.Seconds())
	return nil
}

// status returns an entry of the process's status in bytes, 0 where there is none.
func status(name string) float64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), name+":"); ok {
			n, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return n * 1024
		}
	}
	return 0
}
