package op

import (
	"fmt"
	"slices"

	"gradtool/graph"
)

// scatterDefs lists the operators that put elements in places named by index.
func scatterDefs() []Def {
	attrs := func(axis int64, reduction string) []*graph.Attr {
		return []*graph.Attr{graph.IntAttr("axis", axis), graph.StringAttr("reduction", reduction)}
	}
	red := func(r string) []*graph.Attr { return []*graph.Attr{graph.StringAttr("reduction", r)} }
	idx := func(shape []int, v ...float64) Arg { return TV(graph.Int64, shape, v...) }
	twice := idx([]int{3, 2}, 1, 0, -1, 0, 0, 2) // in a matrix of three rows, along axis 0: repeats row 0 of column 1
	pairs := idx([]int{3, 2}, 0, 1, 2, -1, 0, 1)
	rows := idx([]int{3, 1}, 2, 0, -1)
	return []Def{
		{Name: "ScatterElements", Infer: tracked(inferScatter, evalScatterElements, 0, 2), Eval: evalScatterElements, Samples: []Sample{
			{In: []Arg{F(3, 3), idx([]int{2, 3}, 1, 0, 2, 0, 2, 1), F(2, 3)}},
			{Name: "smaller index", In: []Arg{F(3, 4), TV(graph.Int32, []int{2, 2}, 1, -1, 0, 2), F(2, 2)}, Attrs: []*graph.Attr{graph.IntAttr("axis", -1)}},
			{Name: "add", In: []Arg{F(3, 2), twice, F(3, 2)}, Attrs: attrs(0, "add")},
			{Name: "mul", In: []Arg{F(3, 2), twice, F(3, 2)}, Attrs: attrs(0, "mul")},
			{Name: "max", In: []Arg{FV([]int{3, 2}, 1, 2, -3, 4, 0.5, -1), twice, FV([]int{3, 2}, 2, 1.5, -0.5, 3, 1.25, -2)}, Attrs: attrs(0, "max")},
			{Name: "min", In: []Arg{FV([]int{3, 2}, 1, 2, -3, 4, 0.5, -1), twice, FV([]int{3, 2}, 2, 1.5, -0.5, 3, 1.25, -2)}, Attrs: attrs(0, "min")},
			{Name: "mul by zeros", In: []Arg{F(4), I(0, 0, 1, 1, 2), FV([]int{5}, 0, 2, 0, 0, 3)}, Attrs: attrs(0, "mul"), NoGrad: firstOnly},
		}},
		{Name: "ScatterND", Infer: tracked(inferScatter, evalScatterND, 0, 2), Eval: evalScatterND, Samples: []Sample{
			{In: []Arg{F(3, 4), idx([]int{2, 2}, 0, 1, -1, 3), F(2)}},
			{Name: "slices", In: []Arg{F(3, 4), idx([]int{2, 1}, 2, 0), F(2, 4)}},
			{Name: "add", In: []Arg{F(3, 4), pairs, F(3)}, Attrs: red("add")},
			{Name: "add slices", In: []Arg{F(3, 4), rows, F(3, 4)}, Attrs: red("add")},
			{Name: "mul", In: []Arg{F(3, 4), pairs, F(3)}, Attrs: red("mul")},
			{Name: "max", In: []Arg{FV([]int{2, 2}, 1, 2, 3, -4), idx([]int{3, 1}, 1, 0, 1), FV([]int{3, 2}, 4, 3, 0, 2.5, 2, 5)}, Attrs: red("max")},
			{Name: "min", In: []Arg{FV([]int{2, 2}, 1, 2, 3, -4), idx([]int{3, 1}, 1, 0, 1), FV([]int{3, 2}, 4, 3, 0, 2.5, 2, 5)}, Attrs: red("min")},
			{Name: "run-time indices", In: []Arg{F(3, 4), pairs.Variable(), F(3)}, Attrs: red("add")},
		}},
	}
}

// firstOnly is why samples with zero factors are not differentiated twice.
const firstOnly = "the derivative of the gradient at zero factors is not represented; see the rule"

func inferScatter(c *InferCtx) error {
	s, at, u := c.Shape(0), c.Shape(1), c.Shape(2)
	if c.Node.Op == "ScatterElements" {
		if s != nil && at != nil && len(s) != len(at) || at != nil && u != nil && len(at) != len(u) {
			return c.Errorf("data %v, indices %v and updates %v differ in rank", s, at, u)
		}
		if s != nil {
			if _, err := c.Axis(c.Node.Int("axis", 0), len(s)); err != nil {
				return err
			}
		}
	}
	return sameAsFirst(c)
}

func evalScatterElements(c *EvalCtx) error {
	x, at, u := c.In[0], c.In[1], c.In[2]
	if !slices.Equal(at.Shape, u.Shape) {
		return c.Errorf("indices %v and updates %v differ in shape", at.Shape, u.Shape)
	}
	y := x.Clone()
	put, err := putter(y, u, c.Node.Str("reduction", "none"))
	if err != nil {
		return err
	}
	if err := c.eachElement(x, at, func(i, pos int) { put(pos, i, 1) }); err != nil {
		return err
	}
	c.Set(0, y)
	return nil
}

func evalScatterND(c *EvalCtx) error {
	x, at, u := c.In[0], c.In[1], c.In[2]
	pos, depth, err := tuples(x.Shape, at, 0)
	if err != nil {
		return err
	}
	if want := slices.Concat(at.Shape[:at.Rank()-1], x.Shape[depth:]); !slices.Equal(want, u.Shape) {
		return c.Errorf("updates of shape %v, want %v", u.Shape, want)
	}
	y := x.Clone()
	put, err := putter(y, u, c.Node.Str("reduction", "none"))
	if err != nil {
		return err
	}
	inner := prod(x.Shape[depth:])
	for i, p := range pos {
		put(p, i*inner, inner)
	}
	c.Set(0, y)
	return nil
}

// putter returns a function that combines n elements of u from one position into y at another. Without
// a reduction the last one written stays.
func putter(y, u *Array, reduction string) (func(to, from, n int), error) {
	if reduction == "none" {
		return func(to, from, n int) { y.copyRun(to, u, from, n) }, nil
	}
	switch {
	case y.F32 != nil:
		return combine(y.F32, u.F32, reduction, nil)
	case y.F64 != nil:
		return combine(y.F64, u.F64, reduction, nil)
	case y.I64 != nil && y.Elem == graph.Uint64:
		// The bit pattern of uint64 orders as signed after flipping the sign bit.
		return combine(y.I64, u.I64, reduction, func(x int64) int64 { return x ^ -1<<63 })
	case y.I64 != nil:
		return combine(y.I64, u.I64, reduction, nil)
	}
	return nil, fmt.Errorf("reduction %q of element type %s", reduction, y.Elem)
}

// combine returns a putter over elements that have an order and arithmetic; key maps them to the order.
func combine[T float32 | float64 | int64](y, u []T, reduction string, key func(T) T) (func(to, from, n int), error) {
	if key == nil {
		key = func(x T) T { return x }
	}
	var f func(a, b T) T
	switch reduction {
	case "add":
		f = func(a, b T) T { return a + b }
	case "mul":
		f = func(a, b T) T { return a * b }
	case "max":
		f = func(a, b T) T {
			if key(a) >= key(b) || a != a {
				return a
			}
			return b
		}
	case "min":
		f = func(a, b T) T {
			if key(a) <= key(b) || a != a {
				return a
			}
			return b
		}
	default:
		return nil, fmt.Errorf("reduction %q is not known", reduction)
	}
	return func(to, from, n int) {
		for i := range n {
			y[to+i] = f(y[to+i], u[from+i])
		}
	}, nil
}
