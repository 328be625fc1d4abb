package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"gradtool/graph"
	"gradtool/graph/pass"
	"gradtool/internal/selector"
	"gradtool/onnxio"
	"gradtool/prune"
)

func pruneVerb() verb {
	return verb{
		name: "prune", group: groupStage, args: "[MODEL|-]", maxArgs: 1,
		summary: "remove what a model's outputs do not need, and simplify the rest",
		about: `
Removes nodes, initializers and functions that nothing reads, folds constants, merges equal nodes, applies
algebraic identities, writes shapes that are known as constants, and inlines Ifs and Loops that are decided.
Results keep every bit, but in gradients for zeros: a constant zero there is a missing cotangent, which adds
nothing and makes a product vanish. Where a Gemm or Conv takes in a bias a runtime may add in another order. Inputs and outputs keep their names, order and types; --keep drops
outputs. Nodes are counted without constants.

Float initializers are taken for weights that training changes, so they are no constants unless --frozen
names them. Constants do not make the file grow by more than 4 KiB per folded node and 1 MiB in all: large
tensors of one repeated element stay ConstantOfShape or Expand. Weights are never computed anew unless
--reassociate asks for it: then frozen ones take in the normalizations, factors and offsets behind their
convolution, and constants in a row become one, which moves results by a few units in the last place.

--budget makes a sparse update of a training graph: it keeps the gradients that are cheap for what they
change and drops the others, with all that only they need. Biases and other vectors come first, from the
loss to the input, then weights by bytes per number updated; of a weight that does not fit, a half, a
quarter or an eighth of its channels may be updated, the gradient of the others being zero. Sizes must be
known (--dim). What counts are activations, gradients and inputs that live at once in the order of the
nodes, not weights. --explain shows the choice.

A model in which nothing can be simplified
is written unchanged; one whose operators gradtool cannot bring into their newest form loses only what
nothing reads.`,
		examples: []string{
			"gradtool prune model.onnx -o small.onnx",
			"gradtool prune --frozen '*' --dim N=1 model.onnx -o inference.onnx",
			"gradtool grad --loss mse model.onnx | gradtool prune --keep '*_grad' --keep loss > train.onnx",
			"gradtool grad --loss mse model.onnx | gradtool prune --budget 256KiB --dim N=1 --explain > sparse.onnx",
			"gradtool prune --explain model.onnx -o /dev/null",
		},
		flags: slices.Concat([]cli.Flag{
			&cli.StringSliceFlag{Name: "keep", Usage: "keep the outputs `NAMES` and drop the others: a name, a glob, re:REGEXP or @FILE; repeatable"},
			&cli.StringSliceFlag{Name: "frozen", Usage: "take the float initializers `NAMES` for constants ('*': all); repeatable"},
			&cli.BoolFlag{Name: "inline", DisableDefaultText: true, Usage: "put the bodies of model-local functions in the place of their calls first"},
			&cli.BoolFlag{Name: "reassociate", DisableDefaultText: true, Usage: "group constant factors and terms anew, frozen weights too, which rounds differently"},
			dimFlag(),
			&cli.StringFlag{Name: "budget", Usage: "drop gradients until activations and gradients take at most `SIZE` at once: 256KiB, 40%, ..."},
			&cli.BoolFlag{Name: "explain", DisableDefaultText: true, Usage: "list the rules that were applied, and where others nearly were and why not"},
			&cli.IntFlag{Name: "bisect-limit", Value: -1, DefaultText: "none", Usage: "stop after `N` rewrites and name the last"},
		}, outputFlags(), inputFlags(), passFlags(), []cli.Flag{reportFlag()}),
		run: runPrune,
	}
}

func runPrune(s *session) error {
	path, err := s.inputPath()
	if err != nil {
		return err
	}
	out, err := s.target(derivedName(path, "prune"))
	if err != nil {
		return err
	}
	p := &pruner{session: s}
	if p.open, err = s.reopener(path); err != nil {
		return err
	}
	defer p.close()
	if err := p.run(); err != nil {
		return err
	}
	if err := s.saveModel(out, p.m); err != nil {
		return err
	}
	p.tell()
	return nil
}

// pruner is one run of the verb. The model is read again where it was changed in vain.
type pruner struct {
	*session
	open   func() (*graph.Model, io.Closer, error)
	m      *graph.Model
	closer io.Closer

	before    int // nodes of the main graph, as read
	plain     int // nodes that compute something, without those that nothing reads
	dropped   int // outputs
	functions int // as read
	bound     int // symbolic dimensions
	opt       prune.Options
	stats     prune.Stats
	form      error // why the operators cannot be brought into other forms
	sparse    *prune.Sparse
}

func (p *pruner) close() {
	if p.closer != nil {
		p.closer.Close()
		p.closer = nil
	}
}

// read reads the model and does what the flags say about outputs and sizes.
func (p *pruner) read() error {
	p.close()
	var err error
	if p.m, p.closer, err = p.open(); err != nil {
		return err
	}
	if err := p.inspect(p.m); err != nil {
		return err
	}
	p.before, p.functions = computing(p.m), len(p.m.Functions)
	dims, err := p.dims()
	if err != nil {
		return err
	}
	if err := bindDims(p.m, dims); err != nil {
		return err
	}
	if len(dims) > 0 || p.IsSet("keep") {
		p.sound = nil
	}
	if p.bound = len(dims); p.bound > 0 {
		for g := range p.m.Graph.Graphs() {
			onnxio.Redeclare(slices.Collect(g.Values())...)
		}
	}
	if err := p.keep(); err != nil {
		return err
	}
	return p.frozen()
}

// keep drops the outputs that --keep does not name.
func (p *pruner) keep() error {
	if !p.IsSet("keep") {
		return nil
	}
	outputs := p.m.Graph.Outputs
	sel := selector.Selector{What: "output", Names: names(outputs), ReadFile: os.ReadFile}
	chosen, err := sel.Select(p.StringSlice("keep"))
	if err != nil {
		return fmt.Errorf("--keep: %w", err)
	}
	kept := pick(outputs, chosen)
	p.dropped = len(outputs) - len(kept)
	p.m.Graph.SetOutputs(kept...)
	return nil
}

// frozen reads --frozen.
func (p *pruner) frozen() error {
	p.opt.Explain, p.opt.Reassociate = p.Bool("explain"), p.Bool("reassociate")
	var err error
	p.opt.Frozen, err = p.frozenInits(p.m)
	return err
}

// frozenInits returns whether an initializer is one that --frozen names, nil without the flag.
func (s *session) frozenInits(m *graph.Model) (func(*graph.Value) bool, error) {
	if !s.IsSet("frozen") {
		return nil, nil
	}
	inits := floatInits(m)
	sel := selector.Selector{What: "float initializer", Names: names(inits), ReadFile: os.ReadFile}
	chosen := []string{}
	if patterns := s.StringSlice("frozen"); len(inits) > 0 || !slices.Equal(patterns, []string{"*"}) {
		var err error
		if chosen, err = sel.Select(patterns); err != nil {
			return nil, fmt.Errorf("--frozen: %w", err)
		}
	}
	set := map[*graph.Value]bool{}
	for _, v := range pick(inits, chosen) {
		set[v] = true
	}
	return func(v *graph.Value) bool { return set[v] }, nil
}

// run prunes, in full if it can.
func (p *pruner) run() error {
	if err := p.read(); err != nil {
		return err
	}
	err := p.runPassesOf(p.m, prunePasses(p), p.sound == p.m)
	simple := computing(p.m)
	switch {
	case p.IsSet("budget"):
		if p.form != nil {
			return fmt.Errorf("--budget: %w", p.form)
		}
		return err
	case err != nil && p.form != nil:
		p.notef("only what nothing reads is removed: %v", p.form)
	case err != nil:
		return err
	case p.Bool("inline") && len(p.m.Functions) < p.functions:
		return nil
	case !p.stats.Changed() && p.dropped+p.bound == 0:
		return p.read() // operators may have changed form: write what was read
	case simple <= p.plain:
		return nil
	}
	p.stats = prune.Stats{}
	known := prune.Constants(p.m)
	if err := p.read(); err != nil {
		return err
	}
	passes := prunePasses(p)[:1]
	if p.sound == p.m && p.form == nil { // names tell values apart
		passes = append(passes, carryPass(p, known))
	}
	return p.runPassesOf(p.m, passes, p.sound == p.m)
}

// carryPass keeps the constants that were found in vain.
func carryPass(p *pruner, known map[string]*graph.Tensor) pass.Pass {
	return pass.Pass{
		Name: "carry", Doc: "put in the constants that were found in a form with more nodes",
		Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
			st := prune.Carry(m, known, c.Allow)
			p.stats.Add(st)
			return st.Changed(), nil
		},
	}
}

// computing returns the number of nodes in all graphs and functions that are no constants.
func computing(m *graph.Model) int {
	count := nodesOf(m.Graph)
	for _, f := range m.Functions {
		count += nodesOf(f.Body)
	}
	return count
}

// nodesOf returns the number of nodes in a graph and its subgraphs that are no constants: what verbs count.
func nodesOf(g *graph.Graph) int {
	count := 0
	for n := range g.AllNodes() {
		if !n.Is("Constant") {
			count++
		}
	}
	return count
}

// tell says what was done.
func (p *pruner) tell() {
	after := computing(p.m)
	what := p.stats.String()
	if p.dropped > 0 {
		if what != "" {
			what = ", " + what
		}
		what = count(p.dropped, "output") + " dropped" + what
	}
	if what == "" {
		what = "nothing to remove"
	}
	p.summaryf("%s -> %s, %s", count(p.before, "node"), count(after, "node"), what)
	p.tellSparse()
	if p.Bool("explain") {
		docs := prune.Docs()
		for _, c := range p.stats.Rules {
			fmt.Fprintf(p.messages, "%6d  %s: %s\n", c.N, c.Name, docs[c.Name])
		}
		for _, m := range p.stats.Misses {
			fmt.Fprintf(p.messages, "near miss: %s\n", m)
		}
	}
	r := p.report
	r.set("nodes_before", p.before)
	r.set("nodes_after", after)
	r.set("outputs_dropped", p.dropped)
	r.set("dead_nodes", p.stats.Dead)
	r.set("identities", p.stats.Identities)
	r.set("folded_nodes", p.stats.Folded)
	r.set("constant_shapes", p.stats.Shapes)
	r.set("merged_nodes", p.stats.Merged)
	r.set("inlined_ifs", p.stats.Ifs)
	r.set("inlined_loops", p.stats.Loops)
	r.set("equal_initializers", p.stats.Tied)
	r.set("unused_initializers", p.stats.Inits)
	r.set("unused_functions", p.stats.Functions)
	rules := map[string]int{}
	for _, c := range p.stats.Rules {
		rules[c.Name] = c.N
	}
	r.set("rules", rules)
	if p.Bool("explain") {
		r.set("near_misses", append([]string{}, p.stats.Misses...))
	}
}

// prunePasses are the passes of prune. The first needs no canonical form.
func prunePasses(p *pruner) []pass.Pass {
	upgrade, inline := pass.Upgrade(), pass.Inline(nil)
	opset := opsetPass(0)
	return []pass.Pass{
		{
			Name: "clean", Doc: "remove dead nodes, identities, unused initializers and functions",
			Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
				p.stats = prune.Clean(m)
				p.plain = computing(m)
				return p.stats.Changed(), nil
			},
		},
		{
			Name: inline.Name, Doc: inline.Doc, Required: true,
			Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
				if !p.Bool("inline") {
					return false, nil
				}
				return inline.Run(c, m)
			},
		},
		{
			Name: upgrade.Name, Doc: upgrade.Doc, Required: true,
			Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
				changed, err := upgrade.Run(c, m)
				p.form = err
				return changed, err
			},
		},
		{
			Name: "prune", Doc: "fold constants, merge equal nodes, apply the rules, inline what is decided",
			Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
				opt := p.opt
				opt.Allow = c.Allow
				st, err := prune.Run(m, opt)
				p.stats.Add(st)
				return st.Changed(), err
			},
		},
		{
			Name: "budget", Doc: "drop gradients that do not fit --budget", Required: true,
			Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
				if !p.IsSet("budget") {
					return false, nil
				}
				return true, p.fit(c, m)
			},
		},
		{
			Name: opset.Name, Doc: opset.Doc, Required: true,
			Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
				changed, err := opset.Run(c, m)
				p.form = err
				return changed, err
			},
		},
	}
}

// reopener returns a function that reads the model, as often as it is called.
func (s *session) reopener(path string) (func() (*graph.Model, io.Closer, error), error) {
	if path != "-" {
		return func() (*graph.Model, io.Closer, error) { return s.openModel(path) }, nil
	}
	// A file that is redirected here can be read again from its start. What a pipe brings is kept in one.
	if _, err := s.stdin.Seek(0, io.SeekCurrent); err == nil {
		return func() (*graph.Model, io.Closer, error) {
			if _, err := s.stdin.Seek(0, io.SeekStart); err != nil {
				return nil, nil, err
			}
			return s.openModel(path)
		}, nil
	}
	f, err := os.CreateTemp("", "gradtool-")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name()) // it lives until it is closed
	if _, err := io.Copy(f, s.stdin); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.stdin = f
	return s.reopener(path)
}
