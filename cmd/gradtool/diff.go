package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
	"gradtool/internal/table"
)

func diffVerb() verb {
	return verb{
		name: "diff", group: groupRead, args: "A B", maxArgs: 2,
		summary: "compare two models: inputs, outputs, operators, weights, and what they compute",
		about: `
Says how inputs, outputs, opsets, initializers and the numbers of nodes per operator differ, and whether the
graphs are the same up to the names of values and the order of nodes. Then both compute on the same random
inputs, in the types of the models; symbolic dimensions have the size 3 unless --dim says. "gradtool check
--equiv" tries more inputs. --inline undoes "gradtool fuse" and inlines functions first.
Ends with exit code 3 if something differs.`,
		examples: []string{"gradtool diff model.onnx pruned.onnx", "gradtool diff --inline --structure model.onnx fused.onnx"},
		flags: slices.Concat([]cli.Flag{
			&cli.BoolFlag{Name: "structure", Usage: "compare the graphs only, compute nothing"},
			&cli.BoolFlag{Name: "inline", Usage: "compare what is left when functions are inlined"},
			&cli.GenericFlag{Name: "random", Value: &optional{accepts: isSeed}, Usage: "seed of the random inputs: `SEED`"},
			&cli.Float64Flag{Name: "rtol", DefaultText: "1e-6", Usage: "relative tolerance `R`"},
			&cli.Float64Flag{Name: "atol", DefaultText: "1e-6 of the largest element", Usage: "absolute tolerance `A`"},
			dimFlag(), jsonFlag(), reportFlag(),
		}, inputFlags()),
		run: runDiff,
	}
}

// openPair opens the two models that the command line names.
func (s *session) openPair() (m [2]*graph.Model, closers []io.Closer, err error) {
	if s.NArg() != 2 {
		return m, nil, usagef("%s compares two models, got %s", s.verb.name, count(s.NArg(), "argument"))
	}
	for i := range m {
		path := s.Args().Get(i)
		if path == "-" && s.Args().Get(1-i) == "-" {
			return m, closers, usagef("only one of the two models can come from standard input")
		}
		var c io.Closer
		if m[i], c, err = s.openModel(path); err != nil {
			return m, closers, err
		}
		closers = append(closers, c)
		if err := s.inspect(m[i]); err != nil {
			return m, closers, err
		}
	}
	return m, closers, nil
}

func closeAll(list []io.Closer) {
	for _, c := range list {
		c.Close()
	}
}

// opCount is how often an operator occurs in two models.
type opCount struct {
	Op     string `json:"op"`
	First  int    `json:"first"`
	Second int    `json:"second"`
}

func runDiff(s *session) error {
	if s.Bool("structure") {
		if err := s.idleFlags("with --structure, which computes nothing", "random", "rtol", "atol", "dim"); err != nil {
			return err
		}
	}
	m, closers, err := s.openPair()
	defer closeAll(closers)
	if err != nil {
		return err
	}
	if s.Bool("inline") {
		for _, x := range m {
			if err := flatten(x); err != nil {
				return badModel(err)
			}
		}
	}
	apart := interfaceOf(m[0], m[1])
	apart = append(apart, header(m[0], m[1])...)
	apart = append(apart, weights(m[0], m[1])...)
	ops := countOps(m[0], m[1])
	same := slices.Equal(digest(m[0]), digest(m[1]))
	var list []verdict
	if !s.Bool("structure") {
		if list, err = s.diffValues(m[0], m[1]); err != nil {
			return err
		}
	}
	bad := 0
	for _, v := range list {
		if !v.OK {
			bad++
		}
	}
	s.report.set("same_graph", same)
	s.report.set("differences", append([]string{}, apart...))
	s.report.set("operators", append([]opCount{}, ops...))
	s.report.set("results", append([]verdict{}, list...))
	equal := same && len(apart) == 0 && len(ops) == 0 && bad == 0
	switch {
	case s.Bool("json"):
		err = s.print(s.report.encode)
	case !s.quiet || !equal:
		err = s.print(func(w io.Writer) error { return s.writeDiff(w, same, apart, ops, list) })
	}
	if err != nil {
		return err
	}
	if equal {
		s.summaryf("no difference")
		return nil
	}
	if err := s.report.write(); err != nil {
		return err
	}
	return differencesf("the models differ")
}

// writeDiff prints what was found.
func (s *session) writeDiff(w io.Writer, same bool, apart []string, ops []opCount, list []verdict) error {
	for _, line := range apart {
		fmt.Fprintln(w, line)
	}
	if same {
		fmt.Fprintln(w, "the graphs are the same, up to names and order")
	} else {
		fmt.Fprintln(w, "the graphs are not the same")
	}
	if len(ops) > 0 {
		t := table.New(table.Column{Title: "operator", Fixed: true}, table.Column{Title: "first", Right: true, Fixed: true},
			table.Column{Title: "second", Right: true, Fixed: true}, table.Column{Title: "", Right: true, Fixed: true})
		for _, o := range ops {
			t.Row(o.Op, fmt.Sprint(o.First), fmt.Sprint(o.Second), fmt.Sprintf("%+d", o.Second-o.First))
		}
		if err := s.writeTable(w, t); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		return nil
	}
	t := table.New(table.Column{Title: "output", Fixed: true}, table.Column{Title: "type", Fixed: true}, table.Column{Title: "max error", Right: true, Fixed: true},
		table.Column{Title: ""}, table.Column{Title: "first difference"})
	for _, v := range list {
		t.Row(v.Name, v.Type, fmt.Sprintf("%.1e", v.MaxAbs), okText(v.OK), v.Note)
	}
	return s.writeTable(w, t)
}

// header returns the differences in versions.
func header(a, b *graph.Model) []string {
	var out []string
	if a.IRVersion != b.IRVersion {
		out = append(out, fmt.Sprintf("the IR version is %d in the first, %d in the second", a.IRVersion, b.IRVersion))
	}
	var domains []string
	for _, m := range []*graph.Model{a, b} {
		for _, o := range m.Opsets {
			if d := graph.StdDomain(o.Domain); !slices.Contains(domains, d) {
				domains = append(domains, d)
			}
		}
	}
	for _, d := range domains {
		name := d
		if name == "" {
			name = "ai.onnx"
		}
		if x, y := a.Opset(d), b.Opset(d); x != y {
			out = append(out, fmt.Sprintf("opset %s is %d in the first, %d in the second", name, x, y))
		}
	}
	return out
}

// weights returns the differences in initializers of the main graph.
func weights(a, b *graph.Model) []string {
	var out []string
	for _, v := range a.Graph.Inits {
		w := byName(b.Graph.Inits, v.Name)
		switch {
		case w == nil:
			out = append(out, fmt.Sprintf("initializer %q (%s) is in the first only", v.Name, v.Type))
		case v.Init.Elem != w.Init.Elem || !slices.Equal(v.Init.Dims, w.Init.Dims):
			out = append(out, fmt.Sprintf("initializer %q is %s in the first, %s in the second", v.Name, v.Init.Type(), w.Init.Type()))
		default:
			x, ok := rewrite.TensorKey(v.Init)
			y, ok2 := rewrite.TensorKey(w.Init)
			if ok && ok2 && x != y {
				out = append(out, fmt.Sprintf("initializer %q (%s) has other elements", v.Name, v.Type))
			}
		}
	}
	for _, w := range b.Graph.Inits {
		if byName(a.Graph.Inits, w.Name) == nil {
			out = append(out, fmt.Sprintf("initializer %q (%s) is in the second only", w.Name, w.Type))
		}
	}
	return out
}

// countOps returns the operators that occur not equally often in all graphs of the two models.
func countOps(a, b *graph.Model) []opCount {
	counts := map[string]*opCount{}
	for i, m := range []*graph.Model{a, b} {
		for n := range m.Graph.AllNodes() {
			k := op.KeyOf(n).String()
			if counts[k] == nil {
				counts[k] = &opCount{Op: k}
			}
			if i == 0 {
				counts[k].First++
			} else {
				counts[k].Second++
			}
		}
	}
	var out []opCount
	for _, k := range sortedKeys(counts) {
		if c := *counts[k]; c.First != c.Second {
			out = append(out, c)
		}
	}
	return out
}

// digest returns hashes of what a model's nodes compute from its inputs and initializers, by the names of those, in order of size:
// equal for models that are the same up to other names and the order of nodes. Functions are compared by name.
func digest(m *graph.Model) []string {
	ids := map[*graph.Value]string{}
	id := func(v *graph.Value) string {
		switch {
		case ids[v] != "":
			return ids[v]
		case v.Init != nil:
			return "init " + v.Name + v.Type.String()
		}
		return "input " + v.Name
	}
	var all []string
	var visit func(g *graph.Graph) string
	visit = func(g *graph.Graph) string {
		if g.Parent != nil {
			for i, v := range g.Inputs {
				ids[v] = fmt.Sprintf("argument %d", i)
			}
		}
		for _, n := range g.Nodes {
			key, ok := rewrite.Key(n, id)
			if !ok {
				parts := []string{op.KeyOf(n).String()}
				for _, v := range n.In {
					if v != nil {
						parts = append(parts, id(v))
					}
				}
				for _, sub := range n.Subgraphs() {
					parts = append(parts, visit(sub))
				}
				key = strings.Join(parts, "\x00")
			}
			h := fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
			all = append(all, h)
			for i, v := range n.Out {
				if v != nil {
					ids[v] = fmt.Sprintf("%s.%d", h, i)
				}
			}
		}
		var outs []string
		for _, v := range g.Outputs {
			outs = append(outs, id(v))
		}
		return strings.Join(outs, " ")
	}
	all = append(all, "outputs "+visit(m.Graph))
	slices.Sort(all)
	return all
}

// diffValues compares the outputs on random inputs.
func (s *session) diffValues(a, b *graph.Model) ([]verdict, error) {
	t, err := s.newTwins(a, b, false)
	if err != nil {
		return nil, err
	}
	seed, given, err := s.seed()
	if err != nil {
		return nil, err
	}
	if !given {
		seed = 1
	}
	feeds, err := t.feeds(trial{name: "random"}, seed)
	if err != nil {
		s.notef("nothing is computed: %v", err)
		return nil, nil
	}
	outs, skipped, err := t.run(feeds, seed)
	if err != nil {
		return nil, err
	}
	if skipped != "" {
		s.notef("%s", skipped)
		return nil, nil
	}
	return t.outputs(outs), nil
}
