package autodiff

import "gradtool/graph"

func lossRules() []Rule {
	return []Rule{
		{Name: "NegativeLogLikelihoodLoss", Kind: HasVJP, VJP: likelihoodVJP, Fixed: []int{2}},
		{Name: "SoftmaxCrossEntropyLoss", Kind: HasVJP, VJP: crossEntropyVJP, Fixed: []int{2}},
	}
}

// terms are what both losses' derivatives are made of.
type terms struct {
	labels *graph.Value // with an axis of size 1 for the classes, ignored ones replaced by 0
	counts *graph.Value // bool: labels that are not ignored; nil: all
	total  *graph.Value // sum of the weights, of a weighted mean
	// a is the cotangent of minus the log probability of each label, of the labels' shape: the loss's
	// cotangent times the label's weight, over the sum of weights for a mean.
	a *graph.Value
}

func sampleTerms(c *Ctx) terms {
	y, g := c.Y(0), c.Ct(0)
	labels := c.X(1)
	var t terms
	reduction := c.Node.Str("reduction", "mean")
	if c.Node.HasAttr("ignore_index") {
		ignored := c.Binary("Equal", labels, c.Like(labels, float64(c.Node.Int("ignore_index", 0))))
		labels = c.Where(ignored, c.Like(labels, 0), labels)
		t.counts = c.Unary("Not", ignored)
	}
	var w *graph.Value // weight by sample
	switch weights := c.X(2); {
	case weights != nil && t.counts != nil:
		w = c.Where(t.counts, c.Gather(weights, labels, 0), c.Like(g, 0))
	case weights != nil:
		w = c.Gather(weights, labels, 0)
	case t.counts != nil:
		w = c.Cast(t.counts, g.Type.Elem)
	}
	a := g
	switch {
	case reduction == "mean" && w == nil:
		a = c.Mul(g, sizeRatio(c, y, labels, g.Type.Elem))
	case reduction == "mean":
		t.total = c.ReduceAll(w)
		if t.counts != nil { // where no label counts the loss is 0/0, but its derivative is 0
			t.total = c.Where(c.Binary("Equal", t.total, c.Like(g, 0)), c.Like(g, 1), t.total)
		}
		a = c.Div(c.Mul(g, w), t.total)
	case w != nil:
		a = c.Mul(g, w)
	}
	t.labels = c.Unsqueeze(labels, 1)
	if reduction == "none" || w != nil {
		t.a = c.Unsqueeze(a, 1)
	} else {
		t.a = c.Expand(a, c.Shape(t.labels))
	}
	return t
}

// weights returns the cotangent of the class weights: by label, the sum of g·(-log p) or, since a mean
// divides by the sum of weights, of g·(-log p - y) over that sum.
func (t terms) weights(c *Ctx, logProb *graph.Value) *graph.Value {
	if !c.Need(2) {
		return nil
	}
	w := c.X(2)
	nll := c.Squeeze(c.Neg(c.Op("GatherElements", []*graph.Value{logProb, t.labels}, graph.IntAttr("axis", 1))), 1)
	if t.total != nil {
		nll = c.Div(c.Sub(nll, c.Y(0)), t.total)
	}
	d := c.Mul(c.Ct(0), nll)
	if t.counts != nil {
		d = c.Where(t.counts, d, c.Like(d, 0))
	}
	zeros := stashed(c, c.FullLike(w, 0))
	return c.Op("ScatterElements", []*graph.Value{zeros, c.ReshapeTo(t.labels, -1), c.ReshapeTo(stashed(c, d), -1)},
		graph.IntAttr("axis", 0), graph.StringAttr("reduction", "add"))
}

// likelihoodVJP: y = -x[label]·w by sample; dx = -a at the label, else 0.
func likelihoodVJP(c *Ctx) []*graph.Value {
	t := sampleTerms(c)
	var dx *graph.Value
	if c.Need(0) {
		dx = c.Op("ScatterElements", []*graph.Value{c.FullLike(c.X(0), 0), t.labels, c.Neg(t.a)}, graph.IntAttr("axis", 1))
	}
	return []*graph.Value{dx, nil, t.weights(c, c.X(0))}
}

// crossEntropyVJP: with p = softmax x, dx = a·p, less a at the label. A cotangent h of the log probabilities, where
// they are a result, adds h - p·sum h.
func crossEntropyVJP(c *Ctx) []*graph.Value {
	x, h := c.X(0), c.Ct(1)
	logProb := c.Y(1)
	var p *graph.Value
	if logProb != nil {
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
	t := sampleTerms(c)
	var dw *graph.Value
	if c.Need(2) {
		if logProb == nil {
			logProb = c.Unary("LogSoftmax", x, graph.IntAttr("axis", 1))
		}
		dw = t.weights(c, logProb)
	}
	dx = stashed(c, plus(c, dx, c.Mul(p, t.a))) // runtimes scatter sums of wide types only
	dx = c.Op("ScatterElements", []*graph.Value{dx, t.labels, stashed(c, c.Neg(t.a))}, graph.IntAttr("axis", 1), graph.StringAttr("reduction", "add"))
	return []*graph.Value{dx, nil, dw}
}
