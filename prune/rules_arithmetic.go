package prune

import (
	"errors"
	"math"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// arithmeticRules hold bit by bit in IEEE 754, for infinities, NaNs and zeros of either sign, and in modular integers.
func arithmeticRules() []rewrite.Rule {
	P, Any := rewrite.P, rewrite.Any
	return []rewrite.Rule{
		{Name: "mul-one", Doc: "x * 1 = x", Benefit: 2, Root: P("Mul", Any("x"), Any("c")).Commute(),
			When: all(isSplat("c", "1", number(1)), keepsShape), Emit: x},
		{Name: "div-one", Doc: "x / 1 = x", Benefit: 2, Root: P("Div", Any("x"), Any("c")), When: all(isSplat("c", "1", number(1)), keepsShape), Emit: x},
		{Name: "pow-one", Doc: "x ^ 1 = x", Benefit: 2, Root: P("Pow", Any("x"), Any("c")), When: all(isSplat("c", "1", number(1)), floats, keepsShape), Emit: x},
		{Name: "add-zero", Doc: "x + 0 = x, for integers, for 0 = -0, and where x is never -0", Benefit: 2, Root: P("Add", Any("x"), Any("c")).Commute(),
			When: all(isSplat("c", "0", number(0)), keepsShape, neutral), Emit: x},
		{Name: "sub-zero", Doc: "x - 0 = x; -0 - 0 is -0", Benefit: 2, Root: P("Sub", Any("x"), Any("c")),
			When: all(isSplat("c", "0", func(a *op.Array) bool { return number(0)(a) && !math.Signbit(a.Float(0)) }), keepsShape), Emit: x},
		{Name: "mul-zero-integers", Doc: "x * 0 = 0, for integers", Benefit: 1, Root: P("Mul", Any("y"), Any("x")).Commute(),
			When: all(isSplat("x", "0", number(0)), integers, keepsShape), Emit: x},
		{Name: "neg-neg", Doc: "-(-x) = x", Benefit: 2, Root: P("Neg", P("Neg", Any("x")).Shared()), Emit: x},
		{Name: "add-neg", Doc: "x + (-y) = x - y", Root: P("Add", Any("x"), P("Neg", Any("y"))).Commute(),
			Emit: one(func(b *op.Builder, m *match) *graph.Value { return b.Sub(m.V("x"), m.V("y")) })},
		{Name: "sub-neg", Doc: "x - (-y) = x + y", Root: P("Sub", Any("x"), P("Neg", Any("y"))),
			Emit: one(func(b *op.Builder, m *match) *graph.Value { return b.Add(m.V("x"), m.V("y")) })},
		{Name: "mul-neg-neg", Doc: "(-x) * (-y) = x * y", Root: P("Mul", P("Neg", Any("x")), P("Neg", Any("y"))),
			Emit: one(func(b *op.Builder, m *match) *graph.Value { return b.Mul(m.V("x"), m.V("y")) })},
		{Name: "neg-times-constant", Doc: "(-x) * c = x * (-c)", Root: P("Mul", P("Neg", Any("x")), rewrite.Const("c")).Commute(), When: smallFloat,
			Emit: one(func(b *op.Builder, m *match) *graph.Value { return b.Mul(m.V("x"), negated(b, m)) })},
		{Name: "neg-of-product", Doc: "-(x * c) = x * (-c)", Root: P("Neg", P("Mul", Any("x"), rewrite.Const("c")).Commute()), When: smallFloat,
			Emit: one(func(b *op.Builder, m *match) *graph.Value { return b.Mul(m.V("x"), negated(b, m)) })},
		{Name: "sum-of-one", Doc: "Sum(x) = x", Benefit: 2, Root: P("Sum", Any("x")), Emit: x},
		{Name: "mean-of-one", Doc: "Mean(x) = x", Benefit: 2, Root: P("Mean", Any("x")), Emit: x},
		{Name: "max-of-one", Doc: "Max(x) = x", Benefit: 2, Root: P("Max", Any("x")), Emit: x},
		{Name: "min-of-one", Doc: "Min(x) = x", Benefit: 2, Root: P("Min", Any("x")), Emit: x},
		{Name: "max-same", Doc: "Max(x, x) = x", Benefit: 2, Root: P("Max", Any("x"), Any("x")), Emit: x},
		{Name: "min-same", Doc: "Min(x, x) = x", Benefit: 2, Root: P("Min", Any("x"), Any("x")), Emit: x},
		twice("Relu"), twice("Abs"), twice("Ceil"), twice("Floor"), twice("Round"), twice("Sign"),
		{Name: "abs-neg", Doc: "|-x| = |x|", Root: P("Abs", P("Neg", Any("x")).Shared()),
			Emit: one(func(b *op.Builder, m *match) *graph.Value { return b.Unary("Abs", m.V("x")) })},
		{Name: "clip-open", Doc: "Clip(x) without bounds = x", Benefit: 2, Root: P("Clip", Any("x")), Emit: x},
	}
}

// twice is the rule that a function applied a second time changes nothing.
func twice(name string) rewrite.Rule {
	lower := map[string]string{"Relu": "relu", "Abs": "abs", "Ceil": "ceil", "Floor": "floor", "Round": "round", "Sign": "sign"}[name]
	return rewrite.Rule{Name: lower + "-" + lower, Doc: lower + "(" + lower + "(x)) = " + lower + "(x)", Benefit: 2,
		Root: rewrite.P(name, rewrite.P(name, rewrite.Any("z")).As("x").Shared()), Emit: x}
}

func floats(m *match) error {
	if !m.V("x").Type.Elem.IsFloat() {
		return reason("integers may be rounded on the way")
	}
	return nil
}

func integers(m *match) error {
	if !m.V("x").Type.Elem.IsInt() {
		return errors.New("0 * x is not 0 for an infinite x")
	}
	return nil
}

// smallFloat holds for a float constant of few elements, which can be changed without growth.
func smallFloat(m *match) error {
	c := m.Const("c")
	switch {
	case !c.IsFloat() || !c.Elem.IsDifferentiable():
		return rewrite.ErrUnlike
	case c.Len() > 16:
		return errors.New("the constant is large")
	}
	return nil
}

// negated returns the constant c with its sign changed.
func negated(b *op.Builder, m *match) *graph.Value {
	c := m.Const("c").Clone()
	for i := range c.Len() {
		c.SetFloat(i, -c.Float(i))
	}
	return b.Const(c.Tensor())
}

// neutral holds where adding the splat c, a zero, changes no bit of x.
func neutral(m *match) error {
	c := splat(m.Known, m.V("c"))
	if !c.IsFloat() || math.Signbit(c.Float(0)) || neverNegativeZero(m.V("x"), m.Known, 4) {
		return nil
	}
	return errors.New("-0 + 0 is +0, and the other operand may be -0")
}

// neverNegativeZero reports whether no element of v is -0.
func neverNegativeZero(v *graph.Value, known func(*graph.Value) *op.Array, depth int) bool {
	if !v.Type.Elem.IsFloat() && v.Type.Elem != graph.Undefined {
		return true
	}
	if a := known(v); a != nil && a.IsFloat() {
		for i := range a.Len() {
			if x := a.Float(i); x == 0 && math.Signbit(x) {
				return false
			}
		}
		return true
	}
	n := v.Def
	if n == nil || graph.StdDomain(n.Domain) != "" || depth == 0 {
		return false
	}
	operand := func(i int) bool { return n.Operand(i) != nil && neverNegativeZero(n.In[i], known, depth-1) }
	switch n.Op {
	case "Exp", "Sigmoid", "Softmax", "Abs", "Softplus", "Cosh", "ReduceL1", "ReduceL2", "ReduceSumSquare":
		return true
	case "Cast": // a narrower type may round a negative number to -0
		t := n.In[0].Type.Elem
		return t.IsInt() || t == graph.Bool
	case "Mul":
		return n.In[0] == n.In[1]
	case "Add": // rounding to nearest gives -0 for -0 + -0 alone
		return operand(0) || operand(1)
	case "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Expand", "Slice", "Gather", "Tile":
		return operand(0)
	case "Where":
		return operand(1) && operand(2)
	}
	return false
}
