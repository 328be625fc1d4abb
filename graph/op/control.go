package op

import (
	"errors"

	"gradtool/graph"
)

func controlDefs() []Def {
	return []Def{
		{Name: "If", Facts: Control, Infer: inferIf, Eval: evalIf, Cost: costIf, Samples: ifSamples()},
		{Name: "Loop", Facts: Control | DataDependent, Infer: inferLoop, Eval: evalLoop, Cost: costLoop, Samples: loopSamples()},
		{Name: "Scan", Facts: Control, Infer: inferScan, Eval: evalScan, Cost: costScan, Samples: scanSamples()},
		{Name: "SequenceMap", Facts: Control | DataDependent, Infer: inferSequenceMap, Eval: evalSequenceMap,
			Decompose: decomposeSequenceMap, Samples: sequenceMapSamples()},
	}
}

// inferIf gives each result what both branches' outputs have in common; of a known condition the branch
// taken counts alone. Problems in a branch are problems of the node only if the branch is sure to run.
func inferIf(c *InferCtx) error {
	then, els := c.Node.Subgraph("then_branch"), c.Node.Subgraph("else_branch")
	if then == nil || els == nil {
		return c.Errorf("then_branch and else_branch must both be given")
	}
	for _, g := range []*graph.Graph{then, els} {
		if len(g.Inputs) != 0 {
			return c.Errorf("branch %q has %d inputs, want none", g.Name, len(g.Inputs))
		}
		if len(c.Node.Out) > len(g.Outputs) {
			return c.Errorf("branch %q has %d outputs for %d results", g.Name, len(g.Outputs), len(c.Node.Out))
		}
	}
	errThen, errElse := errors.Join(c.Info.graph(then)...), errors.Join(c.Info.graph(els)...)
	if taken, ok := c.flag(0); ok {
		g, err := els, errElse
		if taken {
			g, err = then, errThen
		}
		for i := range c.Node.Out {
			c.forward(i, g.Outputs[i])
		}
		return err
	}
	for i := range c.Node.Out {
		t, err := joinTypes(then.Outputs[i].Type, els.Outputs[i].Type)
		if err != nil {
			return c.Errorf("output %d of the branches: %w", i, err)
		}
		c.SetType(i, t)
	}
	return nil
}

// forward makes result i of the type and known value of v.
func (c *InferCtx) forward(i int, v *graph.Value) {
	c.SetType(i, v.Type)
	if d, ok := c.Info.dims[v]; ok {
		c.SetDims(i, d)
	}
	if n, ok := c.Info.lens[v]; ok {
		c.setLen(i, n)
	}
	if a := c.Info.Const(v); a != nil && i < len(c.Node.Out) && c.Node.Out[i] != nil {
		c.Info.consts[c.Node.Out[i]] = a
	}
}

// flag returns the value of bool operand i if it is known.
func (c *InferCtx) flag(i int) (value, ok bool) {
	if v := c.Node.Operand(i); v != nil {
		return c.Info.flag(v)
	}
	return false, false
}

// flag returns the value of v, a bool of one element, if it is known.
func (in *Info) flag(v *graph.Value) (value, ok bool) {
	a := in.Const(v)
	if a == nil || len(a.I64) != 1 {
		return false, false
	}
	return a.I64[0] != 0, true
}

// inferLoop types the body with what the loop carries from one iteration to the next, and the results: those carried
// and, behind them, one tensor per remaining body output that stacks its values along a new first axis.
func inferLoop(c *InferCtx) error {
	n, body := c.Node, c.Node.Subgraph("body")
	if body == nil {
		return c.Errorf("body must be given")
	}
	carried := max(len(n.In)-2, 0)
	if len(body.Inputs) != 2+carried {
		return c.Errorf("the body has %d inputs, want %d: iteration number, condition and %d carried values", len(body.Inputs), 2+carried, carried)
	}
	if len(body.Outputs) < 1+carried || len(n.Out) > len(body.Outputs)-1 {
		return c.Errorf("the body has %d outputs for %d carried values and %d results", len(body.Outputs), carried, len(n.Out))
	}
	l := &bodyInfer{c: c, body: body, inAt: 2, outAt: 1, init: n.In[min(2, len(n.In)):]}
	l.prepare = func() {
		l.input(0, scalarLike(body.Inputs[0], graph.Int64))
		l.input(1, scalarLike(body.Inputs[1], graph.Bool))
		// Whenever the body runs the condition holds.
		c.Info.consts[body.Inputs[1]] = &Array{Elem: graph.Bool, Shape: []int{}, I64: []int64{1}, Kind: graph.KindTensor}
	}
	types, bodyErr, err := l.run()
	if err != nil {
		return err
	}
	trips := LoopTrips(c.Info, n)
	for k := range types {
		c.SetType(k, types[k])
		if l.invariant(k) {
			c.forwardValue(k, n.In[2+k])
		}
	}
	for i := carried; i < len(n.Out); i++ {
		t, err := stackedType(body.Outputs[1+i].Type, 0, trips)
		if err != nil {
			return c.Errorf("output %d of the body: %w", 1+i, err)
		}
		c.SetType(i, t)
	}
	if t, ok := trips.Int(); ok && t > 0 {
		return bodyErr
	}
	return nil
}

// forwardValue is forward without the type.
func (c *InferCtx) forwardValue(i int, v *graph.Value) {
	t := c.types[i]
	c.forward(i, v)
	c.types[i] = t
}

// LoopTrips returns how often the body of the inferred Loop n runs where that is sure before it runs: its trip
// count, if the condition is never false. Else it is unknown.
func LoopTrips(in *Info, n *graph.Node) graph.Dim {
	body := n.Subgraph("body")
	m, cond := n.Operand(0), n.Operand(1)
	if cond != nil {
		if v, ok := in.flag(cond); ok && !v {
			return graph.Known(0)
		} else if !ok {
			return graph.Unknown()
		}
	}
	if m == nil {
		return graph.Unknown()
	}
	d := in.Dims(m)
	if len(d) != 1 {
		return graph.Unknown()
	}
	count := d[0].Max(graph.Known(0))
	if t, ok := count.Int(); ok && t <= 1 {
		return count // nobody asks for the condition of a second iteration
	}
	if v, ok := in.flag(body.Outputs[0]); !ok || !v {
		return graph.Unknown()
	}
	if t, ok := count.Int(); ok && t > maxTrips {
		return graph.Unknown()
	}
	return count
}

// maxTrips bounds the trip counts taken for a size: exporters write the largest integer for "no limit".
const maxTrips = 1 << 40

// scalarLike is the type of a scalar of the given element type, unless v is declared to be a vector of one element, as
// old exporters do.
func scalarLike(v *graph.Value, elem graph.DataType) graph.Type {
	if v.Type.IsTensor() && len(v.Type.Shape) == 1 {
		return graph.TensorOf(elem, graph.ShapeOf(1))
	}
	return graph.TensorOf(elem, graph.ShapeOf())
}

// stackedType is the type of count tensors of type t stacked along a new axis.
func stackedType(t graph.Type, axis int64, count graph.Dim) (graph.Type, error) {
	if t.Kind == graph.KindUnknown {
		return t, nil
	}
	if !t.IsTensor() {
		return t, errors.New("what a loop collects must be a tensor, got " + t.String())
	}
	if t.Shape == nil {
		return graph.TensorOf(t.Elem, nil), nil
	}
	a, err := normAxis(axis, len(t.Shape)+1)
	if err != nil {
		return t, err
	}
	s := append(graph.Shape{}, t.Shape[:a]...)
	s = append(append(s, count), t.Shape[a:]...)
	return graph.TensorOf(t.Elem, s), nil
}
