package autodiff

import (
	"gradtool/graph"
)

func scatterRules() []Rule {
	return []Rule{
		{Name: "ScatterElements", Kind: HasVJP, Stop: []int{1}, VJP: scatterVJP},
		{Name: "ScatterND", Kind: HasVJP, Stop: []int{1}, VJP: scatterVJP},
	}
}

// scatterVJP: y is x with u combined into the places P(k) that the index names. With S the scatter and G the
// gather by the same index, for cotangent g:
//
//	none  dx = g with zeros scattered into the places, du = G(g). Indices must be unique, says the standard.
//	add   dx = g, du = G(g).
//	mul   dx = g times the product of the factors; du_k = G(g x)_k times the product of the other factors
//	      of its place, which is found without dividing by zero: by counting the zero factors. Derivatives of du itself
//	      miss what a place with zero factors contributes to other factors.
//	max,  the cotangent of a place goes to what equals the result there, in equal shares.
//	min
func scatterVJP(c *Ctx) []*graph.Value {
	x, at, u, g := c.X(0), c.X(1), c.X(2), c.Ct(0)
	s := scatterer{c, at}
	switch reduction := c.Node.Str("reduction", "none"); reduction {
	case "add":
		return []*graph.Value{g, nil, s.onDemand(2, func() *graph.Value { return s.gather(g) })}
	case "mul":
		return s.product(x, u, g)
	case "max", "min":
		return s.extremum(x, u, g)
	}
	return []*graph.Value{
		s.onDemand(0, func() *graph.Value { return s.scatter(g, c.FullLike(u, 0), "none") }), nil,
		s.onDemand(2, func() *graph.Value { return s.gather(g) }),
	}
}

// scatterer emits scatters and gathers by the index of a scatter node.
type scatterer struct {
	*Ctx
	at *graph.Value
}

// onDemand returns f's value if the cotangent of operand i is asked for.
func (s scatterer) onDemand(i int, f func() *graph.Value) *graph.Value {
	if !s.Need(i) {
		return nil
	}
	return f()
}

// scatter combines updates into base.
func (s scatterer) scatter(base, updates *graph.Value, reduction string) *graph.Value {
	in := []*graph.Value{base, s.at, updates}
	return s.Op(s.Node.Op, in, append(s.axis(), graph.StringAttr("reduction", reduction))...)
}

// gather reads the places that the index names.
func (s scatterer) gather(v *graph.Value) *graph.Value {
	if s.Node.Op == "ScatterND" {
		return s.Binary("GatherND", v, s.at)
	}
	return s.Binary("GatherElements", v, s.at, s.axis()...)
}

func (s scatterer) axis() []*graph.Attr {
	if s.Node.Op == "ScatterND" {
		return nil
	}
	return []*graph.Attr{graph.IntAttr("axis", s.Node.Int("axis", 0))}
}

func (s scatterer) product(x, u, g *graph.Value) []*graph.Value {
	x, u, g = s.widened(x), s.widened(u), s.widened(g)
	out := make([]*graph.Value, 3)
	if s.Need(0) {
		out[0] = s.Mul(g, s.scatter(s.FullLike(x, 1), u, "mul"))
	}
	if s.Need(2) {
		zero, one := s.Like(u, 0), s.Like(u, 1)
		isZero := s.Binary("Equal", u, zero)
		safe := s.Where(isZero, one, u)
		zeros := s.gather(s.scatter(s.FullLike(x, 0), s.Cast(isZero, u.Type.Elem), "add"))
		product := s.gather(s.scatter(s.FullLike(x, 1), safe, "mul")) // of the factors that are not zero
		// All other factors are non-zero if the place has no zero, or this is the only one.
		open := s.Binary("Equal", zeros, s.Cast(isZero, u.Type.Elem))
		others := s.Where(open, s.Div(product, safe), zero)
		out[2] = s.Mul(s.gather(s.Mul(g, x)), others)
	}
	return out
}

func (s scatterer) extremum(x, u, g *graph.Value) []*graph.Value {
	y := s.widened(s.Y(0))
	x, u, g = s.widened(x), s.widened(u), s.widened(g)
	kept := s.Cast(s.Binary("Equal", x, y), g.Type.Elem)
	put := s.Cast(s.Binary("Equal", u, s.gather(y)), g.Type.Elem)
	share := s.Div(g, s.scatter(kept, put, "add"))
	return []*graph.Value{
		s.onDemand(0, func() *graph.Value { return s.Mul(share, kept) }), nil,
		s.onDemand(2, func() *graph.Value { return s.Mul(s.gather(share), put) }),
	}
}
