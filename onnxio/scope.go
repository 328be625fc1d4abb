package onnxio

import (
	"slices"

	"gradtool/graph"
)

// A definition is a value and where its name is defined: at a node's position in the graph, or at -1
// for inputs and initializers.
type definition struct {
	v  *graph.Value
	at int
}

// A scope maps the names that a graph defines to values. Reader and writer resolve names with the
// same scopes, so what the one connects the other finds connected.
type scope struct {
	graph *graph.Graph
	outer *scope
	at    int // position in outer of the node that holds the graph
	first map[string]definition
	more  map[string][]definition // further definitions of a name, which valid models do not have
	undef map[string]*graph.Value // of the outermost scope: names that nothing defines
}

func newScope(g *graph.Graph, outer *scope, at int) *scope {
	s := &scope{graph: g, outer: outer, at: at, first: make(map[string]definition, len(g.Inputs)+len(g.Inits)+len(g.Nodes))}
	for _, v := range g.Inputs {
		s.define(v, -1)
	}
	for _, v := range g.Inits {
		s.define(v, -1)
	}
	for i, n := range g.Nodes {
		for _, v := range n.Out {
			if v != nil {
				s.define(v, i)
			}
		}
	}
	return s
}

func (s *scope) define(v *graph.Value, at int) {
	if _, ok := s.first[v.Name]; !ok {
		s.first[v.Name] = definition{v, at}
		return
	}
	if s.defines(v) {
		return // an input that is an initializer too
	}
	if s.more == nil {
		s.more = map[string][]definition{}
	}
	s.more[v.Name] = append(s.more[v.Name], definition{v, at})
}

// defines reports whether v is defined in s itself.
func (s *scope) defines(v *graph.Value) bool {
	if s.first[v.Name].v == v {
		return true
	}
	for _, d := range s.more[v.Name] {
		if d.v == v {
			return true
		}
	}
	return false
}

// lookup returns the value that name stands for at a node's position, nil if nothing defines it: of
// several definitions the last one before the node, else the first; of several constants the last one,
// wherever the node stands.
func (s *scope) lookup(name string, at int) *graph.Value {
	for ; s != nil; s, at = s.outer, s.at {
		d, ok := s.first[name]
		if !ok {
			continue
		}
		more := s.more[name]
		everywhere := isConstant(d.v) && !slices.ContainsFunc(more, func(m definition) bool { return !isConstant(m.v) })
		for _, m := range more {
			if everywhere || m.at < at {
				d = m
			}
		}
		return d.v
	}
	return nil
}

// isConstant reports whether v is the result of a Constant node. Runtimes make initializers of those before anything
// else, a later one replacing an earlier one of the same name; tools that edit models by appending a Constant count on it.
func isConstant(v *graph.Value) bool {
	return v.Def != nil && v.Def.Op == "Constant" && graph.StdDomain(v.Def.Domain) == ""
}

// resolve is lookup with a new value for a name that nothing defines.
func (s *scope) resolve(name string, at int) *graph.Value {
	if v := s.lookup(name, at); v != nil {
		return v
	}
	for s.outer != nil {
		s = s.outer
	}
	v := s.undef[name]
	if v == nil {
		if s.undef == nil {
			s.undef = map[string]*graph.Value{}
		}
		v = s.graph.AddUndefined(name)
		s.undef[name] = v
	}
	return v
}
