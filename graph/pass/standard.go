package pass

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Sort puts the nodes of all graphs into execution order.
func Sort() Pass {
	return Pass{
		Name: "sort", Doc: "put nodes into execution order", Required: true,
		Run: func(c *Ctx, m *graph.Model) (bool, error) {
			changed := false
			for _, g := range roots(m) {
				var before [][]*graph.Node
				for h := range g.Graphs() {
					before = append(before, slices.Clone(h.Nodes))
				}
				graphs := slices.Collect(g.Graphs())
				if err := g.Sort(); err != nil {
					return false, err
				}
				for i, h := range graphs {
					changed = changed || !slices.Equal(before[i], h.Nodes)
				}
			}
			return changed, nil
		},
	}
}

// roots returns the main graph and the bodies of functions.
func roots(m *graph.Model) []*graph.Graph {
	out := []*graph.Graph{m.Graph}
	for _, f := range m.Functions {
		out = append(out, f.Body)
	}
	return out
}

// Inline puts the bodies of functions in the place of their calls; see [op.Inline]. Functions for which keep is true
// stay.
func Inline(keep func(*graph.Function) bool) Pass {
	return Pass{
		Name: "inline", Doc: "replace calls of model-local functions by their bodies", Required: true,
		Run: func(c *Ctx, m *graph.Model) (bool, error) {
			before := len(m.Functions)
			if err := op.Inline(m, keep); err != nil {
				return false, err
			}
			if n := before - len(m.Functions); n > 0 {
				c.Note("%d functions inlined", n)
			}
			return len(m.Functions) != before, nil
		},
	}
}

// Upgrade brings ai.onnx nodes into canonical form; see [op.Upgrade].
func Upgrade() Pass {
	return Pass{
		Name: "upgrade", Doc: "bring each operator into the form of its newest version", Required: true,
		Run: func(c *Ctx, m *graph.Model) (bool, error) {
			opset, origin := m.Opset(""), m.Origin
			if err := op.Upgrade(m); err != nil {
				return false, err
			}
			changed := m.Opset("") != opset || m.Origin != origin
			if m.Opset("") != opset {
				c.Note("opset %d to %d", opset, m.Opset(""))
			}
			return changed, nil
		},
	}
}

// Infer computes types and shapes; see [op.Infer]. What it finds is there for later passes through [Ctx.Info].
func Infer() Pass {
	return Pass{
		Name: "infer", Doc: "compute types and shapes of all values", Required: true,
		Run: func(c *Ctx, m *graph.Model) (bool, error) {
			var values []*graph.Value
			var before []graph.Type
			for _, g := range roots(m) {
				for h := range g.Graphs() {
					for v := range h.Values() {
						values = append(values, v)
						before = append(before, v.Type)
					}
				}
			}
			info, err := op.Infer(m)
			if err != nil {
				return false, err
			}
			c.info, c.infoOf = info, m
			changed := 0
			for i, v := range values {
				if !v.Type.Same(before[i]) {
					changed++
				}
			}
			if changed > 0 {
				c.Note("%d types refined", changed)
			}
			return changed > 0, nil
		},
	}
}
