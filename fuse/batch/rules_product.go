package batch

import (
	"errors"
	"strings"

	"gradtool/graph"
)

// productRules are those of matrix products and convolutions.
func productRules() map[string]rule {
	return map[string]rule{"MatMul": matMul, "Gemm": gemm, "Conv": conv, "ConvTranspose": convTranspose, "Einsum": einsum}
}

// alone divides operand i, of which every slice along the batch gives one of the result, in the axis given. The others are whole.
func alone(c *ctx, i int, p *place, axis int) (*verdict, error) {
	return &verdict{in: c.wants(p, i), out: []*place{p.moved(axis)}}, nil
}

// positions reports whether an operand holds positions.
func positions(c *ctx) bool {
	for _, p := range c.at {
		if p != nil && p.unit != nil {
			return true
		}
	}
	return false
}

// matMul divides rows, columns, or matrices of a batch; over a contracted batch partial products are added up.
func matMul(c *ctx) (*verdict, error) {
	a, b, y := c.shape(0), c.shape(1), c.result(0)
	if len(a) == 0 || len(b) == 0 || y == nil {
		return nil, errRank
	}
	if positions(c) {
		return nil, errPositions
	}
	i := c.split()
	p := c.at[i]
	ra, rb, ry := len(a), len(b), len(y)
	rank := []int{ra, rb}[i]
	inner := max(rb-2, 0) // the axis of operand 1 that is contracted
	switch {
	case i == 0 && p.axis == ra-1:
		return &verdict{in: []*place{p, p.moved(inner)}, out: []*place{nil}, join: "Add"}, nil
	case i == 1 && p.axis == inner:
		return &verdict{in: []*place{p.moved(ra - 1), p}, out: []*place{nil}, join: "Add"}, nil
	case i == 0 && p.axis == ra-2:
		if rb == 1 {
			return alone(c, 0, p, ry-1)
		}
		return alone(c, 0, p, ry-2)
	case i == 1 && p.axis == rb-1:
		return alone(c, 1, p, ry-1)
	}
	// A matrix of a batch: operands of at least three axes.
	other := 1 - i
	ro := []int{ra, rb}[other]
	v := &verdict{in: c.wants(p, i)}
	fromEnd := rank - p.axis
	axis := ry - fromEnd
	if ro == 1 {
		axis++ // the result lacks an axis
	}
	v.out = []*place{p.moved(axis)}
	if at := ro - fromEnd; at >= 0 && ro > 2 {
		if d, ok := c.shape(other)[at].Int(); !ok || d != 1 {
			v.in[other] = p.moved(at)
		}
	}
	return v, nil
}

// gemm divides rows or columns; over a contracted batch each part adds to what the one before made.
func gemm(c *ctx) (*verdict, error) {
	if positions(c) {
		return nil, errPositions
	}
	row, inA, inB, column := 0, 1, 0, 1
	if c.n.Int("transA", 0) != 0 {
		row, inA = inA, row
	}
	if c.n.Int("transB", 0) != 0 {
		inB, column = column, inB
	}
	i := c.split()
	if i == 2 {
		return nil, errOperand
	}
	p := c.at[i]
	if i == 0 && p.axis == inA || i == 1 && p.axis == inB {
		v := &verdict{in: c.wants(nil), out: []*place{nil}, carry: 3, join: "Add"}
		v.in[0], v.in[1] = p.moved(inA), p.moved(inB)
		v.edit = func(n *graph.Node, k int) {
			switch {
			case k == 0:
			case v.carry > 0:
				n.DeleteAttr("beta")
			default:
				n.TrimIn(2)
			}
		}
		return v, nil
	}
	axis := 0
	if i == 1 {
		axis = 1
	}
	if axis == 0 && p.axis != row || axis == 1 && p.axis != column {
		return nil, errOperand
	}
	v, err := alone(c, i, p, axis)
	if s := c.shape(2); c.n.Operand(2) != nil {
		if s == nil {
			return nil, errRank
		}
		if at := align(axis, 2, len(s)); at >= 0 {
			if d, ok := s[at].Int(); !ok || d != 1 {
				v.in[2] = p.moved(at)
			}
		}
	}
	return v, err
}

// conv divides images, channels of the result, or, where the batch takes the place of the channels as it does in gradients of
// weights, the sum over them.
func conv(c *ctx) (*verdict, error) {
	if positions(c) {
		return nil, errPositions
	}
	i := c.split()
	p := c.at[i]
	group := graph.Known(c.n.Int("group", 1))
	switch {
	case i == 0 && p.axis == 0:
		return alone(c, 0, p, 0)
	case i == 0 && p.axis == 1 && p.outer.Equal(group):
		w := p.moved(1)
		w.outer = one
		return contraction(c, p, w)
	case i == 1 && p.axis == 1 && p.outer.Equal(one):
		x := p.moved(1)
		x.outer = group
		return contraction(c, x, p)
	case i == 1 && p.axis == 0 && group.Equal(one):
		v, err := alone(c, 1, p, 1)
		if c.n.Operand(2) != nil {
			v.in[2] = p.moved(0)
		}
		return v, err
	}
	return nil, errSum
}

// contraction adds up products over the batch. The first part adds the bias.
func contraction(c *ctx, x, w *place) (*verdict, error) {
	v := &verdict{in: c.wants(nil), out: []*place{nil}, join: "Add"}
	v.in[0], v.in[1] = x, w
	v.edit = func(n *graph.Node, k int) {
		if k > 0 {
			n.TrimIn(2)
		}
	}
	return v, nil
}

func convTranspose(c *ctx) (*verdict, error) {
	if positions(c) {
		return nil, errPositions
	}
	i := c.split()
	p := c.at[i]
	single := c.n.Int("group", 1) == 1
	switch {
	case i == 0 && p.axis == 0:
		return alone(c, 0, p, 0)
	case single && (i == 0 && p.axis == 1 || i == 1 && p.axis == 0):
		return contraction(c, p.moved(1), p.moved(0))
	case single && i == 1 && p.axis == 1:
		v, err := alone(c, 1, p, 1)
		if c.n.Operand(2) != nil {
			v.in[2] = p.moved(0)
		}
		return v, err
	}
	return nil, errSum
}

// einsum divides along the letter that is the batch.
func einsum(c *ctx) (*verdict, error) {
	if positions(c) {
		return nil, errPositions
	}
	left, right, ok := strings.Cut(strings.ReplaceAll(c.n.Str("equation", ""), " ", ""), "->")
	terms := strings.Split(left, ",")
	if !ok || strings.Contains(left+right, ".") || len(terms) != len(c.n.In) {
		return nil, errors.New("its equation has no form that is covered")
	}
	i := c.split()
	p := c.at[i]
	if p.axis >= len(terms[i]) {
		return nil, errRank
	}
	letter := terms[i][p.axis : p.axis+1]
	v := &verdict{in: c.wants(nil), out: []*place{nil}, join: "Add"}
	for j, t := range terms {
		switch strings.Count(t, letter) {
		case 0:
		case 1:
			v.in[j] = p.moved(strings.Index(t, letter))
		default:
			return nil, errSum
		}
	}
	if at := strings.Index(right, letter); at >= 0 {
		v.out[0] = p.moved(at)
	}
	return v, nil
}
