package batch

import (
	"fmt"

	"gradtool/graph"
)

// end returns where part k-1 ends and part k begins: parts differ by at most one sample. Of a batch with fewer samples than parts
// some are empty.
func (e *emitter) end(k int) graph.Dim {
	return e.batch.Mul(graph.Known(int64(k))).FloorDiv(graph.Known(int64(e.parts)))
}

// samples returns the number of samples as an int64 vector of one element.
func (e *emitter) samples() *graph.Value {
	if n, ok := e.batch.Int(); ok {
		return e.b.Ints(n)
	}
	if e.ends[e.parts] == nil {
		n := e.shared(e.b.DimOf(e.first.value, e.first.at.axis))
		if each := e.first.at.size(one); !each.Equal(one) { // more than the samples alone
			k, _ := each.Int()
			n = e.shared(e.b.Div(n, e.b.Ints(k)))
		}
		e.ends[e.parts] = n
	}
	return e.ends[e.parts]
}

// endOf returns end(k) as an int64 vector of one element.
func (e *emitter) endOf(k int) *graph.Value {
	switch n, ok := e.end(k).Int(); {
	case ok:
		return e.b.Ints(n)
	case k == e.parts:
		return e.samples()
	case e.ends[k] == nil:
		e.ends[k] = e.shared(e.b.Div(e.shared(e.b.Mul(e.samples(), e.b.Ints(int64(k)))), e.b.Ints(int64(e.parts))))
	}
	return e.ends[k]
}

// shared says that the node of v is of no part.
func (e *emitter) shared(v *graph.Value) *graph.Value {
	e.common[v.Def] = true
	return v
}

// sizeOf returns the number of samples of part k as an int64 vector of one element.
func (e *emitter) sizeOf(k int) *graph.Value {
	if n, ok := e.sizes[k].Int(); ok {
		return e.b.Ints(n)
	}
	return e.b.Sub(e.endOf(k+1), e.endOf(k))
}

// times returns v * d, where d must be a known number.
func (e *emitter) times(v *graph.Value, d graph.Dim) *graph.Value {
	n, ok := d.Int()
	if !ok && e.b.Err == nil {
		e.b.Err = fmt.Errorf("%s is no number", d)
	}
	if n == 1 {
		return v
	}
	if a := e.info.Const(v); a != nil && a.Len() == 1 {
		return e.b.Ints(a.I64[0] * n)
	}
	return e.b.Mul(v, e.b.Ints(n))
}
