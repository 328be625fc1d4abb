package fuse

import (
	"math"

	"gradtool/graph"
	"gradtool/graph/op"
)

// classesWay computes the tail in two Scans over groups of classes. The first finds each row's largest logit m and the sum s of
// e^(l - m), corrected whenever a larger one comes up (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018);
// the second computes the logits again and with them p = e^(l - m - log s). Each class is in one
// group, so its part of the weights' gradient is made once, in its place.
func (e *chunkEmitter) classesWay() {
	e.matrices()
	elem := e.logits.Type.Elem
	w := e.w
	if !e.turned {
		w = e.Transpose(w, 1, 0)
	}
	scanned := []*graph.Value{e.ReshapeTo(w, -1, e.size, e.depth)}
	if e.bias1 != nil {
		scanned = append(scanned, e.ReshapeTo(e.bias1, -1, e.size))
	}
	column := e.Concat(0, e.rowCount, e.Ints(1))
	// The lowest finite number: the difference of two infinities would be none.
	least := -math.MaxFloat32
	if elem == graph.Double {
		least = -math.MaxFloat64
	}
	stats := e.scan([]*graph.Value{e.Full(column, elem, least), e.Full(column, elem, 0)}, scanned, func(b *op.Builder, state, part []*graph.Value) (next, stack []*graph.Value) {
		l := e.logitsPart(b, part)
		m := b.Binary("Max", state[0], b.Op("ReduceMax", []*graph.Value{l, b.Ints(1)}, graph.IntAttr("keepdims", 1)))
		s := b.Mul(state[1], b.Unary("Exp", b.Sub(state[0], m)))
		s = b.Add(s, b.ReduceSum(b.Unary("Exp", b.Sub(l, m)), true, 1))
		return []*graph.Value{m, s}, nil
	})
	norm := e.Add(stats.Out[0], e.Unary("Log", stats.Out[1])) // logarithm of the sum of e^l
	labels := e.Cast(e.labels2, graph.Int64)
	labels = e.Where(e.Binary("Less", labels, e.Ints(0)), e.Add(labels, e.Ints(e.classes)), labels) // some count from the end

	var init []*graph.Value
	var picked, dx, dw, dbias *graph.Value
	if e.picks() {
		own := e.Gather(w, e.ReshapeTo(labels, -1), 0) // each row's label's weights
		picked = e.ReduceSum(e.Mul(e.x2, own), true, 1)
		if e.bias1 != nil {
			picked = e.Add(picked, e.Gather(e.bias1, labels, 0))
		}
		picked = e.Sub(picked, norm)
	}
	if e.dx != nil {
		init = append(init, e.Full(e.Concat(0, e.rowCount, e.Ints(e.depth)), elem, 0))
	}
	var starts []int64
	for k := int64(0); k < e.classes; k += e.size {
		starts = append(starts, k)
	}
	out := e.scan(init, append(scanned, e.Ints(starts...)), func(b *op.Builder, state, part []*graph.Value) (next, stack []*graph.Value) {
		g := b.Unary("Exp", b.Sub(e.logitsPart(b, part), norm))
		if e.scale2 != nil {
			g = b.Mul(g, e.scale2)
		}
		at := b.Sub(labels, part[len(part)-1])
		here := b.Binary("And", b.Binary("GreaterOrEqual", at, b.Ints(0)), b.Binary("Less", at, b.Ints(e.size)))
		g = b.Op("ScatterElements", []*graph.Value{g, b.Where(here, at, b.Ints(0)), b.Where(here, e.update2, b.Like(e.update2, 0))},
			graph.IntAttr("axis", 1), graph.StringAttr("reduction", "add"))
		if e.dx != nil {
			next = append(next, gemm(b, g, part[0], state[0], false, false))
		}
		if e.dw != nil {
			stack = append(stack, gemm(b, g, e.x2, nil, true, false))
		}
		if e.dbias != nil {
			stack = append(stack, b.ReduceSum(g, false, 0))
		}
		return next, stack
	}).Out
	if e.dx != nil {
		dx, out = out[0], out[1:]
	}
	if e.dw != nil {
		dw, out = e.ReshapeTo(out[0], e.classes, e.depth), out[1:]
		if !e.wantsTurned() {
			dw = e.Transpose(dw, 1, 0)
		}
	}
	if e.dbias != nil {
		dbias = e.ReshapeTo(out[0], e.classes)
	}
	e.settle(picked, dx, dw, dbias)
}

// logitsPart returns the logits of some classes, from their weights and biases.
func (e *chunkEmitter) logitsPart(b *op.Builder, part []*graph.Value) *graph.Value {
	var bias *graph.Value
	if e.bias1 != nil {
		bias = part[1]
	}
	return b.Cast(gemm(b, e.x2, part[0], bias, false, true), e.logits.Type.Elem)
}

// scan adds a Scan with carried states and the slices of the scanned values along their first axis.
func (e *chunkEmitter) scan(init, scanned []*graph.Value, body func(b *op.Builder, state, part []*graph.Value) (next, stack []*graph.Value)) *graph.Node {
	s := e.Inner("body")
	var state, part []*graph.Value
	for _, v := range init {
		state = append(state, s.Param("state", v.Type))
	}
	for _, v := range scanned {
		part = append(part, s.Param("part", graph.TensorOf(v.Type.Elem, v.Type.Shape[1:].Clone())))
	}
	next, stack := body(s, state, part)
	s.Return(append(next, stack...)...)
	if s.Err != nil && e.Err == nil {
		e.Err = s.Err
	}
	return e.Node("Scan", append(append([]*graph.Value{}, init...), scanned...), len(s.G.Outputs),
		graph.IntAttr("num_scan_inputs", int64(len(scanned))), graph.GraphAttr("body", s.G))
}
