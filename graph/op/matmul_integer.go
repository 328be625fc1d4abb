package op

import (
	"fmt"
	"math"
	"slices"

	"gradtool/graph"
)

func matmulIntegerDefs() []Def {
	u8 := func(shape []int, v ...float64) Arg { return TV(graph.Uint8, shape, v...) }
	i8 := func(shape []int, v ...float64) Arg { return TV(graph.Int8, shape, v...) }
	f := func(v ...float64) Arg { return FV([]int{}, v...) }
	return []Def{
		{Name: "MatMulInteger", Infer: inferMatMulInteger, Eval: evalMatMulInteger, Cost: costMatMul, Samples: []Sample{
			{In: []Arg{u8([]int{2, 3}, 11, 7, 3, 10, 6, 2), u8([]int{3, 2}, 1, 4, 2, 5, 3, 6), u8([]int{}, 12), u8([]int{}, 0)}},
			{Name: "no zero points", In: []Arg{i8([]int{2, 2}, -1, 2, 3, -4), u8([]int{2}, 200, 100)}},
			{Name: "per row and column", In: []Arg{u8([]int{2, 2}, 1, 2, 3, 4), i8([]int{2, 2}, 5, -6, 7, 8), u8([]int{2}, 1, 3), i8([]int{2}, -1, 2)}},
		}},
		{Name: "QLinearMatMul", Infer: inferQLinearMatMul, Eval: evalQLinearMatMul, Cost: costMatMul, Samples: []Sample{
			{In: []Arg{u8([]int{2, 2}, 208, 236, 3, 214), f(0.0066), u8([]int{}, 113), u8([]int{2, 2}, 152, 51, 60, 26), f(0.00705),
				u8([]int{}, 114), f(0.0107), u8([]int{}, 118)}},
			{Name: "per row and column", In: []Arg{i8([]int{2, 2}, 20, -23, 3, 21), FV([]int{2}, 0.5, 0.25), i8([]int{2}, 1, -1),
				i8([]int{2, 2}, 15, 51, -60, 26), FV([]int{2}, 0.1, 0.2), i8([]int{2}, 0, 3), f(0.5), i8([]int{}, -4)}},
		}},
	}
}

func inferMatMulInteger(c *InferCtx) error {
	shape, err := matmulShape(c.Shape(0), c.Shape(1))
	c.Set(0, graph.Int32, shape)
	return err
}

// evalMatMulInteger computes the product of A - a_zero_point and B - b_zero_point in 32-bit integers.
func evalMatMulInteger(c *EvalCtx) error {
	y, err := integerProduct(c.Arg(0), c.Arg(2), c.Arg(1), c.Arg(3))
	if err != nil {
		return err
	}
	c.Set(0, y)
	return nil
}

// integerProduct multiplies integer matrices after their zero points are taken off; either may be nil.
func integerProduct(a, aZero, b, bZero *Array) (*Array, error) {
	a, err := offZero(a, aZero, true)
	if err != nil {
		return nil, err
	}
	if b, err = offZero(b, bZero, false); err != nil {
		return nil, err
	}
	return matmul(a, b)
}

// offZero returns x - zero as int32. A vector of zero points goes with the rows of x, or with the columns.
func offZero(x, zero *Array, byRow bool) (*Array, error) {
	y := &Array{Elem: graph.Int32, Shape: x.Shape, I64: x.I64, Kind: graph.KindTensor}
	if zero == nil {
		return y, nil
	}
	walk, err := broadcastTo(x.Shape, perAxis(zero.Shape, byRow))
	if err != nil {
		return nil, fmt.Errorf("zero point: %w", err)
	}
	y.I64 = make([]int64, len(x.I64))
	walk.each(1, func(out, n int, at []int) {
		z := span(walk, 0, zero.I64, at[0], n)
		for i := range n {
			y.I64[out+i] = x.I64[out+i] - z[min(i, len(z)-1)]
		}
	})
	return y, nil
}

// perAxis returns the shape under which a per-row or per-column parameter broadcasts to its matrix.
func perAxis(shape []int, byRow bool) []int {
	if byRow && len(shape) == 1 && shape[0] != 1 {
		return []int{shape[0], 1}
	}
	return shape
}

func inferQLinearMatMul(c *InferCtx) error {
	shape, err := matmulShape(c.Shape(0), c.Shape(3))
	c.Set(0, c.Elem(7), shape)
	return err
}

// evalQLinearMatMul multiplies quantized matrices and quantizes the product.
func evalQLinearMatMul(c *EvalCtx) error {
	if !c.Arg(0).Elem.IsInt() || !c.Arg(3).Elem.IsInt() {
		return c.Errorf("products of %s cannot be evaluated", c.Arg(0).Elem)
	}
	y, err := integerProduct(c.Arg(0), c.Arg(2), c.Arg(3), c.Arg(5))
	if err != nil {
		return err
	}
	shape := slices.Clone(y.Shape)
	walk, err := broadcastTo(shape, perAxis(c.Arg(1).Shape, true), c.Arg(4).Shape, c.Arg(6).Shape, c.Arg(7).Shape)
	if err != nil {
		return err
	}
	out := c.New(c.Arg(7).Elem, shape)
	walk.each(4, func(k, n int, at []int) {
		for i := range n {
			p := func(op, arg int) float64 {
				j := at[op]
				if walk.advances(op) {
					j += i
				}
				return c.Arg(arg).Float(j)
			}
			out.I64[k+i] = requantize(y.I64[k+i], p(0, 1)*p(1, 4)/p(2, 6), p(3, 7), out.Elem)
		}
	})
	c.Set(0, out)
	return nil
}

// requantize returns acc*scale rounded to even, plus the zero point, clamped to the element type's range.
func requantize(acc int64, scale, zero float64, elem graph.DataType) int64 {
	lo, hi := -128.0, 127.0
	if elem == graph.Uint8 {
		lo, hi = 0, 255
	}
	return int64(min(max(math.RoundToEven(float64(acc)*scale)+zero, lo), hi))
}
