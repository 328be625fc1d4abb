package batch

import (
	"errors"
	"slices"

	"gradtool/graph"
)

var errPositions = errors.New("it reads positions in the whole batch")

// reduceRules are those of reductions.
func reduceRules() map[string]rule {
	t := map[string]rule{"ReduceMean": reduceMean}
	for name, join := range map[string]string{"ReduceSum": "Add", "ReduceSumSquare": "Add", "ReduceL1": "Add", "ReduceMax": "Max",
		"ReduceMin": "Min", "ReduceProd": "Mul", "ReduceL2": "", "ReduceLogSum": "", "ReduceLogSumExp": ""} {
		t[name] = func(c *ctx) (*verdict, error) { return reduction(c, join) }
	}
	return t
}

// reducedAxes returns which axes of operand 0 a reduction is over.
func reducedAxes(c *ctx) ([]bool, error) {
	s := c.shape(0)
	if s == nil {
		return nil, errRank
	}
	over := make([]bool, len(s))
	var axes []int64
	if c.n.Operand(1) != nil {
		var ok bool
		if axes, ok = c.ints(1); !ok {
			return nil, errors.New("its axes are not known")
		}
	}
	for _, a := range axes {
		if a < 0 {
			a += int64(len(s))
		}
		if a < 0 || a >= int64(len(s)) {
			return nil, errRank
		}
		over[a] = true
	}
	if len(axes) == 0 && c.n.Int("noop_with_empty_axes", 0) == 0 {
		for i := range over {
			over[i] = true
		}
	}
	return over, nil
}

// reduction divides a reduction whose partial results join combines; "": they cannot be combined.
func reduction(c *ctx, join string) (*verdict, error) {
	p := c.at[0]
	over, err := reducedAxes(c)
	switch {
	case err != nil:
		return nil, err
	case p == nil:
		return nil, errOperand
	case p.unit != nil:
		return nil, errPositions
	}
	if c.n.In[0].Type.Elem == graph.Bool {
		join = map[string]string{"Max": "Or", "Min": "And"}[join]
	}
	v := &verdict{in: c.wants(p, 0), out: make([]*place, 1), join: join}
	if over[p.axis] {
		if join == "" {
			return nil, errSum
		}
		return v, nil
	}
	axis := p.axis
	if c.n.Int("keepdims", 1) == 0 {
		for _, o := range over[:p.axis] {
			if o {
				axis--
			}
		}
	}
	v.out[0] = p.moved(axis)
	return v, nil
}

// reduceMean makes sums, adds them up and divides by the number of elements at the end: means of parts of unequal size have
// unequal weights. Short floats are added up as float32, in which their means are computed, too.
func reduceMean(c *ctx) (*verdict, error) {
	v, err := reduction(c, "Add")
	if err != nil || v.out[0] != nil {
		return v, err
	}
	over, _ := reducedAxes(c)
	x := c.n.In[0]
	elem := x.Type.Elem
	wide := elem
	if elem.IsFloat() && elem.Bits() < 32 {
		wide = graph.Float
	}
	if !elem.IsFloat() {
		return nil, errSum // means of integers round
	}
	v.build = func(k int, in []*graph.Value) []*graph.Value {
		args := slices.Clone(in)
		args[0] = c.b.Cast(in[0], wide)
		return []*graph.Value{c.b.Op("ReduceSum", args, c.n.Attrs...)}
	}
	v.finish = func(sum *graph.Value) *graph.Value {
		count := one
		for i, o := range over {
			if o {
				count = count.Mul(x.Type.Shape[i])
			}
		}
		if n, known := count.Int(); known {
			return c.b.Cast(c.b.Div(sum, c.b.Scalar(wide, float64(n))), elem)
		}
		var dims []*graph.Value
		for i, o := range over {
			if o {
				dims = append(dims, c.dim(x, i))
			}
		}
		total := dims[0]
		for _, d := range dims[1:] {
			total = c.b.Mul(total, d)
		}
		return c.b.Cast(c.b.Div(sum, c.b.Cast(c.b.Squeeze(total, 0), wide)), elem)
	}
	return v, nil
}

// dim returns the size of an axis of a value of the given graph, as it is for the whole batch.
func (e *emitter) dim(v *graph.Value, axis int) *graph.Value {
	p := e.at[v]
	if p != nil && p.sum {
		p = nil
	}
	if n, ok := v.Type.Shape[axis].Int(); ok {
		return e.b.Ints(n)
	}
	if p == nil {
		return e.b.DimOf(e.entire(v), axis)
	}
	if p.axis != axis {
		return e.b.DimOf(e.pieces[v][0], axis)
	}
	if _, ok := p.outer.Mul(p.inner).Int(); ok {
		return e.times(e.samples(), p.outer.Mul(p.inner))
	}
	sum := e.b.DimOf(e.pieces[v][0], axis)
	for _, w := range e.pieces[v][1:] {
		sum = e.b.Add(sum, e.b.DimOf(w, axis))
	}
	return sum
}

// shapeRules are those of operators that want to know a shape.
func shapeRules() map[string]rule {
	return map[string]rule{
		"Shape": func(c *ctx) (*verdict, error) {
			s := c.shape(0)
			if s == nil {
				return nil, errRank
			}
			rank := int64(len(s))
			bound := func(a int64) int64 {
				if a < 0 {
					a += rank
				}
				return min(max(a, 0), rank)
			}
			from, to := bound(c.n.Int("start", 0)), bound(c.n.Int("end", rank))
			return &verdict{whole: func() []*graph.Value {
				var dims []*graph.Value
				for i := from; i < to; i++ {
					dims = append(dims, c.dim(c.n.In[0], int(i)))
				}
				if len(dims) == 0 {
					return []*graph.Value{c.b.Ints()}
				}
				return []*graph.Value{c.vector(dims)}
			}}, nil
		},
		"Size": func(c *ctx) (*verdict, error) {
			s := c.shape(0)
			if len(s) == 0 {
				return nil, errRank
			}
			return &verdict{whole: func() []*graph.Value {
				total := c.dim(c.n.In[0], 0)
				for i := 1; i < len(s); i++ {
					total = c.b.Mul(total, c.dim(c.n.In[0], i))
				}
				return []*graph.Value{c.b.Squeeze(total, 0)}
			}}, nil
		},
	}
}
