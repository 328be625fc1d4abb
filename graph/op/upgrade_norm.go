package op

import (
	"fmt"

	"gradtool/graph"
)

// normAdapters cover normalization and dropout, where the training mode moved.
func normAdapters(add addAdapter) {
	add(7, upgradeBatchNorm7, "BatchNormalization")
	add(9, upgradeBatchNorm9, "BatchNormalization")
	add(14, upgradeBatchNorm14, "BatchNormalization")
	add(21, upgradeGroupNorm, "GroupNormalization")
	add(7, upgradeDropout7, "Dropout")
	add(10, upgradeDropout10, "Dropout")
	add(12, upgradeDropout12, "Dropout")
}

// trainingMark is set by the adapters for opset 7 on nodes that are in training mode by their attribute is_test, for
// the later adapters of the same node, which remove it.
const trainingMark = "__training"

// upgradeBatchNorm7 drops is_test, whose default is training.
func upgradeBatchNorm7(u *upgrader, n *graph.Node) error {
	if err := refuse(n, "is_test"); err != nil {
		return err
	}
	if n.Int("is_test", 0) == 0 {
		n.SetAttr(graph.IntAttr(trainingMark, 1))
	}
	n.DeleteAttr("is_test")
	return nil
}

// upgradeBatchNorm9 writes statistics per element (spatial = 0) out in arithmetic:
// y = (x - mean) / sqrt(var + epsilon) * scale + b, where all but x lack the batch axis.
func upgradeBatchNorm9(u *upgrader, n *graph.Node) error {
	if err := refuse(n, "spatial"); err != nil {
		return err
	}
	spatial := n.Int("spatial", 1)
	n.DeleteAttr("spatial")
	if spatial != 0 {
		return nil
	}
	if n.HasAttr(trainingMark) || len(n.Out) > 1 {
		return fmt.Errorf("training with statistics per element (spatial = 0)")
	}
	if len(n.In) < 5 {
		return fmt.Errorf("%d operands, want 5", len(n.In))
	}
	eps, err := u.attrOr(n, "epsilon", 1e-5, n.In[0])
	if err != nil {
		return err
	}
	b := u.b
	x, scale, bias, mean, variance := n.In[0], n.In[1], n.In[2], n.In[3], n.In[4]
	inv := b.Div(scale, b.Unary("Sqrt", b.Add(variance, eps)))
	become(n, "Add", vals(b.Mul(b.Sub(x, mean), inv), bias))
	return nil
}

// attrOr returns a float attribute, or its default, as a scalar of x's element type.
func (u *upgrader) attrOr(n *graph.Node, name string, def float32, x *graph.Value) (*graph.Value, error) {
	a := n.Attr(name)
	if a == nil {
		a = graph.FloatAttr(name, def)
	}
	if a.Ref == "" && x.Type.Elem != graph.Undefined {
		return u.b.Like(x, float64(a.F)), nil
	}
	v, err := u.attrConst(a)
	if err != nil {
		return nil, err
	}
	return u.b.Op("CastLike", vals(v, x)), nil
}

// upgradeBatchNorm14 says training_mode where results beyond the first did, and computes the saved batch statistics,
// which are no results any more, where something reads them.
func upgradeBatchNorm14(u *upgrader, n *graph.Node) error {
	training := n.HasAttr(trainingMark)
	n.DeleteAttr(trainingMark)
	for _, v := range n.Out[min(1, len(n.Out)):] {
		training = training || v != nil
	}
	if !training {
		n.Out = n.Out[:min(1, len(n.Out))]
		return nil
	}
	n.SetAttr(graph.IntAttr("training_mode", 1))
	return u.savedStats(n)
}

// savedStats cuts results 3 and 4 (mean and variance of the batch) off n and computes them from operand 0.
func (u *upgrader) savedStats(n *graph.Node) error {
	mean, variance := n.Result(3), n.Result(4)
	n.Out = n.Out[:min(3, len(n.Out))]
	for len(n.Out) > 1 && n.Out[len(n.Out)-1] == nil {
		n.Out = n.Out[:len(n.Out)-1]
	}
	if (mean == nil || mean.NumUses() == 0) && (variance == nil || variance.NumUses() == 0) {
		return nil
	}
	x, err := need(n, 0)
	if err != nil {
		return err
	}
	r, ok := rank(x)
	if !ok || r < 2 {
		return fmt.Errorf("batch statistics are read (results 3, 4) and the rank of operand 0 is not known")
	}
	axes := []int64{0}
	for i := 2; i < r; i++ {
		axes = append(axes, int64(i))
	}
	b := u.b
	mu := b.ReduceMean(x, true, axes...)
	if mean != nil {
		u.define(mean, "Squeeze", vals(mu, b.Ints(axes...)))
	}
	if variance != nil {
		d := b.Sub(x, mu)
		u.define(variance, "ReduceMean", vals(b.Mul(d, d), b.Ints(axes...)), graph.IntAttr("keepdims", 0))
	}
	return nil
}

// define adds a node that takes over the definition of v, which its node has given up.
func (u *upgrader) define(v *graph.Value, op string, in []*graph.Value, attrs ...*graph.Attr) {
	n := u.b.Node(op, in, 1, attrs...)
	n.Out[0], v.Def, v.Index = v, n, 0
	u.info.Node(n)
}

// upgradeGroupNorm repeats scale and bias, which are per group before, for every channel of the group.
func upgradeGroupNorm(u *upgrader, n *graph.Node) error {
	x, err := need(n, 0)
	if err != nil {
		return err
	}
	a := n.Attr("num_groups")
	if a == nil {
		return fmt.Errorf("attribute num_groups is missing")
	}
	b := u.b
	var groups *graph.Value
	if a.Ref == "" {
		if a.I <= 0 {
			return fmt.Errorf("num_groups is %d", a.I)
		}
		groups = b.Ints(a.I)
	} else {
		g, err := u.attrConst(a)
		if err != nil {
			return err
		}
		groups = b.ReshapeTo(g, 1)
	}
	if r, ok := rank(x); ok && r < 2 {
		return fmt.Errorf("operand 0 has rank %d, want 2 or more", r)
	}
	repeat := b.Concat(0, b.Ints(1), b.Div(b.DimOf(x, 1), groups))
	for i := 1; i <= 2; i++ {
		v, err := need(n, i)
		if err != nil {
			return err
		}
		n.SetIn(i, b.ReshapeTo(b.Op("Expand", vals(b.Unsqueeze(v, 1), repeat)), -1))
	}
	return nil
}

// upgradeDropout7 drops is_test, whose default is training.
func upgradeDropout7(u *upgrader, n *graph.Node) error { return upgradeBatchNorm7(u, n) }

// upgradeDropout10 keeps the element type of the mask, which is that of the data before.
func upgradeDropout10(u *upgrader, n *graph.Node) error {
	mask := n.Result(1)
	if mask == nil {
		return nil
	}
	if mask.NumUses() == 0 {
		n.Out = n.Out[:1]
		return nil
	}
	x, err := need(n, 0)
	if err != nil {
		return err
	}
	// The cast reads the new mask, so it stands behind n.
	n.Out[1] = nil
	fresh := n.DefineOut(1, n.Graph.Model.Fresh(mask.Name+"_bool"))
	fresh.Type = graph.TensorOf(graph.Bool, mask.Type.Shape)
	saved := u.b.Before
	u.b.Before = after(n)
	u.define(mask, "CastLike", vals(fresh, x))
	u.b.Before = saved
	return nil
}

// after returns the node behind n in its graph, nil for the last.
func after(n *graph.Node) *graph.Node {
	for i, m := range n.Graph.Nodes {
		if m == n && i+1 < len(n.Graph.Nodes) {
			return n.Graph.Nodes[i+1]
		}
	}
	return nil
}

// upgradeDropout12 moves ratio to an operand. Dropout of opsets 7 to 11 is for inference only; a node of an earlier one
// that is not marked is_test is in training mode.
func upgradeDropout12(u *upgrader, n *graph.Node) error {
	if err := u.attrIn(n, "ratio", 1); err != nil {
		return err
	}
	if n.HasAttr(trainingMark) {
		n.DeleteAttr(trainingMark)
		n.SetIn(2, u.b.Scalar(graph.Bool, 1))
	}
	return nil
}
