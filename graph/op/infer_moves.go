package op

import "gradtool/graph"

// tracked wraps the inference of an operator that only moves elements, so that what is known of the
// elements of integer tensors follows them: the operator is evaluated on the positions of its
// data operands' elements, and the result's positions say where each result element comes from. The operands with
// the given numbers are data, all of them if none is given; the others must be known. Zeros that eval
// fills in are zeros of the result.
func tracked(infer func(*InferCtx) error, eval func(*EvalCtx) error, data ...int) func(*InferCtx) error {
	return func(c *InferCtx) error {
		if err := infer(c); err != nil {
			return err
		}
		c.track(eval, data)
		return nil
	}
}

// track is the second half of tracked. It does nothing where too little is known.
func (c *InferCtx) track(eval func(*EvalCtx) error, data []int) {
	isData := func(i int) bool {
		for _, d := range data {
			if d == i {
				return true
			}
		}
		return len(data) == 0
	}
	elems := []graph.Dim{graph.Known(0)} // by position; position 0 stands for a zero filled in
	args := make([]*Array, len(c.Node.In))
	news := false // something is known of some element
	for i, v := range c.Node.In {
		if v == nil {
			continue
		}
		if !isData(i) {
			if args[i] = c.Info.Const(v); args[i] == nil {
				return
			}
			continue
		}
		shape, known := smallShape(v.Type)
		if !known || !v.Type.Elem.IsInt() {
			return
		}
		a := NewArray(graph.Int64, shape, false)
		d := c.Info.Elems(v)
		for j := range a.I64 {
			a.I64[j] = int64(len(elems))
			if d == nil {
				elems = append(elems, graph.Unknown())
				continue
			}
			elems = append(elems, d[j])
			news = news || !d[j].IsUnknown()
		}
		args[i] = a
	}
	if !news {
		return
	}
	for i := range c.types {
		if _, small := smallShape(c.types[i]); c.Node.Out[i] != nil && !small {
			return
		}
	}
	e := &EvalCtx{Node: c.Node, In: args, Out: make([]*Array, len(c.Node.Out))}
	if eval(e) != nil {
		return
	}
	for i, a := range e.Out {
		if a == nil || a.I64 == nil {
			continue
		}
		out := make([]graph.Dim, len(a.I64))
		for j, at := range a.I64 {
			out[j] = elems[at]
		}
		c.SetDims(i, out)
	}
}

// smallShape returns the shape of a tensor whose shape is known and whose elements inference would track.
func smallShape(t graph.Type) ([]int, bool) {
	s, ok := t.Shape.Ints()
	if !ok || !t.IsTensor() {
		return nil, false
	}
	size := int64(1)
	out := make([]int, len(s))
	for i, n := range s {
		if n < 0 || n > 0 && size > maxDimsLen/n {
			return nil, false
		}
		size *= n
		out[i] = int(n)
	}
	return out, true
}
