package rewrite

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Finder is a pattern with the condition on what it captures, for passes that want to know where it fits and rewrite nothing.
type Finder struct {
	When func(m *Match) error // nil: always

	patterns []*Pattern
}

// Find returns a finder of any of the patterns.
func Find(when func(m *Match) error, patterns ...*Pattern) *Finder {
	f := &Finder{When: when}
	for _, p := range patterns {
		f.patterns = append(f.patterns, p.alternatives()...)
	}
	return f
}

// At returns where a pattern fits with n as its root, nil if none does. Info may be nil if the condition does not ask for
// it; known returns the elements of small constants. Inner values may be read by others.
func (f *Finder) At(n *graph.Node, info *op.Info, known func(*graph.Value) *op.Array) *Match {
	for _, p := range f.patterns {
		m := &Match{Info: info, Known: known}
		if m.node(p, n) && (f.When == nil || f.When(m) == nil) {
			return m
		}
	}
	return nil
}

// Nodes returns the matched nodes, each once: the root, and those that define the inner values of the pattern.
func (m *Match) Nodes() []*graph.Node {
	out := []*graph.Node{m.Root}
	for _, i := range m.inner {
		if !slices.Contains(out, i.v.Def) {
			out = append(out, i.v.Def)
		}
	}
	return out
}
