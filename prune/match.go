package prune

import (
	"errors"
	"fmt"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// Words of the tables of rules: what conditions ask and what replacements are made of.

type match = rewrite.Match

// x is the replacement of a node by its operand captured as "x".
func x(b *op.Builder, m *match) []*graph.Value { return values(m.V("x")) }

func values(v ...*graph.Value) []*graph.Value { return v }

// one makes an Emit of a function that returns one value.
func one(f func(b *op.Builder, m *match) *graph.Value) func(*op.Builder, *match) []*graph.Value {
	return func(b *op.Builder, m *match) []*graph.Value {
		if v := f(b, m); v != nil {
			return values(v)
		}
		return nil
	}
}

// all makes a condition of several.
func all(conds ...func(m *match) error) func(*match) error {
	return func(m *match) error {
		for _, c := range conds {
			if err := c(m); err != nil {
				return err
			}
		}
		return nil
	}
}

// Reasons that several rules have.
var (
	errBroadcast = errors.New("the other operand may make the result larger")
	errShape     = errors.New("the shapes may differ")
	errUnknown   = errors.New("an operand that matters is not known")
	errTrains    = errors.New("an operand that matters is not constant")
)

// keepsShape holds where the root's result provably has the shape of the operand x. The other operands are those that it
// is broadcast with.
func keepsShape(m *match) error {
	x, y := m.V("x"), m.Out(0)
	if y == nil {
		return rewrite.ErrUnlike
	}
	if x.Type.Shape.Equal(y.Type.Shape) {
		return nil
	}
	for _, v := range m.Root.In {
		if v != nil && v != x && !narrow(v.Type.Shape, x.Type.Shape) {
			return errBroadcast
		}
	}
	return nil
}

// narrow reports whether broadcasting s with t certainly gives t.
func narrow(s, t graph.Shape) bool {
	if s == nil || len(s) > 0 && (t == nil || len(s) > len(t)) {
		return false
	}
	for i, d := range s {
		if n, ok := d.Int(); ok && n == 1 || d.Equal(t[len(t)-len(s)+i]) {
			continue
		}
		return false
	}
	return true
}

// isSplat returns a condition that the captured operand repeats one element for which is holds; what says which that is.
func isSplat(name, what string, is func(a *op.Array) bool) func(m *match) error {
	return func(m *match) error {
		a := splat(m.Known, m.V(name))
		switch {
		case a == nil:
			return rewrite.ErrUnlike
		case !is(a):
			return rewrite.ErrUnlike
		}
		return nil
	}
}

// number is a test for a number of any element type but complex and string ones.
func number(want float64) func(a *op.Array) bool {
	return func(a *op.Array) bool { return a.C128 == nil && a.Str == nil && a.Float(0) == want }
}

// backward holds where the root is part of a gradient.
func backward(m *match) error {
	if m.Root.Meta.Get(graph.MetaRole) != graph.RoleBackward {
		return rewrite.ErrUnlike
	}
	return nil
}

// ints returns the elements of an operand of the root that is an integer constant.
func ints(m *match, v *graph.Value) ([]int64, error) {
	if v == nil {
		return nil, nil
	}
	a := m.Known(v)
	if a == nil || a.I64 == nil {
		return nil, errTrains
	}
	return a.I64, nil
}

// axesOf returns an operand of axes, counted from the front, for the given rank.
func axesOf(m *match, v *graph.Value, rank int) ([]int, error) {
	list, err := ints(m, v)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(list))
	for i, a := range list {
		if a < 0 {
			a += int64(rank)
		}
		if a < 0 || a >= int64(rank) {
			return nil, fmt.Errorf("axis %d is outside a tensor of rank %d", list[i], rank)
		}
		out[i] = int(a)
	}
	return out, nil
}

// reason is a condition that does not hold.
func reason(format string, args ...any) error { return fmt.Errorf(format, args...) }
