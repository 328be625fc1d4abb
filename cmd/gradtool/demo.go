package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/urfave/cli/v2"

	"gradtool/autodiff"
	"gradtool/autodiff/loss"
	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/graph/pass"
	"gradtool/internal/suggest"
	"gradtool/internal/table"
	"gradtool/internal/term"
	"gradtool/testmodels"
)

func demoVerb() verb {
	return verb{
		name: "demo", group: groupOther, args: "[NAME]", maxArgs: 1,
		summary: "show the whole thing on a small model that comes with gradtool, or write that model",
		about: `
Builds the model (mlp by default), appends the gradient of a loss, runs the result on a small batch, prints
loss and gradients, each with a finite difference beside it, and writes NAME.grad.onnx. A model that is named
and goes to -o or into a pipe is written as it is, unless --grad asks for the show.`,
		examples: []string{"gradtool demo", "gradtool demo --list", "gradtool demo --grad lenet", "gradtool demo transformer | gradtool info"},
		flags: slices.Concat([]cli.Flag{
			&cli.BoolFlag{Name: "list", Usage: "list the models"},
			&cli.BoolFlag{Name: "grad", Usage: "append the gradient, run it and show it"},
			jsonFlag(),
		}, outputFlags()),
		run: runDemo,
	}
}

func runDemo(s *session) error {
	if s.Bool("list") {
		return s.listDemos()
	}
	name := s.Args().First()
	if name == "" {
		name = "mlp"
	}
	model, ok := testmodels.Lookup(name)
	if !ok {
		var all []string
		for _, m := range testmodels.All() {
			all = append(all, m.Name)
		}
		err := usagef("there is no model %q", name)
		if near := suggest.Nearest(name, all); len(near) > 0 {
			return hint(err, "did you mean %s?", orList(near))
		}
		return hint(err, "there are %s", orList(all))
	}
	if s.Bool("grad") || !s.IsSet("output") && (!s.Args().Present() || term.IsTerminal(s.stdout)) {
		return s.demoGradient(model)
	}
	out, err := s.target(name + ".onnx")
	if err != nil {
		return err
	}
	m := model.Build()
	if err := s.saveModel(out, m); err != nil {
		return err
	}
	s.summaryf("%s (%s), a loss for it: %s", count(nodesOf(m.Graph), "node"), model.Doc, model.Loss)
	return nil
}

func (s *session) listDemos() error {
	if s.Bool("json") {
		type entry struct {
			Name string `json:"name"`
			Doc  string `json:"doc"`
			Loss string `json:"loss"`
		}
		var list []entry
		for _, m := range testmodels.All() {
			list = append(list, entry{m.Name, m.Doc, m.Loss})
		}
		s.report.set("models", list)
		return s.print(s.report.encode)
	}
	t := table.New(table.Column{Title: "name", Fixed: true}, table.Column{Title: "model"}, table.Column{Title: "loss", Fixed: true})
	for _, m := range testmodels.All() {
		t.Row(m.Name, m.Doc, m.Loss)
	}
	return s.print(func(w io.Writer) error { return s.writeTable(w, t) })
}

// demoGradient shows one model's gradient and writes the model that computes it.
func (s *session) demoGradient(model testmodels.Model) error {
	out := target{path: s.String("output")}
	if out.path == "" {
		out.path = model.Name + ".grad.onnx"
	}
	m := model.Build()
	before := nodesOf(m.Graph)
	spec, err := loss.Parse(model.Loss)
	if err != nil {
		return err
	}
	var res *autodiff.GradResult
	passes := gradPasses(nil, 0, func(*graph.Model) (autodiff.GradOptions, error) { return autodiff.GradOptions{Loss: &spec}, nil }, &res)
	if err := s.runPasses(m, passes[:len(passes)-1]); err != nil { // the evaluator wants the newest form of each operator
		return err
	}
	feed := model.Feed()
	machine, err := interp.New(m, interp.Options{Wide: true})
	if err != nil {
		return err
	}
	outs, err := machine.Run(feed)
	if err != nil {
		return err
	}
	value := func(v *graph.Value) *op.Array { return outs[slices.Index(m.Graph.Outputs, v)] }
	numeric, err := slopes(m, res, nil, feed)
	if err != nil {
		return err
	}
	if err := s.runPasses(m, []pass.Pass{opsetPass(0)}); err != nil {
		return err
	}
	if err := s.saveModel(out, m); err != nil {
		return err
	}
	t := table.New(table.Column{Title: "gradient", Fixed: true}, table.Column{Title: "shape", Fixed: true}, table.Column{Title: "mean |g|", Right: true},
		table.Column{Title: "max |g|", Right: true}, table.Column{Title: "along a direction", Right: true}, table.Column{Title: "finite difference", Right: true})
	type gradient struct {
		Name    string  `json:"output"`
		Type    string  `json:"type"`
		Slope   float64 `json:"slope"`
		Numeric float64 `json:"finite_difference"`
	}
	var grads []gradient
	for i, g := range res.Grads {
		st := statsOf(value(g.Out))
		grads = append(grads, gradient{g.Out.Name, g.Out.Type.String(), inner(value(g.Out), numeric[i].direction), numeric[i].value})
		t.Row(g.Out.Name, g.Out.Type.Shape.String(), fmt.Sprintf("%.4g", st.meanAbs), fmt.Sprintf("%.4g", math.Max(-st.min, st.max)),
			fmt.Sprintf("%+.8f", inner(value(g.Out), numeric[i].direction)), fmt.Sprintf("%+.8f", numeric[i].value))
	}
	if s.Bool("json") {
		s.report.set("model", model.Name)
		s.report.set("loss", value(res.Loss).Float(0))
		s.report.set("gradients", grads)
		s.report.set("file", out.path)
		return s.print(s.report.encode)
	}
	return s.print(func(w io.Writer) error {
		fmt.Fprintf(w, "%s: %s\n", model.Name, model.Doc)
		fmt.Fprintf(w, "%s forward, %s with the gradient of the loss %s\n", count(before, "node"), count(nodesOf(m.Graph), "node"), model.Loss)
		fmt.Fprintf(w, "on a batch of %d the loss is %.6f; its gradients:\n\n", feed[0].Shape[0], value(res.Loss).Float(0))
		if err := s.writeTable(w, t); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "\nwrote %s: plain ONNX at opset %d, with inputs %s and outputs %s\n", out.path, m.Opset(""),
			few(names(m.Graph.Inputs)), few(names(m.Graph.Outputs)))
		return err
	})
}
