package fuse

import (
	"errors"

	"gradtool/graph"
	"gradtool/graph/op"
)

// rewrite computes the tail in pieces.
func (t *tail) rewrite(info *op.Info, plan *chunkPlan) error {
	g := t.product.Graph
	b := op.NewBuilder(g, info)
	b.Before, b.Role, b.Prefix, b.From = t.anchor, graph.RoleLoss, "chunks", t.product.Name
	e := &chunkEmitter{tail: t, Builder: b, size: plan.size}
	var old []*graph.Node
	for _, v := range t.results() {
		old = append(old, v.Def)
	}
	shape := t.shapes(b)
	if plan.way == ByClasses {
		e.classesWay()
	} else {
		e.rowsWay()
	}
	if b.Err != nil {
		return b.Err
	}
	for i, n := range t.shaped {
		old = append(old, n)
		n.Out[0].TakeOver(shape[i])
	}
	removeDead(g, old)
	return nil
}

// results returns the values that readers outside have of the tail.
func (t *tail) results() []*graph.Value {
	var out []*graph.Value
	for _, v := range []*graph.Value{t.picked, t.dx, t.dbias} {
		if v != nil {
			out = append(out, v)
		}
	}
	if t.forward != nil {
		out = append(out, t.forward.Out[0])
	}
	if t.dw != nil {
		out = append(out, t.dw.v)
		if t.dw.turn != nil {
			out = append(out, t.dw.turn)
		}
	}
	return out
}

// shapes tells those who want to know the logits' shape from the labels'.
func (t *tail) shapes(b *op.Builder) []*graph.Value {
	var out []*graph.Value
	for _, n := range t.shaped {
		rank := int64(len(t.logits.Type.Shape))
		s := b.Concat(0, b.Slice(b.Shape(t.labels), b.Ints(0), b.Ints(rank-1), b.Ints(0), nil), b.Ints(t.classes))
		if n.Is("Size") {
			s = b.Op("ReduceProd", []*graph.Value{s}, graph.IntAttr("keepdims", 0))
		} else if n.HasAttr("start") || n.HasAttr("end") {
			s = b.Slice(s, b.Ints(n.Int("start", 0)), b.Ints(n.Int("end", rank)), b.Ints(0), nil)
		} else {
			s = b.Unary("Identity", s)
		}
		out = append(out, s)
	}
	return out
}

// removeDead removes those of the nodes that nothing reads, and what then is read no more.
func removeDead(g *graph.Graph, nodes []*graph.Node) {
	gone := map[*graph.Node]bool{}
	for len(nodes) > 0 {
		n := nodes[len(nodes)-1]
		nodes = nodes[:len(nodes)-1]
		if n == nil || gone[n] || n.Graph != g || used(n) {
			continue
		}
		gone[n] = true
		before := append(append([]*graph.Value{}, n.In...), n.Captures()...)
		g.Remove(n)
		for _, v := range before {
			if v != nil {
				nodes = append(nodes, v.Def)
			}
		}
	}
}

func used(n *graph.Node) bool {
	for _, v := range n.Out {
		if v != nil && v.NumUses() > 0 {
			return true
		}
	}
	return false
}

// chunkEmitter builds the nodes that compute a tail in pieces.
type chunkEmitter struct {
	*tail
	*op.Builder
	size int64

	rowCount *graph.Value // int64 vector of one element
	x2       *graph.Value // x as a matrix
	labels2  *graph.Value // [rows, 1], as are the following
	update2  *graph.Value
	scale2   *graph.Value // or a scalar; nil: 1
	bias1    *graph.Value // vector; nil without one
}

// matrices brings the operands into the form of matrices.
func (e *chunkEmitter) matrices() {
	flat := func(v *graph.Value, columns int64) *graph.Value {
		if v == nil || len(v.Type.Shape) == 2 {
			return v
		}
		return e.ReshapeTo(v, -1, columns)
	}
	e.x2 = flat(e.x, e.depth)
	e.labels2, e.update2 = flat(e.labels, 1), flat(e.update, 1)
	if e.scale2 = e.scale; e.scale != nil && len(e.scale.Type.Shape) > 0 {
		e.scale2 = flat(e.scale, 1)
	}
	if e.bias1 = e.bias; e.bias != nil && len(e.bias.Type.Shape) != 1 {
		e.bias1 = e.ReshapeTo(e.bias, e.classes)
	}
	e.rowCount = e.DimOf(e.x2, 0)
}

// gemm returns a' b' + c, where ' transposes or not.
func gemm(b *op.Builder, x, y, c *graph.Value, ta, tb bool) *graph.Value {
	var attrs []*graph.Attr
	if ta {
		attrs = append(attrs, graph.IntAttr("transA", 1))
	}
	if tb {
		attrs = append(attrs, graph.IntAttr("transB", 1))
	}
	return b.Op("Gemm", []*graph.Value{x, y, c}, attrs...)
}

// settle lets the results of the tail be those that the pieces give: picked and dx by row, dw and dbias whole.
func (e *chunkEmitter) settle(picked, dx, dw, dbias *graph.Value) {
	if e.picked != nil {
		e.picked.TakeOver(e.fresh(e.ReshapeLike(picked, e.labels), picked))
	}
	if e.forward != nil {
		e.forward.Out[0].TakeOver(e.lossOf(e.ReshapeTo(picked, -1)))
	}
	if e.dx != nil {
		if len(e.dx.Type.Shape) != 2 {
			e.dx.TakeOver(e.fresh(e.ReshapeLike(dx, e.x), dx))
		} else {
			e.dx.TakeOver(e.fresh(dx, nil))
		}
	}
	if e.dbias != nil {
		e.dbias.TakeOver(e.fresh(dbias, nil))
	}
	if e.dw != nil {
		old := e.dw.v
		if e.dw.turn != nil {
			old = e.dw.turn
		}
		old.TakeOver(e.fresh(dw, nil))
	}
}

// picks reports whether the logarithms of p at the labels are wanted.
func (e *chunkEmitter) picks() bool { return e.picked != nil || e.forward != nil }

// lossOf returns what the forward node computes, from the logarithms of p at the labels.
func (e *chunkEmitter) lossOf(picked *graph.Value) *graph.Value {
	n := e.forward
	labels, elem := n.In[1], picked.Type.Elem
	sum := elem
	if sum.Bits() < 32 {
		sum = graph.Float
	}
	loss := e.Neg(picked)
	var counts *graph.Value
	if n.HasAttr("ignore_index") {
		ignored := e.Binary("Equal", labels, e.Like(labels, float64(n.Int("ignore_index", 0))))
		loss = e.Where(ignored, e.Like(loss, 0), loss)
		counts = e.ReduceAll(e.Cast(e.Unary("Not", ignored), sum))
	} else {
		counts = e.Cast(e.Unary("Size", labels), sum)
	}
	reduction := n.Str("reduction", "mean")
	if reduction == "none" {
		return loss
	}
	loss = e.ReduceAll(e.Cast(loss, sum))
	if reduction == "mean" {
		loss = e.Div(loss, counts)
	}
	return e.Cast(loss, elem)
}

// fresh returns v, or a copy where v is old or cannot be renamed because the pieces' own nodes read it.
func (e *chunkEmitter) fresh(v, old *graph.Value) *graph.Value {
	if v == old || v.NumUses() > 0 || v.Def == nil {
		return e.Unary("Identity", v)
	}
	return v
}

// wantsTurned reports whether the gradient of the weights is wanted as [classes, depth].
func (e *chunkEmitter) wantsTurned() bool { return e.dw.turned != (e.dw.turn != nil) }

// narrow reports whether the weights' type is too short for sums of many pieces.
func (e *chunkEmitter) narrow() bool { return e.w.Type.Elem.Bits() < 32 }

// divisible returns why the classes cannot be divided, nil if they can.
func (t *tail) divisible() error {
	if t.w.Type.Elem.Bits() < 32 || t.logits.Type.Elem != t.w.Type.Elem {
		return errors.New("sums over classes need more than 16 bits")
	}
	return nil
}
