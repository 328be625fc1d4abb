package autodiff

import "gradtool/graph"

func detRules() []Rule { return []Rule{{Name: "Det", Kind: HasVJP, VJP: detVJP}} }

// detVJP is the rule of y = det(x): x gets g times the cofactors, the determinants of the minors with alternating
// signs. ErrUnlike g y x^-T, that holds for singular matrices too.
func detVJP(c *Ctx) []*graph.Value {
	x := c.X(0)
	if n, ok := dimAt(x, -1).Int(); ok && n == 1 {
		return one(c.ReshapeLike(c.Ct(0), x))
	}
	n := c.DimOf(x, -1)
	stack := c.Reshape(x, c.Concat(0, c.sizeOf(c.Ct(0)), n, n)) // n may be 0: -1 would not tell
	// Row i of others names all rows but i: j, or j+1 from i on.
	i, j := c.Unsqueeze(c.upTo(n), 1), c.upTo(c.minus(n, c.Ints(1)))
	others := c.Add(j, c.Cast(c.Unary("Not", c.Binary("Less", j, i)), graph.Int64))
	minors := c.Gather(c.Gather(stack, others, 1), others, 3) // [batch, row, other rows, column, other columns]
	cofactors := c.Unary("Det", c.Transpose(minors, 0, 1, 3, 2, 4))
	odd := c.Binary("Mod", c.Add(i, c.upTo(n)), c.Ints(2))
	sign := c.Cast(c.Sub(c.Ints(1), c.Mul(c.Ints(2), odd)), x.Type.Elem)
	g := c.ReshapeTo(c.Ct(0), -1, 1, 1)
	return one(c.Reshape(c.Mul(c.Mul(g, sign), cofactors), c.Shape(x)))
}
