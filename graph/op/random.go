package op

import (
	"math"
	"math/rand/v2"

	"gradtool/graph"
)

// randomDefs defines the operators that draw random numbers. A seed attribute makes a node repeat its
// numbers in every run; the numbers are those of this evaluator, not of other implementations.
func randomDefs() []Def {
	seed := graph.FloatAttr("seed", 3)
	like := func() []Sample {
		return []Sample{{In: []Arg{F(2, 3)}}, {Name: "type", In: []Arg{F(2)}, Attrs: []*graph.Attr{graph.IntAttr("dtype", int64(graph.Double)), seed}}}
	}
	shaped := []Sample{{Attrs: []*graph.Attr{graph.IntsAttr("shape", 2, 3)}},
		{Name: "half", Attrs: []*graph.Attr{graph.IntsAttr("shape", 4), graph.IntAttr("dtype", int64(graph.Float16)), seed}}}
	on, ratio := TV(graph.Bool, nil, 1).Constant(), FV(nil, 0.4)
	return []Def{
		{Name: "RandomNormal", Facts: Random, Infer: inferRandom, Eval: evalRandom(normal), Cost: perElement(workExp), Samples: shaped},
		{Name: "RandomUniform", Facts: Random, Infer: inferRandom, Eval: evalRandom(uniform), Cost: perElement(workExp), Samples: shaped},
		{Name: "RandomNormalLike", Facts: Random | ShapeOnly, Infer: inferLike, Eval: evalRandomLike(normal), Cost: perElement(workExp), Samples: like()},
		{Name: "RandomUniformLike", Facts: Random | ShapeOnly, Infer: inferLike, Eval: evalRandomLike(uniform), Cost: perElement(workExp), Samples: like()},
		{Name: "Bernoulli", Facts: Random, Infer: inferLike, Eval: evalBernoulli, Cost: perElement(workExp), Samples: []Sample{
			{In: []Arg{FR(0, 1, 2, 3)}}, {Name: "bool", In: []Arg{FR(0, 1, 2, 3)}, Attrs: []*graph.Attr{graph.IntAttr("dtype", int64(graph.Bool)), seed}}}},
		{Name: "Multinomial", Facts: Random, Infer: inferMultinomial, Eval: evalMultinomial, Samples: []Sample{
			{In: []Arg{F(2, 3)}}, {Name: "many", In: []Arg{F(2, 3)}, Attrs: []*graph.Attr{graph.IntAttr("sample_size", 5), graph.IntAttr("dtype", int64(graph.Int64)), seed}}}},
		{Name: "Dropout", Facts: Random | Training, Infer: inferDropout, Eval: evalDropout, Samples: []Sample{
			{In: []Arg{F(2, 3)}}, {Name: "mask", In: []Arg{F(2, 3), ratio}, Outs: 2}, {Name: "training", In: []Arg{F(4, 5), ratio.Constant(), on}, Outs: 2},
			{Name: "training-default", In: []Arg{F(4, 5), {}, on}, Attrs: []*graph.Attr{graph.IntAttr("seed", 7)}},
			{Name: "training-run-time", In: []Arg{F(4, 5), TV(graph.Double, nil, 0.3).Constant(), on.Variable()}}, {Name: "training-zero", In: []Arg{F(2, 3), FV(nil, 0).Constant(), on}},
		}},
	}
}

// rng returns the node's generator: from attribute seed, else from the run's seed.
func (c *EvalCtx) rng() *rand.Rand {
	s := c.Seed
	if a := c.Node.Attr("seed"); a != nil {
		switch a.Type {
		case graph.AttrFloat:
			s = uint64(math.Float32bits(a.F))
		case graph.AttrInt:
			s = uint64(a.I)
		}
	}
	return rand.New(rand.NewPCG(s, 0x9e3779b97f4a7c15))
}

// normal and uniform return the distribution that a node's attributes describe.
func normal(n *graph.Node, rng *rand.Rand) func() float64 {
	mean, scale := n.Float("mean", 0), n.Float("scale", 1)
	return func() float64 { return mean + scale*rng.NormFloat64() }
}

func uniform(n *graph.Node, rng *rand.Rand) func() float64 {
	low, high := n.Float("low", 0), n.Float("high", 1)
	return func() float64 { return low + (high-low)*rng.Float64() }
}

type distribution = func(*graph.Node, *rand.Rand) func() float64

func inferRandom(c *InferCtx) error {
	dims := c.Node.Ints("shape")
	if _, err := sizes(dims); err != nil {
		return err
	}
	c.Set(0, graph.DataType(c.Node.Int("dtype", int64(graph.Float))), graph.ShapeOf(dims...))
	return nil
}

// inferLike infers the operand's shape, and its element type unless attribute dtype says another.
func inferLike(c *InferCtx) error {
	c.Set(0, graph.DataType(c.Node.Int("dtype", int64(c.Elem(0)))), c.Shape(0))
	return nil
}

func evalRandom(d distribution) func(*EvalCtx) error {
	return func(c *EvalCtx) error {
		shape, err := sizes(c.Node.Ints("shape"))
		if err != nil {
			return err
		}
		return c.draw(graph.DataType(c.Node.Int("dtype", int64(graph.Float))), shape, d)
	}
}

func evalRandomLike(d distribution) func(*EvalCtx) error {
	return func(c *EvalCtx) error {
		x := c.In[0]
		return c.draw(graph.DataType(c.Node.Int("dtype", int64(x.Elem))), x.Shape, d)
	}
}

// draw makes result 0 of independent numbers.
func (c *EvalCtx) draw(elem graph.DataType, shape []int, d distribution) error {
	y := c.New(elem, shape)
	if !y.IsFloat() {
		return c.Errorf("attribute dtype: %s is no float type", elem)
	}
	next := d(c.Node, c.rng())
	for i := range y.Len() {
		y.SetFloat(i, next())
	}
	c.Set(0, y)
	return nil
}

// evalBernoulli is 1 with the operand's probability.
func evalBernoulli(c *EvalCtx) error {
	x, rng := c.In[0], c.rng()
	y := c.New(graph.DataType(c.Node.Int("dtype", int64(x.Elem))), x.Shape)
	for i := range y.Len() {
		hit := rng.Float64() < x.Float(i)
		switch {
		case !hit:
		case y.IsFloat():
			y.SetFloat(i, 1)
		case y.I64 != nil:
			y.I64[i] = 1
		}
	}
	c.Set(0, y)
	return nil
}

func inferMultinomial(c *InferCtx) error {
	batch := graph.Unknown()
	if s := c.Shape(0); s != nil {
		if len(s) != 2 {
			return c.Errorf("the operand must be a matrix, is %s", c.In(0))
		}
		batch = s[0]
	}
	c.Set(0, graph.DataType(c.Node.Int("dtype", int64(graph.Int32))), graph.Shape{batch, graph.Known(c.Node.Int("sample_size", 1))})
	return nil
}

// evalMultinomial draws classes by inverting the distribution function of softmax(row).
func evalMultinomial(c *EvalCtx) error {
	x, n := c.In[0], int(c.Node.Int("sample_size", 1))
	if x.Rank() != 2 || n < 0 {
		return c.Errorf("%d samples of %s", n, x.Type())
	}
	rng, classes := c.rng(), x.Shape[1]
	y := c.New(graph.DataType(c.Node.Int("dtype", int64(graph.Int32))), []int{x.Shape[0], n})
	if y.I64 == nil || classes == 0 && y.Len() > 0 {
		return c.Errorf("cannot draw %s from %s", y.Type(), x.Type())
	}
	cdf := make([]float64, classes)
	for row := range x.Shape[0] {
		top, sum := math.Inf(-1), 0.0
		for k := range classes {
			top = math.Max(top, x.Float(row*classes+k))
		}
		for k := range classes {
			sum += math.Exp(x.Float(row*classes+k) - top)
			cdf[k] = sum
		}
		for i := range n {
			u, k := rng.Float64()*sum, 0
			for k < classes-1 && u >= cdf[k] {
				k++
			}
			y.I64[row*n+i] = int64(k)
		}
	}
	c.Set(0, y)
	return nil
}

func inferDropout(c *InferCtx) error {
	c.SetType(0, c.In(0))
	c.Set(1, graph.Bool, c.Shape(0))
	return nil
}

// evalDropout keeps an element with probability 1 - ratio and then scales it by 1/(1-ratio), in
// training mode; else it is the identity.
func evalDropout(c *EvalCtx) error {
	x, ratio, training := c.In[0], 0.5, false
	if r := c.Arg(1); r != nil {
		if r.Len() != 1 {
			return c.Errorf("ratio must be a scalar, is %s", r.Type())
		}
		ratio = r.Float(0)
	}
	if t := c.Arg(2); t != nil {
		training = t.Len() == 1 && t.I64[0] != 0
	}
	mask := c.New(graph.Bool, x.Shape)
	if !training || ratio == 0 {
		fill(mask.I64, 1)
		c.Set(0, x)
		c.Set(1, mask)
		return nil
	}
	if !(ratio >= 0 && ratio <= 1) {
		return c.Errorf("ratio %g is outside [0, 1)", ratio)
	}
	rng, y := c.rng(), x.NewLike(x.Shape)
	for i := range mask.I64 {
		if rng.Float64() >= ratio {
			mask.I64[i] = 1
			y.SetFloat(i, x.Float(i)/(1-ratio))
		}
	}
	c.Set(0, y)
	c.Set(1, mask)
	return nil
}
