package autodiff

import "gradtool/graph"

func lossRules() []Rule {
	return []Rule{
		{Name: "NegativeLogLikelihoodLoss", Kind: HasVJP, VJP: likelihoodVJP, Stop: []int{2}},
		{Name: "SoftmaxCrossEntropyLoss", Kind: HasVJP, VJP: crossEntropyVJP, Stop: []int{2}},
	}
}

// sampleTerms returns the labels with an axis of size 1 for the classes, ignored ones replaced by 0, and the
// cotangent of minus the log probability of each label, a, of the same shape: the loss's cotangent times the
// label's weight, over the sum of weights for a mean.
func sampleTerms(c *Ctx) (labels, a *graph.Value) {
	y, g := c.Y(0), c.Ct(0)
	labels = c.X(1)
	reduction := c.Node.Str("reduction", "mean")
	var counts *graph.Value // bool: labels that are not ignored
	if c.Node.HasAttr("ignore_index") {
		ignored := c.Binary("Equal", labels, c.Like(labels, float64(c.Node.Int("ignore_index", 0))))
		labels = c.Where(ignored, c.Like(labels, 0), labels)
		counts = c.Unary("Not", ignored)
	}
	var w *graph.Value // weight by sample
	switch weights := c.X(2); {
	case weights != nil && counts != nil:
		w = c.Where(counts, c.Gather(weights, labels, 0), c.Like(g, 0))
	case weights != nil:
		w = c.Gather(weights, labels, 0)
	case counts != nil:
		w = c.Cast(counts, g.Type.Elem)
	}
	a = g
	switch {
	case reduction == "mean" && w == nil:
		a = c.Mul(g, sizeRatio(c, y, labels, g.Type.Elem))
	case reduction == "mean":
		a = c.Div(c.Mul(g, w), c.ReduceAll(w))
	case w != nil:
		a = c.Mul(g, w)
	}
	labels = c.Unsqueeze(labels, 1)
	if reduction == "none" || w != nil {
		return labels, c.Unsqueeze(a, 1)
	}
	return labels, c.Expand(a, c.Shape(labels))
}

// likelihoodVJP: y = -x[label]·w by sample; dx = -a at the label, else 0.
func likelihoodVJP(c *Ctx) []*graph.Value {
	labels, a := sampleTerms(c)
	zeros := c.FullLike(c.X(0), 0)
	return one(c.Op("ScatterElements", []*graph.Value{zeros, labels, c.Neg(a)}, graph.IntAttr("axis", 1)))
}

// crossEntropyVJP: with p = softmax x, dx = a·p, less a at the label. A cotangent h of the log probabilities, where
// they are a result, adds h - p·sum h.
func crossEntropyVJP(c *Ctx) []*graph.Value {
	x, h := c.X(0), c.Ct(1)
	var p *graph.Value
	if logProb := c.Y(1); logProb != nil {
		p = c.Unary("Exp", logProb)
	} else {
		p = c.Unary("Softmax", x, graph.IntAttr("axis", 1))
	}
	var dx *graph.Value
	if h != nil {
		dx = c.Sub(h, c.Mul(p, c.ReduceSum(h, true, 1)))
	}
	if c.Ct(0) == nil {
		return one(dx)
	}
	labels, a := sampleTerms(c)
	dx = stashed(c, plus(c, dx, c.Mul(p, a))) // runtimes scatter sums of wide types only
	return one(c.Op("ScatterElements", []*graph.Value{dx, labels, stashed(c, c.Neg(a))}, graph.IntAttr("axis", 1), graph.StringAttr("reduction", "add")))
}
