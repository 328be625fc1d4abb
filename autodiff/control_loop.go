package autodiff

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// loop is a Loop being differentiated: x' = f(i, x), s_i = h(i, x), from i = 0 on, T times. The reverse Loop runs from the
// last iteration to the first. It carries the cotangents of x, which become those of the operands, and sums of those of
// captured values; iteration i adds to them what the cotangents of x' and s_i give. What it needs of the forward
// iteration comes from stacks (see [LoopPlan]) or is computed again from them.
type loop struct {
	*inner
	flow    *flow
	n       *graph.Node
	ct      []*graph.Value // of n's results, as they were numbered at first
	carried int            // values that the Loop carried at first
	last    *graph.Value   // T - 1, a scalar
	j       *graph.Value   // number of the forward iteration, in the reverse body
	rows    []*rowRead
	jIn     *op.Builder // in which jEarly, the same number, stands
	jEarly  *graph.Value
	again   *graph.Node    // runs the iterations before j again
	before  *op.Builder    // emits in front of the forward Loop
	kept    []*graph.Value // what an iteration keeps
}

// loopVJP differentiates a Loop. See [loop].
func loopVJP(c *Ctx) []*graph.Value {
	l := c.newLoop()
	return l.reverse()
}

func (c *Ctx) newLoop() *loop {
	n := c.Node
	l := &loop{inner: c.inner(n.Subgraph("body"), "reverse"), n: n, ct: slices.Clone(c.ct), carried: max(len(n.In)-2, 0)}
	l.inner.residual = l.residual
	l.before = op.NewBuilder(n.Graph, c.Info)
	l.before.Before, l.before.Role, l.before.From, l.before.Prefix = n, graph.RoleForward, c.From, c.Prefix
	l.flow = c.rev.flows(n)[0]
	l.flow.useResults(func(i int) bool { return i < len(l.ct) && l.ct[i] != nil })
	return l
}

func (l *loop) input(k int) *graph.Value  { return l.g.Inputs[2+k] }
func (l *loop) output(k int) *graph.Value { return l.g.Outputs[1+k] }

// state is a value that the reverse Loop carries.
type state struct {
	at   int // index among the operands of the forward Loop and its captured values
	init *graph.Value
}

// reverse emits the reverse Loop and returns the cotangents of the operands and captured values.
func (l *loop) reverse() []*graph.Value {
	c, n, b := l.c, l.n, l.b
	captures, operandsBefore := n.Captures(), len(n.In)
	i := b.Param("i", graph.TensorOf(graph.Int64, graph.ShapeOf()))
	going := b.Param("going", graph.TensorOf(graph.Bool, graph.ShapeOf()))
	trips := l.trips()
	l.last = c.Sub(trips, c.IntScalar(1))
	l.j = b.Sub(l.last, i)

	var seeds []Seed
	var wrt []*graph.Value
	var states []state
	for k := range l.carried {
		if !l.flow.stateful(k) {
			continue
		}
		y := c.Want(k)
		init := l.ct[k]
		if init == nil {
			init = zeros(c.Builder, y)
		}
		states = append(states, state{at: 2 + k, init: init})
		d := b.Param("cotangent", cotangentType(y.Type))
		seeds = append(seeds, Seed{l.output(k), d})
		wrt = append(wrt, l.input(k))
	}
	for k := l.carried; k < len(l.ct); k++ {
		if g := l.ct[k]; g != nil {
			seeds = append(seeds, Seed{l.output(k), b.Gather(g, l.j, 0)})
		}
	}
	l.rows = l.rowReads(captures)
	for i, v := range captures {
		if c.Need(operandsBefore + i) {
			if r := l.rowRead(v); r != nil {
				wrt = append(wrt, r.results()...)
			} else {
				wrt = append(wrt, v)
			}
		}
	}
	if err := l.run(seeds, wrt); err != nil {
		c.Err = err
		return nil
	}
	outs := []*graph.Value{b.Unary("Identity", going)}
	for s := range states {
		outs = append(outs, l.cotangent(l.g.Inputs[states[s].at]))
	}
	for i, v := range captures {
		if g := l.cts[v]; g != nil && c.Need(operandsBefore+i) && l.rowRead(v) == nil {
			states = append(states, state{at: operandsBefore + i, init: zeros(c.Builder, v)})
			acc := b.Param("sum", cotangentType(v.Type))
			outs = append(outs, sum(b, acc, g))
		}
	}
	for _, r := range l.rows {
		outs = append(outs, r.stacks(l)...)
	}
	l.finish(outs...)
	if err := c.Info.Node(n); err != nil && c.Err == nil {
		c.Err = err
	}
	if l.plan.Record != nil && n.Meta.Get(graph.MetaLoop) == "" {
		*l.plan.Record = append(*l.plan.Record, l.use())
	}
	if len(outs) == 1 {
		return nil
	}
	var inits []*graph.Value
	for _, s := range states {
		inits = append(inits, s.init)
	}
	back := c.LoopOver(b.G, trips, nil, inits)
	if kind := n.Meta.Get(graph.MetaLoop); kind != "" { // not to be split again either
		back.Meta.Set(graph.MetaLoop, kind)
	}
	cts := make([]*graph.Value, operandsBefore+len(captures))
	for i, s := range states {
		cts[s.at] = back.Out[i]
	}
	at := len(states)
	for _, r := range l.rows {
		cts[operandsBefore+slices.Index(captures, r.x)], at = r.cotangent(c, back.Out, at)
	}
	return cts
}

// cotangentType is the type of cotangents of values of type t.
func cotangentType(t graph.Type) graph.Type {
	if t.Kind == graph.KindOptional && t.Inner != nil {
		return *t.Inner
	}
	return t
}

// trips returns T as an int64 scalar: known beforehand, or counted by stacking the iteration numbers.
func (l *loop) trips() *graph.Value {
	c, n := l.c, l.n
	t := op.LoopTrips(c.Info, n)
	if k, ok := t.Int(); ok {
		return c.IntScalar(k)
	}
	if !t.IsUnknown() {
		m := c.Reshape(c.Cast(n.In[0], graph.Int64), c.Ints())
		return c.Op("Max", []*graph.Value{m, c.IntScalar(0)})
	}
	return c.Squeeze(c.DimOf(l.stack(l.g.Inputs[0]), 0), 0)
}

// stack makes the Loop stack v, a tensor in its body, and returns the stack.
func (l *loop) stack(v *graph.Value) *graph.Value {
	c := l.c
	l.kept = append(l.kept, v)
	addOutput(forward(c, l.g), v)
	y := l.n.DefineOut(len(l.g.Outputs)-2, c.G.Model.Fresh(v.Name+"_stack"))
	c.rev.added = append(c.rev.added, y)
	y.Type = graph.TensorOf(v.Type.Elem, nil)
	if s := v.Type.Shape; s != nil {
		y.Type.Shape = append(graph.Shape{op.LoopTrips(c.Info, l.n)}, s...)
	}
	return y
}

// number returns j for use in front of the reverse body.
func (l *loop) number() *graph.Value {
	if l.early != l.jIn {
		l.jIn, l.jEarly = l.early, l.early.Sub(l.last, l.b.G.Inputs[0])
	}
	return l.jEarly
}

// residual returns the value of v in forward iteration j. Inputs of the body are always found; a node's result only
// where the plan is to keep it and its shape is the same in every iteration, or where it is random.
func (l *loop) residual(v *graph.Value) *graph.Value {
	b, k, recompute := l.early, slices.Index(l.g.Inputs, v), l.plan.Recompute || l.n.Meta.Get(graph.MetaLoop) == graph.LoopOuter
	switch {
	case k == 0:
		return l.shaped(l.number(), v)
	case k == 1: // an iteration runs only if it holds
		return l.shaped(b.True(), v)
	case k >= 2 && l.output(k-2) == v:
		return l.n.In[k] // never changes
	case k >= 2 && (l.plan.Recompute || !v.Type.IsTensor()) && !isRandom(l.n):
		return l.prefix(k - 2)
	case !v.Type.IsTensor(), k < 0 && recompute && !isRandom(v.Def):
		return nil
	case constantShape(l.n, v):
		return b.Gather(l.stack(v), l.number(), 0)
	case k >= 2 || isRandom(v.Def):
		return b.Cast(b.Op("SequenceAt", []*graph.Value{l.collect(v), l.number()}), v.Type.Elem)
	}
	return nil
}

// shaped returns the scalar x as a vector of one element if v is declared so.
func (l *loop) shaped(x, v *graph.Value) *graph.Value {
	if len(v.Type.Shape) == 1 {
		return l.early.Unsqueeze(x, 0)
	}
	return x
}

// listElem returns the element type in which sequences can hold values of type e: the standard has no sequences of
// bfloat16, nor of types with 8-bit floats or 4-bit integers.
func listElem(e graph.DataType) graph.DataType {
	switch {
	case e == graph.Float16, e == graph.Double, e.IsInt() && e.Bits() >= 8:
		return e
	case e.IsFloat():
		return graph.Float
	case e.IsInt():
		return graph.Int8
	}
	return e
}

// collect makes the Loop gather v, whose shape may change, in a sequence, and returns the sequence.
func (l *loop) collect(v *graph.Value) *graph.Value {
	c, n, at := l.c, l.n, len(l.n.In)-2
	l.kept = append(l.kept, v)
	name := c.G.Model.Fresh(v.Name + "_kept")
	elem := listElem(v.Type.Elem)
	t := graph.SequenceOf(graph.TensorOf(elem, v.Type.Shape))
	n.SetIn(len(n.In), l.before.Op("SequenceEmpty", nil, graph.IntAttr("dtype", int64(elem))))
	in := l.g.AddInput(c.G.Model.Fresh(v.Name+"_kept"), t)
	body := forward(c, l.g)
	next := body.Op("SequenceInsert", []*graph.Value{in, body.Cast(v, elem)})
	l.g.SetOutputs(slices.Insert(slices.Clone(l.g.Outputs), 1+at, next)...)
	y := n.InsertOut(at, name)
	c.rev.added = append(c.rev.added, y)
	y.Type = t
	return y
}

// prefix returns what carried value k is when iteration j begins, by running the iterations before it again.
func (l *loop) prefix(k int) *graph.Value {
	if l.again == nil {
		m := l.rerun(l.early, nil)
		m.SetIn(0, l.number())
		l.early.Put(m)
		l.again = m
	}
	return l.again.Out[k]
}

// rerun returns a copy of the forward Loop for b's graph that runs without asking its condition and has no results but
// what is carried. The body reads init instead of the initial values if given.
func (l *loop) rerun(b *op.Builder, init []*graph.Value) *graph.Node {
	n := l.n
	cl := &graph.Cloner{To: n.Graph.Model, Prefix: b.Prefix + "/", KeepTypes: true}
	m, err := cl.Node(b.G, n)
	if err != nil {
		if b.Err == nil {
			b.Err = err
		}
		return n
	}
	m.Meta.Set(graph.MetaRole, graph.RoleRecompute)
	if n.Name != "" {
		m.Meta.Set(graph.MetaFrom, n.Name)
	}
	m.SetIn(1, nil)
	for k, v := range init {
		m.SetIn(2+k, v)
	}
	carried := len(n.In) - 2
	body := m.Subgraph("body")
	going := b.For(body).Unary("Identity", body.Inputs[1])
	body.SetOutputs(append([]*graph.Value{going}, body.Outputs[1:1+carried]...)...)
	m.Out = m.Out[:min(carried, len(m.Out))]
	for k := range carried {
		if m.Result(k) == nil {
			m.DefineOut(k, n.Graph.Model.Fresh(b.Prefix+"/state"))
		}
	}
	dropDead(body, 0)
	return m
}

// constantShape reports whether v, a tensor in a body that n runs, provably has the same shape in every iteration:
// its dimensions are numbers, or depend on symbols alone that are sizes of values outside.
func constantShape(n *graph.Node, v *graph.Value) bool {
	if v.Type.Shape == nil {
		return false
	}
	outside := map[string]bool{}
	note := func(v *graph.Value) {
		if v != nil {
			for _, d := range v.Type.Shape {
				for _, s := range d.Symbols() {
					outside[s] = true
				}
			}
		}
	}
	for _, x := range operands(n) {
		note(x)
	}
	for _, x := range n.Graph.Model.Graph.Inputs {
		note(x)
	}
	for _, d := range v.Type.Shape {
		if d.IsUnknown() {
			return false
		}
		for _, s := range d.Symbols() {
			if !outside[s] {
				return false
			}
		}
	}
	return true
}
