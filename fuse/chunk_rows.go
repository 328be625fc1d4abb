package fuse

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// rowsWay computes the tail in a Loop over groups of rows, of which the last one is filled up with rows of zeros that count
// nothing. The gradients of weights and bias are carried; what belongs to a row is stacked.
func (e *chunkEmitter) rowsWay() {
	e.matrices()
	rows, known := e.rows.Int()
	whole := known && rows > 0 && rows%e.size == 0
	var pieces, pads *graph.Value
	if whole {
		pieces = e.Ints(rows / e.size)
	} else {
		// There is at least one piece, so that the sums have their shapes.
		pieces = e.Binary("Max", e.Div(e.Add(e.rowCount, e.Ints(e.size-1)), e.Ints(e.size)), e.Ints(1))
		lack := e.Sub(e.Mul(pieces, e.Ints(e.size)), e.rowCount)
		pads = e.Concat(0, e.Ints(0, 0), lack, e.Ints(0))
	}
	stack := func(v *graph.Value, columns int64) *graph.Value {
		if v == nil || len(v.Type.Shape) != 2 {
			return v
		}
		if pads != nil {
			v = e.Op("Pad", []*graph.Value{v, pads})
		}
		return e.ReshapeTo(v, -1, e.size, columns)
	}
	x, labels, update, scale := stack(e.x2, e.depth), stack(e.labels2, 1), stack(e.update2, 1), stack(e.scale2, 1)

	// The sum of the weights' gradient starts as one zero that is broadcast: a tensor of zeros would live as long as the loop.
	var init []*graph.Value
	var types []graph.Type
	sum := e.w.Type.Elem
	if e.narrow() {
		sum = graph.Float
	}
	if e.dw != nil {
		init = append(init, e.Full(e.Ints(1, 1), sum, 0))
		types = append(types, graph.TensorOf(sum, graph.UnknownShape(2)))
	}
	if e.dbias != nil {
		init = append(init, e.Full(e.Ints(e.classes), sum, 0))
		types = append(types, graph.TensorOf(sum, graph.ShapeOf(e.classes)))
	}
	// The condition could be omitted, but not every runtime knows that.
	loop := e.Loop(e.ReshapeTo(pieces), e.True(), init, types, func(b *op.Builder, i *graph.Value, state []*graph.Value) op.LoopBody {
		piece := func(v *graph.Value) *graph.Value {
			if v == nil || len(v.Type.Shape) == 0 {
				return v
			}
			return b.Gather(v, i, 0)
		}
		var real *graph.Value
		if !whole {
			at := make([]int64, e.size)
			for k := range at {
				at[k] = int64(k)
			}
			first := b.Mul(i, b.IntScalar(e.size))
			real = b.Binary("Less", b.Add(b.ReshapeTo(b.Ints(at...), -1, 1), first), e.rowCount)
		}
		return e.rowsPiece(b, piece(x), piece(labels), piece(update), piece(scale), real, state)
	})
	out := loop.Out
	var dw, dbias, picked, dx *graph.Value
	take := func(want bool) *graph.Value {
		if !want {
			return nil
		}
		v := out[0]
		out = out[1:]
		return v
	}
	dw, dbias = take(e.dw != nil), take(e.dbias != nil)
	byRow := func(v *graph.Value, columns int64) *graph.Value {
		if v == nil {
			return nil
		}
		v = e.ReshapeTo(v, -1, columns)
		if whole {
			return v
		}
		return e.Slice(v, e.Ints(0), e.rowCount, e.Ints(0), nil)
	}
	picked, dx = byRow(take(e.picks()), 1), byRow(take(e.dx != nil), e.depth)
	if dw != nil {
		dw = e.Cast(dw, e.w.Type.Elem)
	}
	if dbias != nil {
		dbias = e.Cast(dbias, e.dbias.Type.Elem)
	}
	e.settle(picked, dx, dw, dbias)
}

// rowsPiece computes the tail of some rows: the sums with what they add to them, and the rows' own results. Rows for which real is
// false add nothing, whatever their probabilities are; nil stands for true.
func (e *chunkEmitter) rowsPiece(b *op.Builder, x, labels, update, scale, real *graph.Value, state []*graph.Value) op.LoopBody {
	var r op.LoopBody
	l := b.Cast(gemm(b, x, e.w, e.bias1, false, e.turned), e.logits.Type.Elem)
	var p *graph.Value
	if e.picks() {
		logp := b.Unary("LogSoftmax", l, graph.IntAttr("axis", 1))
		r.Stack = append(r.Stack, b.Binary("GatherElements", logp, labels, graph.IntAttr("axis", 1)))
		p = b.Unary("Exp", logp)
	} else {
		p = b.Unary("Softmax", l, graph.IntAttr("axis", 1))
	}
	p = b.Cast(p, update.Type.Elem)
	if scale != nil {
		p = b.Mul(p, scale)
	}
	g := b.Op("ScatterElements", []*graph.Value{p, labels, update}, graph.IntAttr("axis", 1), graph.StringAttr("reduction", "add"))
	if real != nil {
		g = b.Where(real, g, b.Like(g, 0))
	}
	wide := g
	g = b.Cast(g, e.w.Type.Elem)
	if e.dw != nil {
		left, right := x, g
		if e.wantsTurned() {
			left, right = g, x
		}
		if e.narrow() {
			r.Next = append(r.Next, b.Add(state[0], b.Cast(gemm(b, left, right, nil, true, false), graph.Float)))
		} else {
			r.Next = append(r.Next, gemm(b, left, right, state[0], true, false))
		}
		state = state[1:]
	}
	if e.dbias != nil {
		r.Next = append(r.Next, b.Add(state[0], b.ReduceSum(b.Cast(wide, state[0].Type.Elem), false, 0)))
	}
	if e.dx != nil {
		r.Stack = append(r.Stack, gemm(b, g, e.w, nil, false, !e.turned))
	}
	return r
}
