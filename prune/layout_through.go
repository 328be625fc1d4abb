package prune

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// crossing says how a node computes the same from operands that are not transposed.
type crossing struct {
	entries []*graph.Value // operands that are results of further Transposes, which join the region
	perms   [][]int64      // by result: the permutation that gives what the node gave
	// build applies the node to what plain returns for operands of the region.
	build func(b *op.Builder, plain func(*graph.Value) *graph.Value) []*graph.Value
}

// through returns how n can be crossed by a Transpose, nil if it cannot. An operand of n is in the region.
func (r *region) through(n *graph.Node) *crossing {
	d := op.Of(n)
	if d == nil || d.Facts&(op.Random|op.Training|op.Control) != 0 || graph.StdDomain(n.Domain) != "" || refers(n) || slices.Contains(n.Out, nil) {
		return nil
	}
	if d.Has(op.Elementwise) && len(n.Out) == 1 {
		return r.acrossElements(n, d)
	}
	x := n.Operand(0)
	if n.Is("Concat") {
		return r.acrossConcat(n)
	}
	perm := r.perm[x]
	if perm == nil || slices.ContainsFunc(n.In[1:], func(v *graph.Value) bool { return v != nil && r.perm[v] != nil }) {
		return nil
	}
	switch n.Op {
	case "Pad":
		return r.acrossPad(n, perm)
	case "Slice":
		return r.acrossSlice(n, perm)
	case "Split":
		return r.acrossSplit(n, perm)
	case "Squeeze", "Unsqueeze":
		return r.acrossOnes(n, perm)
	case "ReduceMax", "ReduceMin":
		return r.acrossReduce(n, perm)
	case "Gather":
		return r.acrossGather(n, perm)
	case "Reshape":
		return r.acrossReshape(n, perm)
	}
	return nil
}

// acrossElements is through for element-wise operators. Other operands must be transposed alike, have one element, or be
// small constants, which are transposed the other way.
func (r *region) acrossElements(n *graph.Node, d *op.Def) *crossing {
	y := n.Out[0].Type.Shape
	var perm []int64
	for _, v := range n.In {
		if v != nil && r.perm[v] != nil {
			if perm != nil && !slices.Equal(perm, r.perm[v]) {
				return nil
			}
			perm = r.perm[v]
		}
	}
	if perm == nil || y == nil || len(y) != len(perm) {
		return nil
	}
	t := &crossing{perms: [][]int64{perm}}
	constant := map[*graph.Value]bool{}
	for _, v := range n.In {
		switch {
		case v == nil || r.perm[v] != nil:
			if v != nil && !d.Has(op.Broadcasts) && !v.Type.Shape.Equal(y) {
				return nil
			}
		case single(v):
		case !d.Has(op.Broadcasts):
			return nil
		case joins(r, v, perm):
			t.entries = append(t.entries, v)
		case r.isConstant(v) && len(v.Type.Shape) <= len(perm) && smallOrSole(v):
			constant[v] = true
		default:
			return nil
		}
	}
	t.build = func(b *op.Builder, plain func(*graph.Value) *graph.Value) []*graph.Value {
		in := make([]*graph.Value, len(n.In))
		for i, v := range n.In {
			switch {
			case v == nil:
			case plain(v) != nil:
				in[i] = plain(v)
			case constant[v]:
				if k := len(perm) - len(v.Type.Shape); k > 0 {
					axes := make([]int64, k)
					for i := range axes {
						axes[i] = int64(i)
					}
					v = b.Unsqueeze(v, axes...)
				}
				in[i] = b.Transpose(v, inverse(perm)...)
			default:
				in[i] = v
			}
		}
		return values(b.Op(n.Op, in, n.Attrs...))
	}
	return t
}

// single reports whether v has one element.
func single(v *graph.Value) bool {
	n, ok := v.Type.Shape.Size().Int()
	return ok && n == 1
}

// joins reports whether v is the result of a Transpose by perm in the region's graph.
func joins(r *region, v *graph.Value, perm []int64) bool {
	return v.Def != nil && v.Def.Graph == r.g && v.Def.Is("Transpose") && !refers(v.Def) && v.Def.In[0] != nil && slices.Equal(permOf(v.Def), perm)
}

// smallOrSole reports whether a transposed copy of the constant v is not much more than v.
func smallOrSole(v *graph.Value) bool {
	b, ok := typeBytes(v.Type)
	return ok && (b <= inlineBytes || v.NumUses() == 1)
}

// acrossConcat wants all pieces to be transposed alike.
func (r *region) acrossConcat(n *graph.Node) *crossing {
	var perm []int64
	for _, v := range n.In {
		if v != nil && r.perm[v] != nil {
			perm = r.perm[v]
		}
	}
	t := &crossing{perms: [][]int64{perm}}
	for _, v := range n.In {
		switch {
		case v == nil:
			return nil
		case r.perm[v] != nil:
			if !slices.Equal(r.perm[v], perm) {
				return nil
			}
		case joins(r, v, perm):
			t.entries = append(t.entries, v)
		default:
			return nil
		}
	}
	axis := axisIn(n.Int("axis", 0), len(perm))
	if axis < 0 {
		return nil
	}
	t.build = func(b *op.Builder, plain func(*graph.Value) *graph.Value) []*graph.Value {
		in := make([]*graph.Value, len(n.In))
		for i, v := range n.In {
			in[i] = plain(v)
		}
		return values(b.Concat(perm[axis], in...))
	}
	return t
}

// axisIn counts an axis from the front, -1 if there is no such.
func axisIn(a int64, rank int) int {
	if a < 0 {
		a += int64(rank)
	}
	if a < 0 || a >= int64(rank) {
		return -1
	}
	return int(a)
}

// axesIn returns the elements of v, axes, counted from the front. Without v it returns those from 0 to count-1.
func (r *region) axesIn(v *graph.Value, rank, count int) []int {
	var out []int
	if v == nil {
		for i := range min(count, rank) {
			out = append(out, i)
		}
		return out
	}
	a := r.known(v)
	if a == nil || a.I64 == nil {
		return nil
	}
	for _, i := range a.I64 {
		k := axisIn(i, rank)
		if k < 0 {
			return nil
		}
		out = append(out, k)
	}
	return out
}

// acrossPad wants constant pads, whose order follows the axes.
func (r *region) acrossPad(n *graph.Node, perm []int64) *crossing {
	pads := r.known(n.Operand(1))
	if pads == nil || pads.I64 == nil {
		return nil
	}
	axes := r.axesIn(n.Operand(3), len(perm), len(perm))
	if len(axes)*2 != pads.Len() {
		return nil
	}
	all := make([]int64, 2*len(perm))
	for i, a := range axes {
		all[perm[a]], all[len(perm)+int(perm[a])] = pads.I64[i], pads.I64[len(axes)+i]
	}
	return &crossing{perms: [][]int64{perm}, build: func(b *op.Builder, plain func(*graph.Value) *graph.Value) []*graph.Value {
		in := values(plain(n.In[0]), b.Ints(all...))
		if v := n.Operand(2); v != nil {
			in = append(in, v)
		}
		return values(b.Op("Pad", in, n.Attrs...))
	}}
}

// acrossSlice wants constant axes; starts and ends stay.
func (r *region) acrossSlice(n *graph.Node, perm []int64) *crossing {
	count, ok := n.In[1].Type.Shape.Size().Int()
	if !ok {
		return nil
	}
	axes := r.axesIn(n.Operand(3), len(perm), int(min(count, int64(len(perm)))))
	if int64(len(axes)) != count {
		return nil
	}
	moved := make([]int64, len(axes))
	for i, a := range axes {
		moved[i] = perm[a]
	}
	return &crossing{perms: [][]int64{perm}, build: func(b *op.Builder, plain func(*graph.Value) *graph.Value) []*graph.Value {
		in := values(plain(n.In[0]), n.In[1], n.In[2], b.Ints(moved...))
		if v := n.Operand(4); v != nil {
			in = append(in, v)
		}
		return values(b.Op("Slice", in))
	}}
}

func (r *region) acrossSplit(n *graph.Node, perm []int64) *crossing {
	axis := axisIn(n.Int("axis", 0), len(perm))
	if axis < 0 {
		return nil
	}
	t := &crossing{perms: make([][]int64, len(n.Out))}
	for i := range t.perms {
		t.perms[i] = perm
	}
	t.build = func(b *op.Builder, plain func(*graph.Value) *graph.Value) []*graph.Value {
		in := slices.Clone(n.In)
		in[0] = plain(n.In[0])
		attrs := slices.DeleteFunc(slices.Clone(n.Attrs), func(a *graph.Attr) bool { return a.Name == "axis" })
		return b.Node("Split", in, len(n.Out), append(attrs, graph.IntAttr("axis", perm[axis]))...).Out
	}
	return t
}

// acrossOnes is through for Squeeze and Unsqueeze with constant axes.
func (r *region) acrossOnes(n *graph.Node, perm []int64) *crossing {
	if n.Operand(1) == nil {
		return nil
	}
	if n.Is("Squeeze") {
		axes := r.axesIn(n.In[1], len(perm), 0)
		if len(axes) == 0 {
			return nil
		}
		moved := make([]int64, len(axes))
		for i, a := range axes {
			moved[i] = perm[a]
		}
		return r.acrossLess(n, dropAxes(perm, axes), func(b *op.Builder, x *graph.Value) *graph.Value { return b.Squeeze(x, moved...) })
	}
	y := n.Out[0].Type.Shape
	axes := r.axesIn(n.In[1], len(y), 0)
	if len(axes) == 0 || len(y) != len(perm)+len(axes) {
		return nil
	}
	// New axes stay where they are; the others follow in the order that they have without the Transpose.
	var rest []int64
	for i := range y {
		if !slices.Contains(axes, i) {
			rest = append(rest, int64(i))
		}
	}
	out := make([]int64, len(y))
	at := 0
	for i := range y {
		if slices.Contains(axes, i) {
			out[i] = int64(i)
			continue
		}
		out[i] = rest[perm[at]]
		at++
	}
	list := make([]int64, len(axes))
	for i, a := range axes {
		list[i] = int64(a)
	}
	slices.Sort(list)
	return r.acrossLess(n, out, func(b *op.Builder, x *graph.Value) *graph.Value { return b.Unsqueeze(x, list...) })
}

// acrossLess is a crossing of a node with one operand that counts.
func (r *region) acrossLess(n *graph.Node, perm []int64, f func(b *op.Builder, x *graph.Value) *graph.Value) *crossing {
	return &crossing{perms: [][]int64{perm}, build: func(b *op.Builder, plain func(*graph.Value) *graph.Value) []*graph.Value {
		return values(f(b, plain(n.In[0])))
	}}
}

// dropAxes returns the permutation that is left if the given axes of the transposed value go.
func dropAxes(perm []int64, axes []int) []int64 {
	var left []int64
	for i, a := range perm {
		if !slices.Contains(axes, i) {
			left = append(left, a)
		}
	}
	ranks := slices.Sorted(slices.Values(left))
	for i, a := range left {
		left[i] = int64(slices.Index(ranks, a))
	}
	return left
}

// acrossReduce is for reductions that do not care about order.
func (r *region) acrossReduce(n *graph.Node, perm []int64) *crossing {
	axes := r.axesIn(n.Operand(1), len(perm), len(perm))
	if len(axes) == 0 || n.Operand(1) == nil && n.Int("noop_with_empty_axes", 0) != 0 {
		return nil
	}
	moved := make([]int64, len(axes))
	for i, a := range axes {
		moved[i] = perm[a]
	}
	slices.Sort(moved)
	out := perm
	if n.Int("keepdims", 1) == 0 {
		out = dropAxes(perm, axes)
	}
	return r.acrossLess(n, out, func(b *op.Builder, x *graph.Value) *graph.Value {
		return b.Op(n.Op, values(x, b.Ints(moved...)), n.Attrs...)
	})
}

// acrossGather replaces an axis by those of the index.
func (r *region) acrossGather(n *graph.Node, perm []int64) *crossing {
	axis := axisIn(n.Int("axis", 0), len(perm))
	s := n.In[1].Type.Shape
	if axis < 0 || s == nil {
		return nil
	}
	k, from := int64(len(s)), perm[axis]
	var out []int64
	for i, a := range perm {
		switch {
		case i == axis:
			for j := range k {
				out = append(out, from+j)
			}
		case a < from:
			out = append(out, a)
		default:
			out = append(out, a+k-1)
		}
	}
	return r.acrossLess(n, out, func(b *op.Builder, x *graph.Value) *graph.Value { return b.Gather(x, n.In[1], from) })
}

// acrossReshape is for a Reshape that takes axes apart or joins axes that are neighbours before the Transpose too.
func (r *region) acrossReshape(n *graph.Node, perm []int64) *crossing {
	s, t := n.In[0].Type.Shape, n.Out[0].Type.Shape
	if s == nil || t == nil || len(s) != len(perm) || r.known(n.Operand(1)) == nil {
		return nil
	}
	groups := matchAxes(s, t)
	if groups == nil {
		return nil
	}
	for _, g := range groups {
		for i := g.from + 1; i < g.to; i++ {
			if perm[i] != perm[i-1]+1 {
				return nil
			}
		}
	}
	slices.SortStableFunc(groups, func(a, b axisGroup) int { return int(perm[a.from] - perm[b.from]) })
	out := make([]int64, len(t))
	dims := make(graph.Shape, 0, len(t))
	for _, g := range groups {
		for j := g.first; j < g.last; j++ {
			out[j] = int64(len(dims))
			dims = append(dims, t[j])
		}
	}
	list := target(dims)
	if list == nil {
		return nil
	}
	return r.acrossLess(n, out, func(b *op.Builder, x *graph.Value) *graph.Value { return b.ReshapeTo(x, list...) })
}

// axisGroup is axes [from, to) of a shape that hold the same elements as axes [first, last) of another.
type axisGroup struct{ from, to, first, last int }

// matchAxes pairs the axes of two shapes of the same elements, as finely as can be told; nil if it cannot.
func matchAxes(s, t graph.Shape) []axisGroup {
	var out []axisGroup
	one := func(d graph.Dim) bool { n, ok := d.Int(); return ok && n == 1 }
	i, j := 0, 0
	for i < len(s) && j < len(t) {
		g := axisGroup{from: i, first: j}
		a, b := s[i], t[j]
		i, j = i+1, j+1
		for !a.Equal(b) {
			n, ok := a.Int()
			k, ok2 := b.Int()
			switch {
			case (ok && ok2 && n < k || ok && n == 1) && i < len(s):
				a = a.Mul(s[i])
				i++
			case (ok && ok2 && n > k || ok2 && k == 1) && j < len(t):
				b = b.Mul(t[j])
				j++
			default:
				return nil
			}
		}
		g.to, g.last = i, j
		out = append(out, g)
	}
	for ; i < len(s); i++ {
		if !one(s[i]) {
			return nil
		}
		out = append(out, axisGroup{i, i + 1, j, j})
	}
	for ; j < len(t); j++ {
		if !one(t[j]) || len(out) == 0 {
			return nil
		}
		out[len(out)-1].last = j + 1
	}
	return out
}
