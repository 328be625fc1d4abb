package prune

import (
	"math"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// chainRules join operators in a row that copy elements from place to place.
func chainRules() []rewrite.Rule {
	P, Any := rewrite.P, rewrite.Any
	return []rewrite.Rule{
		{Name: "slice-slice-axis", Doc: "x[a:b][c:d] = x[a+c : min(b, a+d)], for places counted from the front",
			Root: P("Slice", P("Slice", Any("x"), Any("starts0"), Any("ends0"), Any("axes0").Opt(), Any("steps0").Opt()).As("z"), Any("starts"), Any("ends"), Any("axes").Opt(), Any("steps").Opt()),
			When: sameAxes, Emit: nestSlices},
		{Name: "pad-pad", Doc: "Pad(Pad(x)) = Pad(x) by the sum, with one constant and no cropping",
			Root: P("Pad", P("Pad", Any("x"), Any("pads0"), Any("value0").Opt(), Any("axes0").Opt()).As("z"), Any("pads"), Any("value").Opt(), Any("axes").Opt()),
			When: padsAdd, Emit: addPads},
		{Name: "split-concat", Doc: "Split(Concat(x, y)) = x, y, where the sizes agree", Benefit: 2, Root: P("Split", P("Concat").More().As("z").Shared(), Any("sizes").Opt()),
			When: splitsAgree, Emit: func(b *op.Builder, m *match) []*graph.Value { return slices.Clone(m.Node("z").In) }},
		{Name: "slice-concat", Doc: "Concat(x, y)[a:b] = x or y, or a part of it, where a to b lies in one piece", Root: P("Slice", P("Concat").More().As("z").Shared(), Any("starts"), Any("ends"), Any("axes").Opt(), Any("steps").Opt()),
			When: func(m *match) error { _, _, err := pieceOf(m); return err }, Emit: one(func(b *op.Builder, m *match) *graph.Value {
				v, p, err := pieceOf(m)
				if err != nil {
					return nil
				}
				axis, _ := axisOf(m.Node("z"), m.V("z").Type.Shape)
				return b.Slice(v, b.Ints(p.from), b.Ints(p.to), b.Ints(int64(axis)), nil)
			})},
		{Name: "concat-slices", Doc: "Concat(x[a:b], x[b:c]) = x[a:c] along one axis", Root: P("Concat").More(), When: func(m *match) error {
			if len(m.Root.In) < 2 {
				return rewrite.ErrUnlike
			}
			return runOfSlices(m, nil)
		}, Emit: one(func(b *op.Builder, m *match) *graph.Value {
			var r sliceRun
			if runOfSlices(m, &r) != nil {
				return nil
			}
			return b.Op("Slice", values(r.x, b.Ints(r.start), b.Ints(r.end), b.Ints(int64(r.axis))))
		})},
		{Name: "concat-filled", Doc: "Concat(c, x, c) = Pad(x), where c repeats one number", Root: P("Concat").More(), When: func(m *match) error { return paddedBy(m, nil) },
			Emit: one(func(b *op.Builder, m *match) *graph.Value {
				var p padding
				if paddedBy(m, &p) != nil {
					return nil
				}
				rank := len(p.x.Type.Shape)
				pads := make([]int64, 2*rank)
				pads[p.axis], pads[rank+p.axis] = p.before, p.after
				return b.Op("Pad", values(p.x, b.Ints(pads...), b.Const(p.value.WithShape([]int{}).Tensor())))
			})},
		{Name: "gather-all", Doc: "Gather(x, [0, 1, ...]) of all places along an axis = x", Benefit: 2, Root: P("Gather", Any("x"), Any("i")), When: func(m *match) error {
			s := m.V("x").Type.Shape
			axis, ok := axisOf(m.Root, s)
			i := m.Const("i")
			if !ok || i == nil || i.I64 == nil || len(i.Shape) != 1 {
				return rewrite.ErrUnlike
			}
			if n, ok := s[axis].Int(); !ok || int(n) != i.Len() || !counts(i.I64, 0) {
				return rewrite.ErrUnlike
			}
			return nil
		}, Emit: x},
		{Name: "maxpool-pad", Doc: "MaxPool(Pad(x) by -inf) = MaxPool(x) with pads", Root: P("MaxPool", P("Pad", Any("x"), Any("pads"), Any("value")).As("z")), When: poolPads,
			Emit: one(func(b *op.Builder, m *match) *graph.Value {
				return b.Op("MaxPool", values(m.V("x")), withPads(m)...)
			})},
		{Name: "scatter-all", Doc: "ScatterND(x, [[0], [1], ...], u) that writes every row = u", Benefit: 2, Root: P("ScatterND", Any("y"), Any("i"), Any("x")), When: func(m *match) error {
			return all(plainScatter, writesRows(true))(m)
		}, Emit: x},
		{Name: "scatter-elements-all", Doc: "ScatterElements(y, i, x) that writes every element in its place = x", Benefit: 2, Root: P("ScatterElements", Any("y"), Any("i"), Any("x")),
			When: all(plainScatter, writesInPlace), Emit: x},
		{Name: "scatter-filled", Doc: "ScatterND(c, [[a], [a+1], ...], u) = Pad(u), where c repeats one number", Root: P("ScatterND", Any("y"), Any("i"), Any("x")), When: func(m *match) error {
			if v := m.V("y"); !filler(v) || splat(m.Known, v) == nil {
				return rewrite.ErrUnlike
			}
			return all(plainScatter, writesRows(false), padable("x"))(m)
		}, Emit: one(func(b *op.Builder, m *match) *graph.Value {
			x, first := m.V("x"), m.Const("i").I64[0]
			rank := len(x.Type.Shape)
			pads := make([]int64, 2*rank)
			all, _ := m.V("y").Type.Shape[0].Int()
			pads[0], pads[rank] = first, all-first-int64(m.Const("i").Shape[0])
			return b.Op("Pad", values(x, b.Ints(pads...), b.Const(splat(m.Known, m.V("y")).WithShape([]int{}).Tensor())))
		})},
	}
}

// counts reports whether list is from, from+1, ...
func counts(list []int64, from int64) bool {
	for k, v := range list {
		if v != from+int64(k) {
			return false
		}
	}
	return true
}

// bounds are where a Slice starts and ends along an axis.
type bounds struct{ from, to, step int64 }

// boundsOf returns the bounds that the captured Slice has along each axis that it names, for a known rank.
func boundsOf(m *match, k string) (map[int]bounds, error) {
	rank := len(m.V("x").Type.Shape)
	at, err := sliceAxes(m, "starts"+k, "axes"+k, rank)
	if err != nil {
		return nil, err
	}
	from, err := ints(m, m.V("starts"+k))
	if err != nil {
		return nil, err
	}
	to, err := ints(m, m.V("ends"+k))
	if err != nil {
		return nil, err
	}
	by, err := ints(m, m.V("steps"+k))
	if err != nil {
		return nil, err
	}
	if len(from) != len(at) || len(to) != len(at) || by != nil && len(by) != len(at) {
		return nil, errUnknown
	}
	out := map[int]bounds{}
	for i, a := range at {
		step := int64(1)
		if by != nil {
			step = by[i]
		}
		out[a] = bounds{from[i], to[i], step}
	}
	return out, nil
}

// sameAxes holds where two Slices in a row share an axis, and can be joined along each that they share.
func sameAxes(m *match) error {
	if m.V("x").Type.Shape == nil {
		return errUnknown
	}
	inner, err := boundsOf(m, "0")
	if err != nil {
		return err
	}
	outer, err := boundsOf(m, "")
	if err != nil {
		return err
	}
	shared := false
	for a := range m.V("x").Type.Shape {
		p, ok := inner[a]
		q, ok2 := outer[a]
		if !ok || !ok2 {
			continue
		}
		shared = true
		for _, r := range []bounds{p, q} {
			if r.step != 1 || r.from < 0 || r.to < 0 {
				return reason("axis %d is counted from the back, or in steps", a)
			}
		}
	}
	if !shared {
		return rewrite.ErrUnlike
	}
	return nil
}

// nestSlices makes one Slice of two. Bounds beyond the end are clamped by either.
func nestSlices(b *op.Builder, m *match) []*graph.Value {
	inner, _ := boundsOf(m, "0")
	outer, _ := boundsOf(m, "")
	var starts, ends, axes, steps []int64
	for a := range m.V("x").Type.Shape {
		p, ok := inner[a]
		q, ok2 := outer[a]
		switch {
		case !ok && !ok2:
			continue
		case ok && ok2:
			to := p.to
			if q.to <= math.MaxInt64-p.from {
				to = min(to, p.from+q.to)
			}
			from := int64(math.MaxInt64)
			if q.from <= math.MaxInt64-p.from {
				from = p.from + q.from
			}
			p = bounds{from, max(to, 0), 1}
		case ok2:
			p = q
		}
		starts, ends, axes, steps = append(starts, p.from), append(ends, p.to), append(axes, int64(a)), append(steps, p.step)
	}
	in := values(m.V("x"), b.Ints(starts...), b.Ints(ends...), b.Ints(axes...))
	if slices.ContainsFunc(steps, func(s int64) bool { return s != 1 }) {
		in = append(in, b.Ints(steps...))
	}
	return values(b.Op("Slice", in))
}

// padsOf returns the pads of the captured Pad for every axis, those in front and those behind.
func padsOf(m *match, k string, rank int) (front, back []int64, err error) {
	pads, err := ints(m, m.V("pads"+k))
	if err != nil {
		return nil, nil, err
	}
	axes := make([]int, rank)
	for i := range axes {
		axes[i] = i
	}
	if v := m.V("axes" + k); v != nil {
		if axes, err = axesOf(m, v, rank); err != nil {
			return nil, nil, err
		}
	}
	if len(pads) != 2*len(axes) {
		return nil, nil, errUnknown
	}
	front, back = make([]int64, rank), make([]int64, rank)
	for i, a := range axes {
		front[a], back[a] = pads[i], pads[len(axes)+i]
	}
	return front, back, nil
}

// padsAdd holds where two Pads in a row put the same constant around.
func padsAdd(m *match) error {
	x := m.V("x").Type.Shape
	if x == nil {
		return errUnknown
	}
	for _, n := range []*graph.Node{m.Root, m.Node("z")} {
		if n.Str("mode", "constant") != "constant" {
			return reason("they repeat elements")
		}
	}
	for _, k := range []string{"", "0"} {
		front, back, err := padsOf(m, k, len(x))
		if err != nil {
			return err
		}
		for _, p := range slices.Concat(front, back) {
			if p < 0 || p > 1<<40 {
				return reason("one of them crops")
			}
		}
	}
	a, b := m.V("value"), m.V("value0")
	zero := func(v *graph.Value) (*op.Array, bool) {
		if v == nil {
			return nil, true
		}
		c := m.Known(v)
		return c, c != nil && c.Len() == 1 && c.Str == nil && c.C128 == nil
	}
	p, ok := zero(a)
	q, ok2 := zero(b)
	switch {
	case !ok || !ok2:
		return errTrains
	case p != nil && q != nil:
		if !sameBits(p.WithShape([]int{}), q.WithShape([]int{})) {
			return reason("the constants differ")
		}
	case p != nil && !isPlusZero(p), q != nil && !isPlusZero(q):
		return reason("the constants differ")
	}
	return nil
}

func isPlusZero(a *op.Array) bool { return a.Float(0) == 0 && !math.Signbit(a.Float(0)) }

func addPads(b *op.Builder, m *match) []*graph.Value {
	rank := len(m.V("x").Type.Shape)
	pads := make([]int64, 2*rank)
	for _, k := range []string{"", "0"} {
		front, back, err := padsOf(m, k, rank)
		if err != nil {
			return nil
		}
		for i := range rank {
			pads[i] += front[i]
			pads[rank+i] += back[i]
		}
	}
	in := values(m.V("x"), b.Ints(pads...))
	if v := m.V("value"); v != nil {
		in = append(in, v)
	} else if v := m.V("value0"); v != nil {
		in = append(in, v)
	}
	return values(b.Op("Pad", in))
}

// splitsAgree holds where the root takes apart, at the same places, what a Concat has put together.
func splitsAgree(m *match) error {
	z := m.Node("z")
	axis, ok := axisOf(m.Root, m.V("z").Type.Shape)
	axis2, ok2 := axisOf(z, m.V("z").Type.Shape)
	if !ok || !ok2 || axis != axis2 || len(z.In) != len(m.Root.Out) {
		return rewrite.ErrUnlike
	}
	for i, v := range z.In {
		if v == nil {
			return rewrite.ErrUnlike
		}
		y := m.Root.Out[i]
		if y == nil {
			continue
		}
		if len(v.Type.Shape) <= axis || len(y.Type.Shape) <= axis {
			return errUnknown
		}
		n, ok := v.Type.Shape[axis].Int()
		k, ok2 := y.Type.Shape[axis].Int()
		if !ok || !ok2 || n != k {
			return reason("the sizes of part %d differ, or are not known", i)
		}
	}
	if slices.Contains(m.Root.Out, nil) {
		return reason("the size of a part is not known")
	}
	return nil
}
