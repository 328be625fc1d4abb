package op

import "math"

func detDefs() []Def {
	return []Def{{Name: "Det", Infer: inferDet, Eval: evalDet, Cost: costDet, Samples: []Sample{
		{In: []Arg{F(3, 3)}},
		{Name: "batch", In: []Arg{F(2, 3, 2, 2)}},
		{Name: "single", In: []Arg{F(2, 1, 1)}},
		{Name: "singular", In: []Arg{FV([]int{3, 3}, 1, 2, 3, 2, 4, 6, 1, 0, 1)}},
		{Name: "larger", In: []Arg{F(4, 4)}},
	}}}
}

// costDet is that of a triangular factorization.
func costDet(c *CostCtx) float64 {
	s := c.In[0]
	if len(s) < 2 {
		return 0
	}
	n := float64(s[len(s)-1])
	return c.OutLen(0) * 2 * n * n * n / 3
}

func inferDet(c *InferCtx) error {
	x := c.Shape(0)
	if x == nil {
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	if len(x) < 2 || x[len(x)-1].ProvablyNot(x[len(x)-2]) {
		return c.Errorf("operand 0 has shape %s, want square matrices", x)
	}
	c.Set(0, c.Elem(0), x[:len(x)-2])
	return nil
}

// evalDet computes determinants by triangular factorization with row pivoting.
func evalDet(c *EvalCtx) error {
	x := c.Arg(0)
	r := x.Rank()
	if r < 2 || x.Shape[r-1] != x.Shape[r-2] {
		return c.Errorf("operand 0 has shape %v, want square matrices", x.Shape)
	}
	n := x.Shape[r-1]
	y := x.NewLike(x.Shape[:r-2])
	parallel(y.Len(), grainOf(n*n*n), func(lo, hi int) {
		m := make([]float64, n*n)
		for k := lo; k < hi; k++ {
			for i := range m {
				m[i] = x.Float(k*n*n + i)
			}
			y.SetFloat(k, det(m, n))
		}
	})
	c.Set(0, y)
	return nil
}

// det returns the determinant of the n by n matrix m, which it overwrites.
func det(m []float64, n int) float64 {
	d := 1.0
	for i := range n {
		p := i
		for r := i + 1; r < n; r++ {
			if math.Abs(m[r*n+i]) > math.Abs(m[p*n+i]) {
				p = r
			}
		}
		if p != i {
			d = -d
			for j := range n {
				m[i*n+j], m[p*n+j] = m[p*n+j], m[i*n+j]
			}
		}
		pivot := m[i*n+i]
		if d *= pivot; pivot == 0 {
			return d
		}
		for r := i + 1; r < n; r++ {
			f := m[r*n+i] / pivot
			for j := i + 1; j < n; j++ {
				m[r*n+j] -= f * m[i*n+j]
			}
		}
	}
	return d
}
