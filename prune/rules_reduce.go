package prune

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// reduceRules concern reductions that have nothing to reduce. The sum, mean, product or extremum of one element is that
// element.
func reduceRules() []rewrite.Rule {
	var rules []rewrite.Rule
	for _, r := range []struct{ op, name string }{
		{"ReduceSum", "sum"}, {"ReduceMean", "mean"}, {"ReduceMax", "max"}, {"ReduceMin", "min"}, {"ReduceProd", "prod"},
	} {
		rules = append(rules,
			rewrite.Rule{Name: "reduce-" + r.name + "-none", Doc: r.op + "(x) over no axes = x", Benefit: 2,
				Root: rewrite.P(r.op, rewrite.Any("x"), rewrite.Any("axes").Opt()), When: noAxes, Emit: x},
			rewrite.Rule{Name: "reduce-" + r.name + "-ones", Doc: r.op + "(x) over axes of one element = x, or Squeeze(x)", Benefit: 1,
				Root: rewrite.P(r.op, rewrite.Any("x"), rewrite.Any("axes").Opt()), When: onesOnly, Emit: withoutOnes},
		)
	}
	return rules
}

// noAxes holds where the attribute noop_with_empty_axes and an empty or omitted list of axes leave x as it is.
func noAxes(m *match) error {
	if m.Root.Int("noop_with_empty_axes", 0) == 0 {
		return rewrite.ErrUnlike
	}
	axes, err := ints(m, m.V("axes"))
	if err != nil || len(axes) > 0 {
		return rewrite.ErrUnlike
	}
	return nil
}

// reducedAxes returns the axes that the root reduces over, false if they are not known.
func reducedAxes(m *match) ([]int, bool) {
	s := m.V("x").Type.Shape
	if s == nil {
		return nil, false
	}
	axes, err := axesOf(m, m.V("axes"), len(s))
	if err != nil {
		return nil, false
	}
	if len(axes) == 0 {
		if m.Root.Int("noop_with_empty_axes", 0) != 0 {
			return nil, false
		}
		for i := range s {
			axes = append(axes, i)
		}
	}
	slices.Sort(axes)
	return slices.Compact(axes), true
}

// onesOnly holds where every axis that is reduced has one element.
func onesOnly(m *match) error {
	axes, ok := reducedAxes(m)
	if !ok {
		return rewrite.ErrUnlike
	}
	for _, a := range axes {
		if n, ok := m.V("x").Type.Shape[a].Int(); !ok || n != 1 {
			return rewrite.ErrUnlike
		}
	}
	return nil
}

func withoutOnes(b *op.Builder, m *match) []*graph.Value {
	axes, _ := reducedAxes(m)
	if m.Root.Int("keepdims", 1) != 0 || len(axes) == 0 {
		return values(m.V("x"))
	}
	list := make([]int64, len(axes))
	for i, a := range axes {
		list[i] = int64(a)
	}
	return values(b.Squeeze(m.V("x"), list...))
}
