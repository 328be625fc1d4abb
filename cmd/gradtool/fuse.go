package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/fuse"
	"gradtool/graph"
	"gradtool/graph/pass"
	"gradtool/internal/size"
	"gradtool/npu/machine"
)

func fuseVerb() verb {
	return verb{
		name: "fuse", group: groupStage, args: "[MODEL|-]", maxArgs: 1,
		summary: "group nodes into clusters that one kernel computes",
		about: `
Nodes that one kernel can compute without moving their intermediate results through memory become one call
of a model-local function in the domain "gradtool". Its body holds the very nodes, so any runtime that
knows functions (ONNX Runtime from 1.12 on) computes the same; a runtime that has a kernel of that name
may run it instead. Equal clusters share one function, whose name ends in a hash of its body. Clusters of
the backward part name the forward ones they belong to. "gradtool inline" restores the graph; for runtimes
without functions, --emit flat only says in each node's metadata which cluster it is of.

With --for ort standard operators take the place of what spells them out instead, where the model's opset (or
that of --opset) has them: Gemm, LayerNormalization, Gelu, Softmax, RMSNormalization, Attention,
RotaryEmbedding; products that are transposed afterwards are made the other way round, and rows are scattered into
what they would be added to. Results may differ in rounding, and where a mask hides a whole row: Attention
gives 0 there by definition, Softmax NaN. ONNX Runtime refuses Attention of an empty batch. --frozen names weights that
nobody trains: batch normalizations disappear in the convolutions in front of them.

With --chunk the product that makes the logits, the softmax cross entropy and the gradients of both are computed
by some rows or some classes at a time, so that the logits of a large vocabulary never exist as a whole. That
needs logits that are no output: drop them with prune --keep. Sums are in another order, so results differ in
rounding. auto takes what is estimated to need less memory, where the logits take 4 MiB or more.

With --chunk batch=K every node that treats the samples of a batch alike is computed in K parts of the batch, forward and
backward, so that no activation exists for the whole batch at once; no more arithmetic is done. Weight gradients, losses and the
statistics of batch normalizations are sums over all parts, so results are those of the whole batch but for the order of sums. The
batch is the leading axis that most inputs share, or the symbolic dimension named by ",dim=NAME" wherever they have it: it
stays symbolic, and its parts differ by at most one sample. Those of a batch smaller than K are empty, which some kernels of ONNX
Runtime refuse or do not return from. Without K it is the first power of two for which no node needs more than an eighth of
the memory of the step for its part, by the sizes that --dim gives. A runtime that orders nodes itself keeps many
parts at a time: "plan --budget" writes what holds them apart. Nodes that mix samples, random ones and those with subgraphs run whole;
--explain names them. No clusters are made unless --emit asks for them: "plan --budget" wants the nodes.

With --recompute attention the gradient of an attention computes its probabilities again, from queries, keys
and masks, in place of reading them: they are as large as the square of the sequence, and then cross no border
of a cluster. That is a change of the graph, which inline does not undo; every value stays what it was, bit by
bit. It is done where it saves traffic and, with --target, more time than the product takes; --explain says
what was left alone. Runtimes without a kernel for the clusters merge equal nodes again: for those, plan --budget
writes what they cannot merge.

What pays is decided by a model of the memory traffic in which --dim gives symbolic dimensions sizes (8
without). --target names a machine, and times are estimated: that of arithmetic or of memory traffic, whichever is
longer. For cpu, merges are compared by time, and small updates of an optimizer share a kernel where to begin one
takes longest. For an NPU, "gradtool lower" is asked which nodes it makes a kernel of at the sizes that --dim
gives, and each of its kernels is a cluster. --explain says what stays apart, and why.`,
		examples: []string{
			"gradtool fuse model.onnx -o fused.onnx",
			"gradtool grad --loss mse model.onnx | gradtool prune | gradtool fuse > train.onnx",
			"gradtool fuse --explain --dim N=32 model.onnx -o fused.onnx",
			"gradtool fuse --chunk batch=4 train.onnx | gradtool prune | gradtool plan --dim N=32 --budget 25% -o small.onnx",
			"gradtool fuse --for ort --frozen '*' model.onnx -o fast.onnx",
		},
		flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "emit", Value: "functions", DefaultText: "functions", Usage: "what becomes of clusters: calls of functions, or nodes with metadata: `functions|flat`"},
			&cli.StringFlag{Name: "for", Usage: "write no clusters, but the fused operators that a runtime has kernels for: `ort`"},
			&cli.StringSliceFlag{Name: "frozen", Usage: "take the float initializers `NAMES` for constants ('*': all); repeatable"},
			&cli.StringFlag{Name: "chunk", Usage: "compute the loss tail piece by piece: `auto|rows[=N]|classes[=N]`, or the whole graph: batch[=K][,dim=NAME]"},
			&cli.StringFlag{Name: "recompute", Usage: "let gradients compute again what they read of the forward part, where that pays: `attention`"},
			&cli.Int64Flag{Name: "opset", Usage: "with --for: write the model at ai.onnx opset `N` (default: the model's own)"},
			&cli.StringFlag{Name: "target", Usage: "the machine that clusters are for, which gives times to compare: `cpu|" + strings.Join(machine.Names(), "|") + "`"},
			&cli.Int64Flag{Name: "on-chip", Value: 128 << 10, DefaultText: "131072, or the target's", Usage: "memory that a kernel can hold beside its streams, in `BYTES`"},
			&cli.IntFlag{Name: "max-nodes", Value: 256, Usage: "make no cluster of more than `N` nodes"},
			&cli.BoolFlag{Name: "explain", Usage: "print each cluster, and why neighbours stay apart"},
			&cli.IntFlag{Name: "bisect-limit", Value: -1, DefaultText: "none", Usage: "stop after `N` rewrites or clusters and name the last"},
			dimFlag(),
		}, outputFlags(), inputFlags(), passFlags(), []cli.Flag{reportFlag()}),
		run: runFuse,
	}
}

// fusePass groups nodes into clusters. ask, if it is not nil, says which nodes the compiler for the machine makes a kernel of each.
func fusePass(opt fuse.Options, ask func(m *graph.Model) ([][]*graph.Node, error), res **fuse.Result) pass.Pass {
	return pass.Pass{
		Name: "fuse", Doc: "make calls of functions of what one kernel computes", Required: true, // its result is reported
		Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
			opt.Allow = c.Allow
			if ask != nil {
				var err error
				if opt.Kernels, err = ask(m); err != nil {
					return false, err
				}
			}
			r, err := fuse.Run(m, opt)
			if err != nil {
				return false, err
			}
			*res = r
			return len(r.Clusters) > 0, nil
		},
	}
}

// fuseOptions returns what the flags say.
func (s *session) fuseOptions() (fuse.Options, error) {
	opt := fuse.Options{Explain: s.Bool("explain")}
	var err error
	if opt.Machine, err = s.fuseMachine(); err != nil {
		return opt, err
	}
	switch e := s.String("emit"); e {
	case "functions":
	case "flat":
		opt.Flat = true
	default:
		return opt, usagef("--emit %q: want functions or flat", e)
	}
	if f := s.String("for"); s.IsSet("for") && f != "ort" {
		return opt, usagef("--for %q: want ort", f)
	}
	if s.IsSet("opset") && !s.IsSet("for") {
		return opt, usagef("--opset goes with --for: clusters leave operators as they are")
	}
	if s.IsSet("for") {
		list := []string{"emit", "max-nodes"}
		if !s.IsSet("recompute") {
			list = append(list, "target", "on-chip")
		}
		if err := s.idleFlags("with --for, which makes no clusters", list...); err != nil {
			return opt, err
		}
	}
	if s.byBatch() && !s.IsSet("emit") && !s.IsSet("for") {
		if err := s.idleFlags("with --chunk batch, which makes no clusters unless --emit asks for them", "target", "on-chip", "max-nodes"); err != nil {
			return opt, err
		}
	}
	if r := s.String("recompute"); s.IsSet("recompute") && r != "attention" {
		return opt, usagef("--recompute %q: want attention", r)
	}
	if opt.Machine.OnChip < 1 || opt.Machine.MaxNodes < 2 {
		return opt, usagef("--on-chip must be at least 1, --max-nodes at least 2")
	}
	opt.Dims, err = s.dims()
	return opt, err
}

// fuseMachine returns what --target and the flags beside it say.
func (s *session) fuseMachine() (fuse.Machine, error) {
	m := fuse.Machine{OnChip: s.Int64("on-chip"), MaxNodes: s.Int("max-nodes")}
	if !s.IsSet("target") {
		return m, nil
	}
	onChip := int64(1 << 20)
	switch t := s.String("target"); t {
	case "cpu": // two cores of a server of 2020 in float32, and a dispatch of a runtime
		m.Bandwidth, m.Speed, m.Launch = 15e9, 100e9, 5e-6
	default:
		n, err := machine.Builtin(t)
		if err != nil {
			return m, usagef("--target %q: want cpu, %s", t, strings.Join(machine.Names(), ", "))
		}
		cycles := float64(n.ClockMHz) * 1e6
		onChip = int64(n.Scratchpad.Bytes)
		m.Bandwidth, m.Speed = cycles*float64(n.DMA.BytesPerCycle), 2*cycles*float64(n.Array.Rows*n.Array.Cols)
		m.Launch = float64(n.DMA.Latency) / cycles
	}
	if !s.IsSet("on-chip") {
		m.OnChip = onChip
	}
	return m, nil
}

func runFuse(s *session) error {
	opt, err := s.fuseOptions()
	if err != nil {
		return err
	}
	path, err := s.inputPath()
	if err != nil {
		return err
	}
	out, err := s.target(derivedName(path, "fuse"))
	if err != nil {
		return err
	}
	open, err := s.reopener(path)
	if err != nil {
		return err
	}
	m, closer, err := open()
	if err != nil {
		return err
	}
	defer func() { closer.Close() }()
	if err := s.inspect(m); err != nil {
		return err
	}
	stages := []struct {
		asked bool
		run   func(*graph.Model) (bool, error)
	}{{s.IsSet("chunk") && !s.byBatch(), s.chunk}, {s.byBatch(), s.chunkBatch}, {s.IsSet("recompute"), s.recompute}, {s.IsSet("for") || s.IsSet("frozen"), s.rewriteFor}}
	changed := false
	for _, st := range stages {
		if !st.asked {
			continue
		}
		done, err := st.run(m)
		if err != nil {
			return err
		}
		changed = changed || done
		if !changed { // operators may have changed form: go on with what was read
			closer.Close()
			if m, closer, err = open(); err != nil {
				return err
			}
		}
	}
	if s.IsSet("for") || s.byBatch() && !s.IsSet("emit") {
		return s.saveModel(out, m)
	}
	var res *fuse.Result
	if err := s.runPasses(m, []pass.Pass{pass.Sort(), distinctPass(), fusePass(opt, s.asker(opt), &res)}); err != nil {
		return err
	}
	if err := s.saveModel(out, m); err != nil {
		return err
	}
	s.reportFusion(res, opt)
	return nil
}

// reportFusion says what became of the nodes.
func (s *session) reportFusion(r *fuse.Result, opt fuse.Options) {
	what := count(r.Kernels, "kernel") + ", " + count(len(r.Clusters), "cluster")
	if !opt.Flat {
		what += " in " + count(r.Shared, "function")
	}
	traffic := ""
	if before, after := dimNumber(r.Before.Between, opt.Dims), dimNumber(r.After.Between, opt.Dims); before > 0 {
		traffic = fmt.Sprintf("; traffic between kernels -%.0f %%", 100*(1-after/before))
	}
	if r.Seconds[1] > 0 {
		traffic += fmt.Sprintf("; %s -> %s on %s", seconds(r.Seconds[0]), seconds(r.Seconds[1]), s.String("target"))
		s.report.set("seconds_before", r.Seconds[0])
		s.report.set("seconds_after", r.Seconds[1])
	}
	s.summaryf("%s -> %s%s", count(r.Nodes, "node"), what, traffic)
	type cluster struct {
		ID    string   `json:"id"`
		Rule  string   `json:"rule"`
		Nodes []string `json:"nodes"`
		Pair  []string `json:"pair"`
		Saved string   `json:"saved_bytes"`
		Time  float64  `json:"seconds,omitempty"`
		Bound string   `json:"bound,omitempty"`
	}
	list := []cluster{}
	for _, c := range r.Clusters {
		e := cluster{ID: c.ID, Rule: c.Rule, Pair: append([]string{}, c.Pair...), Saved: c.Saved.String(), Time: c.Time[1].Seconds}
		if e.Time > 0 {
			e.Bound = "memory"
			if c.Time[1].Arithmetic {
				e.Bound = "arithmetic"
			}
		}
		for _, n := range c.Nodes {
			e.Nodes = append(e.Nodes, n.Label())
		}
		list = append(list, e)
		if opt.Explain && !s.quiet {
			s.say(c.ID+" ", fmt.Sprintf("%s: %s, saves %s bytes%s%s", c.Rule, count(len(c.Nodes), "node"), c.Saved, timeText(c), pairText(c.Pair)))
		}
	}
	refused := []string{}
	for _, x := range append(slices.Clone(r.Refusals), r.Left...) {
		refused = append(refused, x.String())
		if opt.Explain && !s.quiet {
			s.say("apart: ", x.String())
		}
	}
	rep := s.report
	rep.set("nodes", r.Nodes)
	rep.set("kernels", r.Kernels)
	rep.set("functions", r.Shared)
	rep.set("traffic_before", r.Before.Total.String())
	rep.set("traffic_after", r.After.Total.String())
	rep.set("between_before", r.Before.Between.String())
	rep.set("between_after", r.After.Between.String())
	rep.set("clusters", list)
	rep.set("apart", refused)
	if before, after := dimNumber(r.Before.Total, opt.Dims), dimNumber(r.After.Total, opt.Dims); before > 0 {
		s.verbosef("memory traffic %s -> %s, weights included", size.Bytes(int64(before)), size.Bytes(int64(after)))
	}
}

// seconds writes a time with three digits.
func seconds(t float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1, "s"}, {1e-3, "ms"}} {
		if t >= u.size {
			return fmt.Sprintf("%.3g %s", t/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.3g us", t*1e6)
}

// timeText says what a cluster takes, and what it waits for.
func timeText(c *fuse.Cluster) string {
	if c.Time[1].Seconds == 0 {
		return ""
	}
	by := "memory"
	if c.Time[1].Arithmetic {
		by = "arithmetic"
	}
	return fmt.Sprintf(", %s -> %s bound by %s", seconds(c.Time[0].Seconds), seconds(c.Time[1].Seconds), by)
}

func pairText(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ", goes with " + strings.Join(ids, " ")
}

// dimNumber evaluates d, with the size that the cost model takes for symbols that dims does not name.
func dimNumber(d graph.Dim, dims map[string]int64) float64 { return fuse.Estimate(d, dims) }
