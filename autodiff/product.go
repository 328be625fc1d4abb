package autodiff

import (
	"gradtool/graph"
)

// productOfOthers returns, in place of each element of x, the product of the other elements along the axis.
// Nothing is divided, so it is exact through zeros, and so are its derivatives of any order.
func productOfOthers(c *Ctx, x *graph.Value, axis int64) *graph.Value {
	if s := x.Type.Shape; s != nil {
		if axis < 0 {
			axis += int64(len(s))
		}
		if n, ok := s[axis].Int(); ok {
			return othersByHalving(c, x, axis, n)
		}
	}
	return othersByMask(c, x, axis)
}

// othersByHalving multiplies the two halves of x, a and b, element by element; with e the products of others
// among those, b·e and a·e are the ones wanted. That is linear work in a logarithmic number of steps.
func othersByHalving(c *Ctx, x *graph.Value, axis, n int64) *graph.Value {
	switch {
	case n <= 1:
		return c.FullLike(x, 1)
	case n%2 == 1: // put a one behind
		shape := c.Concat(0, dimsWith(c, x, axis, 1)...)
		padded := c.Concat(axis, x, c.Full(shape, x.Type.Elem, 1))
		return c.cut(othersByHalving(c, padded, axis, n+1), axis, 0, n)
	}
	a, b := c.cut(x, axis, 0, n/2), c.cut(x, axis, n/2, n)
	if n == 2 {
		return c.Concat(axis, b, a)
	}
	e := othersByHalving(c, c.Mul(a, b), axis, n/2)
	return c.Concat(axis, c.Mul(b, e), c.Mul(a, e))
}

// dimsWith returns the dimensions of x, of known rank, as vectors of one element, that of the axis replaced by n.
func dimsWith(c *Ctx, x *graph.Value, axis, n int64) []*graph.Value {
	out := make([]*graph.Value, len(x.Type.Shape))
	for i := range out {
		if int64(i) == axis {
			out[i] = c.Ints(n)
		} else {
			out[i] = c.DimOf(x, i)
		}
	}
	return out
}

// cut returns x[start:end] along the axis.
func (c *Ctx) cut(x *graph.Value, axis, start, end int64) *graph.Value {
	return c.Slice(x, c.Ints(start), c.Ints(end), c.Ints(axis), nil)
}

// othersByMask lays x out as rows j for every element i, with a one at j = i, and multiplies along j: quadratic work, for
// axes whose size only run time tells.
func othersByMask(c *Ctx, x *graph.Value, axis int64) *graph.Value {
	same := squareMask(c, x, axis, "Equal")
	rows := c.Where(same, c.Like(x, 1), c.Unsqueeze(x, rowAxis(axis)))
	return c.Op("ReduceProd", []*graph.Value{rows, c.Ints(colAxis(axis))}, graph.IntAttr("keepdims", 0))
}

// rowAxis and colAxis are where, after an axis i has been put in front of the given axis j, those two are.
func rowAxis(axis int64) int64 {
	if axis < 0 {
		return axis - 1
	}
	return axis
}

func colAxis(axis int64) int64 {
	if axis < 0 {
		return axis
	}
	return axis + 1
}

// squareMask returns compare(j, i) for all pairs of indices of the axis of x, shaped to broadcast against
// x with an axis i put in front of that axis, which is j.
func squareMask(c *Ctx, x *graph.Value, axis int64, compare string) *graph.Value {
	var n *graph.Value // a vector of one element
	if x.Type.Shape != nil {
		n = c.DimOf(x, int(axis))
	} else {
		n = c.Gather(c.Shape(x), c.Ints(axis), 0)
	}
	index := c.Op("Range", []*graph.Value{c.IntScalar(0), c.Squeeze(n, 0), c.IntScalar(1)})
	mask := c.Binary(compare, index, c.Unsqueeze(index, 1))
	// Ones behind, for the axes that follow.
	switch {
	case axis < 0:
		for range -1 - axis {
			mask = c.Unsqueeze(mask, -1)
		}
	case x.Type.Shape != nil:
		for range int64(len(x.Type.Shape)) - 1 - axis {
			mask = c.Unsqueeze(mask, -1)
		}
	default:
		behind := c.Sub(c.Op("Shape", []*graph.Value{c.Shape(x)}), c.Ints(axis+1))
		mask = c.Reshape(mask, c.Concat(0, n, n, c.Full(behind, graph.Int64, 1)))
	}
	return mask
}
