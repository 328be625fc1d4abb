package op

import (
	"cmp"
	"math"

	"gradtool/graph"
)

// logicDefs defines comparisons, the operators of truth values and bits, and the choice between two values.
func logicDefs() []Def {
	a, row, col := F(2, 3), F(3), F(2, 1)
	values := FV([]int{2, 2}, 1, -1, 0, 2)
	bools := func(shape []int, v ...float64) Arg { return TV(graph.Bool, shape, v...) }
	truths := pair(bools([]int{4}, 0, 0, 1, 1), bools([]int{4}, 0, 1, 0, 1))
	bits := pair(TV(graph.Uint8, []int{2}, 12, 200), TV(graph.Uint8, []int{}, 10))
	tests := pair(values, FV([]int{2}, 1, -1))
	special := FV([]int{5}, 1, math.Inf(1), math.Inf(-1), math.NaN(), 0)
	attr := func(name string) *graph.Attr { return graph.IntAttr(name, 0) }
	return []Def{
		compareDef("Equal", ordered{func(c int) bool { return c == 0 }}, dimsEqual, tests, pair(I(1, 2), I(1, 3)),
			pair(I(1, 2).Variable(), I(1, 3)), pair(TV(graph.String, []int{2}, 1, 2), TV(graph.String, []int{}, 2)), pair(bools([]int{2}, 0, 1), bools([]int{}, 1))),
		compareDef("Greater", ordered{func(c int) bool { return c > 0 }}, func(a, b graph.Dim) graph.Dim { return dimsLess(b, a) }, tests, pair(I(1, 2), IS(1)), pair(col, row)),
		compareDef("GreaterOrEqual", ordered{func(c int) bool { return c >= 0 }}, func(a, b graph.Dim) graph.Dim { return not(dimsLess(a, b)) }, tests, pair(I(1, 2), IS(1))),
		compareDef("Less", ordered{func(c int) bool { return c < 0 }}, dimsLess, tests, pair(I(1, 2), IS(1)), pair(TV(graph.Uint64, []int{2}, 1, 3), TV(graph.Uint64, []int{}, 2))),
		compareDef("LessOrEqual", ordered{func(c int) bool { return c <= 0 }}, func(a, b graph.Dim) graph.Dim { return not(dimsLess(b, a)) }, tests, pair(I(1, 2), IS(1))),
		logicDef("And", func(a, b int64) int64 { return a & b }, graph.Dim.Mul, truths),
		logicDef("Or", func(a, b int64) int64 { return a | b }, graph.Dim.Max, truths),
		logicDef("Xor", func(a, b int64) int64 { return a ^ b }, dimsDiffer, truths),
		logicDef("BitwiseAnd", func(a, b int64) int64 { return a & b }, nil, bits),
		logicDef("BitwiseOr", func(a, b int64) int64 { return a | b }, nil, bits),
		logicDef("BitwiseXor", func(a, b int64) int64 { return a ^ b }, nil, bits),
		{Name: "Not", Facts: Elementwise | CheapRemat, Infer: inferNot, Eval: evalUnary(workCheap, fixed(nil, func(x int64) int64 { return 1 - x })),
			Samples: []Sample{{In: []Arg{bools([]int{2}, 0, 1)}}}},
		{Name: "BitwiseNot", Facts: Elementwise | CheapRemat, Infer: sameAsFirst, Eval: evalUnary(workCheap, fixed(nil, func(x int64) int64 { return ^x })),
			Samples: []Sample{{In: []Arg{TV(graph.Uint8, []int{2}, 12, 200)}}, {In: []Arg{TV(graph.Int16, []int{2}, 12, -200)}}}},
		{Name: "IsNaN", Facts: Elementwise | CheapRemat, Infer: inferTest, Eval: evalTest(func(*graph.Node) func(float64) bool {
			return func(x float64) bool { return x != x }
		}), Samples: []Sample{{In: []Arg{special}}}},
		{Name: "IsInf", Facts: Elementwise | CheapRemat, Infer: inferTest, Eval: evalTest(isInf), Samples: []Sample{
			{In: []Arg{special}}, {Name: "positive", In: []Arg{special}, Attrs: []*graph.Attr{attr("detect_negative")}},
			{Name: "negative", In: []Arg{special}, Attrs: []*graph.Attr{attr("detect_positive")}}}},
		{Name: "Where", Facts: Elementwise | Broadcasts | CheapRemat, Infer: inferWhere, Eval: evalWhere, Samples: []Sample{
			{In: []Arg{bools([]int{2, 3}, 0, 1, 1, 0, 0, 1), a, a}}, {Name: "row", In: []Arg{bools([]int{2, 1}, 0, 1), row, F()}},
			{Name: "outer", In: []Arg{bools([]int{3}, 0, 1, 1), col, F(2, 3)}}, {Name: "dims", In: []Arg{bools([]int{2}, 0, 1), I(1, 2).Variable(), IS(5)}},
			{Name: "open", In: []Arg{bools([]int{2}, 0, 1).Variable(), I(1, 2), I(5, 2)}}, {Name: "strings", In: []Arg{bools([]int{2}, 0, 1), TV(graph.String, []int{2}, 1, 2), TV(graph.String, []int{}, 3)}},
		}},
	}
}

// ordered is a comparison, in terms of the sign of an ordering. NaN compares false to everything.
type ordered struct{ holds func(sign int) bool }

func compareDef(name string, o ordered, dims func(a, b graph.Dim) graph.Dim, samples ...Sample) Def {
	facts := Elementwise | Broadcasts | CheapRemat
	if name == "Equal" {
		facts |= Commutative
	}
	return Def{Name: name, Facts: facts, Infer: inferCompare(dims), Eval: o.eval, Samples: samples}
}

// eval compares elements of one type, of strings too.
func (o ordered) eval(c *EvalCtx) error {
	a, b := c.In[0], c.In[1]
	p, err := newBroadcast(a.Shape, b.Shape)
	if err != nil {
		return err
	}
	if a.Elem != b.Elem {
		return errKinds(a, b)
	}
	y := NewArray(graph.Bool, p.shape, false)
	switch {
	case a.F32 != nil:
		zipRuns(p, y.I64, a.F32, b.F32, workCheap, compareRun[float32](o))
	case a.F64 != nil:
		zipRuns(p, y.I64, a.F64, b.F64, workCheap, compareRun[float64](o))
	case a.Elem == graph.Uint64:
		zipRuns(p, y.I64, a.I64, b.I64, workCheap, runOf(func(a, b int64) int64 { return truth(o.holds(cmp.Compare(uint64(a), uint64(b)))) }))
	case a.I64 != nil:
		zipRuns(p, y.I64, a.I64, b.I64, workCheap, compareRun[int64](o))
	case a.Str != nil:
		zipRuns(p, y.I64, a.Str, b.Str, workCheap, compareRun[string](o))
	default:
		return errKinds(a, b)
	}
	c.Set(0, y)
	return nil
}

func compareRun[T cmp.Ordered](o ordered) func(out []int64, a, b []T) {
	less, equal, greater := truth(o.holds(-1)), truth(o.holds(0)), truth(o.holds(1))
	return runOf(func(a, b T) int64 {
		switch {
		case a < b:
			return less
		case a == b:
			return equal
		case a > b:
			return greater
		}
		return 0
	})
}

// inferCompare infers a bool of the broadcast shape, with the truth of comparisons of sizes where provable.
func inferCompare(dims func(a, b graph.Dim) graph.Dim) func(*InferCtx) error {
	return func(c *InferCtx) error {
		if _, err := c.broadcastAll(0); err != nil {
			return err
		}
		c.types[0].Elem = graph.Bool
		if c.Elem(0).IsInt() {
			c.SetDims(0, zipDims(c.Dims(0), c.Dims(1), dims))
		}
		return nil
	}
}

func dimsEqual(a, b graph.Dim) graph.Dim {
	switch {
	case a.Equal(b):
		return graph.Known(1)
	case a.ProvablyNot(b):
		return graph.Known(0)
	}
	return graph.Unknown()
}

func dimsLess(a, b graph.Dim) graph.Dim {
	switch {
	case a.Less(b):
		return graph.Known(1)
	case b.LessEq(a):
		return graph.Known(0)
	}
	return graph.Unknown()
}

func dimsDiffer(a, b graph.Dim) graph.Dim { return not(dimsEqual(a, b)) }

// not negates a truth value given as 0 or 1.
func not(d graph.Dim) graph.Dim { return graph.Known(1).Sub(d) }

// logicDef defines an operator of truth values, or of bits if dims is nil.
func logicDef(name string, f func(a, b int64) int64, dims func(a, b graph.Dim) graph.Dim, samples ...Sample) Def {
	d := Def{Name: name, Facts: Elementwise | Broadcasts | Commutative | CheapRemat, Infer: inferBroadcast(nil),
		Eval: evalBinary(workCheap, always(binaryFn{ints: signed(runOf(f))})), Samples: samples}
	if dims != nil {
		d.Infer = func(c *InferCtx) error {
			_, err := c.broadcastAll(0)
			c.SetDims(0, zipDims(c.Dims(0), c.Dims(1), dims))
			return err
		}
	}
	return d
}

func inferNot(c *InferCtx) error {
	c.SetType(0, c.In(0))
	if d := c.Dims(0); d != nil {
		out := make([]graph.Dim, len(d))
		for i := range d {
			out[i] = not(d[i])
		}
		c.SetDims(0, out)
	}
	return nil
}

// inferTest infers a bool of the operand's shape.
func inferTest(c *InferCtx) error {
	c.Set(0, graph.Bool, c.Shape(0))
	return nil
}

// evalTest evaluates a predicate of float elements.
func evalTest(test func(n *graph.Node) func(float64) bool) func(*EvalCtx) error {
	return func(c *EvalCtx) error {
		x, holds := c.In[0], test(c.Node)
		if !x.IsFloat() {
			return c.Errorf("%s is not defined for %s", c.Node.Op, x.Elem)
		}
		y := NewArray(graph.Bool, x.Shape, false)
		parallel(len(y.I64), grainOf(workCheap), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				y.I64[i] = truth(holds(x.Float(i)))
			}
		})
		c.Set(0, y)
		return nil
	}
}

func isInf(n *graph.Node) func(float64) bool {
	negative, positive := n.Int("detect_negative", 1) != 0, n.Int("detect_positive", 1) != 0
	return func(x float64) bool { return positive && math.IsInf(x, 1) || negative && math.IsInf(x, -1) }
}

// inferWhere passes symbolic sizes on where the condition is known or both choices agree.
func inferWhere(c *InferCtx) error {
	shape, err := broadcastShapes(c.Shape(0), c.Shape(1), c.Shape(2))
	if err != nil {
		return err
	}
	elem := c.Elem(1)
	if elem == graph.Undefined {
		elem = c.Elem(2)
	}
	c.Set(0, elem, shape)
	cond, x, y := c.Dims(0), c.Dims(1), c.Dims(2)
	if !elem.IsInt() || x == nil || y == nil || len(shape) > 1 || shape == nil {
		return nil
	}
	n := 1
	if len(shape) == 1 {
		k, ok := shape[0].Int()
		if !ok || k > maxDimsLen {
			return nil
		}
		n = int(k)
	}
	at := func(d []graph.Dim, i int) graph.Dim {
		switch {
		case len(d) == 1:
			return d[0]
		case i < len(d):
			return d[i]
		}
		return graph.Unknown()
	}
	out := make([]graph.Dim, n)
	for i := range out {
		a, b := at(x, i), at(y, i)
		if t, ok := at(cond, i).Int(); ok {
			if out[i] = a; t == 0 {
				out[i] = b
			}
		} else if a.Equal(b) {
			out[i] = a
		}
	}
	c.SetDims(0, out)
	return nil
}

// evalWhere chooses between elements of any type.
func evalWhere(c *EvalCtx) error {
	cond, a, b := c.In[0], c.In[1], c.In[2]
	p, err := newBroadcast(cond.Shape, a.Shape, b.Shape)
	if err != nil {
		return err
	}
	if a.Elem != b.Elem {
		return errKinds(a, b)
	}
	y := a.NewLike(p.shape)
	switch {
	case y.F32 != nil:
		choose(p, y.F32, cond.I64, a.F32, b.F32)
	case y.F64 != nil:
		choose(p, y.F64, cond.I64, a.F64, b.F64)
	case y.I64 != nil:
		choose(p, y.I64, cond.I64, a.I64, b.I64)
	case y.C128 != nil:
		choose(p, y.C128, cond.I64, a.C128, b.C128)
	default:
		choose(p, y.Str, cond.I64, a.Str, b.Str)
	}
	c.Set(0, y)
	return nil
}

func choose[T any](p *broadcast, out []T, cond []int64, a, b []T) {
	p.each(2*workCheap, func(o, n int, at []int) {
		cs, as, bs := span(p, 0, cond, at[0], n), span(p, 1, a, at[1], n), span(p, 2, b, at[2], n)
		dst := out[o : o+n]
		for i := range dst {
			src := bs
			if cs[min(i, len(cs)-1)] != 0 {
				src = as
			}
			dst[i] = src[min(i, len(src)-1)]
		}
	})
}
