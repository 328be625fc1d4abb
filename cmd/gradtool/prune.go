package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/graph/pass"
	"gradtool/prune"
)

func pruneVerb() verb {
	return verb{
		name: "prune", group: groupStage, args: "[MODEL|-]", maxArgs: 1,
		summary: "remove what a model's outputs do not need",
		about: `
Removes nodes that nothing reads, Identity nodes, initializers that nothing reads and functions that nothing
calls. Inputs and outputs keep their names and order.`,
		examples: []string{"gradtool prune model.onnx -o small.onnx", "gradtool grad --loss mse model.onnx | gradtool prune > train.onnx"},
		flags:    slices.Concat(outputFlags(), inputFlags(), passFlags(), []cli.Flag{reportFlag()}),
		run:      runPrune,
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
	m, closer, err := s.openModel(path)
	if err != nil {
		return err
	}
	defer closer.Close()
	if err := inspect(m); err != nil {
		return err
	}
	before := len(m.Graph.Nodes)
	var st prune.Stats
	if err := s.runPasses(m, []pass.Pass{prunePass(&st)}); err != nil {
		return err
	}
	if err := s.saveModel(out, m); err != nil {
		return err
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{st.Dead, "dead node"}, {st.Identities, "identity"}, {st.Inits, "unused initializer"}, {st.Functions, "unused function"}} {
		if p.n > 0 {
			parts = append(parts, count(p.n, p.what))
		}
	}
	what := "nothing to remove"
	if len(parts) > 0 {
		what = "removed " + strings.Join(parts, ", ")
	}
	s.summaryf("%s, %s", fmt.Sprintf("%s -> %s", count(before, "node"), count(len(m.Graph.Nodes), "node")), what)
	s.report.set("nodes_before", before)
	s.report.set("nodes_after", len(m.Graph.Nodes))
	s.report.set("dead_nodes", st.Dead)
	s.report.set("identities", st.Identities)
	s.report.set("unused_initializers", st.Inits)
	s.report.set("unused_functions", st.Functions)
	return nil
}
