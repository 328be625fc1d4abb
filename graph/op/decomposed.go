package op

import (
	"errors"
	"fmt"

	"gradtool/graph"
	"gradtool/graph/op/schema"
)

// Operators that are defined by simpler ones need no inference, evaluation and cost of their own: their
// decomposition is built in a graph beside the model and inferred, evaluated or counted there.

// formError says that a node has a form that is right, but not covered.
type formError struct{ msg string }

func (e *formError) Error() string { return e.msg }

// uncovered notes that the node to decompose has a form that is not covered. Nil stands for its results.
func (b *Builder) uncovered(format string, args ...any) []*graph.Value {
	if b.Err == nil {
		b.Err = &formError{fmt.Sprintf(format, args...)}
	}
	return nil
}

// decomposed completes definitions that have a decomposition.
func decomposed(defs ...Def) []Def {
	for i := range defs {
		d := &defs[i]
		build := d.Decompose
		if d.Infer == nil {
			d.Infer = func(c *InferCtx) error { return inferDecomposed(c, build) }
		}
		if d.Eval == nil {
			d.Eval = func(c *EvalCtx) error { return evalDecomposed(c, build) }
		}
		if d.Cost == nil {
			d.Cost = func(c *CostCtx) float64 { return costDecomposed(c, build) }
		}
	}
	return defs
}

type builder = func(b *Builder, n *graph.Node) []*graph.Value

// workbench is a decomposition beside the model.
type workbench struct {
	*Builder
	in, out []*graph.Value // of the node
}

// decomposeApart builds the decomposition of a copy of n whose operands, nil where omitted, have the given types and are
// known as far as know, which may be nil, notes.
func decomposeApart(n *graph.Node, build builder, types []*graph.Type, know func(b *Builder, i int, v *graph.Value)) (*workbench, error) {
	m := graph.NewModel("", SampleOpset)
	if d := graph.StdDomain(n.Domain); d != "" {
		m.SetOpset(d, 1)
	}
	w := &workbench{Builder: NewBuilder(m.Graph, NewInfo())}
	for i, t := range types {
		if t == nil {
			w.in = append(w.in, nil)
			continue
		}
		v := m.Graph.AddInput(m.Fresh("x"), *t)
		if know != nil {
			know(w.Builder, i, v)
		}
		w.in = append(w.in, v)
	}
	outs := make([]string, len(n.Out))
	for i, y := range n.Out {
		if y != nil {
			outs[i] = m.Fresh("y")
		}
	}
	k := m.Graph.NewNode(n.Domain, n.Op, w.in, outs, n.Attrs...)
	w.out = build(w.Builder, k)
	return w, w.Err
}

// result returns what stands for result i, nil if nothing does or it is omitted.
func (w *workbench) result(n *graph.Node, i int) *graph.Value {
	if i >= len(w.out) || n.Out[i] == nil {
		return nil
	}
	return w.out[i]
}

func inferDecomposed(c *InferCtx, build builder) error {
	types := make([]*graph.Type, len(c.Node.In))
	for i, v := range c.Node.In {
		if v == nil {
			continue
		}
		if !v.Type.IsTensor() || v.Type.Elem == graph.Undefined {
			return nil
		}
		types[i] = &v.Type
	}
	w, err := decomposeApart(c.Node, build, types, func(b *Builder, i int, v *graph.Value) {
		x := c.Node.In[i]
		if a := c.Info.Const(x); a != nil {
			b.Info.consts[v] = a
		}
		if d := c.Info.Elems(x); d != nil {
			b.Info.dims[v] = d
		}
	})
	var form *formError
	var p *Problem
	switch {
	case errors.As(err, &form):
		c.inferElems()
		return nil
	case errors.As(err, &p):
		return fmt.Errorf("%s: %w", p.Node.Op, p.Err)
	case err != nil:
		return err
	}
	for i := range c.Node.Out {
		if y := w.result(c.Node, i); y != nil {
			c.SetType(i, y.Type)
		}
	}
	return nil
}

// inferElems sets the element types of results that share a type variable with an operand.
func (c *InferCtx) inferElems() {
	s, ok := schema.Lookup(c.Node.Domain, c.Node.Op, schema.MaxOpset(c.Node.Domain))
	if !ok {
		return
	}
	for i := range c.Node.Out {
		out := s.Output(i)
		for j := range c.Node.In {
			if in := s.Input(j); out != nil && in != nil && out.TypeVar != "" && in.TypeVar == out.TypeVar && c.Has(j) {
				c.Set(i, c.Elem(j), nil)
				break
			}
		}
	}
}

// CheckDecomposition returns why n, whose operator is defined by simpler ones, has a form that these do not cover.
func CheckDecomposition(n *graph.Node) error {
	d := Of(n)
	if d == nil || d.Decompose == nil {
		return nil
	}
	types := make([]*graph.Type, len(n.In))
	for i, v := range n.In {
		if v != nil {
			types[i] = &v.Type
		}
	}
	_, err := decomposeApart(n, d.Decompose, types, nil)
	var form *formError
	if errors.As(err, &form) {
		return form
	}
	return nil
}

// evalDecomposed evaluates what the node's results need of the decomposition. Small integer operands are known when it is
// built.
func evalDecomposed(c *EvalCtx, build builder) error {
	types := make([]*graph.Type, len(c.In))
	for i, a := range c.In {
		if a != nil {
			t := a.Type()
			types[i] = &t
		}
	}
	w, err := decomposeApart(c.Node, build, types, func(b *Builder, i int, v *graph.Value) {
		if a := c.In[i]; a.I64 != nil && a.Len() <= maxConstLen {
			b.Info.consts[v] = a
		}
	})
	if err != nil {
		return err
	}
	env, need := map[*graph.Value]*Array{}, map[*graph.Value]bool{}
	for i, v := range w.in {
		if v != nil {
			env[v] = c.In[i]
		}
	}
	for i := range c.Node.Out {
		need[w.result(c.Node, i)] = true
	}
	nodes := w.G.Nodes
	for i := len(nodes) - 1; i >= 0; i-- {
		for _, y := range nodes[i].Out {
			if !need[y] {
				continue
			}
			for _, x := range nodes[i].In {
				need[x] = true
			}
		}
	}
	for k, n := range nodes {
		wanted := false
		for _, y := range n.Out {
			wanted = wanted || y != nil && need[y]
		}
		if !wanted {
			continue
		}
		e := &EvalCtx{Node: n, In: make([]*Array, len(n.In)), Out: make([]*Array, len(n.Out)), Wide: c.Wide, Seed: c.Seed + uint64(k), Run: c.Run}
		for i, x := range n.In {
			e.In[i] = env[x]
		}
		if err := e.Eval(Of(n)); err != nil {
			return fmt.Errorf("%s: %w", n.Op, err)
		}
		for i, y := range n.Out {
			if y != nil {
				env[y] = e.Out[i]
			}
		}
	}
	for i := range c.Node.Out {
		if y := w.result(c.Node, i); y != nil {
			c.Set(i, env[y])
		}
	}
	return nil
}

// costDecomposed adds up the work of the decomposition's nodes.
func costDecomposed(c *CostCtx, build builder) float64 {
	types := make([]*graph.Type, len(c.Node.In))
	for i, v := range c.Node.In {
		if v != nil && i < len(c.In) && c.In[i] != nil {
			t := graph.TensorOf(v.Type.Elem, make(graph.Shape, len(c.In[i])))
			for k, n := range c.In[i] {
				t.Shape[k] = graph.Known(int64(n))
			}
			types[i] = &t
		}
	}
	w, err := decomposeApart(c.Node, build, types, nil)
	if err != nil {
		return c.OutLen(0)
	}
	total := 0.0
	for _, n := range w.G.Nodes {
		k := &CostCtx{Node: n}
		ok := true
		for _, list := range []struct {
			values []*graph.Value
			to     *[][]int
		}{{n.In, &k.In}, {n.Out, &k.Out}} {
			for _, v := range list.values {
				var shape []int
				if v != nil {
					s, known := v.Type.Shape.Ints()
					ok, shape = ok && known, toInts(s)
				}
				*list.to = append(*list.to, shape)
			}
		}
		switch d := Of(n); {
		case !ok || n.Is("Constant"):
		case d.Cost != nil:
			total += d.Cost(k)
		default:
			total += k.OutLen(0)
		}
	}
	return total
}
