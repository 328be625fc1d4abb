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
added are plain ONNX operators, so any runtime runs the result.`,
		examples: []string{
			"gradtool grad --loss softmax-cross-entropy model.onnx -o train.onnx",
			"gradtool grad --wrt inputs model.onnx -o saliency.onnx",
			"gradtool grad --loss mse --freeze 'encoder.*' model.onnx | gradtool prune > train.onnx",
			"gradtool grad loss.onnx | gradtool grad --of 'w_grad' --wrt w > hessian.onnx",
		},
		flags: slices.Concat(gradFlags(), []cli.Flag{
			&cli.Int64Flag{Name: "opset", Usage: "write the model at ai.onnx opset `N` (default: the lowest, not below the model's own, that has every operator)"},
		}, outputFlags(), inputFlags(), passFlags(), []cli.Flag{reportFlag()}),
		run: runGrad,
	}
}

func runGrad(s *session) error {
	path, err := s.inputPath()
	if err != nil {
		return err
	}
	out, err := s.target(derivedName(path, "grad"))
	if err != nil {
		return err
	}
	m, closer, err := s.openModel(path)
	if err != nil {
		return err
	}
	defer closer.Close()
	if err := inspect(m); err != nil {
		return err
	}
	before := len(m.Graph.Nodes)
	var res *autodiff.GradResult
	if err := s.runPasses(m, gradPasses(callsOffPath(m), s.Int64("opset"), s.gradOptions, &res)); err != nil {
		return err
	}
	if err := s.saveModel(out, m); err != nil {
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
	parts := []string{fmt.Sprintf("%s -> %s", count(before, "node"), count(len(m.Graph.Nodes), "node")), count(len(res.Grads), "gradient")}
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
	for _, r := range res.Renamed {
		s.notef("renamed, as the name was taken: %s", r)
	}
	var zero []string
	for _, g := range res.Grads {
		if g.Zero {
			zero = append(zero, g.X.Name)
		}
	}
	if len(zero) > 0 {
		s.notef("%s: nothing that is differentiated depends on %s", plural(len(zero), "a zero gradient", fmt.Sprintf("%d zero gradients", len(zero))), few(zero))
	}
	r := s.report
	r.set("nodes_before", before)
	r.set("nodes_after", len(m.Graph.Nodes))
	r.set("nodes_by_role", countRoles(m))
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
	}
	grads := []gradient{}
	for _, g := range res.Grads {
		grads = append(grads, gradient{g.X.Name, g.Out.Name, g.Out.Type.String(), g.Zero})
	}
	r.set("gradients", grads)
	r.set("renamed", append([]string{}, res.Renamed...))
	r.set("opset", m.Opset(""))
	r.set("ir_version", m.IRVersion)
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
