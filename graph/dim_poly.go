package graph

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// poly is the polynomial c + sum of terms over atoms. Terms are sorted leading
// first (see compareMono), have distinct monomials and non-zero coefficients.
type poly struct {
	terms []term
	c     int64
}

type term struct {
	coef int64
	mono []*atom // sorted by key, repeated for powers, not empty
}

type atomKind uint8

const (
	atomSymbol atomKind = iota
	atomFloor           // floor(args[0]/args[1])
	atomMax             // the largest of args
	atomMin             // the smallest of args
)

// atom is an indivisible factor of a monomial. Its interval is worked out once,
// when it is made.
type atom struct {
	kind atomKind
	name string // of a symbol
	args []Dim
	key  string // canonical text inside an expression
	in   interval
}

func newSymbol(name string) *atom {
	key := name
	if !isIdent(name) {
		key = strconv.Quote(name)
	}
	return &atom{kind: atomSymbol, name: name, key: key, in: interval{lo: bound{0, true}}}
}

func atomDim(a *atom) Dim {
	return fromPoly(poly{terms: []term{{1, []*atom{a}}}}, true)
}

// poly returns d as a polynomial; d must not be unknown.
func (d Dim) poly() poly {
	if d.e != nil {
		return d.e.poly
	}
	return poly{c: d.n}
}

// fromPoly makes the Dim for p, unknown if ok is false or p is too large.
func fromPoly(p poly, ok bool) Dim {
	if !ok || len(p.terms) > maxDimTerms {
		return Dim{}
	}
	if len(p.terms) == 0 {
		return Known(p.c)
	}
	if p.c == math.MinInt64 {
		return Dim{} // it has no negative, so the text could not be read back
	}
	for _, t := range p.terms {
		if t.coef == math.MinInt64 {
			return Dim{}
		}
	}
	// A lone symbol keeps its name whatever its length: it cannot grow.
	lone := len(p.terms) == 1 && len(p.terms[0].mono) == 1 && p.terms[0].mono[0].kind == atomSymbol
	key := p.text()
	if len(key) > maxDimKey && !lone {
		return Dim{}
	}
	return Dim{e: &expr{poly: p, key: key}}
}

// text writes p in the grammar of ParseDim.
func (p poly) text() string {
	var b strings.Builder
	for i, t := range p.terms {
		writeSign(&b, i, t.coef < 0)
		if t.coef != 1 && t.coef != -1 {
			b.WriteString(strings.TrimPrefix(itoa(t.coef), "-"))
			b.WriteByte('*')
		}
		for j, a := range t.mono {
			if j > 0 {
				b.WriteByte('*')
			}
			b.WriteString(a.key)
		}
		if b.Len() > 8*maxDimKey {
			break // fromPoly rejects it anyway
		}
	}
	if p.c != 0 || len(p.terms) == 0 {
		writeSign(&b, len(p.terms), p.c < 0)
		b.WriteString(strings.TrimPrefix(itoa(p.c), "-"))
	}
	return b.String()
}

func writeSign(b *strings.Builder, i int, negative bool) {
	switch {
	case i == 0 && negative:
		b.WriteByte('-')
	case i > 0 && negative:
		b.WriteString(" - ")
	case i > 0:
		b.WriteString(" + ")
	}
}

// compareMono orders monomials leading first: higher degree, then
// lexicographically by atom. The order is compatible with multiplication
// (graded lexicographic), which polynomial division relies on.
func compareMono(a, b []*atom) int {
	if len(a) != len(b) {
		return len(b) - len(a)
	}
	for i := range a {
		if a[i] != b[i] {
			if c := strings.Compare(a[i].key, b[i].key); c != 0 {
				return c
			}
		}
	}
	return 0
}

// mulMono returns the product of two sorted monomials.
func mulMono(a, b []*atom) []*atom {
	out := make([]*atom, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].key <= b[0].key {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// divMono returns a/b when b divides a.
func divMono(a, b []*atom) ([]*atom, bool) {
	var out []*atom
	for _, x := range a {
		if len(b) > 0 && x.key == b[0].key {
			b = b[1:]
			continue
		}
		out = append(out, x)
	}
	return out, len(b) == 0
}

// gcdMono returns the common factors of a and b.
func gcdMono(a, b []*atom) []*atom {
	var out []*atom
	for len(a) > 0 && len(b) > 0 {
		switch c := strings.Compare(a[0].key, b[0].key); {
		case c < 0:
			a = a[1:]
		case c > 0:
			b = b[1:]
		default:
			out, a, b = append(out, a[0]), a[1:], b[1:]
		}
	}
	return out
}

// addScaled returns ka*a + kb*b; ok is false on overflow.
func addScaled(a poly, ka int64, b poly, kb int64) (sum poly, ok bool) {
	x, okx := mulInt(a.c, ka)
	y, oky := mulInt(b.c, kb)
	c, okc := addInt(x, y)
	if !okx || !oky || !okc {
		return poly{}, false
	}
	sum = poly{terms: make([]term, 0, len(a.terms)+len(b.terms)), c: c}
	i, j := 0, 0
	for i < len(a.terms) || j < len(b.terms) {
		order := 0
		switch {
		case i == len(a.terms):
			order = 1
		case j == len(b.terms):
			order = -1
		default:
			order = compareMono(a.terms[i].mono, b.terms[j].mono)
		}
		var t term
		if order <= 0 {
			t.mono = a.terms[i].mono
			if t.coef, ok = mulInt(a.terms[i].coef, ka); !ok {
				return poly{}, false
			}
			i++
		}
		if order >= 0 {
			t.mono = b.terms[j].mono
			v, ok1 := mulInt(b.terms[j].coef, kb)
			v, ok2 := addInt(t.coef, v)
			if !ok1 || !ok2 {
				return poly{}, false
			}
			t.coef = v
			j++
		}
		if t.coef != 0 {
			sum.terms = append(sum.terms, t)
		}
	}
	return sum, true
}

// mulTerm returns p times coef times the monomial mono, which may be empty.
func mulTerm(p poly, coef int64, mono []*atom) (poly, bool) {
	if coef == 0 {
		return poly{}, true
	}
	out := poly{terms: make([]term, 0, len(p.terms)+1)}
	for _, t := range p.terms {
		c, ok := mulInt(t.coef, coef)
		if !ok {
			return poly{}, false
		}
		out.terms = append(out.terms, term{c, mulMono(t.mono, mono)})
	}
	c, ok := mulInt(p.c, coef)
	if !ok {
		return poly{}, false
	}
	if len(mono) == 0 {
		out.c = c
	} else if c != 0 {
		out.terms = append(out.terms, term{c, mono})
	}
	// Multiplying by one monomial keeps the order of the terms.
	return out, true
}

// mulPoly returns a*b; ok is false on overflow or when the result has too many
// terms.
func mulPoly(a, b poly) (poly, bool) {
	if len(a.terms) > len(b.terms) {
		a, b = b, a
	}
	sum, ok := mulTerm(b, a.c, nil)
	for _, t := range a.terms {
		if !ok || len(sum.terms) > 2*maxDimTerms || len(t.mono) > maxDimKey {
			return poly{}, false
		}
		var part poly
		if part, ok = mulTerm(b, t.coef, t.mono); ok {
			sum, ok = addScaled(sum, 1, part, 1)
		}
	}
	return sum, ok
}

// content returns the greatest common divisor of the coefficients, without or
// with the constant; 0 for the zero polynomial.
func (p poly) content(withConst bool) int64 {
	var g uint64
	for _, t := range p.terms {
		g = gcd(g, absInt(t.coef))
	}
	if withConst {
		g = gcd(g, absInt(p.c))
	}
	if g > math.MaxInt64 {
		return 1
	}
	return int64(g)
}

// scaleDown divides every coefficient by g, exactly for the terms and floored
// for the constant.
func (p poly) scaleDown(g int64) poly {
	if g == 1 {
		return p
	}
	out := poly{terms: slices.Clone(p.terms), c: floorDivInt(p.c, g)}
	for i := range out.terms {
		out.terms[i].coef /= g
	}
	return out
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func absInt(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

func addInt(a, b int64) (int64, bool) {
	s := a + b
	return s, (s > a) == (b > 0)
}

func mulInt(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(absInt(a), absInt(b))
	if (a < 0) != (b < 0) {
		return -int64(lo), hi == 0 && lo <= 1<<63
	}
	return int64(lo), hi == 0 && lo <= math.MaxInt64
}

// floorDivInt returns floor(a/b) for b > 0.
func floorDivInt(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
