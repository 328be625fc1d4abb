package prune

import (
	"slices"

	"gradtool/graph"
)

// Clean removes, from all graphs of m, function bodies included, nodes that nothing reads, Identity nodes, initializers
// that nothing reads, and functions that nothing calls. It needs no types and knows any form of operators.
func Clean(m *graph.Model) Stats {
	var s Stats
	s.Functions = unusedFunctions(m)
	for _, g := range roots(m) {
		for h := range g.Graphs() {
			s.Identities += identities(h)
		}
	}
	for _, g := range roots(m) {
		s.Dead += dead(g)
		s.Inits += unusedInits(g)
	}
	s.Functions += unusedFunctions(m)
	return s
}

// roots returns the main graph and the bodies of functions.
func roots(m *graph.Model) []*graph.Graph {
	out := []*graph.Graph{m.Graph}
	for _, f := range m.Functions {
		out = append(out, f.Body)
	}
	return out
}

// dead removes the nodes of g, and of the graphs nested in it, whose results nobody reads. One sweep from
// the back suffices for a sorted graph; it is repeated in case the graph is not.
func dead(g *graph.Graph) int {
	total := 0
	for {
		var gone []*graph.Node
		for _, n := range slices.Backward(g.Nodes) {
			used := slices.ContainsFunc(n.Out, func(v *graph.Value) bool { return v != nil && v.NumUses() > 0 })
			if used {
				continue
			}
			gone = append(gone, n)
			for _, sub := range n.Subgraphs() {
				sub.SetOutputs()
				for m := range sub.AllNodes() {
					clear1(m)
				}
			}
			clear1(n)
		}
		g.Remove(gone...)
		total += len(gone)
		for _, n := range g.Nodes {
			for _, sub := range n.Subgraphs() {
				total += dead(sub)
			}
		}
		if len(gone) == 0 {
			return total
		}
	}
}

// clear1 makes n read nothing, so that what fed it alone is seen to be dead in the same sweep.
func clear1(n *graph.Node) {
	for i := range n.In {
		n.SetIn(i, nil)
	}
}

// identities removes the Identity nodes of g itself. Where the result is a graph output, the operand takes its
// name if it can: if it is the result of a node of the same graph and no output itself.
func identities(g *graph.Graph) int {
	var gone []*graph.Node
	for _, n := range g.Nodes {
		if !n.Is("Identity") || len(n.In) != 1 || n.In[0] == nil || len(n.Out) != 1 || n.Out[0] == nil {
			continue
		}
		x, y := n.In[0], n.Out[0]
		if y.IsOutput() {
			if x.Def == nil || x.Graph != g || x.IsOutput() {
				continue
			}
			x.Name, y.Name = y.Name, x.Name
			if y.Type.Shape != nil {
				x.Type = y.Type
			}
		}
		y.ReplaceUses(x)
		gone = append(gone, n)
	}
	g.Remove(gone...)
	return len(gone)
}

// unusedInits removes the initializers of g, and of the graphs nested in it, that nobody reads and
// that are no inputs.
func unusedInits(g *graph.Graph) int {
	count := 0
	for h := range g.Graphs() {
		h.RemoveInits(func(v *graph.Value) bool {
			drop := v.NumUses() == 0 && !v.IsInput()
			if drop {
				count++
			}
			return drop
		})
	}
	return count
}

// unusedFunctions removes the functions that no node of the main graph calls, directly or through
// other functions.
func unusedFunctions(m *graph.Model) int {
	called := map[*graph.Function]bool{}
	var visit func(g *graph.Graph)
	visit = func(g *graph.Graph) {
		for n := range g.AllNodes() {
			if f := m.Function(n.Domain, n.Op, n.Overload); f != nil && !called[f] {
				called[f] = true
				visit(f.Body)
			}
		}
	}
	visit(m.Graph)
	before := len(m.Functions)
	m.Functions = slices.DeleteFunc(m.Functions, func(f *graph.Function) bool { return !called[f] })
	return before - len(m.Functions)
}
