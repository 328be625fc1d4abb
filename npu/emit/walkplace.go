package emit

import (
	"errors"
	"slices"

	"gradtool/graph"
	"gradtool/npu/legal"
)

// walkOperand is an operand of scores or sinks: its tiles on chip, of this step and perhaps of the next.
type walkOperand struct {
	a     *legal.Access
	stays bool // until the batch is done
	tiles []cached
}

// operand returns the tile of an operand, that on chip if it is the same.
func (r *walkRun) operand(a *legal.Access, t box) (*place, error) {
	for i := range r.operands {
		o := &r.operands[i]
		if !o.a.Same(a) || o.a.Fill != a.Fill {
			continue
		}
		k := key(a, t)
		for _, c := range o.tiles {
			if slices.Equal(c.key, k) {
				return c.p, nil
			}
		}
		p, err := r.e.load(a, t, true)
		if err != nil {
			return nil, err
		}
		if p.imm != nil {
			return nil, errors.New("an operand of a walk is all padding")
		}
		o.tiles = append(o.tiles, cached{p: p, key: k})
		return p, nil
	}
	return nil, errors.New("an operand that the walk does not have")
}

// forget drops the tiles of operands that the next step does not read and that do not stay.
func (r *walkRun) forget(now, next box) {
	same := next.lo != nil // the batch
	for i := range now.lo {
		same = same && (r.s.batch>>i&1 == 0 || now.lo[i] == next.lo[i])
	}
	for i := range r.operands {
		o := &r.operands[i]
		if o.stays && same {
			continue
		}
		var keep []cached
		for _, c := range o.tiles {
			if next.lo != nil && slices.Equal(c.key, key(o.a, next)) {
				keep = append(keep, c)
			} else {
				c.p.drop()
			}
		}
		o.tiles = keep
	}
}

// room takes a place in the accumulator for the result of a product.
func (r *walkRun) room(c *contractRun, t box, kinds []legal.Kind) (*place, error) {
	p := &place{stride: make([]int, len(t.lo)), elem: graph.Float}
	n := 1
	for _, kind := range []legal.Kind{legal.N, legal.M, legal.Batch} {
		for _, i := range slices.Backward(c.order) {
			if kinds[i] == kind {
				p.stride[i] = n
				n *= t.hi[i] - t.lo[i]
			}
		}
	}
	mem, err := r.e.take(r.e.accum, n)
	if err != nil {
		return nil, err
	}
	p.mem, p.addr = mem, r.e.local(mem)
	return p, nil
}
