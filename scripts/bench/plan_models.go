//go:build ignore

// Program plan_models measures memory plans of training graphs of real networks: exported forward graphs (folders with
// model.onnx, refs.json and input_0.pb) get a loss, gradients and, for the second half of the tables, one step of gradient descent
// for each parameter. It ends with 1 if a plan is wrong or misses its aim.
//
//	plan_models [-run] [-train DIR] [NAME...]
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/memplan"
)

var execute = flag.Bool("run", false, "also run the smaller plans in their arenas, and compare")

func main() {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	dirs := modelDirs()
	if len(dirs) == 0 {
		fmt.Println("nothing measured: no exported models in .cache/models, as scripts/referee makes them, or in ../models; GRADTOOL_MODELS names others")
		return
	}
	b := &models{}
	b.build()
	defer os.RemoveAll(b.tmp)
	fmt.Println("own: bytes alive in the order given, every value on its own; shared: the same with views and results in place;")
	fmt.Println("planned and floor (below which no order is) in % of own; gap: arena over the most bytes alive; aims: gap 0.5 %, 4 s on one thread")
	for _, sgd := range []bool{false, true} {
		what := "gradients are outputs"
		if sgd {
			what = "one step of gradient descent"
		}
		fmt.Printf("\n%s, the batch that the model was exported with\n%s\n", what, head)
		for _, d := range dirs {
			b.row(d, 0, sgd)
		}
	}
	for _, n := range []int64{1, 32} {
		fmt.Printf("\none step of gradient descent, batch %d\n%s\n", n, head)
		var sum float64
		count := 0
		for _, d := range dirs {
			if share := b.row(d, n, true); share > 0 {
				sum += share
				count++
			}
		}
		if count > 0 {
			fmt.Printf("%-20s planned %.1f %% of own on average\n", "mean", sum/float64(count))
			b.shares = append(b.shares, sum/float64(count))
		}
	}
	if len(b.shares) == 2 {
		mean := (b.shares[0] + b.shares[1]) / 2
		fmt.Printf("\norder and sharing alone, batches 1 and 32: %.1f %% of own on average, aim 70 %%: %s\n", mean, b.verdict(mean <= 70))
	}
	b.processes(dirs)
	if b.missed > 0 {
		fmt.Printf("\n%d aims missed\n", b.missed)
		os.Exit(1)
	}
}

const head = "model                 nodes     N         own      shared  planned    floor       arena   gap %   cpu s"

// models is a run of the program.
type models struct {
	bench
	shares []float64
}

// row plans one model and returns the planned peak in percent of its own.
func (b *models) row(dir string, n int64, sgd bool) float64 {
	byDefault := n == 0
	if byDefault {
		n = exported(dir)
	}
	m, c := load(b.training(dir), n, sgd)
	defer c.Close()
	begin := cpu()
	made, err := memplan.Make(m.Graph, memplan.PlanOptions{})
	check(err)
	made.Apply()
	plan := made.Plan(nil)
	seconds := cpu() - begin
	if err := memplan.Check(m.Graph, plan); err != nil {
		fmt.Printf("%s: the plan is wrong: %v %s\n", filepath.Base(dir), err, b.verdict(false))
		return 0
	}
	share := func(x int64) float64 { return 100 * float64(x) / float64(made.Given) }
	gap := 100 * (float64(made.Arena)/float64(made.Bound) - 1)
	note := ""
	if len(made.Outside) > 0 {
		note = fmt.Sprintf(", %d values outside", len(made.Outside))
	}
	if *execute && byDefault && made.Arena < 8<<20 {
		note += ", " + b.run(m, plan)
	}
	fmt.Printf("%-20s %6d %5d %11d %11d %7.1f%% %7.1f%% %11d %7.3f %7.2f %s%s\n", filepath.Base(dir), len(m.Graph.Nodes), n, made.Given, made.Shared,
		share(made.Peak), share(made.Floor), made.Arena, gap, seconds, b.verdict(gap <= 0.5 && seconds <= 4), note)
	return share(made.Peak)
}

// run executes a plan with inputs of small numbers, in its arena and without.
func (b *models) run(m *graph.Model, plan *memplan.Plan) string {
	var in []*op.Array
	for i, v := range m.Graph.Inputs {
		if v.Init != nil {
			in = append(in, nil)
			continue
		}
		dims, ok := v.Type.Shape.Ints()
		if !ok {
			return "not run: " + v.Name + " has no size"
		}
		var shape []int
		for _, d := range dims {
			shape = append(shape, int(d))
		}
		a := op.NewArray(v.Type.Elem, shape, false)
		for j := range a.F32 {
			a.F32[j] = float32((j*7919+i)%101)/50 - 1
		}
		for j := range a.I64 {
			a.I64[j] = int64(j * 31 % 3)
		}
		in = append(in, a)
	}
	outs := func(mem interp.Memory) []*op.Array {
		return must(must(interp.New(m, interp.Options{Memory: mem})).Run(in))
	}
	arena := must(memplan.NewArena(plan, m.Graph))
	want, got := outs(nil), outs(arena)
	for i := range want {
		x, y := must(want[i].Tensor().Data.Bytes()), must(got[i].Tensor().Data.Bytes())
		if !bytes.Equal(x, y) {
			return fmt.Sprintf("output %q differs in the arena: %s", m.Graph.Outputs[i].Name, b.verdict(false))
		}
	}
	return fmt.Sprintf("ran in %d bytes, outputs equal", arena.Size())
}
