package op

import (
	"fmt"
	"slices"

	"gradtool/graph"
)

// inferReshape resolves 0 (copied from the operand unless allowzero is set) and -1 (what is left of the number of
// elements). A size that is not known follows from the others too.
func inferReshape(c *InferCtx) error {
	if s := c.Shape(0); s != nil && c.Node.Meta.Get(graph.MetaBarrier) != "" {
		if len(s) == 0 {
			s = graph.ShapeOf(1)
		}
		c.Set(0, c.Elem(0), s)
		c.SetDims(0, c.Info.Elems(c.Node.Operand(0)))
		return nil
	}
	target := c.Dims(1)
	if target == nil {
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	s := c.Shape(0)
	allowZero := c.Node.Int("allowzero", 0) != 0
	out := make(graph.Shape, len(target))
	copied := make([]bool, len(s)) // axes of the operand taken over as they are
	want := graph.Known(1)         // elements of the result axes that are neither copied nor open
	var open []int                 // result axes of -1 or unknown size
	left := false                  // whether -1 was seen
	for i, d := range target {
		n, ok := d.Int()
		switch {
		case ok && n == -1:
			if left {
				return c.Errorf("shape %v has -1 twice", graph.Shape(target))
			}
			left, open = true, append(open, i)
		case ok && n < -1:
			return c.Errorf("shape %v has the impossible size %d", graph.Shape(target), n)
		case d.IsUnknown() || d.Less(graph.Known(0)) || ok && n == 0 && !allowZero && s == nil:
			open = append(open, i)
		case ok && n == 0 && !allowZero:
			if i >= len(s) {
				return c.Errorf("shape %v copies axis %d of a tensor of rank %d", graph.Shape(target), i, len(s))
			}
			out[i], copied[i] = s[i], true
		default:
			out[i], want = d, want.Mul(d)
		}
	}
	if s == nil {
		c.Set(0, c.Elem(0), out)
		return nil
	}
	have := graph.Known(1)
	for i, d := range s {
		if !copied[i] {
			have = have.Mul(d)
		}
	}
	a, aKnown := have.Int()
	b, bKnown := want.Int()
	switch {
	case len(open) > 1 || bKnown && b == 0:
	case len(open) == 1 && aKnown && bKnown && a%b != 0:
		return c.Errorf("%d elements of %v do not divide into shape %v", a, s, graph.Shape(target))
	case len(open) == 1:
		out[open[0]] = have.FloorDiv(want) // exact, or the node fails at run time
	case aKnown && bKnown && a != b:
		return c.Errorf("tensor of shape %v cannot be reshaped to %v", s, graph.Shape(target))
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

func evalReshape(c *EvalCtx) error {
	x := c.In[0]
	shape, err := reshaped(x.Shape, c.Ints(1), c.Node.Int("allowzero", 0) != 0)
	if err != nil {
		return err
	}
	c.Set(0, x.WithShape(shape))
	return nil
}

// reshaped resolves a target shape against the operand's.
func reshaped(have []int, target []int64, allowZero bool) ([]int, error) {
	out := make([]int, len(target))
	open, known := -1, 1
	left := 1 // elements along the axes of the operand that are not copied
	copied := make([]bool, len(have))
	for i, n := range target {
		switch {
		case n == -1 && open < 0:
			open = i
			continue
		case n < 0:
			return nil, fmt.Errorf("shape %v is impossible", target)
		case n == 0 && !allowZero:
			if i >= len(have) {
				return nil, fmt.Errorf("shape %v copies axis %d of a tensor of rank %d", target, i, len(have))
			}
			out[i], copied[i] = have[i], true
			continue
		default:
			out[i] = int(n)
		}
		known *= out[i]
	}
	for i, n := range have {
		if !copied[i] {
			left *= n
		}
	}
	// What is copied has no say in what is left over, even if it is empty.
	switch {
	case open >= 0 && known > 0 && left%known == 0:
		out[open] = left / known
	case open >= 0 && known == 0 && left == 0: // any size would do
		out[open] = 0
	case open >= 0, prod(out) != prod(have):
		return nil, fmt.Errorf("tensor of shape %v cannot be reshaped to %v", have, target)
	}
	return out, nil
}

func inferSqueeze(c *InferCtx) error {
	s := c.Shape(0)
	if !c.Has(1) {
		var out graph.Shape
		for i, d := range s {
			n, ok := d.Int()
			if !ok && !d.ProvablyNot(graph.Known(1)) {
				c.Set(0, c.Elem(0), nil) // whether the axis goes is not known
				return nil
			}
			if ok && n == 1 {
				continue
			}
			out = append(out, s[i])
		}
		if s != nil && out == nil {
			out = graph.Shape{}
		}
		c.Set(0, c.Elem(0), out)
		return nil
	}
	axes, ok := c.Ints(1)
	switch {
	case s == nil:
		c.Set(0, c.Elem(0), nil)
		return nil
	case !ok:
		var out graph.Shape
		if d := c.Dims(1); d != nil && len(d) <= len(s) {
			out = graph.UnknownShape(len(s) - len(d))
		}
		c.Set(0, c.Elem(0), out)
		return nil
	}
	drop, err := normAxes(axes, len(s))
	if err != nil {
		return err
	}
	out := graph.Shape{}
	for i, d := range s {
		if !slices.Contains(drop, i) {
			out = append(out, d)
		} else if n, ok := d.Int(); ok && n != 1 {
			return c.Errorf("axis %d has size %d, want 1", i, n)
		}
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

func evalSqueeze(c *EvalCtx) error {
	x := c.In[0]
	var drop []int
	if c.Arg(1) != nil {
		var err error
		if drop, err = normAxes(c.Ints(1), x.Rank()); err != nil {
			return err
		}
	}
	shape := []int{}
	for i, n := range x.Shape {
		switch {
		case c.Arg(1) == nil && n == 1:
		case slices.Contains(drop, i):
			if n != 1 {
				return c.Errorf("axis %d has size %d, want 1", i, n)
			}
		default:
			shape = append(shape, n)
		}
	}
	c.Set(0, x.WithShape(shape))
	return nil
}

func inferUnsqueeze(c *InferCtx) error {
	s := c.Shape(0)
	d := c.Dims(1)
	if s == nil || d == nil {
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	axes, ok := c.Ints(1)
	if !ok {
		c.Set(0, c.Elem(0), graph.UnknownShape(len(s)+len(d)))
		return nil
	}
	out, err := unsqueezed(s, axes, graph.Known(1))
	if err != nil {
		return err
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

func evalUnsqueeze(c *EvalCtx) error {
	shape, err := unsqueezed(c.In[0].Shape, c.Ints(1), 1)
	if err != nil {
		return err
	}
	c.Set(0, c.In[0].WithShape(shape))
	return nil
}

// unsqueezed returns a shape with ones inserted so that they are at the given axes of the result.
func unsqueezed[D any](shape []D, axes []int64, one D) ([]D, error) {
	rank := len(shape) + len(axes)
	at, err := normAxes(axes, rank)
	if err != nil {
		return nil, err
	}
	out := make([]D, 0, rank)
	for i := range rank {
		if slices.Contains(at, i) {
			out = append(out, one)
		} else {
			out, shape = append(out, shape[0]), shape[1:]
		}
	}
	return out, nil
}
