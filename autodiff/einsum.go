package autodiff

import (
	"fmt"
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
)

func einsumRules() []Rule {
	return []Rule{{Name: "Einsum", Kind: HasVJP, VJP: einsumVJP, Check: func(n *graph.Node) error {
		e, ranked, err := equationOf(n)
		if err == nil && !ranked && !strings.ContainsRune(e.Out, op.Ellipsis) {
			err = fmt.Errorf("equation %s sums over an ellipsis of unknown rank", e)
		}
		return err
	}}}
}

// equationOf returns n's equation, with letters for ellipses if all ranks are known.
func equationOf(n *graph.Node) (e *op.Equation, ranked bool, err error) {
	if e, err = op.ParseEquation(n.Str("equation", ""), len(n.In)); err != nil {
		return nil, false, err
	}
	ranks := make([]int, len(n.In))
	for i, x := range n.In {
		if ranks[i] = len(x.Type.Shape); x.Type.Shape == nil {
			if strings.ContainsRune(e.In[i], op.Ellipsis) {
				return e, false, nil
			}
			ranks[i] = len(e.In[i])
		}
	}
	e, err = e.Expand(ranks)
	return e, true, err
}

// einsumVJP is the rule of y = einsum(x1, x2, ...): each operand gets the einsum of the cotangent with the other
// operands, its own labels being the result's. A label that only the operand has was summed over: the cotangent is
// repeated along it. A label that it repeats took its diagonal: the cotangent is put back there.
func einsumVJP(c *Ctx) []*graph.Value {
	e, _, err := equationOf(c.Node)
	if err != nil {
		return nil // Check has refused the node
	}
	out := make([]*graph.Value, len(c.Node.In))
	for i := range out {
		if c.Need(i) {
			out[i] = einsumCt(c, e, i)
		}
	}
	return out
}

func einsumCt(c *Ctx, e *op.Equation, i int) *graph.Value {
	own := []rune(e.In[i])
	var present []rune // own labels, once each, that the other terms give
	for j, l := range own {
		if slices.Index(own, l) != j {
			continue
		}
		if strings.ContainsRune(e.Out, l) || givenByOthers(c, e, i, l) {
			present = append(present, l)
		}
	}
	in, eq := []*graph.Value{c.Ct(0)}, &op.Equation{In: []string{e.Out}, Out: string(present)}
	for j, x := range c.Node.In {
		if j != i {
			in, eq.In = append(in, x), append(eq.In, e.In[j])
		}
	}
	if strings.ContainsRune(strings.Join(eq.In, ""), op.Ellipsis) && !strings.ContainsRune(eq.Out, op.Ellipsis) {
		eq.Out = string(op.Ellipsis) + eq.Out // summed by the driver: runtimes want an ellipsis in the result
	}
	g := c.Ct(0)
	if len(in) > 1 || eq.Out != e.Out {
		g = c.Op("Einsum", in, graph.StringAttr("equation", eq.String()))
	}
	if len(present) < len(own) {
		g = repeatAndEmbed(c, g, c.X(i), own, present)
	}
	return g
}

// givenByOthers reports whether another operand than i has label l, with its full size.
func givenByOthers(c *Ctx, e *op.Equation, i int, l rune) bool {
	for j, t := range e.In {
		if at := strings.IndexRune(t, l); j != i && at >= 0 {
			if l == op.Ellipsis || !isOne(dim(c.X(j), at)) || isOne(dim(c.X(i), strings.IndexRune(e.In[i], l))) {
				return true
			}
		}
	}
	return false
}

// repeatAndEmbed brings g, with the labels present, to x, whose labels own may repeat: it is repeated along
// the labels that are missing and zero off the diagonals of those that repeat.
func repeatAndEmbed(c *Ctx, g, x *graph.Value, own, present []rune) *graph.Value {
	var absent []int64 // axes of x that g lacks
	var onDiagonal *graph.Value
	for j, l := range own {
		first := slices.Index(own, l)
		if first == j && slices.Contains(present, l) {
			continue
		}
		absent = append(absent, int64(j))
		if first != j {
			same := c.Binary("Equal", alongAxis(c, x, first, len(own)), alongAxis(c, x, j, len(own)))
			if onDiagonal != nil {
				same = c.Binary("And", onDiagonal, same)
			}
			onDiagonal = same
		}
	}
	g = c.Expand(c.Unsqueeze(g, absent...), c.Shape(x))
	if onDiagonal != nil {
		g = c.Where(onDiagonal, g, c.Like(g, 0))
	}
	return g
}

// alongAxis returns the positions 0, 1, ... along an axis of x, shaped to broadcast to x of the given rank.
func alongAxis(c *Ctx, x *graph.Value, axis, rank int) *graph.Value {
	var after []int64
	for i := axis + 1; i < rank; i++ {
		after = append(after, int64(i-axis))
	}
	return c.Unsqueeze(c.upTo(c.DimOf(x, axis)), after...)
}
