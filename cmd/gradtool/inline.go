package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"gradtool/fuse"
	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/pass"
)

func inlineVerb() verb {
	return verb{
		name: "inline", group: groupStage, args: "[MODEL|-]", maxArgs: 1,
		summary: "replace calls of model-local functions by their bodies",
		about: `
Calls that "gradtool fuse" made become the nodes that they were, with their names, metadata and constants:
the graph is what it was before. Calls of the model's own functions become their bodies, with names that
begin with the call's; --clusters leaves those alone.`,
		examples: []string{"gradtool inline fused.onnx -o flat.onnx", "gradtool fuse model.onnx | gradtool inline --clusters > same.onnx"},
		flags: slices.Concat([]cli.Flag{
			&cli.BoolFlag{Name: "clusters", Usage: "only undo fuse, and keep the model's own functions"},
		}, outputFlags(), inputFlags(), passFlags(), []cli.Flag{reportFlag()}),
		run: runInline,
	}
}

// unfusePass undoes fuse.
func unfusePass(calls *int) pass.Pass {
	return pass.Pass{
		Name: "unfuse", Doc: "put the nodes of clusters back in the place of their calls", Required: true,
		Run: func(c *pass.Ctx, m *graph.Model) (bool, error) {
			n, err := fuse.Inline(m)
			*calls = n
			return n > 0, badModel(err)
		},
	}
}

func runInline(s *session) error {
	path, err := s.inputPath()
	if err != nil {
		return err
	}
	out, err := s.target(derivedName(path, "inline"))
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
	before := nodesOf(m.Graph)
	clusters := 0
	passes := []pass.Pass{pass.Sort(), unfusePass(&clusters)}
	if err := s.runPasses(m, passes); err != nil {
		return err
	}
	functions := len(m.Functions)
	if !s.Bool("clusters") && functions > 0 {
		if err := s.runPasses(m, []pass.Pass{pass.Inline(nil)}); err != nil {
			return err
		}
		if m.Origin != 0 { // functions of another opset had to be brought to the newest forms
			if err := setOpset(m, 0); err != nil {
				return err
			}
		}
	}
	if err := s.saveModel(out, m); err != nil {
		return err
	}
	what := count(clusters, "cluster")
	if n := functions - len(m.Functions); n > 0 {
		what += ", " + count(n, "function")
	}
	s.summaryf("%s -> %s, %s inlined", count(before, "node"), count(nodesOf(m.Graph), "node"), what)
	s.report.set("nodes_before", before)
	s.report.set("nodes_after", nodesOf(m.Graph))
	s.report.set("clusters", clusters)
	s.report.set("functions", functions-len(m.Functions))
	return nil
}

// flatten undoes fuse, then inlines all functions.
func flatten(m *graph.Model) error {
	if _, err := fuse.Inline(m); err != nil {
		return err
	}
	return op.Inline(m, nil)
}
