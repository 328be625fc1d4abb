package autodiff

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// segment splits the Loops on the path, as the plan says, into a Loop over segments around a Loop over the iterations of
// one. The reverse form of the outer Loop then keeps what is carried into each segment and, inside it, runs the inner Loop
// again. It reports whether there were any.
func (r *reverse) segment() bool {
	var loops []*graph.Node
	var lengths []int64
	for _, n := range r.nodes() {
		if every := r.segmentLength(n); every > 0 {
			loops, lengths = append(loops, n), append(lengths, every)
		}
	}
	for i, n := range loops {
		r.b.ReplaceBy(n, func(b *op.Builder, n *graph.Node) []*graph.Value { return splitLoop(b, n, lengths[i]) })
	}
	return len(loops) > 0
}

// segmentLength returns the number of iterations of a segment of n, 0 if n is not to be split.
func (r *reverse) segmentLength(n *graph.Node) int64 {
	if !n.Is("Loop") || n.Meta.Get(graph.MetaLoop) != "" || !r.onPath(n) || isRandom(n) {
		return 0
	}
	if r.plan.Every > 0 || !r.plan.Auto {
		return int64(r.plan.Every)
	}
	bytes := graph.Known(0)
	for k, v := range n.Subgraph("body").Inputs[2:] {
		if f := r.inside[n]; v.Type.IsTensor() && len(f) == 1 && f[0].r.active[v] && f[0].g.Outputs[1+k] != v {
			if size := byteSize(v.Type); !size.IsUnknown() {
				bytes = bytes.Add(size)
			}
		}
	}
	return autoSegment(op.LoopTrips(r.b.Info, n), bytes)
}

// splitLoop returns n's results from a Loop over segments of n's iterations, of every iterations each except the last. n
// loses its body to the Loop inside. The outer Loop carries n's values and, in sequences, the stacks that a segment gives.
func splitLoop(b *op.Builder, n *graph.Node, every int64) []*graph.Value {
	body, carried := n.Subgraph("body"), len(n.In)-2
	stacks := len(body.Outputs) - 1 - carried
	n.DeleteAttr("body")
	limit, cond := n.In[0], n.Operand(1)
	if cond != nil && (cond.Type.Shape == nil || len(cond.Type.Shape) > 0) {
		cond = b.Reshape(cond, b.Ints())
	}
	var segments *graph.Value
	if limit != nil {
		limit = b.Reshape(b.Cast(limit, graph.Int64), b.Ints())
		one := b.IntScalar(1)
		count := b.Add(b.Div(b.Sub(limit, one), b.IntScalar(every)), one)
		segments = b.Where(b.Binary("Less", limit, one), b.IntScalar(0), count)
	}
	init, types := append([]*graph.Value{}, n.In[2:]...), []graph.Type{}
	for k := range carried {
		types = append(types, body.Inputs[2+k].Type)
	}
	for j := range stacks {
		t := body.Outputs[1+carried+j].Type
		t.Elem = listElem(t.Elem)
		init = append(init, b.Op("SequenceEmpty", nil, graph.IntAttr("dtype", int64(t.Elem))))
		if t.Shape != nil {
			t.Shape = append(graph.Shape{graph.Unknown()}, t.Shape...)
		}
		types = append(types, graph.SequenceOf(t))
	}
	outer := b.Loop(segments, cond, init, types, func(b *op.Builder, s *graph.Value, state []*graph.Value) op.LoopBody {
		base := b.Mul(s, b.IntScalar(every))
		m := b.IntScalar(every)
		if limit != nil {
			m = b.Op("Min", []*graph.Value{m, b.Sub(limit, base)})
		}
		shiftIteration(b, body, base)
		scalarCondition(b, body)
		carryCondition(b, body, carried)
		going := b.G.Inputs[1]
		in := append([]*graph.Value{m, going}, state[:carried]...)
		inner := b.Node("Loop", append(in, going), len(body.Outputs)-1, graph.GraphAttr("body", body))
		inner.Meta.Set(graph.MetaLoop, graph.LoopInner)
		next := append([]*graph.Value{}, inner.Out[:carried]...)
		for j := range stacks {
			part := inner.Out[carried+1+j]
			next = append(next, b.Op("SequenceInsert", []*graph.Value{state[carried+j], b.Cast(part, listElem(part.Type.Elem))}))
		}
		return op.LoopBody{Cond: inner.Out[carried], Next: next}
	})
	outer.Meta.Set(graph.MetaLoop, graph.LoopOuter)
	results := append([]*graph.Value{}, outer.Out[:carried]...)
	for j := range stacks {
		results = append(results, joinSegments(b, outer.Out[carried+j], body.Outputs[2+carried+j].Type))
	}
	return results
}

// shiftIteration adds base to the iteration number that the nodes of a Loop's body read.
func shiftIteration(b *op.Builder, body *graph.Graph, base *graph.Value) {
	i := body.Inputs[0]
	if i.NumUses() == 0 {
		return
	}
	in := b.For(body)
	if len(body.Nodes) > 0 {
		in.Before = body.Nodes[0]
	}
	shifted := in.Unary("Identity", base) // stands for the sum until its operands are in place
	i.ReplaceUses(shifted)
	shifted.Def.Op = "Add"
	shifted.Def.SetIn(0, i)
	shifted.Def.SetIn(1, base)
	shifted.Type = graph.Type{}
	if err := b.Info.Node(shifted.Def); err != nil && b.Err == nil {
		b.Err = err
	}
}

// scalarCondition makes the condition that a Loop's body takes a scalar where it is a vector of one element: ONNX Runtime
// wants it to be of the operand's shape.
func scalarCondition(b *op.Builder, body *graph.Graph) {
	old := body.Inputs[1]
	if len(old.Type.Shape) == 0 {
		return
	}
	body.Inputs[1] = body.AddInput(body.Model.Fresh("going"), graph.TensorOf(graph.Bool, graph.ShapeOf()))
	body.Inputs = body.Inputs[:len(body.Inputs)-1]
	in := b.For(body)
	if len(body.Nodes) > 0 {
		in.Before = body.Nodes[0]
	}
	old.ReplaceUses(in.Unsqueeze(body.Inputs[1], 0))
}

// carryCondition makes the body of a Loop carry its condition out as a scalar, behind the given number of carried values.
func carryCondition(b *op.Builder, body *graph.Graph, carried int) {
	body.AddInput(body.Model.Fresh("going"), graph.TensorOf(graph.Bool, graph.ShapeOf()))
	in := b.For(body)
	cond := body.Outputs[0]
	if len(cond.Type.Shape) == 0 && cond.Type.Shape != nil {
		cond = in.Unary("Identity", cond)
	} else {
		cond = in.Reshape(cond, in.Ints())
	}
	body.SetOutputs(slices.Insert(slices.Clone(body.Outputs), 1+carried, cond)...)
}

// joinSegments returns the stack of all iterations, given the sequence of those of the segments and the type of what is
// stacked. Without any segment the stack is empty.
func joinSegments(b *op.Builder, s *graph.Value, t graph.Type) *graph.Value {
	some := b.Binary("Greater", b.Op("SequenceLength", []*graph.Value{s}), b.IntScalar(0))
	elem := listElem(t.Elem)
	joined := b.If(some, func(b *op.Builder) []*graph.Value {
		return []*graph.Value{b.Unary("ConcatFromSequence", s, graph.IntAttr("axis", 0))}
	}, func(b *op.Builder) []*graph.Value {
		shape := make([]int64, 1+len(t.Shape))
		for i, d := range t.Shape {
			if n, ok := d.Int(); ok {
				shape[i+1] = n
			}
		}
		return []*graph.Value{b.Full(b.Ints(shape...), elem, 0)}
	})[0]
	return b.Cast(joined, t.Elem)
}
