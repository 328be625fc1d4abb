package batch

import (
	"errors"

	"gradtool/graph"
)

// indexRules are those of operators that read or write at places that an operand names.
func indexRules() map[string]rule {
	return map[string]rule{
		"Gather": gather, "GatherElements": gatherElements, "GatherND": gatherND, "ScatterElements": scatterElements, "ScatterND": scatterND,
		"OneHot": oneHot, "Compress": opaque, "NonZero": opaque, "Unique": opaque, "ReverseSequence": reverseSequence, "MaxUnpool": opaque,
	}
}

// isUnit reports whether positions p count in an axis that has the batch at q.
func isUnit(p, q *place) bool {
	return p != nil && p.unit != nil && q.outer.Equal(one) && q.inner.Equal(*p.unit)
}

// gather divides tables by their other axes, or else the indices: each part reads the whole table.
func gather(c *ctx) (*verdict, error) {
	data, index := c.shape(0), c.shape(1)
	if data == nil || index == nil {
		return nil, errRank
	}
	if positions(c) {
		return nil, errPositions
	}
	axis := c.axis("axis", 0, len(data))
	if p := c.at[0]; p != nil && p.axis != axis {
		at := p.axis
		if at > axis {
			at += len(index) - 1
		}
		return alone(c, 0, p, at)
	}
	if p := c.at[1]; p != nil {
		return alone(c, 1, p, axis+p.axis)
	}
	return nil, errSum
}

func gatherElements(c *ctx) (*verdict, error) {
	data, index := c.shape(0), c.shape(1)
	if data == nil || index == nil {
		return nil, errRank
	}
	axis := c.axis("axis", 0, len(data))
	i := c.split()
	p := c.at[i].values()
	switch {
	case c.at[1] != nil && c.at[1].unit != nil:
		if q := c.at[0]; q != nil && q.axis == axis && isUnit(c.at[1], q) && c.at[1].axis == axis {
			return &verdict{in: []*place{q, c.at[1]}, out: []*place{c.at[1].values()}}, nil
		}
		return nil, errPositions
	case i == 0 && c.at[0].unit != nil:
		return nil, errPositions
	case p.axis != axis:
		return &verdict{in: []*place{p, p}, out: []*place{p}}, nil
	case c.at[1] == nil:
		return nil, errSum
	case c.at[1].axis == axis: // each part reads all of the data
		return &verdict{in: []*place{nil, c.at[1]}, out: []*place{c.at[1]}}, nil
	}
	q := c.at[1] // the data is joined, and divided along the axis of the places
	return &verdict{in: []*place{q, q}, out: []*place{q}}, nil
}

func scatterElements(c *ctx) (*verdict, error) {
	data, index := c.shape(0), c.shape(1)
	if data == nil || index == nil {
		return nil, errRank
	}
	axis := c.axis("axis", 0, len(data))
	switch q := c.at[1]; {
	case q != nil && q.unit != nil:
		d := &place{axis: axis, outer: one, inner: *q.unit}
		if q.axis == axis && d.fits(data, c.batch) {
			return &verdict{in: []*place{d, q, q.values()}, out: []*place{d}}, nil
		}
		return nil, errPositions
	case positions(c):
		return nil, errPositions
	}
	p := c.at[c.split()]
	if p.axis != axis {
		return &verdict{in: []*place{p, p, p}, out: []*place{p}}, nil
	}
	if c.at[0] != nil && c.at[1] == nil && c.at[2] == nil {
		return nil, errSum
	}
	if c.at[1] == nil {
		p = c.at[2]
	} else {
		p = c.at[1]
	}
	if p == nil || p.axis != axis {
		return nil, errSum
	}
	// Each part writes into what the one before made.
	return &verdict{in: []*place{nil, p, p}, out: []*place{nil}, carry: 1}, nil
}

// scatterND divides the places that are written; each part writes into what the one before made. Where the places are positions
// in a part, or are the same for all samples, the written tensor is divided.
func scatterND(c *ctx) (*verdict, error) {
	data, index := c.shape(0), c.shape(1)
	if len(data) == 0 || len(index) == 0 {
		return nil, errRank
	}
	last := len(index) - 1
	depth, ok := index[last].Int()
	if !ok {
		return nil, errRank
	}
	switch q := c.at[1]; {
	case q != nil && q.unit != nil:
		d := &place{axis: 0, outer: one, inner: *q.unit}
		if depth == 1 && q.axis < last && d.fits(data, c.batch) {
			return &verdict{in: []*place{d, q, q.values()}, out: []*place{d}}, nil
		}
		return nil, errPositions
	case positions(c):
		return nil, errPositions
	case q != nil && q.axis < last:
		return &verdict{in: []*place{nil, q, q}, out: []*place{nil}, carry: 1}, nil
	case q != nil:
		return nil, errSum
	}
	if p := c.at[2]; p != nil {
		if p.axis < last {
			return &verdict{in: []*place{nil, p, p}, out: []*place{nil}, carry: 1}, nil
		}
		d := p.moved(int(depth) + p.axis - last)
		return &verdict{in: []*place{d, nil, p}, out: []*place{d}}, nil
	}
	p := c.at[0]
	if p.axis < int(depth) {
		return nil, errSum
	}
	return &verdict{in: []*place{p, nil, p.moved(p.axis - int(depth) + last)}, out: []*place{p}}, nil
}

func gatherND(c *ctx) (*verdict, error) {
	data, index := c.shape(0), c.shape(1)
	if len(data) == 0 || len(index) == 0 {
		return nil, errRank
	}
	same := int(c.n.Int("batch_dims", 0))
	last := len(index) - 1
	depth, ok := index[last].Int()
	if !ok {
		return nil, errRank
	}
	if positions(c) {
		q, d := c.at[1], c.at[0]
		if q != nil && q.unit != nil && d != nil && d.axis == 0 && depth == 1 && same == 0 && isUnit(q, d) && q.axis < last {
			return &verdict{in: []*place{d, q}, out: []*place{q.values()}}, nil
		}
		return nil, errPositions
	}
	i := c.split()
	p := c.at[i]
	switch {
	case p.axis < same:
		return &verdict{in: []*place{p, p}, out: []*place{p}}, nil
	case i == 0 && p.axis >= same+int(depth):
		return alone(c, 0, p, p.axis-same-int(depth)+last)
	case c.at[1] != nil && c.at[1].axis < last && c.at[1].axis >= same:
		return alone(c, 1, c.at[1], c.at[1].axis)
	}
	return nil, errSum
}

func oneHot(c *ctx) (*verdict, error) {
	p, s, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	if p.unit != nil {
		return nil, errPositions
	}
	axis := c.axis("axis", -1, len(s)+1)
	at := p.axis
	if axis <= at {
		at++
	}
	return alone(c, 0, p, at)
}

func reverseSequence(c *ctx) (*verdict, error) {
	i := c.split()
	p := c.at[i]
	along := int(c.n.Int("batch_axis", 1))
	if i == 1 {
		p = p.moved(along)
	}
	switch p.axis {
	case int(c.n.Int("time_axis", 0)):
		return nil, errSum
	case along:
		return &verdict{in: []*place{p, p.moved(0)}, out: []*place{p}}, nil
	}
	return alone(c, 0, p, p.axis)
}

// flatUnit returns the number of positions of each sample in a tensor of shape s that has the batch in its first axis.
func flatUnit(p *place, s graph.Shape) (*graph.Dim, error) {
	if p.axis != 0 || !p.outer.Equal(one) {
		return nil, errors.New("the samples' elements do not lie together")
	}
	d := p.inner.Mul(product(s[1:]))
	return &d, nil
}
