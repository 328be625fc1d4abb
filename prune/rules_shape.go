package prune

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// shapeRules concern operators that change shape or layout and no element.
func shapeRules() []rewrite.Rule {
	P, Any := rewrite.P, rewrite.Any
	rules := []rewrite.Rule{
		{Name: "reshape-same", Doc: "Reshape(x) to x's shape = x", Benefit: 2, Root: P("Reshape", Any("x"), Any("s")), When: all(sameShape, told("s")), Emit: x},
		{Name: "flatten-same", Doc: "Flatten(x) of a matrix = x", Benefit: 2, Root: P("Flatten", Any("x")), When: sameShape, Emit: x},
		{Name: "squeeze-none", Doc: "Squeeze(x) over no axes = x", Benefit: 2, Root: P("Squeeze", Any("x"), Any("a").Opt()), When: all(sameShape, constant("a")), Emit: x},
		{Name: "unsqueeze-none", Doc: "Unsqueeze(x) by no axes = x", Benefit: 2, Root: P("Unsqueeze", Any("x"), Any("a")), When: all(sameShape, constant("a")), Emit: x},
		{Name: "expand-same", Doc: "Expand(x) to x's shape, or to one that is broadcast to it, = x", Benefit: 2, Root: P("Expand", Any("x"), Any("s")),
			When: all(sameShape, told("s")), Emit: x},
		{Name: "transpose-same", Doc: "Transpose(x) that moves no axis of more than one element = x", Benefit: 2, Root: P("Transpose", Any("x")), When: all(sameShape, keepsOrder), Emit: x},
		{Name: "transpose-transpose", Doc: "Transpose(Transpose(x)) = Transpose(x)", Root: P("Transpose", P("Transpose", Any("x")).As("z").Shared()), When: func(m *match) error {
			if permOf(m.Root) == nil || permOf(m.Node("z")) == nil {
				return errUnknown
			}
			return nil
		}, Emit: one(func(b *op.Builder, m *match) *graph.Value {
			outer, inner := permOf(m.Root), permOf(m.Node("z"))
			perm := make([]int64, len(outer))
			for i, a := range outer {
				perm[i] = inner[a]
			}
			return b.Transpose(m.V("x"), perm...)
		})},
		{Name: "shape-of-elementwise", Doc: "Shape(f(x)) = Shape(x) for an f that works by element", Root: P("Shape", Any("z")), When: func(m *match) error {
			n := m.Node("z")
			if n == nil || !op.Of(n).Has(op.Elementwise) || m.V("z").Index != 0 || soleOperand(n) == nil {
				return rewrite.ErrUnlike
			}
			return nil
		}, Emit: one(func(b *op.Builder, m *match) *graph.Value {
			return b.Op("Shape", values(soleOperand(m.Node("z"))), m.Root.Attrs...)
		})},
	}
	rules = append(rules, rewrite.Rule{Name: "shape-of-alike", Doc: "Shape(f(x)) = Shape(x) where the shapes are equal", Root: P("Shape", Any("z")), When: func(m *match) error {
		if alike(m.Node("z"), m.V("z")) == nil {
			return rewrite.ErrUnlike
		}
		return nil
	}, Emit: one(func(b *op.Builder, m *match) *graph.Value {
		return b.Op("Shape", values(alike(m.Node("z"), m.V("z"))), m.Root.Attrs...)
	})})
	rules = append(rules,
		rewrite.Rule{Name: "transpose-unsqueeze", Doc: "Transpose(Unsqueeze(x)) = Unsqueeze(x), where the axes of x stay in order",
			Root: P("Transpose", P("Unsqueeze", Any("x"), Any("a")).As("z").Shared()), When: all(constant("a"), newAxesOnly),
			Emit: one(func(b *op.Builder, m *match) *graph.Value { return b.Unsqueeze(m.V("x"), movedAxes(m)...) })},
		rewrite.Rule{Name: "transpose-reshape", Doc: "Transpose(Reshape(x)) = Reshape(x), where axes of one element alone are moved",
			Root: P("Transpose", P("Reshape", Any("x"), Any("s")).As("z")), When: all(constant("s"), spelled, movesOnes("z", nil)),
			Emit: one(func(b *op.Builder, m *match) *graph.Value {
				return b.ReshapeTo(m.V("x"), target(m.Out(0).Type.Shape)...)
			})},
		rewrite.Rule{Name: "reshape-transpose", Doc: "Reshape(Transpose(x)) = Reshape(x), where axes of one element alone are moved",
			Root: P("Reshape", P("Transpose", Any("x")).As("z").Shared(), Any("s")), When: all(copiesNothing, movesOnes("x", func(m *match) *graph.Node { return m.Node("z") })), Emit: reshapeOperand},
	)
	for _, outer := range []string{"Reshape", "Flatten", "Squeeze", "Unsqueeze"} {
		for _, inner := range []string{"Reshape", "Flatten", "Squeeze", "Unsqueeze"} {
			rules = append(rules, viewOfView(outer, inner)...)
		}
	}
	return rules
}

// viewOfView returns the rules for two changes of shape in a row.
func viewOfView(outer, inner string) []rewrite.Rule {
	lower := map[string]string{"Reshape": "reshape", "Flatten": "flatten", "Squeeze": "squeeze", "Unsqueeze": "unsqueeze"}
	name := lower[outer] + "-" + lower[inner]
	P, Any := rewrite.P, rewrite.Any
	rules := []rewrite.Rule{{
		Name: name + "-back", Doc: outer + "(" + inner + "(x)) of x's shape = x", Benefit: 2,
		Root: P(outer, P(inner, Any("x")).More().As("z").Shared()).More(), When: all(sameShape, toldRoot), Emit: x,
	}}
	one := func(r rewrite.Rule) { rules = append(rules, r) }
	switch {
	case outer == "Reshape":
		one(rewrite.Rule{Name: name, Doc: "Reshape(" + inner + "(x)) = Reshape(x), where the target copies nothing from in between", Benefit: 1,
			Root: P(outer, P(inner, Any("x")).More().As("z").Shared(), Any("s")), When: copiesNothing, Emit: reshapeOperand})
	case inner == "Reshape":
		one(rewrite.Rule{Name: name, Doc: outer + "(Reshape(x)) = Reshape(x), where one dimension at most is left to run time",
			Root: P(outer, P(inner, Any("x"), Any("s")).As("z")).More(), When: all(toldRoot, spelled), Emit: func(b *op.Builder, m *match) []*graph.Value {
				return values(b.ReshapeTo(m.V("x"), target(m.Out(0).Type.Shape)...))
			}})
	case outer == inner && outer != "Flatten":
		one(rewrite.Rule{Name: name, Doc: outer + "(" + inner + "(x)) = " + outer + "(x)",
			Root: P(outer, P(inner, Any("x"), Any("a")).As("z"), Any("s")), When: all(constant("a"), constant("s"), ranked),
			Emit: func(b *op.Builder, m *match) []*graph.Value { return joinAxes(b, m) }})
	}
	return rules
}

// spelled holds where the root's shape can be the target of a Reshape: it has one dimension at most that is no number, and
// then no dimension of 0, with which nothing could be left over.
func spelled(m *match) error {
	y := m.Out(0)
	if y == nil || y.Type.Shape == nil || target(y.Type.Shape) == nil {
		return errUnknown
	}
	return nil
}

// target returns the target of a Reshape to s, nil if there is none.
func target(s graph.Shape) []int64 {
	out := make([]int64, len(s))
	open := 0
	for i, d := range s {
		n, ok := d.Int()
		switch {
		case ok && n <= 0:
			return nil
		case !ok:
			n = -1
			open++
		}
		out[i] = n
	}
	if open > 1 {
		return nil
	}
	return out
}

// sameShape holds where the root's result has provably the shape of the operand x.
func sameShape(m *match) error {
	y := m.Out(0)
	if y == nil {
		return rewrite.ErrUnlike
	}
	a, b := m.V("x").Type.Shape, y.Type.Shape
	switch {
	case a.Equal(b):
		return nil
	case unequal(a, b):
		return rewrite.ErrUnlike
	}
	return reason("the result, %s, may differ from %s", y.Type, m.V("x").Type)
}

// unequal reports whether two shapes certainly differ, for some sizes at least of the symbols in them.
func unequal(a, b graph.Shape) bool {
	if a == nil || b == nil {
		return false
	}
	if len(a) != len(b) {
		return true
	}
	for i := range a {
		if !a[i].Equal(b[i]) && !a[i].IsUnknown() && !b[i].IsUnknown() {
			return true
		}
	}
	return false
}

// told returns a condition that every element of the captured shape operand is known as a number or an expression, so
// that the shape of the result is not just what a file declares.
func told(name string) func(m *match) error {
	return func(m *match) error { return toldOf(m, m.V(name)) }
}

func toldOf(m *match, v *graph.Value) error {
	if v == nil {
		return nil
	}
	d := m.Info.Dims(v)
	if d == nil || slices.ContainsFunc(d, graph.Dim.IsUnknown) {
		return errUnknown
	}
	return nil
}

// toldRoot is told for the second operand of the root.
func toldRoot(m *match) error { return toldOf(m, m.Root.Operand(1)) }

// constant returns a condition that the captured operand is an integer constant or omitted.
func constant(name string) func(m *match) error {
	return func(m *match) error {
		_, err := ints(m, m.V(name))
		return err
	}
}

// permOf returns the permutation of a Transpose node, nil if it is not known.
func permOf(n *graph.Node) []int64 {
	if p := n.Ints("perm"); p != nil {
		return p
	}
	s := n.In[0].Type.Shape
	if s == nil || n.HasAttr("perm") {
		return nil
	}
	out := make([]int64, len(s))
	for i := range out {
		out[i] = int64(len(s) - 1 - i)
	}
	return out
}

// newAxesOnly holds where the root moves axes that z has added to x, and no others past each other.
func newAxesOnly(m *match) error {
	perm, z := permOf(m.Root), m.V("z").Type.Shape
	if perm == nil || z == nil || len(perm) != len(z) {
		return errUnknown
	}
	axes, err := axesOf(m, m.V("a"), len(z))
	if err != nil {
		return err
	}
	last := int64(-1)
	for _, a := range perm {
		if slices.Contains(axes, int(a)) {
			continue
		}
		if a < last {
			return rewrite.ErrUnlike
		}
		last = a
	}
	return nil
}

// movedAxes returns where the root puts the axes that z adds.
func movedAxes(m *match) []int64 {
	added, _ := axesOf(m, m.V("a"), len(m.V("z").Type.Shape))
	var out []int64
	for i, a := range permOf(m.Root) {
		if slices.Contains(added, int(a)) {
			out = append(out, int64(i))
		}
	}
	return out
}

// movesOnes returns a condition that the Transpose of the captured value keeps the order of the axes that may have more
// than one element. The node is the root unless given.
func movesOnes(name string, node func(m *match) *graph.Node) func(m *match) error {
	return func(m *match) error {
		n := m.Root
		if node != nil {
			n = node(m)
		}
		return keptOrder(permOf(n), m.V(name).Type.Shape)
	}
}

// keepsOrder holds where a Transpose keeps the order of the axes that may have more than one element.
func keepsOrder(m *match) error {
	return keptOrder(permOf(m.Root), m.V("x").Type.Shape)
}

func keptOrder(perm []int64, s graph.Shape) error {
	if perm == nil || len(perm) != len(s) {
		return rewrite.ErrUnlike
	}
	last := int64(-1)
	for _, a := range perm {
		if n, ok := s[a].Int(); ok && n == 1 {
			continue
		}
		if a < last {
			if d := s[a]; !d.IsUnknown() {
				return rewrite.ErrUnlike
			}
			return reason("it moves axis %d, which may have more than one element", a)
		}
		last = a
	}
	return nil
}

// alike returns an operand of n that provably has the shape of z and is no constant, nil without one.
func alike(n *graph.Node, z *graph.Value) *graph.Value {
	if n == nil || len(n.Subgraphs()) > 0 {
		return nil
	}
	for _, v := range n.In {
		if v != nil && v.Init == nil && v.Type.IsTensor() && v.Type.Shape.Equal(z.Type.Shape) && (v.Def == nil || !v.Def.Is("Constant")) {
			return v
		}
	}
	return nil
}

// soleOperand returns the operand of a node that has one, and attributes that concern no shape.
func soleOperand(n *graph.Node) *graph.Value {
	var found *graph.Value
	for _, v := range n.In {
		if v != nil && found != nil {
			return nil
		}
		if v != nil {
			found = v
		}
	}
	return found
}

// copiesNothing holds where the target of the root, a Reshape, means the same for the operand x of the node in between:
// it has no 0 that copies a dimension, or copies one that x has too.
func copiesNothing(m *match) error {
	if m.Root.Int("allowzero", 0) != 0 {
		return nil
	}
	target, err := ints(m, m.V("s"))
	if err != nil {
		return err
	}
	x, z := m.V("x").Type.Shape, m.V("z").Type.Shape
	for i, n := range target {
		if n == 0 && (i >= len(x) || i >= len(z) || !x[i].Equal(z[i])) {
			return reason("0 copies axis %d of what is in between", i)
		}
	}
	return nil
}

func reshapeOperand(b *op.Builder, m *match) []*graph.Value {
	return values(b.Op("Reshape", values(m.V("x"), m.V("s")), m.Root.Attrs...))
}

// ranked holds where the ranks are known that negative axes count from.
func ranked(m *match) error {
	if m.V("x").Type.Shape == nil || m.V("z").Type.Shape == nil || m.Out(0) == nil || m.Out(0).Type.Shape == nil {
		return errUnknown
	}
	return nil
}

// joinAxes makes one Squeeze or Unsqueeze of two.
func joinAxes(b *op.Builder, m *match) []*graph.Value {
	big, small := m.V("x").Type.Shape, m.Out(0).Type.Shape // ranks that the outermost and innermost axes count in
	if m.Root.Is("Unsqueeze") {
		big, small = small, big
	}
	mid := len(m.V("z").Type.Shape)
	far, near := m.V("a"), m.V("s") // axes among those of the larger rank, and of the one in between
	if m.Root.Is("Unsqueeze") {
		far, near = near, far
	}
	axes, err := axesOf(m, far, len(big))
	inner, err2 := axesOf(m, near, mid)
	if err != nil || err2 != nil || len(axes)+len(inner)+len(small) != len(big) {
		return nil
	}
	var kept []int // axes of the larger rank that the one in between has
	for i := range big {
		if !slices.Contains(axes, i) {
			kept = append(kept, i)
		}
	}
	for _, a := range inner {
		axes = append(axes, kept[a])
	}
	slices.Sort(axes)
	all := make([]int64, len(axes))
	for i, a := range axes {
		all[i] = int64(a)
	}
	return values(b.Op(m.Root.Op, values(m.V("x"), b.Ints(all...))))
}
