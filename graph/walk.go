package graph

import (
	"fmt"
	"iter"
	"strconv"
)

// Graphs yields g and every graph nested in it, outer graphs first.
func (g *Graph) Graphs() iter.Seq[*Graph] {
	return func(yield func(*Graph) bool) { g.graphs(yield) }
}

func (g *Graph) graphs(yield func(*Graph) bool) bool {
	if !yield(g) {
		return false
	}
	for _, n := range g.Nodes {
		for _, sub := range n.Subgraphs() {
			if !sub.graphs(yield) {
				return false
			}
		}
	}
	return true
}

// AllNodes yields every node of g and of the graphs nested in it.
func (g *Graph) AllNodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for h := range g.Graphs() {
			for _, n := range h.Nodes {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// Values yields every value defined in g itself: inputs, initializers, node results.
func (g *Graph) Values() iter.Seq[*Value] {
	return func(yield func(*Value) bool) {
		for _, v := range g.Inputs {
			if !yield(v) {
				return
			}
		}
		for _, v := range g.Inits {
			if !v.IsInput() && !yield(v) {
				return
			}
		}
		for _, n := range g.Nodes {
			for _, v := range n.Out {
				if v != nil && !yield(v) {
					return
				}
			}
		}
	}
}

// Captures returns the values defined outside n that nodes and outputs in n's subgraphs read, each
// once, in order of first reading.
func (n *Node) Captures() []*Value {
	subs := n.Subgraphs()
	if len(subs) == 0 {
		return nil
	}
	inside := map[*Graph]bool{}
	for _, s := range subs {
		for h := range s.Graphs() {
			inside[h] = true
		}
	}
	var out []*Value
	seen := map[*Value]bool{}
	note := func(v *Value) {
		if v != nil && !inside[v.Graph] && !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	for _, s := range subs {
		for h := range s.Graphs() {
			for _, m := range h.Nodes {
				for _, v := range m.In {
					note(v)
				}
			}
			for _, v := range h.Outputs {
				note(v)
			}
		}
	}
	return out
}

// Sort puts the nodes of g, and of every graph nested in it, in an order in which every value is
// defined before it is read, keeping the given order where it is free to. It fails on a cycle.
func (g *Graph) Sort() error {
	const (
		unseen = iota
		open
		done
	)
	state := make(map[*Node]int, len(g.Nodes))
	order := make([]*Node, 0, len(g.Nodes))
	// An explicit stack: graphs of real models are deep enough to make recursion a risk.
	type frame struct {
		n    *Node
		deps []*Value
	}
	deps := func(n *Node) []*Value {
		if c := n.Captures(); len(c) > 0 {
			return append(append([]*Value{}, n.In...), c...)
		}
		return n.In
	}
	for _, root := range g.Nodes {
		if state[root] != unseen {
			continue
		}
		state[root] = open
		stack := []frame{{root, deps(root)}}
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			if len(f.deps) == 0 {
				state[f.n] = done
				order = append(order, f.n)
				stack = stack[:len(stack)-1]
				continue
			}
			v := f.deps[0]
			f.deps = f.deps[1:]
			if v == nil || v.Def == nil || v.Def.Graph != g {
				continue
			}
			switch state[v.Def] {
			case unseen:
				state[v.Def] = open
				stack = append(stack, frame{v.Def, deps(v.Def)})
			case open:
				return fmt.Errorf("node %s depends on itself through value %q", v.Def.Label(), v.Name)
			}
		}
	}
	g.Nodes = order
	for _, n := range g.Nodes {
		for _, sub := range n.Subgraphs() {
			if err := sub.Sort(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Fresh returns base if no value of the model has that name yet, else base with the lowest free
// suffix _1, _2, ..., and marks the name as used.
func (m *Model) Fresh(base string) string {
	if m.names == nil {
		m.names = make(map[string]int, len(m.Graph.Nodes)+len(m.Graph.Inits))
		m.eachGraph(func(g *Graph) {
			for v := range g.Values() {
				m.names[v.Name] = 1
			}
		})
	}
	return fresh(m.names, base)
}

// FreshNode is Fresh for node names.
func (m *Model) FreshNode(base string) string {
	if m.nodeNames == nil {
		m.nodeNames = make(map[string]int, len(m.Graph.Nodes))
		m.eachGraph(func(g *Graph) {
			for _, n := range g.Nodes {
				m.nodeNames[n.Name] = 1
			}
		})
	}
	return fresh(m.nodeNames, base)
}

func (m *Model) eachGraph(f func(*Graph)) {
	for h := range m.Graph.Graphs() {
		f(h)
	}
	for _, fn := range m.Functions {
		for h := range fn.Body.Graphs() {
			f(h)
		}
	}
}

// fresh finds a free name; used maps each name in use to the next suffix to try for it.
func fresh(used map[string]int, base string) string {
	name := base
	for next := used[base]; used[name] > 0; next++ {
		name = base + "_" + strconv.Itoa(next)
		used[base] = next + 1
	}
	used[name] = max(used[name], 1)
	return name
}
