package main

import (
	"slices"
	"strconv"

	"gradtool/fuse"
	"gradtool/graph"
	"gradtool/graph/pass"
	"gradtool/npu/lower"
	"gradtool/npu/machine"
)

// asker returns what asks lower which nodes of a model it makes a kernel of each, nil if clusters are for no machine that lower knows.
func (s *session) asker(opt fuse.Options) func(m *graph.Model) ([][]*graph.Node, error) {
	mach, err := machine.Builtin(s.String("target"))
	if err != nil || s.IsSet("on-chip") {
		return nil
	}
	return func(m *graph.Model) ([][]*graph.Node, error) {
		c, err := marked(m)
		if err != nil {
			return nil, err
		}
		marks, why := s.kernelsOf(c, opt, mach)
		if why != nil {
			s.notef("what %s makes a kernel of is not known, clusters are made by rules: %v", mach.Name, why)
			return nil, nil
		}
		out := make([][]*graph.Node, len(marks))
		for i, list := range marks {
			for _, mark := range list {
				if n, err := strconv.Atoi(mark); err == nil && n < len(m.Graph.Nodes) {
					out[i] = append(out[i], m.Graph.Nodes[n])
				}
			}
		}
		return out, nil
	}
}

// kernelsOf returns the marks of the nodes that go into each kernel of c, which it changes.
func (s *session) kernelsOf(c *graph.Model, opt fuse.Options, mach *machine.Machine) ([][]string, error) {
	dims := map[string]int64{}
	for _, name := range inputSymbols(c) {
		dims[name] = int64(fuse.Estimate(graph.Sym(name), opt.Dims))
	}
	if err := bindDims(c, dims); err != nil {
		return nil, err
	}
	mg, err := pass.New(s.loweringPasses(map[string]int64{}), order(), pass.Options{})
	if err != nil {
		return nil, err
	}
	if _, err := mg.Run(c); err != nil {
		return nil, err
	}
	return lower.Marks(c, lower.Options{Machine: mach})
}

// marked returns a copy of m in which each node of the main graph is marked, as if it were a cluster, with its place.
func marked(m *graph.Model) (*graph.Model, error) {
	to := &graph.Model{IRVersion: m.IRVersion, Opsets: slices.Clone(m.Opsets), File: m.File, Origin: m.Origin}
	clone := graph.Cloner{To: to, KeepTypes: true}
	var err error
	to.Graph = to.NewGraph("") // for names to be fresh in
	if to.Graph, err = clone.Graph(m.Graph); err != nil {
		return nil, err
	}
	for i, n := range to.Graph.Nodes {
		n.Meta.Delete(graph.MetaRule)
		n.Meta.Set(graph.MetaCluster, strconv.Itoa(i))
	}
	for _, f := range m.Functions {
		g := &graph.Function{Domain: f.Domain, Name: f.Name, Overload: f.Overload, Attrs: f.Attrs, Defaults: f.Defaults, Opsets: slices.Clone(f.Opsets)}
		if g.Body, err = clone.Graph(f.Body); err != nil {
			return nil, err
		}
		g.Body.Func = g
		to.Functions = append(to.Functions, g)
	}
	return to, nil
}
