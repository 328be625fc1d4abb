package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/graph/pass"
)

func jvpVerb() verb {
	return verb{
		name: "jvp", group: groupStage, args: "[MODEL|-]", maxArgs: 1,
		summary: "append forward-mode derivatives to a model",
		about: `
The model gets, for each x that --wrt names, the input <x>_tangent, a direction in which x moves, and for each
float output y the output <y>_tangent: the derivative of y along all the tangents together, the
Jacobian-vector product. One run costs about two of the model, however many values move; "gradtool grad" is the
other way around: one run gives the derivatives of one number with respect to everything.`,
		examples: []string{
			"gradtool jvp --wrt inputs model.onnx -o sensitivity.onnx",
			"gradtool grad loss.onnx | gradtool jvp --of '*_grad' > hessian-vector.onnx",
		},
		flags: slices.Concat(selectFlags(), ruleFlags(), []cli.Flag{opsetFlag()}, outputFlags(), inputFlags(), passFlags(), []cli.Flag{reportFlag()}),
		run:   runJVP,
	}
}

func opsetFlag() cli.Flag {
	return &cli.Int64Flag{Name: "opset", Usage: "write the model at ai.onnx opset `N` (default: the lowest, not below the model's own, that has every operator)", DefaultText: ""}
}

func runJVP(s *session) error {
	var res *autodiff.JVPResult
	m, before, err := s.differentiate("jvp", "append forward-mode derivatives", func(c *pass.Ctx, m *graph.Model) error {
		info, err := c.Info(m)
		if err != nil {
			return err
		}
		of, err := s.selectOutputs(m)
		if err != nil {
			return err
		}
		opt := autodiff.JVPOptions{Of: of}
		if opt.Wrt, err = s.selectWrt(m, of, autodiff.Params(m, of)); err != nil {
			return err
		}
		if opt.Policy, err = s.policy(m); err != nil {
			return err
		}
		res, err = autodiff.JVP(m, info, opt)
		return err
	})
	if err != nil {
		return err
	}
	s.reportJVP(m, res, before)
	return nil
}

// reportJVP says what was added.
func (s *session) reportJVP(m *graph.Model, res *autodiff.JVPResult, before int) {
	s.summaryf("%s -> %s, %s (tangent %s: %s)", count(before, "node"), count(nodesOf(m.Graph), "node"), count(len(res.Outputs), "derivative"),
		plural(len(res.Tangents), "input", "inputs"), few(names(res.Tangents)))
	s.noteRenamed(res.Renamed)
	type derivative struct {
		Of   string `json:"of"`
		Name string `json:"output"`
		Type string `json:"type"`
		Zero bool   `json:"zero"`
	}
	list := []derivative{}
	var zero []string
	for _, d := range res.Outputs {
		list = append(list, derivative{d.Y.Name, d.Out.Name, d.Out.Type.String(), d.Zero})
		if d.Zero {
			zero = append(zero, d.Y.Name)
		}
	}
	if len(zero) > 0 {
		s.notef("%s: %s on nothing that moves", strings.Join(zero, ", "), plural(len(zero), "depends", "depend"))
	}
	s.reportSizes(m, before)
	s.report.set("tangents", names(res.Tangents))
	s.report.set("derivatives", list)
	s.report.set("renamed", append([]string{}, res.Renamed...))
}

func (s *session) noteRenamed(list []string) {
	for _, r := range list {
		s.notef("renamed, as the name was taken: %s", r)
	}
}

// reportSizes reports what every derivative stage does.
func (s *session) reportSizes(m *graph.Model, before int) {
	r := s.report
	r.set("nodes_before", before)
	r.set("nodes_after", nodesOf(m.Graph))
	r.set("nodes_by_role", countRoles(m))
	r.set("opset", m.Opset(""))
	r.set("ir_version", m.IRVersion)
}

// differentiate reads the model, appends to it what add does, and writes it. It returns the model and the number of nodes that it
// had.
func (s *session) differentiate(name, doc string, add func(c *pass.Ctx, m *graph.Model) error) (*graph.Model, int, error) {
	path, err := s.inputPath()
	if err != nil {
		return nil, 0, err
	}
	out, err := s.target(derivedName(path, name))
	if err != nil {
		return nil, 0, err
	}
	m, closer, err := s.openModel(path)
	if err != nil {
		return nil, 0, err
	}
	defer closer.Close()
	if err := s.inspect(m); err != nil {
		return nil, 0, err
	}
	before := nodesOf(m.Graph)
	keep, err := s.keepCalls(m)
	if err != nil {
		return nil, 0, err
	}
	if err := s.runPasses(m, derivativePasses(name, doc, keep, s.Int64("opset"), add)); err != nil {
		return nil, 0, err
	}
	return m, before, s.saveModel(out, m)
}

// modes are the flags of grad for second derivatives and whole Jacobians.
func modeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "hvp", DisableDefaultText: true, Usage: "add the inputs <x>_tangent and the outputs <x>_hvp: the Hessian times the tangents"},
		&cli.BoolFlag{Name: "jacobian", DisableDefaultText: true, Usage: "append whole Jacobians instead: the outputs <y>_<x>_jacobian, of y's shape followed by x's"},
	}
}

// runJacobian is grad --jacobian.
func runJacobian(s *session) error {
	for _, flag := range []string{"loss", "hvp"} {
		if s.IsSet(flag) {
			return usagef("--jacobian does not go with --%s", flag)
		}
	}
	var res *autodiff.JacobianResult
	m, before, err := s.differentiate("grad", "append Jacobians", func(c *pass.Ctx, m *graph.Model) error {
		info, err := c.Info(m)
		if err != nil {
			return err
		}
		opt, err := s.gradOptions(m)
		if err != nil {
			return err
		}
		res, err = autodiff.Jacobian(m, info, opt)
		return err
	})
	if err != nil {
		return err
	}
	by := "row by row"
	if res.Forward {
		by = "column by column"
	}
	s.summaryf("%s -> %s, %s, computed %s", count(before, "node"), count(nodesOf(m.Graph), "node"), count(len(res.Blocks), "Jacobian"), by)
	s.noteRenamed(res.Renamed)
	type block struct {
		Of   string `json:"of"`
		Wrt  string `json:"wrt"`
		Name string `json:"output"`
		Type string `json:"type"`
		Zero bool   `json:"zero"`
	}
	list := []block{}
	for _, x := range res.Blocks {
		list = append(list, block{x.Y.Name, x.X.Name, x.Out.Name, x.Out.Type.String(), x.Zero})
	}
	s.reportSizes(m, before)
	s.report.set("jacobians", list)
	s.report.set("mode", map[bool]string{false: "reverse", true: "forward"}[res.Forward])
	s.report.set("renamed", append([]string{}, res.Renamed...))
	return nil
}
