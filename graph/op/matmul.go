package op

import (
	"fmt"
	"slices"

	"gradtool/graph"
)

func matmulDefs() []Def {
	return slices.Concat([]Def{
		{Name: "MatMul", Infer: inferMatMul, Eval: evalMatMul, Cost: costMatMul, Samples: []Sample{
			{In: []Arg{F(3, 4), F(4, 2)}},
			{Name: "vector", In: []Arg{F(4), F(4)}},
			{Name: "row", In: []Arg{F(4), F(4, 3)}},
			{Name: "column", In: []Arg{F(3, 4), F(4)}},
			{Name: "row against batch", In: []Arg{F(4), F(2, 4, 3)}},
			{Name: "batch against column", In: []Arg{F(2, 3, 4), F(4)}},
			{Name: "linear layer", In: []Arg{F(2, 3, 4), F(4, 5)}},
			{Name: "matrix against batch", In: []Arg{F(3, 4), F(2, 4, 5)}},
			{Name: "batch", In: []Arg{F(2, 3, 4), F(2, 4, 2)}},
			{Name: "broadcast batch", In: []Arg{F(2, 1, 3, 4), F(3, 4, 2)}},
			{Name: "both broadcast", In: []Arg{F(2, 1, 2, 3), F(1, 3, 3, 2)}},
			{Name: "empty sum", In: []Arg{F(2, 0), F(0, 3)}, NoGrad: "no elements"},
			{Name: "int", In: []Arg{TV(graph.Int32, []int{2, 2}, 1, 2, 3, 4), TV(graph.Int32, []int{2, 2}, 5, 6, 7, 8)}},
		}},
		{Name: "Gemm", Infer: inferGemm, Eval: evalGemm, Cost: costMatMul, Samples: gemmSamples()},
	}, matmulIntegerDefs(), einsumDefs(), detDefs())
}

func gemmSamples() []Sample {
	trans := func(a, b int64) []*graph.Attr {
		return []*graph.Attr{graph.IntAttr("transA", a), graph.IntAttr("transB", b), graph.FloatAttr("alpha", 0.5), graph.FloatAttr("beta", 2)}
	}
	return []Sample{
		{In: []Arg{F(3, 4), F(4, 2)}},
		{Name: "row bias", In: []Arg{F(3, 4), F(2, 4), F(2)}, Attrs: trans(0, 1)},
		{Name: "column bias", In: []Arg{F(4, 3), F(4, 2), F(3, 1)}, Attrs: trans(1, 0)},
		{Name: "scalar bias", In: []Arg{F(4, 3), F(2, 4), F()}, Attrs: trans(1, 1)},
		{Name: "full bias", In: []Arg{F(3, 4), F(4, 2), F(3, 2)}, Attrs: trans(0, 0)},
		{Name: "zero factors", In: []Arg{F(3, 4), F(4, 2), F(2)}, Attrs: []*graph.Attr{graph.FloatAttr("alpha", 0), graph.FloatAttr("beta", 0)}},
	}
}

// costMatMul is two FLOPs per result element and summed element.
func costMatMul(c *CostCtx) float64 {
	if len(c.In) == 0 || len(c.In[0]) == 0 {
		return 0
	}
	a := c.In[0]
	k := a[len(a)-1]
	if c.Node.Op == "Gemm" && c.Node.Int("transA", 0) != 0 {
		k = a[0]
	}
	return 2 * float64(k) * c.OutLen(0)
}

func inferMatMul(c *InferCtx) error {
	shape, err := matmulShape(c.Shape(0), c.Shape(1))
	c.Set(0, c.Elem(0), shape)
	return err
}

// matmulShape infers the shape of a matrix product, nil if a rank is unknown.
func matmulShape(a, b graph.Shape) (graph.Shape, error) {
	if a == nil || b == nil {
		return nil, nil
	}
	if len(a) == 0 || len(b) == 0 {
		return nil, fmt.Errorf("a scalar has no matrix product: %s times %s", a, b)
	}
	ka, kb := a[len(a)-1], b[max(len(b)-2, 0)]
	if ka.ProvablyNot(kb) {
		return nil, fmt.Errorf("cannot multiply %s by %s: inner dimensions %s and %s", a, b, ka, kb)
	}
	out, err := broadcastShapes(a[:max(len(a)-2, 0)], b[:max(len(b)-2, 0)])
	if err != nil {
		return nil, err
	}
	if len(a) > 1 {
		out = append(out, a[len(a)-2])
	}
	if len(b) > 1 {
		out = append(out, b[len(b)-1])
	}
	return out, nil
}

func evalMatMul(c *EvalCtx) error {
	y, err := matmul(c.Arg(0), c.Arg(1))
	if err != nil {
		return err
	}
	c.Set(0, y)
	return nil
}

// matmul returns the matrix product of two arrays of one storage class, batched and broadcast as numpy.matmul does;
// it has a's element type and is not rounded.
func matmul(a, b *Array) (*Array, error) {
	p, err := planMatMul(a.Shape, b.Shape)
	if err != nil {
		return nil, err
	}
	y := a.NewLike(p.shape)
	switch {
	case y.F32 != nil:
		runMatMul(p, a.F32, b.F32, y.F32)
	case y.F64 != nil:
		runMatMul(p, a.F64, b.F64, y.F64)
	case y.I64 != nil:
		runMatMul(p, a.I64, b.I64, y.I64)
	default:
		return nil, fmt.Errorf("no matrix product of %s", a.Elem)
	}
	return y, nil
}

// matmulPlan is a list of products of m by k with k by n matrices, at multiples of their sizes in the operands.
type matmulPlan struct {
	shape   []int // of the result
	m, n, k int
	a, b    []int // by product: which matrix of each operand
}

func planMatMul(a, b []int) (*matmulPlan, error) {
	if len(a) == 0 || len(b) == 0 {
		return nil, fmt.Errorf("a scalar has no matrix product: %v times %v", a, b)
	}
	p := &matmulPlan{m: 1, n: 1, k: a[len(a)-1]}
	if kb := b[max(len(b)-2, 0)]; kb != p.k {
		return nil, fmt.Errorf("cannot multiply %v by %v: inner dimensions %d and %d", a, b, p.k, kb)
	}
	walk, err := newBroadcast(a[:max(len(a)-2, 0)], b[:max(len(b)-2, 0)])
	if err != nil {
		return nil, err
	}
	p.shape = slices.Clone(walk.shape)
	if len(a) > 1 {
		p.m = a[len(a)-2]
		p.shape = append(p.shape, p.m)
	}
	if len(b) > 1 {
		p.n = b[len(b)-1]
		p.shape = append(p.shape, p.n)
	}
	if prod(b[:max(len(b)-2, 0)]) == 1 { // one right matrix for all: the left ones are one tall matrix
		p.m *= walk.size()
		p.a, p.b = []int{0}, []int{0}
		return p, nil
	}
	walk.runs(0, walk.size(), func(_, n int, at []int) {
		for i := range n {
			ia, ib := at[0], at[1]
			if walk.advances(0) {
				ia += i
			}
			if walk.advances(1) {
				ib += i
			}
			p.a, p.b = append(p.a, ia), append(p.b, ib)
		}
	})
	return p, nil
}

func runMatMul[T number](p *matmulPlan, a, b, y []T) {
	parallel(len(p.a), grainOf(p.m*p.n*p.k), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			x := a[p.a[i]*p.m*p.k:][:p.m*p.k]
			w := b[p.b[i]*p.k*p.n:][:p.k*p.n]
			z := y[i*p.m*p.n:][:p.m*p.n]
			gemm(false, false, 1, newMatrix(x, p.m, p.k), newMatrix(w, p.k, p.n), 0, newMatrix(z, p.m, p.n))
		}
	})
}

func inferGemm(c *InferCtx) error {
	a, b := c.Shape(0), c.Shape(1)
	out := graph.UnknownShape(2)
	c.Set(0, c.Elem(0), out)
	for i, s := range []graph.Shape{a, b} {
		if s != nil && len(s) != 2 {
			return c.Errorf("operand %d has shape %s, want a matrix", i, s)
		}
	}
	ta, tb := c.Node.Int("transA", 0) != 0, c.Node.Int("transB", 0) != 0
	if a != nil {
		out[0] = a[pick(ta, 1, 0)]
	}
	if b != nil {
		out[1] = b[pick(tb, 0, 1)]
	}
	if a != nil && b != nil {
		if ka, kb := a[pick(ta, 0, 1)], b[pick(tb, 1, 0)]; ka.ProvablyNot(kb) {
			return c.Errorf("cannot multiply %s by %s with transA=%t, transB=%t: inner dimensions %s and %s", a, b, ta, tb, ka, kb)
		}
	}
	if s := c.Shape(2); len(s) > 2 {
		return c.Errorf("operand 2 has shape %s, which does not broadcast to a matrix", s)
	}
	return nil
}

func pick[T any](cond bool, yes, no T) T {
	if cond {
		return yes
	}
	return no
}

// evalGemm computes Y = alpha A' B' + beta C.
func evalGemm(c *EvalCtx) error {
	a, b := c.Arg(0), c.Arg(1)
	if a.Rank() != 2 || b.Rank() != 2 {
		return c.Errorf("operands have shapes %v and %v, want matrices", a.Shape, b.Shape)
	}
	ta, tb := c.Node.Int("transA", 0) != 0, c.Node.Int("transB", 0) != 0
	m, ka := a.Shape[pick(ta, 1, 0)], a.Shape[pick(ta, 0, 1)]
	n, kb := b.Shape[pick(tb, 0, 1)], b.Shape[pick(tb, 1, 0)]
	if ka != kb {
		return c.Errorf("cannot multiply %v by %v with transA=%t, transB=%t: inner dimensions %d and %d", a.Shape, b.Shape, ta, tb, ka, kb)
	}
	y := c.New(a.Elem, []int{m, n})
	bias := c.Arg(2)
	var err error
	switch {
	case y.F32 != nil:
		err = runGemm(c.Node, a, b, bias, y, func(x *Array) []float32 { return x.F32 })
	case y.F64 != nil:
		err = runGemm(c.Node, a, b, bias, y, func(x *Array) []float64 { return x.F64 })
	case y.I64 != nil:
		err = runGemm(c.Node, a, b, bias, y, func(x *Array) []int64 { return x.I64 })
	default:
		err = c.Errorf("no matrix product of %s", a.Elem)
	}
	if err != nil {
		return err
	}
	c.Set(0, y)
	return nil
}

// runGemm multiplies first and adds the bias to the finished product, so that the result is that of a matrix product
// followed by an addition, bit by bit.
func runGemm[T number](n *graph.Node, a, b, bias, y *Array, data func(*Array) []T) error {
	alpha, beta := T(n.Float("alpha", 1)), T(n.Float("beta", 1))
	out := data(y)
	gemm(n.Int("transA", 0) != 0, n.Int("transB", 0) != 0, alpha, newMatrix(data(a), a.Shape[0], a.Shape[1]),
		newMatrix(data(b), b.Shape[0], b.Shape[1]), 0, newMatrix(out, y.Shape[0], y.Shape[1]))
	if bias == nil || beta == 0 {
		return nil
	}
	walk, err := broadcastTo(y.Shape, bias.Shape)
	if err != nil {
		return err
	}
	src := data(bias)
	walk.each(1, func(at, count int, from []int) {
		row := span(walk, 0, src, from[0], count)
		for i := range count {
			out[at+i] += beta * row[min(i, len(row)-1)]
		}
	})
	return nil
}
