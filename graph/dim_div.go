package graph

import (
	"math"
	"slices"
	"strings"
)

// FloorDiv returns floor(d/c). By a known c, multiples of c are taken out of
// the quotient and nested quotients are merged; by a symbolic c, the division
// is carried out when it is exact and is otherwise an expression floor(d/c),
// which takes c to be non-zero. Division by a known 0 is unknown.
func (d Dim) FloorDiv(c Dim) Dim {
	switch {
	case d.IsUnknown() || c.IsUnknown() || c.known && c.n == 0:
		return Dim{}
	case c.known && c.n == 1:
		return d
	case c.known && c.n == -1:
		return d.Neg()
	case d.known && d.n == 0:
		return Known(0)
	case d.known && c.known:
		q := d.n / c.n
		if d.n%c.n != 0 && (d.n < 0) != (c.n < 0) {
			q--
		}
		return Known(q)
	}
	q, ok := floorQuotient(d.poly(), c.poly())
	if !ok {
		return Dim{}
	}
	return q
}

// CeilDiv returns ceil(d/c), as floor((d + c - 1)/c) when c is provably >= 1
// and as -floor(-d/c) otherwise.
func (d Dim) CeilDiv(c Dim) Dim {
	if c.known && c.n < 0 {
		return d.Neg().CeilDiv(c.Neg())
	}
	if !d.known || !c.known {
		if lo := c.lower(); lo.ok && lo.v >= 1 {
			return d.Add(c).Sub(Known(1)).FloorDiv(c)
		}
		return d.Neg().FloorDiv(c).Neg()
	}
	q := d.FloorDiv(c) // unknown for c = 0
	if q.known && d.n%c.n != 0 {
		return q.Add(Known(1))
	}
	return q
}

// floorQuotient returns floor(a/b) for b not zero, in canonical form: whole
// multiples of b in front, common factors cancelled, nested floors merged.
func floorQuotient(a, b poly) (Dim, bool) {
	whole := Known(0)
	for {
		if leading(b) < 0 {
			var ok1, ok2 bool
			a, ok1 = addScaled(a, -1, poly{}, 0)
			b, ok2 = addScaled(b, -1, poly{}, 0)
			if !ok1 || !ok2 {
				return Dim{}, false
			}
		}
		q, r, ok := divide(a, b)
		if !ok {
			return Dim{}, false
		}
		whole = whole.Add(fromPoly(q, true))
		if len(r.terms) == 0 && r.c == 0 || whole.IsUnknown() {
			return whole, !whole.IsUnknown()
		}
		if a, b, ok = cancel(r, b); ok {
			continue
		}
		if a, b, ok = unnest(r, b); ok {
			continue
		}
		a = r
		break
	}
	num, den := fromPoly(a, true), fromPoly(b, true)
	if num.IsUnknown() || den.IsUnknown() || num.known && num.n == math.MinInt64 {
		return Dim{}, false
	}
	in := quotientInterval(num.interval(), den.interval())
	if in.lo.ok && in.hi.ok && in.lo.v == in.hi.v {
		return whole.Add(Known(in.lo.v)), true
	}
	key := "floor(" + operandText(num, len(a.terms) > 1 || len(a.terms) == 1 && a.c != 0) + "/" +
		operandText(den, !den.known && den.loneAtom() == nil) + ")"
	return whole.Add(atomDim(&atom{kind: atomFloor, args: []Dim{num, den}, key: key, in: in})), true
}

func operandText(d Dim, paren bool) string {
	s := itoa(d.n)
	if d.e != nil {
		s = d.e.key
	}
	if paren {
		return "(" + s + ")"
	}
	return s
}

func leading(p poly) int64 {
	if len(p.terms) > 0 {
		return p.terms[0].coef
	}
	return p.c
}

// divide returns a = q*b + r, with each coefficient of r that b's leading term
// could take up reduced to [0, leading coefficient). By a polynomial of
// several terms a quotient that leaves a remainder is taken only if that is
// shorter than a; else q is 0.
func divide(a, b poly) (q, r poly, ok bool) {
	lead := leading(b) // > 0
	if len(b.terms) == 0 {
		q.c = floorDivInt(a.c, lead)
		r.c = a.c - q.c*lead
		for _, t := range a.terms {
			k := floorDivInt(t.coef, lead)
			if k != 0 {
				q.terms = append(q.terms, term{k, t.mono})
			}
			if m := t.coef - k*lead; m != 0 {
				r.terms = append(r.terms, term{m, t.mono})
			}
		}
		return q, r, true
	}
	work := a
	for len(work.terms) > 0 {
		if len(work.terms)+len(q.terms)+len(r.terms) > 4*maxDimTerms {
			return poly{}, a, true
		}
		t := work.terms[0]
		m, divides := divMono(t.mono, b.terms[0].mono)
		k := floorDivInt(t.coef, lead)
		if !divides || k == 0 {
			r.terms = append(r.terms, t)
			work.terms = work.terms[1:]
			continue
		}
		part, ok1 := mulTerm(b, k, m)
		rest, ok2 := addScaled(work, 1, part, -1)
		var ok3 bool
		if len(m) == 0 {
			q.c, ok3 = addInt(q.c, k)
		} else {
			q, ok3 = addScaled(q, 1, poly{terms: []term{{k, m}}}, 1)
		}
		if !ok1 || !ok2 || !ok3 {
			return poly{}, poly{}, false
		}
		work = rest
		if len(work.terms) > 0 && compareMono(work.terms[0].mono, t.mono) == 0 {
			r.terms = append(r.terms, work.terms[0]) // what is left of t
			work.terms = work.terms[1:]
		}
	}
	r.c = work.c
	if (len(r.terms) > 0 || r.c != 0) && size(r) >= size(a) {
		return poly{}, a, true
	}
	return q, r, true
}

// size counts the terms of p, the constant included.
func size(p poly) int {
	if p.c != 0 {
		return len(p.terms) + 1
	}
	return len(p.terms)
}

// cancel divides numerator and denominator by their common factor. By a
// constant denominator the constant of the numerator need not be divisible:
// floor((g*x + k)/(g*b)) = floor((x + floor(k/g))/b).
func cancel(num, den poly) (n, d poly, changed bool) {
	constant := len(den.terms) == 0
	g := int64(gcd(uint64(num.content(!constant)), uint64(den.content(true))))
	var common []*atom
	if !constant && num.c == 0 && den.c == 0 && len(num.terms) > 0 {
		common = num.terms[0].mono
		for _, t := range slices.Concat(num.terms, den.terms) {
			common = gcdMono(common, t.mono)
		}
	}
	if g <= 1 && len(common) == 0 {
		return num, den, false
	}
	if g > 1 {
		num, den = num.scaleDown(g), den.scaleDown(g)
	}
	return num.without(common), den.without(common), true
}

// without returns p with the monomial m, a factor of every term, divided out.
func (p poly) without(m []*atom) poly {
	if len(m) == 0 {
		return p
	}
	out := poly{c: p.c}
	for _, t := range p.terms {
		if rest, _ := divMono(t.mono, m); len(rest) > 0 {
			out.terms = append(out.terms, term{t.coef, rest})
		} else {
			out.c = t.coef
		}
	}
	return out
}

// unnest merges a floor inside a floor, all divisors constant:
// floor((y + floor(x/a))/b) = floor((a*y + x)/(a*b)) for every integer y.
// It applies when the numerator has just one such inner floor.
func unnest(num, den poly) (n, d poly, changed bool) {
	if len(den.terms) > 0 {
		return num, den, false
	}
	at := -1
	for i, t := range num.terms {
		if len(t.mono) == 1 && t.mono[0].kind == atomFloor && t.mono[0].args[1].known {
			if at >= 0 || t.coef != 1 {
				return num, den, false
			}
			at = i
		}
	}
	if at < 0 {
		return num, den, false
	}
	inner := num.terms[at].mono[0]
	a := inner.args[1].n
	rest := poly{terms: slices.Delete(slices.Clone(num.terms), at, at+1), c: num.c}
	ab, ok1 := mulInt(a, den.c)
	merged, ok2 := addScaled(rest, a, inner.args[0].poly(), 1)
	if !ok1 || !ok2 {
		return num, den, false
	}
	return merged, poly{c: ab}, true
}

// extremum returns the max or min of two dimensions as a sorted, flat argument
// list without arguments that another one provably dominates.
func extremum(kind atomKind, d, e Dim) Dim {
	if d.IsUnknown() || e.IsUnknown() {
		return Dim{}
	}
	if d.known && e.known {
		if (d.n < e.n) == (kind == atomMax) {
			return e
		}
		return d
	}
	var args []Dim
	for _, x := range []Dim{d, e} {
		if a := x.loneAtom(); a != nil && a.kind == kind {
			args = append(args, a.args...)
		} else {
			args = append(args, x)
		}
	}
	slices.SortFunc(args, compareArgs)
	args = undominated(kind, args)
	if len(args) == 1 {
		return args[0]
	}
	if len(args) > maxDimArgs {
		return Dim{}
	}
	var b strings.Builder
	b.WriteString("max(")
	if kind == atomMin {
		b.Reset()
		b.WriteString("min(")
	}
	for i, x := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(operandText(x, false))
	}
	b.WriteByte(')')
	in := args[0].interval()
	for _, x := range args[1:] {
		in = extremumInterval(kind, in, x.interval())
	}
	return atomDim(&atom{kind: kind, args: args, key: b.String(), in: in})
}

// compareArgs orders the arguments of max and min: expressions by text, the
// number last.
func compareArgs(a, b Dim) int {
	if a.known != b.known {
		if a.known {
			return 1
		}
		return -1
	}
	return strings.Compare(operandText(a, false), operandText(b, false))
}

// undominated drops each argument that another is always at least as large as
// (for max) or as small as (for min).
func undominated(kind atomKind, args []Dim) []Dim {
	var keep []Dim
	for i, x := range args {
		dominated := false
		for j, y := range args {
			if i == j {
				continue
			}
			small, large := x, y
			if kind == atomMin {
				small, large = y, x
			}
			if small.LessEq(large) && (i > j || !large.LessEq(small)) {
				dominated = true
				break
			}
		}
		if !dominated {
			keep = append(keep, x)
		}
	}
	return keep
}

// lessEqTrivial reports the orders that hold because every value is an int64.
func lessEqTrivial(d, e Dim) bool {
	return d.known && d.n == math.MinInt64 || e.known && e.n == math.MaxInt64
}
