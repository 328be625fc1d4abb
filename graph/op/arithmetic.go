package op

import (
	"math"

	"gradtool/graph"
)

// arithmeticDefs defines the element-wise operators of two or more numbers.
func arithmeticDefs() []Def {
	a, row, col := F(2, 3), F(3), F(2, 1)
	away := FR(0.5, 2, 2, 3)
	return []Def{
		binaryDef("Add", Commutative, workCheap, binaryFn{addRun[float32], addRun[float64], signed(addRun[int64])}, graph.Dim.Add,
			pair(a, a), pair(a, row), pair(col, row), pair(F(), a), pair(I(1, 2), IS(3)), pair(F(2, 1, 2), F(3, 1))),
		binaryDef("Sub", 0, workCheap, binaryFn{subRun[float32], subRun[float64], signed(subRun[int64])}, graph.Dim.Sub,
			pair(a, a), pair(a, col), pair(row, col), pair(I(1, 2).Variable(), IS(3))),
		binaryDef("Mul", Commutative, workCheap, binaryFn{mulRun[float32], mulRun[float64], signed(mulRun[int64])}, graph.Dim.Mul,
			pair(a, a), pair(a, row), pair(col, row), pair(F(), a), pair(I(1, 2), I(3, 4))),
		{Name: "Div", Facts: Elementwise | Broadcasts | CheapRemat, Infer: inferBroadcast(dimQuo), Eval: evalDiv, Cost: perElement(workDivide),
			Samples: []Sample{pair(a, away), pair(a, FR(0.5, 2, 3)), pair(row, FR(-2, -0.5, 2, 1)), pair(I(7, -7), IS(2)),
				pair(I(7, 9).Variable(), IS(2)), pair(TV(graph.Int32, []int{2}, -7, 7), TV(graph.Int32, []int{2}, 2, -2))}},
		{Name: "Mod", Facts: Elementwise | Broadcasts | CheapRemat, Infer: inferMod, Eval: evalMod, Cost: perElement(workDivide),
			Samples: []Sample{
				pair(I(7, -7, 7, -7), I(3, 3, -3, -3)), pair(I(7, 9).Variable(), IS(2)),
				{Name: "fmod", In: []Arg{FV([]int{4}, 5.3, -5.3, 5.3, -5.3), FV([]int{4}, 2, 2, -2, -2)}, Attrs: []*graph.Attr{graph.IntAttr("fmod", 1)}},
				{Name: "fmod-row", In: []Arg{FV([]int{2, 2}, 5.3, -5.3, 1.2, 0.4), FV([]int{2}, 2, 0.7)}, Attrs: []*graph.Attr{graph.IntAttr("fmod", 1)}},
				{Name: "fmod-int", In: []Arg{I(7, -7, 7, -7), I(3, 3, -3, -3)}, Attrs: []*graph.Attr{graph.IntAttr("fmod", 1)}},
			}},
		{Name: "Pow", Facts: Elementwise | Broadcasts, Infer: inferPow, Eval: evalPow, Cost: perElement(workTwice), Samples: powSamples()},
		variadicDef("Sum", foldFn{float: sumInto, pair: binaryFn{f32: addRun[float32], f64: addRun[float64]}}, nil,
			[]Arg{a, row, col}, []Arg{a}, []Arg{a, a}),
		variadicDef("Mean", foldFn{float: sumInto, mean: true}, nil,
			[]Arg{a, row, F()}, []Arg{a}, []Arg{a, a}),
		variadicDef("Max", foldFn{float: maxInto, ints: maxInts, pair: pairOf(larger, larger, maxInts)}, graph.Dim.Max,
			[]Arg{FV([]int{2, 2}, 1, -1, 0.3, 2), FV([]int{2}, 0.5, 1.5)}, []Arg{FApart(2, 2), FV([]int{2}, 0.53, 0.91), FV([]int{}, 0.1)}, []Arg{a},
			[]Arg{I(1, 5), IS(3)}, []Arg{I(1, 5).Variable(), IS(3)}),
		variadicDef("Min", foldFn{float: minInto, ints: minInts, pair: pairOf(smaller, smaller, minInts)}, graph.Dim.Min,
			[]Arg{FV([]int{2, 2}, 1, -1, 0.3, 2), FV([]int{2}, 0.5, 1.5)}, []Arg{FApart(2, 2), FV([]int{2}, 0.53, 0.91), FV([]int{}, 0.1)}, []Arg{a},
			[]Arg{I(1, 5), IS(3)}, []Arg{I(1, 5).Variable(), IS(3)}),
		{Name: "BitShift", Facts: Elementwise | Broadcasts | CheapRemat, Infer: inferBroadcast(nil), Eval: evalBinary(workCheap, shift), Samples: []Sample{
			{Name: "left", In: []Arg{TV(graph.Uint8, []int{3}, 16, 200, 1), TV(graph.Uint8, []int{3}, 1, 2, 9)}, Attrs: []*graph.Attr{graph.StringAttr("direction", "LEFT")}},
			{Name: "right", In: []Arg{TV(graph.Uint64, []int{3}, 16, 200, 1), TV(graph.Uint64, []int{}, 2)}, Attrs: []*graph.Attr{graph.StringAttr("direction", "RIGHT")}},
			{Name: "signed", In: []Arg{TV(graph.Int8, []int{3}, -16, 100, 1), TV(graph.Int8, []int{}, 2)}, Attrs: []*graph.Attr{graph.StringAttr("direction", "RIGHT")}},
		}},
	}
}

// pair is a sample of two operands.
func pair(a, b Arg) Sample { return Sample{In: []Arg{a, b}} }

func binaryDef(name string, facts Facts, work int, fn binaryFn, dims func(a, b graph.Dim) graph.Dim, samples ...Sample) Def {
	return Def{Name: name, Facts: facts | Elementwise | Broadcasts | CheapRemat, Infer: inferBroadcast(dims),
		Eval: evalBinary(work, always(fn)), Cost: perElement(float64(work)), Samples: samples}
}

func addRun[T number](out, a, b []T) {
	switch {
	case len(a) == len(out) && len(b) == len(out):
		for i := range out {
			out[i] = a[i] + b[i]
		}
	case len(a) == len(out):
		for i := range out {
			out[i] = a[i] + b[0]
		}
	case len(b) == len(out):
		for i := range out {
			out[i] = a[0] + b[i]
		}
	default:
		fill(out, a[0]+b[0])
	}
}

func subRun[T number](out, a, b []T) {
	switch {
	case len(a) == len(out) && len(b) == len(out):
		for i := range out {
			out[i] = a[i] - b[i]
		}
	case len(a) == len(out):
		for i := range out {
			out[i] = a[i] - b[0]
		}
	case len(b) == len(out):
		for i := range out {
			out[i] = a[0] - b[i]
		}
	default:
		fill(out, a[0]-b[0])
	}
}

func mulRun[T number](out, a, b []T) {
	switch {
	case len(a) == len(out) && len(b) == len(out):
		for i := range out {
			out[i] = a[i] * b[i]
		}
	case len(a) == len(out):
		for i := range out {
			out[i] = a[i] * b[0]
		}
	case len(b) == len(out):
		for i := range out {
			out[i] = a[0] * b[i]
		}
	default:
		fill(out, a[0]*b[0])
	}
}

func divRun[T float](out, a, b []T) {
	switch {
	case len(a) == len(out) && len(b) == len(out):
		for i := range out {
			out[i] = a[i] / b[i]
		}
	case len(a) == len(out):
		for i := range out {
			out[i] = a[i] / b[0]
		}
	case len(b) == len(out):
		for i := range out {
			out[i] = a[0] / b[i]
		}
	default:
		fill(out, a[0]/b[0])
	}
}

func fill[T any](out []T, x T) {
	for i := range out {
		out[i] = x
	}
}

// evalDiv divides; integers truncate toward zero, and an integer divided by zero is an error.
func evalDiv(c *EvalCtx) error {
	if err := c.refuseZero(1); err != nil {
		return err
	}
	return evalBinary(workDivide, always(binaryFn{divRun[float32], divRun[float64],
		bySign(func(a, b int64) int64 { return a / b }, func(a, b uint64) uint64 { return a / b })}))(c)
}

// refuseZero is an error if integer operand i, a divisor, has an element 0.
func (c *EvalCtx) refuseZero(i int) error {
	for _, x := range c.In[i].I64 {
		if x == 0 {
			return c.Errorf("integer division by zero")
		}
	}
	return nil
}

// dimQuo is division that truncates toward zero, where that is known to be the floor.
func dimQuo(a, b graph.Dim) graph.Dim {
	x, aKnown := a.Int()
	y, bKnown := b.Int()
	if aKnown && bKnown && y != 0 {
		return graph.Known(x / y)
	}
	zero := graph.Known(0)
	q := a.FloorDiv(b)
	if zero.LessEq(a) && zero.Less(b) || q.Mul(b).Equal(a) {
		return q
	}
	return graph.Unknown()
}

// inferMod tracks integer remainders whose sign is that of the divisor, and those of C where both agree.
func inferMod(c *InferCtx) error {
	fmod := c.Node.Int("fmod", 0) != 0
	return inferBroadcast(func(a, b graph.Dim) graph.Dim {
		zero := graph.Known(0)
		if fmod && !(zero.LessEq(a) && zero.Less(b)) || b.Equal(zero) {
			return graph.Unknown()
		}
		return a.Mod(b)
	})(c)
}

// evalMod computes the remainder: of integers with the sign of the divisor, or, with fmod and for floats,
// with that of the dividend.
func evalMod(c *EvalCtx) error {
	if err := c.refuseZero(1); err != nil {
		return err
	}
	rem := func(a, b int64) int64 { return a % b }
	if c.Node.Int("fmod", 0) == 0 {
		if c.In[0].IsFloat() {
			return c.Errorf("floats need fmod = 1")
		}
		rem = func(a, b int64) int64 {
			r := a % b
			if r != 0 && (r < 0) != (b < 0) {
				r += b
			}
			return r
		}
	}
	return evalBinary(workDivide, always(binaryFn{
		runOf(func(a, b float32) float32 { return float32(math.Mod(float64(a), float64(b))) }), runOf(math.Mod),
		bySign(rem, func(a, b uint64) uint64 { return a % b })}))(c)
}

// shift moves bits left or right. Shifting by the width or more gives zero, or the sign of signed numbers
// shifted right; vacated bits repeat the sign, as C and Go have it.
func shift(n *graph.Node) binaryFn {
	left := n.Str("direction", "") == "LEFT"
	return binaryFn{ints: func(elem graph.DataType) func(out, a, b []int64) {
		return runOf(func(a, b int64) int64 {
			by := uint64(b)
			if b < 0 && elem != graph.Uint64 {
				by = 64
			}
			switch {
			case left:
				return a << by
			case elem == graph.Uint64:
				return int64(uint64(a) >> by)
			}
			return a >> by
		})
	}}
}
