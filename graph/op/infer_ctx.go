package op

import (
	"fmt"

	"gradtool/graph"
)

// InferCtx is what a definition's Infer sees: the operands' types and known values. It sets the
// results'.
type InferCtx struct {
	Node  *graph.Node
	Info  *Info
	types []graph.Type
	vals  [][]graph.Dim
}

// Has reports whether operand i is given.
func (c *InferCtx) Has(i int) bool { return c.Node.Operand(i) != nil }

// NumIn returns the number of operands, omitted ones included.
func (c *InferCtx) NumIn() int { return len(c.Node.In) }

// In returns the type of operand i, the zero Type if it is omitted or unknown.
func (c *InferCtx) In(i int) graph.Type {
	if v := c.Node.Operand(i); v != nil {
		return v.Type
	}
	return graph.Type{}
}

// Shape returns the shape of operand i, nil if its rank is not known.
func (c *InferCtx) Shape(i int) graph.Shape { return c.In(i).Shape }

// Elem returns the element type of operand i.
func (c *InferCtx) Elem(i int) graph.DataType { return c.In(i).Elem }

// Const returns the value of operand i if it is known and small, else nil.
func (c *InferCtx) Const(i int) *Array {
	if v := c.Node.Operand(i); v != nil {
		return c.Info.Const(v)
	}
	return nil
}

// Ints returns the elements of integer operand i if they are all known numbers.
func (c *InferCtx) Ints(i int) ([]int64, bool) {
	d := c.Dims(i)
	if d == nil {
		return nil, false
	}
	out := make([]int64, len(d))
	for j := range d {
		n, ok := d[j].Int()
		if !ok {
			return nil, false
		}
		out[j] = n
	}
	return out, true
}

// Dims returns the elements of integer operand i (a scalar or vector) as expressions, each possibly
// unknown; nil if their number is unknown.
func (c *InferCtx) Dims(i int) []graph.Dim {
	if v := c.Node.Operand(i); v != nil {
		return c.Info.Dims(v)
	}
	return nil
}

// Set makes result i a tensor of the given type; shape nil means unknown rank.
func (c *InferCtx) Set(i int, elem graph.DataType, shape graph.Shape) {
	c.SetType(i, graph.TensorOf(elem, shape))
}

// SetType sets the type of result i.
func (c *InferCtx) SetType(i int, t graph.Type) {
	if i < len(c.types) {
		c.types[i] = t
	}
}

// SetDims says that result i, an integer tensor, has these elements in row-major order, which may be unknown.
func (c *InferCtx) SetDims(i int, d []graph.Dim) {
	if i < len(c.vals) {
		c.vals[i] = d
	}
}

// Errorf returns an error about the node's operands.
func (c *InferCtx) Errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// Axis returns axis, which may be negative, counted from the front for the given rank.
func (c *InferCtx) Axis(axis int64, rank int) (int, error) { return normAxis(axis, rank) }

func normAxis(axis int64, rank int) (int, error) {
	a := axis
	if a < 0 {
		a += int64(rank)
	}
	if a < 0 || a >= int64(max(rank, 1)) || (rank == 0 && axis != 0 && axis != -1) {
		return 0, fmt.Errorf("axis %d is outside a tensor of rank %d", axis, rank)
	}
	return int(a), nil
}

// normAxes is normAxis for a list; duplicates are refused.
func normAxes(axes []int64, rank int) ([]int, error) {
	out := make([]int, len(axes))
	seen := map[int]bool{}
	for i, a := range axes {
		n, err := normAxis(a, rank)
		if err != nil {
			return nil, err
		}
		if seen[n] {
			return nil, fmt.Errorf("axis %d is given twice", a)
		}
		seen[n], out[i] = true, n
	}
	return out, nil
}

// sameAsFirst infers result 0 as of the type of operand 0.
func sameAsFirst(c *InferCtx) error {
	c.SetType(0, c.In(0))
	return nil
}

// broadcastShapes returns the shape that numpy-style broadcasting gives; nil if a rank is unknown.
func broadcastShapes(shapes ...graph.Shape) (graph.Shape, error) {
	rank := 0
	for _, s := range shapes {
		if s == nil {
			return nil, nil
		}
		rank = max(rank, len(s))
	}
	out := make(graph.Shape, rank)
	for i := range out {
		d := graph.Known(1)
		for _, s := range shapes {
			j := i - (rank - len(s))
			if j < 0 {
				continue
			}
			var err error
			if d, err = broadcastDim(d, s[j]); err != nil {
				return nil, fmt.Errorf("shapes %v cannot be broadcast: %w", shapes, err)
			}
		}
		out[i] = d
	}
	return out, nil
}

// notAlone reports whether d is certain not to be 0 where e is 1.
func notAlone(d, e graph.Dim) bool {
	return graph.Known(1).LessEq(d) || e.Min(graph.Known(1)).LessEq(d)
}

func broadcastDim(a, b graph.Dim) (graph.Dim, error) {
	x, aKnown := a.Int()
	y, bKnown := b.Int()
	switch {
	case aKnown && x == 1:
		return b, nil
	case bKnown && y == 1:
		return a, nil
	case aKnown && bKnown:
		if x != y {
			return a, fmt.Errorf("%d against %d", x, y)
		}
		return a, nil
	case aKnown: // the other must be x or 1
		return a, nil
	case bKnown:
		return b, nil
	case a.Equal(b):
		return a, nil
	case b.LessEq(a) && notAlone(b, a):
		// Sizes that broadcast and differ are 1 and a larger one, which is the result; but none against 1 gives none.
		return a, nil
	case a.LessEq(b) && notAlone(a, b):
		return b, nil
	}
	return graph.Unknown(), nil
}
