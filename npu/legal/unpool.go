package legal

import (
	"math"

	"gradtool/graph"
	"gradtool/graph/op"
)

// The derivative of a max pooling adds each element of a cotangent to the element that was the maximum of its window: a
// scatter at places that the pooling found. Seen from an element it is a sum over the windows that cover it, of the cotangents
// of those whose maximum it was, and that runs along memory where a scatter jumps.

// poolOf returns the MaxPool whose places v holds, in another shape perhaps, nil if it is not known to.
func poolOf(v *graph.Value) *graph.Node {
	for v != nil && v.Def != nil {
		switch {
		case v.Def.Is("MaxPool") && v.Index == 1:
			return v.Def
		case v.Def.Is("Reshape"), v.Def.Is("Unsqueeze"), v.Def.Is("Squeeze"), v.Def.Is("Flatten"), v.Def.Is("Identity"):
			v = v.Def.In[0]
		default:
			return nil
		}
	}
	return nil
}

// unpool lowers n, a ScatterND that adds to zeros at the places of a max pooling, and reports whether it is one that this
// covers: windows of which at most reach many along an axis cover a position, and strides that divide the sizes.
func (l *lowerer) unpool(n *graph.Node) (bool, error) {
	const reach = 4
	pool := poolOf(n.In[1])
	zero := l.raw(0)
	if pool == nil || n.Str("reduction", "none") != "add" || zero.imm == nil || *zero.imm != 0 || zero.dev() != graph.Float {
		return false, nil
	}
	last, ok := n.In[1].Type.Shape[len(n.In[1].Type.Shape)-1].Int()
	in, out := l.shapeOf(pool.In[0]), l.shapeOf(pool.Out[1])
	if !ok || last != 1 || pool.Int("storage_order", 0) != 0 || prod(zero.shape) != prod(in) || len(zero.shape) != 1 {
		return false, nil
	}
	g, err := op.WindowGeometry(pool, in[2:], ints(pool.Ints("kernel_shape")))
	if err != nil {
		return false, err
	}
	// Position q*stride + r is covered by windows from q+high down to q+high-span+1, r being whatever.
	high, span := make([]int, len(g.In)), make([]int, len(g.In))
	for i, s := range g.Stride {
		if g.In[i]%s != 0 {
			return false, nil
		}
		high[i] = (s - 1 + g.Begin[i]) / s
		low := floorDiv(g.Begin[i]-(g.Kernel[i]-1)*g.Dilation[i]+s-1, s)
		if span[i] = high[i] - low + 1; span[i] < 1 || span[i] > reach {
			return false, nil
		}
	}
	places, ok := l.value(pool.Out[1]).reshaped(out)
	if !ok || places.parts != nil {
		return false, nil
	}
	cotangent, err := l.reshape(l.raw(2), out)
	if err != nil {
		return false, err
	}
	cotangent = l.plain(cotangent)
	s := &space{}
	img, ch := s.add(in[0], Batch), s.add(in[1], Batch)
	var q, r, j []int
	for i, st := range g.Stride {
		q, r = append(q, s.add(g.In[i]/st, Batch)), append(r, s.add(st, Batch))
	}
	for i := range g.Stride {
		j = append(j, s.add(span[i], K))
	}
	read, write := [][]int{s.at(0, img, 1), s.at(0, ch, 1)}, [][]int{s.at(0, img, 1), s.at(0, ch, 1)}
	for i, st := range g.Stride {
		read = append(read, s.at(high[i], q[i], 1, j[i], -1))
		write = append(write, s.at(0, q[i], st, r[i], 1))
	}
	step := rowMajor(in)
	b := l.nest(s.dims)
	at := b.konst(graph.Int32, 0)
	count := func(dim, factor int) {
		if s.dims[dim] > 1 {
			at = b.do(Add, at, b.scaled(b.iota(dim), float64(factor)))
		}
	}
	count(img, step[0])
	count(ch, step[1])
	for i, st := range g.Stride {
		count(q[i], st*step[2+i])
		count(r[i], step[2+i])
	}
	ct := b.loadAt(cotangent, read, 0)
	hit := b.do(Eq, b.loadAt(places, read, math.MinInt32), at)
	sum := b.reduceOver(Sum, b.do(Select, hit, ct, b.like(ct, 0)), j)
	y := l.result(0)
	image, _ := y.reshaped(in)
	b.storeAt(image, write, b.wrap(sum, y.elem))
	b.done()
	return true, nil
}
