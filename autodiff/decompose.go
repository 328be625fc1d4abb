package autodiff

import (
	"gradtool/graph"
)

// decompose replaces the nodes on the path whose operators are differentiated through simpler ones by
// those, so that forward and backward share them. It reports whether there were any.
func (r *reverse) decompose() bool {
	var nodes []*graph.Node
	for _, n := range r.nodes() {
		if rule := r.rule(n); rule != nil && rule.Kind == Decomposed && r.onPath(n) {
			nodes = append(nodes, n)
		}
	}
	for _, n := range nodes {
		r.b.Replace(n)
	}
	return len(nodes) > 0
}
