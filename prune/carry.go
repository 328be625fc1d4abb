package prune

import (
	"slices"

	"gradtool/graph"
)

// Constants returns the elements of the small constants of m's main graph by name, apart from the file that they may be in.
func Constants(m *graph.Model) map[string]*graph.Tensor {
	out := map[string]*graph.Tensor{}
	add := func(v *graph.Value, t *graph.Tensor) {
		if t == nil || t.Data == nil || t.Check() != nil || t.ByteLen() > NodeAllowance {
			return
		}
		if raw, err := t.Data.Bytes(); err == nil {
			out[v.Name] = &graph.Tensor{Elem: t.Elem, Dims: slices.Clone(t.Dims), Data: graph.Bytes(slices.Clone(raw))}
		}
	}
	for _, v := range m.Graph.Inits {
		if v.IsConst() {
			add(v, v.Init)
		}
	}
	for _, n := range m.Graph.Nodes {
		if a := n.Attr("value"); n.Is("Constant") && a != nil && n.Result(0) != nil {
			add(n.Out[0], a.T)
		}
	}
	return out
}

// Carry puts constants that were found in a simpler form of m in the place of the nodes that compute them in m: those of the
// main graph whose results have names of constants. It is for models that would be larger in that form, because an operator has
// become several. Allow is asked before each.
func Carry(m *graph.Model, constants map[string]*graph.Tensor, allow func(format string, args ...any) bool) Stats {
	var s Stats
	g := m.Graph
	for i, n := range g.Nodes {
		if n.Is("Constant") || len(n.Out) != 1 || n.Out[0] == nil || n.Out[0].NumUses() == 0 || len(n.Subgraphs()) > 0 {
			continue
		}
		v := n.Out[0]
		t := constants[v.Name]
		if t == nil || v.Type.Elem != graph.Undefined && v.Type.Elem != t.Elem {
			continue
		}
		if !allow("fold %s", label{n}) {
			break
		}
		k := g.NewNode("", "Constant", nil, []string{m.Fresh(v.Name)}, graph.TensorAttr("value", t))
		k.Name, k.Meta, k.Graph = n.Name, append(graph.Meta{}, n.Meta...), g
		k.Out[0].Type = t.Type()
		v.TakeOver(k.Out[0])
		clear1(n)
		g.Nodes[i] = k
		s.Folded++
	}
	s.Add(Clean(m))
	return s
}
