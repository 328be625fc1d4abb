package prune

import (
	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// logicRules simplify Booleans and choices. Where takes no notice of the value that is not chosen, NaN or not.
func logicRules() []rewrite.Rule {
	P, Any := rewrite.P, rewrite.Any
	yes, no := number(1), number(0)
	return []rewrite.Rule{
		{Name: "not-not", Doc: "not not x = x", Benefit: 2, Root: P("Not", P("Not", Any("x")).Shared()), Emit: x},
		{Name: "and-true", Doc: "x and true = x", Benefit: 2, Root: P("And", Any("x"), Any("c")).Commute(), When: all(isSplat("c", "true", yes), keepsShape), Emit: x},
		{Name: "or-false", Doc: "x or false = x", Benefit: 2, Root: P("Or", Any("x"), Any("c")).Commute(), When: all(isSplat("c", "false", no), keepsShape), Emit: x},
		{Name: "xor-false", Doc: "x xor false = x", Benefit: 2, Root: P("Xor", Any("x"), Any("c")).Commute(), When: all(isSplat("c", "false", no), keepsShape), Emit: x},
		{Name: "and-false", Doc: "y and false = false", Root: P("And", Any("y"), Any("x")).Commute(), When: all(isSplat("x", "false", no), keepsShape), Emit: x},
		{Name: "or-true", Doc: "y or true = true", Root: P("Or", Any("y"), Any("x")).Commute(), When: all(isSplat("x", "true", yes), keepsShape), Emit: x},
		{Name: "and-same", Doc: "x and x = x", Benefit: 2, Root: P("And", Any("x"), Any("x")), Emit: x},
		{Name: "or-same", Doc: "x or x = x", Benefit: 2, Root: P("Or", Any("x"), Any("x")), Emit: x},
		{Name: "where-same", Doc: "Where(c, x, x) = x", Benefit: 2, Root: P("Where", Any("c"), Any("x"), Any("x")), When: keepsShape, Emit: x},
		{Name: "where-true", Doc: "Where(true, x, y) = x", Benefit: 2, Root: P("Where", Any("c"), Any("x"), Any("y")), When: all(isSplat("c", "true", yes), keepsShape), Emit: x},
		{Name: "where-false", Doc: "Where(false, y, x) = x", Benefit: 2, Root: P("Where", Any("c"), Any("y"), Any("x")), When: all(isSplat("c", "false", no), keepsShape), Emit: x},
		{Name: "where-not", Doc: "Where(not c, x, y) = Where(c, y, x)", Root: P("Where", P("Not", Any("c")), Any("x"), Any("y")),
			Emit: one(func(b *op.Builder, m *match) *graph.Value { return b.Where(m.V("c"), m.V("y"), m.V("x")) })},
	}
}

// castRules simplify changes of element type. They want the first cast to lose nothing.
func castRules() []rewrite.Rule {
	P, Any := rewrite.P, rewrite.Any
	return []rewrite.Rule{
		{Name: "cast-same", Doc: "Cast(x) to x's own type = x", Benefit: 2, Root: P("Cast", Any("x")), When: func(m *match) error {
			if t := m.V("x").Type.Elem; t == graph.Undefined || int64(t) != m.Root.Int("to", 0) {
				return rewrite.ErrUnlike
			}
			return nil
		}, Emit: x},
		{Name: "cast-like-same", Doc: "CastLike(x, y) of y's type = x", Benefit: 2, Root: P("CastLike", Any("x"), Any("y")), When: func(m *match) error {
			if t := m.V("x").Type.Elem; t == graph.Undefined || t != m.V("y").Type.Elem {
				return rewrite.ErrUnlike
			}
			return nil
		}, Emit: x},
		{Name: "cast-cast", Doc: "Cast(Cast(x)) = Cast(x), where the inner one is exact", Root: P("Cast", P("Cast", Any("x")).As("z").Shared()), When: func(m *match) error {
			a, b, c := m.V("x").Type.Elem, m.V("z").Type.Elem, graph.DataType(m.Root.Int("to", 0))
			if a == graph.Undefined || b == graph.Undefined {
				return errUnknown
			}
			if !passes(a, b, c) {
				return reason("%s to %s to %s may differ from %s to %s", a, b, c, a, c)
			}
			return nil
		}, Emit: one(func(b *op.Builder, m *match) *graph.Value {
			if int64(m.V("x").Type.Elem) == m.Root.Int("to", 0) {
				return m.V("x")
			}
			return b.Op("Cast", values(m.V("x")), m.Root.Attrs...)
		})},
	}
}

// passes reports whether a cast from a to c gives what casts to b and on to c give.
func passes(a, b, c graph.DataType) bool {
	switch {
	case !exactly(a, b):
		return false
	case a == c, exactly(a, c):
		return true
	case a.IsDifferentiable() && b.IsDifferentiable() && c.IsDifferentiable(): // one rounding, of the same number
		return true
	case a.IsInt() && b.IsDifferentiable() && c.IsDifferentiable():
		return true
	case a.IsInt() && b.IsInt() && c.IsInt() && (a.IsSigned() == b.IsSigned()): // wrapping is a homomorphism
		return true
	}
	return false
}

// exactly reports whether every number of type a is one of type b.
func exactly(a, b graph.DataType) bool {
	if a == b {
		return true
	}
	switch {
	case a == graph.Bool:
		return b.IsInt() || b.IsDifferentiable()
	case a.IsInt() && b.IsInt():
		if a.IsUnsigned() {
			return b.Bits() > a.Bits()
		}
		return b.IsSigned() && b.Bits() > a.Bits()
	case a.IsInt() && b.IsDifferentiable():
		bits := a.Bits()
		if a.IsSigned() {
			bits-- // powers of two need one bit of a significand
		}
		return bits <= map[graph.DataType]int{graph.Float: 24, graph.Double: 53, graph.Float16: 11, graph.BFloat16: 8}[b]
	case a == graph.Float16 || a == graph.BFloat16:
		return b == graph.Float || b == graph.Double
	case a == graph.Float:
		return b == graph.Double
	}
	return false
}
