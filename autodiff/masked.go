package autodiff

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// maskable lists the element-wise operators whose slope may be infinite or NaN. Models keep such elements away by a Where behind
// the operator, which sends them the cotangent 0; 0 times infinity must not come back as NaN.
var maskable = [...]string{"Exp", "Log", "Reciprocal", "Div", "Pow", "Tan", "Asin", "Acos", "Acosh", "Atanh", "Sinh", "Cosh"}

// guardMasked makes the rules of maskable operators return 0 for NaN wherever the cotangent is 0, in nodes that a Where masks. It
// costs some nodes there, and nothing elsewhere. What the rule returns is masked by then, so derivatives of any order are
// guarded. A product with a finite slope is left alone even where it is 0: its derivative by the cotangent is the slope.
func guardMasked(t map[op.Key]*Rule) {
	for _, name := range maskable {
		r := t[op.Key{Name: name}]
		vjp := r.VJP
		r.VJP = func(c *Ctx) []*graph.Value {
			cts := vjp(c)
			if !c.slopeMayBreak() || !maskedBehind(c.Y(0), 4) {
				return cts
			}
			g := c.Ct(0)
			none := c.Binary("Equal", g, c.Like(g, 0))
			for i, v := range cts {
				if v != nil {
					cts[i] = c.Where(c.Binary("And", none, c.Unary("IsNaN", v)), c.Like(v, 0), v)
				}
			}
			return cts
		}
	}
}

// slopeMayBreak reports whether the node's slope can be other than finite: dividing by a constant, and raising to a constant power
// of at least 1, is safe.
func (c *Ctx) slopeMayBreak() bool {
	div, pow := c.Node.Is("Div"), c.Node.Is("Pow")
	if !div && !pow {
		return true
	}
	a := c.Info.Const(c.X(1))
	if a == nil || !a.IsFloat() {
		return true
	}
	for i := range a.Len() {
		if x := a.Float(i); div && x == 0 || pow && x < 1 {
			return true
		}
	}
	return false
}

// maskedBehind reports whether a Where chooses between v and something else, directly or behind at most hops operators
// that work by element or only move elements.
func maskedBehind(v *graph.Value, hops int) bool {
	for _, u := range v.Uses() {
		n := u.Node
		switch {
		case n == nil:
		case n.Is("Where"):
			if u.Index > 0 {
				return true
			}
		case hops > 0 && n.Result(0) != nil && (op.Of(n).Has(op.Elementwise) || op.Of(n).Has(op.View) || n.Is("Transpose")):
			if maskedBehind(n.Result(0), hops-1) {
				return true
			}
		}
	}
	return false
}
