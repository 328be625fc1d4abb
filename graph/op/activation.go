package op

import (
	"math"

	"gradtool/graph"
)

// activationDefs defines the activation functions, and Clip.
func activationDefs() []Def {
	wide := FV([]int{2, 3}, -4.3, -1.2, -0.3, 0.4, 1.3, 5.2) // keeps away from 0, 0.5, 1, 3 in magnitude
	extreme := FV([]int{4}, -200, -95, 95, 200)              // where exp overflows or vanishes in float32
	f := func(name string, v float32) *graph.Attr { return graph.FloatAttr(name, v) }
	with := func(name string, in Arg, attrs ...*graph.Attr) Sample {
		return Sample{Name: name, In: []Arg{in}, Attrs: attrs}
	}
	tanh := graph.StringAttr("approximate", "tanh")
	return []Def{
		{Name: "Relu", Facts: Elementwise | CheapRemat, Infer: sameAsFirst, Samples: []Sample{with("", wide), with("int", TV(graph.Int32, []int{2}, -2, 3))},
			Eval: evalUnary(workCheap, fixed(func(x float64) float64 { return max(x, 0) }, func(x int64) int64 { return max(x, 0) }))},
		activation("LeakyRelu", workCheap, leakyRelu, with("", wide), with("alpha", wide, f("alpha", 0.3)), with("negative", wide, f("alpha", -0.5)), with("zero", wide, f("alpha", 0))),
		activation("ThresholdedRelu", workCheap, thresholdedRelu, with("", wide), with("alpha", wide, f("alpha", -0.5))),
		activation("Elu", workExp, elu, with("", wide), with("alpha", wide, f("alpha", 2)), with("negative", wide, f("alpha", -0.7)), with("extreme", extreme)),
		activation("Selu", workExp, selu, with("", wide), with("parameters", wide, f("alpha", 1.2), f("gamma", 0.8)), with("negative", wide, f("alpha", 1.2), f("gamma", -0.8)), with("extreme", extreme)),
		activation("Celu", workExp, celu, with("", wide), with("alpha", wide, f("alpha", 0.4)), with("negative", wide, f("alpha", -2)), with("extreme", extreme)),
		activation("Gelu", workTwice, gelu, with("", wide), with("tanh", wide, tanh), with("extreme", extreme), with("tanh-extreme", extreme, tanh)),
		activation("Sigmoid", workExp, always1(sigmoid), with("", wide), with("extreme", extreme)),
		activation("HardSigmoid", workCheap, hardSigmoid, with("", wide), with("parameters", wide, f("alpha", -0.4), f("beta", 0.1))),
		activation("HardSwish", workCheap, always1(func(x float64) float64 { return x * clamp(x/6+0.5, 0, 1) }), with("", wide)),
		activation("Softplus", workTwice, always1(softplus), with("", wide), with("extreme", extreme)),
		activation("Softsign", workDivide, always1(func(x float64) float64 { return x / (1 + math.Abs(x)) }), with("", wide)),
		activation("Mish", workTwice, always1(func(x float64) float64 { return x * math.Tanh(softplus(x)) }), with("", wide), with("extreme", extreme)),
		activation("Swish", workExp, func(n *graph.Node) func(float64) float64 {
			alpha := n.Float("alpha", 1)
			return func(x float64) float64 { return x * sigmoid(alpha*x) }
		}, with("", wide), with("alpha", wide, f("alpha", 1.7)), with("extreme", extreme)),
		{Name: "Shrink", Facts: Elementwise | CheapRemat, Infer: sameAsFirst, Eval: evalUnary(workCheap, shrink), Samples: []Sample{
			with("", wide), with("bias", wide, f("bias", 0.7), f("lambd", 1)), with("int", TV(graph.Int8, []int{4}, -3, -1, 1, 3), f("bias", 1.5), f("lambd", 1.5)),
			with("uint", TV(graph.Uint8, []int{2}, 1, 3), f("bias", 1), f("lambd", 2))}},
		{Name: "PRelu", Facts: Elementwise | Broadcasts | CheapRemat, Infer: inferPRelu, Eval: evalPRelu, Samples: []Sample{
			pair(wide, wide), pair(wide, F(3)), pair(wide, F()), pair(FV([]int{1, 2, 2}, -1, 2, 0.5, -0.4), F(2, 1)), pair(TV(graph.Int32, []int{2}, -2, 3), TV(graph.Int32, []int{2}, 5, 7))}},
		{Name: "SwiGLU", Facts: Elementwise, Infer: inferSwiGLU, Eval: evalSwiGLU, Cost: perElement(workExp), Samples: []Sample{
			pair(wide, F(2, 3)), {Name: "alpha", In: []Arg{wide, F(2, 3)}, Attrs: []*graph.Attr{f("alpha", 1.7)}}}},
		{Name: "Clip", Facts: Elementwise | CheapRemat, Infer: inferClip, Eval: evalClip, Samples: []Sample{
			{In: []Arg{wide, FV(nil, -1), FV(nil, 1)}}, {Name: "lower", In: []Arg{wide, FV(nil, -1)}}, {Name: "upper", In: []Arg{wide, {}, FV(nil, 1)}}, {Name: "open", In: []Arg{wide}},
			{Name: "crossed", In: []Arg{wide, FV(nil, 2), FV(nil, 1)}}, {Name: "constant", In: []Arg{wide, FV(nil, 0).Constant(), FV(nil, 6).Constant()}},
			{Name: "int", In: []Arg{I(-5, 2, 9), IS(-1), IS(4)}}, {Name: "uint64", In: []Arg{TV(graph.Uint64, []int{3}, 0, 2, 9), TV(graph.Uint64, nil, 1), {}}},
		}},
	}
}

// activation defines a function of float elements with attributes.
func activation(name string, work int, fn func(n *graph.Node) func(float64) float64, samples ...Sample) Def {
	d := floatFunc(name, work, nil)
	d.Eval = evalUnary(work, func(n *graph.Node, _ graph.DataType) unaryFn { return unaryFn{float: fn(n)} })
	d.Samples = samples
	return d
}

// always1 is the choice of a function that no attribute changes.
func always1(f func(float64) float64) func(*graph.Node) func(float64) float64 {
	return func(*graph.Node) func(float64) float64 { return f }
}

// clamp returns x limited to [lo, hi], and hi where lo > hi. NaN stays NaN.
func clamp(x, lo, hi float64) float64 { return min(max(x, lo), hi) }

// sigmoid returns 1/(1+e^-x) without overflow on either side.
func sigmoid(x float64) float64 {
	if x < 0 {
		e := math.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}

// softplus returns ln(1+e^x) without overflow, accurate where it is small.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func leakyRelu(n *graph.Node) func(float64) float64 {
	alpha := n.Float("alpha", 0.01)
	return func(x float64) float64 {
		if x < 0 {
			return alpha * x
		}
		return x
	}
}

func thresholdedRelu(n *graph.Node) func(float64) float64 {
	alpha := n.Float("alpha", 1)
	return func(x float64) float64 {
		if x <= alpha {
			return 0
		}
		return x
	}
}

func elu(n *graph.Node) func(float64) float64 {
	alpha := n.Float("alpha", 1)
	return func(x float64) float64 {
		if x < 0 {
			return alpha * math.Expm1(x)
		}
		return x
	}
}

// SeluAlpha and SeluGamma are the defaults of Selu (Klambauer et al., "Self-normalizing neural
// networks", 2017), as float32.
const (
	SeluAlpha = 1.67326319217681884765625
	SeluGamma = 1.05070102214813232421875
)

func selu(n *graph.Node) func(float64) float64 {
	alpha, gamma := n.Float("alpha", SeluAlpha), n.Float("gamma", SeluGamma)
	return func(x float64) float64 {
		if x <= 0 {
			return gamma * alpha * math.Expm1(x)
		}
		return gamma * x
	}
}

// celu is max(0,x) + min(0, a(e^(x/a)-1)) (Barron, "Continuously differentiable exponential linear
// units", 2017).
func celu(n *graph.Node) func(float64) float64 {
	alpha := n.Float("alpha", 1)
	return func(x float64) float64 {
		if x < 0 {
			return min(0, alpha*math.Expm1(x/alpha))
		}
		return x
	}
}

// gelu is x times the normal distribution function, or its approximation by tanh (Hendrycks and
// Gimpel, "Gaussian error linear units", 2016).
func gelu(n *graph.Node) func(float64) float64 {
	if n.Str("approximate", "none") == "tanh" {
		return func(x float64) float64 {
			return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		}
	}
	return func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }
}

func hardSigmoid(n *graph.Node) func(float64) float64 {
	alpha, beta := n.Float("alpha", 0.2), n.Float("beta", 0.5)
	return func(x float64) float64 { return clamp(alpha*x+beta, 0, 1) }
}

// shrink computes in float64 for integers too, since the attributes are floats, and truncates.
func shrink(n *graph.Node, elem graph.DataType) unaryFn {
	bias, lambd := n.Float("bias", 0), n.Float("lambd", 0.5)
	f := func(x float64) float64 {
		switch {
		case x < -lambd:
			return x + bias
		case x > lambd:
			return x - bias
		case x != x:
			return x
		}
		return 0
	}
	return unaryFn{f, func(x int64) int64 {
		if elem == graph.Uint64 {
			return truncate(f(float64(uint64(x))), elem)
		}
		return truncate(f(float64(x)), elem)
	}}
}

func inferPRelu(c *InferCtx) error {
	c.SetType(0, c.In(0))
	x, slope := c.Shape(0), c.Shape(1)
	if x == nil || slope == nil {
		return nil
	}
	s, err := broadcastShapes(x, slope)
	if err != nil {
		return err
	}
	if len(s) > len(x) {
		return c.Errorf("slope %s does not broadcast to %s", c.In(1), c.In(0))
	}
	return nil
}

// evalPRelu is x where x >= 0, else slope times x; the slope is broadcast to x.
func evalPRelu(c *EvalCtx) error {
	x, slope := c.In[0], c.In[1]
	if _, err := broadcastTo(x.Shape, slope.Shape); err != nil {
		return err
	}
	return evalBinary(workCheap, always(binaryFn{runOf(prelu[float32]), runOf(prelu[float64]), func(elem graph.DataType) func(out, a, b []int64) {
		if elem == graph.Uint64 {
			return runOf(func(x, _ int64) int64 { return x })
		}
		return runOf(prelu[int64])
	}}))(c)
}

func prelu[T number](x, slope T) T {
	if x < 0 {
		return slope * x
	}
	return x
}

func inferSwiGLU(c *InferCtx) error {
	a, b := c.Shape(0), c.Shape(1)
	if a != nil && b != nil && len(a) != len(b) {
		return c.Errorf("shapes %v and %v differ", a, b)
	}
	c.SetType(0, c.In(0))
	if a == nil {
		c.Set(0, c.Elem(0), b)
	}
	return nil
}

// evalSwiGLU is a sigmoid(alpha a) b (Shazeer, "GLU variants improve transformer", 2020).
func evalSwiGLU(c *EvalCtx) error {
	alpha := c.Node.Float("alpha", 1)
	f := func(a, b float64) float64 { return a * sigmoid(alpha*a) * b }
	return evalBinary(workExp, always(binaryFn{
		runOf(func(a, b float32) float32 { return float32(f(float64(a), float64(b))) }), runOf(f), nil}))(c)
}

func inferClip(c *InferCtx) error {
	for i := 1; i < c.NumIn(); i++ {
		if s := c.Shape(i); len(s) > 1 {
			return c.Errorf("a bound must be a scalar, is %s", c.In(i))
		}
	}
	c.SetType(0, c.In(0))
	if d := c.Dims(0); d != nil && c.Elem(0).IsInt() {
		if c.Has(1) {
			d = zipDims(d, []graph.Dim{c.scalarDim(1)}, graph.Dim.Max)
		}
		if c.Has(2) {
			d = zipDims(d, []graph.Dim{c.scalarDim(2)}, graph.Dim.Min)
		}
		c.SetDims(0, d)
	}
	return nil
}

// evalClip is min(hi, max(x, lo)); a bound that is omitted does not bind.
func evalClip(c *EvalCtx) error {
	x, lo, hi := c.In[0], c.Arg(1), c.Arg(2)
	for _, b := range []*Array{lo, hi} {
		if b != nil && b.Len() != 1 {
			return c.Errorf("a bound must be a scalar, is %s", b.Type())
		}
	}
	y := x.NewLike(x.Shape)
	switch {
	case x.IsFloat():
		a, b := math.Inf(-1), math.Inf(1)
		if lo != nil {
			a = lo.Float(0)
		}
		if hi != nil {
			b = hi.Float(0)
		}
		f := func(x float64) float64 { return clamp(x, a, b) }
		if x.F32 != nil {
			mapFloat(y.F32, x.F32, workCheap, f)
		} else {
			mapFloat(y.F64, x.F64, workCheap, f)
		}
	case x.I64 != nil:
		unsigned := x.Elem == graph.Uint64
		for i, v := range x.I64 {
			if lo != nil {
				v = maxInts(v, lo.I64[0], unsigned)
			}
			if hi != nil {
				v = minInts(v, hi.I64[0], unsigned)
			}
			y.I64[i] = v
		}
	default:
		return c.Errorf("Clip is not defined for %s", x.Elem)
	}
	c.Set(0, y)
	return nil
}
