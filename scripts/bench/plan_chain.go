//go:build ignore

// Program plan_chain measures plans within a budget of chains: n layers of one elementwise operator, a loss, and the gradient
// of the input. Memory of the order of the square root of n is known to be enough for computing each layer twice (Chen, Xu,
// Zhang and Guestrin, 2016). Each row is one run of "plan --budget", reading and writing included. It ends with 1 if a plan
// misses its aim.
//
//	plan_chain [LAYERS...]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"gradtool/graph"
	"gradtool/onnxio"
)

func main() {
	flag.Parse()
	b := &bench{}
	b.build()
	defer os.RemoveAll(b.tmp)
	layers := []int{100, 300, 1000}
	if flag.NArg() > 0 {
		layers = nil
		for _, a := range flag.Args() {
			layers = append(layers, must(strconv.Atoi(a)))
		}
	}
	fmt.Println("chains of n layers with a loss and a gradient, within a budget of 2.5 sqrt(n) layers; peak in layers and in sqrt(n) layers;")
	fmt.Println("aims: peak within the budget, at most 2 n layers computed, 1 s by the clock (of 1,000 layers), reading and writing included")
	fmt.Printf("%6s %6s %10s %12s %8s %9s %10s %8s %7s\n", "n", "nodes", "own", "peak", "layers", "sqrt(n)", "computed", "s", "cpu s")
	for _, n := range layers {
		b.chain(n)
	}
	if b.missed > 0 {
		fmt.Printf("\n%d aims missed\n", b.missed)
		os.Exit(1)
	}
}

// chain prints the row of n layers.
func (b *bench) chain(n int) {
	const width = 1 << 16
	m := graph.NewModel("chain", 21)
	g := m.Graph
	x := g.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(1, width)))
	for i := range n {
		k := g.NewNode("", "Sin", []*graph.Value{x}, []string{fmt.Sprint("y", i)})
		k.Name = fmt.Sprint("layer", i)
		g.Append(k)
		x = k.Out[0]
	}
	x.Type = graph.TensorOf(graph.Float, graph.ShapeOf(1, width))
	g.AddOutput(x)
	file := func(s string) string { return filepath.Join(b.tmp, s) }
	check(onnxio.WriteFile(file("chain.onnx"), m))
	run := func(args ...string) *os.ProcessState {
		cmd := exec.Command(file("gradtool"), args...)
		cmd.Stderr = os.Stderr
		check(cmd.Run())
		return cmd.ProcessState
	}
	run("grad", "-q", "--wrt", "inputs", "--loss", "mse", file("chain.onnx"), "-o", file("whole.onnx"))
	run("prune", "-q", file("whole.onnx"), "-o", file("train.onnx"))
	layer := float64(4 * width)
	root := math.Sqrt(float64(n))
	begin := time.Now()
	state := run("plan", "-q", "--budget", fmt.Sprint(int64(2.5*root*layer)), "--report", file("report.json"), file("train.onnx"), "-o", file("small.onnx"))
	wall := time.Since(begin).Seconds()
	var v struct {
		Own   int64   `json:"own_peak_shared"`
		Arena float64 `json:"arena"`
		Again int     `json:"recomputations"`
		Plan  struct {
			Steps int `json:"steps"`
		} `json:"plan"`
	}
	check(json.Unmarshal(must(os.ReadFile(file("report.json"))), &v))
	ok := v.Arena <= 2.5*root*layer && v.Again <= n && (n < 1000 || wall <= 1)
	fmt.Printf("%6d %6d %10d %12.0f %8.1f %9.3f %10d %8.2f %7.2f %s\n", n, v.Plan.Steps, v.Own, v.Arena, v.Arena/layer, v.Arena/layer/root, n+v.Again, wall,
		(state.UserTime() + state.SystemTime()).Seconds(), b.verdict(ok))
}
