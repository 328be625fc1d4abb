package batch

import (
	"errors"
	"slices"

	"gradtool/graph"
)

// layoutRules are those of operators that move elements and compute nothing.
func layoutRules() map[string]rule {
	return map[string]rule{
		"Transpose": transpose, "Reshape": reshape, "Flatten": flatten, "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Expand": expand,
		"Tile": tile, "Slice": slice, "Pad": pad, "Concat": concat, "Split": splitRule, "ConstantOfShape": opaque, "EyeLike": opaque, "Range": opaque,
	}
}

// opaque is the rule of operators that are borders by design.
func opaque(*ctx) (*verdict, error) { return nil, errSum }

var errAxes = errors.New("its axes are not known")

// firstOnly returns where the batch lies in operand 0, which must be the only one with it.
func (c *ctx) firstOnly() (*place, graph.Shape, error) {
	s := c.shape(0)
	switch {
	case s == nil || c.result(0) == nil:
		return nil, nil, errRank
	case c.at[0] == nil:
		return nil, nil, errOperand
	}
	return c.at[0], s, nil
}

func transpose(c *ctx) (*verdict, error) {
	p, s, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	perm := c.n.Ints("perm")
	if !c.n.HasAttr("perm") {
		for i := range s {
			perm = append(perm, int64(len(s)-1-i))
		}
	}
	return alone(c, 0, p, slices.Index(perm, int64(p.axis)))
}

// reshape divides where the batch lies in one axis before and after. The shape of a part is that of the whole with another size there.
func reshape(c *ctx) (*verdict, error) {
	p, s, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	if c.n.Meta.Get(graph.MetaBarrier) != "" {
		return nil, errors.New("it is a barrier of a plan")
	}
	t := c.result(0)
	q := p.reshaped(s, t, c.batch)
	if q == nil {
		return nil, errors.New("the batch is in no single axis of its result")
	}
	want := c.n.In[1]
	known := c.info.Dims(want)
	for i, d := range t {
		if n, ok := d.Int(); ok && n == 0 {
			return nil, errors.New("an axis is empty")
		} else if i == q.axis || ok {
			continue
		}
		if i >= len(known) || !graph.Known(0).LessEq(known[i]) {
			return nil, errors.New("a size in its shape is not known")
		}
	}
	v := &verdict{in: c.wants(p, 0), out: []*place{q}}
	v.edit = func(n *graph.Node, k int) {
		dims := make([]*graph.Value, len(t))
		for i, d := range t {
			m, ok := d.Int()
			switch {
			case i == q.axis:
				dims[i] = c.b.Ints(-1)
				if m, ok := q.size(c.sizes[k]).Int(); ok {
					dims[i] = c.b.Ints(m)
				}
			case ok:
				dims[i] = c.b.Ints(m)
			default:
				dims[i] = c.element(n.In[1], i)
			}
		}
		n.SetIn(1, c.vector(dims))
		n.DeleteAttr("allowzero")
	}
	return v, nil
}

func flatten(c *ctx) (*verdict, error) {
	p, s, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	q := p.reshaped(s, c.result(0), c.batch)
	if q == nil {
		return nil, errors.New("the batch is in no single axis of its result")
	}
	axis := c.axis("axis", 1, len(s))
	if (q.axis == 0) != (p.axis < axis) { // of equal sizes, the wrong axis
		return nil, errSum
	}
	return &verdict{in: c.wants(p, 0), out: []*place{q}}, nil
}

// squeeze names its axes in the parts: one of them may have one sample.
func squeeze(c *ctx) (*verdict, error) {
	p, s, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	axes, ok := c.ints(1)
	if c.n.Operand(1) == nil {
		for i, d := range s {
			if n, known := d.Int(); known && n == 1 {
				axes = append(axes, int64(i))
			}
		}
		ok = len(s)-len(axes) == len(c.result(0))
	}
	if !ok {
		return nil, errAxes
	}
	axis := p.axis
	for _, a := range axes {
		if a < 0 {
			a += int64(len(s))
		}
		if a < int64(p.axis) {
			axis--
		} else if a == int64(p.axis) {
			return nil, errSum
		}
	}
	v, err := alone(c, 0, p, axis)
	v.edit = func(n *graph.Node, k int) { n.SetIn(1, c.b.Ints(axes...)) }
	return v, err
}

func unsqueeze(c *ctx) (*verdict, error) {
	p, _, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	axes, ok := c.ints(1)
	if !ok {
		return nil, errAxes
	}
	rank := len(c.result(0))
	fresh := make([]bool, rank)
	for _, a := range axes {
		if a < 0 {
			a += int64(rank)
		}
		if a < 0 || a >= int64(rank) {
			return nil, errAxes
		}
		fresh[a] = true
	}
	at := -1
	for i, f := range fresh {
		if f {
			continue
		}
		if at++; at == p.axis {
			return alone(c, 0, p, i)
		}
	}
	return nil, errAxes
}

func expand(c *ctx) (*verdict, error) {
	p, s, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	t := c.result(0)
	q := p.moved(align(p.axis, len(s), len(t)))
	want := c.info.Dims(c.n.In[1])
	for i, d := range t { // what the shape says: 1 keeps the operand's size
		if _, ok := d.Int(); !ok && i != q.axis && i >= len(want) {
			return nil, errors.New("a size in its shape is not known")
		}
	}
	shape := c.n.In[1]
	if len(shape.Type.Shape) != 1 {
		return nil, errRank
	}
	n, ok := shape.Type.Shape[0].Int()
	if !ok {
		return nil, errRank
	}
	v := &verdict{in: c.wants(p, 0), out: []*place{q}}
	v.edit = func(m *graph.Node, k int) {
		at := align(q.axis, len(t), int(n))
		if at < 0 {
			return
		}
		var dims []*graph.Value
		for i := range int(n) {
			if i == at {
				dims = append(dims, c.b.Ints(1))
			} else if d, ok := t[align(i, int(n), len(t))].Int(); ok {
				dims = append(dims, c.b.Ints(d))
			} else {
				dims = append(dims, c.element(m.In[1], i))
			}
		}
		m.SetIn(1, c.vector(dims))
	}
	return v, nil
}

func tile(c *ctx) (*verdict, error) {
	p, _, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	repeats, ok := c.ints(1)
	if !ok || p.axis >= len(repeats) || repeats[p.axis] != 1 {
		return nil, errSum
	}
	return alone(c, 0, p, p.axis)
}

func slice(c *ctx) (*verdict, error) {
	p, s, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	axes, ok := c.ints(3)
	if c.n.Operand(3) == nil {
		d := c.info.Dims(c.n.In[1])
		ok = d != nil
		for i := range d {
			axes = append(axes, int64(i))
		}
	}
	if !ok {
		return nil, errAxes
	}
	if axisIndex(axes, p.axis, len(s)) >= 0 {
		return nil, errSum
	}
	return alone(c, 0, p, p.axis)
}

func pad(c *ctx) (*verdict, error) {
	p, s, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	pads, ok := c.ints(1)
	axes, ok2 := c.ints(3)
	if c.n.Operand(3) == nil {
		ok2 = true
		for i := range s {
			axes = append(axes, int64(i))
		}
	}
	if !ok || !ok2 || len(pads) != 2*len(axes) {
		return nil, errors.New("what it adds is not known")
	}
	if p.unit != nil {
		return nil, errPositions
	}
	if i := axisIndex(axes, p.axis, len(s)); i >= 0 && (pads[i] != 0 || pads[i+len(axes)] != 0) {
		return nil, errSum
	}
	return alone(c, 0, p, p.axis)
}

func concat(c *ctx) (*verdict, error) {
	i := c.split()
	p := c.at[i]
	if c.shape(i) == nil {
		return nil, errRank
	}
	if c.axis("axis", 0, len(c.shape(i))) == p.axis {
		return nil, errSum
	}
	v := &verdict{in: c.wants(nil), out: []*place{p}}
	for j := range v.in {
		v.in[j] = p
	}
	return v, nil
}

func splitRule(c *ctx) (*verdict, error) {
	p, s, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	if c.axis("axis", 0, len(s)) == p.axis {
		return nil, errSum
	}
	return &verdict{in: c.wants(p, 0), out: c.gives(p)}, nil
}
