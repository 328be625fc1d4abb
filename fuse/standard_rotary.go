package fuse

import (
	"errors"
	"math"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// rotaryRules make RotaryEmbedding of x cos + (-x2, x1) sin, where x1 and x2 are the halves of x. The operator takes half a table: both
// halves of cos and sin must provably be the same.
func rotaryRules(opset int64) []rewrite.Rule {
	x := func() *rewrite.Pattern { return rewrite.Any("x") }
	half := func(name string) *rewrite.Pattern {
		return rewrite.P("Slice", x(), rewrite.Const(name+"from"), rewrite.Const(name+"to"), rewrite.Const(name+"axis"), rewrite.Const(name+"step").Opt())
	}
	turned := rewrite.P("Concat", rewrite.P("Neg", half("b")), half("a")).As("turned")
	return since(opset, 23, rewrite.Rule{
		Name: "rotary", Doc: "x cos + (-x2, x1) sin = RotaryEmbedding(x, cos, sin)", Effect: rewrite.Rounding,
		Root: plus(times(x(), rewrite.Any("cos")), times(turned, rewrite.Any("sin"))),
		When: func(m *rewrite.Match) error {
			t := m.V("x").Type
			if len(t.Shape) != 4 || !t.Elem.IsDifferentiable() || t.Elem == graph.Double {
				return rewrite.ErrUnlike
			}
			d, ok := t.Shape[3].Int()
			if a := m.Node("turned").Int("axis", 0); !ok || d%2 != 0 || a != 3 && a != -1 || !halfOf(m, "a", 0, d/2, d) || !halfOf(m, "b", d/2, d, d) {
				return rewrite.ErrUnlike
			}
			for _, name := range []string{"cos", "sin"} {
				v := m.V(name)
				s := v.Type.Shape
				if v.Type.Elem != t.Elem || len(s) != 2 && len(s) != 4 || !s[len(s)-1].Equal(t.Shape[3]) || !s[len(s)-2].Equal(t.Shape[2]) {
					return errors.New("the table is not known to have an entry for each position")
				}
				if len(s) == 4 {
					if n, ok := s[1].Int(); !ok || n != 1 {
						return errors.New("the table differs between heads")
					}
					if n, ok := s[0].Int(); !(ok && n == 1) && !s[0].Equal(t.Shape[0]) {
						return errors.New("the table has other batches than what is turned")
					}
				}
				if !twice(v) {
					return errors.New("the halves of the table are not known to be the same")
				}
			}
			return nil
		},
		Emit: func(b *op.Builder, m *rewrite.Match) []*graph.Value {
			x := m.V("x")
			d, _ := x.Type.Shape[3].Int()
			in := []*graph.Value{x}
			for _, name := range []string{"cos", "sin"} {
				v := b.Slice(m.V(name), b.Ints(0), b.Ints(d/2), b.Ints(-1), nil)
				if len(v.Type.Shape) == 4 {
					v = b.Squeeze(v, 1)
				} else {
					v = b.Unsqueeze(v, 0)
				}
				if !v.Type.Shape[0].Equal(x.Type.Shape[0]) {
					v = b.Expand(v, b.Concat(0, b.DimOf(x, 0), b.Ints(1, 1)))
				}
				in = append(in, v)
			}
			return one(b.Op("RotaryEmbedding", in))
		},
	})
}

// halfOf reports whether the Slice whose operands have names with the prefix is from:to of the last of four axes of size d.
func halfOf(m *rewrite.Match, prefix string, from, to, d int64) bool {
	get := func(name string) (int64, bool) {
		a := m.Const(prefix + name)
		if a == nil || a.I64 == nil || a.Len() != 1 {
			return 0, false
		}
		return a.I64[0], true
	}
	a, ok := get("from")
	b, ok2 := get("to")
	axis, ok3 := get("axis")
	if m.V(prefix+"step") != nil {
		if s, ok := get("step"); !ok || s != 1 {
			return false
		}
	}
	if a < 0 && a >= -d {
		a += d
	}
	if b < 0 && b > math.MinInt64+d {
		b += d
	}
	return ok && ok2 && ok3 && (axis == 3 || axis == -1) && a == from && min(b, d) == to
}

// twice reports whether v's last axis holds the same numbers twice: v is an element-wise function of a Concat of one value
// with itself.
func twice(v *graph.Value) bool {
	for range 8 {
		n := v.Def
		if n == nil {
			return false
		}
		switch {
		case n.Is("Concat"):
			a := n.Int("axis", 0)
			return len(n.In) == 2 && n.In[0] == n.In[1] && (a == -1 || a == int64(len(v.Type.Shape)-1))
		case n.Is("Cos"), n.Is("Sin"), n.Is("Cast"), n.Is("Identity"):
			v = n.In[0]
		case n.Is("Unsqueeze"):
			// New axes in front leave the last one last.
			if s := n.In[0].Type.Shape; len(s) == 0 || !s[len(s)-1].Equal(v.Type.Shape[len(v.Type.Shape)-1]) {
				return false
			}
			v = n.In[0]
		case n.Is("Mul") && single(n.In[1]):
			v = n.In[0]
		case n.Is("Mul") && single(n.In[0]):
			v = n.In[1]
		default:
			return false
		}
	}
	return false
}

// single reports whether v has one element.
func single(v *graph.Value) bool {
	n, ok := v.Type.Shape.Size().Int()
	return v.Type.Shape != nil && ok && n == 1
}
