//go:build ignore

// Program memplan measures the planners of memory, each instance in one run on one thread, and prints what was reached
// beside what has been published. It ends with 1 if a plan is wrong or misses its aim.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"gradtool/memplan/offset"
	"gradtool/memplan/remat"
)

func main() {
	runtime.GOMAXPROCS(1)
	data, err := find("shared/bench/memplan")
	if err != nil {
		fmt.Println("nothing measured:", err)
		return
	}
	b := &bench{data: data}
	want := func(name string) bool { return len(os.Args) < 2 || slices.Contains(os.Args[1:], name) }
	if want("offset") {
		b.capacity()
		b.lowest()
		b.large()
	}
	if want("remat") {
		b.moccasin()
		b.checkmate()
	}
	if b.missed > 0 {
		fmt.Printf("\n%d aims missed\n", b.missed)
		os.Exit(1)
	}
}

// find looks for a path in this folder's ancestors.
func find(path string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		p := filepath.Join(at, path)
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is in none of the folders above %s", path, dir)
		}
	}
}

type bench struct {
	data   string
	missed int
}

// verdict counts misses.
func (b *bench) verdict(ok bool) string {
	if ok {
		return "ok"
	}
	b.missed++
	return "MISSED"
}

// clock measures seconds, by the wall and of the processor.
type clock struct {
	wall time.Time
	cpu  float64
}

func start() clock { return clock{time.Now(), cpu()} }

func (c clock) seconds() (wall, processor float64) {
	return time.Since(c.wall).Seconds(), cpu() - c.cpu
}

func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

func (b *bench) buffers(path ...string) []offset.Buffer {
	f := must(os.Open(filepath.Join(append([]string{b.data}, path...)...)))
	defer f.Close()
	return must(offset.ReadCSV(f)).Buffers
}

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	return v
}

// solve runs the offset planner; a plan that is wrong or missing has height 0.
func solve(buffers []offset.Buffer, capacity, budget int64) (offset.Result, float64, float64) {
	c := start()
	r, err := offset.Solve(buffers, capacity, budget)
	wall, processor := c.seconds()
	if err == nil {
		err = offset.Check(buffers, r.Plan, capacity)
	}
	if err != nil {
		fmt.Println("error:", err)
		r.Height = 0
	}
	return r, wall, processor
}

// capacity is the set of MiniMalloc at its capacity. Published: times on the slides of the ASPLOS talk.
func (b *bench) capacity() {
	const limit = 1 << 20
	published := map[string]float64{"A": 4.910, "B": 3.661, "C": 0.637, "D": 2.674, "E": 3.717, "F": 5.358, "G": 1.181, "H": 1.808, "I": 3.908, "J": 0.883, "K": 0.628}
	fmt.Printf("MiniMalloc's instances at capacity %d\n", limit)
	fmt.Printf("%-4s %8s %10s %10s %8s %8s %10s\n", "", "buffers", "max live", "height", "s", "cpu s", "published")
	var sum, sumCPU, sumPublished float64
	valid := true
	for name := 'A'; name <= 'K'; name++ {
		buffers := b.buffers("minimalloc", "challenging", fmt.Sprintf("%c.%d.csv", name, limit))
		r, wall, processor := solve(buffers, limit, offset.DefaultBudget)
		valid = valid && r.Height > 0
		sum, sumCPU, sumPublished = sum+wall, sumCPU+processor, sumPublished+published[string(name)]
		fmt.Printf("%-4c %8d %10d %10d %8.2f %8.2f %10.2f\n", name, len(buffers), r.Bound, r.Height, wall, processor, published[string(name)])
	}
	fmt.Printf("%-4s %8s %10s %10s %8.2f %8.2f %10.2f %s\n\n", "sum", "", "", "", sum, sumCPU, sumPublished, b.verdict(valid && sum <= 29.4))
}

// lowest is what is found without a capacity. Known: the lowest heights that MiniMalloc reaches with capacities given by
// hand.
func (b *bench) lowest() {
	fmt.Println("MiniMalloc's instances, lowest plan")
	fmt.Printf("%-4s %10s %10s %8s %10s %8s %8s\n", "", "max live", "height", "gap %", "known", "s", "cpu s")
	for _, c := range []struct {
		name  string
		known int64
	}{{"C", 1_039_360}, {"D", 1_040_384}, {"J", 1_047_552}} {
		buffers := b.buffers("minimalloc", "challenging", c.name+".1048576.csv")
		r, wall, processor := solve(buffers, 0, offset.DefaultBudget)
		fmt.Printf("%-4s %10d %10d %8.3f %10d %8.2f %8.2f %s\n", c.name, r.Bound, r.Height, over(r), c.known, wall, processor,
			b.verdict(r.Height > 0 && r.Height <= c.known && wall <= 60))
	}
	fmt.Println()
}

func over(r offset.Result) float64 { return 100 * (float64(r.Height)/float64(r.Bound) - 1) }

// large is idealloc's set of large plans. Greedy: the best of eight greedy orders.
func (b *bench) large() {
	fmt.Println("idealloc's instances, lowest plan")
	fmt.Printf("%-11s %8s %13s %13s %8s %8s %8s %8s\n", "", "buffers", "max live", "height", "gap %", "greedy %", "s", "cpu s")
	for _, c := range []struct {
		name   string
		greedy float64
	}{{"resnet50", 0.30}, {"pangu_2.6B", 0.76}, {"G_1", 0}, {"S_1", 2.98}, {"Y_1", 0.36}} {
		buffers := b.buffers("idealloc", c.name+".csv")
		r, wall, processor := solve(buffers, 0, offset.DefaultBudget)
		fmt.Printf("%-11s %8d %13d %13d %8.4f %8.2f %8.2f %8.2f %s\n", c.name, len(buffers), r.Bound, r.Height, over(r), c.greedy, wall, processor,
			b.verdict(r.Height > 0 && over(r) <= 0.10 && wall <= 10))
	}
	fmt.Println()
}

// row is one budget of a graph, with figures to compare with, in percent of the cost, and their seconds.
type row struct {
	percent int64
	cost    float64
	seconds float64
	note    string
}

func (b *bench) graph(name, file string, slack float64, rows []row) {
	f := must(os.Open(filepath.Join(b.data, "moccasin", file)))
	defer f.Close()
	g := must(remat.ReadJSON(io.Reader(f)))
	own := must(remat.Simulate(g, g.Order))
	for _, r := range rows {
		budget := own.Peak * r.percent / 100
		c := start()
		p, err := remat.Solve(g, budget, remat.DefaultMoves)
		wall, processor := c.seconds()
		if err == nil {
			err = remat.Check(g, p.Plan, budget)
		}
		if err != nil {
			fmt.Printf("%-6s %5d %4d %s: %v\n", name, len(g.Names), r.percent, b.verdict(false), err)
			continue
		}
		base := float64(g.BaseCost())
		more, least := 100*(float64(p.Cost)/base-1), 100*(float64(p.Bound)/base-1)
		fmt.Printf("%-6s %5d %4d %8.3f %8.3f %7.2f %7.2f %7.2f %10.3f %8.1f %s %s\n", name, len(g.Names), r.percent, more, least, 100*float64(p.Peak)/float64(own.Peak),
			wall, processor, r.cost, r.seconds, b.verdict(more <= r.cost+slack && processor <= r.seconds), r.note)
	}
}

func head(title, reference string) {
	fmt.Println(title)
	fmt.Printf("%-6s %5s %4s %8s %8s %7s %7s %7s %10s %8s\n", "", "nodes", "%", "cost +%", "bound +%", "peak %", "s", "cpu s", reference, "s")
}

// moccasin is the table of FastSA (NeurIPS 2023) on public graphs; its budgets are in percent of the peak of the graph's
// own order.
func (b *bench) moccasin() {
	head("rematerialization against FastSA", "FastSA +%")
	random := func(n int, w string) string {
		return fmt.Sprintf("random_layered_n%d_w%s_nlv0.75_ed0.2_scd0.14.json", n, w)
	}
	const slack = 0.05
	b.graph("RL1", random(100, "0.27"), slack, []row{{90, 0, 11.7, ""}, {80, 0.3, 11.5, ""}, {70, 2.2, 12, "(FastSA's peak is 77.3 %)"}})
	b.graph("RL2", random(250, "0.43"), slack, []row{{90, 0, 15.1, ""}, {80, 0, 15, ""}, {70, 2.6, 14.5, ""}})
	b.graph("RL3", random(500, "0.36"), slack, []row{{90, 0.03, 21, ""}, {80, 2.3, 20.9, ""}, {70, 4.8, 21.2, "(FastSA's peak is 73.5 %)"}})
	b.graph("RL4", random(1000, "0.31"), slack, []row{{90, 0.4, 36, ""}, {80, 2.5, 36.3, ""}, {70, 7.4, 36.5, ""}})
	b.graph("CM1", "fcn_8_vgg (MLSys)_32_(416, 608, 3)_train_nx.json", slack, []row{{90, 0.1, 9.4, ""}, {80, 0.1, 9.7, ""}, {70, 3, 9.7, ""}})
	b.graph("CM2", "ResNet50 (MLSys)_256_(224, 224, 3)_train_nx.json", slack, []row{{90, 0.2, 10.9, ""}, {80, 0.4, 10.9, ""}, {70, 0.8, 11, ""}})
	fmt.Println()
}

// checkmate is Checkmate's integer program (MLSys 2020) in the graph's own order, solved by HiGHS to optimality except
// where noted.
func (b *bench) checkmate() {
	head("rematerialization against the optimum in the graph's own order", "optimum +%")
	const slack = 0.1
	file := func(net, shape string) string { return fmt.Sprintf("%s (MLSys)_%s_train_nx.json", net, shape) }
	small, large := "256_(224, 224, 3)", "32_(416, 608, 3)"
	b.graph("VGG16", file("VGG16", small), slack, []row{{95, 0.774, 8, ""}, {90, 1.968, 5, ""}, {85, 1.968, 10, ""}})
	b.graph("VGG19", file("VGG19", small), slack, []row{{90, 0.104, 92, ""}, {80, 2.793, 241, "(not proved)"}})
	b.graph("FCN8", file("fcn_8_vgg", large), slack, []row{{90, 0.029, 149, ""}, {80, 0.136, 117, ""}, {70, 0.892, 178, ""}, {65, 1.617, 55, ""}})
	b.graph("U-Net", file("vgg_unet", large), slack, []row{{90, 1.129, 27, ""}, {80, 1.984, 50, ""}, {70, 2.967, 20, ""}, {60, 4.451, 31, ""}, {50, 6.967, 214, ""}})
	b.graph("SegNet", file("segnet", large), slack, []row{{90, 0.108, 19, ""}, {80, 0.21, 37, ""}, {70, 0.311, 12, ""}, {60, 0.423, 33, ""}, {50, 40.676, 300, "(not proved)"}})
}
