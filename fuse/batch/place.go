package batch

import "gradtool/graph"

// place says where in a value the batch lies: the axis has outer * N * inner elements, in row-major order, of which a part of the
// batch has outer * n * inner.
type place struct {
	axis         int
	outer, inner graph.Dim
	// unit is set for integers that are positions in a flat tensor of N * unit elements: those of a part count from its beginning.
	unit *graph.Dim
	in   *graph.Value // that tensor, as the given graph has it
	// sum says that the value is the sum of what the parts hold, which are of its own shape; there is no axis then.
	sum bool
}

var one = graph.Known(1)

// plain returns the place of an axis that is the batch and nothing else.
func plain(axis int) *place { return &place{axis: axis, outer: one, inner: one} }

// moved returns p on another axis.
func (p *place) moved(axis int) *place {
	q := *p
	q.axis = axis
	return &q
}

// values returns p for values that are no positions.
func (p *place) values() *place {
	q := *p
	q.unit, q.in = nil, nil
	return &q
}

// same reports whether p and q divide values alike.
func (p *place) same(q *place) bool {
	if p == nil || q == nil {
		return p == q
	}
	if p.sum || q.sum {
		return p.sum && q.sum
	}
	if (p.unit == nil) != (q.unit == nil) || p.unit != nil && !p.unit.Equal(*q.unit) {
		return false
	}
	return p.axis == q.axis && p.outer.Equal(q.outer) && p.inner.Equal(q.inner)
}

// size returns the size of the axis for n samples.
func (p *place) size(n graph.Dim) graph.Dim { return p.outer.Mul(n).Mul(p.inner) }

// fits reports whether a value of shape s can have the batch of n there.
func (p *place) fits(s graph.Shape, n graph.Dim) bool {
	return p.sum || p.axis >= 0 && p.axis < len(s) && s[p.axis].Equal(p.size(n))
}

// exact returns a/b if that is certain to have no remainder.
func exact(a, b graph.Dim) (graph.Dim, bool) {
	if n, ok := b.Int(); ok && n == 0 {
		return graph.Dim{}, false
	}
	q := a.FloorDiv(b)
	return q, !q.IsUnknown() && q.Mul(b).Equal(a)
}

// product multiplies dimensions.
func product(s graph.Shape) graph.Dim {
	p := one
	for _, d := range s {
		p = p.Mul(d)
	}
	return p
}

// reshaped returns where the batch of n lies when a value of shape s becomes one of shape t, nil if it lies in no single axis.
func (p *place) reshaped(s, t graph.Shape, n graph.Dim) *place {
	before := product(s[:p.axis]).Mul(p.outer)
	behind := product(s[p.axis+1:]).Mul(p.inner)
	for b := range t {
		outer, ok1 := exact(before, product(t[:b]))
		inner, ok2 := exact(behind, product(t[b+1:]))
		if !ok1 || !ok2 {
			continue
		}
		q := &place{axis: b, outer: outer, inner: inner, unit: p.unit, in: p.in}
		if q.fits(t, n) {
			return q
		}
	}
	return nil
}

// align returns where the axis of p lies in a tensor of rank `rank` that is broadcast against one of rank `of`; negative where it
// has no such axis.
func align(axis, of, rank int) int { return axis - of + rank }
