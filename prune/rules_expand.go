package prune

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// expandRules let operators read what an Expand repeats.
func expandRules() []rewrite.Rule {
	P, Any := rewrite.P, rewrite.Any
	rules := []rewrite.Rule{
		{Name: "expand-expand", Doc: "Expand(Expand(x)) = Expand(x), to a shape that is known in numbers", Root: P("Expand", P("Expand", Any("x"), Any("s")).As("z").Shared(), Any("t")),
			When: func(m *match) error {
				if y := m.Out(0); y == nil || !allKnown(y.Type.Shape) {
					return errUnknown
				}
				return all(told("s"), told("t"))(m)
			},
			Emit: one(func(b *op.Builder, m *match) *graph.Value {
				dims, _ := m.Out(0).Type.Shape.Ints()
				return b.Expand(m.V("x"), b.Ints(dims...))
			})},
		{Name: "reduce-max-expand", Doc: "ReduceMax(Expand(x)) along repeated axes = x, or Squeeze(x)", Root: P("ReduceMax", P("Expand", Any("x"), Any("s")).As("z").Shared(), Any("axes").Opt()),
			When: repeatedOnly, Emit: unrepeated},
		{Name: "reduce-min-expand", Doc: "ReduceMin(Expand(x)) along repeated axes = x, or Squeeze(x)", Root: P("ReduceMin", P("Expand", Any("x"), Any("s")).As("z").Shared(), Any("axes").Opt()),
			When: repeatedOnly, Emit: unrepeated},
		{Name: "reduce-sum-expand", Doc: "ReduceSum(Expand(x)) along repeated axes = x n, for integers", Root: P("ReduceSum", P("Expand", Any("x"), Any("s")).As("z").Shared(), Any("axes").Opt()),
			When: all(integersIn("x"), repeatedOnly), Emit: timesRepeats},
	}
	for _, d := range op.All() {
		if d.Domain == "" && d.Eval != nil && d.Has(op.Elementwise) && !d.Has(op.Random) && (broadcasts(d) || d.Name != "PRelu" && d.Name != "SwiGLU") {
			rules = append(rules, rewrite.Rule{
				Name: "expand-through-" + d.Name, Doc: d.Name + "(Expand(x), c) = Expand(" + d.Name + "(x, c)), where c is no larger than x",
				Root: P(d.Name).More(), When: expandedAlone, Emit: one(func(b *op.Builder, m *match) *graph.Value {
					i := expanded(m.Root)
					in := slices.Clone(m.Root.In)
					e := in[i].Def
					in[i] = e.In[0]
					return b.Expand(b.Op(m.Root.Op, in, m.Root.Attrs...), e.In[1])
				}),
			})
		}
		if broadcasts(d) {
			rules = append(rules, rewrite.Rule{
				Name: "expand-operand-" + d.Name, Doc: d.Name + "(Expand(x), y) = " + d.Name + "(x, y), where y has the result's shape",
				Root: P(d.Name).More(), When: expandedOperand, Emit: func(b *op.Builder, m *match) []*graph.Value {
					i := expanded(m.Root)
					in := slices.Clone(m.Root.In)
					in[i] = in[i].Def.In[0]
					return values(b.Op(m.Root.Op, in, m.Root.Attrs...))
				},
			})
		}
	}
	return rules
}

func allKnown(s graph.Shape) bool {
	_, ok := s.Ints()
	return ok
}

func integersIn(name string) func(m *match) error {
	return func(m *match) error {
		if !m.V(name).Type.Elem.IsInt() {
			return reason("the sum of n equal floats is not n times one of them")
		}
		return nil
	}
}

// expanded returns which operand of n is an Expand whose result the operator broadcasts anyway, -1 without one.
func expanded(n *graph.Node) int {
	return slices.IndexFunc(n.In, func(v *graph.Value) bool {
		return v != nil && v.Def != nil && v.Def.Is("Expand") && len(v.Def.In) == 2 && v.Def.Graph == n.Graph && v.Def.In[0] != nil && !refers(v.Def)
	})
}

// expandedAlone holds where one operand of the root is an Expand that nobody else reads, and the others, if there are any,
// are broadcast to what it repeats.
func expandedAlone(m *match) error {
	i := expanded(m.Root)
	if i < 0 || len(m.Root.Out) != 1 || m.Root.Is("Identity") {
		return rewrite.ErrUnlike
	}
	e := m.Root.In[i]
	x, y := e.Def.In[0].Type.Shape, m.Out(0)
	n, ok := e.Def.In[0].Type.Shape.Size().Int()
	k, ok2 := e.Type.Shape.Size().Int()
	switch {
	case e.NumUses() != 1:
		return rewrite.ErrUnlike
	case y == nil || !e.Type.Shape.Equal(y.Type.Shape):
		return rewrite.ErrUnlike
	case ok && ok2 && n == k:
		return rewrite.ErrUnlike
	}
	for j, v := range m.Root.In {
		if j != i && v != nil && !narrow(v.Type.Shape, x) {
			return rewrite.ErrUnlike
		}
	}
	return nil
}

// expandedOperand holds where another operand has the shape of the result.
func expandedOperand(m *match) error {
	i := expanded(m.Root)
	if i < 0 || len(m.Root.Out) != 1 {
		return rewrite.ErrUnlike
	}
	y := m.Out(0)
	if y == nil || !narrow(m.Root.In[i].Def.In[0].Type.Shape, y.Type.Shape) {
		return errShape
	}
	for k, v := range m.Root.In {
		if k != i && v != nil && v != m.Root.In[i] && v.Type.Shape.Equal(y.Type.Shape) {
			return nil
		}
	}
	return errShape
}

// repeatedOnly holds where the root reduces over axes along which z, an Expand of x, repeats one element of x, and at least
// once.
func repeatedOnly(m *match) error {
	axes, err := reducedOf(m, "z")
	if err != nil {
		return err
	}
	x, z := m.V("x").Type.Shape, m.V("z").Type.Shape
	if x == nil || z == nil {
		return errUnknown
	}
	for i, d := range z {
		k := i - (len(z) - len(x))
		ones := k < 0
		if !ones {
			n, ok := x[k].Int()
			ones = ok && n == 1
		}
		switch {
		case !slices.Contains(axes, i):
			if ones || !x[k].Equal(d) {
				if n, ok := d.Int(); !ok || n != 1 {
					return reason("axis %d is repeated and not reduced", i)
				}
			}
		case !ones:
			return reason("axis %d is reduced and not repeated", i)
		default:
			if lo, _, ok, _ := d.Bounds(); !ok || lo < 1 {
				return reason("axis %d may be empty", i)
			}
			if _, ok := d.Int(); !ok && m.Root.Is("ReduceSum") {
				return errUnknown
			}
		}
	}
	return nil
}

// reducedOf returns the axes of the captured value that the root reduces over.
func reducedOf(m *match, name string) ([]int, error) {
	s := m.V(name).Type.Shape
	if s == nil {
		return nil, errUnknown
	}
	axes, err := axesOf(m, m.V("axes"), len(s))
	if err != nil {
		return nil, err
	}
	if len(axes) == 0 {
		if m.Root.Int("noop_with_empty_axes", 0) != 0 {
			return nil, rewrite.ErrUnlike
		}
		for i := range s {
			axes = append(axes, i)
		}
	}
	slices.Sort(axes)
	return slices.Compact(axes), nil
}

// unrepeated returns x in the shape of the root's result.
func unrepeated(b *op.Builder, m *match) []*graph.Value {
	return values(inResultShape(b, m, m.V("x")))
}

// inResultShape brings x, which has the elements of the root's result, into its shape: axes of one element come and go.
func inResultShape(b *op.Builder, m *match, x *graph.Value) *graph.Value {
	y := m.Out(0).Type.Shape
	if x.Type.Shape.Equal(y) {
		return x
	}
	ones := func(s graph.Shape) []int64 {
		var axes []int64
		for i, d := range s {
			if n, ok := d.Int(); ok && n == 1 {
				axes = append(axes, int64(i))
			}
		}
		return axes
	}
	if from := ones(x.Type.Shape); len(from) > 0 {
		x = b.Squeeze(x, from...)
	}
	if to := ones(y); len(to) > 0 {
		x = b.Unsqueeze(x, to...)
	}
	return x
}

// timesRepeats returns x times the number of elements that are summed.
func timesRepeats(b *op.Builder, m *match) []*graph.Value {
	axes, _ := reducedOf(m, "z")
	n := int64(1)
	for _, a := range axes {
		d, _ := m.V("z").Type.Shape[a].Int()
		n *= d
	}
	x := m.V("x")
	return values(inResultShape(b, m, b.Mul(x, b.Scalar(x.Type.Elem, float64(n)))))
}
