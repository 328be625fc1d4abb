package op

import (
	"fmt"

	"gradtool/graph"
)

// lossDefs holds the standard's losses. Scores are [N, C, d1, ...], labels [N, d1, ...]; the loss of a sample is minus the log
// probability of its label, times the label's weight, 0 where the label is ignore_index. The mean divides by the
// sum of the weights that count.
func lossDefs() []Def {
	labels := TV(graph.Int64, []int{4}, 0, 2, 1, 2)
	image := TV(graph.Int32, []int{2, 3}, 0, 2, 1, 2, 1, 1)
	ignored := TV(graph.Int64, []int{4}, 0, -1, 1, 2)
	reduce := func(s string) *graph.Attr { return graph.StringAttr("reduction", s) }
	ignore := func(i int64) *graph.Attr { return graph.IntAttr("ignore_index", i) }
	weights := FR(0.2, 2, 3).Constant()
	samples := func() []Sample {
		return []Sample{
			{In: []Arg{F(4, 3), labels}},
			{Name: "sum, run-time labels", In: []Arg{F(4, 3), labels.Variable()}, Attrs: []*graph.Attr{reduce("sum")}},
			{Name: "none", In: []Arg{F(4, 3), labels}, Attrs: []*graph.Attr{reduce("none")}},
			{Name: "weights", In: []Arg{F(4, 3), labels, weights}},
			{Name: "weights, none", In: []Arg{F(2, 3, 3), image, weights}, Attrs: []*graph.Attr{reduce("none")}},
			{Name: "image", In: []Arg{F(2, 3, 3), image}},
			{Name: "ignore", In: []Arg{F(4, 3), ignored}, Attrs: []*graph.Attr{ignore(-1)}},
			{Name: "ignore, weights, image", In: []Arg{F(2, 3, 3), image, weights}, Attrs: []*graph.Attr{ignore(1)}},
			{Name: "ignore, sum", In: []Arg{F(4, 3), ignored.Variable(), weights}, Attrs: []*graph.Attr{ignore(-1), reduce("sum")}},
		}
	}
	return []Def{
		{Name: "NegativeLogLikelihoodLoss", Infer: inferLoss, Cost: func(c *CostCtx) float64 { return float64(prod(c.In[1])) },
			Eval: func(c *EvalCtx) error { return evalLoss(c, c.Arg(0)) }, Samples: samples()},
		{Name: "SoftmaxCrossEntropyLoss", Infer: inferLoss, Cost: func(c *CostCtx) float64 { return 6 * float64(prod(c.In[0])) },
			Eval: evalCrossEntropy, Samples: append(samples(),
				Sample{Name: "log probabilities", In: []Arg{F(4, 3), labels}, Outs: 2},
				Sample{Name: "log probabilities, image", In: []Arg{F(2, 3, 3), image, weights}, Attrs: []*graph.Attr{reduce("none")}, Outs: 2},
			)},
	}
}

func inferLoss(c *InferCtx) error {
	x, labels := c.Shape(0), c.Shape(1)
	switch r := c.Node.Str("reduction", "mean"); r {
	case "mean", "sum":
		c.Set(0, c.Elem(0), graph.Shape{})
	case "none":
		if labels == nil && len(x) >= 2 {
			labels = append(graph.Shape{x[0]}, x[2:]...)
		}
		c.Set(0, c.Elem(0), labels)
	default:
		return c.Errorf("reduction is %q, expected none, sum or mean", r)
	}
	c.SetType(1, c.In(0))
	switch {
	case x == nil:
		return nil
	case len(x) < 2:
		return c.Errorf("scores have rank %d, expected at least 2", len(x))
	case labels != nil && len(labels) != len(x)-1:
		return c.Errorf("labels have shape %s, expected that of the scores %s without axis 1", labels, x)
	}
	return nil
}

func evalCrossEntropy(c *EvalCtx) error {
	x := c.Arg(0)
	if x.Rank() < 2 {
		return c.Errorf("scores have shape %v, expected at least 2 axes", x.Shape)
	}
	logProb := x.NewLike(x.Shape)
	eachRun(x.Shape, 1, func(at, n, step int) {
		if x.F32 != nil {
			logSoftmaxRun(x.F32, logProb.F32, at, n, step)
		} else {
			logSoftmaxRun(x.F64, logProb.F64, at, n, step)
		}
	})
	if err := evalLoss(c, logProb); err != nil {
		return err
	}
	c.Set(1, logProb)
	return nil
}

// evalLoss computes result 0 from log probabilities.
func evalLoss(c *EvalCtx, logProb *Array) error {
	labels, weights := c.Arg(1), c.Arg(2)
	s := logProb.Shape
	if len(s) < 2 || fmt.Sprint(labels.Shape) != fmt.Sprint(append([]int{s[0]}, s[2:]...)) {
		return c.Errorf("labels have shape %v, expected that of the scores %v without axis 1", labels.Shape, s)
	}
	classes, inner := s[1], prod(s[2:])
	if weights != nil && weights.Len() != classes {
		return c.Errorf("weights have shape %v, expected [%d]", weights.Shape, classes)
	}
	ignored, ignores := c.Node.Int("ignore_index", 0), c.Node.HasAttr("ignore_index")
	loss := make([]float64, labels.Len())
	total, totalWeight := 0.0, 0.0
	for i, label := range labels.I64 {
		if ignores && label == ignored {
			continue
		}
		if label < 0 || label >= int64(classes) {
			return c.Errorf("label %d is not one of the %d classes", label, classes)
		}
		w := 1.0
		if weights != nil {
			w = weights.Float(int(label))
		}
		loss[i] = -logProb.Float((i/inner*classes+int(label))*inner+i%inner) * w
		total += loss[i]
		totalWeight += w
	}
	var y *Array
	switch c.Node.Str("reduction", "mean") {
	case "none":
		y = logProb.NewLike(labels.Shape)
		for i, l := range loss {
			y.SetFloat(i, l)
		}
	case "sum":
		y = logProb.NewLike(nil)
		y.SetFloat(0, total)
	default:
		y = logProb.NewLike(nil)
		y.SetFloat(0, total/totalWeight)
	}
	c.Set(0, y)
	return nil
}
