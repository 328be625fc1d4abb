package op

import (
	"slices"

	"gradtool/graph"
)

// InlineIfs puts, for each If of m's graph whose condition is known, the nodes of the branch that is taken in its place,
// also inside other subgraphs, and returns how many there were. info must be that of m. The values that an If
// defined keep their identity and names; values of the branch get other names where theirs are not unique.
func InlineIfs(m *graph.Model, info *Info) int { return InlineIfsWhere(m, info, nil) }

// InlineIfsWhere is InlineIfs for those Ifs alone that ok, which may be nil, approves.
func InlineIfsWhere(m *graph.Model, info *Info, ok func(n *graph.Node) bool) int {
	i := &ifInliner{m: m, info: info, ok: ok}
	i.graph(m.Graph)
	if i.count > 0 {
		scalarRanges(m.Graph, info)
	}
	return i.count
}

// scalarRanges makes scalars of the vectors of one element that Range gets against the standard. The standard's own body of
// AffineGrid does so; a runtime that does not see which branch its If takes cannot know, and one that does refuses the model.
func scalarRanges(g *graph.Graph, info *Info) {
	for _, n := range slices.Clone(g.Nodes) {
		if !n.Is("Range") {
			continue
		}
		b := NewBuilder(g, info)
		b.Before, b.Role, b.Prefix = n, graph.RoleForward, n.Label()
		for k, v := range n.In {
			if v != nil && len(v.Type.Shape) == 1 {
				n.SetIn(k, b.Op("Squeeze", []*graph.Value{v}))
			}
		}
	}
}

type ifInliner struct {
	m     *graph.Model
	info  *Info
	ok    func(n *graph.Node) bool
	names map[string]int // how many values have a name; nil before the first If is inlined
	count int
}

func (i *ifInliner) graph(g *graph.Graph) {
	for k := 0; k < len(g.Nodes); {
		n := g.Nodes[k]
		if branch := i.taken(n); branch != nil {
			i.inline(n, branch)
			i.count++
			continue // what stands here now may be an If too
		}
		for _, sub := range n.Subgraphs() {
			i.graph(sub)
		}
		k++
	}
}

// taken returns the branch that the If n is known to take, nil for other nodes.
func (i *ifInliner) taken(n *graph.Node) *graph.Graph {
	then, els := n.Subgraph("then_branch"), n.Subgraph("else_branch")
	if !n.Is("If") || then == nil || els == nil || n.Operand(0) == nil {
		return nil
	}
	taken := els
	if yes, ok := i.info.flag(n.In[0]); !ok {
		return nil
	} else if yes {
		taken = then
	}
	if len(taken.Inputs) > 0 || len(taken.Outputs) < len(n.Out) || i.ok != nil && !i.ok(n) {
		return nil
	}
	return taken
}

func (i *ifInliner) inline(n *graph.Node, branch *graph.Graph) {
	i.countNames()
	g := n.Graph
	outs := branch.Outputs
	branch.SetOutputs()
	for _, name := range []string{"then_branch", "else_branch"} {
		if n.Subgraph(name) == branch {
			n.DeleteAttr(name)
		}
	}
	for _, v := range branch.Inits {
		i.adopt(g, v)
	}
	g.Inits = append(g.Inits, branch.Inits...)
	fresh := map[*graph.Node]bool{}
	for _, m := range branch.Nodes {
		fresh[m] = true
		for _, v := range m.Out {
			if v != nil {
				i.adopt(g, v)
			}
		}
	}
	g.InsertBefore(n, branch.Nodes...)
	var taken []*graph.Value
	for k, y := range n.Out {
		if y == nil {
			continue
		}
		z := outs[k]
		if z.Def == nil || !fresh[z.Def] || slices.Contains(taken, z) {
			c := g.NewNode("", "Identity", []*graph.Value{z}, []string{g.Model.Fresh(y.Name)})
			c.Name = g.Model.FreshNode(n.Name)
			z = c.Out[0]
			g.InsertBefore(n, c)
		}
		y.TakeOver(z)
		taken = append(taken, y)
		for j, w := range outs {
			if w == z {
				outs[j] = y
			}
		}
	}
	g.Remove(n)
}

// countNames counts how many values have a name, once.
func (i *ifInliner) countNames() {
	if i.names != nil {
		return
	}
	i.names = map[string]int{}
	for g := range i.m.Graph.Graphs() {
		for v := range g.Values() {
			i.names[v.Name]++
		}
	}
}

// adopt makes v, a value of a branch, one of g.
func (i *ifInliner) adopt(g *graph.Graph, v *graph.Value) {
	v.Graph = g
	if i.names[v.Name] > 1 {
		i.names[v.Name]--
		v.Name = g.Model.Fresh(v.Name)
		i.names[v.Name]++
	}
}
