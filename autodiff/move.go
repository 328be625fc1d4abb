package autodiff

import (
	"slices"

	"gradtool/graph"
)

// moveRules lists the rules of the operators that put elements in other places.
func moveRules() []Rule {
	return slices.Concat(joinRules(), padRules(), blockRules())
}

func joinRules() []Rule {
	return []Rule{
		{Name: "Concat", Kind: HasVJP, VJP: concatVJP},
		{Name: "Split", Kind: HasVJP, Stop: []int{1}, VJP: splitVJP},
		{Name: "Slice", Kind: HasVJP, Stop: []int{1, 2, 3, 4}, VJP: sliceVJP},
	}
}

// concatVJP: y joins x_0, x_1, ... along an axis; dx_i is the part of g that x_i became. One Split gives
// them all; where only some are needed, a Slice each.
func concatVJP(c *Ctx) []*graph.Value {
	g, n := c.Ct(0), len(c.Node.In)
	axis := int(c.Node.Int("axis", 0))
	out := make([]*graph.Value, n)
	if n == 1 {
		return one(g)
	}
	needed := 0
	for i := range n {
		if c.Need(i) {
			needed++
		}
	}
	if needed == n {
		var parts vector
		for i := range n {
			parts.addSize(c, c.X(i), axis)
		}
		return c.Builder.Node("Split", []*graph.Value{g, parts.value(c)}, n, graph.IntAttr("axis", int64(axis))).Out
	}
	at := c.Ints(0)
	for i := range n {
		next := c.plus(at, c.DimOf(c.X(i), axis))
		if c.Need(i) {
			out[i] = c.Slice(g, at, next, c.Ints(int64(axis)), nil)
		}
		at = next
	}
	return out
}

// splitVJP: y_i are consecutive parts of x; dx joins their cotangents, zeros for those that have none.
func splitVJP(c *Ctx) []*graph.Value {
	parts := make([]*graph.Value, len(c.Node.Out))
	for i := range parts {
		if parts[i] = c.Ct(i); parts[i] == nil {
			parts[i] = c.FullLike(c.Want(i), 0)
		}
	}
	return one(c.Concat(c.Node.Int("axis", 0), parts...))
}
