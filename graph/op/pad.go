package op

import (
	"fmt"

	"gradtool/graph"
)

// padDefs lists the operators that put a border around a tensor or take one away.
func padDefs() []Def {
	mode := func(m string) []*graph.Attr { return []*graph.Attr{graph.StringAttr("mode", m)} }
	axes := func(a ...int64) []*graph.Attr { return []*graph.Attr{graph.IntsAttr("axes", a...)} }
	return []Def{
		{Name: "Pad", Infer: tracked(inferPad, evalPad, 0, 2), Eval: evalPad, Cost: free, Facts: CheapRemat, Samples: []Sample{
			{In: []Arg{F(2, 3), I(1, 0, 0, 2)}},
			{Name: "value", In: []Arg{F(2, 3), I(1, 0, 0, 2), F()}},
			{Name: "axes", In: []Arg{F(2, 3, 2), I(1, 2), F(), I(-2)}},
			{Name: "negative", In: []Arg{F(5, 4), I(-1, 2, 1, -3), F()}},
			{Name: "nothing left", In: []Arg{F(2, 3), I(-2, 0, 0, 0)}},
			{Name: "run-time axes", In: []Arg{F(2, 3), I(1, 2), F(), I(-1).Variable()}},
			{Name: "run-time pads", In: []Arg{F(4, 3), I(1, -1, 0, 2).Variable(), F()}},
			{Name: "reflect", In: []Arg{F(4, 5), I(2, 1, 0, 4)}, Attrs: mode("reflect")},
			{Name: "reflect more than once", In: []Arg{F(2, 3), I(3, 5, 2, 0)}, Attrs: mode("reflect")},
			{Name: "edge", In: []Arg{F(2, 3), I(2, 1, 0, 4)}, Attrs: mode("edge")},
			{Name: "edge, axes", In: []Arg{F(2, 3, 2), I(2, 1), {}, I(1)}, Attrs: mode("edge")},
			{Name: "wrap", In: []Arg{F(2, 3), I(1, 3, 2, 2)}, Attrs: mode("wrap")},
			{Name: "wrap more than once", In: []Arg{F(2, 3), I(5, 0, 2, 7)}, Attrs: mode("wrap")},
			{Name: "wrap, run-time pads", In: []Arg{F(2, 3), I(1, 3, 2, 2).Variable()}, Attrs: mode("wrap")},
			{Name: "edge, cropped", In: []Arg{F(4, 3), I(-1, 2, 2, -1)}, Attrs: mode("edge")},
		}},
		{Name: "CenterCropPad", Infer: inferCenterCropPad, Eval: evalCenterCropPad, Cost: free, Facts: CheapRemat, Samples: []Sample{
			{In: []Arg{F(5, 2), I(2, 5)}},
			{Name: "axes", In: []Arg{F(2, 4, 3), I(7, 2)}, Attrs: axes(-2, 2)},
			{Name: "one axis", In: []Arg{F(2, 7), I(4)}, Attrs: axes(1)},
			{Name: "run-time shape", In: []Arg{F(5, 2), I(3, 5).Variable()}},
		}},
	}
}

func inferPad(c *InferCtx) error {
	s, pads := c.Shape(0), c.Dims(1)
	if s == nil {
		if !c.Has(3) && pads != nil && len(pads)%2 == 0 {
			s = graph.UnknownShape(len(pads) / 2)
		}
		c.Set(0, c.Elem(0), s)
		return nil
	}
	axes, ok := c.Ints(3)
	if pads == nil || c.Has(3) && !ok {
		c.Set(0, c.Elem(0), graph.UnknownShape(len(s)))
		return nil
	}
	at, err := axesOr(axes, c.Has(3), len(s))
	if err != nil {
		return err
	}
	if len(pads) != 2*len(at) {
		return c.Errorf("%d pads for %d axes", len(pads), len(at))
	}
	out := s.Clone()
	for i, a := range at {
		out[a] = s[a].Add(pads[i]).Add(pads[len(at)+i])
		if negative(out[a]) {
			return c.Errorf("axis %d of size %v is cropped by more than that", a, s[a])
		}
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

func evalPad(c *EvalCtx) error {
	x := c.In[0]
	at, err := axesOr(c.Ints(3), c.Arg(3) != nil, x.Rank())
	if err != nil {
		return err
	}
	pads := c.Ints(1)
	if len(pads) != 2*len(at) {
		return c.Errorf("%d pads for %d axes", len(pads), len(at))
	}
	before, after := make([]int, x.Rank()), make([]int, x.Rank())
	for i, a := range at {
		before[a], after[a] = int(pads[i]), int(pads[len(at)+i])
	}
	var y *Array
	if mode := c.Node.Str("mode", "constant"); mode == "constant" {
		y, err = padConstant(x, before, after, c.Arg(2))
	} else {
		y, err = padMapped(x, before, after, mode)
	}
	if err != nil {
		return err
	}
	c.Set(0, y)
	return nil
}

// padConstant puts value (nil: zero) around x, or crops it where the pads are negative.
func padConstant(x *Array, before, after []int, value *Array) (*Array, error) {
	rank := x.Rank()
	shape, region := make([]int, rank), make([]int, rank)
	to, from := view{step: make([]int, rank)}, dense(x.Shape)
	for a, n := range x.Shape {
		shape[a] = n + before[a] + after[a]
		if shape[a] < 0 {
			return nil, fmt.Errorf("axis %d of size %d is cropped by more than that", a, n)
		}
		region[a] = max(0, n-max(0, -before[a])-max(0, -after[a]))
	}
	y := x.NewLike(shape)
	if value != nil && value.Len() > 0 {
		copyView(y, dense(shape), value, view{step: make([]int, rank)}, shape)
	}
	to.step = strides(shape)
	for a := range shape {
		to.off += max(0, before[a]) * to.step[a]
		from.off += max(0, -before[a]) * from.step[a]
	}
	copyView(y, to, x, from, region)
	return y, nil
}

// padMapped puts elements of x around x: reflected, repeated or wrapped round. Negative pads crop first.
func padMapped(x *Array, before, after []int, mode string) (*Array, error) {
	shape := make([]int, x.Rank())
	source := make([][]int, x.Rank()) // by axis and position in the result: position in x
	for a, n := range x.Shape {
		crop := max(0, -before[a])
		n -= crop + max(0, -after[a])
		shape[a] = n + max(0, before[a]) + max(0, after[a])
		if n < 0 || n == 0 && shape[a] > 0 {
			return nil, fmt.Errorf("axis %d of size %d has nothing to pad with", a, x.Shape[a])
		}
	}
	y := x.NewLike(shape)
	if y.Len() == 0 {
		return y, nil
	}
	for a, n := range x.Shape {
		crop := max(0, -before[a])
		n -= crop + max(0, -after[a])
		source[a] = make([]int, shape[a])
		for i := range source[a] {
			at, err := padSource(i-max(0, before[a]), n, mode)
			if err != nil {
				return nil, err
			}
			source[a][i] = crop + at
		}
	}
	from := strides(x.Shape)
	to := strides(shape)
	var walk func(axis, d, s int)
	walk = func(axis, d, s int) {
		if axis == len(shape) {
			y.copyFrom(d, x, s)
			return
		}
		if axis == len(shape)-1 { // runs of consecutive elements
			src := source[axis]
			for i := 0; i < len(src); {
				j := i + 1
				for j < len(src) && src[j] == src[j-1]+1 {
					j++
				}
				y.copyRun(d+i, x, s+src[i], j-i)
				i = j
			}
			return
		}
		for i, p := range source[axis] {
			walk(axis+1, d+i*to[axis], s+p*from[axis])
		}
	}
	walk(0, 0, 0)
	return y, nil
}

// padSource returns which of n elements stands at position i, which may be outside.
func padSource(i, n int, mode string) (int, error) {
	mod := func(k int) int { return ((i % k) + k) % k }
	switch mode {
	case "edge":
		return max(0, min(i, n-1)), nil
	case "wrap":
		return mod(n), nil
	case "reflect":
		if n == 1 {
			return 0, nil
		}
		p := mod(2 * (n - 1))
		return min(p, 2*(n-1)-p), nil
	}
	return 0, fmt.Errorf("mode %q is not known", mode)
}

func inferCenterCropPad(c *InferCtx) error {
	s, target := c.Shape(0), c.Dims(1)
	axes := c.Node.Ints("axes")
	switch {
	case s == nil && target != nil && axes == nil:
		s = graph.UnknownShape(len(target))
	case s == nil:
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	at, err := axesOr(axes, axes != nil, len(s))
	if err != nil {
		return err
	}
	if target == nil {
		target = make([]graph.Dim, len(at))
	}
	if len(target) != len(at) {
		return c.Errorf("%d sizes for %d axes", len(target), len(at))
	}
	out := s.Clone()
	for i, a := range at {
		out[a] = target[i]
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

// evalCenterCropPad crops or pads evenly; an odd element more is cropped at or added to the end.
func evalCenterCropPad(c *EvalCtx) error {
	x := c.In[0]
	axes := c.Node.Ints("axes")
	at, err := axesOr(axes, axes != nil, x.Rank())
	if err != nil {
		return err
	}
	target, err := sizes(c.Ints(1))
	if err != nil {
		return err
	}
	if len(target) != len(at) {
		return c.Errorf("%d sizes for %d axes", len(target), len(at))
	}
	before, after := make([]int, x.Rank()), make([]int, x.Rank())
	for i, a := range at {
		more := target[i] - x.Shape[a]
		before[a] = more / 2 // towards zero on either side
		after[a] = more - before[a]
	}
	y, err := padConstant(x, before, after, nil)
	if err != nil {
		return err
	}
	c.Set(0, y)
	return nil
}
