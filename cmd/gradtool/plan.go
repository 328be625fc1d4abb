package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"gradtool/internal/size"
	"gradtool/memplan"
	"gradtool/memplan/offset"
	"gradtool/memplan/remat"
)

func planVerb() verb {
	return verb{
		name: "plan", group: groupStage, args: "[MODEL|-]", maxArgs: 1,
		summary: "plan memory: order, shared bytes, and places in one arena",
		about: `
Puts the nodes of a model in an order that needs little memory, decides which values share bytes (views,
results in place of operands that die, an optimizer's results in place of its parameters), and gives each value
that nodes compute a place in one arena. The model written has its nodes in that order and the plan in its
metadata ("gradtool.plan"); any runtime runs it as before, and "gradtool run --plan" runs it in an arena of
exactly that size. Every plan is replayed by a checker of its own before it is written. Inputs, initializers and
what has no size before the model runs lie elsewhere. Sizes must be known: --dim gives symbolic dimensions
theirs. The model keeps the symbols; the plan is for those sizes.

With --budget values are computed again that would be kept too long, such that the arena keeps to the budget at the
least cost found; the model written has the copies, marked "recompute", and barriers that keep a runtime which
orders or merges nodes by rules of its own from undoing that. A tighter budget never has a cheaper plan. A budget that cannot
be kept to is refused with the node at which memory lacks, and what is alive there. Random operators without a seed,
operators with subgraphs and whatever has "gradtool.remat": "keep" in its metadata are never computed again; "again"
there allows it.

With --memory values lie in several memories, each with addresses of its own. The first gets those that move the most
bytes for the room and time that they take; what does not fit is spilled to the next.

Without a model the planners work on their own, on tables of buffers and bare graphs. --buffers reads CSV with
the columns id, lower, upper (lifetime, half-open), size and optionally alignment, gaps, hint and offset (where a
buffer is fixed), as MiniMalloc does, and writes it with the offsets. With --memory two more columns say in which memory a buffer must
lie (memory) and what it costs to have it one memory further (spill, otherwise its size). The bound is the most bytes that live at one
time: no plan is lower.
--remat-graph reads a graph of computations in NetworkX's node-link JSON, as Moccasin has it: nodes with id, memory
(cost_ram or out_cost) and cost (cost_cpu or duration), links from what is read to its readers. It writes a sequence,
in which nodes may come again, whose memory stays within --budget at the least cost found, and prints a bound on the
cost of all sequences. A share is one of the peak of the graph's own order.`,
		examples: []string{"gradtool plan --dim N=32 train.onnx -o planned.onnx", "gradtool plan --explain --dim N=32 train.onnx -o planned.onnx",
			"gradtool plan --dim N=32 --curve train.onnx", "gradtool plan --dim N=32 --budget 50% train.onnx -o small.onnx",
			"gradtool plan --dim N=1 --memory sram=256KiB --memory dram model.onnx -o placed.onnx",
			"gradtool plan --buffers live.csv -o plan.csv", "gradtool plan --buffers live.csv --capacity 1048576 -o plan.csv",
			"gradtool plan --remat-graph net.json --budget 70% -o plan.json"},
		flags: slices.Concat([]cli.Flag{
			&cli.BoolFlag{Name: "keep-order", Usage: "leave nodes in the order that they have"},
			&cli.BoolFlag{Name: "explain", Usage: "print what is alive at the peak and why, and memory over time"},
			&cli.StringSliceFlag{Name: "draw", Usage: "write memory over time to `FILE`: .svg and .html (time and addresses), .csv (a row for each value), .json (Chrome trace) or .txt; repeatable"},
			dimFlag(),
			&cli.StringFlag{Name: "buffers", Usage: "read buffers from `FILE`, - for standard input"},
			&cli.StringFlag{Name: "capacity", Usage: "find a plan of at most `BYTES`, in place of the lowest"},
			&cli.StringSliceFlag{Name: "memory", Usage: "put values in several memories: a `NAME=BYTES` for each, the most wanted first; the last may be a name alone, for one without limit; repeatable"},
			&cli.StringFlag{Name: "remat-graph", Usage: "read a graph from `FILE`, - for standard input"},
			&cli.Int64Flag{Name: "effort", DefaultText: fmt.Sprintf("%d, %d for buffers, %d for graphs", memplan.DefaultEffort/million, offset.DefaultBudget/million, remat.DefaultMoves/million),
				Usage: "stop after about `N` million steps of search"},
		}, budgetFlags(), outputFlags(), inputFlags(), passFlags(), []cli.Flag{reportFlag()}),
		run: runPlan,
	}
}

// million is the unit of --effort.
const million = 1_000_000

func runPlan(s *session) error {
	buffers, graph := s.String("buffers") != "", s.String("remat-graph") != ""
	if e := s.Int64("effort"); s.IsSet("effort") && (e < 1 || e > million) {
		return usagef("--effort %d, want 1 to %d", e, million)
	}
	if err := s.idlePlanFlags(buffers || graph); err != nil {
		return err
	}
	if (buffers || graph) && s.NArg() > 0 {
		return usagef("--buffers and --remat-graph plan without a model, got %s", s.Args().First())
	}
	switch {
	case buffers && graph:
		return usagef("--buffers and --remat-graph are two different things to do")
	case buffers && s.IsSet("budget"):
		return hint(usagef("--budget is for --remat-graph"), "--capacity bounds the arena of --buffers")
	case buffers && s.IsSet("capacity") && s.IsSet("memory"):
		return hint(usagef("--capacity is for one memory"), "each --memory has a capacity of its own")
	case graph && s.IsSet("memory"):
		return usagef("--memory is for models and --buffers")
	case graph && s.IsSet("capacity"):
		return hint(usagef("--capacity is for --buffers"), "--budget bounds the memory of --remat-graph")
	case buffers:
		return s.planBuffers()
	case graph:
		return s.planRemat()
	case s.IsSet("capacity"):
		return usagef("--capacity goes with --buffers")
	case s.IsSet("memory") && (s.IsSet("budget") || s.Bool("curve")):
		return hint(usagef("--memory and --budget do not go together"), "plan within the budget first, then spread what that plan keeps: gradtool plan --budget ... | gradtool plan --keep-order --memory ...")
	}
	return s.planModel()
}

// idlePlanFlags refuses flags that would have no effect. bare says that there is no model.
func (s *session) idlePlanFlags(bare bool) error {
	switch {
	case bare:
		return s.idleFlags("without a model", "keep-order", "explain", "draw", "dim", "curve", "policy", "costs", "barrier", "external-data",
			"base-dir", "importer", "print-after", "dump-passes", "time-passes", "no-verify")
	case s.Bool("curve"):
		return s.idleFlags("with --curve, which writes no model, but what each budget costs", "budget", "barrier", "explain", "draw", "external-data")
	case !s.IsSet("budget"):
		return s.idleFlags("without --budget: nothing is computed again", "policy", "costs", "barrier")
	}
	return nil
}

// effort returns how many steps of search to make.
func (s *session) effort(otherwise int64) int64 {
	if s.IsSet("effort") {
		return s.Int64("effort") * million
	}
	return otherwise
}

// dataTarget is where a plan goes.
func (s *session) dataTarget() target {
	if o := s.String("output"); o != "" {
		return target{path: o}
	}
	return target{path: "-"}
}

// planRemat finds what to compute twice.
func (s *session) planRemat() error {
	if s.String("budget") == "" {
		return usagef("--remat-graph needs --budget BYTES|%%")
	}
	amount, err := size.Parse(s.String("budget"))
	if err != nil {
		return usagef("--budget: %v", err)
	}
	var g *remat.Graph
	err = s.readFile(s.String("remat-graph"), func(r io.Reader) (err error) {
		g, err = remat.ReadJSON(r)
		return err
	})
	if err != nil {
		return err
	}
	own, err := remat.Simulate(g, g.Order)
	if err != nil {
		return err
	}
	budget := amount.Of(own.Peak)
	begin := time.Now()
	p, err := remat.Solve(g, budget, int(s.effort(remat.DefaultMoves)))
	if err != nil {
		return err
	}
	took := time.Since(begin)
	if err := remat.Check(g, p.Plan, budget); err != nil {
		return fmt.Errorf("the plan is wrong, please report this: %w", err)
	}
	if err := s.save(s.dataTarget(), func(w io.Writer) error { return remat.WriteJSON(w, g, p.Plan, budget) }); err != nil {
		return err
	}
	increase := func(cost int64) float64 {
		if base := g.BaseCost(); base > 0 {
			return 100 * (float64(cost)/float64(base) - 1)
		}
		return 0
	}
	bound := "proved least"
	if p.Cost > p.Bound {
		bound = fmt.Sprintf("bound +%.3f %%", increase(p.Bound))
	}
	again := len(p.Sequence) - len(g.Names)
	s.report.set("nodes", len(g.Names))
	s.report.set("order_peak", own.Peak)
	s.report.set("budget", budget)
	s.report.set("peak", p.Peak)
	s.report.set("cost", p.Cost)
	s.report.set("bound", p.Bound)
	s.report.set("cost_increase_percent", increase(p.Cost))
	s.report.set("recomputations", again)
	s.summaryf("%s, own peak %d, budget %d, peak %d, %s, cost +%.3f %% (%s), %s", count(len(g.Names), "node"), own.Peak, budget,
		p.Peak, count(again, "recomputation"), increase(p.Cost), bound, size.Duration(took))
	return nil
}

// readFile has read read a file, or standard input for "-"; errors name the file.
func (s *session) readFile(path string, read func(io.Reader) error) error {
	if path == "-" {
		if err := read(bufio.NewReader(s.stdin)); err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := read(bufio.NewReader(f)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
