package graph

import "math"

// bound is one end of an interval; an end that is not ok is infinite.
type bound struct {
	v  int64
	ok bool
}

// interval is a range of integers, both ends included.
type interval struct{ lo, hi bound }

// boundSteps limits the relaxations tried for one bound.
const boundSteps = 64

// Bounds returns provable limits of d, using that symbols are >= 0 and that
// divisors are not zero. An end that is not known is not limited, or not
// provably so. An unknown dimension has none.
func (d Dim) Bounds() (lo, hi int64, loKnown, hiKnown bool) {
	in := d.interval()
	return in.lo.v, in.hi.v, in.lo.ok, in.hi.ok
}

func (d Dim) interval() interval { return interval{d.lower(), d.upper()} }

func (d Dim) lower() bound {
	switch {
	case d.known:
		return bound{d.n, true}
	case d.e == nil:
		return bound{}
	}
	steps := boundSteps
	return lowerBound(d.e.poly, 1, nil, &steps)
}

func (d Dim) upper() bound {
	if d.e == nil {
		return d.lower()
	}
	neg, ok := addScaled(d.e.poly, -1, poly{}, 0)
	if !ok {
		return bound{}
	}
	steps := boundSteps
	b := lowerBound(neg, 1, nil, &steps)
	v, ok := mulInt(b.v, -1)
	return bound{v, b.ok && ok}
}

// LessEq reports whether d <= e provably holds.
func (d Dim) LessEq(e Dim) bool {
	if d.IsUnknown() || e.IsUnknown() {
		return false
	}
	if d.known && e.known {
		return d.n <= e.n
	}
	if lessEqTrivial(d, e) {
		return true
	}
	lo := e.Sub(d).lower()
	return lo.ok && lo.v >= 0
}

// Less reports whether d < e provably holds.
func (d Dim) Less(e Dim) bool {
	if d.known && e.known {
		return d.n < e.n
	}
	lo := e.Sub(d).lower()
	return lo.ok && lo.v > 0
}

// Equal reports whether d and e are provably the same number whatever the
// symbols stand for. An unknown dimension equals nothing, not even itself.
func (d Dim) Equal(e Dim) bool {
	if d.IsUnknown() || e.IsUnknown() {
		return false
	}
	if d.Same(e) {
		return true
	}
	// Between plain polynomials the canonical text decides; quotients, maxima
	// and minima have several canonical spellings, such as
	// floor((N + 1)/2) and N - floor(N/2).
	if d.plain() && e.plain() {
		return false
	}
	in := d.Sub(e).interval()
	return in.lo == bound{0, true} && in.hi == bound{0, true}
}

// plain reports whether d has no atoms but symbols.
func (d Dim) plain() bool {
	if d.e != nil {
		for _, t := range d.e.terms {
			for _, a := range t.mono {
				if a.kind != atomSymbol {
					return false
				}
			}
		}
	}
	return true
}

// ProvablyNot reports whether d and e differ whatever the symbols stand for,
// such as N and N + 1, or 2*N and 3.
func (d Dim) ProvablyNot(e Dim) bool {
	if d.known && e.known {
		return d.n != e.n
	}
	diff := d.Sub(e)
	if diff.IsUnknown() {
		return false
	}
	if g := diff.poly().content(false); g > 1 && diff.poly().c%g != 0 {
		return true
	}
	in := diff.interval()
	return in.lo.ok && in.lo.v > 0 || in.hi.ok && in.hi.v < 0
}

// lowerBound returns a lower bound of p/scale, rounded up to an integer (p is
// scale times an integer, or below it). The intervals of the atoms give a first
// bound; it is improved by putting for one floor, max or min at a time a linear
// bound in terms of its arguments, so that what depends on the same symbols
// cancels. Terms in kept are left alone.
func lowerBound(p poly, scale int64, kept []string, steps *int) bound {
	best := p.naiveLower()
	if best.ok {
		best.v = -floorDivInt(-best.v, scale)
	}
	if *steps <= 0 {
		return best
	}
	i, j := p.pickRelaxation(kept)
	if i < 0 {
		return best
	}
	*steps--
	t := p.terms[i]
	rest := append(append([]*atom(nil), t.mono[:j]...), t.mono[j+1:]...)
	without := poly{terms: append(append([]term(nil), p.terms[:i]...), p.terms[i+1:]...), c: p.c}
	best = higher(best, relax(without, t.coef, rest, t.mono[j], scale, kept, steps))
	// And once more with this term as it is, for the other ones.
	kept = append(kept[:len(kept):len(kept)], monoKey(t.mono))
	return higher(best, lowerBound(p, scale, kept, steps))
}

// pickRelaxation returns the term and the factor in it to relax next, or -1.
// Case distinctions, where each argument of a max or min must be tried and the
// worst one counts, come first: within a case a later choice is free to differ.
func (p poly) pickRelaxation(kept []string) (termAt, atomAt int) {
	termAt, atomAt = -1, -1
	best := 3
	for i, t := range p.terms {
		for j, a := range t.mono {
			rank := 2
			switch {
			case a.kind == atomSymbol || a.kind == atomFloor && !a.args[1].known:
				continue
			case a.kind == atomFloor:
				rank = 1
			case !anyArgBounds(a, t.coef):
				rank = 0
			}
			if rank >= best || contains(kept, t.mono) {
				continue
			}
			in := interval{bound{1, true}, bound{1, true}}
			for k, other := range t.mono {
				if k != j {
					in = mulInterval(in, other.in)
				}
			}
			if in.lo.ok && in.lo.v >= 0 {
				termAt, atomAt, best = i, j, rank
			}
		}
	}
	return termAt, atomAt
}

// anyArgBounds reports whether coef*a, for a max or min a, is bounded from
// below by coef times each of its arguments.
func anyArgBounds(a *atom, coef int64) bool { return (a.kind == atomMax) == (coef > 0) }

// relax bounds (p + coef*rest*a)/scale from below, rest being >= 0, by bounds of
// the atom a that are linear in its arguments.
func relax(p poly, coef int64, rest []*atom, a *atom, scale int64, kept []string, steps *int) bound {
	if a.kind == atomFloor {
		// (x - b + 1)/b <= floor(x/b) <= x/b for b > 0.
		b := a.args[1].n
		x := a.args[0].poly()
		if coef > 0 {
			var ok bool
			if x.c, ok = addInt(x.c, 1-b); !ok {
				return bound{}
			}
		}
		scale, ok1 := mulInt(scale, b)
		part, ok2 := mulTerm(x, coef, rest)
		sum, ok3 := addScaled(p, b, part, 1)
		if !ok1 || !ok2 || !ok3 {
			return bound{}
		}
		return lowerBound(sum, scale, kept, steps)
	}
	// The atom is one of its arguments, and bounds all of them on one side: with
	// that side in the right direction any argument gives a bound, so the best
	// one counts; in the other direction only the worst one is safe.
	anyWill := anyArgBounds(a, coef)
	var out bound
	for i, arg := range a.args {
		var b bound
		part, ok1 := mulTerm(arg.poly(), coef, rest)
		if sum, ok2 := addScaled(p, 1, part, 1); ok1 && ok2 {
			b = lowerBound(sum, scale, kept, steps)
		}
		switch {
		case i == 0:
			out = b
		case anyWill:
			out = higher(out, b)
		case !b.ok || out.ok && b.v < out.v:
			out = b
		}
	}
	return out
}

func higher(a, b bound) bound {
	if !a.ok || b.ok && b.v > a.v {
		return b
	}
	return a
}

func contains(kept []string, mono []*atom) bool {
	if len(kept) == 0 {
		return false
	}
	key := monoKey(mono)
	for _, k := range kept {
		if k == key {
			return true
		}
	}
	return false
}

func monoKey(mono []*atom) string { return poly{terms: []term{{1, mono}}}.text() }

// naiveLower adds up the lower ends of the terms.
func (p poly) naiveLower() bound {
	sum := p.c
	for _, t := range p.terms {
		in := monoInterval(t.mono)
		end := in.lo
		if t.coef < 0 {
			end = in.hi
		}
		v, ok1 := mulInt(end.v, t.coef)
		s, ok2 := addInt(sum, v)
		if !end.ok || !ok1 || !ok2 {
			return bound{}
		}
		sum = s
	}
	// The least int64 is left out so that the caller may negate the bound.
	return bound{sum, sum != math.MinInt64}
}

func monoInterval(mono []*atom) interval {
	in := interval{bound{1, true}, bound{1, true}}
	for _, a := range mono {
		in = mulInterval(in, a.in)
	}
	return in
}

// mulInterval returns an interval that holds all products.
func mulInterval(a, b interval) interval {
	if a.lo.ok && a.lo.v >= 0 && b.lo.ok && b.lo.v >= 0 {
		lo, ok := mulInt(a.lo.v, b.lo.v)
		if !ok {
			lo = 0
		}
		hi, ok := mulInt(a.hi.v, b.hi.v)
		return interval{bound{lo, true}, bound{hi, ok && a.hi.ok && b.hi.ok}}
	}
	if !a.lo.ok || !a.hi.ok || !b.lo.ok || !b.hi.ok {
		return interval{}
	}
	out := interval{bound{math.MaxInt64, true}, bound{math.MinInt64, true}}
	for _, x := range []int64{a.lo.v, a.hi.v} {
		for _, y := range []int64{b.lo.v, b.hi.v} {
			v, ok := mulInt(x, y)
			if !ok {
				return interval{}
			}
			out.lo.v, out.hi.v = min(out.lo.v, v), max(out.hi.v, v)
		}
	}
	return out
}

// quotientInterval returns an interval that holds floor(x/y) for x in num and
// y in den with y not 0.
func quotientInterval(num, den interval) interval {
	if !den.lo.ok || den.lo.v < 0 {
		return interval{}
	}
	least := max(den.lo.v, 1)
	if den.hi.ok && den.hi.v < least {
		return interval{}
	}
	var out interval
	if num.lo.ok {
		switch {
		case num.lo.v < 0:
			out.lo = bound{floorDivInt(num.lo.v, least), true}
		case den.hi.ok:
			out.lo = bound{floorDivInt(num.lo.v, den.hi.v), true}
		default:
			out.lo = bound{0, true}
		}
	}
	if num.hi.ok {
		switch {
		case num.hi.v >= 0:
			out.hi = bound{floorDivInt(num.hi.v, least), true}
		case den.hi.ok:
			out.hi = bound{floorDivInt(num.hi.v, den.hi.v), true}
		default:
			out.hi = bound{-1, true}
		}
	}
	return out
}

// extremumInterval returns the interval of the max or min of two values.
func extremumInterval(kind atomKind, a, b interval) interval {
	if kind == atomMin {
		m := extremumInterval(atomMax, a.mirror(), b.mirror())
		return m.mirror()
	}
	hi := bound{max(a.hi.v, b.hi.v), a.hi.ok && b.hi.ok}
	return interval{higher(a.lo, b.lo), hi}
}

// mirror returns the interval of the negated values.
func (in interval) mirror() interval {
	flip := func(b bound) bound { return bound{-b.v, b.ok && b.v != math.MinInt64} }
	return interval{flip(in.hi), flip(in.lo)}
}
