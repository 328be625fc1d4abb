package autodiff

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

func controlRules() []Rule {
	return []Rule{
		{Name: "If", Kind: HasVJP, VJP: ifVJP},
		{Name: "Loop", Kind: HasVJP, VJP: loopVJP},
		{Name: "Scan", Kind: HasVJP, VJP: scanVJP},
		{Name: "SequenceMap", Kind: Decomposed},
	}
}

// ifVJP: y = If(c){f(x)}{g(x)}; dx = If(c){cotangent of f}{cotangent of g}, for all captured values x at once. A value
// that a branch does not depend on gets zeros there. Branches compute what they need of the forward branch again,
// unless it is random or expensive: that becomes a further result of the forward If, in whose place the
// other branch returns zeros. Of a condition known beforehand only the branch taken is differentiated.
func ifVJP(c *Ctx) []*graph.Value {
	n := c.Node
	captures := n.Captures()
	first := len(n.In)
	var wrt []*graph.Value
	for i, v := range captures {
		if c.Need(first + i) {
			wrt = append(wrt, v)
		}
	}
	ct := slices.Clone(c.ct)
	var sides []*inner
	cond := c.Info.Const(n.In[0])
	for k, name := range []string{"then_branch", "else_branch"} {
		s := c.inner(n.Subgraph(name), name)
		var seeds []Seed
		never := cond != nil && len(cond.I64) == 1 && (cond.I64[0] == 0) == (k == 0)
		for i, g := range ct {
			if g != nil && !never {
				seeds = append(seeds, Seed{s.g.Outputs[i], g})
			}
		}
		if err := s.run(seeds, wrt); err != nil {
			c.Err = err
			return nil
		}
		sides = append(sides, s)
	}
	wrt = slices.DeleteFunc(wrt, func(v *graph.Value) bool { return sides[0].cts[v] == nil && sides[1].cts[v] == nil })
	if len(wrt) == 0 {
		return nil
	}
	for k, s := range sides {
		s.residual = func(v *graph.Value) *graph.Value { return ifResidual(c, s.g, sides[1-k].g, v) }
		var outs []*graph.Value
		for _, v := range wrt {
			outs = append(outs, s.cotangent(v))
		}
		s.finish(outs...)
	}
	back := c.Builder.Node("If", n.In[:1:1], len(wrt), graph.GraphAttr("then_branch", sides[0].b.G), graph.GraphAttr("else_branch", sides[1].b.G))
	cts := make([]*graph.Value, first+len(captures))
	for i, v := range wrt {
		cts[first+slices.Index(captures, v)] = back.Out[i]
	}
	return cts
}

// ifResidual makes the value v of a branch a result of the If. The other branch returns zeros for it, of the same shape
// where that is known; where it is not, only random values are handed out, since the result's type would
// tell less than v's.
func ifResidual(c *Ctx, branch, other *graph.Graph, v *graph.Value) *graph.Value {
	shape, known := v.Type.Shape.Ints()
	if !v.Type.IsTensor() || !known && !isRandom(v.Def) {
		return nil
	}
	if !known {
		shape = []int64{0}
	}
	b := forward(c, other)
	addOutput(b, b.Full(b.Ints(shape...), v.Type.Elem, 0))
	addOutput(forward(c, branch), v)
	y := c.Node.DefineOut(len(branch.Outputs)-1, c.G.Model.Fresh(v.Name+"_kept"))
	c.rev.added = append(c.rev.added, y)
	if err := c.Info.Node(c.Node); err != nil && c.Err == nil {
		c.Err = err
	}
	return y
}

// forward returns a builder for additions to a graph that the forward node runs.
func forward(c *Ctx, g *graph.Graph) *op.Builder {
	b := op.NewBuilder(g, c.Info)
	b.Role, b.From, b.Prefix = graph.RoleForward, c.Builder.From, c.Builder.Prefix
	return b
}

// addOutput makes v an output of b's graph, through Identity where v is no result of a node in it or is an output already.
func addOutput(b *op.Builder, v *graph.Value) {
	if v.Def == nil || v.Graph != b.G || v.IsOutput() {
		v = b.Unary("Identity", v)
	}
	b.G.AddOutput(v)
}
