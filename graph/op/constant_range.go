package op

import (
	"errors"
	"math"

	"gradtool/graph"
)

// Errors of operators that make tensors from attributes and sizes.
var (
	errNoValue    = errors.New("no attribute gives a value")
	errSparse     = errors.New("the sparse value is malformed")
	errOneElement = errors.New("attribute value must hold one element")
	errTooLarge   = errors.New("the result would have more than 2^31 elements")
)

// inferRange finds the length, max(ceil((limit - start)/delta), 0), symbolically for integers.
func inferRange(c *InferCtx) error {
	length := graph.Unknown()
	start, limit, delta := c.scalarDim(0), c.scalarDim(1), c.scalarDim(2)
	switch {
	case !start.IsUnknown() && !limit.IsUnknown() && !delta.IsUnknown():
		if n, ok := delta.Int(); ok && n == 0 {
			return c.Errorf("delta is 0")
		}
		length = limit.Sub(start).CeilDiv(delta).Max(graph.Known(0))
	case c.Elem(0).IsFloat():
		a, b, d := c.Const(0), c.Const(1), c.Const(2)
		if a != nil && b != nil && d != nil && a.Len() == 1 && b.Len() == 1 && d.Len() == 1 {
			n, err := rangeLen(a.Float(0), b.Float(0), d.Float(0))
			if err != nil {
				return err
			}
			length = graph.Known(int64(n))
		}
	}
	c.Set(0, c.Elem(0), graph.Shape{length})
	if n, ok := length.Int(); ok && n <= maxDimsLen && !start.IsUnknown() && !delta.IsUnknown() {
		out := make([]graph.Dim, n)
		for i := range out {
			out[i] = start.Add(delta.Mul(graph.Known(int64(i))))
		}
		c.SetDims(0, out)
	}
	return nil
}

// scalarDim returns the element of integer scalar i, unknown if it is no such.
func (c *InferCtx) scalarDim(i int) graph.Dim {
	if d := c.Dims(i); len(d) == 1 && c.Elem(i).IsInt() {
		return d[0]
	}
	return graph.Unknown()
}

func rangeLen(start, limit, delta float64) (int, error) {
	if delta == 0 {
		return 0, errors.New("delta is 0")
	}
	n := math.Ceil((limit - start) / delta)
	switch {
	case n != n:
		return 0, errors.New("start, limit or delta is not a number")
	case n > maxElements:
		return 0, errTooLarge
	}
	return max(int(n), 0), nil
}

// evalRange computes start + i*delta, for 16-bit floats in float32.
func evalRange(c *EvalCtx) error {
	for i := range 3 {
		if c.In[i].Len() != 1 {
			return c.Errorf("operand %d must be a scalar, is %s", i, c.In[i].Type())
		}
	}
	start, limit, delta := c.In[0], c.In[1], c.In[2]
	if start.I64 != nil {
		a, d := start.I64[0], delta.I64[0]
		n, err := rangeLen(float64(a), float64(limit.I64[0]), float64(d))
		if err != nil {
			return err
		}
		y := c.New(start.Elem, []int{n})
		for i := range y.I64 {
			y.I64[i] = a + int64(i)*d
		}
		c.Set(0, y)
		return nil
	}
	a, d := start.Float(0), delta.Float(0)
	n, err := rangeLen(a, limit.Float(0), d)
	if err != nil {
		return err
	}
	y := c.New(start.Elem, []int{n})
	for i := range n {
		y.SetFloat(i, a+float64(i)*d)
	}
	c.Set(0, y)
	return nil
}

func inferEyeLike(c *InferCtx) error {
	if s := c.Shape(0); s != nil && len(s) != 2 {
		return c.Errorf("the operand must be a matrix, is %s", c.In(0))
	}
	c.Set(0, graph.DataType(c.Node.Int("dtype", int64(c.Elem(0)))), c.Shape(0))
	return nil
}

// evalEyeLike puts ones on diagonal k.
func evalEyeLike(c *EvalCtx) error {
	x := c.In[0]
	if x.Rank() != 2 {
		return c.Errorf("the operand must be a matrix, is %s", x.Type())
	}
	y := c.New(graph.DataType(c.Node.Int("dtype", int64(x.Elem))), x.Shape)
	k := int(c.Node.Int("k", 0))
	for i := range x.Shape[0] {
		j := i + k
		if j < 0 || j >= x.Shape[1] {
			continue
		}
		switch at := i*x.Shape[1] + j; {
		case y.IsFloat():
			y.SetFloat(at, 1)
		case y.I64 != nil:
			y.I64[at] = 1
		default:
			return c.Errorf("element type %s is not supported", y.Elem)
		}
	}
	c.Set(0, y)
	return nil
}
