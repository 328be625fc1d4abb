package prune

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// moveRules concern operators that copy elements from place to place.
func moveRules() []rewrite.Rule {
	P, Any := rewrite.P, rewrite.Any
	return []rewrite.Rule{
		{Name: "slice-all", Doc: "Slice(x) of everything = x", Benefit: 2, Root: P("Slice", Any("x"), Any("starts"), Any("ends"), Any("axes").Opt(), Any("steps").Opt()),
			When: all(sameShape, forward, told("starts"), told("ends"), constant("axes")), Emit: x},
		{Name: "slice-slice", Doc: "Slice(Slice(x)) along other axes = Slice(x)",
			Root: P("Slice", P("Slice", Any("x"), Any("starts0"), Any("ends0"), Any("axes0").Opt(), Any("steps0").Opt()).As("z"), Any("starts"), Any("ends"), Any("axes").Opt(), Any("steps").Opt()),
			When: otherAxes, Emit: joinSlices},
		{Name: "pad-none", Doc: "Pad(x) by nothing = x", Benefit: 2, Root: P("Pad", Any("x"), Any("pads")).More(), When: func(m *match) error {
			pads, err := ints(m, m.V("pads"))
			if err != nil || slices.ContainsFunc(pads, func(p int64) bool { return p != 0 }) {
				return rewrite.ErrUnlike
			}
			return nil
		}, Emit: x},
		{Name: "tile-once", Doc: "Tile(x) once = x", Benefit: 2, Root: P("Tile", Any("x"), Any("repeats")), When: func(m *match) error {
			r, err := ints(m, m.V("repeats"))
			if err != nil || slices.ContainsFunc(r, func(n int64) bool { return n != 1 }) {
				return rewrite.ErrUnlike
			}
			return nil
		}, Emit: x},
		{Name: "concat-one", Doc: "Concat(x) = x", Benefit: 2, Root: P("Concat", Any("x")), Emit: x},
		{Name: "concat-empty", Doc: "Concat(x, []) = Concat(x), for pieces without elements", Benefit: 2, Root: P("Concat").More(), When: func(m *match) error {
			if len(withElements(m.Root)) == len(m.Root.In) {
				return rewrite.ErrUnlike
			}
			return nil
		}, Emit: one(func(b *op.Builder, m *match) *graph.Value {
			parts := withElements(m.Root)
			if len(parts) == 1 {
				return parts[0]
			}
			return b.Op("Concat", parts, m.Root.Attrs...)
		})},
		{Name: "concat-concat", Doc: "Concat(Concat(x, y), z) = Concat(x, y, z) along one axis", Root: P("Concat").More(), When: func(m *match) error {
			if innerConcat(m.Root) < 0 {
				return rewrite.ErrUnlike
			}
			return nil
		}, Emit: one(func(b *op.Builder, m *match) *graph.Value {
			i := innerConcat(m.Root)
			return b.Op("Concat", slices.Concat(m.Root.In[:i], m.Root.In[i].Def.In, m.Root.In[i+1:]), m.Root.Attrs...)
		})},
		{Name: "concat-split", Doc: "Concat of all parts of Split(x) = x", Benefit: 2, Root: P("Concat", P("Split", Any("x")).More().As("first").Shared()).More(), When: func(m *match) error {
			s := m.Node("first")
			axis, ok := axisOf(m.Root, m.V("x").Type.Shape)
			axis2, ok2 := axisOf(s, m.V("x").Type.Shape)
			if !ok || !ok2 || axis != axis2 || !slices.Equal(m.Root.In, s.Out) {
				return rewrite.ErrUnlike
			}
			return nil
		}, Emit: x},
		{Name: "split-one", Doc: "Split(x) into one = x", Benefit: 2, Root: P("Split", Any("x")).More(), When: func(m *match) error {
			if len(m.Root.Out) != 1 {
				return rewrite.ErrUnlike
			}
			return sameShape(m)
		}, Emit: x},
		{Name: "dropout-off", Doc: "Dropout(x) that drops nothing, outside training or with ratio 0, = x, if nobody reads the mask", Benefit: 2, Root: P("Dropout", Any("x"), Any("ratio").Opt(), Any("training").Opt()),
			When: func(m *match) error {
				if y := m.Out(1); y != nil && y.NumUses() > 0 {
					return reason("the mask is read")
				}
				if v := m.V("ratio"); v != nil {
					if a := m.Known(v); a != nil && a.Len() == 1 && a.Float(0) == 0 {
						return nil
					}
				}
				if v := m.V("training"); v != nil {
					if a := m.Known(v); a == nil || a.Len() != 1 || a.Float(0) != 0 {
						return reason("it may train")
					}
				}
				return nil
			}, Emit: func(b *op.Builder, m *match) []*graph.Value { return values(m.V("x"), nil) }},
	}
}

// forward holds where the steps of a Slice are 1.
func forward(m *match) error {
	steps, err := ints(m, m.V("steps"))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(steps, func(s int64) bool { return s != 1 }) {
		return rewrite.ErrUnlike
	}
	return nil
}

// sliceAxes returns the axes of a Slice with the given operands, for a known rank.
func sliceAxes(m *match, starts, axes string, rank int) ([]int, error) {
	if m.V(axes) != nil {
		return axesOf(m, m.V(axes), rank)
	}
	list, err := ints(m, m.V(starts))
	if err != nil {
		return nil, err
	}
	out := make([]int, min(len(list), rank))
	for i := range out {
		out[i] = i
	}
	return out, nil
}

// sliceWords are the operands of the two Slices that slice-slice captures.
var sliceWords = [...]string{"starts", "ends", "steps"}

// otherAxes holds where two Slices in a row concern different axes and are constant.
func otherAxes(m *match) error {
	s := m.V("x").Type.Shape
	if s == nil {
		return errUnknown
	}
	for _, w := range sliceWords {
		for _, name := range []string{w, w + "0"} {
			if v := m.V(name); v != nil {
				if _, err := ints(m, v); err != nil {
					return err
				}
			}
		}
	}
	first, err := sliceAxes(m, "starts0", "axes0", len(s))
	second, err2 := sliceAxes(m, "starts", "axes", len(s))
	switch {
	case err != nil:
		return err
	case err2 != nil:
		return err2
	}
	for _, a := range second {
		if slices.Contains(first, a) {
			return reason("both concern axis %d", a)
		}
	}
	return nil
}

// joinSlices makes one Slice of two along different axes.
func joinSlices(b *op.Builder, m *match) []*graph.Value {
	rank := len(m.V("x").Type.Shape)
	var starts, ends, axes, steps []int64
	for _, k := range []string{"0", ""} {
		at, err := sliceAxes(m, "starts"+k, "axes"+k, rank)
		if err != nil {
			return nil
		}
		from, _ := ints(m, m.V("starts"+k))
		to, _ := ints(m, m.V("ends"+k))
		by, _ := ints(m, m.V("steps"+k))
		if len(from) != len(at) || len(to) != len(at) || by != nil && len(by) != len(at) {
			return nil
		}
		for i, a := range at {
			step := int64(1)
			if by != nil {
				step = by[i]
			}
			starts, ends, axes, steps = append(starts, from[i]), append(ends, to[i]), append(axes, int64(a)), append(steps, step)
		}
	}
	in := values(m.V("x"), b.Ints(starts...), b.Ints(ends...), b.Ints(axes...))
	if slices.ContainsFunc(steps, func(s int64) bool { return s != 1 }) {
		in = append(in, b.Ints(steps...))
	}
	return values(b.Op("Slice", in))
}

// axisOf returns the attribute axis of a node, counted from the front, for a shape of known rank.
func axisOf(n *graph.Node, s graph.Shape) (int, bool) {
	a := n.Int("axis", 0)
	if s == nil {
		return 0, false
	}
	if a < 0 {
		a += int64(len(s))
	}
	return int(a), a >= 0 && a < int64(len(s))
}

// withElements returns the operands of a Concat that may have elements along its axis, and at least one.
func withElements(n *graph.Node) []*graph.Value {
	var out []*graph.Value
	for _, v := range n.In {
		if v == nil {
			return n.In
		}
		if axis, ok := axisOf(n, v.Type.Shape); ok {
			if d, known := v.Type.Shape[axis].Int(); known && d == 0 {
				continue
			}
		}
		out = append(out, v)
	}
	if len(out) == 0 {
		return n.In[:1]
	}
	return out
}

// innerConcat returns which operand of a Concat is a Concat along the same axis that nobody else reads, -1 without one.
func innerConcat(n *graph.Node) int {
	return slices.IndexFunc(n.In, func(v *graph.Value) bool {
		if v == nil || v.Def == nil || !v.Def.Is("Concat") || v.NumUses() != 1 || v.IsOutput() || v.Def.Graph != n.Graph || refers(v.Def) {
			return false
		}
		a, b := n.Int("axis", 0), v.Def.Int("axis", 0)
		if a == b {
			return true
		}
		i, ok := axisOf(n, v.Type.Shape)
		j, ok2 := axisOf(v.Def, v.Type.Shape)
		return ok && ok2 && i == j
	})
}
