package op

import (
	"fmt"
	"slices"

	"gradtool/graph"
)

// maxInlined is how many nodes [Inline] puts in at most: a chain of functions that call the next one twice is a file of a
// few hundred bytes whose body is larger than any memory.
const maxInlined = 1 << 20

// ExpansionError says that the bodies of functions are too many nodes.
type ExpansionError struct {
	Function *graph.Function // the largest of those called by nodes that stay
	Nodes    int             // of its body with all calls replaced, at most maxInlined+1
}

// Error says how many nodes there are and what can be done.
func (e *ExpansionError) Error() string {
	how := fmt.Sprintf("%d nodes", e.Nodes)
	if e.Nodes > maxInlined {
		how = fmt.Sprintf("more than %d nodes", maxInlined)
	}
	return fmt.Sprintf("calls of functions would become more than %d nodes, which is the limit; the body of %s alone has %s with all calls in it replaced",
		maxInlined, functionName(e.Function), how)
}

// checkExpansion returns an [*ExpansionError] if putting the bodies of the functions gone in the place of their calls makes
// more than maxInlined nodes. Functions must not call themselves.
func checkExpansion(m *graph.Model, gone []*graph.Function) error {
	sizes := map[*graph.Function]int{}
	var nodes func(g *graph.Graph, calls bool) (int, *graph.Function)
	body := func(f *graph.Function) int {
		if n, ok := sizes[f]; ok {
			return n
		}
		n, _ := nodes(f.Body, false)
		sizes[f] = min(n+len(f.Body.Inits), maxInlined+1)
		return sizes[f]
	}
	// nodes counts the nodes of g with calls replaced or, with calls set, only what stands in for calls; largest is the
	// function of the largest call.
	nodes = func(g *graph.Graph, calls bool) (n int, largest *graph.Function) {
		for k := range g.AllNodes() {
			f := m.Function(k.Domain, k.Op, k.Overload)
			switch {
			case f != nil && slices.Contains(gone, f):
				n = min(n+body(f), maxInlined+1)
				if largest == nil || body(f) > body(largest) {
					largest = f
				}
			case !calls:
				n = min(n+1, maxInlined+1)
			}
		}
		return n, largest
	}
	graphs := []*graph.Graph{m.Graph}
	for _, f := range m.Functions {
		if !slices.Contains(gone, f) {
			graphs = append(graphs, f.Body)
		}
	}
	total := 0
	for _, g := range graphs {
		n, largest := nodes(g, true)
		if total += n; total > maxInlined {
			return &ExpansionError{largest, body(largest)}
		}
	}
	return nil
}
