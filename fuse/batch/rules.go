package batch

import (
	"maps"
	"sync"
)

// table maps operators of ai.onnx to rules. Element-wise operators need none of their own.
var table = sync.OnceValue(func() map[string]rule {
	t := map[string]rule{}
	for _, family := range []map[string]rule{reduceRules(), productRules(), layoutRules(), indexRules(), axisRules(), leadingRules(), shapeRules()} {
		maps.Copy(t, family) // families share no names
	}
	return t
})

// elementwise divides operators whose operands are broadcast against each other.
func elementwise(c *ctx) (*verdict, error) {
	i := c.split()
	s := c.result(0)
	p := c.at[i]
	rank := len(s)
	if s == nil || c.shape(i) == nil {
		return nil, errRank
	}
	p = p.moved(align(p.axis, len(c.shape(i)), rank))
	v := &verdict{in: make([]*place, len(c.n.In)), out: c.gives(p)}
	for j, w := range c.n.In {
		if w == nil {
			continue
		}
		t := w.Type.Shape
		if t == nil {
			return nil, errRank
		}
		q := p.moved(align(p.axis, rank, len(t)))
		if j != i && c.at[j] == nil {
			q = q.values()
		}
		if q.axis < 0 {
			continue
		}
		if d, ok := t[q.axis].Int(); ok && d == 1 && j != i {
			continue
		}
		v.in[j] = q
	}
	if p.unit == nil {
		return v, nil
	}
	switch c.n.Op { // of positions, only copies are positions
	case "Identity", "Cast":
		return v, nil
	}
	return nil, errPositions
}
