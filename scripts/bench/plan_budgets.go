//go:build ignore

// Program plan_budgets measures plans within budgets of training graphs of real networks, gradients as outputs or, with
// -sgd, with a step of gradient descent for each parameter. For each network it makes the plans for all budgets, as "plan
// --budget" does, and prints what they cost at some of them in percent of all work. Each plan is replayed; peaks and costs
// must be monotone. It ends with 1 if a plan is wrong or misses its aim. With -parts the plans are those of the graph by parts of its
// batch, budgets and costs in percent of the graph as it was.
//
//	plan_budgets [-n BATCH] [-sgd] [-parts K] [-apply] [-train DIR] [-cpuprofile FILE] [NAME...]
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/memplan"
	"gradtool/memplan/recompute"
	"gradtool/memplan/remat"
)

var (
	batch   = flag.Int64("n", 32, "batch; 0: the one that the model was exported with")
	descent = flag.Bool("sgd", false, "with a step of gradient descent for each parameter")
	apply   = flag.Bool("apply", false, "also write each of 50 budgets into the model, and place it in an arena")
	parts   = flag.Int("parts", 0, "compute each graph in `K` parts of the batch; percentages stay those of the whole graph")
	profile = flag.String("cpuprofile", "", "write a profile of the searches to `FILE`")
	points  = flag.String("points", "", "add what each of the 49 budgets costs to `FILE`, in percent")
	moves   = flag.Int("moves", recompute.DefaultMoves, "effort")
)

// shown are the budgets that are printed, in percent of the peak of the order given.
var shown = []int64{90, 75, 60, 50, 40, 30, 25, 20}

func main() {
	flag.Parse()
	b := &bench{}
	b.build()
	defer os.RemoveAll(b.tmp)
	if *profile != "" {
		f := must(os.Create(*profile))
		check(pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	fmt.Println("own: peak of the order given; low: the lowest peak found, in % of it; cost +% at budgets, mean: of 49 in equal steps, those that have a plan; aim: 4 s of all processors")
	fmt.Printf("%-20s %6s %5s %12s %6s", "", "nodes", "N", "own", "low")
	for _, s := range shown {
		fmt.Printf(" %7d%%", s)
	}
	fmt.Printf(" %8s %7s %7s\n", "mean", "cpu s", "s")
	dirs := modelDirs()
	for _, dir := range dirs {
		b.budgets(dir)
	}
	b.processes(dirs, "--budget", "75%")
	for i, a := range shares {
		var without []string
		sum, count := 0.0, 0
		for _, r := range b.parts {
			if r.more[i] < 0 {
				without = append(without, r.name)
				continue
			}
			sum += math.Log(1 + r.more[i]/100)
			count++
		}
		mean := 100 * (math.Exp(sum/float64(max(count, 1))) - 1)
		fmt.Printf("activations within %d %%: FLOPs +%.2f %% (geometric mean of %d), aim %.0f %%: %s; no plan: %s\n", a.percent, mean, count, a.aim, b.verdict(mean <= a.aim), strings.Join(without, " "))
	}
	if *parts > 0 {
		for _, r := range b.parts {
			fmt.Printf("%-20s", r.name)
			for i, a := range shares {
				fmt.Printf("  within %d %%: FLOPs +%.2f %%", a.percent, r.more[i])
			}
			fmt.Println()
		}
	}
	if b.missed > 0 {
		fmt.Printf("\n%d aims missed\n", b.missed)
		pprof.StopCPUProfile()
		os.Exit(1)
	}
}

// shares are those of the activations that the means are for: of the peak without graph outputs, which whoever runs the model
// takes. The budget is that share and all outputs.
var shares = []struct {
	percent int64
	aim     float64
}{{50, 7}, {25, 20}}

// activations notes what shares of the activations cost. Where the front has no plan a search with more effort is asked, as "plan
// --budget" does.
func (b *bench) activations(name string, m *graph.Model, p, given *recompute.Problem, front []remat.Plan, base int64) {
	live := must(memplan.Analyze(m.Graph, nil, memplan.Options{}))
	kept := int64(0)
	for _, v := range m.Graph.Outputs {
		if n, ok := memplan.SizeOf(v.Type).Int(); ok && !slices.ContainsFunc(live.State, func(s memplan.Pair) bool { return s.To == v }) {
			kept += n
		}
	}
	r := part{name: name}
	var second []remat.Plan
	for _, a := range shares {
		budget := kept + (base-kept)/100*a.percent
		fits := func(f remat.Plan) bool { return f.Peak <= budget }
		at, from := slices.IndexFunc(front, fits), front
		if at < 0 && second == nil {
			second = must(p.Front(base, 4**moves))
		}
		if at < 0 {
			at, from = slices.IndexFunc(second, fits), second
		}
		if at < 0 {
			r.more = append(r.more, -1)
			continue
		}
		_, flops := p.Again(from[at].Sequence)
		r.more = append(r.more, 100*((p.Work()+flops)/given.Work()-1))
	}
	b.parts = append(b.parts, r)
}

// budgets prints the row of one network.
func (b *bench) budgets(dir string) {
	n := *batch
	if n == 0 {
		n = exported(dir)
	}
	m, c := load(b.training(dir), n, *descent)
	defer func() { c.Close() }()
	wall, begin := time.Now(), cpu()
	p, base := problem(m)
	given := p
	if *parts > 0 {
		whole := c
		defer whole.Close()
		m, c = load(b.split(dir), n, *descent)
		p, _ = problem(m)
	}
	front := must(p.Front(base, *moves))
	seconds, took := cpu()-begin, time.Since(wall).Seconds()
	for i, f := range front {
		alone := f // package remat counts both units of a pool
		alone.Cost = must(remat.Simulate(p.Graph, f.Sequence)).Cost
		if err := remat.Check(p.Graph, alone, f.Peak); err != nil {
			fmt.Printf("%s: plan %d is wrong: %v %s\n", filepath.Base(dir), i, err, b.verdict(false))
		}
		if i > 0 && (f.Peak >= front[i-1].Peak || f.Cost <= front[i-1].Cost) {
			fmt.Printf("%s: plan %d is not below and behind the one before %s\n", filepath.Base(dir), i, b.verdict(false))
		}
	}
	low := front[len(front)-1].Peak
	fmt.Printf("%-20s %6d %5d %12d %5.1f%%", filepath.Base(dir), len(m.Graph.Nodes), n, base, 100*float64(low)/float64(base))
	all := float64(given.Base())
	for _, s := range shown {
		at := slices.IndexFunc(front, func(f remat.Plan) bool { return f.Peak <= base/100*s })
		if at < 0 {
			fmt.Printf(" %8s", "-")
			continue
		}
		fmt.Printf(" %8.3f", 100*(float64(front[at].Cost)/all-1))
	}
	sum, count := 0.0, 0
	line := filepath.Base(dir)
	for k := int64(49); k > 0; k-- {
		at := slices.IndexFunc(front, func(f remat.Plan) bool { return f.Peak <= base/50*k })
		if at < 0 {
			break
		}
		more := 100 * (float64(front[at].Cost)/all - 1)
		line += fmt.Sprintf(" %.4f", more)
		sum += more
		count++
	}
	fmt.Printf(" %8.3f %7.2f %7.2f %s\n", sum/float64(max(count, 1)), seconds, took, b.verdict(seconds <= 4 || *parts > 0))
	if *points != "" {
		f := must(os.OpenFile(*points, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644))
		fmt.Fprintf(f, "%s %.2f\n", line, seconds)
		check(f.Close())
	}
	b.activations(filepath.Base(dir), m, p, given, front, base)
	if *apply {
		b.apply(dir, n, p, front, base)
	}
}

// apply writes plans for 50 budgets into the model and places them.
func (b *bench) apply(dir string, n int64, p *recompute.Problem, front []remat.Plan, base int64) {
	lastPeak, lastCost, fit, wrong := int64(1)<<62, int64(0), 0, 0
	var gap float64
	name := filepath.Base(dir)
	fail := func(format string, args ...any) {
		wrong++
		fmt.Printf("  %s: %s %s\n", name, fmt.Sprintf(format, args...), b.verdict(false))
	}
	arenas := map[int64]int64{} // by peak
	for k := int64(50); k > 0; k-- {
		budget := base / 50 * k
		chosen, err := p.Choose(front, budget)
		if err != nil {
			break
		}
		fit++
		if chosen.Peak > budget || chosen.Peak > lastPeak || chosen.Cost < lastCost {
			fail("budget %d: peak %d, cost %d behind %d, %d", budget, chosen.Peak, chosen.Cost, lastPeak, lastCost)
		}
		lastPeak, lastCost = chosen.Peak, chosen.Cost
		if _, ok := arenas[chosen.Peak]; ok {
			continue
		}
		m, c := load(b.file(dir), n, *descent)
		q, _ := problem(m)
		must(q.Apply(chosen.Sequence, recompute.BarrierData))
		must(op.Infer(m))
		made := must(memplan.Make(m.Graph, memplan.PlanOptions{KeepOrder: true}))
		made.Apply()
		plan := made.Plan(nil)
		if err := memplan.Check(m.Graph, plan); err != nil {
			fail("budget %d: %v", budget, err)
		}
		arenas[chosen.Peak] = plan.Arena
		if plan.Arena > budget {
			gap = max(gap, 100*(float64(plan.Arena)/float64(budget)-1))
		}
		c.Close()
	}
	fmt.Printf("  %d budgets with a plan, %d violations; arenas above the budget by %.2f %% at most before another plan is asked for\n", fit, wrong, gap)
}

// problem states a model's problem as plan --budget does.
func problem(m *graph.Model) (*recompute.Problem, int64) {
	given := must(memplan.Analyze(m.Graph, nil, memplan.Options{}))
	opt := recompute.Options{Given: slices.Clone(m.Graph.Nodes)}
	must(memplan.Make(m.Graph, memplan.PlanOptions{Effort: 1})).Apply()
	return must(recompute.New(m, opt)), given.Peak
}

// file returns the file of the graph that plans are made for.
func (b *bench) file(dir string) string {
	if *parts > 0 {
		return b.split(dir)
	}
	return b.training(dir)
}

// split returns the file of the model's training graph by parts of its batch.
func (b *bench) split(dir string) string {
	whole := b.training(dir)
	file := fmt.Sprintf("%s.parts%d.onnx", strings.TrimSuffix(whole, ".onnx"), *parts)
	if _, err := os.Stat(file); err == nil {
		return file
	}
	for _, args := range [][]string{{"fuse", "-q", "--chunk", fmt.Sprintf("batch=%d", *parts), whole, "-o", file + ".raw"}, {"prune", "-q", file + ".raw", "-o", file}} {
		cmd := exec.Command(filepath.Join(b.tmp, "gradtool"), args...)
		cmd.Stderr = os.Stderr
		check(cmd.Run())
	}
	check(os.Remove(file + ".raw"))
	return file
}
