package op

import (
	"math"

	"gradtool/graph"
)

// powSamples cover bases of either sign, exponents of other types, and the points 0^0 and 0^n.
func powSamples() []Sample {
	base := FR(0.3, 2, 2, 3)
	mixed := FV([]int{4}, -1.5, -0.4, 0.7, 2)
	return []Sample{
		{Name: "both", In: []Arg{base, F(2, 3)}},
		{Name: "row", In: []Arg{base, F(3)}},
		{Name: "outer", In: []Arg{FR(0.3, 2, 2, 1), F(3)}},
		{Name: "square", In: []Arg{mixed, TV(graph.Int64, []int{}, 2)}},
		{Name: "cube", In: []Arg{mixed, TV(graph.Float, []int{}, 3).As(graph.Int32)}},
		{Name: "integers", In: []Arg{mixed, TV(graph.Int32, []int{4}, 2, 3, -1, 0)}},
		{Name: "half", In: []Arg{base, TV(graph.Float16, []int{}, 0.5)}},
		{Name: "double", In: []Arg{base, TV(graph.Double, []int{3}, 0.5, -1, 1.5)}},
		{Name: "zeros", In: []Arg{FV([]int{3}, 0, 0, 0), TV(graph.Int64, []int{3}, 1, 2, 3)}},
		{Name: "ints", In: []Arg{I(2, -3, 5), I(3, 2, 0)}},
	}
}

// inferPow is broadcasting with the base's element type.
func inferPow(c *InferCtx) error {
	shape, err := broadcastShapes(c.Shape(0), c.Shape(1))
	if err != nil {
		return err
	}
	c.Set(0, c.Elem(0), shape)
	return nil
}

// evalPow computes a^b in float64, integers raised to integers exactly.
func evalPow(c *EvalCtx) error {
	a, b := c.In[0], c.In[1]
	p, err := newBroadcast(a.Shape, b.Shape)
	if err != nil {
		return err
	}
	y := a.NewLike(p.shape)
	switch {
	case a.I64 != nil && b.I64 != nil:
		zipRuns(p, y.I64, a.I64, b.I64, workTwice, runOf(powInt))
	case a.IsFloat() || a.I64 != nil && b.IsFloat():
		p.each(workTwice, func(o, n int, at []int) {
			i, j := at[0], at[1]
			if !p.advances(1) && p.advances(0) {
				f := powBy(b.Float(j))
				switch {
				case y.F32 != nil:
					powRun(y.F32[o:o+n], a.F32[i:i+n], f)
					return
				case y.F64 != nil:
					powRun(y.F64[o:o+n], a.F64[i:i+n], f)
					return
				}
			}
			for k := range n {
				z := math.Pow(a.Float(i), b.Float(j))
				if y.I64 != nil {
					y.I64[o+k] = int64(z)
				} else {
					y.SetFloat(o+k, z)
				}
				if p.advances(0) {
					i++
				}
				if p.advances(1) {
					j++
				}
			}
		})
	default:
		return errKinds(a, b)
	}
	c.Set(0, y)
	return nil
}

// powBy returns the function x^y of x, for common exponents by multiplication.
func powBy(y float64) func(float64) float64 {
	switch y {
	case 0:
		return func(float64) float64 { return 1 }
	case 1:
		return func(x float64) float64 { return x }
	case 2:
		return func(x float64) float64 { return x * x }
	case 3:
		return func(x float64) float64 { return x * x * x }
	case -1:
		return func(x float64) float64 { return 1 / x }
	}
	return func(x float64) float64 { return math.Pow(x, y) }
}

func powRun[T float](out, x []T, f func(float64) float64) {
	for i := range out {
		out[i] = T(f(float64(x[i])))
	}
}

// powInt is a^b with wrapping; a negative exponent truncates the exact quotient, 1/0 giving 0.
func powInt(a, b int64) int64 {
	if b < 0 {
		switch {
		case a == 1:
			return 1
		case a == -1 && b%2 == 0:
			return 1
		case a == -1:
			return -1
		}
		return 0
	}
	r := int64(1)
	for ; b > 0; b >>= 1 {
		if b&1 != 0 {
			r *= a
		}
		a *= a
	}
	return r
}
