package op

import (
	"gradtool/graph"
)

// inferSplitToSequence: the pieces agree in all dimensions but the split one, and in that too if it is split evenly.
func inferSplitToSequence(c *InferCtx) error {
	t := c.In(0)
	s := t.Shape
	if s == nil {
		c.SetType(0, graph.SequenceOf(graph.TensorOf(t.Elem, nil)))
		return nil
	}
	axis, err := normAxis(c.Node.Int("axis", 0), len(s))
	if err != nil {
		return err
	}
	if len(s) == 0 {
		return c.Errorf("a scalar cannot be split")
	}
	out := s.Clone()
	switch {
	case !c.Has(1):
		out[axis] = graph.Known(1)
		c.setLen(0, s[axis])
		if c.Node.Int("keepdims", 1) == 0 {
			out = append(out[:axis], out[axis+1:]...)
		}
	default:
		out[axis] = graph.Unknown()
		sizes, ok := c.Ints(1)
		if !ok || len(sizes) == 0 {
			break
		}
		sum, same := int64(0), true
		for _, n := range sizes {
			if n < 0 {
				return c.Errorf("piece of size %d", n)
			}
			sum, same = sum+n, same && n == sizes[0]
		}
		n, known := s[axis].Int()
		scalar := len(c.Shape(1)) == 0
		if !scalar {
			c.setLen(0, graph.Known(int64(len(sizes))))
		} else if sizes[0] > 0 {
			c.setLen(0, s[axis].CeilDiv(graph.Known(sizes[0])))
		}
		switch {
		case scalar && sizes[0] == 0:
			return c.Errorf("pieces of size 0")
		case !scalar && known && n != sum:
			return c.Errorf("pieces of sizes %v do not add up to %d", sizes, n)
		case !scalar && same, scalar && known && n%sizes[0] == 0:
			out[axis] = graph.Known(sizes[0])
		}
	}
	c.SetType(0, graph.SequenceOf(graph.TensorOf(t.Elem, out)))
	return nil
}

func evalSplitToSequence(c *EvalCtx) error {
	x, split := c.In[0], c.Arg(1)
	if x.Rank() == 0 {
		return c.Errorf("a scalar cannot be split")
	}
	axis, err := normAxis(c.Node.Int("axis", 0), x.Rank())
	if err != nil {
		return err
	}
	n := x.Shape[axis]
	seq := NewSequence(x.Elem)
	switch {
	case split != nil && split.Rank() == 1:
		from := 0
		for _, size := range split.I64 {
			if size < 0 || from+int(size) > n {
				return c.Errorf("pieces of sizes %v do not add up to %d", split.I64, n)
			}
			seq.Seq = append(seq.Seq, rangeOf(x, axis, from, from+int(size)))
			from += int(size)
		}
		if from != n {
			return c.Errorf("pieces of sizes %v do not add up to %d", split.I64, n)
		}
	case split != nil:
		size := int(split.I64[0])
		if size < 1 {
			return c.Errorf("pieces of size %d", size)
		}
		for from := 0; from < n; from += size {
			seq.Seq = append(seq.Seq, rangeOf(x, axis, from, min(from+size, n)))
		}
	default:
		for i := range n {
			a := sliceAt(x, axis, i)
			if c.Node.Int("keepdims", 1) != 0 {
				shape := append([]int{}, x.Shape...)
				shape[axis] = 1
				a = a.WithShape(shape)
			}
			seq.Seq = append(seq.Seq, a)
		}
	}
	c.Out[0] = seq
	return nil
}

// rangeOf returns a[..., from:to, ...] along axis.
func rangeOf(a *Array, axis, from, to int) *Array {
	shape := append([]int{}, a.Shape...)
	shape[axis] = to - from
	out := a.NewLike(shape)
	outer, n, inner := prod(a.Shape[:axis]), a.Shape[axis], prod(a.Shape[axis+1:])
	for o := range outer {
		out.copyRun(o*(to-from)*inner, a, (o*n+from)*inner, (to-from)*inner)
	}
	return out
}

// inferConcatFromSequence knows the joined dimension only if the sequence's node lists the elements.
func inferConcatFromSequence(c *InferCtx) error {
	if err := c.wantSequence(0); err != nil {
		return err
	}
	t := c.element(0)
	c.Set(0, t.Elem, nil)
	if t.Shape == nil {
		return nil
	}
	s := t.Shape.Clone()
	items, listed := c.items(0)
	if c.Node.Int("new_axis", 0) != 0 {
		axis, err := normAxis(c.Node.Int("axis", 0), len(s)+1)
		if err != nil {
			return err
		}
		s = append(append(append(graph.Shape{}, s[:axis]...), c.length(0)), s[axis:]...)
	} else {
		axis, err := normAxis(c.Node.Int("axis", 0), len(s))
		if err != nil {
			return err
		}
		if len(s) == 0 {
			return c.Errorf("scalars can only be joined along a new axis")
		}
		s[axis] = graph.Unknown()
		if listed {
			s[axis] = graph.Known(0)
			for _, v := range items {
				s[axis] = s[axis].Add(v.Type.Shape[axis])
			}
		}
	}
	c.Set(0, t.Elem, s)
	return nil
}

func evalConcatFromSequence(c *EvalCtx) error {
	list := c.In[0].Seq
	if len(list) == 0 {
		return c.Errorf("the sequence is empty")
	}
	if c.Node.Int("new_axis", 0) != 0 {
		a, err := c.stack(list, c.Node.Int("axis", 0), c.Node.Out[0])
		c.Out[0] = a
		return err
	}
	first := list[0]
	axis, err := normAxis(c.Node.Int("axis", 0), first.Rank())
	if err != nil {
		return err
	}
	if first.Rank() == 0 {
		return c.Errorf("scalars can only be joined along a new axis")
	}
	shape := append([]int{}, first.Shape...)
	shape[axis] = 0
	for _, a := range list {
		other := append([]int{}, a.Shape...)
		if len(other) == len(shape) {
			other[axis] = first.Shape[axis]
		}
		if a.Elem != first.Elem || !sameInts(other, first.Shape) {
			return c.Errorf("cannot join %s and %s along axis %d", first.Type(), a.Type(), axis)
		}
		shape[axis] += a.Shape[axis]
	}
	out := NewArray(first.Elem, shape, c.Wide)
	outer, inner, row := prod(shape[:axis]), prod(shape[axis+1:]), shape[axis]
	from := 0
	for _, a := range list {
		n := a.Shape[axis]
		for o := range outer {
			out.copyRun((o*row+from)*inner, a, o*n*inner, n*inner)
		}
		from += n
	}
	c.Out[0] = out
	return nil
}
