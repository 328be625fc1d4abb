package op

import (
	"math"

	"gradtool/graph"
)

// softmaxDefs holds the operators that normalize along one axis by exponentials, in the form of opset 13.
func softmaxDefs() []Def {
	axis := func(a int64) []*graph.Attr { return []*graph.Attr{graph.IntAttr("axis", a)} }
	samples := func() []Sample {
		return []Sample{
			{In: []Arg{F(2, 3)}},
			{Name: "axis", In: []Arg{F(2, 3, 4)}, Attrs: axis(1)},
			{Name: "first axis", In: []Arg{F(3, 2)}, Attrs: axis(-2)},
			{Name: "size one", In: []Arg{F(3, 1)}},
			{Name: "far apart", In: []Arg{FR(-200, 200, 2, 3)}},
		}
	}
	masked := Sample{Name: "masked", In: []Arg{FV([]int{2, 3}, 0.5, math.Inf(-1), 1, math.Inf(-1), 2, math.Inf(-1))}}
	return []Def{
		{Name: "Softmax", Facts: CheapRemat, Infer: inferAlongAxis, Eval: func(c *EvalCtx) error {
			return evalAlongAxis(c, softmaxRun[float32], softmaxRun[float64])
		}, Cost: perElement(5), Samples: append(samples(), masked)},
		{Name: "LogSoftmax", Facts: CheapRemat, Infer: inferAlongAxis, Eval: func(c *EvalCtx) error {
			return evalAlongAxis(c, logSoftmaxRun[float32], logSoftmaxRun[float64])
		}, Cost: perElement(5), Samples: samples()},
		{Name: "Hardmax", Infer: inferAlongAxis, Eval: func(c *EvalCtx) error {
			return evalAlongAxis(c, hardmaxRun[float32], hardmaxRun[float64])
		}, Samples: append(samples(), Sample{Name: "ties", In: []Arg{FV([]int{2, 2}, 1, 1, 2, 2)}})},
	}
}

// inferAlongAxis infers a result of operand 0's type, and checks the attribute axis.
func inferAlongAxis(c *InferCtx) error {
	c.SetType(0, c.In(0))
	if s := c.Shape(0); s != nil {
		_, err := c.Axis(c.Node.Int("axis", -1), len(s))
		return err
	}
	return nil
}

// evalAlongAxis calls f for every run of operand 0 along the attribute axis: the first element, the number of
// elements and the distance of neighbours.
func evalAlongAxis(c *EvalCtx, f32 func(x, y []float32, at, n, step int), f64 func(x, y []float64, at, n, step int)) error {
	x := c.Arg(0)
	a, err := normAxis(c.Node.Int("axis", -1), x.Rank())
	if err != nil {
		return err
	}
	y := x.NewLike(x.Shape)
	eachRun(x.Shape, a, func(at, n, step int) {
		if x.F32 != nil {
			f32(x.F32, y.F32, at, n, step)
		} else {
			f64(x.F64, y.F64, at, n, step)
		}
	})
	c.Set(0, y)
	return nil
}

// softmaxRun computes y = exp(x-m)/sum(exp(x-m)) with m the greatest x; a run of -inf alone gives NaN.
func softmaxRun[T float32 | float64](x, y []T, at, n, step int) {
	m, end := maxOfRun(x, at, n, step), at+n*step
	sum := 0.0
	for i := at; i < end; i += step {
		e := math.Exp(float64(x[i]) - m)
		y[i] = T(e)
		sum += e
	}
	for i := at; i < end; i += step {
		y[i] = T(float64(y[i]) / sum)
	}
}

// logSoftmaxRun computes y = x-m-log(sum(exp(x-m))).
func logSoftmaxRun[T float32 | float64](x, y []T, at, n, step int) {
	m, end := maxOfRun(x, at, n, step), at+n*step
	sum := 0.0
	for i := at; i < end; i += step {
		sum += math.Exp(float64(x[i]) - m)
	}
	log := math.Log(sum)
	for i := at; i < end; i += step {
		y[i] = T(float64(x[i]) - m - log)
	}
}

// hardmaxRun computes 1 for the first greatest element, else 0.
func hardmaxRun[T float32 | float64](x, y []T, at, n, step int) {
	if n == 0 {
		return
	}
	best := at
	for i := at; i < at+n*step; i += step {
		if x[i] > x[best] {
			best = i
		}
	}
	y[best] = 1
}

func maxOfRun[T float32 | float64](x []T, at, n, step int) float64 {
	m := math.Inf(-1)
	for i := at; i < at+n*step; i += step {
		m = math.Max(m, float64(x[i]))
	}
	return m
}
