package op

import (
	"gradtool/graph"
)

func optionalDefs() []Def {
	return []Def{
		{Name: "Optional", Infer: inferOptional, Eval: evalOptional, Samples: optionalSamples()},
		{Name: "OptionalGetElement", Infer: inferOptionalGet, Eval: evalOptionalGet, Samples: optionalGetSamples()},
		{Name: "OptionalHasElement", Infer: inferOptionalHas, Eval: evalOptionalHas, Samples: optionalHasSamples()},
	}
}

func inferOptional(c *InferCtx) error {
	t := c.In(0)
	if a := c.Node.Attr("type"); a != nil && len(a.Types) == 1 {
		var clash bool
		if t, clash = merge(a.Types[0], t); clash {
			return c.Errorf("the element is %s, the attribute says %s", c.In(0), a.Types[0])
		}
	}
	if t.Kind == graph.KindUnknown && !c.Has(0) {
		return c.Errorf("needs an operand or the attribute type")
	}
	c.SetType(0, graph.OptionalOf(t))
	c.setLen(0, c.length(0)) // of the sequence inside
	return nil
}

func evalOptional(c *EvalCtx) error {
	elem := graph.Undefined
	if a := c.Node.Attr("type"); a != nil && len(a.Types) == 1 {
		elem = innermost(a.Types[0])
	}
	x := c.Arg(0)
	if x != nil {
		elem = x.Elem
	}
	c.Out[0] = NewOptional(elem, x)
	return nil
}

// innermost returns the element type of the tensors in t.
func innermost(t graph.Type) graph.DataType {
	for t.Inner != nil {
		t = *t.Inner
	}
	return t.Elem
}

// inferOptionalGet: a tensor or sequence is its own element.
func inferOptionalGet(c *InferCtx) error {
	if c.In(0).Kind == graph.KindOptional {
		c.SetType(0, c.element(0))
		c.setLen(0, c.length(0))
		return nil
	}
	if v := c.Node.Operand(0); v != nil {
		c.forward(0, v)
	}
	return nil
}

func evalOptionalGet(c *EvalCtx) error {
	x := c.In[0]
	if x.Kind != graph.KindOptional {
		c.Out[0] = x
		return nil
	}
	if len(x.Seq) == 0 {
		return c.Errorf("the optional is empty")
	}
	c.Out[0] = x.Seq[0]
	return nil
}

// inferOptionalHas: an omitted operand is an empty optional.
func inferOptionalHas(c *InferCtx) error {
	c.Set(0, graph.Bool, graph.ShapeOf())
	v := c.Node.Operand(0)
	switch {
	case v == nil:
		c.know(0, 0)
	case v.Type.IsTensor() || v.Type.Kind == graph.KindSequence:
		c.know(0, 1)
	case v.Def != nil && v.Def.Is("Optional"):
		has := int64(0)
		if v.Def.Operand(0) != nil {
			has = 1
		}
		c.know(0, has)
	}
	return nil
}

// know says that result i is the bool scalar x.
func (c *InferCtx) know(i int, x int64) {
	if i < len(c.Node.Out) && c.Node.Out[i] != nil {
		c.Info.consts[c.Node.Out[i]] = &Array{Elem: graph.Bool, Shape: []int{}, I64: []int64{x}, Kind: graph.KindTensor}
	}
}

func evalOptionalHas(c *EvalCtx) error {
	x := c.Arg(0)
	has := int64(0)
	if x != nil && (x.Kind != graph.KindOptional || len(x.Seq) > 0) {
		has = 1
	}
	c.Out[0] = &Array{Elem: graph.Bool, Shape: []int{}, I64: []int64{has}, Kind: graph.KindTensor}
	return nil
}
