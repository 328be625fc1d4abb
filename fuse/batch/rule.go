package batch

import (
	"errors"
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// rule says how a node of which some operands are there in parts is computed in parts. An error is the reason why it is not, and
// must be computed whole.
type rule func(c *ctx) (*verdict, error)

// ctx is what a rule sees.
type ctx struct {
	*emitter
	n  *graph.Node
	at []*place // by operand, of as many as a rule may ask for; nil: whole
}

// verdict says how a node is computed in parts.
type verdict struct {
	in  []*place // what the parts of each operand are; nil: all parts read the whole operand
	out []*place // where the parts of the results belong; nil: partial results, which are combined

	join string // operator that combines partial results of two parts
	// carry is 1 + the operand in whose place later parts read the result of the part before; 0 for none. The last is whole.
	carry int
	// edit adjusts the copy of the node for part k, whose results have no types yet.
	edit func(c *graph.Node, k int)
	// build makes the results of a part from its operands, in place of a copy of the node.
	build func(k int, in []*graph.Value) []*graph.Value
	// finish makes the result of the combined partial results.
	finish func(v *graph.Value) *graph.Value
	// results that the node has no parts of: made at once.
	whole func() []*graph.Value
}

var (
	errRank    = errors.New("a rank is not known")
	errSum     = errors.New("it mixes the samples of the batch")
	errOperand = errors.New("an operand has the batch where the node has no use for a part of it")
)

// split returns the first operand that is there in parts, -1 without one.
func (c *ctx) split() int {
	for i, p := range c.at {
		if p != nil {
			return i
		}
	}
	return -1
}

// shape returns the shape of operand i as it is for the whole batch, nil if it is omitted or of unknown rank.
func (c *ctx) shape(i int) graph.Shape {
	if v := c.n.Operand(i); v != nil {
		return v.Type.Shape
	}
	return nil
}

// result returns the shape of result i.
func (c *ctx) result(i int) graph.Shape {
	if v := c.n.Result(i); v != nil {
		return v.Type.Shape
	}
	return nil
}

// ints returns the elements of a constant operand.
func (c *ctx) ints(i int) ([]int64, bool) {
	v := c.n.Operand(i)
	if v == nil {
		return nil, false
	}
	a := c.info.Const(v)
	if a == nil || a.I64 == nil {
		return nil, false
	}
	return a.I64, true
}

// wants returns a list of as many operands as the node has, p for those that are named.
func (c *ctx) wants(p *place, operands ...int) []*place {
	in := make([]*place, len(c.n.In))
	for _, i := range operands {
		if i < len(in) && in[i] == nil && c.n.In[i] != nil {
			in[i] = p
		}
	}
	return in
}

// gives returns p for each of the results.
func (c *ctx) gives(p *place) []*place {
	out := make([]*place, len(c.n.Out))
	for i := range out {
		out[i] = p
	}
	return out
}

// axis returns an attribute that is an axis of a tensor of the given rank.
func (c *ctx) axis(name string, def int64, rank int) int {
	a := c.n.Int(name, def)
	if a < 0 {
		a += int64(rank)
	}
	return int(a)
}

// axisIndex returns where a list of axes of a tensor of the given rank, from the front or the back, names an axis; -1 where it does not.
func axisIndex(axes []int64, axis, rank int) int {
	return slices.IndexFunc(axes, func(a int64) bool { return a == int64(axis) || a < 0 && a+int64(rank) == int64(axis) })
}

// adds reports whether the node adds up two values whose terms are there in parts.
func (c *ctx) adds() bool {
	if !c.n.Is("Add") || len(c.n.In) != 2 {
		return false
	}
	for _, v := range c.n.In {
		if p := c.emitter.at[v]; p == nil || !p.sum || !v.Type.Shape.Equal(c.result(0)) {
			return false
		}
	}
	return true
}

// judge asks the rule of the node, and checks its answer against the shapes.
func (c *ctx) judge() (*verdict, error) {
	if len(c.n.Subgraphs()) > 0 {
		return nil, errors.New("it runs subgraphs")
	}
	if c.adds() {
		terms := &place{sum: true}
		return &verdict{in: c.wants(terms, 0, 1), out: []*place{nil}, join: "Add"}, nil
	}
	r := ruleOf(c.n)
	if r == nil {
		return nil, errors.New("there is no rule for its operator")
	}
	v, err := r(c)
	if err != nil {
		return nil, err
	}
	v.in, v.out = fitted(v.in, len(c.n.In)), fitted(v.out, len(c.n.Out))
	for i, p := range v.in {
		if p == nil || c.n.In[i] == nil {
			continue
		}
		if w := c.n.In[i]; !movable(w) {
			return nil, fmt.Errorf("operand %q is of a type that Slice and Concat do not take", w.Name)
		} else if !p.fits(w.Type.Shape, c.batch) {
			return nil, fmt.Errorf("operand %q of shape %s does not have the batch in axis %d", w.Name, w.Type.Shape, p.axis)
		} else if err := c.available(w, p); err != nil {
			return nil, err
		}
	}
	for i, p := range v.out {
		w := c.n.Out[i]
		if p == nil || w == nil {
			continue
		}
		if !movable(w) {
			return nil, fmt.Errorf("result %q is of a type that Slice and Concat do not take", w.Name)
		}
		if !p.fits(w.Type.Shape, c.batch) {
			return nil, fmt.Errorf("result %q of shape %s does not have the batch in axis %d", w.Name, w.Type.Shape, p.axis)
		}
		if _, ok := p.outer.Int(); !ok && !p.sum {
			return nil, fmt.Errorf("result %q has the batch in blocks of unknown number", w.Name)
		}
	}
	return v, nil
}

// fitted returns list with n elements.
func fitted(list []*place, n int) []*place {
	out := make([]*place, n)
	copy(out, list)
	return out
}

// movable reports whether Slice and Concat take the type of v.
func movable(v *graph.Value) bool {
	e := v.Type.Elem
	return v.Type.IsTensor() && e.Bits() != 4 && e.Bits() != 2 && !(e.IsFloat() && e.Bits() < 16)
}

// ruleOf returns the rule of the operator that n applies, nil without one.
func ruleOf(n *graph.Node) rule {
	if graph.StdDomain(n.Domain) != "" {
		return nil
	}
	if r, ok := table()[n.Op]; ok {
		return r
	}
	if d := op.Of(n); d.Has(op.Elementwise) && !d.Has(op.Random) {
		return elementwise
	}
	return nil
}
