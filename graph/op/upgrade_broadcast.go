package op

import (
	"fmt"

	"gradtool/graph"
)

// broadcastAdapters replace the attributes broadcast and axis of opsets before 7.
func broadcastAdapters(add addAdapter) {
	add(7, upgradeBroadcast, "Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")
	add(7, func(u *upgrader, n *graph.Node) error {
		// C is aligned at the end with the product, as broadcasting does it.
		n.DeleteAttr("broadcast")
		return nil
	}, "Gemm")
	add(7, upgradePRelu, "PRelu")
}

// upgradeBroadcast gives the second operand trailing axes of size 1, so that broadcasting aligns it where the attribute
// axis said: its dimensions matched those of the first operand from axis on, by default the last ones.
func upgradeBroadcast(u *upgrader, n *graph.Node) error {
	if err := refuse(n, "broadcast", "axis"); err != nil {
		return err
	}
	on, axis := n.Int("broadcast", 0) != 0, n.Int("axis", -1)
	n.DeleteAttr("broadcast")
	n.DeleteAttr("axis")
	if !on || axis < 0 {
		return nil
	}
	x, err := need(n, 0)
	if err != nil {
		return err
	}
	y, err := need(n, 1)
	if err != nil {
		return err
	}
	rx, okx := rank(x)
	ry, oky := rank(y)
	if oky && ry == 0 {
		return nil
	}
	if okx && oky {
		k := rx - int(axis) - ry
		if k < 0 {
			return fmt.Errorf("operand 1 of rank %d does not fit into rank %d at axis %d", ry, rx, axis)
		}
		n.SetIn(1, u.trail(y, ry, k))
		return nil
	}
	b := u.b
	free := b.Sub(b.Sub(u.rankOf(x), u.rankOf(y)), b.IntScalar(axis))
	n.SetIn(1, u.trailBy(y, free))
	return nil
}

// trail returns y, of rank r, with k axes of size 1 added at the end.
func (u *upgrader) trail(y *graph.Value, r, k int) *graph.Value {
	axes := make([]int64, k)
	for i := range axes {
		axes[i] = int64(r + i)
	}
	return u.b.Unsqueeze(y, axes...)
}

// trailBy is trail for a number of axes known at run time only, an int64 scalar.
func (u *upgrader) trailBy(y, k *graph.Value) *graph.Value {
	b := u.b
	ones := b.Full(b.ReshapeTo(k, 1), graph.Int64, 1)
	return b.Reshape(y, b.Concat(0, b.Op("Shape", vals(y)), ones))
}

// rankOf returns the rank of x as an int64 scalar computed at run time.
func (u *upgrader) rankOf(x *graph.Value) *graph.Value {
	return u.b.Op("Size", vals(u.b.Op("Shape", vals(x))))
}

// upgradePRelu lets a slope per channel (axis 1) broadcast along the other axes.
func upgradePRelu(u *upgrader, n *graph.Node) error {
	x, err := need(n, 0)
	if err != nil {
		return err
	}
	slope, err := need(n, 1)
	if err != nil {
		return err
	}
	rs, ok := rank(slope)
	if ok && rs != 1 {
		return nil
	}
	if ok {
		if d, known := slope.Type.Shape[0].Int(); known && d == 1 {
			return nil
		}
	}
	if rx, known := rank(x); ok && known {
		n.SetIn(1, u.trail(slope, 1, max(rx-2, 0)))
		return nil
	}
	if !ok {
		slope = u.b.ReshapeTo(slope, -1)
	}
	b := u.b
	zero := b.IntScalar(0)
	n.SetIn(1, u.trailBy(slope, b.Op("Max", vals(b.Sub(u.rankOf(x), b.IntScalar(2)), zero))))
	return nil
}
