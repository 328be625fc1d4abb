package graph

import (
	"math"
	"slices"
)

// Dim is one dimension of a shape: a known number, a symbolic expression over
// named symbols, or unknown. The zero Dim is unknown. A Dim is immutable and
// may be shared; compare with Equal or Same, not with ==.
//
// Every symbol stands for a size, so for an integer >= 0; intermediate values
// may be negative. A symbolic Dim is kept in one canonical form: a sum of
// integer multiples of products of atoms, an atom being a symbol, a floored
// quotient, a maximum or a minimum. Results that would overflow int64 in a
// constant, divide by zero or grow past a fixed size are unknown, never wrong.
//
// A quotient by a symbolic divisor is simplified under the assumption that the
// divisor is not zero: (4*N*M)/N is 4*M.
type Dim struct {
	n     int64
	e     *expr // nil unless symbolic
	known bool
}

// expr is the payload of a symbolic Dim: a polynomial with at least one
// non-constant term and its canonical text.
type expr struct {
	poly
	key string
}

// Limits past which a result becomes unknown, so that no chain of operations
// on file-supplied symbols grows without bound.
const (
	maxDimTerms = 64
	maxDimKey   = 2048
	maxDimArgs  = 8 // of max and min
)

// Known returns the dimension n.
func Known(n int64) Dim { return Dim{n: n, known: true} }

// Sym returns the symbol name, a size >= 0. Any non-empty string is a name;
// the empty one gives an unknown dimension.
func Sym(name string) Dim {
	if name == "" {
		return Dim{}
	}
	return atomDim(newSymbol(name))
}

// Unknown returns the dimension nothing is known about.
func Unknown() Dim { return Dim{} }

// Int returns the number when d is known.
func (d Dim) Int() (int64, bool) { return d.n, d.known }

// IsUnknown reports whether nothing is known about d.
func (d Dim) IsUnknown() bool { return !d.known && d.e == nil }

// IsSymbolic reports whether d is an expression over symbols.
func (d Dim) IsSymbolic() bool { return d.e != nil }

// Same reports whether d and e are written the same: equal numbers, the same
// canonical expression, or both unknown.
func (d Dim) Same(e Dim) bool {
	if d.e == nil || e.e == nil {
		return d.e == nil && e.e == nil && d.known == e.known && d.n == e.n
	}
	return d.e == e.e || d.e.key == e.e.key
}

// String returns the canonical text of d: "8", "N", "2*N + 1",
// "floor((N + 1)/2)", "max(N - 3, 0)", and "?" for unknown. ParseDim reads it
// back. A symbol whose name is not an identifier is quoted wherever the bare
// name would read as something else.
func (d Dim) String() string {
	switch {
	case d.known:
		return itoa(d.n)
	case d.e == nil:
		return "?"
	}
	if name, ok := d.symbol(); ok {
		if isIdent(name) {
			return name
		}
		if _, isExpr := parseDimExpr(name); !isExpr && name != "?" {
			return name
		}
	}
	return d.e.key
}

// symbol returns the name when d is one bare symbol.
func (d Dim) symbol() (string, bool) {
	if a := d.loneAtom(); a != nil && a.kind == atomSymbol {
		return a.name, true
	}
	return "", false
}

// loneAtom returns the atom when d is exactly one atom, else nil.
func (d Dim) loneAtom() *atom {
	if d.e != nil && d.e.c == 0 && len(d.e.terms) == 1 && d.e.terms[0].coef == 1 && len(d.e.terms[0].mono) == 1 {
		return d.e.terms[0].mono[0]
	}
	return nil
}

// Symbols returns the names of the symbols in d, sorted, each once.
func (d Dim) Symbols() []string {
	var names []string
	d.eachSymbol(func(s string) { names = append(names, s) })
	slices.Sort(names)
	return slices.Compact(names)
}

func (d Dim) eachSymbol(f func(string)) {
	if d.e == nil {
		return
	}
	for _, t := range d.e.terms {
		for _, a := range t.mono {
			if a.kind == atomSymbol {
				f(a.name)
			}
			for _, arg := range a.args {
				arg.eachSymbol(f)
			}
		}
	}
}

// Add returns d + e.
func (d Dim) Add(e Dim) Dim { return d.combine(e, 1) }

// Sub returns d - e.
func (d Dim) Sub(e Dim) Dim { return d.combine(e, -1) }

// combine returns d + k*e for k = 1 or -1.
func (d Dim) combine(e Dim, k int64) Dim {
	if d.IsUnknown() || e.IsUnknown() {
		return Dim{}
	}
	if d.known && e.known {
		v, ok := mulInt(e.n, k)
		if k == -1 && e.n == math.MinInt64 && d.n < 0 {
			return Known(d.n - e.n) // in range although -e is not
		}
		s, ok2 := addInt(d.n, v)
		return knownIf(s, ok && ok2)
	}
	if e.known && e.n == 0 {
		return d
	}
	p, ok := addScaled(d.poly(), 1, e.poly(), k)
	return fromPoly(p, ok)
}

// Neg returns -d.
func (d Dim) Neg() Dim { return d.Mul(Known(-1)) }

// Mul returns d * e. A product with an unknown factor is unknown, even if the
// other factor is 0.
func (d Dim) Mul(e Dim) Dim {
	if d.IsUnknown() || e.IsUnknown() {
		return Dim{}
	}
	if d.known && e.known {
		v, ok := mulInt(d.n, e.n)
		return knownIf(v, ok)
	}
	if d.known && d.n == 1 {
		return e
	}
	if e.known && e.n == 1 {
		return d
	}
	p, ok := mulPoly(d.poly(), e.poly())
	return fromPoly(p, ok)
}

// Mod returns d - e*floor(d/e), the remainder with the sign of e; unknown when
// e is 0.
func (d Dim) Mod(e Dim) Dim {
	if d.known && e.known && e.n == -1 {
		return Known(0) // the quotient may overflow
	}
	return d.Sub(e.Mul(d.FloorDiv(e)))
}

// Max returns the larger of d and e.
func (d Dim) Max(e Dim) Dim { return extremum(atomMax, d, e) }

// Min returns the smaller of d and e.
func (d Dim) Min(e Dim) Dim { return extremum(atomMin, d, e) }

// Eval returns d with numbers in place of the bound symbols; unbound symbols
// stay. A binding is a size: it must be >= 0 for the result to be meaningful.
func (d Dim) Eval(bind map[string]int64) Dim {
	return d.replace(func(name string) (Dim, bool) {
		n, ok := bind[name]
		return Known(n), ok
	})
}

// Subst returns d with the given dimensions in place of symbols; symbols
// without an entry stay, an unknown replacement makes the result unknown.
func (d Dim) Subst(with map[string]Dim) Dim {
	return d.replace(func(name string) (Dim, bool) {
		e, ok := with[name]
		return e, ok
	})
}

// replace rebuilds d bottom-up with get's dimensions in place of symbols.
func (d Dim) replace(get func(string) (Dim, bool)) Dim {
	if d.e == nil {
		return d
	}
	sum := Known(d.e.c)
	for _, t := range d.e.terms {
		prod := Known(t.coef)
		for _, a := range t.mono {
			prod = prod.Mul(a.replace(get))
		}
		sum = sum.Add(prod)
	}
	return sum
}

func (a *atom) replace(get func(string) (Dim, bool)) Dim {
	if a.kind == atomSymbol {
		if e, ok := get(a.name); ok {
			return e
		}
		return atomDim(a)
	}
	r := a.args[0].replace(get)
	for _, arg := range a.args[1:] {
		arg = arg.replace(get)
		switch a.kind {
		case atomFloor:
			r = r.FloorDiv(arg)
		case atomMax:
			r = r.Max(arg)
		default:
			r = r.Min(arg)
		}
	}
	return r
}

func knownIf(n int64, ok bool) Dim {
	if !ok {
		return Dim{}
	}
	return Known(n)
}
