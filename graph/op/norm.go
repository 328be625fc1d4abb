package op

import (
	"math"

	"gradtool/graph"
)

// normDefs holds the normalizations.
func normDefs() []Def {
	eps := graph.FloatAttr("epsilon", 0.01)
	axis := func(a int64) *graph.Attr { return graph.IntAttr("axis", a) }
	groups := func(g int64) *graph.Attr { return graph.IntAttr("num_groups", g) }
	half := func(a Arg) Arg { return a.As(graph.Float16) }
	return append([]Def{
		{
			Name: "LayerNormalization", Facts: CheapRemat, Infer: inferLayerNorm, Eval: evalLayerNorm, Cost: perElement(8),
			Samples: []Sample{
				{In: []Arg{F(2, 3, 4), F(4), F(4)}},
				{Name: "no bias", In: []Arg{F(2, 3), F(3)}, Attrs: []*graph.Attr{eps}},
				{Name: "two axes", In: []Arg{F(2, 3, 4), F(3, 4), F(3, 4)}, Attrs: []*graph.Attr{axis(1)}},
				{Name: "statistics", In: []Arg{F(2, 3, 4), F(4), F(4)}, Outs: 3},
				{Name: "all axes", In: []Arg{F(2, 3), F(2, 3)}, Attrs: []*graph.Attr{axis(-2)}, Outs: 3},
				{Name: "broadcast scale", In: []Arg{F(2, 3, 4), F(3, 1), F(1)}, Attrs: []*graph.Attr{axis(1)}},
				{Name: "half", In: []Arg{half(F(2, 4)), half(F(4)), half(F(4))}},
				{Name: "double", In: []Arg{F(2, 4).As(graph.Double), F(4).As(graph.Double), F(4).As(graph.Double)}},
			},
		},
		{
			Name: "RMSNormalization", Facts: CheapRemat, Infer: inferRMSNorm, Eval: evalRMSNorm, Cost: perElement(6),
			Samples: []Sample{
				{In: []Arg{F(2, 3, 4), F(4)}},
				{Name: "two axes", In: []Arg{F(2, 3, 4), F(3, 4)}, Attrs: []*graph.Attr{axis(-2), eps}},
				{Name: "half operand, float scale", In: []Arg{half(F(2, 4)), F(4)}},
			},
		},
		{
			Name: "GroupNormalization", Facts: CheapRemat, Infer: inferPerChannel, Eval: evalGroupNorm, Cost: perElement(8),
			Samples: []Sample{
				{In: []Arg{F(2, 4, 3), F(4), F(4)}, Attrs: []*graph.Attr{groups(2)}},
				{Name: "image", In: []Arg{F(2, 6, 2, 2), F(6), F(6)}, Attrs: []*graph.Attr{groups(3), eps}},
				{Name: "one group", In: []Arg{F(2, 4), F(4), F(4)}, Attrs: []*graph.Attr{groups(1)}},
				{Name: "half", In: []Arg{half(F(2, 4, 3)), half(F(4)), half(F(4))}, Attrs: []*graph.Attr{groups(2)}},
			},
		},
		{
			Name: "InstanceNormalization", Facts: CheapRemat, Infer: inferPerChannel, Eval: evalInstanceNorm, Cost: perElement(8),
			Samples: []Sample{
				{In: []Arg{F(2, 3, 4), F(3), F(3)}},
				{Name: "image", In: []Arg{F(2, 2, 3, 2), F(2), F(2)}, Attrs: []*graph.Attr{eps}},
			},
		},
		{
			Name: "MeanVarianceNormalization", Facts: CheapRemat, Infer: inferMeanVariance, Eval: evalMeanVariance, Cost: perElement(6),
			Samples: []Sample{
				{In: []Arg{F(2, 3, 2, 2)}},
				{Name: "axes", In: []Arg{F(2, 3, 4)}, Attrs: []*graph.Attr{graph.IntsAttr("axes", 1, -1)}},
			},
		},
		{
			Name: "LpNormalization", Infer: inferAlongAxis, Eval: evalLpNorm, Cost: perElement(4),
			Samples: []Sample{
				{In: []Arg{F(2, 3)}},
				{Name: "p=1", In: []Arg{F(2, 3, 2)}, Attrs: []*graph.Attr{axis(1), graph.IntAttr("p", 1)}},
				{Name: "zero vector", In: []Arg{FV([]int{2, 2}, 0, 0, 3, 4)}, NoGrad: "not continuous at the zero vector"},
			},
		},
		{
			Name: "LRN", Infer: sameAsFirst, Eval: evalLRN,
			Cost: func(c *CostCtx) float64 { return c.OutLen(0) * float64(2*c.Node.Int("size", 1)+12) },
			Samples: []Sample{
				{In: []Arg{F(2, 5, 2, 2)}, Attrs: []*graph.Attr{graph.IntAttr("size", 3), graph.FloatAttr("alpha", 0.5)}},
				{Name: "even size", In: []Arg{F(1, 5, 3)}, Attrs: []*graph.Attr{graph.IntAttr("size", 4),
					graph.FloatAttr("alpha", 0.7), graph.FloatAttr("beta", 0.5), graph.FloatAttr("bias", 2)}},
			},
		},
	}, batchNormDef())
}

func inferLayerNorm(c *InferCtx) error {
	s := c.Shape(0)
	c.SetType(0, c.In(0))
	stash := graph.DataType(c.Node.Int("stash_type", 1))
	var stats graph.Shape
	if s != nil {
		a, err := c.Axis(c.Node.Int("axis", -1), len(s))
		if err != nil {
			return err
		}
		stats = s.Clone()
		for i := a; i < len(s); i++ {
			stats[i] = graph.Known(1)
		}
	}
	c.Set(1, stash, stats)
	c.Set(2, stash, stats)
	return nil
}

func inferRMSNorm(c *InferCtx) error {
	c.Set(0, c.Elem(1), c.Shape(0))
	if s := c.Shape(0); s != nil {
		_, err := c.Axis(c.Node.Int("axis", -1), len(s))
		return err
	}
	return nil
}

// inferPerChannel infers a result of operand 0's type and checks that the other operands have as many elements as it has channels.
func inferPerChannel(c *InferCtx) error {
	c.SetType(0, c.In(0))
	s := c.Shape(0)
	if s == nil {
		return nil
	}
	if len(s) < 2 {
		return c.Errorf("operand 0 has rank %d, expected at least 2", len(s))
	}
	for i := 1; i < c.NumIn(); i++ {
		if p := c.Shape(i); p != nil && (len(p) != 1 || p[0].ProvablyNot(s[1])) {
			return c.Errorf("operand %d has shape %s, expected [%s], one element per channel", i, p, s[1])
		}
	}
	if g := c.Node.Int("num_groups", 1); g < 1 {
		return c.Errorf("num_groups is %d, expected a divisor of the number of channels", g)
	} else if n, ok := s[1].Int(); ok && n%g != 0 {
		return c.Errorf("num_groups is %d, expected a divisor of the %d channels", g, n)
	}
	return nil
}

func inferMeanVariance(c *InferCtx) error {
	c.SetType(0, c.In(0))
	if s := c.Shape(0); s != nil {
		_, err := normAxes(mvnAxes(c.Node), len(s))
		return err
	}
	return nil
}

func mvnAxes(n *graph.Node) []int64 {
	if n.HasAttr("axes") {
		return n.Ints("axes")
	}
	return []int64{0, 2, 3}
}

// stats are mean and inverse standard deviation of a row.
type stats struct{ mean, inv float64 }

// normalizeRows computes y = affine(i, (x-mean)·inv) for consecutive rows of n elements, with inv =
// 1/sqrt(variance+eps) and i the element's index in x. Uncentered, the mean is taken to be 0.
func normalizeRows(x, y *Array, n int, centered bool, eps float64, affine func(i int, v float64) float64) []stats {
	if y.F32 != nil && x.F32 != nil {
		return rowsOf(x.F32, y.F32, x.Len(), n, centered, eps, affine)
	}
	if y.F64 != nil && x.F64 != nil {
		return rowsOf(x.F64, y.F64, x.Len(), n, centered, eps, affine)
	}
	wide := make([]float64, x.Len())
	st := rowsOf(floats64(x), wide, x.Len(), n, centered, eps, affine)
	for i, v := range wide {
		y.SetFloat(i, v)
	}
	return st
}

func rowsOf[T float32 | float64](x, y []T, size, n int, centered bool, eps float64, affine func(i int, v float64) float64) []stats {
	if size == 0 {
		return nil
	}
	out := make([]stats, size/n)
	parallel(len(out), grainOf(8*n), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			st := momentsOf(x[r*n:(r+1)*n], centered, eps)
			for i := r * n; i < (r+1)*n; i++ {
				y[i] = T(affine(i, (float64(x[i])-st.mean)*st.inv))
			}
			out[r] = st
		}
	})
	return out
}

func momentsOf[T float32 | float64](x []T, centered bool, eps float64) stats {
	var st stats
	if centered {
		for _, v := range x {
			st.mean += float64(v)
		}
		st.mean /= float64(len(x))
	}
	sq := 0.0
	for _, v := range x {
		d := float64(v) - st.mean
		sq += d * d
	}
	st.inv = 1 / math.Sqrt(sq/float64(len(x))+eps)
	return st
}

// floats64 returns the elements of a real tensor as float64.
func floats64(a *Array) []float64 {
	if a.F64 != nil {
		return a.F64
	}
	out := make([]float64, a.Len())
	for i := range out {
		out[i] = a.Float(i)
	}
	return out
}

// periodic returns values v of a such that v[i%len(v)] is the element of a that broadcasting puts at element i of shape.
func periodic(a *Array, shape []int) ([]float64, error) {
	s := a.Shape
	for len(s) > 0 && s[0] == 1 {
		s = s[1:]
	}
	same := len(s) <= len(shape)
	for i := range s {
		same = same && s[len(s)-1-i] == shape[len(shape)-1-i]
	}
	if same {
		return floats64(a), nil
	}
	p, err := broadcastTo(shape, a.Shape)
	if err != nil {
		return nil, err
	}
	v, out := floats64(a), scratch[float64](shape...)
	p.runs(0, len(out), func(to, n int, at []int) {
		from := span(p, 0, v, at[0], n)
		for i := range n {
			out[to+i] = from[i%len(from)]
		}
	})
	return out, nil
}
