// Fuse measures what fuse makes of public models, and of exported networks and their gradients, beside what ONNX Runtime's
// optimiser makes of them:
//
//	go run ./scripts/bench/fuse [-all] [-dim N=8]
//
// Public models are those of ../shared/corpus/wild, whose manifest has ONNX Runtime's counts; since that takes every weight for a
// constant, prune is told to as well (--frozen '*'). Networks, whose weights stay weights, are those in the folder that
// GRADTOOL_MODELS names, for which ONNX Runtime is asked if the program is built with -tags ort. Counts leave constants
// out. A cluster counts as one node. Sizes are those of files; times are of prune and fuse, two processes that read and write
// files, beside that of ONNX Runtime's extended level, which loads and writes one in this process.
package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gradtool/graph"
	"gradtool/internal/ort"
	"gradtool/internal/size"
	"gradtool/internal/table"
	"gradtool/onnxio"
)

func main() {
	log.SetFlags(0)
	all := flag.Bool("all", false, "list small models too, not only those of 20 nodes and more")
	dims := flag.String("dim", "N=8", "sizes of symbolic dimensions, for the traffic")
	flag.Parse()
	if err := run(*all, *dims); err != nil {
		log.Fatal(err)
	}
}

// row is what is known of a model.
type row struct {
	name                  string
	nodes, pruned, kernel int
	clusters, functions   int
	basic, extended       int // 0: not known
	before, after         float64
	given, fused, saved   int64         // bytes of the file, of ours, and of ONNX Runtime's
	ours, theirs          time.Duration // 0: not known
	err                   error
}

func run(all bool, dims string) error {
	dir, err := os.MkdirTemp("", "bench-fuse-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, bin: filepath.Join(dir, "gradtool"), dims: dims}
	if out, err := exec.Command("go", "build", "-o", b.bin, "./cmd/gradtool").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	wild, err := b.wild(all)
	if err != nil {
		fmt.Printf("public models: %v\n\n", err)
	} else {
		b.print("public models, weights frozen", wild)
	}
	forward, backward := b.networks()
	if len(forward) == 0 {
		fmt.Println("networks: GRADTOOL_MODELS names no folder with NAME/model.onnx")
		return nil
	}
	b.print("networks, forward", forward)
	b.print("networks, forward, loss and gradient", backward)
	return nil
}

type bench struct{ dir, bin, dims string }

// wild measures the public models that ONNX Runtime can load.
func (b *bench) wild(all bool) ([]row, error) {
	root := filepath.Join("..", "shared", "corpus", "wild")
	f, err := os.Open(filepath.Join(root, "manifest.csv"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	head, err := r.Read()
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for i, name := range head {
		at[name] = i
	}
	var out []row
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		number := func(name string) int { n, _ := strconv.Atoi(rec[at[name]]); return n }
		if rec[at["ort130_cpu"]] != "ok" || !all && number("n_nodes_noconst") < 20 {
			continue
		}
		x := b.measure(filepath.Base(rec[at["file"]]), filepath.Join(root, rec[at["file"]]), "--frozen", "*")
		b.runtime(&x, filepath.Join(root, rec[at["file"]]))
		x.nodes, x.basic, x.extended = number("n_nodes_noconst"), number("ort130_basic_nodes"), number("ort130_extended_nodes")
		out = append(out, x)
	}
}

// networks measures the exported networks, as they are and with their gradients.
func (b *bench) networks() (forward, backward []row) {
	root := os.Getenv("GRADTOOL_MODELS")
	if root == "" {
		return nil, nil
	}
	list, err := filepath.Glob(filepath.Join(root, "*", "model.onnx"))
	if err != nil {
		return nil, nil
	}
	for _, path := range list {
		name := filepath.Base(filepath.Dir(path))
		x := b.measure(name, path)
		b.runtime(&x, path)
		forward = append(forward, x)
		axis := "1"
		if refs, err := os.ReadFile(filepath.Join(filepath.Dir(path), "refs.json")); err == nil && strings.Contains(string(refs), "last axis") {
			axis = "-1"
		}
		train := filepath.Join(b.dir, "train.onnx")
		y := row{name: name}
		if _, err := b.gradtool("grad", "-q", "--loss", "softmax-cross-entropy,axis="+axis, path, "-o", train); err != nil {
			y.err = err
		} else {
			y = b.measure(name, train)
			b.runtime(&y, train)
		}
		backward = append(backward, y)
	}
	return forward, backward
}

func (b *bench) gradtool(args ...string) (string, error) {
	out, err := exec.Command(b.bin, args...).CombinedOutput()
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return "", errors.New(strings.TrimPrefix(line, "gradtool: error: "))
	}
	return string(out), nil
}

// measure prunes, with further flags, and fuses a model.
func (b *bench) measure(name, path string, flags ...string) row {
	x := row{name: name}
	if x.nodes, x.err = b.count(path); x.err != nil {
		return x
	}
	pruned, fused, report := filepath.Join(b.dir, "pruned.onnx"), filepath.Join(b.dir, "fused.onnx"), filepath.Join(b.dir, "report.json")
	args := []string{"fuse", "-q", pruned, "-o", fused, "--report", report}
	start := time.Now()
	if x.err = b.check(append([]string{"prune", "-q", path, "-o", pruned}, flags...)...); x.err != nil {
		return x
	}
	if x.err = b.check(args...); x.err != nil {
		return x
	}
	x.ours = time.Since(start)
	x.given, x.fused = fileSize(path), fileSize(fused)
	raw, err := os.ReadFile(report)
	if err != nil {
		x.err = err
		return x
	}
	var r struct {
		Nodes     int               `json:"nodes"`
		Kernels   int               `json:"kernels"`
		Functions int               `json:"functions"`
		Clusters  []json.RawMessage `json:"clusters"`
		Before    string            `json:"between_before"`
		After     string            `json:"between_after"`
	}
	if x.err = json.Unmarshal(raw, &r); x.err != nil {
		return x
	}
	x.pruned, x.kernel, x.functions, x.clusters = r.Nodes, r.Kernels, r.Functions, len(r.Clusters)
	x.before, x.after = b.eval(r.Before), b.eval(r.After)
	return x
}

func (b *bench) check(args ...string) error { _, err := b.gradtool(args...); return err }

// eval returns the value of an expression for the sizes that -dim gives; other symbols are 8.
func (b *bench) eval(text string) float64 {
	d := graph.ParseDim(text)
	with := map[string]int64{}
	for _, s := range d.Symbols() {
		with[s] = 8
	}
	for _, part := range strings.Split(b.dims, ",") {
		if name, n, ok := strings.Cut(part, "="); ok {
			if v, err := strconv.ParseInt(n, 10, 64); err == nil {
				with[name] = v
			}
		}
	}
	n, _ := d.Eval(with).Int()
	return float64(n)
}

// count returns the nodes of a model in all its graphs, without constants.
func (b *bench) count(path string) (int, error) {
	m, c, err := onnxio.Open(path, onnxio.ReadOptions{})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	n := 0
	for k := range m.Graph.AllNodes() {
		if !k.Is("Constant") {
			n++
		}
	}
	return n, nil
}

func fileSize(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.Size()
}

// runtime sets what ONNX Runtime makes of the model, if it can be asked.
func (b *bench) runtime(x *row, path string) {
	if ort.Available() != nil {
		return
	}
	m, c, err := onnxio.Open(path, onnxio.ReadOptions{})
	if err != nil {
		return
	}
	var in []string
	for _, v := range m.Graph.Inputs {
		if v.Init == nil {
			in = append(in, v.Name)
		}
	}
	v := m.Graph.Outputs[0]
	o := ort.Output{Name: v.Name, Elem: int32(v.Type.Elem)}
	o.Shape, _ = v.Type.Shape.Ints()
	c.Close()
	saved := filepath.Join(b.dir, "optimized.onnx")
	load := func(level string) (nodes int) {
		start := time.Now()
		s, err := ort.Load(path, in, []ort.Output{o}, ort.Options{Optimize: level, Save: saved})
		if err != nil {
			return 0
		}
		x.theirs, x.saved = time.Since(start), fileSize(saved)
		s.Close()
		nodes, _ = b.count(saved)
		return nodes
	}
	x.basic = load("basic")
	x.extended = load("extended")
}

func (b *bench) print(title string, rows []row) {
	t := table.New(table.Column{Title: "model"}, table.Column{Title: "nodes", Right: true, Fixed: true}, table.Column{Title: "pruned", Right: true, Fixed: true},
		table.Column{Title: "fused", Right: true, Fixed: true}, table.Column{Title: "clusters", Right: true, Fixed: true}, table.Column{Title: "functions", Right: true, Fixed: true},
		table.Column{Title: "ORT basic", Right: true, Fixed: true}, table.Column{Title: "extended", Right: true, Fixed: true},
		table.Column{Title: "between kernels", Right: true, Fixed: true}, table.Column{Title: "after", Right: true, Fixed: true}, table.Column{Title: "", Right: true, Fixed: true},
		table.Column{Title: "file", Right: true, Fixed: true}, table.Column{Title: "fused", Right: true, Fixed: true}, table.Column{Title: "ORT", Right: true, Fixed: true},
		table.Column{Title: "time", Right: true, Fixed: true}, table.Column{Title: "ORT", Right: true, Fixed: true})
	bytes := func(n int64) string {
		if n == 0 {
			return "-"
		}
		return size.Bytes(n)
	}
	took := func(d time.Duration) string {
		if d == 0 {
			return "-"
		}
		return d.Round(time.Millisecond).String()
	}
	known := func(n int) string {
		if n == 0 {
			return "-"
		}
		return strconv.Itoa(n)
	}
	var sum row
	better, half, compared := 0, 0, 0
	for _, x := range rows {
		if x.err != nil {
			t.Row(x.name, known(x.nodes), x.err.Error())
			continue
		}
		less := ""
		if x.before > 0 {
			less = fmt.Sprintf("-%.0f %%", 100*(1-x.after/x.before))
		}
		t.Row(x.name, strconv.Itoa(x.nodes), strconv.Itoa(x.pruned), strconv.Itoa(x.kernel), strconv.Itoa(x.clusters), strconv.Itoa(x.functions),
			known(x.basic), known(x.extended), size.Bytes(int64(x.before)), size.Bytes(int64(x.after)), less,
			bytes(x.given), bytes(x.fused), bytes(x.saved), took(x.ours), took(x.theirs))
		if x.extended == 0 {
			continue
		}
		compared++
		sum.nodes += x.nodes
		sum.pruned += x.pruned
		sum.kernel += x.kernel
		sum.basic += x.basic
		sum.extended += x.extended
		if x.kernel <= x.extended {
			better++
		}
		if 2*x.kernel <= x.extended {
			half++
		}
	}
	fmt.Printf("%s\n", title)
	if err := t.Write(os.Stdout, table.Options{}); err != nil {
		log.Fatal(err)
	}
	if compared > 0 {
		fmt.Printf("%d models compared: %d nodes, %d pruned, %d fused; ONNX Runtime %d basic, %d extended\n", compared, sum.nodes, sum.pruned, sum.kernel, sum.basic, sum.extended)
		fmt.Printf("fused has at most as many nodes as extended in %d of %d, at most half as many in %d\n", better, compared, half)
	}
	fmt.Println()
}
