package prune

import (
	"math"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// Conditions of the rules that join several operands of a node, see chainRules.

// sliceRun is a part of x that several Slices copy piece by piece.
type sliceRun struct {
	x          *graph.Value
	axis       int
	start, end int64
}

// runOfSlices holds where the root concatenates neighbouring pieces of one value, cut along the axis of the root, which
// nobody else reads. It fills r unless that is nil. Bounds beyond the end of x are clamped in the pieces as in the whole.
func runOfSlices(m *match, r *sliceRun) error {
	var run sliceRun
	for i, v := range m.Root.In {
		if v == nil || v.Def == nil || !v.Def.Is("Slice") || v.Def.Graph != m.Root.Graph || refers(v.Def) || v.Def.In[0] == nil {
			return rewrite.ErrUnlike
		}
		x := v.Def.In[0]
		axis, ok := axisOf(m.Root, x.Type.Shape)
		if !ok || run.x != nil && x != run.x {
			return rewrite.ErrUnlike
		}
		p, err := soleBounds(m, v.Def, axis)
		if err != nil {
			return err
		}
		if n, ok := x.Type.Shape[axis].Int(); ok {
			p = clamped(p, n)
		}
		switch {
		case p.from < 0 || p.to < 0:
			return reason("piece %d is counted from the back", i)
		case i > 0 && p.from != run.end:
			return reason("piece %d does not begin where the one before ends", i)
		case p.to < p.from:
			return reason("piece %d is empty", i)
		case v.NumUses() > 1:
			return reason("piece %d is read elsewhere", i)
		}
		if run.x == nil {
			run = sliceRun{x, axis, p.from, p.to}
		}
		run.end = p.to
	}
	if run.x == nil {
		return rewrite.ErrUnlike
	}
	if r != nil {
		*r = run
	}
	return nil
}

// soleBounds returns the bounds of a Slice that cuts along the given axis only, in steps of 1.
func soleBounds(m *match, n *graph.Node, axis int) (bounds, error) {
	var list [4][]int64
	for i := range list {
		var err error
		if list[i], err = ints(m, n.Operand(i+1)); err != nil {
			return bounds{}, err
		}
	}
	from, to, axes, steps := list[0], list[1], list[2], list[3]
	if len(from) != 1 || len(to) != 1 || steps != nil && (len(steps) != 1 || steps[0] != 1) {
		return bounds{}, rewrite.ErrUnlike
	}
	at := int64(0)
	if len(axes) == 1 {
		if at = axes[0]; at < 0 {
			at += int64(len(n.In[0].Type.Shape))
		}
	}
	if at != int64(axis) || len(axes) > 1 {
		return bounds{}, rewrite.ErrUnlike
	}
	return bounds{from[0], to[0], 1}, nil
}

// clamped counts bounds from the front, for an axis of n elements.
func clamped(p bounds, n int64) bounds {
	at := func(k int64) int64 {
		if k < 0 {
			k += n
		}
		return min(max(k, 0), n)
	}
	return bounds{at(p.from), at(p.to), p.step}
}

// padding is what a Concat puts around x along an axis.
type padding struct {
	x             *graph.Value
	axis          int
	before, after int64
	value         *op.Array
}

// paddedBy holds where the root puts filled tensors, at least one of them computed, around one other value. It fills p
// unless that is nil.
func paddedBy(m *match, p *padding) error {
	var pad padding
	computed := false
	for _, v := range m.Root.In {
		if v == nil {
			return rewrite.ErrUnlike
		}
		computed = computed || filler(v)
	}
	if !computed {
		return rewrite.ErrUnlike
	}
	for _, v := range m.Root.In {
		a := splat(m.Known, v)
		if a == nil || pad.value != nil && !sameBits(a, pad.value) {
			if pad.x != nil {
				return reason("more than one part is not filled with the same number")
			}
			axis, ok := axisOf(m.Root, v.Type.Shape)
			if !ok {
				return errUnknown
			}
			pad.x, pad.axis = v, axis
			continue
		}
		pad.value = a
		axis, ok := axisOf(m.Root, v.Type.Shape)
		if !ok {
			return errUnknown
		}
		n, ok := v.Type.Shape[axis].Int()
		switch {
		case !ok:
			return errUnknown
		case pad.x == nil:
			pad.before += n
		default:
			pad.after += n
		}
	}
	if pad.x == nil || pad.value == nil {
		return rewrite.ErrUnlike
	}
	if err := padableValue(pad.x); err != nil {
		return err
	}
	if p != nil {
		*p = pad
	}
	return nil
}

// padableValue holds for values of types that every opset pads.
func padableValue(v *graph.Value) error {
	switch v.Type.Elem {
	case graph.Float, graph.Double, graph.Float16:
		return nil
	}
	return reason("not every opset pads %s", v.Type.Elem)
}

func padable(name string) func(m *match) error {
	return func(m *match) error { return padableValue(m.V(name)) }
}

// poolPads holds where the root, a MaxPool, can see to the padding of z itself.
func poolPads(m *match) error {
	s := m.V("x").Type.Shape
	v := m.Const("value")
	n := m.Root
	switch {
	case s == nil:
		return errUnknown
	case v == nil || !v.IsFloat() || v.Len() != 1 || !math.IsInf(v.Float(0), -1):
		return reason("the padding is not -inf")
	case m.Node("z").Str("mode", "constant") != "constant":
		return reason("the padding repeats elements")
	case n.Result(1) != nil && n.Result(1).NumUses() > 0:
		return reason("the indices are read")
	case n.Int("ceil_mode", 0) != 0 || n.Str("auto_pad", "NOTSET") != "NOTSET" && n.Str("auto_pad", "NOTSET") != "VALID":
		return reason("where windows begin depends on the padded size")
	}
	front, back, err := padsOf(m, "", len(s))
	if err != nil {
		return err
	}
	kernel := n.Ints("kernel_shape")
	own := n.Ints("pads")
	if len(kernel) != len(s)-2 || own != nil && len(own) != 2*len(kernel) {
		return errUnknown
	}
	for a := range s {
		if a < 2 {
			if front[a] != 0 || back[a] != 0 {
				return reason("batch or channels are padded")
			}
			continue
		}
		f, k := front[a], back[a]
		if own != nil {
			f, k = f+own[a-2], k+own[len(kernel)+a-2]
		}
		if front[a] < 0 || back[a] < 0 || f >= kernel[a-2] || k >= kernel[a-2] {
			return reason("a window may lie in the padding alone")
		}
	}
	return nil
}

// withPads returns the attributes of the root, with the pads of z added to its own.
func withPads(m *match) []*graph.Attr {
	rank := len(m.V("x").Type.Shape)
	front, back, _ := padsOf(m, "", rank)
	pads := slices.Concat(front[2:], back[2:])
	for i, p := range m.Root.Ints("pads") {
		pads[i] += p
	}
	var out []*graph.Attr
	for _, a := range m.Root.Attrs {
		if a.Name != "pads" && a.Name != "auto_pad" {
			out = append(out, a)
		}
	}
	return append(out, graph.IntsAttr("pads", pads...))
}

// plainScatter holds where the root writes what it is given, the last one where two meet.
func plainScatter(m *match) error {
	if r := m.Root.Str("reduction", "none"); r != "none" {
		return reason("it computes with what was there (%s)", r)
	}
	return nil
}

// writesRows returns a condition that the indices of the root, a ScatterND, name rows in a row; with all every one.
func writesRows(everyOne bool) func(m *match) error {
	return func(m *match) error {
		i, s := m.Const("i"), m.V("y").Type.Shape
		switch {
		case i == nil || i.I64 == nil || len(i.Shape) != 2 || i.Shape[1] != 1 || i.Len() == 0:
			return rewrite.ErrUnlike
		case len(s) == 0 || m.V("x").Type.Shape == nil:
			return errUnknown
		}
		n, ok := s[0].Int()
		first := i.I64[0]
		switch {
		case !ok:
			return errUnknown
		case first < 0 || !counts(i.I64, first):
			return reason("the rows are not in order")
		case everyOne && (first != 0 || int64(i.Len()) != n):
			return reason("not every row is written")
		}
		return nil
	}
}

// pieceOf returns the operand of a Concat that alone holds what the root, a Slice of it, takes, and the bounds in it.
func pieceOf(m *match) (*graph.Value, bounds, error) {
	z := m.Node("z")
	s := m.V("z").Type.Shape
	axis, ok := axisOf(z, s)
	if !ok {
		return nil, bounds{}, errUnknown
	}
	p, err := soleBoundsOf(m, axis, len(s))
	if err != nil {
		return nil, bounds{}, err
	}
	if n, ok := s[axis].Int(); ok {
		p = clamped(p, n)
	}
	if p.from < 0 || p.to < p.from {
		return nil, bounds{}, rewrite.ErrUnlike
	}
	at := int64(0)
	for i, v := range z.In {
		if v == nil || v.Type.Shape == nil {
			return nil, bounds{}, errUnknown
		}
		n, ok := v.Type.Shape[axis].Int()
		last := i == len(z.In)-1
		switch {
		case !ok && !last:
			return nil, bounds{}, errUnknown
		case !ok && p.from >= at: // the last piece takes all that follows
			return v, bounds{p.from - at, p.to - at, 1}, nil
		case ok && p.from >= at && p.to <= at+n:
			return v, bounds{p.from - at, p.to - at, 1}, nil
		case ok && p.from < at+n:
			return nil, bounds{}, rewrite.ErrUnlike
		}
		at += n
	}
	return nil, bounds{}, rewrite.ErrUnlike
}

// soleBoundsOf returns the bounds of the root, a Slice along one axis in steps of 1.
func soleBoundsOf(m *match, axis, rank int) (bounds, error) {
	at, err := sliceAxes(m, "starts", "axes", rank)
	if err != nil {
		return bounds{}, err
	}
	if len(at) != 1 || at[0] != axis {
		return bounds{}, rewrite.ErrUnlike
	}
	return soleBounds(m, m.Root, axis)
}

// writesInPlace holds where the indices of the root, a ScatterElements, are those of each element itself.
func writesInPlace(m *match) error {
	i, s := m.Const("i"), m.V("y").Type.Shape
	axis, ok := axisOf(m.Root, s)
	if i == nil || i.I64 == nil || !ok {
		return rewrite.ErrUnlike
	}
	dims, known := s.Ints()
	switch {
	case !known:
		return errUnknown
	case len(dims) != len(i.Shape):
		return rewrite.ErrUnlike
	}
	inner := int64(1)
	for k, n := range dims {
		if int64(i.Shape[k]) != n {
			return reason("not every element is written")
		}
		if k > axis {
			inner *= n
		}
	}
	for k, at := range i.I64 {
		if at != int64(k)/inner%dims[axis] {
			return reason("elements are written elsewhere")
		}
	}
	return nil
}
