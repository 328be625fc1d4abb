package legal

import "gradtool/graph"

// unbar takes out barriers, which keep a runtime from running what computes a value again before it is time, or from merging it with what computed
// it first: kernels run in the order of the nodes, and no two are merged. What the barriers waited for goes with them.
func unbar(m *graph.Model) {
	g := m.Graph
	found := false
	var one *graph.Value
	for _, n := range g.Nodes {
		x := n.Operand(0)
		if n.Meta.Get(graph.MetaBarrier) == "" || !n.Is("Reshape") || x == nil || n.Out[0].IsOutput() {
			continue
		}
		found = true
		if x.Type.IsTensor() && x.Type.Shape != nil && len(x.Type.Shape) == 0 { // a scalar goes through as a list of one
			if one == nil {
				one = g.AddInit(m.Fresh("one"), graph.Ints([]int64{1}, 1))
			}
			n.SetIn(1, one)
			continue
		}
		n.Out[0].ReplaceUses(x)
	}
	if !found {
		return
	}
	for {
		var gone []*graph.Node
		for _, n := range g.Nodes {
			used := false
			for _, v := range n.Out {
				used = used || v != nil && (v.NumUses() > 0 || v.IsOutput())
			}
			if !used {
				gone = append(gone, n)
			}
		}
		if len(gone) == 0 {
			return
		}
		g.Remove(gone...)
	}
}
