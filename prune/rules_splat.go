package prune

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// splatRules let tensors of one repeated element take part in the algebra as that element and a shape, without being
// materialised: ConstantOfShape, and Expand of a constant.
func splatRules() []rewrite.Rule {
	var rules []rewrite.Rule
	for _, d := range op.All() {
		if d.Domain != "" || d.Eval == nil || !d.Has(op.Elementwise) || d.Has(op.Random) || d.Name == "Identity" {
			continue
		}
		rules = append(rules, rewrite.Rule{
			Name: "splat-" + d.Name, Doc: d.Name + " of filled tensors is a filled tensor", Benefit: 3,
			Root: rewrite.P(d.Name).More(), When: filledOperands, Emit: fillByOperands,
		})
	}
	for _, name := range []string{"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Tile", "Expand", "Gather", "GatherElements", "GatherND", "Concat"} {
		rules = append(rules, rewrite.Rule{
			Name: "splat-" + name, Doc: name + " of a filled tensor is a filled tensor", Benefit: 3,
			Root: rewrite.P(name).More(), When: filledSource, Emit: fillByMoving,
		})
	}
	for _, d := range op.All() {
		if broadcasts(d) {
			rules = append(rules, rewrite.Rule{
				Name: "splat-operand-" + d.Name, Doc: d.Name + "(x, filled tensor) = " + d.Name + "(x, its element), where x has the result's shape",
				Root: rewrite.P(d.Name).More(), When: oneSuffices, Emit: byElement,
			})
		}
	}
	return rules
}

// filledOperands holds where every operand of the root is a filled tensor, at least one of them too large to be folded, and the
// root's shape can be said.
func filledOperands(m *match) error {
	if len(m.Root.Out) != 1 || len(m.Root.In) == 0 {
		return rewrite.ErrUnlike
	}
	symbolic := false
	for _, v := range m.Root.In {
		if v == nil {
			continue
		}
		if splat(m.Known, v) == nil {
			return rewrite.ErrUnlike
		}
		symbolic = symbolic || filler(v)
	}
	if !symbolic {
		return rewrite.ErrUnlike // folding does it
	}
	if shapeSource(m) == nil {
		return errShape
	}
	return nil
}

// filler reports whether v is filled by a node, which folding has left.
func filler(v *graph.Value) bool {
	return v.Def != nil && (v.Def.Is("ConstantOfShape") || v.Def.Is("Expand"))
}

// fillByOperands evaluates the root on one element.
func fillByOperands(b *op.Builder, m *match) []*graph.Value {
	c := &op.EvalCtx{Node: m.Root, In: make([]*op.Array, len(m.Root.In)), Out: make([]*op.Array, 1)}
	for i, v := range m.Root.In {
		if v != nil {
			c.In[i] = splat(m.Known, v)
		}
	}
	if err := c.Eval(op.Of(m.Root)); err != nil || c.Out[0] == nil || c.Out[0].Len() != 1 {
		return nil
	}
	return fill(b, m, c.Out[0])
}

// filledSource holds where what the root moves is one filled tensor, or several with the same element, that is too large
// to be folded.
func filledSource(m *match) error {
	n := m.Root
	if len(n.Out) != 1 || len(n.In) == 0 || n.In[0] == nil {
		return rewrite.ErrUnlike
	}
	data := n.In[:1]
	if n.Is("Concat") {
		data = n.In
	}
	first := splat(m.Known, data[0])
	symbolic := false
	for _, v := range data {
		if v == nil {
			return rewrite.ErrUnlike
		}
		a := splat(m.Known, v)
		if first == nil || a == nil || !sameBits(a, first) {
			return rewrite.ErrUnlike
		}
		symbolic = symbolic || filler(v)
	}
	if !symbolic {
		return rewrite.ErrUnlike
	}
	if shapeSource(m) == nil {
		return errShape
	}
	return nil
}

func fillByMoving(b *op.Builder, m *match) []*graph.Value {
	return fill(b, m, splat(m.Known, m.Root.In[0]))
}

// shapeSource says how the shape of the root's result can be had without computing the result: the result itself where
// its shape is known in numbers, an operand's shape operand where the shapes are equal, or the root's own shape operand.
// It is nil if there is no way.
func shapeSource(m *match) *graph.Value {
	y := m.Out(0)
	if y == nil {
		return nil
	}
	if _, ok := y.Type.Shape.Ints(); ok {
		return y
	}
	if m.Root.Is("Expand") {
		if d := m.Info.Dims(m.Root.In[1]); d != nil && y.Type.Shape.Equal(graph.Shape(d)) {
			return m.Root.In[1]
		}
	}
	for _, v := range m.Root.In {
		if v == nil || v.Def == nil || !v.Type.Shape.Equal(y.Type.Shape) {
			continue
		}
		switch {
		case v.Def.Is("ConstantOfShape"):
			return v.Def.In[0]
		case v.Def.Is("Expand"):
			if d := m.Info.Dims(v.Def.In[1]); d != nil && y.Type.Shape.Equal(graph.Shape(d)) {
				return v.Def.In[1]
			}
		}
	}
	return nil
}

// fill returns a tensor of the root's shape filled with a.
func fill(b *op.Builder, m *match, a *op.Array) []*graph.Value {
	s := shapeSource(m)
	if s == m.Out(0) {
		dims, _ := s.Type.Shape.Ints()
		s = b.Ints(dims...)
	}
	return values(b.Op("ConstantOfShape", values(s), graph.TensorAttr("value", a.WithShape([]int{1}).Tensor())))
}

// sameBits reports whether two scalars are the same, bit by bit.
func sameBits(a, b *op.Array) bool {
	return a.Elem == b.Elem && string(rawOf(a)) == string(rawOf(b))
}

func rawOf(a *op.Array) []byte {
	raw, _ := a.Tensor().Data.Bytes()
	return raw
}

// broadcasts reports whether every operand of the operator is broadcast to the shape of the result. PRelu does so with the
// second alone.
func broadcasts(d *op.Def) bool {
	return d.Domain == "" && d.Has(op.Elementwise|op.Broadcasts) && !d.Has(op.Random) && d.Name != "PRelu"
}

// oneSuffices holds where an operand of the root is a filled tensor, and others alone give the result its shape.
func oneSuffices(m *match) error {
	i := filledOperand(m)
	if i < 0 {
		return rewrite.ErrUnlike
	}
	return shapedByOthers(m, i)
}

// filledOperand returns which operand of the root is filled by a node, -1 without one.
func filledOperand(m *match) int {
	return slices.IndexFunc(m.Root.In, func(v *graph.Value) bool {
		if v == nil || !filler(v) {
			return false
		}
		n, known := v.Type.Shape.Size().Int()
		return !(known && n == 1) && splat(m.Known, v) != nil
	})
}

// shapedByOthers holds where the root's result keeps its shape if operand i has one element in its place: one of the others
// has the shape of the result.
func shapedByOthers(m *match, i int) error {
	y := m.Out(0)
	if y == nil || len(m.Root.Out) != 1 {
		return rewrite.ErrUnlike
	}
	for k, v := range m.Root.In {
		if k != i && v != nil && v.Type.Shape.Equal(y.Type.Shape) {
			return nil
		}
	}
	return errShape
}

// byElement applies the root with the element that an operand repeats in the operand's place.
func byElement(b *op.Builder, m *match) []*graph.Value {
	i := filledOperand(m)
	in := slices.Clone(m.Root.In)
	in[i] = b.Const(splat(m.Known, in[i]).WithShape([]int{}).Tensor())
	return values(b.Op(m.Root.Op, in, m.Root.Attrs...))
}
