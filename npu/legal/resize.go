package legal

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// maxResize bounds the elements of an operand whose resizing is looked at.
const maxResize = 1 << 24

// lowerResize lowers the Resize that repeats each element a whole number of times along each axis, as derivatives of poolings do:
// result q*times + r is element q. Which element each result is, the evaluator tells, for numbers in place of the elements.
func lowerResize(l *lowerer, n *graph.Node) error {
	x := l.arg(0)
	out := l.shapeOf(n.Out[0])
	if n.Str("mode", "nearest") != "nearest" || prod(x.shape) > maxResize || len(out) != len(x.shape) {
		return unsupported("mode %q from %v to %v", n.Str("mode", "nearest"), x.shape, out)
	}
	times := make([]int, len(out))
	for i := range out {
		if times[i] = out[i] / x.shape[i]; out[i]%x.shape[i] != 0 {
			return unsupported("sizes %v to %v, which are no multiples", x.shape, out)
		}
	}
	c := &op.EvalCtx{Node: n, In: make([]*op.Array, len(n.In)), Out: make([]*op.Array, 1)}
	c.In[0] = op.NewArray(graph.Float, x.shape, false)
	for i := range c.In[0].F32 {
		c.In[0].F32[i] = float32(i)
	}
	for i := 1; i < len(n.In); i++ {
		if n.In[i] == nil {
			continue
		}
		if c.In[i] = l.info.Const(n.In[i]); c.In[i] == nil {
			return unsupported("operand %d is known at run time only", i)
		}
	}
	if err := c.Eval(op.Of(n)); err != nil {
		return err
	}
	step, outer := rowMajor(x.shape), rowMajor(out)
	for axis := range out {
		for i := range out[axis] {
			if at := int(c.Out[0].F32[i*outer[axis]]); at != i/times[axis]*step[axis] {
				return unsupported("along axis %d result %d is not element %d", axis, i, i/times[axis])
			}
		}
	}
	y := l.result(0)
	r := &refined{}
	for i, d := range x.shape {
		r.dims, r.from = append(r.dims, d, times[i]), append(r.from, i, i)
	}
	to, _ := y.cut(r)
	b := l.nest(r.dims)
	var at [][]int
	for i := range x.shape {
		at = append(at, along(len(r.dims), 2*i))
	}
	b.store(to, b.loadAt(x, at, 0))
	b.done()
	return nil
}
