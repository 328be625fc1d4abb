package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/fuse"
	"gradtool/graph"
	"gradtool/graph/pass"
	"gradtool/internal/size"
	"gradtool/npu/asm"
	"gradtool/npu/binary"
	"gradtool/npu/isa"
	"gradtool/npu/lower"
	"gradtool/npu/machine"
	"gradtool/npu/profile"
	"gradtool/npu/sim"
	"gradtool/onnxio"
	"gradtool/prune"
)

func lowerVerb() verb {
	return verb{
		name: "lower", group: groupStage, args: "[MODEL|-]", maxArgs: 1,
		summary: "compile a model for an NPU: a program for the machine that \"gradtool run\" simulates",
		about: `
Compiles the whole graph, of a model or of a training step that grad made, for a machine: operators become kernels
over buffers, kernels are cut into tiles that fit on chip, tiles become instructions of the machine's four queues.
The result is an ELF file that "gradtool run" runs, and "gradtool disasm" lists.

Every dimension needs a size: --dim gives symbols theirs. Integers are 32 bits wide on the machine. Operators
that have no lowering are listed, with the reason, and nothing is written.

Of the clusters that "gradtool fuse" has made it is said how many are one kernel, or a row of kernels that hand each
other what they make on chip. --explain lists the kernels of each cluster, what lies between them and where, and
why they are not one. "gradtool fuse --target ref-edge" makes clusters that are one kernel each.`,
		examples: []string{
			"gradtool grad --loss softmax-cross-entropy lenet.onnx | gradtool lower --dim N=32 -o step.npu",
			"gradtool lower --machine ref-small --dim N=1 model.onnx -o model.npu",
			"gradtool lower --dim N=1 --print-level legal model.onnx",
		},
		flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "target", Value: "ref", DefaultText: "ref", Usage: "the kind of machine: `ref`, the reference NPU"},
			&cli.StringFlag{Name: "machine", Value: "ref-edge", DefaultText: "ref-edge",
				Usage: "a machine that is built in (" + strings.Join(machine.Names(), ", ") + ") or the JSON file that describes one: `NAME|FILE`"},
			dimFlag(),
			&cli.StringFlag{Name: "print-level", Usage: "print a level of the compilation on standard output in place of the program: `legal|tile|stream`"},
			narrowFlag(),
			&cli.BoolFlag{Name: "unfused", DisableDefaultText: true, Usage: "keep operators apart: each reads its operands from DRAM and writes its results there"},
			&cli.BoolFlag{Name: "explain", DisableDefaultText: true, Usage: "print what became of each cluster of fuse: its kernels, what lies between them, and why they are not one"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the program to `FILE`, - for standard output even if that is a terminal"},
			&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "replace an existing file that -o does not name"},
		}, inputFlags(), []cli.Flag{reportFlag()}),
		run: runLower,
	}
}

// readMachine returns the machine that --machine and --target name.
func (s *session) readMachine() (*machine.Machine, error) {
	if t := s.String("target"); t != "ref" {
		return nil, usagef("--target %q: there is ref", t)
	}
	return machineNamed(s.String("machine"))
}

func runLower(s *session) error {
	path, err := s.inputPath()
	if err != nil {
		return err
	}
	level := s.String("print-level")
	if !slices.Contains([]string{"", "legal", "tile", "stream"}, level) {
		return usagef("--print-level %q: want legal, tile or stream", level)
	}
	if level != "" {
		if err := s.idleFlags("with --print-level, which prints on standard output", "output", "force"); err != nil {
			return err
		}
	}
	var out target
	if level == "" {
		if out, err = s.target(programName(path)); err != nil {
			return err
		}
	}
	mach, err := s.readMachine()
	if err != nil {
		return err
	}
	m, closer, err := s.openModel(path)
	if err != nil {
		return err
	}
	defer closer.Close()
	if err := s.inspect(m); err != nil {
		return err
	}
	nodes := nodesOf(m.Graph)
	bounds, err := s.prepareLowering(m)
	if err != nil {
		return err
	}
	source := ""
	if path != "-" {
		if source, err = fileHash(path); err != nil {
			return err
		}
	}
	r, err := lowerModel(m, lower.Options{Machine: mach, Source: source, Plain: s.Bool("unfused")})
	if err != nil {
		return err
	}
	setBounds(r.Program, bounds)
	if level == "legal" {
		_, err := io.WriteString(s.stdout, r.Legal.String())
		return stdoutError(err)
	}
	if err := s.fallbacks(r); err != nil {
		return err
	}
	switch level {
	case "tile":
		_, err := io.WriteString(s.stdout, r.Tiles())
		return stdoutError(err)
	case "stream":
		return stdoutError(asm.Disassemble(s.stdout, r.Program, asm.Options{}))
	}
	tl, err := sim.Time(r.Program)
	if err != nil {
		return err
	}
	r.Program.Cost = profile.New(r.Program, tl).Summary()
	if err := s.save(out, func(w io.Writer) error { return binary.Write(w, r.Program) }); err != nil {
		return err
	}
	s.tellLowered(nodes, r)
	return nil
}

// lowerModel lowers a model, with a remedy if the machine is too small for it.
func lowerModel(m *graph.Model, opt lower.Options) (*lower.Result, error) {
	r, err := lower.Model(m, opt)
	var full *lower.MemoryError
	if errors.As(err, &full) {
		err = hint(err, `give dimensions smaller sizes (--dim), or take a machine with more: "gradtool machine" lists some, dram.bytes is the field in a description of your own`)
	}
	return r, err
}

func narrowFlag() cli.Flag {
	return &cli.BoolFlag{Name: "narrow", DisableDefaultText: true,
		Usage: "compute values of type double as float, inputs and outputs too; without it they are listed as what cannot be lowered"}
}

// fallbacks returns an error that lists the nodes that have no lowering, if there are any.
func (s *session) fallbacks(r *lower.Result) error {
	n := len(r.Legal.Fallbacks)
	if n == 0 {
		return nil
	}
	var list []string
	for _, f := range r.Legal.Fallbacks {
		what := f.Node
		if op := "(" + f.Op + ")"; !strings.HasSuffix(what, op) {
			what += " " + op
		}
		list = append(list, what+": "+f.Reason)
	}
	s.report.set("fallbacks", list)
	err := fmt.Errorf("%s cannot be lowered:\n  %s", count(n, "node"), strings.Join(list, "\n  "))
	for _, x := range []struct{ reason, remedy string }{
		{"type double", "--narrow computes values of type double as float"},
		{"has no elements", "a program computes with elements: give dimensions a size of 1 or more with --dim"},
		{"more than 32 bits", "integers of a program have 32 bits: places in smaller tensors, of smaller dimensions (--dim), may fit"},
	} {
		if slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, x.reason) }) {
			err = hint(err, "%s", x.remedy)
		}
	}
	return err
}

// programName returns the name of the program made of a model's file.
func programName(path string) string {
	if path == "-" {
		return ""
	}
	return strings.TrimSuffix(path, ".onnx") + ".npu"
}

func fileHash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// setBounds notes in a program what integers its inputs index, so that whoever makes values up makes those that it would make up for the
// model. p may be nil.
func setBounds(p *isa.Program, bounds map[string]int64) {
	if p == nil {
		return
	}
	for i := range p.Inputs {
		p.Inputs[i].Below = bounds[p.Inputs[i].Name]
	}
}

// prepareLowering gives dimensions their sizes, brings all operators into one form, puts function bodies in the place of calls, and
// simplifies what the sizes decide. It returns what integer inputs are below of, by name.
func (s *session) prepareLowering(m *graph.Model) (bounds map[string]int64, err error) {
	dims, err := s.dims()
	if err != nil {
		return nil, err
	}
	if err := bindDims(m, dims); err != nil {
		return nil, err
	}
	if len(dims) > 0 {
		for g := range m.Graph.Graphs() {
			onnxio.Redeclare(slices.Collect(g.Values())...)
		}
	}
	if open := inputSymbols(m); len(open) > 0 {
		return nil, hint(usagef("the sizes of dimensions %s are not known", strings.Join(open, ", ")), "give them with --dim %s=SIZE", open[0])
	}
	bounds = map[string]int64{}
	return bounds, s.runPasses(m, s.loweringPasses(bounds))
}

// loweringPasses are the passes before a model is lowered. They enter into bounds what integer inputs are below of.
func (s *session) loweringPasses(bounds map[string]int64) []pass.Pass {
	return []pass.Pass{
		pass.Sort(),
		{Name: "unfuse", Doc: "put the nodes of clusters back in the place of their calls", Required: true,
			Run: func(_ *pass.Ctx, m *graph.Model) (bool, error) {
				n, err := fuse.Flatten(m)
				return n > 0, badModel(err)
			}},
		pass.Inline(nil), pass.Upgrade(),
		{Name: "narrow", Doc: "give values of type double the type float", Required: true,
			Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
				if !s.Bool("narrow") {
					return false, nil
				}
				n, lost, err := lower.Narrow(m)
				if len(lost) > 0 {
					s.notef("--narrow: float does not reach all numbers of %s: %s", count(len(lost), "constant"), strings.Join(lost, ", "))
				}
				for g := range m.Graph.Graphs() {
					onnxio.Redeclare(slices.Collect(g.Values())...)
				}
				for i := range s.declared { // the types that outputs now have are those asked for
					if d := &s.declared[i]; d.v != nil && d.t.Elem == graph.Double {
						d.t.Elem = graph.Float
					}
				}
				c.Note("%d types", n)
				return n > 0, err
			}},
		pass.Infer(),
		{Name: "bounds", Doc: "note what integer inputs index", Required: true,
			Run: func(_ *pass.Ctx, m *graph.Model) (bool, error) {
				for _, v := range m.Graph.Inputs {
					if v.Type.Elem.IsInt() {
						bounds[v.Name] = indexBound(v)
					}
				}
				return false, nil
			}},
		{Name: "prune", Doc: "fold constants, merge equal nodes, apply the rules, inline what is decided",
			Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
				st, err := prune.Run(m, prune.Options{Allow: c.Allow})
				return st.Changed(), err
			}},
	}
}

// tellLowered says what was made.
func (s *session) tellLowered(nodes int, r *lower.Result) {
	total := 0
	for q := isa.Queue(0); q < isa.NumQueues; q++ {
		n := len(r.Program.Queues[q])
		total += n
		s.report.set(q.String()+"_instructions", n)
	}
	s.report.set("nodes", nodes)
	s.report.set("kernels", len(r.Legal.Kernels))
	s.report.set("instructions", total)
	s.report.set("dram_bytes", r.Program.DRAMBytes)
	clusters := ""
	list := r.Clusters()
	if s.Bool("explain") {
		list = r.Explained()
	}
	if len(list) > 0 {
		single, together := 0, 0
		for _, c := range list {
			switch {
			case c.Kernels == 1:
				single++
			case c.Together:
				together++
			}
		}
		s.report.set("clusters", list)
		clusters = fmt.Sprintf(", %d of %s in one kernel", single, count(len(list), "cluster"))
		if together > 0 {
			clusters += fmt.Sprintf(", %d in a row of kernels on chip", together)
		}
		if single == len(list) {
			clusters = fmt.Sprintf(", %s in one kernel each", count(single, "cluster"))
		}
	}
	s.summaryf("%s -> %s%s, %s, %s of DRAM, for %s", count(nodes, "node"), count(len(r.Legal.Kernels), "kernel"), clusters, count(total, "instruction"),
		size.Bytes(r.Program.DRAMBytes), r.Program.Machine.Name)
	switch {
	case !s.Bool("explain") || s.quiet:
	case len(list) == 0:
		s.notef("no node is of a cluster: \"gradtool fuse\" makes some")
	default:
		s.explainClusters(list)
	}
}

// explainClusters says which kernels a cluster became, what is between them, and how often each reason was given.
func (s *session) explainClusters(list []lower.Cluster) {
	type reason struct {
		n    int
		text string
	}
	var reasons []reason
	for _, c := range list {
		if c.Kernels == 1 {
			s.say(c.Name, ": 1 kernel")
			continue
		}
		text := fmt.Sprintf(": %s", count(c.Kernels, "kernel"))
		for _, p := range c.Parts {
			text += fmt.Sprintf("\n%d: %s (%s)", p.Kernel, p.Node, p.Ops)
			if len(p.With) > 0 {
				text += " with parts of " + strings.Join(p.With, ", ")
			}
		}
		for _, b := range c.Borders {
			text += "\n" + b.String()
			i := slices.IndexFunc(reasons, func(r reason) bool { return r.text == b.Why })
			if i < 0 {
				i = len(reasons)
				reasons = append(reasons, reason{text: b.Why})
			}
			reasons[i].n++
		}
		s.say(c.Name, text)
	}
	slices.SortStableFunc(reasons, func(a, b reason) int { return b.n - a.n })
	for _, r := range reasons {
		s.say(count(r.n, "border")+": ", r.text)
	}
}
