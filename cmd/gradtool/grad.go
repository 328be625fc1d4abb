package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/op/schema"
)

func gradVerb() verb {
	return verb{
		name: "grad", group: groupStage, args: "[MODEL|-]", maxArgs: 1,
		summary: "append the gradient to a model",
		about: `
The model gets, for each differentiated output y, the input <y>_cotangent, and for each x that it is
differentiated with respect to the output <x>_grad. A lone scalar output is seeded with 1 instead. With
--loss it gets the input <y>_target, the scalar output "loss", and the gradients of that. All that is
added are plain ONNX operators, so any runtime runs the result.
With --hvp it also gets the inputs <x>_tangent and the outputs <x>_hvp, the derivative of <x>_grad along all tangents
together: the Hessian times a vector. With --jacobian it gets none of these, but for each y and x the output
<y>_<x>_jacobian, whose shape is y's followed by x's.`,
		examples: []string{
			"gradtool grad --loss softmax-cross-entropy model.onnx -o train.onnx",
			"gradtool grad --wrt inputs model.onnx -o saliency.onnx",
			"gradtool grad --loss mse --freeze 'encoder.*' model.onnx | gradtool prune > train.onnx",
			"gradtool grad --loss mse --hvp model.onnx -o hessian-vector.onnx",
			"gradtool grad --loop-costs model.onnx",
			"gradtool grad --jacobian --wrt inputs model.onnx -o jacobian.onnx",
			"gradtool grad loss.onnx | gradtool grad --of 'w_grad' --wrt w > second.onnx",
		},
		flags: slices.Concat(gradFlags(), modeFlags(), []cli.Flag{
			&cli.BoolFlag{Name: "loop-costs", DisableDefaultText: true, Usage: "print what each plan of --loop costs in memory and time, for each Loop, and write no model"},
			jsonFlag(), opsetFlag(),
		}, outputFlags(), inputFlags(), passFlags(), []cli.Flag{reportFlag()}),
		run: runGrad,
	}
}

func runGrad(s *session) error {
	switch {
	case s.Bool("loop-costs"):
		return runLoopCosts(s)
	case s.Bool("json"):
		return usagef("--json goes with --loop-costs; --report FILE tells about the gradient")
	case s.Bool("jacobian"):
		return runJacobian(s)
	}
	var res *autodiff.GradResult
	m, before, err := s.differentiate("grad", gradDoc, appendGradient(func(m *graph.Model) (autodiff.GradOptions, error) {
		opt, err := s.gradOptions(m)
		opt.HVP = s.Bool("hvp")
		return opt, err
	}, &res))
	if err != nil {
		return err
	}
	s.reportGradient(m, res, before)
	return nil
}

// blocked turns the list of nodes without derivative into one error with advice.
func blocked(err error) error {
	var b *autodiff.BlockedError
	if !errors.As(err, &b) {
		return err
	}
	var ops []string
	for _, x := range b.Blockers {
		k := op.KeyOf(x.Node)
		listed := op.Lookup(k) != nil || k.Domain == "" && schema.Versions("", k.Name) != nil
		if listed && !slices.Contains(ops, k.String()) {
			ops = append(ops, k.String())
		}
	}
	if len(ops) > 0 {
		err = hint(err, "\"gradtool ops %s\" tells more, \"gradtool ops --grad\" what has a derivative", strings.Join(ops, " "))
	}
	return hint(err, "choose other outputs with --of, or leave out what leads there with --wrt or --freeze")
}

// reportGradient says what was added.
func (s *session) reportGradient(m *graph.Model, res *autodiff.GradResult, before int) {
	parts := []string{fmt.Sprintf("%s -> %s", count(before, "node"), count(nodesOf(m.Graph), "node")), count(len(res.Grads), "gradient")}
	var inputs []string
	inputs = append(inputs, names(res.Cotangents)...)
	extra := ""
	switch {
	case res.Loss != nil:
		extra = fmt.Sprintf(" of %q (target input: %s)", res.Loss.Name, res.Target.Name)
	case len(inputs) == 1:
		extra = fmt.Sprintf(" (cotangent input: %s)", inputs[0])
	case len(inputs) > 1:
		extra = fmt.Sprintf(" (cotangent inputs: %s)", few(inputs))
	}
	s.summaryf("%s%s", strings.Join(parts, ", "), extra)
	s.noteRenamed(res.Renamed)
	var zero []string
	for _, g := range res.Grads {
		if g.Zero {
			zero = append(zero, g.X.Name)
		}
	}
	if len(zero) > 0 {
		s.notef("%s: nothing that is differentiated depends on %s", plural(len(zero), "a zero gradient", fmt.Sprintf("%d zero gradients", len(zero))), few(zero))
	}
	var tied []string
	for _, g := range res.Grads {
		if autodiff.AlsoFixed(g.X) {
			tied = append(tied, g.X.Name)
		}
	}
	if len(tied) > 0 {
		s.notef("%s read as a parameter and as fixed data, such as a running variance, so the gradient counts both: exporters merge equal tensors; export with trained statistics or without merging",
			plural(len(tied), tied[0]+" is", few(tied)+" are"))
	}
	s.reportSizes(m, before)
	r := s.report
	if res.Loss != nil {
		r.set("loss", res.Loss.Name)
		r.set("target", res.Target.Name)
	}
	r.set("cotangents", names(res.Cotangents))
	type gradient struct {
		Of   string `json:"wrt"`
		Name string `json:"output"`
		Type string `json:"type"`
		Zero bool   `json:"zero"`
		// With --hvp:
		Tangent string `json:"tangent,omitempty"`
		HVP     string `json:"hvp,omitempty"`
	}
	grads := []gradient{}
	for _, g := range res.Grads {
		x := gradient{Of: g.X.Name, Name: g.Out.Name, Type: g.Out.Type.String(), Zero: g.Zero}
		if g.HVP != nil {
			x.Tangent, x.HVP = g.Tangent.Name, g.HVP.Name
		}
		grads = append(grads, x)
	}
	r.set("gradients", grads)
	r.set("renamed", append([]string{}, res.Renamed...))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// few lists some of the names and counts the rest.
func few(list []string) string {
	const shown = 6
	if len(list) <= shown+1 {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
}
