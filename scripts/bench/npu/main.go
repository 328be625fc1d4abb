// Npu measures what gradtool's compiler makes of single kernels and of training steps, in simulated cycles of a described
// machine, not of silicon.
//
//	go run ./scripts/bench/npu [-machine ref-edge] [-top N]
//
// Kernels are made here. Networks are those in the folder that GRADTOOL_MODELS names, of the names in GRADTOOL_MODEL_LIST,
// with loss and gradients. Cycles is the time of the whole program, loads and stores included. Array is the share of the
// matrix unit's peak while it is busy; bound is the least time that one of the units or the DRAM path needs for what the program
// does at its peak rate, and "of bound" that divided by the cycles. Clusters of fuse, with --target or without, are counted that are one
// kernel, or a row of kernels on chip.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/size"
	"gradtool/internal/table"
	"gradtool/npu/binary"
	"gradtool/npu/isa"
	"gradtool/npu/lower"
	"gradtool/npu/machine"
	"gradtool/npu/sim"
)

func main() {
	log.SetFlags(0)
	name := flag.String("machine", "ref-edge", "built-in machine")
	top := flag.Int("top", 0, "list the N nodes of each network that take the most time")
	flag.Parse()
	m, err := machine.Builtin(*name)
	if err != nil {
		log.Fatal(err)
	}
	t := table.New(table.Column{Title: "kernel"}, right("MACs"), right("cycles"), right("array"), right("bound"), right("of bound"),
		table.Column{Title: "by"}, right("DRAM"), right("instructions"), right("clusters"))
	for _, k := range kernels() {
		r, err := lower.Model(k.model, lower.Options{Machine: m})
		if err != nil {
			log.Fatalf("%s: %v", k.name, err)
		}
		if r.Program == nil {
			log.Fatalf("%s: %v", k.name, r.Legal.Fallbacks)
		}
		row(t, k.name, r.Program, 0, "")
	}
	networks(t, m, *top)
	if err := t.Write(os.Stdout, table.Options{}); err != nil {
		log.Fatal(err)
	}
}

func right(title string) table.Column { return table.Column{Title: title, Right: true} }

// row adds a program's figures to the table.
func row(t *table.Table, name string, p *isa.Program, top int, clusters string) {
	tl, err := sim.Time(p)
	if err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	var macs, bytes, instructions int64
	var vector, matrix, bus float64
	for q := range p.Queues {
		instructions += int64(len(p.Queues[q]))
		for i := range p.Queues[q] {
			w := p.Queues[q][i].Work(p.Machine)
			macs += w.MACs
			bytes += w.Read + w.Written
			bus += float64(w.Read + w.Written)
			switch isa.Queue(q) {
			case isa.Vector:
				vector += float64(w.Cycles) / float64(max(w.Conflict, 1))
			case isa.Matrix:
				matrix += float64(w.Cycles)
			}
		}
	}
	compute := float64(macs) / float64(p.Machine.PeakMACs())
	memory := bus / float64(p.Machine.DMA.BytesPerCycle)
	bound, by := compute, "matrix"
	if memory > bound {
		bound, by = memory, "memory"
	}
	if vector > bound {
		bound, by = vector, "vector"
	}
	array := "-"
	if matrix > 0 {
		array = fmt.Sprintf("%.1f %%", 100*compute/matrix)
	}
	t.Row(name, fmt.Sprint(macs), fmt.Sprintf("%.0f", tl.Cycles), array, fmt.Sprintf("%.0f", bound), fmt.Sprintf("%.1f %%", 100*bound/tl.Cycles), by,
		size.Bytes(bytes), fmt.Sprint(instructions), clusters)
	if top == 0 {
		return
	}
	order := make([]int, len(p.Nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return int(tl.Nodes[b].Cycles - tl.Nodes[b].Busy[isa.Matrix] - tl.Nodes[a].Cycles + tl.Nodes[a].Busy[isa.Matrix])
	})
	for q := range tl.Time {
		fmt.Printf("%s %v:", name, isa.Queue(q))
		for r, c := range tl.Time[q] {
			fmt.Printf(" %v %.0f", sim.Reason(r), c)
		}
		fmt.Printf(" contended %.0f\n", tl.Contended[q])
	}
	for _, i := range order[:min(top, len(order))] {
		n := &tl.Nodes[i]
		read, written := int64(0), int64(0)
		for p := range n.Read {
			read, written = read+n.Read[p], written+n.Written[p]
		}
		fmt.Printf("%10.0f  load %9.0f store %9.0f matrix %9.0f vector %9.0f  MACs %11d read %9s written %9s  %s %s %s\n", n.Cycles, n.Busy[0], n.Busy[1], n.Busy[2], n.Busy[3], n.MACs, size.Bytes(read), size.Bytes(written),
			p.Nodes[i].Op, p.Nodes[i].Name, p.Nodes[i].Role)
	}
}

// kernel is a model of one operator.
type kernel struct {
	name  string
	model *graph.Model
}

// one returns a model that applies an operator to inputs of the given shapes.
func one(op string, attrs []*graph.Attr, shapes ...[]int64) *graph.Model {
	m := graph.NewModel(op, 21)
	var in []*graph.Value
	for i, s := range shapes {
		in = append(in, m.Graph.AddInput(fmt.Sprintf("x%d", i), graph.TensorOf(graph.Float, graph.ShapeOf(s...))))
	}
	n := m.Graph.NewNode("", op, in, []string{"y"}, attrs...)
	m.Graph.Append(n)
	m.Graph.AddOutput(n.Out[0])
	return m
}

func kernels() []kernel {
	s := func(d ...int64) []int64 { return d }
	pads := []*graph.Attr{graph.IntsAttr("pads", 1, 1, 1, 1)}
	return []kernel{
		{"matmul 64^3", one("MatMul", nil, s(64, 64), s(64, 64))},
		{"matmul 128^3", one("MatMul", nil, s(128, 128), s(128, 128))},
		{"matmul 256^3", one("MatMul", nil, s(256, 256), s(256, 256))},
		{"matmul 512^3", one("MatMul", nil, s(512, 512), s(512, 512))},
		{"matmul 1024^3", one("MatMul", nil, s(1024, 1024), s(1024, 1024))},
		{"matmul 100x70x300", one("MatMul", nil, s(100, 300), s(300, 70))},
		{"matmul, batch of 64 of 64^3", one("MatMul", nil, s(64, 64, 64), s(64, 64, 64))},
		{"gemm, A and B transposed, 512^3", one("Gemm", []*graph.Attr{graph.IntAttr("transA", 1), graph.IntAttr("transB", 1)}, s(512, 512), s(512, 512))},
		{"matmul 64 x 576 x 8192", one("MatMul", nil, s(64, 576), s(576, 8192))},
		{"conv 3x3, 8x64x32x32 -> 64", one("Conv", pads, s(8, 64, 32, 32), s(64, 64, 3, 3))},
		{"its dX", one("ConvTranspose", pads, s(8, 64, 32, 32), s(64, 64, 3, 3))},
		{"its dW", dW(8, 64, 32, 64)},
		{"matmul 256 x 2304 x 512", one("MatMul", nil, s(256, 2304), s(2304, 512))},
		{"conv 3x3, 8x256x8x8 -> 256", one("Conv", pads, s(8, 256, 8, 8), s(256, 256, 3, 3))},
		{"its dX", one("ConvTranspose", pads, s(8, 256, 8, 8), s(256, 256, 3, 3))},
		{"its dW", dW(8, 256, 8, 256)},
		{"conv 7x7/2, 8x3x128x128 -> 64", one("Conv", []*graph.Attr{graph.IntsAttr("pads", 3, 3, 3, 3), graph.IntsAttr("strides", 2, 2)}, s(8, 3, 128, 128), s(64, 3, 7, 7))},
		{"add 1024x1024", one("Add", nil, s(1024, 1024), s(1024, 1024))},
		{"relu 1024x1024", one("Relu", nil, s(1024, 1024))},
		{"softmax 1024x1024", one("Softmax", nil, s(1024, 1024))},
		{"layer norm 1024x1024", one("LayerNormalization", nil, s(1024, 1024), s(1024), s(1024))},
		{"transpose 1024x1024", one("Transpose", nil, s(1024, 1024))},
		{"sum of rows 1024x1024", reduce(1)},
		{"sum of columns 1024x1024", reduce(0)},
		{"attention, 8 heads of 1024x64", attention(8, 1024, 64, false)},
		{"its gradients, with it", attention(8, 1024, 64, true)},
		{"attention, 8 heads of 4096x64", attention(8, 4096, 64, false)},
		{"its gradients, with it", attention(8, 4096, 64, true)},
		{"attention, 16384x64", attention(1, 16384, 64, false)},
		{"max pool 3x3/2, 8x64x64x64", one("MaxPool", []*graph.Attr{graph.IntsAttr("kernel_shape", 3, 3), graph.IntsAttr("strides", 2, 2), graph.IntsAttr("pads", 1, 1, 1, 1)}, s(8, 64, 64, 64))},
	}
}

// dW is the weight gradient of a 3x3 convolution of a batch of images of c channels and k results: a convolution of the
// transposed images with the transposed gradient.
func dW(batch, c, side, k int64) *graph.Model {
	m := graph.NewModel("dW", 21)
	x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(batch, c, side, side)))
	g := m.Graph.AddInput("g", graph.TensorOf(graph.Float, graph.ShapeOf(batch, k, side, side)))
	swap := func(v *graph.Value, name string) *graph.Value {
		n := m.Graph.NewNode("", "Transpose", []*graph.Value{v}, []string{name}, graph.IntsAttr("perm", 1, 0, 2, 3))
		m.Graph.Append(n)
		return n.Out[0]
	}
	n := m.Graph.NewNode("", "Conv", []*graph.Value{swap(x, "xt"), swap(g, "gt")}, []string{"w"}, graph.IntsAttr("pads", 1, 1, 1, 1))
	m.Graph.Append(n)
	y := swap(n.Out[0], "y")
	m.Graph.AddOutput(y)
	return m
}

// attention is softmax(q k^T / sqrt(depth)) v of some heads, with the gradients of queries, keys and values if grads is set.
func attention(heads, length, depth int64, grads bool) *graph.Model {
	m := graph.NewModel("attention", 21)
	g := m.Graph
	rows := graph.TensorOf(graph.Float, graph.ShapeOf(heads, length, depth))
	in := func(name string) *graph.Value { return g.AddInput(name, rows) }
	node := func(op, name string, in ...*graph.Value) *graph.Value {
		n := g.NewNode("", op, in, []string{name})
		g.Append(n)
		return n.Out[0]
	}
	swap := func(x *graph.Value) *graph.Value {
		y := node("Transpose", x.Name+"_t", x)
		y.Def.SetAttr(graph.IntsAttr("perm", 0, 2, 1))
		return y
	}
	q, k, v := in("q"), in("k"), in("v")
	scale := g.AddInit("scale", graph.Floats(nil, float32(1/math.Sqrt(float64(depth)))))
	p := node("Softmax", "p", node("Mul", "s", node("MatMul", "qk", q, swap(k)), scale))
	g.AddOutput(node("MatMul", "o", p, v))
	if grads {
		do := in("do")
		g.AddOutput(node("MatMul", "dv", swap(p), do))
		dp := node("MatMul", "dp", do, swap(v))
		sum := node("ReduceSum", "sum", node("Mul", "dpp", dp, p), g.AddInit("last", graph.Ints([]int64{1}, -1)))
		ds := node("Mul", "ds", node("Mul", "pd", p, node("Sub", "less", dp, sum)), scale)
		g.AddOutput(node("MatMul", "dq", ds, k))
		g.AddOutput(node("MatMul", "dk", swap(ds), q))
	}
	if _, err := op.Infer(m); err != nil {
		log.Fatal(err)
	}
	return m
}

func reduce(axis int64) *graph.Model {
	m := graph.NewModel("reduce", 21)
	x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(1024, 1024)))
	a := m.Graph.AddInit("axes", graph.Ints([]int64{1}, axis))
	n := m.Graph.NewNode("", "ReduceSum", []*graph.Value{x, a}, []string{"y"})
	m.Graph.Append(n)
	m.Graph.AddOutput(n.Out[0])
	return m
}

// inOne says how many clusters of a program are one kernel, and after a plus how many are a row of kernels that hand each other what they make on
// chip.
func inOne(report string) string {
	file, err := os.ReadFile(report)
	if err != nil {
		log.Fatal(err)
	}
	var r struct{ Clusters []lower.Cluster }
	if err := json.Unmarshal(file, &r); err != nil {
		log.Fatal(err)
	}
	one, row := 0, 0
	for _, c := range r.Clusters {
		switch {
		case c.Kernels == 1:
			one++
		case c.Together:
			row++
		}
	}
	if len(r.Clusters) == 0 {
		return ""
	}
	if row == 0 {
		return fmt.Sprintf("%d of %d", one, len(r.Clusters))
	}
	return fmt.Sprintf("%d+%d of %d", one, row, len(r.Clusters))
}

// networks adds the training steps of networks.
func networks(t *table.Table, m *machine.Machine, top int) {
	root := os.Getenv("GRADTOOL_MODELS")
	if root == "" {
		fmt.Println("networks: GRADTOOL_MODELS names no folder with NAME/model.onnx")
		return
	}
	tmp, err := os.MkdirTemp("", "npu")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	bin := filepath.Join(tmp, "gradtool")
	run := func(args ...string) {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			log.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("go", "build", "-o", bin, "./cmd/gradtool")
	batch := map[string]string{"lenet": "32", "mlp_chain_64": "64", "mobilenet_v3_small": "8", "resnet18": "8", "unet": "2", "gpt2_small": "1"}
	for _, name := range strings.Fields(os.Getenv("GRADTOOL_MODEL_LIST")) {
		axis := "1"
		refs, err := os.ReadFile(filepath.Join(root, name, "refs.json"))
		if err == nil && strings.Contains(string(refs), "last axis") {
			axis = "-1"
		}
		n := batch[name]
		if n == "" {
			n = "4"
		}
		train, step := filepath.Join(tmp, "train.onnx"), filepath.Join(tmp, "step.npu")
		run(bin, "grad", "-q", "--loss", "softmax-cross-entropy,axis="+axis, filepath.Join(root, name, "model.onnx"), "-o", train)
		dim := "N=" + n
		pruned, report := filepath.Join(tmp, "pruned.onnx"), filepath.Join(tmp, "report.json")
		run(bin, "prune", "-q", train, "-o", pruned)
		for _, mode := range []string{"", "--unfused", "fuse", "fuse --target"} {
			from := pruned
			if rest, ok := strings.CutPrefix(mode, "fuse"); ok {
				from = filepath.Join(tmp, "fused.onnx")
				args := []string{bin, "fuse", "-q", "--dim", dim, pruned, "-o", from}
				if rest != "" {
					args = append(args, "--target", m.Name)
				}
				run(args...)
			}
			start := time.Now()
			args := []string{bin, "lower", "-q", "--machine", m.Name, "--dim", dim, from, "-o", step, "--report", report}
			if mode == "--unfused" {
				args = append(args, mode)
			}
			run(args...)
			took := time.Since(start).Round(10 * time.Millisecond)
			file, err := os.ReadFile(step)
			if err != nil {
				log.Fatal(err)
			}
			p, err := binary.Read(file)
			if err != nil {
				log.Fatal(err)
			}
			row(t, fmt.Sprintf("%s step %s (lowered in %s)", name, mode, took), p, top, inOne(report))
		}
	}
}
