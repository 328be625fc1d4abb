package op

import (
	"math"

	"gradtool/graph"
)

// batchNormDef is BatchNormalization in the form of opset 15: training_mode tells whether the statistics are those of
// the batch, in which case the running ones are updated to results 1 and 2. Variances are those of the population, divided by N.
func batchNormDef() Def {
	train := graph.IntAttr("training_mode", 1)
	stats := []Arg{F(3), F(3), F(3).Constant(), FR(0.5, 2, 3).Constant()}
	in := func(x Arg) []Arg { return append([]Arg{x}, stats...) }
	return Def{
		Name: "BatchNormalization", Facts: Training, Infer: inferBatchNorm, Eval: evalBatchNorm, Cost: perElement(4),
		Samples: []Sample{
			{In: in(F(2, 3, 4))},
			{Name: "image", In: in(F(2, 3, 2, 2)), Attrs: []*graph.Attr{graph.FloatAttr("epsilon", 0.01)}},
			{Name: "matrix", In: in(F(4, 3))},
			{Name: "vector", In: []Arg{F(4), F(1), F(1), F(1).Constant(), FR(0.5, 2, 1).Constant()}},
			{Name: "training", In: in(F(2, 3, 4)), Attrs: []*graph.Attr{train}, Outs: 3},
			{Name: "training, statistics", In: in(F(2, 3, 2, 2)), Attrs: []*graph.Attr{train, graph.FloatAttr("momentum", 0.7)}, Outs: 3},
			{Name: "training, matrix", In: in(F(4, 3)), Attrs: []*graph.Attr{train}, Outs: 3},
			{Name: "half operand", In: in(F(2, 3, 4).As(graph.Float16)), Attrs: []*graph.Attr{train}, Outs: 3},
		},
	}
}

func inferBatchNorm(c *InferCtx) error {
	s := c.Shape(0)
	c.SetType(0, c.In(0))
	for i := 1; i <= 2; i++ {
		c.SetType(i, c.In(2+i))
	}
	if s == nil {
		return nil
	}
	if len(s) == 0 {
		return c.Errorf("operand 0 is a scalar, expected a batch")
	}
	channels := graph.Known(1)
	if len(s) > 1 {
		channels = s[1]
	}
	for i := 1; i < 5; i++ {
		if p := c.Shape(i); p != nil && (len(p) != 1 || p[0].ProvablyNot(channels)) {
			return c.Errorf("operand %d has shape %s, expected [%s], one element per channel", i, p, channels)
		}
	}
	return nil
}

func evalBatchNorm(c *EvalCtx) error {
	x := c.Arg(0)
	batch, channels, size := 1, 1, 1
	if x.Rank() > 0 {
		batch = x.Shape[0]
	}
	if x.Rank() > 1 {
		channels, size = x.Shape[1], prod(x.Shape[2:])
	}
	for i := 1; i < 5; i++ {
		if c.Arg(i).Len() != channels {
			return c.Errorf("operand %d has shape %v, expected [%d]", i, c.Arg(i).Shape, channels)
		}
	}
	scale, bias, mean, variance := floats64(c.Arg(1)), floats64(c.Arg(2)), floats64(c.Arg(3)), floats64(c.Arg(4))
	v := floats64(x)
	if c.Node.Int("training_mode", 0) != 0 {
		inMean, inVar := mean, variance
		mean, variance = channelMoments(v, batch, channels, size)
		momentum := c.Node.Float("momentum", 0.9)
		for i, running := range []*Array{c.New(c.Arg(3).Elem, c.Arg(3).Shape), c.New(c.Arg(4).Elem, c.Arg(4).Shape)} {
			for ch := range channels {
				old, now := [][]float64{inMean, inVar}[i][ch], [][]float64{mean, variance}[i][ch]
				running.SetFloat(ch, old*momentum+now*(1-momentum))
			}
			c.Set(1+i, running)
		}
	}
	eps := c.Node.Float("epsilon", 1e-5)
	y := x.NewLike(x.Shape)
	parallel(batch*channels, grainOf(4*size), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			ch := r % channels
			inv := scale[ch] / math.Sqrt(variance[ch]+eps)
			for i := r * size; i < (r+1)*size; i++ {
				y.SetFloat(i, (v[i]-mean[ch])*inv+bias[ch])
			}
		}
	})
	c.Set(0, y)
	return nil
}

// channelMoments returns mean and population variance of v, laid out [batch, channels, size], by channel.
func channelMoments(v []float64, batch, channels, size int) (mean, variance []float64) {
	mean, variance = make([]float64, channels), make([]float64, channels)
	n := float64(batch * size)
	parallel(channels, grainOf(4*batch*size), func(lo, hi int) {
		for ch := lo; ch < hi; ch++ {
			over := func(f func(x float64) float64) float64 {
				sum := 0.0
				for b := range batch {
					at := (b*channels + ch) * size
					for _, x := range v[at : at+size] {
						sum += f(x)
					}
				}
				return sum / n
			}
			mean[ch] = over(func(x float64) float64 { return x })
			variance[ch] = over(func(x float64) float64 { return (x - mean[ch]) * (x - mean[ch]) })
		}
	})
	return mean, variance
}
