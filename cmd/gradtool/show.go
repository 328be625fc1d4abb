package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"gradtool/graph"
	"gradtool/internal/suggest"
)

func showVerb() verb {
	return verb{
		name: "show", group: groupRead, args: "[MODEL|-]", maxArgs: 1,
		summary: "print a model as text",
		about: `
The text is in the syntax of the ONNX standard. Large tensors are elided. A node is named by its name or that
of one of its results.`,
		examples: []string{"gradtool show model.onnx", "gradtool show --types model.onnx | less", "gradtool show --around fc1/MatMul:2 train.onnx"},
		flags: slices.Concat([]cli.Flag{
			&cli.BoolFlag{Name: "types", Usage: "infer types first and print those of all values"},
			&cli.StringFlag{Name: "around", Usage: "print only the nodes up to K steps from a `NODE:K`"},
			&cli.BoolFlag{Name: "weights", Usage: "print the elements of all tensors"},
		}, inputFlags()),
		run: runShow,
	}
}

func runShow(s *session) error {
	path, err := s.inputPath()
	if err != nil {
		return err
	}
	m, closer, err := s.openModel(path)
	if err != nil {
		return err
	}
	defer closer.Close()
	s.noteBroken(m)
	opt := graph.PrintOptions{NoTypes: !s.Bool("types")}
	if s.Bool("weights") {
		opt.MaxElems = -1
	}
	if s.Bool("types") {
		if err := learnTypes(m); err != nil {
			return err
		}
	}
	if at := s.String("around"); at != "" {
		n, hops, err := nodeAround(m, at)
		if err != nil {
			return err
		}
		near := neighbours(n, hops)
		return s.print(func(w io.Writer) error {
			for _, k := range m.Graph.Nodes {
				if near[k] {
					fmt.Fprintln(w, k)
				}
			}
			return nil
		})
	}
	return s.print(func(w io.Writer) error { return graph.Print(w, m, opt) })
}

// learnTypes infers the types of m's values. Inference wants canonical operators, so it is done on a copy of the main
// graph, whose results keep their names.
func learnTypes(m *graph.Model) error {
	k, err := extract(m, m.Graph.Inputs, m.Graph.Outputs)
	if err != nil {
		return badModel(err)
	}
	k.Functions = m.Functions
	if _, err := prepare(k, nil); err != nil {
		return err
	}
	types := map[string]graph.Type{}
	for v := range k.Graph.Values() {
		types[v.Name] = v.Type
	}
	for v := range m.Graph.Values() {
		if t, ok := types[v.Name]; ok && v.Def != nil {
			v.Type = t
		}
	}
	return nil
}

// nodeAround reads NODE:K; without K it is 1.
func nodeAround(m *graph.Model, text string) (*graph.Node, int, error) {
	if n := findNode(m, text); n != nil {
		return n, 1, nil
	}
	name, k, ok := cutLast(text, ":")
	hops, err := strconv.Atoi(k)
	if !ok || err != nil || hops < 0 {
		name, hops = text, 1
	}
	if n := findNode(m, name); n != nil {
		return n, hops, nil
	}
	err = fmt.Errorf("--around: no node is named %q and no node has a result of that name", name)
	if near := suggest.Nearest(name, nodeNames(m)); len(near) > 0 {
		return nil, 0, hint(err, "did you mean %s?", orList(near))
	}
	return nil, 0, err
}

// findNode returns the node of the main graph with that name or a result of that name.
func findNode(m *graph.Model, name string) *graph.Node {
	for _, n := range m.Graph.Nodes {
		if n.Name == name && name != "" {
			return n
		}
	}
	for _, n := range m.Graph.Nodes {
		if byName(slices.DeleteFunc(slices.Clone(n.Out), func(v *graph.Value) bool { return v == nil }), name) != nil {
			return n
		}
	}
	return nil
}

func nodeNames(m *graph.Model) []string {
	var out []string
	for _, n := range m.Graph.Nodes {
		out = append(out, n.Name)
		for _, v := range n.Out {
			if v != nil {
				out = append(out, v.Name)
			}
		}
	}
	return out
}

// neighbours returns the nodes of n's graph at most hops edges away, n included.
func neighbours(n *graph.Node, hops int) map[*graph.Node]bool {
	g := n.Graph
	near := map[*graph.Node]bool{n: true}
	ring := []*graph.Node{n}
	add := func(next *[]*graph.Node, m *graph.Node) {
		for m != nil && m.Graph != g {
			m = m.Graph.Parent // a node in a subgraph counts as the one that holds it
		}
		if m != nil && !near[m] {
			near[m] = true
			*next = append(*next, m)
		}
	}
	for range hops {
		var next []*graph.Node
		for _, m := range ring {
			for _, v := range slices.Concat(m.In, m.Captures()) {
				if v != nil {
					add(&next, v.Def)
				}
			}
			for _, v := range m.Out {
				if v == nil {
					continue
				}
				for _, u := range v.Uses() {
					add(&next, u.Node)
				}
			}
		}
		ring = next
	}
	return near
}
