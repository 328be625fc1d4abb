package op

import (
	"gradtool/graph"
)

// Replace puts n's decomposition (see [Def]) in its place. The values that n defined keep their identity
// and names. New nodes have the role forward, or n's own, and stem from n.
func (b *Builder) Replace(n *graph.Node) { b.ReplaceBy(n, Of(n).Decompose) }

// ReplaceBy is Replace with what build returns in place of the decomposition.
func (b *Builder) ReplaceBy(n *graph.Node, build func(b *Builder, n *graph.Node) []*graph.Value) {
	sub := NewBuilder(n.Graph, b.Info)
	sub.Before = n
	sub.Role, sub.From, sub.Prefix = n.Meta.Get(graph.MetaRole), n.Name, n.Name
	sub.InClusterOf(n)
	if sub.Role == "" {
		sub.Role = graph.RoleForward
	}
	outs := build(sub, n)
	taken := map[*graph.Value]bool{}
	for i, y := range n.Out {
		if y == nil || i >= len(outs) || outs[i] == nil {
			continue
		}
		z := outs[i]
		fresh := z.Def != nil && z.Graph == n.Graph && z.Def != n && z.ID > n.ID && !taken[z]
		if !fresh || z.Def.Is("Constant") { // an operand handed through, or a shared constant
			z = sub.Unary("Identity", z)
		}
		taken[z] = true
		y.TakeOver(z)
	}
	n.Graph.Remove(n)
	if b.Err == nil {
		b.Err = sub.Err
	}
}
