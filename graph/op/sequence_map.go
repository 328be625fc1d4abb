package op

import (
	"gradtool/graph"
)

// mapBody returns the body of a SequenceMap that fits its operands and results.
func mapBody(n *graph.Node) (*graph.Graph, bool) {
	b := n.Subgraph("body")
	return b, b != nil && len(n.In) > 0 && len(b.Inputs) == len(n.In) && len(n.Out) <= len(b.Outputs)
}

// inferSequenceMap gives the body the elements of sequences and the tensors as they are.
func inferSequenceMap(c *InferCtx) error {
	body, ok := mapBody(c.Node)
	if !ok {
		return c.Errorf("the body does not fit the operands and results")
	}
	if err := c.wantSequence(0); err != nil {
		return err
	}
	for i, v := range body.Inputs {
		t := c.In(i)
		if t.Kind == graph.KindSequence {
			t = c.element(i)
		}
		v.Type, _ = merge(v.Type, t)
	}
	c.Info.graph(body) // what is wrong inside matters only if the sequence has elements
	for i := range c.Node.Out {
		c.SetType(i, graph.SequenceOf(body.Outputs[i].Type))
		c.setLen(i, c.length(0))
	}
	return nil
}

func evalSequenceMap(c *EvalCtx) error {
	body, ok := mapBody(c.Node)
	if !ok {
		return c.Errorf("the body does not fit the operands and results")
	}
	for i := range c.Out {
		c.Out[i] = NewSequence(innermost(body.Outputs[i].Type))
	}
	for k := range c.In[0].Seq {
		in := make([]*Array, len(c.In))
		for i, a := range c.In {
			switch {
			case a == nil:
				return c.Errorf("operand %d is missing", i)
			case a.Kind != graph.KindSequence:
				in[i] = a
			case k >= len(a.Seq):
				return c.Errorf("operand %d is a sequence of %d, operand 0 one of %d", i, len(a.Seq), len(c.In[0].Seq))
			default:
				in[i] = a.Seq[k]
			}
		}
		out, err := c.Run(body, in)
		if err != nil {
			return err
		}
		for i := range c.Out {
			c.Out[i].Elem = out[i].Elem
			c.Out[i].Seq = append(c.Out[i].Seq, out[i])
		}
	}
	return nil
}

// decomposeSequenceMap writes n as a Loop over the positions that inserts what the body gives into sequences.
func decomposeSequenceMap(b *Builder, n *graph.Node) []*graph.Value {
	body, ok := mapBody(n)
	if !ok {
		return nil
	}
	m := b.G.Model
	loop := m.NewGraph(m.Fresh(n.Name + "_loop"))
	i := loop.AddInput(m.Fresh("i"), graph.TensorOf(graph.Int64, graph.ShapeOf()))
	cond := loop.AddInput(m.Fresh("cond"), graph.TensorOf(graph.Bool, graph.ShapeOf()))
	in := b.For(loop)
	args := vals(b.Op("SequenceLength", vals(n.In[0])), nil)
	var acc []*graph.Value
	for j := range n.Out {
		t := body.Outputs[j].Type
		args = append(args, b.Op("SequenceEmpty", nil, graph.IntAttr("dtype", int64(t.Elem))))
		acc = append(acc, loop.AddInput(m.Fresh("sequence"), graph.SequenceOf(t)))
	}
	c := &graph.Cloner{To: m, Prefix: n.Name + "/", KeepTypes: true, Values: map[*graph.Value]*graph.Value{}}
	for k, v := range body.Inputs {
		c.Values[v] = n.In[k]
		if n.In[k].Type.Kind == graph.KindSequence {
			c.Values[v] = in.Op("SequenceAt", vals(n.In[k], i))
		}
	}
	for _, v := range body.Inits {
		if _, isInput := c.Values[v]; !isInput {
			c.Values[v] = in.Const(v.Init)
		}
	}
	for _, k := range body.Nodes {
		copied, err := c.Node(loop, k)
		if err != nil {
			b.Err = err
			return nil
		}
		in.Put(copied)
	}
	outs := vals(in.Unary("Identity", cond))
	for j := range n.Out {
		v := body.Outputs[j]
		if w, ok := c.Values[v]; ok {
			v = w
		}
		outs = append(outs, in.Op("SequenceInsert", vals(acc[j], v)))
	}
	loop.SetOutputs(outs...)
	if b.Err == nil {
		b.Err = in.Err
	}
	return b.Node("Loop", args, len(n.Out), graph.GraphAttr("body", loop)).Out
}
