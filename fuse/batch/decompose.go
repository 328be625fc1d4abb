package batch

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// decomposition returns what a node is taken apart by, so that what needs all samples is sums of its own; nil for nodes that are
// left as they are.
func decomposition(c *ctx) func(b *op.Builder, n *graph.Node) []*graph.Value {
	n := c.n
	if len(c.at) == 0 || c.at[0] == nil || c.at[0].axis != 0 {
		return nil
	}
	switch {
	case n.Is("BatchNormalization") && n.Int("training_mode", 0) != 0 && len(c.shape(0)) > 1:
		return batchStatistics
	case (n.Is("SoftmaxCrossEntropyLoss") || n.Is("NegativeLogLikelihoodLoss")) && n.Str("reduction", "mean") != "none" && c.shape(0) != nil:
		return lossSum
	}
	return nil
}

// batchStatistics computes the mean and the variance of x of shape [N, C, ...] by channel and normalizes with them:
// y = scale (x - mean) / sqrt(variance + epsilon) + bias. The running statistics are old momentum + new (1 - momentum).
// Nodes are those that the gradient has, too, so that equal ones can be merged, and x itself is not read again once it is
// centered. Of short floats, which are centered as float32, x is kept and BatchNormalization normalizes it in inference mode.
func batchStatistics(b *op.Builder, n *graph.Node) []*graph.Value {
	x := n.In[0]
	elem := x.Type.Elem
	wide := elem
	if elem.Bits() < 32 {
		wide = graph.Float
	}
	axes, others, behind := []int64{0}, []int64{0}, []int64{}
	for i := 2; i < len(x.Type.Shape); i++ {
		axes, others, behind = append(axes, int64(i)), append(others, int64(i)), append(behind, int64(i-1))
	}
	x = b.Cast(x, wide)
	mean := b.ReduceMean(x, true, axes...)
	centered := b.Sub(x, mean)
	variance := b.ReduceMean(b.Mul(centered, centered), true, axes...)
	flat := func(v, like *graph.Value) *graph.Value { return b.Cast(b.Squeeze(v, others...), like.Type.Elem) }
	var y *graph.Value
	if scale, bias := n.In[1], n.In[2]; wide == elem && scale.Type.Elem == elem && bias.Type.Elem == elem {
		inverse := b.Unary("Reciprocal", b.Unary("Sqrt", b.AddScalar(variance, float64(n.Float("epsilon", 1e-5)))))
		y = b.Add(b.Mul(centered, b.Mul(b.Unsqueeze(scale, behind...), inverse)), b.Unsqueeze(bias, behind...))
	} else {
		var attrs []*graph.Attr
		if a := n.Attr("epsilon"); a != nil {
			attrs = append(attrs, a)
		}
		y = b.Op("BatchNormalization", []*graph.Value{n.In[0], scale, bias, flat(mean, n.In[3]), flat(variance, n.In[4])}, attrs...)
	}
	out := []*graph.Value{y}
	for i, now := range []*graph.Value{mean, variance} {
		if n.Result(1+i) == nil {
			out = append(out, nil)
			continue
		}
		old, m := n.In[3+i], float64(float32(n.Float("momentum", 0.9)))
		out = append(out, b.Add(b.MulScalar(old, m), b.MulScalar(flat(now, old), 1-m)))
	}
	return out[:max(len(n.Out), 1)]
}

// lossSum adds up the losses of all samples, and divides by the sum of their weights if their mean is asked for.
func lossSum(b *op.Builder, n *graph.Node) []*graph.Value {
	attrs := []*graph.Attr{graph.StringAttr("reduction", "none")}
	ignore := n.Attr("ignore_index")
	if ignore != nil {
		attrs = append(attrs, ignore)
	}
	each := b.Node(n.Op, n.In, max(len(n.Out), 1), attrs...)
	elem := each.Out[0].Type.Elem
	wide := elem
	if elem.Bits() < 32 {
		wide = graph.Float
	}
	loss := b.ReduceAll(b.Cast(each.Out[0], wide))
	if n.Str("reduction", "mean") == "mean" {
		labels, weights := n.In[1], n.Operand(2)
		var counts *graph.Value
		switch {
		case ignore == nil && weights == nil:
			counts = b.Cast(b.Unary("Size", labels), wide)
		case weights == nil:
			kept := b.Unary("Not", b.Binary("Equal", labels, b.Like(labels, float64(ignore.I))))
			counts = b.ReduceAll(b.Cast(kept, wide))
		case ignore == nil:
			counts = b.ReduceAll(b.Cast(b.Gather(weights, labels, 0), wide))
		default:
			ignored := b.Binary("Equal", labels, b.Like(labels, float64(ignore.I)))
			of := b.Cast(b.Gather(weights, b.Where(ignored, b.Like(labels, 0), labels), 0), wide)
			counts = b.ReduceAll(b.Where(ignored, b.Scalar(wide, 0), of))
		}
		loss = b.Div(loss, counts)
	}
	out := []*graph.Value{b.Cast(loss, elem)}
	if len(n.Out) > 1 {
		out = append(out, each.Out[1])
	}
	return out
}
