package op

import (
	"gradtool/graph"
)

func sequenceDefs() []Def {
	return append([]Def{
		{Name: "SequenceConstruct", Infer: inferSequenceConstruct, Eval: evalSequenceConstruct, Samples: constructSamples()},
		{Name: "SequenceEmpty", Infer: inferSequenceEmpty, Eval: evalSequenceEmpty, Samples: emptySamples()},
		{Name: "SequenceInsert", Infer: inferSequenceInsert, Eval: evalSequenceInsert, Samples: insertSamples()},
		{Name: "SequenceErase", Infer: inferSequenceErase, Eval: evalSequenceErase, Samples: eraseSamples()},
		{Name: "SequenceAt", Facts: DataDependent, Infer: inferSequenceAt, Eval: evalSequenceAt, Samples: atSamples()},
		{Name: "SequenceLength", Infer: inferSequenceLength, Eval: evalSequenceLength, Samples: lengthSamples()},
		{Name: "SplitToSequence", Facts: DataDependent, Infer: inferSplitToSequence, Eval: evalSplitToSequence, Samples: splitToSequenceSamples()},
		{Name: "ConcatFromSequence", Facts: DataDependent, Infer: inferConcatFromSequence, Eval: evalConcatFromSequence,
			Samples: concatFromSequenceSamples()},
	}, optionalDefs()...)
}

// element returns the type of the elements of sequence or optional operand i, the zero Type if it is not known.
func (c *InferCtx) element(i int) graph.Type {
	if t := c.In(i).Inner; t != nil {
		return *t
	}
	return graph.Type{}
}

// wantSequence returns an error if operand i is known to be no sequence.
func (c *InferCtx) wantSequence(i int) error {
	if t := c.In(i); t.Kind != graph.KindSequence && t.Kind != graph.KindUnknown {
		return c.Errorf("operand %d is %s, want a sequence", i, t)
	}
	return nil
}

// setLen says that result i is a sequence of n elements.
func (c *InferCtx) setLen(i int, n graph.Dim) {
	if i < len(c.Node.Out) && c.Node.Out[i] != nil && !n.IsUnknown() {
		c.Info.lens[c.Node.Out[i]] = n
	}
}

// length returns the number of elements of sequence operand i.
func (c *InferCtx) length(i int) graph.Dim {
	if v := c.Node.Operand(i); v != nil {
		return c.Info.lens[v]
	}
	return graph.Unknown()
}

// isEmpty reports whether v is a sequence known to have no elements.
func (in *Info) isEmpty(v *graph.Value) bool {
	n, ok := in.lens[v].Int()
	return ok && n == 0
}

// items returns the values that a sequence is made of, if its node lists them.
func (c *InferCtx) items(i int) ([]*graph.Value, bool) {
	v := c.Node.Operand(i)
	if v == nil || v.Def == nil || !v.Def.Is("SequenceConstruct") {
		return nil, false
	}
	return v.Def.In, true
}

func inferSequenceConstruct(c *InferCtx) error {
	if len(c.Node.In) == 0 {
		return c.Errorf("needs an operand at least")
	}
	t := c.In(0)
	for i := range c.Node.In[1:] {
		var err error
		if t, err = joinTypes(t, c.In(i+1)); err != nil {
			return c.Errorf("operand %d: %w", i+1, err)
		}
	}
	c.SetType(0, graph.SequenceOf(t))
	c.setLen(0, graph.Known(int64(len(c.Node.In))))
	return nil
}

func evalSequenceConstruct(c *EvalCtx) error {
	for i, a := range c.In {
		if a == nil {
			return c.Errorf("operand %d is missing", i)
		}
	}
	c.Out[0] = NewSequence(c.In[0].Elem, append([]*Array{}, c.In...)...)
	return nil
}

func inferSequenceEmpty(c *InferCtx) error {
	c.SetType(0, graph.SequenceOf(graph.TensorOf(graph.DataType(c.Node.Int("dtype", int64(graph.Float))), nil)))
	c.setLen(0, graph.Known(0))
	return nil
}

func evalSequenceEmpty(c *EvalCtx) error {
	c.Out[0] = NewSequence(graph.DataType(c.Node.Int("dtype", int64(graph.Float))))
	return nil
}

// inferSequenceInsert takes the element's type alone where the sequence is known to be empty.
func inferSequenceInsert(c *InferCtx) error {
	if err := c.wantSequence(0); err != nil {
		return err
	}
	t := c.In(1)
	if v := c.Node.Operand(0); v == nil || !c.Info.isEmpty(v) {
		var err error
		if t, err = joinTypes(c.element(0), t); err != nil {
			return err
		}
	}
	c.SetType(0, graph.SequenceOf(t))
	c.setLen(0, c.length(0).Add(graph.Known(1)))
	return nil
}

func evalSequenceInsert(c *EvalCtx) error {
	list := c.In[0].Seq
	p, err := c.position(2, len(list), len(list)+1)
	if err != nil {
		return err
	}
	if c.In[1].Elem != c.In[0].Elem {
		return c.Errorf("cannot insert %s into a sequence of %s", c.In[1].Type(), c.In[0].Elem)
	}
	out := append(append([]*Array{}, list[:p]...), c.In[1])
	c.Out[0] = NewSequence(c.In[0].Elem, append(out, list[p:]...)...)
	return nil
}

// position returns the position that operand i names among n elements, def without the operand. Negative ones count from
// the back. It must be below limit.
func (c *EvalCtx) position(i, def, limit int) (int, error) {
	a := c.Arg(i)
	if a == nil {
		if def < 0 || def >= limit {
			return 0, c.Errorf("the sequence is empty")
		}
		return def, nil
	}
	n := len(c.In[0].Seq)
	if len(a.I64) != 1 {
		return 0, c.Errorf("the position must be one integer, got %s", a.Type())
	}
	p := a.I64[0]
	if p < 0 {
		p += int64(n)
	}
	if p < 0 || p >= int64(limit) {
		return 0, c.Errorf("position %d is outside a sequence of %d", a.I64[0], n)
	}
	return int(p), nil
}

func inferSequenceErase(c *InferCtx) error {
	if err := c.wantSequence(0); err != nil {
		return err
	}
	c.SetType(0, c.In(0))
	c.setLen(0, c.length(0).Sub(graph.Known(1)))
	return nil
}

func evalSequenceErase(c *EvalCtx) error {
	list := c.In[0].Seq
	p, err := c.position(1, len(list)-1, len(list))
	if err != nil {
		return err
	}
	c.Out[0] = NewSequence(c.In[0].Elem, append(append([]*Array{}, list[:p]...), list[p+1:]...)...)
	return nil
}

func inferSequenceAt(c *InferCtx) error {
	if err := c.wantSequence(0); err != nil {
		return err
	}
	c.SetType(0, c.element(0))
	if items, ok := c.items(0); ok {
		if p, ok := c.Ints(1); ok && len(p) == 1 {
			i := p[0]
			if i < 0 {
				i += int64(len(items))
			}
			if i < 0 || i >= int64(len(items)) {
				return c.Errorf("position %d is outside a sequence of %d", p[0], len(items))
			}
			c.forward(0, items[i])
		}
	}
	return nil
}

func evalSequenceAt(c *EvalCtx) error {
	list := c.In[0].Seq
	p, err := c.position(1, 0, len(list))
	if err != nil {
		return err
	}
	c.Out[0] = list[p]
	return nil
}

func inferSequenceLength(c *InferCtx) error {
	if err := c.wantSequence(0); err != nil {
		return err
	}
	c.Set(0, graph.Int64, graph.ShapeOf())
	c.SetDims(0, []graph.Dim{c.length(0)})
	return nil
}

func evalSequenceLength(c *EvalCtx) error {
	c.Out[0] = IntScalar(int64(len(c.In[0].Seq)))
	return nil
}
