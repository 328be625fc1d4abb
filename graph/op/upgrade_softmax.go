package op

import "gradtool/graph"

// softmaxAdapters replace the softmax family of opsets before 13, which works on all axes from axis on, by default 1, as
// one.
func softmaxAdapters(add addAdapter) { add(13, upgradeSoftmax, "Softmax", "LogSoftmax", "Hardmax") }

// upgradeSoftmax writes f over the axes from axis on as Flatten, f over the last axis, Reshape. One node does where
// the axes behind axis have one element in all.
func upgradeSoftmax(u *upgrader, n *graph.Node) error {
	if err := refuse(n, "axis"); err != nil {
		return err
	}
	x, err := need(n, 0)
	if err != nil {
		return err
	}
	axis := n.Int("axis", 1)
	if r, ok := rank(x); ok {
		a, err := normAxis(axis, r)
		if err != nil {
			return err
		}
		size := graph.Known(1)
		if a < r {
			size = x.Type.Shape[min(a+1, r):].Size()
		}
		if s, known := size.Int(); known && s == 1 {
			n.SetAttr(graph.IntAttr("axis", int64(a)))
			return nil
		}
	} else if axis == -1 {
		return nil
	}
	flat := u.b.Op("Flatten", vals(x), graph.IntAttr("axis", axis))
	y := u.b.Op(n.Op, vals(flat), graph.IntAttr("axis", 1))
	become(n, "Reshape", vals(y, u.b.Shape(x)), u.reshapeAttrs(x)...)
	return nil
}

// reshapeAttrs returns the attributes with which Reshape gives a tensor x's shape: where a dimension may be zero it must
// not be read as "keep".
func (u *upgrader) reshapeAttrs(x *graph.Value) []*graph.Attr {
	s, ok := x.Type.Shape.Ints()
	for _, d := range s {
		ok = ok && d != 0
	}
	if ok {
		return nil
	}
	return []*graph.Attr{graph.IntAttr("allowzero", 1)}
}
