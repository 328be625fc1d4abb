package prune

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// cut keeps, of each block of elements along an axis, the first ones.
type cut struct {
	axis        int
	block, keep int64
}

// cutting is how part of a gradient can be computed from part of what the forward pass leaves: of the channels of the
// activation that the gradient's weights were multiplied with, say, so that only those have to be kept.
type cutting struct {
	grad   *graph.Value
	cuts   map[*graph.Value]cut  // of the gradient, of what it is computed from, down to the sources
	source map[*graph.Value]bool // forward values, of which a slice is kept
	nodes  map[*graph.Node]bool  // that compute the gradient from the sources

	known func(*graph.Value) *op.Array
}

// newCutting returns how one of parts equal parts of grad along some axis can be had, nil if there is no way.
func newCutting(known func(*graph.Value) *op.Array, grad *graph.Value, parts int64) *cutting {
	for axis, d := range grad.Type.Shape {
		n, ok := d.Int()
		if !ok || n < parts || n%parts != 0 || len(grad.Type.Shape) < 2 || grad.NumUses() != 1 {
			continue
		}
		c := &cutting{grad: grad, cuts: map[*graph.Value]cut{}, source: map[*graph.Value]bool{}, nodes: map[*graph.Node]bool{}, known: known}
		if c.visit(grad, cut{axis, n, n / parts}) && len(c.source) > 0 && len(c.nodes) > 0 && c.closed() {
			return c
		}
	}
	return nil
}

// closed reports whether nobody else reads what the nodes of the cutting compute.
func (c *cutting) closed() bool {
	for v := range c.cuts {
		if v == c.grad || c.source[v] {
			continue
		}
		if slices.ContainsFunc(v.Uses(), func(u graph.Use) bool { return !c.nodes[u.Node] }) {
			return false
		}
	}
	return true
}

// visit demands the cut k of v, and of what v is computed from. It reports whether that can be had.
func (c *cutting) visit(v *graph.Value, k cut) bool {
	if old, ok := c.cuts[v]; ok {
		return old == k
	}
	if v == nil || v.Type.Shape == nil || k.axis < 0 || k.axis >= len(v.Type.Shape) {
		return false
	}
	size, ok := v.Type.Shape[k.axis].Int()
	if !ok || size%k.block != 0 {
		return false
	}
	c.cuts[v] = k
	n := v.Def
	if n == nil || n.Meta.Get(graph.MetaRole) != graph.RoleBackward {
		c.source[v] = true
		return v.Init == nil && size == k.block && (n == nil || !n.Is("Constant")) && v != c.grad
	}
	if n.Graph != v.Graph || len(n.Out) != 1 || graph.StdDomain(n.Domain) != "" || refers(n) {
		return false
	}
	c.nodes[n] = true
	return c.through(n, k)
}

// through demands what the cut k of n's result needs of its operands.
func (c *cutting) through(n *graph.Node, k cut) bool {
	x := n.Operand(0)
	at := func(axis int64) cut { return cut{int(axis), k.block, k.keep} }
	rank := int64(len(n.Out[0].Type.Shape))
	switch {
	case n.Is("Transpose"):
		perm := permOf(n)
		return perm != nil && c.visit(x, at(perm[k.axis]))
	case n.Is("Gemm") && n.Operand(2) == nil:
		if k.axis == 0 {
			return c.visit(x, at(n.Int("transA", 0)))
		}
		return c.visit(n.Operand(1), at(1-n.Int("transB", 0)))
	case n.Is("MatMul"):
		a, b := int64(len(x.Type.Shape)), int64(len(n.In[1].Type.Shape))
		switch {
		case a < 2 || b < 2:
			return false
		case int64(k.axis) == rank-1:
			return c.visit(n.In[1], at(b-1))
		case int64(k.axis) == rank-2:
			return c.visit(x, at(a-2))
		}
		return false
	case n.Is("Conv") && n.Operand(2) == nil && n.Int("group", 1) == 1 && k.axis < 2:
		if k.axis == 0 {
			return c.visit(x, at(0))
		}
		return c.visit(n.In[1], at(0))
	case n.Is("Reshape"):
		return c.throughReshape(n, k)
	case n.Is("Slice"):
		axes, ok := c.axes(n.Operand(3), int(rank))
		return ok && len(axes) > 0 && !slices.Contains(axes, k.axis) && c.visit(x, k)
	case n.Is("Pad"):
		pads := c.known(n.Operand(1))
		if n.Operand(3) != nil || pads == nil || pads.Len() != 2*int(rank) {
			return false
		}
		return pads.I64[k.axis] == 0 && pads.I64[k.axis+int(rank)] == 0 && c.visit(x, k)
	case n.Is("Concat"):
		return !slices.ContainsFunc(n.In, func(v *graph.Value) bool { return !c.visit(v, k) })
	case n.Is("ReduceSum"), n.Is("ReduceMean"):
		axes, ok := c.axes(n.Operand(1), len(x.Type.Shape))
		if !ok || len(axes) == 0 {
			return false
		}
		axis := k.axis
		if n.Int("keepdims", 1) == 0 {
			left := 0
			for axis = range x.Type.Shape {
				if !slices.Contains(axes, axis) {
					if left == k.axis {
						break
					}
					left++
				}
			}
		}
		return !slices.Contains(axes, axis) && c.visit(x, at(int64(axis)))
	case op.Of(n).Has(op.Elementwise):
		return c.throughElements(n, k)
	}
	return false
}

// axes returns the constant axes v, counted from the front.
func (c *cutting) axes(v *graph.Value, rank int) ([]int, bool) {
	if v == nil {
		return nil, false
	}
	a := c.known(v)
	if a == nil || a.I64 == nil {
		return nil, false
	}
	out := make([]int, len(a.I64))
	for i, x := range a.I64 {
		if out[i] = axisIn(x, rank); out[i] < 0 {
			return nil, false
		}
	}
	return out, true
}

// throughElements cuts the operands that have the cut axis; others are broadcast along it.
func (c *cutting) throughElements(n *graph.Node, k cut) bool {
	rank := len(n.Out[0].Type.Shape)
	for _, v := range n.In {
		if v == nil || v.Type.Shape == nil {
			return false
		}
		axis := k.axis - (rank - len(v.Type.Shape))
		if axis < 0 {
			continue
		}
		if d, ok := v.Type.Shape[axis].Int(); ok && d == 1 && k.block > 1 {
			continue
		}
		if !c.visit(v, cut{axis, k.block, k.keep}) {
			return false
		}
	}
	return true
}

// throughReshape finds the axis of the operand that holds the blocks.
func (c *cutting) throughReshape(n *graph.Node, k cut) bool {
	x := n.In[0]
	s, t := x.Type.Shape, n.Out[0].Type.Shape
	if s == nil || c.target(n, k) == nil {
		return false
	}
	for _, g := range matchAxes(s, t) {
		if k.axis < g.first || k.axis >= g.last {
			continue
		}
		inner := int64(1) // elements between two neighbours along the axis
		for _, d := range t[k.axis+1 : g.last] {
			n, ok := d.Int()
			if !ok {
				return false
			}
			inner *= n
		}
		block, keep := k.block*inner, k.keep*inner
		for i := g.to - 1; i >= g.from; i-- { // the axis of the operand in which a block ends
			n, ok := s[i].Int()
			if !ok {
				return false
			}
			if block <= n || i == g.from {
				return n%block == 0 && c.visit(x, cut{i, block, keep})
			}
			if block%n != 0 || keep%n != 0 {
				return false
			}
			block, keep = block/n, keep/n
		}
	}
	return false
}

// target returns the target of a Reshape whose result is cut, nil if it cannot be said.
func (c *cutting) target(n *graph.Node, k cut) []int64 {
	t := n.Out[0].Type.Shape.Clone()
	size, ok := t[k.axis].Int()
	if !ok {
		return nil
	}
	t[k.axis] = graph.Known(size / k.block * k.keep)
	return target(t)
}

// apply computes the cut gradient, with zeros for the rest, in place of the whole one.
func (c *cutting) apply(info *op.Info) error {
	g := c.grad.Graph
	made := map[*graph.Value]*graph.Value{}
	var build func(v *graph.Value) (*graph.Value, error)
	builder := func(before, like *graph.Node) *op.Builder {
		b := op.NewBuilder(g, info)
		b.Before = before
		b.Role = graph.RoleBackward
		if like != nil {
			b.Prefix = like.Name
			if b.From = like.Meta.Get(graph.MetaFrom); b.From == "" {
				b.From = like.Name
			}
		}
		return b
	}
	build = func(v *graph.Value) (*graph.Value, error) {
		if w := made[v]; w != nil {
			return w, nil
		}
		k, n := c.cuts[v], v.Def
		if c.source[v] {
			after := 0 // the slice is taken as soon as there is something to slice, so that the rest can go
			if n != nil {
				after = slices.Index(g.Nodes, n) + 1
			}
			var next *graph.Node
			if after < len(g.Nodes) {
				next = g.Nodes[after]
			}
			b := builder(next, n)
			b.Role = graph.RoleForward
			w := b.Slice(v, b.Ints(0), b.Ints(k.keep), b.Ints(int64(k.axis)), nil)
			made[v] = w
			return w, b.Err
		}
		in := slices.Clone(n.In)
		for i, u := range in {
			if u == nil {
				continue
			}
			if _, ok := c.cuts[u]; ok {
				w, err := build(u)
				if err != nil {
					return nil, err
				}
				in[i] = w
			}
		}
		b := builder(n, n)
		if n.Is("Reshape") {
			in[1] = b.Ints(c.target(n, k)...)
		}
		w := b.Op(n.Op, in, n.Attrs...)
		w.Def.Name = g.Model.FreshNode(n.Name)
		made[v] = w
		return w, b.Err
	}
	part, err := build(c.grad)
	if err != nil {
		return err
	}
	k := c.cuts[c.grad]
	rank := len(c.grad.Type.Shape)
	pads := make([]int64, 2*rank)
	pads[rank+k.axis] = k.block - k.keep
	b := builder(nil, c.grad.Def)
	whole := b.Op("Pad", values(part, b.Ints(pads...)))
	if b.Err != nil {
		return b.Err
	}
	c.grad.TakeOver(whole)
	return nil
}
