package op

import (
	"math"

	"gradtool/graph"
)

func globalPoolDefs() []Def {
	return []Def{
		{Name: "GlobalAveragePool", Infer: inferGlobalPool, Eval: evalGlobalAveragePool, Cost: costGlobalPool, Samples: []Sample{
			{In: []Arg{F(2, 3, 4, 3)}},
			{Name: "1-D", In: []Arg{F(2, 3, 5)}},
		}},
		{Name: "GlobalMaxPool", Infer: inferGlobalPool, Eval: evalGlobalMaxPool, Cost: costGlobalPool, Samples: []Sample{
			{In: []Arg{FApart(2, 3, 4, 3)}},
			{Name: "3-D", In: []Arg{FApart(2, 2, 2, 3, 2)}},
		}},
		{Name: "GlobalLpPool", Infer: inferGlobalPool, Eval: evalGlobalLpPool, Cost: costGlobalPool, Samples: []Sample{
			{In: []Arg{F(2, 3, 4, 3)}},
			{Name: "p=1", In: []Arg{FApart(2, 2, 5)}, Attrs: []*graph.Attr{graph.IntAttr("p", 1)}},
			{Name: "p=3", In: []Arg{FApart(2, 2, 5)}, Attrs: []*graph.Attr{graph.IntAttr("p", 3)}},
		}},
	}
}

// costGlobalPool is one FLOP per operand element.
func costGlobalPool(c *CostCtx) float64 { return float64(prod(c.In[0])) }

func inferGlobalPool(c *InferCtx) error {
	x := c.Shape(0)
	if x == nil {
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	if len(x) < 2 {
		return c.Errorf("operand 0 has shape %s, want a batch, channels and spatial axes", x)
	}
	out := x[:2].Clone()
	for range x[2:] {
		out = append(out, graph.Known(1))
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

// evalGlobal reduces each channel; at gives the channel's elements.
func evalGlobal(c *EvalCtx, reduce func(n int, at func(i int) float64) float64) error {
	x := c.Arg(0)
	if x.Rank() < 2 {
		return c.Errorf("operand 0 has shape %v, want a batch, channels and spatial axes", x.Shape)
	}
	shape := []int{x.Shape[0], x.Shape[1]}
	for range x.Shape[2:] {
		shape = append(shape, 1)
	}
	y, n := x.NewLike(shape), prod(x.Shape[2:])
	parallel(y.Len(), grainOf(4*n), func(lo, hi int) {
		for ch := lo; ch < hi; ch++ {
			y.SetFloat(ch, reduce(n, func(i int) float64 { return x.Float(ch*n + i) }))
		}
	})
	c.Set(0, y)
	return nil
}

func evalGlobalAveragePool(c *EvalCtx) error {
	return evalGlobal(c, func(n int, at func(int) float64) float64 {
		sum := 0.0
		for i := range n {
			sum += at(i)
		}
		return sum / float64(n)
	})
}

func evalGlobalMaxPool(c *EvalCtx) error {
	return evalGlobal(c, func(n int, at func(int) float64) float64 {
		best := math.Inf(-1)
		for i := range n {
			best = max(best, at(i))
		}
		return best
	})
}

// evalGlobalLpPool computes (sum of |x|^p)^(1/p) over each channel.
func evalGlobalLpPool(c *EvalCtx) error {
	term, root := lpNorm(c.Node.Int("p", 2))
	return evalGlobal(c, func(n int, at func(int) float64) float64 {
		sum := 0.0
		for i := range n {
			sum += term(at(i))
		}
		return root(sum)
	})
}
