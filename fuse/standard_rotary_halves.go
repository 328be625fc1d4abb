package fuse

import (
	"errors"
	"math"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// rotaryHalfRules make RotaryEmbedding of what turns the parts of x one by one, x1 cos - x2 sin and x1 sin + x2 cos, where the parts
// are the halves of the last axis or, interleaved, its even and odd elements. The heads of x come before the places, or behind them, or there is one.
func rotaryHalfRules(opset int64) []rewrite.Rule {
	turned := func() (*rewrite.Pattern, *rewrite.Pattern) {
		x1, x2, c, s := func() *rewrite.Pattern { return rewrite.Any("x1") }, func() *rewrite.Pattern { return rewrite.Any("x2") },
			func() *rewrite.Pattern { return rewrite.Any("cos") }, func() *rewrite.Pattern { return rewrite.Any("sin") }
		return rewrite.P("Sub", times(x1(), c()), times(x2(), s())), plus(times(x1(), s()), times(x2(), c()))
	}
	a, b := turned()
	p, q := turned()
	pair := func(y *rewrite.Pattern) *rewrite.Pattern { return rewrite.P("Unsqueeze", y, rewrite.Const("axis")) }
	return since(opset, 23,
		rewrite.Rule{
			Name: "rotary-halves", Doc: "(x1 cos - x2 sin, x1 sin + x2 cos) of halves = RotaryEmbedding(x, cos, sin)", Effect: rewrite.Rounding,
			Root: rewrite.P("Concat", a, b),
			When: func(m *rewrite.Match) error { _, err := rotationOf(m, false); return err },
			Emit: emitRotation(false),
		},
		rewrite.Rule{
			Name: "rotary-pairs", Doc: "(x1 cos - x2 sin, x1 sin + x2 cos) of even and odd elements = RotaryEmbedding(x, cos, sin), interleaved", Effect: rewrite.Rounding,
			Root: rewrite.P("Reshape", rewrite.P("Concat", pair(p), pair(q)).As("pairs"), rewrite.Any("shape")),
			When: func(m *rewrite.Match) error { _, err := rotationOf(m, true); return err },
			Emit: emitRotation(true),
		})
}

// rotation is what rotaryHalfRules found: x, and whether its second axis is that of places rather than of heads.
type rotation struct {
	x           *graph.Value
	placesFirst bool
}

var (
	errParts = errors.New("the parts are not known to be those of one value")
	errTable = errors.New("the table is not known to have an entry for each position")
)

func rotationOf(m *rewrite.Match, interleaved bool) (rotation, error) {
	var r rotation
	if r.x = partsOf(m, interleaved); r.x == nil {
		return r, errParts
	}
	t, y := r.x.Type, m.Out(0)
	rank := len(t.Shape)
	if rank != 3 && rank != 4 || !t.Elem.IsDifferentiable() || t.Elem == graph.Double || y == nil || !y.Type.Shape.Equal(t.Shape) {
		return r, rewrite.ErrUnlike
	}
	join := m.Root
	if interleaved {
		join = m.Node("pairs")
		if a := m.Const("axis"); a.I64 == nil || a.Len() != 1 || a.I64[0] != int64(rank) && a.I64[0] != -1 {
			return r, rewrite.ErrUnlike
		}
	}
	if axis := join.Int("axis", 0); axis != -1 && axis != int64(len(join.Out[0].Type.Shape)-1) {
		return r, rewrite.ErrUnlike
	}
	for i, name := range []string{"cos", "sin"} {
		v := m.V(name)
		s := v.Type.Shape
		n := len(s)
		if v.Type.Elem != t.Elem || n != 2 && n != rank || !s[n-1].Mul(graph.Known(2)).Equal(t.Shape[rank-1]) {
			return r, errTable
		}
		behind := rank == 4 && (n == 2 && s[0].Equal(t.Shape[2]) || n == 4 && isOne(s[1]) && s[2].Equal(t.Shape[2]))
		first := n == 4 && isOne(s[2]) && s[1].Equal(t.Shape[1]) || rank == 3 && s[n-2].Equal(t.Shape[1])
		if !behind && !first || n > 2 && !isOne(s[0]) && !s[0].Equal(t.Shape[0]) {
			return r, errTable
		}
		places := !behind
		if i > 0 && places != r.placesFirst {
			return r, errTable
		}
		r.placesFirst = places
	}
	if rank == 4 && r.placesFirst && (!isKnown(t.Shape[2]) || !isKnown(t.Shape[3])) {
		return r, errors.New("the number of heads or their size is not known")
	}
	return r, nil
}

// partsOf returns the value of which x1 and x2 are the halves of the last axis, or its even and odd elements; nil if that is not known.
func partsOf(m *rewrite.Match, interleaved bool) *graph.Value {
	a, b := m.Node("x1"), m.Node("x2")
	if a == nil || b == nil || a.Operand(0) == nil || a.Operand(0) != b.Operand(0) {
		return nil
	}
	x := a.In[0]
	r := len(x.Type.Shape)
	if r == 0 {
		return nil
	}
	d, ok := x.Type.Shape[r-1].Int()
	if !ok || d%2 != 0 {
		return nil
	}
	if a.Is("Split") && a == b && !interleaved {
		axis := a.Int("axis", 0)
		half, ok := a.Out[0].Type.Shape[r-1].Int()
		if len(a.Out) == 2 && m.V("x1").Index == 0 && m.V("x2").Index == 1 && (axis == -1 || axis == int64(r-1)) && ok && half == d/2 {
			return x
		}
		return nil
	}
	if !a.Is("Slice") || !b.Is("Slice") {
		return nil
	}
	if interleaved {
		if takes(m, a, r, 0, d-1, d, 2) && takes(m, b, r, 1, d-1, d, 2) {
			return x
		}
	} else if takes(m, a, r, 0, d/2, d, 1) && takes(m, b, r, d/2, d, d, 1) {
		return x
	}
	return nil
}

// takes reports whether a Slice takes the elements from, from+step, ... of the last of r axes, of d elements, up to one that is at least
// to.
func takes(m *rewrite.Match, n *graph.Node, r int, from, to, d, step int64) bool {
	get := func(i int, missing int64) (int64, bool) {
		v := n.Operand(i)
		if v == nil {
			return missing, i > 2
		}
		a := m.Known(v)
		if a == nil || a.I64 == nil || a.Len() != 1 {
			return 0, false
		}
		return a.I64[0], true
	}
	f, ok := get(1, 0)
	e, ok2 := get(2, 0)
	axis, ok3 := get(3, 0)
	s, ok4 := get(4, 1)
	if f < 0 && f >= -d {
		f += d
	}
	if e < 0 && e > math.MinInt64+d {
		e += d
	}
	if axis < 0 {
		axis += int64(r)
	}
	if step == 1 {
		return ok && ok2 && ok3 && ok4 && f == from && min(e, d) == to && axis == int64(r-1) && s == 1
	}
	return ok && ok2 && ok3 && ok4 && f == from && min(e, d) > to-1+from && axis == int64(r-1) && s == step
}

// emitRotation builds the operator. Where places come before heads it takes matrices, of all heads side by side.
func emitRotation(interleaved bool) func(b *op.Builder, m *rewrite.Match) []*graph.Value {
	return func(b *op.Builder, m *rewrite.Match) []*graph.Value {
		r, err := rotationOf(m, interleaved)
		if err != nil {
			return nil
		}
		var attrs []*graph.Attr
		x := r.x
		shape := x.Type.Shape
		rank, heads, size := len(shape), int64(1), int64(0)
		if rank == 4 && r.placesFirst {
			heads, _ = shape[2].Int()
			size, _ = shape[3].Int()
			x = b.ReshapeTo(x, 0, 0, heads*size)
		}
		if r.placesFirst {
			attrs = append(attrs, graph.IntAttr("num_heads", heads))
		}
		if interleaved {
			attrs = append(attrs, graph.IntAttr("interleaved", 1))
		}
		in := []*graph.Value{x}
		for _, name := range []string{"cos", "sin"} {
			v := m.V(name)
			switch {
			case len(v.Type.Shape) == 2:
				v = b.Unsqueeze(v, 0)
			case rank == 3:
			case r.placesFirst:
				v = b.Squeeze(v, 2)
			default:
				v = b.Squeeze(v, 1)
			}
			if !v.Type.Shape[0].Equal(shape[0]) {
				v = b.Expand(v, joined(b, b.DimOf(r.x, 0), b.Ints(1, 1)))
			}
			in = append(in, v)
		}
		y := b.Op("RotaryEmbedding", in, attrs...)
		if rank == 4 && r.placesFirst {
			y = b.ReshapeTo(y, 0, 0, heads, size)
		}
		return one(y)
	}
}
