package prune

import (
	"gradtool/graph"
)

// shapes puts constants in the place of shape operands that inference knows well enough: targets of Reshape, in which one
// dimension may be left over (-1) or dimensions be copied (0), and of Expand, in which 1 keeps a dimension.
func (p *pruner) shapes() error {
	for _, root := range roots(p.m) {
		for g := range root.Graphs() {
			for i := 0; i < len(g.Nodes); i++ { // constants are put in front of the node at hand
				n := g.Nodes[i]
				if p.stopped {
					return nil
				}
				var target []int64
				switch {
				case n.Is("Reshape"):
					target = p.reshapeTarget(n)
				case n.Is("Expand"):
					target = p.expandTarget(n)
				}
				if target == nil || !p.allow("constant shape of %s", label{n}) {
					continue
				}
				t := graph.Ints(nil, target...)
				k := g.NewNode("", "Constant", nil, []string{g.Model.Fresh(n.In[1].Name)}, graph.TensorAttr("value", t))
				k.Name = g.Model.FreshNode(n.In[1].Name)
				k.Meta = append(graph.Meta{}, n.Meta...)
				g.InsertBefore(n, k)
				_ = p.info.Node(k)
				n.SetIn(1, k.Out[0])
				p.stats.Shapes++
			}
		}
	}
	return nil
}

// runTime returns the elements of the node's shape operand if it is computed at run time.
func (p *pruner) runTime(n *graph.Node) []graph.Dim {
	v := n.Operand(1)
	if v == nil || v.Def == nil || v.Def.Is("Constant") || n.Meta.Get(graph.MetaRole) == graph.RoleRecompute || n.Operand(0) == nil || refers(n) || p.trains(v) {
		return nil
	}
	d := p.info.Dims(v)
	if len(d) == 0 {
		return nil
	}
	return d
}

// refers reports whether an attribute of n is that of the enclosing function.
func refers(n *graph.Node) bool {
	for _, a := range n.Attrs {
		if a.Ref != "" {
			return true
		}
	}
	return false
}

// reshapeTarget returns the target of a Reshape as numbers, nil if there is none for every size that the inputs may have.
// The attribute allowzero is dropped where dimensions are copied.
func (p *pruner) reshapeTarget(n *graph.Node) []int64 {
	d := p.runTime(n)
	if d == nil {
		return nil
	}
	x := n.In[0].Type.Shape
	allowZero := n.Int("allowzero", 0) != 0
	out := make([]int64, len(d))
	left, given := -1, false        // which dimension is left over; whether the operand says -1 itself
	copies, positive := false, true // of dimensions; whether those are certain to be positive
	for i := range d {
		k, ok := d[i].Int()
		out[i] = k
		same := !ok && i < len(x) && x[i].Equal(d[i])
		switch {
		case ok && k > 0:
		case ok && k == -1 && left < 0:
			left, given = i, true
		case ok && k == 0 && !allowZero && i < len(x), same:
			out[i], copies = 0, true
			lo, _, known, _ := x[i].Bounds()
			positive = positive && known && lo > 0
		case !ok && left < 0 && (graph.Known(0).LessEq(d[i]) || onlyUnknown(d, i)):
			left, out[i] = i, -1
		default:
			p.miss("constant shape: node %s: dimension %d of %s is left to run time beside another", label{n}, i, graph.Shape(d))
			return nil
		}
	}
	if left >= 0 && !given && !positive {
		p.miss("constant shape: node %s: dimension %d of %s cannot be left over, as another may be 0", label{n}, left, graph.Shape(d))
		return nil
	}
	if copies && allowZero {
		n.DeleteAttr("allowzero")
	}
	return out
}

// onlyUnknown reports whether element i is the only one that nothing is known of, and the others are positive numbers:
// then the number of elements decides it, or the node fails.
func onlyUnknown(d []graph.Dim, i int) bool {
	for j := range d {
		if k, ok := d[j].Int(); j != i && (!ok || k <= 0) {
			return false
		}
	}
	return true
}

// expandTarget is reshapeTarget for Expand.
func (p *pruner) expandTarget(n *graph.Node) []int64 {
	d := p.runTime(n)
	x := n.In[0].Type.Shape
	if d == nil || x == nil {
		return nil
	}
	out := make([]int64, len(d))
	for i := range d {
		if k, ok := d[i].Int(); ok {
			out[i] = k
			continue
		}
		j := i - (len(d) - len(x))
		if j < 0 || !x[j].Equal(d[i]) {
			p.miss("constant shape: node %s: dimension %d of %s is known at run time only", label{n}, i, graph.Shape(d))
			return nil
		}
		out[i] = 1
	}
	return out
}
