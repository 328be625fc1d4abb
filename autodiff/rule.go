package autodiff

import (
	"sync"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Kind says what an operator has for a derivative.
type Kind uint8

// Kinds of rules.
const (
	Unsupported Kind = iota // none, for the reason given
	HasVJP                  // a vector-Jacobian product
	Decomposed              // rewritten to simpler operators first, by its op.Def
	ZeroGrad                // piecewise constant: the derivative is zero wherever it exists
	NoGrad                  // results are integers, bools, strings: nothing to differentiate
)

// String names the kind as tables print it.
func (k Kind) String() string {
	return [...]string{"unsupported", "VJP", "decompose", "zero gradient", "no gradient"}[k]
}

// Rule is an operator's derivative.
type Rule struct {
	Domain string // "" is ai.onnx
	Name   string
	Kind   Kind
	// VJP returns the cotangents of the operands given those of the results: one per operand, nil (or
	// missing at the end) where it is zero. A cotangent may still have the broadcast result's shape and
	// another float type than the operand: the driver reduces and casts.
	VJP func(c *Ctx) []*graph.Value
	// JVP returns the tangents of the results given those of the operands: one per result, nil (or missing at the end)
	// where it is zero, of the result's shape. Without it, the tangents come from the VJP of the VJP.
	JVP func(c *Ctx) []*graph.Value
	// Check returns why this node is not covered though the operator is; nil means always covered.
	Check func(n *graph.Node) error
	// Stop lists operands that take part in no derivative though they may be floats: scales of a resize.
	Stop []int
	// Fixed lists operands that have derivatives but are data by nature: running statistics, class
	// weights. An initializer read as such only is no parameter unless it is named.
	Fixed []int
	// Reason says, for Unsupported and NoGrad, why.
	Reason string
}

// families lists the rules, one slice per file; files are named as in package op.
func families() [][]Rule {
	return [][]Rule{
		unaryRules(), activationRules(), arithmeticRules(), logicRules(), castRules(), reduceRules(), softmaxRules(),
		matmulRules(), convRules(), poolRules(), normRules(), shapeRules(), moveRules(), indexRules(), constantRules(),
		imageRules(), lossRules(), recurrentRules(), attentionRules(), controlRules(), sequenceRules(), randomRules(),
		signalRules(), quantRules(), contribRules(), stringRules(),
	}
}

// lazyTable is built at its first use, not when the program starts: rules of control flow refer back to the table, which
// the initialization of a variable must not.
type lazyTable struct {
	once  sync.Once
	rules map[op.Key]*Rule
}

var theTable lazyTable

func table() map[op.Key]*Rule {
	theTable.once.Do(func() {
		t := map[op.Key]*Rule{}
		for _, fam := range families() {
			for i := range fam {
				r := &fam[i]
				k := op.Key{Domain: r.Domain, Name: r.Name}
				if t[k] != nil {
					panic("autodiff: " + k.String() + " has two rules")
				}
				t[k] = r
			}
		}
		guardMasked(t)
		addForward(t)
		theTable.rules = t
	})
	return theTable.rules
}

// Lookup returns the rule of an operator, nil if there is none.
func Lookup(k op.Key) *Rule { return table()[k] }

// stops reports whether operand i takes part in no derivative.
func (r *Rule) stops(i int) bool {
	for _, s := range r.Stop {
		if s == i {
			return true
		}
	}
	return false
}

// Ctx is what a rule sees: the node, the cotangents of its results, and a builder for what it emits.
type Ctx struct {
	*op.Builder
	Node *graph.Node
	ct   []*graph.Value
	need []bool
	rev  *reverse

	// In forward mode:
	tangents []*graph.Value // of the operands
	results  []*graph.Value // that the node had before it got more for their tangents
}

// X returns operand i, nil where it is omitted.
func (c *Ctx) X(i int) *graph.Value { return c.Node.Operand(i) }

// Y returns result i, nil where it is omitted. See Want.
func (c *Ctx) Y(i int) *graph.Value { return c.Node.Result(i) }

// Ct returns the cotangent of result i, of the result's shape and element type; nil if it is zero.
func (c *Ctx) Ct(i int) *graph.Value {
	if i < len(c.ct) {
		return c.ct[i]
	}
	return nil
}

// Need reports whether anybody asks for the cotangent of operand i; in forward mode, whether it has a tangent.
func (c *Ctx) Need(i int) bool { return i < len(c.need) && c.need[i] }

// Want returns result i and has the forward node compute it if the file omitted it.
func (c *Ctx) Want(i int) *graph.Value {
	n := c.Node
	if v := n.Result(i); v != nil {
		return v
	}
	base := n.Op
	if y := n.Result(0); y != nil {
		base = y.Name
	}
	v := n.DefineOut(i, n.Graph.Model.Fresh(base+"_"+resultName(n, i)))
	c.Info.Node(n)
	return v
}

// elementwise is the rule of y = f(x) by element: the cotangent times df, which may use x and y.
func elementwise(name string, df func(c *Ctx, x, y *graph.Value) *graph.Value) Rule {
	return Rule{Name: name, Kind: HasVJP, VJP: func(c *Ctx) []*graph.Value {
		return one(c.Mul(c.Ct(0), df(c, c.X(0), c.Y(0))))
	}}
}

// unary is the rule of an operator with one differentiable operand and result, given by its VJP.
func unary(name string, vjp func(c *Ctx, x, y, g *graph.Value) *graph.Value) Rule {
	return Rule{Name: name, Kind: HasVJP, VJP: func(c *Ctx) []*graph.Value {
		return one(vjp(c, c.X(0), c.Y(0), c.Ct(0)))
	}}
}

// zeroGrad is the rule of piecewise constant operators.
func zeroGrad(names ...string) []Rule {
	var out []Rule
	for _, n := range names {
		out = append(out, Rule{Name: n, Kind: ZeroGrad})
	}
	return out
}

// noGrad is the rule of operators with nothing to differentiate.
func noGrad(reason string, names ...string) []Rule {
	var out []Rule
	for _, n := range names {
		out = append(out, Rule{Name: n, Kind: NoGrad, Reason: reason})
	}
	return out
}

// one is the cotangent list of a rule whose first operand alone has one.
func one(v *graph.Value) []*graph.Value { return []*graph.Value{v} }
