package prune

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// loops puts the body of each Loop that certainly runs once in its place, and the first values of what it carries in that
// of each Loop that certainly does not run. It returns how many there were.
//
// A Loop that runs not at all stays if somebody reads a result that stacks values: its type may depend on the body.
func (p *pruner) loops(g *graph.Graph) int {
	count := 0
	for _, n := range slices.Clone(g.Nodes) {
		for _, sub := range n.Subgraphs() {
			count += p.loops(sub)
		}
		body := n.Subgraph("body")
		if !n.Is("Loop") || body == nil || len(n.In) < 2 || refers(n) {
			continue
		}
		trips, ok := p.trips(n)
		carried := len(n.In) - 2
		if !ok || len(body.Inputs) != 2+carried || len(body.Outputs) < 1+carried || len(n.Out) > len(body.Outputs)-1 {
			continue
		}
		stacked := slices.ContainsFunc(n.Out[min(carried, len(n.Out)):], func(v *graph.Value) bool { return v != nil && v.NumUses() > 0 })
		if trips == 0 && stacked || trips > 1 || !p.allow("inline %s", label{n}) {
			continue
		}
		if trips == 1 {
			p.once(n, body)
		} else {
			for k, y := range n.Out {
				if y != nil && y.NumUses() > 0 {
					p.handOver(n, y, n.In[2+k])
				}
			}
		}
		g.Remove(n)
		count++
	}
	return count
}

// trips returns how often a Loop runs if that is 0 or 1 for certain; else more than 1, or not ok.
func (p *pruner) trips(n *graph.Node) (count int64, ok bool) {
	if c := n.In[1]; c != nil {
		a := p.known(c)
		if a == nil || a.Len() != 1 {
			return 0, false
		}
		if a.Float(0) == 0 {
			return 0, true
		}
	}
	if n.In[0] == nil {
		return 0, false
	}
	a := p.known(n.In[0])
	if a == nil || a.Len() != 1 || a.I64 == nil {
		return 0, false
	}
	return max(0, a.I64[0]), true
}

// handOver lets everybody read x in place of y, a result of n, through an Identity that keeps an output's name and type.
func (p *pruner) handOver(n *graph.Node, y, x *graph.Value) {
	g := n.Graph
	if !y.IsOutput() {
		y.ReplaceUses(x)
		return
	}
	k := g.NewNode("", "Identity", []*graph.Value{x}, []string{g.Model.Fresh(y.Name)})
	k.Name = g.Model.FreshNode(y.Name)
	k.Meta = append(graph.Meta{}, n.Meta...)
	g.InsertBefore(n, k)
	y.TakeOver(k.Out[0])
}

// once moves the nodes of a body that runs once in front of n, its Loop.
func (p *pruner) once(n *graph.Node, body *graph.Graph) {
	g := n.Graph
	b := op.NewBuilder(g, p.info)
	b.Before, b.Prefix, b.Role, b.From = n, n.Name, n.Meta.Get(graph.MetaRole), n.Name
	first := []*graph.Value{b.IntScalar(0), b.True()}
	for i, v := range body.Inputs {
		if i < 2 {
			v.ReplaceUses(first[i])
		} else {
			v.ReplaceUses(n.In[i])
		}
	}
	outs := slices.Clone(body.Outputs)
	body.SetOutputs()
	n.DeleteAttr("body")
	taken := p.valueNames()
	adopt := func(v *graph.Value) {
		v.Graph = g
		if taken[v.Name]--; taken[v.Name] > 0 {
			v.Name = g.Model.Fresh(v.Name)
		}
	}
	for _, v := range body.Inits {
		adopt(v)
	}
	g.Inits = append(g.Inits, body.Inits...)
	for _, m := range body.Nodes {
		for _, v := range m.Out {
			if v != nil {
				adopt(v)
			}
		}
	}
	g.InsertBefore(n, body.Nodes...)
	carried := len(n.In) - 2
	for k, y := range n.Out {
		if y == nil || y.NumUses() == 0 {
			continue
		}
		if k < carried {
			p.handOver(n, y, outs[1+k])
			continue
		}
		p.handOver(n, y, b.Unsqueeze(outs[1+k], 0))
	}
}

// valueNames counts how many values of the model have each name.
func (p *pruner) valueNames() map[string]int {
	out := map[string]int{}
	for _, root := range roots(p.m) {
		for g := range root.Graphs() {
			for v := range g.Values() {
				out[v.Name]++
			}
		}
	}
	return out
}
