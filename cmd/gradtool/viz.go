package main

import (
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"gradtool/internal/term"
	"gradtool/viz"
)

// maxDrawn is the number of nodes above which a drawing is collapsed: Graphviz takes minutes for thousands.
const maxDrawn = 500

func vizVerb() verb {
	return verb{
		name: "viz", group: groupRead, args: "[MODEL|-]", maxArgs: 1,
		summary: "draw a model, in Graphviz's language",
		about: `
Forward nodes have solid borders, backward ones dashed blue, loss and optimizer bold. Models of more than 500
nodes are collapsed by the scopes in their node names.`,
		examples: []string{
			"gradtool viz model.onnx | dot -Tsvg > model.svg",
			"gradtool grad --loss mse model.onnx | gradtool viz --rankdir LR | dot -Tpng > train.png",
			"gradtool viz --around fc1/MatMul:2 train.onnx | dot -Tsvg > near.svg",
		},
		flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`"},
			&cli.BoolFlag{Name: "all", Usage: "draw every node, however many there are"},
			&cli.StringFlag{Name: "around", Usage: "draw only the nodes up to K steps from a `NODE:K`"},
			&cli.StringFlag{Name: "rankdir", Value: "TB", DefaultText: "TB", Usage: "direction of the drawing: `TB|LR|BT|RL`"},
		}, inputFlags()),
		run: runViz,
	}
}

func runViz(s *session) error {
	dir := s.String("rankdir")
	if !slices.Contains([]string{"TB", "LR", "BT", "RL"}, dir) {
		return usagef("--rankdir %q: want TB, LR, BT or RL", dir)
	}
	m, closer, err := s.readModel()
	if err != nil {
		return err
	}
	defer closer.Close()
	s.noteBroken(m)
	opt := viz.Options{RankDir: dir, Max: maxDrawn}
	if s.Bool("all") {
		opt.Max = 0
	}
	if at := s.String("around"); at != "" {
		if opt.Around, opt.Hops, err = nodeAround(m, at); err != nil {
			return err
		}
	}
	if n := len(m.Graph.Nodes); n > maxDrawn && opt.Max > 0 && opt.Around == nil {
		s.notef("%s: collapsed by scope; --all draws every one", count(n, "node"))
	}
	draw := func(w io.Writer) error { return viz.DOT(w, m, opt) }
	if out := s.String("output"); out != "" && out != "-" {
		return s.save(target{path: out}, draw)
	}
	if term.IsTerminal(s.stdout) {
		s.verbosef("pipe this into dot -Tsvg")
	}
	return s.print(draw)
}
