package graph

import (
	"strconv"
	"strings"
	"unicode"
)

// Limits on the text taken for an expression; beyond them it is a name.
const (
	maxDimText  = 2 * maxDimKey
	maxDimDepth = maxDimKey // so that every text fromPoly lets pass can be read
)

// ParseDim reads a dim_param string of a file. A string in the grammar below
// gives that dimension, "" and "?" an unknown one, and any other string a
// symbol of that name, so ParseDim(d.String()) is d for every d.
//
//	sum     = ["-"] product {("+" | "-") product}
//	product = power {("*" | "/" | "//" | "%") power}
//	power   = primary ["**" number]
//	primary = number | name | quoted name | "(" sum ")" | function "(" sum {"," sum} ")"
//
// Functions, in any case: floor, ceil, ceiling, max, min, mod, floordiv,
// ceildiv. "/" is exact division and must end up inside floor or ceil or leave
// an integer; "//" is floored division. Numbers may have decimals: exporters
// write floor(0.5*H). A name such as batch-1, without spaces around the
// hyphen, is a name and not a difference.
func ParseDim(s string) Dim {
	if s == "" || s == "?" {
		return Dim{}
	}
	if d, ok := parseDimExpr(s); ok {
		return d
	}
	return Sym(s)
}

// parseDimExpr parses s as an expression with a known or symbolic integer
// value.
func parseDimExpr(s string) (Dim, bool) {
	if name, ok := unquote(s); ok {
		return Sym(name), name != ""
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && itoa(n) == s {
		return Known(n), true // the least int64 has no positive counterpart
	}
	if len(s) > maxDimText || strings.TrimSpace(s) != s || hyphenated(s) {
		return Dim{}, false
	}
	p := dimParser{s: s}
	v, ok := p.sum(0)
	if !ok || p.i < len(s) {
		return Dim{}, false
	}
	d, ok := v.integer()
	return d, ok && !d.IsUnknown()
}

// unquote returns the name when s is one quoted name.
func unquote(s string) (string, bool) {
	if q, err := strconv.QuotedPrefix(s); err != nil || q != s || s[0] != '"' {
		return "", false
	}
	name, err := strconv.Unquote(s)
	return name, err == nil
}

// hyphenated reports whether s is a name made of words joined by hyphens.
func hyphenated(s string) bool {
	words := strings.Split(s, "-")
	if len(words) < 2 || !isIdent(words[0]) {
		return false
	}
	for _, w := range words[1:] {
		if !isIdent("_" + w) {
			return false
		}
	}
	return true
}

// isIdent reports whether s can stand bare in an expression: a letter or
// underscore, then letters, digits, underscores and dots.
func isIdent(s string) bool {
	return s != "" && identLen(s) == len(s)
}

func identLen(s string) int {
	for i, r := range s {
		if r == '_' || unicode.IsLetter(r) || i > 0 && (r == '.' || unicode.IsDigit(r)) {
			continue
		}
		return i
	}
	return len(s)
}

// ratio is num/den; the parser's value, because exporters write fractions
// inside floor.
type ratio struct{ num, den Dim }

func whole(d Dim) ratio { return ratio{d, Known(1)} }

// integer returns the value of r if it is an integer as written.
func (r ratio) integer() (Dim, bool) {
	if n, ok := r.den.Int(); ok && n == 1 {
		return r.num, true
	}
	q := r.num.FloorDiv(r.den)
	return q, !q.IsUnknown() && r.den.known && r.num.Same(q.Mul(r.den))
}

func (r ratio) add(s ratio, sign int64) ratio {
	if r.den.Same(s.den) {
		return ratio{r.num.Add(s.num.Mul(Known(sign))), r.den}
	}
	return ratio{r.num.Mul(s.den).Add(s.num.Mul(r.den).Mul(Known(sign))), r.den.Mul(s.den)}
}

func (r ratio) mul(s ratio) ratio { return ratio{r.num.Mul(s.num), r.den.Mul(s.den)} }

func (r ratio) floor() ratio { return whole(r.num.FloorDiv(r.den)) }

type dimParser struct {
	s string
	i int
}

// accept skips blanks and then tok, if it comes next.
func (p *dimParser) accept(tok string) bool {
	j := p.i
	for j < len(p.s) && p.s[j] == ' ' {
		j++
	}
	if !strings.HasPrefix(p.s[j:], tok) {
		return false
	}
	p.i = j + len(tok)
	return true
}

func (p *dimParser) sum(depth int) (ratio, bool) {
	if depth > maxDimDepth {
		return ratio{}, false
	}
	negative := p.accept("-")
	v, ok := p.product(depth)
	if negative {
		v.num = v.num.Neg()
	}
	for ok {
		sign := int64(1)
		if p.accept("-") {
			sign = -1
		} else if !p.accept("+") {
			break
		}
		var w ratio
		if w, ok = p.product(depth); ok {
			v = v.add(w, sign)
		}
	}
	return v, ok
}

func (p *dimParser) product(depth int) (ratio, bool) {
	v, ok := p.power(depth)
	for ok {
		var w ratio
		switch {
		case p.accept("*"):
			if w, ok = p.power(depth); ok {
				v = v.mul(w)
			}
		case p.accept("//"):
			if w, ok = p.power(depth); ok {
				v = v.mul(ratio{w.den, w.num}).floor()
			}
		case p.accept("/"):
			if w, ok = p.power(depth); ok {
				v = v.mul(ratio{w.den, w.num})
			}
		case p.accept("%"):
			if w, ok = p.power(depth); ok {
				v = mod(v, w)
			}
		default:
			return v, true
		}
	}
	return v, ok
}

func mod(v, w ratio) ratio {
	return v.add(w.mul(v.mul(ratio{w.den, w.num}).floor()), -1)
}

func (p *dimParser) power(depth int) (ratio, bool) {
	v, ok := p.primary(depth)
	if !ok || !p.accept("**") {
		return v, ok
	}
	e, ok := p.number()
	n, isInt := e.num.Int()
	if !ok || !isInt || !e.den.Same(Known(1)) || n > 64 {
		return ratio{}, false
	}
	r := whole(Known(1))
	for range n {
		r = r.mul(v)
	}
	return r, true
}

func (p *dimParser) primary(depth int) (ratio, bool) {
	if p.accept("(") {
		v, ok := p.sum(depth + 1)
		return v, ok && p.accept(")")
	}
	p.accept("") // blanks
	rest := p.s[p.i:]
	if strings.HasPrefix(rest, `"`) {
		q, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return ratio{}, false
		}
		name, err := strconv.Unquote(q)
		p.i += len(q)
		return whole(Sym(name)), err == nil && name != ""
	}
	if n := identLen(rest); n > 0 {
		p.i += n
		if strings.HasPrefix(p.s[p.i:], "(") {
			p.i++
			return p.call(strings.ToLower(rest[:n]), depth+1)
		}
		return whole(Sym(rest[:n])), true
	}
	return p.number()
}

// number reads digits with optional decimals.
func (p *dimParser) number() (ratio, bool) {
	p.accept("")
	start, dot := p.i, -1
	for ; p.i < len(p.s); p.i++ {
		c := p.s[p.i]
		if c == '.' && dot < 0 && p.i > start {
			dot = p.i
		} else if c < '0' || c > '9' {
			break
		}
	}
	text, den := p.s[start:p.i], int64(1)
	if dot >= 0 {
		decimals := p.s[dot+1 : p.i]
		if len(decimals) > 9 {
			return ratio{}, false
		}
		for range decimals {
			den *= 10
		}
		text = p.s[start:dot] + decimals
	}
	// What follows directly would make it a name that starts with a digit.
	if identLen("_"+p.s[p.i:]) > 1 {
		return ratio{}, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return ratio{Known(n), Known(den)}, err == nil
}

// call reads the arguments of function name and applies it.
func (p *dimParser) call(name string, depth int) (ratio, bool) {
	var args []ratio
	for {
		v, ok := p.sum(depth)
		if !ok {
			return ratio{}, false
		}
		args = append(args, v)
		if p.accept(")") {
			break
		}
		if !p.accept(",") {
			return ratio{}, false
		}
	}
	switch {
	case name == "floor" && len(args) == 1:
		return args[0].floor(), true
	case (name == "ceil" || name == "ceiling") && len(args) == 1:
		return whole(args[0].num.CeilDiv(args[0].den)), true
	case name == "floordiv" && len(args) == 2:
		return args[0].mul(ratio{args[1].den, args[1].num}).floor(), true
	case name == "ceildiv" && len(args) == 2:
		v := args[0].mul(ratio{args[1].den, args[1].num})
		return whole(v.num.CeilDiv(v.den)), true
	case name == "mod" && len(args) == 2:
		return mod(args[0], args[1]), true
	case (name == "max" || name == "min") && len(args) > 0:
		return extremumOf(name, args)
	}
	return ratio{}, false
}

func extremumOf(name string, args []ratio) (ratio, bool) {
	out, ok := args[0].integer()
	for _, a := range args[1:] {
		d, isInt := a.integer()
		ok = ok && isInt
		if name == "max" {
			out = out.Max(d)
		} else {
			out = out.Min(d)
		}
	}
	return whole(out), ok
}
