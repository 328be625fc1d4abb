package autodiff

import (
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Policy is what a caller wants differentiated otherwise than the table of rules says. A nil Policy wants nothing.
type Policy struct {
	Stop     map[*graph.Value]bool // values that count as constants
	StopOps  map[op.Key]bool       // operators whose results do, in nodes that no rule emitted
	Straight map[op.Key]bool       // likewise, piecewise constant operators that pass derivatives on as if they returned operand 0
	Custom   map[op.Key]*Rule      // rules of operators that have none
	Ties     Ties
	Singular Singular
}

// Ties says what equal elements get of the cotangent of an element-wise or reducing maximum or minimum.
type Ties uint8

const (
	TiesEven Ties = iota // equal shares, as in PyTorch
	TiesAll              // all of it each, as in ONNX Runtime's training
)

// Singular says what the derivative of a square root or a norm is at zero.
type Singular uint8

const (
	SingularZero    Singular = iota // zero
	SingularFormula                 // what the formula gives: infinity or NaN, as in PyTorch for the square root
)

// wholeTies reports whether equal elements get the whole cotangent each.
func (c *Ctx) wholeTies() bool { return c.rev.policy != nil && c.rev.policy.Ties == TiesAll }

// atZero returns a / b for a divisor that is zero at a singular point: zero there, or what division gives.
func (c *Ctx) atZero(a, b *graph.Value) *graph.Value {
	if c.rev.policy != nil && c.rev.policy.Singular == SingularFormula {
		return c.Div(a, b)
	}
	return divOrZero(c, a, b)
}

// rule returns n's rule, nil without one.
func (p *Policy) rule(n *graph.Node) *Rule {
	k := op.KeyOf(n)
	if p != nil {
		switch {
		case p.StopOps[k] && primal(n):
			return &Rule{Domain: k.Domain, Name: k.Name, Kind: ZeroGrad}
		case p.Straight[k] && primal(n):
			return straightThrough(k)
		case p.Custom[k] != nil:
			return p.Custom[k]
		}
	}
	return Lookup(k)
}

// primal reports whether n is of the model itself, or a copy of such a node, rather than emitted by a rule: for second derivatives
// those are differentiated as they are.
func primal(n *graph.Node) bool {
	switch n.Meta.Get(graph.MetaRole) {
	case "", graph.RoleForward, graph.RoleRecompute:
		return true
	}
	return false
}

// stopsAt reports whether v counts as a constant.
func (p *Policy) stopsAt(v *graph.Value) bool { return p != nil && p.Stop[v] }

// straightThrough is the rule of an operator that counts as the identity of operand 0.
func straightThrough(k op.Key) *Rule {
	return &Rule{Domain: k.Domain, Name: k.Name, Kind: HasVJP,
		VJP: func(c *Ctx) []*graph.Value { return one(c.Ct(0)) },
		JVP: func(c *Ctx) []*graph.Value { return one(c.T(0)) },
	}
}

// straightOps are the piecewise constant operators whose result has the shape of operand 0.
const straightOps = "Bernoulli Ceil Floor Hardmax Round Sign"

// StraightOps lists the operators that Policy.Straight can name.
func StraightOps() []string { return strings.Fields(straightOps) }

// PassesStraight reports whether Policy.Straight can name the operator.
func PassesStraight(k op.Key) bool { return k.Domain == "" && slices.Contains(StraightOps(), k.Name) }
