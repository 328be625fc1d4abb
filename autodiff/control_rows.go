package autodiff

import (
	"slices"

	"gradtool/graph"
)

// rowRead is a captured value of which the iterations of a loop read single slices along the first axis. Summing its
// cotangent up would cost its whole size in every iteration; instead the reverse loop stacks the slices' cotangents and
// their numbers, and one scatter adds them up in the end.
type rowRead struct {
	x     *graph.Value
	nodes []*graph.Node // Gather
	used  []*graph.Node // those whose results have cotangents
}

// rowReads finds the captured values that are read so.
func (l *loop) rowReads(captures []*graph.Value) []*rowRead {
	var out []*rowRead
	for i, x := range captures {
		if !l.c.Need(len(l.n.In)+i) || !x.Type.IsTensor() || len(x.Type.Shape) == 0 {
			continue
		}
		r := &rowRead{x: x}
		pure := true
		for _, u := range x.Uses() {
			switch g := u.Graph; {
			case u.Node == nil && within(g, l.g):
				pure = false
			case u.Node == nil || !within(u.Node.Graph, l.g):
			case u.Node.Graph == l.g && u.Index == 0 && isRow(u.Node):
				r.nodes = append(r.nodes, u.Node)
			default:
				rule := l.rule(u.Node)
				pure = pure && rule != nil && (rule.Kind == NoGrad || rule.Kind == ZeroGrad || rule.stops(u.Index))
			}
		}
		if pure && len(r.nodes) > 0 {
			out = append(out, r)
		}
	}
	return out
}

// within reports whether g is outer or nested in it.
func within(g, outer *graph.Graph) bool {
	for g != outer {
		if g == nil || g.Parent == nil {
			return false
		}
		g = g.Parent.Graph
	}
	return true
}

// isRow reports whether n takes one slice along the first axis.
func isRow(n *graph.Node) bool {
	if !n.Is("Gather") {
		return false
	}
	axis, at := n.Int("axis", 0), n.In[1].Type.Shape
	return (axis == 0 || axis == -int64(len(n.In[0].Type.Shape))) && at != nil && len(at) == 0
}

// rowRead returns the row read of a captured value, nil if it is read otherwise.
func (l *loop) rowRead(x *graph.Value) *rowRead {
	i := slices.IndexFunc(l.rows, func(r *rowRead) bool { return r.x == x })
	if i < 0 {
		return nil
	}
	return l.rows[i]
}

func (r *rowRead) results() []*graph.Value {
	var out []*graph.Value
	for _, n := range r.nodes {
		out = append(out, n.Out[0])
	}
	return out
}

// stacks returns, for each read slice with a cotangent, its number and the cotangent.
func (r *rowRead) stacks(l *loop) []*graph.Value {
	var out []*graph.Value
	for _, n := range r.nodes {
		if g := l.cts[n.Out[0]]; g != nil {
			r.used = append(r.used, n)
			out = append(out, l.b.Unary("Identity", n.In[1]), g)
		}
	}
	return out
}

// cotangent scatters the stacks, which are the reverse Loop's results from at on, and returns the number behind them.
func (r *rowRead) cotangent(c *Ctx, results []*graph.Value, at int) (*graph.Value, int) {
	var total *graph.Value
	for range r.used {
		index, g := c.Unsqueeze(c.int64s(results[at]), 1), results[at+1]
		// Of no iteration at all a runtime cannot know the stack's other sizes.
		shape := c.Concat(0, c.DimOf(index, 0), c.Op("Shape", []*graph.Value{r.x}, graph.IntAttr("start", 1)))
		if n, ok := g.Type.Shape[0].Int(); !ok || n == 0 {
			g = c.Op("Reshape", []*graph.Value{g, shape}, graph.IntAttr("allowzero", 1))
		}
		ct := c.Cast(c.scatterAdd(c.Shape(r.x), index, c.widened(g)), r.x.Type.Elem)
		if total != nil {
			ct = c.Add(total, ct)
		}
		total, at = ct, at+2
	}
	return total, at
}
