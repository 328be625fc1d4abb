package op

import (
	"gradtool/graph"
)

// Inner returns a builder for a new graph that is to be an attribute of a node of b's graph.
func (b *Builder) Inner(name string) *Builder {
	return b.For(b.G.Model.NewGraph(name))
}

// Param adds an input to b's graph, a subgraph.
func (b *Builder) Param(name string, t graph.Type) *graph.Value {
	return b.G.AddInput(b.G.Model.Fresh(name), t)
}

// Return sets the outputs of b's graph, a subgraph. Each output is the result of a node in the graph and no other
// output, which runtimes demand: Identity copies what isn't.
func (b *Builder) Return(out ...*graph.Value) {
	done := map[*graph.Value]bool{}
	outs := make([]*graph.Value, len(out))
	for i, v := range out {
		if v.Def == nil || v.Graph != b.G || done[v] {
			v = b.Unary("Identity", v)
		}
		done[v] = true
		outs[i] = v
	}
	b.G.SetOutputs(outs...)
}

// adopt takes over the first problem of a subgraph's builder.
func (b *Builder) adopt(sub *Builder) {
	if b.Err == nil {
		b.Err = sub.Err
	}
}

// If adds an If with the results that the functions return for the two cases, each in a builder of its own.
func (b *Builder) If(cond *graph.Value, then, els func(b *Builder) []*graph.Value) []*graph.Value {
	t, e := b.Inner("then"), b.Inner("else")
	t.Return(then(t)...)
	e.Return(els(e)...)
	b.adopt(t)
	b.adopt(e)
	return b.Node("If", vals(cond), len(t.G.Outputs), graph.GraphAttr("then_branch", t.G), graph.GraphAttr("else_branch", e.G)).Out
}

// LoopBody says what an iteration of a Loop returns: the condition for a next one (nil: as before), the carried
// values, and values to stack.
type LoopBody struct {
	Cond  *graph.Value
	Next  []*graph.Value
	Stack []*graph.Value
}

// Loop adds a Loop that runs trips times (an int64 scalar; nil: without limit) as long as cond (nil: true) holds,
// and returns its node. The body sees the iteration number and the carried values, which start as init and are of
// types[k] throughout; types nil means those of init.
func (b *Builder) Loop(trips, cond *graph.Value, init []*graph.Value, types []graph.Type,
	body func(b *Builder, i *graph.Value, state []*graph.Value) LoopBody) *graph.Node {
	s := b.Inner("body")
	i := s.Param("i", graph.TensorOf(graph.Int64, graph.ShapeOf()))
	going := s.Param("going", graph.TensorOf(graph.Bool, graph.ShapeOf()))
	state := make([]*graph.Value, len(init))
	for k, v := range init {
		t := v.Type
		if types != nil {
			t = types[k]
		}
		state[k] = s.Param("state", t)
	}
	r := body(s, i, state)
	if r.Cond == nil {
		r.Cond = going
	}
	s.Return(append(append(vals(r.Cond), r.Next...), r.Stack...)...)
	b.adopt(s)
	return b.LoopOver(s.G, trips, cond, init)
}

// LoopOver adds a Loop with a body that is complete; see [Builder.Loop].
func (b *Builder) LoopOver(body *graph.Graph, trips, cond *graph.Value, init []*graph.Value) *graph.Node {
	if cond == nil && len(init) == 0 { // a Loop has two operands at least
		cond = b.True()
	}
	return b.Node("Loop", append(vals(trips, cond), init...), len(body.Outputs)-1, graph.GraphAttr("body", body))
}

// True returns the constant true.
func (b *Builder) True() *graph.Value { return b.Scalar(graph.Bool, 1) }
