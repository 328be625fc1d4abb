package autodiff

import (
	"slices"

	"gradtool/graph"
)

func matmulRules() []Rule {
	return slices.Concat([]Rule{
		{Name: "MatMul", Kind: HasVJP, VJP: matmulVJP},
		{Name: "Gemm", Kind: HasVJP, VJP: gemmVJP},
	}, einsumRules(), detRules(), noGrad("results are integers", "MatMulInteger", "QLinearMatMul"))
}

// matmulVJP is the rule of y = a b: a gets g b^T and b gets a^T g, summed over the batch axes that were broadcast. A
// vector on the left counts as a matrix of one row, on the right as one of one column.
func matmulVJP(c *Ctx) []*graph.Value {
	a, b, g := c.X(0), c.X(1), c.Ct(0)
	out := make([]*graph.Value, 2)
	ra, rb := len(a.Type.Shape), len(b.Type.Shape)
	switch {
	case b.Type.Shape != nil && rb == 2:
		// Covers every rank of a, known or not: all but its last axis count as rows.
		if c.Need(0) {
			out[0] = timesTransposed(c, g, b)
		}
		if c.Need(1) {
			out[1] = c.Op("Gemm", []*graph.Value{rows(c, a, c.DimOf(b, 0)), rows(c, g, c.DimOf(b, 1))}, graph.IntAttr("transA", 1))
		}
	case b.Type.Shape != nil && rb == 1:
		column := c.Unsqueeze(g, -1)
		if c.Need(0) {
			out[0] = c.Mul(column, b)
		}
		if c.Need(1) {
			dot := c.Op("Gemm", []*graph.Value{rows(c, a, c.DimOf(b, 0)), c.ReshapeTo(g, -1, 1)}, graph.IntAttr("transA", 1))
			out[1] = c.ReshapeTo(dot, -1)
		}
	case a.Type.Shape == nil || b.Type.Shape == nil:
		return matmulUnknownRank(c)
	case ra == 1:
		row := c.Unsqueeze(g, -2)
		if c.Need(0) {
			out[0] = c.MatMul(row, c.SwapLast(b))
		}
		if c.Need(1) {
			out[1] = c.Mul(c.Unsqueeze(a, -1), row)
		}
	default:
		if c.Need(0) && ra == 2 {
			out[0] = contractBatch(c, g, b)
		} else if c.Need(0) {
			out[0] = c.MatMul(g, c.SwapLast(b))
		}
		if c.Need(1) {
			out[1] = c.MatMul(c.SwapLast(a), g)
		}
	}
	return out
}

// rows returns x as a matrix whose rows are its last axis, of the given size.
func rows(c *Ctx, x, size *graph.Value) *graph.Value {
	switch len(x.Type.Shape) {
	case 1:
		return c.Unsqueeze(x, 0)
	case 2:
		return x
	}
	return c.Op("Reshape", []*graph.Value{x, c.Concat(0, c.Ints(-1), size)})
}

// timesTransposed returns g b^T for a matrix b.
func timesTransposed(c *Ctx, g, b *graph.Value) *graph.Value {
	if len(g.Type.Shape) == 2 {
		return c.Op("Gemm", []*graph.Value{g, b}, graph.IntAttr("transB", 1))
	}
	return c.MatMul(g, c.Transpose(b, 1, 0))
}

// contractBatch returns the sum over the batch of g b^T, for g of [..., M, N] and b of [..., K, N] with equal batch
// axes, as one product of matrices [M, ...N] and [K, ...N].
func contractBatch(c *Ctx, g, b *graph.Value) *graph.Value {
	wide := func(x *graph.Value) *graph.Value {
		r := len(x.Type.Shape)
		perm := []int64{int64(r - 2)}
		for i := range r {
			if i != r-2 {
				perm = append(perm, int64(i))
			}
		}
		return c.Op("Flatten", []*graph.Value{c.Transpose(x, perm...)}, graph.IntAttr("axis", 1))
	}
	return c.Op("Gemm", []*graph.Value{wide(g), wide(b)}, graph.IntAttr("transB", 1))
}

// matmulUnknownRank is matmulVJP with shapes worked out at run time: vectors get their axis of size 1, and matrices
// are transposed as one batch.
func matmulUnknownRank(c *Ctx) []*graph.Value {
	a, b, g := c.X(0), c.X(1), c.Ct(0)
	sa, sb := c.Shape(a), c.Shape(b)
	rank := func(s *graph.Value) *graph.Value { return c.Op("Shape", []*graph.Value{s}) }
	lacking := func(s *graph.Value) *graph.Value { // a 1 for the axis a vector lacks, else nothing
		return c.Full(c.Op("Max", []*graph.Value{c.Sub(c.Ints(2), rank(s)), c.Ints(0)}), graph.Int64, 1)
	}
	sa, sb = c.Concat(0, lacking(c.Shape(a)), sa), c.Concat(0, sb, lacking(c.Shape(b)))
	at := func(s *graph.Value, i int64) *graph.Value { return c.Gather(s, c.Ints(i), 0) }
	// The batch axes of y are what is left without those of matrix operands.
	matrixAxes := c.Sub(c.Ints(2), c.Add(rank(lacking(c.Shape(a))), rank(lacking(c.Shape(b)))))
	batch := c.Slice(c.Shape(g), c.Ints(0), c.Sub(rank(c.Shape(g)), matrixAxes), c.Ints(0), nil)
	ga := c.Reshape(g, c.Concat(0, batch, at(sa, -2), at(sb, -1)))
	swap := func(x, s *graph.Value) *graph.Value {
		lead := c.Slice(s, c.Ints(0), c.Ints(-2), c.Ints(0), nil)
		stack := c.Transpose(c.Op("Reshape", []*graph.Value{x, c.Concat(0, c.Ints(-1), at(s, -2), at(s, -1))}), 0, 2, 1)
		return c.Reshape(stack, c.Concat(0, lead, at(s, -1), at(s, -2)))
	}
	out := make([]*graph.Value, 2)
	if c.Need(0) {
		out[0] = c.MatMul(ga, swap(b, sb))
	}
	if c.Need(1) {
		// A column [K, 1] is not what the driver would reduce to b's [K]: sum to the matrix first.
		out[1] = c.ReshapeLike(c.SumTo(c.MatMul(swap(a, sa), ga), c.Reshape(b, sb)), b)
	}
	return out
}

// gemmVJP is the rule of Y = alpha A' B' + beta C, where ' transposes or not: A' gets alpha g B'^T, B' gets alpha A'^T g
// and C gets beta g.
func gemmVJP(c *Ctx) []*graph.Value {
	a, b, g := c.X(0), c.X(1), c.Ct(0)
	ta, tb := c.Node.Int("transA", 0), c.Node.Int("transB", 0)
	alpha, beta := c.Node.Float("alpha", 1), c.Node.Float("beta", 1)
	gemm := func(x *graph.Value, tx int64, y *graph.Value, ty int64) *graph.Value {
		var attrs []*graph.Attr
		if alpha != 1 {
			attrs = append(attrs, graph.FloatAttr("alpha", float32(alpha)))
		}
		if tx != 0 {
			attrs = append(attrs, graph.IntAttr("transA", 1))
		}
		if ty != 0 {
			attrs = append(attrs, graph.IntAttr("transB", 1))
		}
		return c.Op("Gemm", []*graph.Value{x, y}, attrs...)
	}
	out := make([]*graph.Value, len(c.Node.In))
	if c.Need(0) && alpha != 0 {
		if ta == 0 {
			out[0] = gemm(g, 0, b, 1-flagBit(tb))
		} else {
			out[0] = gemm(b, tb, g, 1)
		}
	}
	if c.Need(1) && alpha != 0 {
		if tb == 0 {
			out[1] = gemm(a, 1-flagBit(ta), g, 0)
		} else {
			out[1] = gemm(g, 1, a, ta)
		}
	}
	if c.Need(2) && beta != 0 {
		out[2] = c.MulScalar(g, beta)
	}
	return out
}

// flagBit maps a flag attribute to 0 or 1.
func flagBit(flag int64) int64 {
	if flag != 0 {
		return 1
	}
	return 0
}
