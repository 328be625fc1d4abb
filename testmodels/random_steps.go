package testmodels

import (
	"math"

	"gradtool/graph"
	"gradtool/graph/op"
)

// steps lists what Random adds, families one by one.
func (r *randomNet) steps() []step {
	out := []step{r.unary, r.unary, r.binary, r.binary, r.binary, r.integers, r.reshape, r.reshape, r.view, r.transpose, r.transpose, r.slice, r.slice,
		r.pad, r.concat, r.split, r.gather, r.expand, r.reduce, r.reduce, r.product, r.window, r.cast, r.again, r.sizes, r.scatter, r.variadic, r.normalize}
	if !r.smooth {
		out = append(out, r.compare, r.logic, r.where, r.decided, r.sample, r.sample)
	}
	return out
}

func vals(v ...*graph.Value) []*graph.Value { return v }

func (r *randomNet) unary() []*graph.Value {
	x := r.pick(isFloat)
	if x == nil {
		return nil
	}
	list := []string{"Tanh", "Sigmoid", "Sin", "Erf", "Softsign", "Neg", "Identity", "Neg", "Abs", "Relu",
		"Exp", "Sqrt", "Floor", "Ceil", "Round", "Sign", "Reciprocal", "Softplus", "Log", "Clip", "Dropout"}
	if r.smooth {
		list = list[:10]
	}
	return vals(r.Unary(list[r.choose(len(list))], x))
}

func (r *randomNet) binary() []*graph.Value {
	x := r.pick(isNumber)
	if x == nil || r.smooth && !isFloat(x) {
		return nil
	}
	y := r.operand(x)
	if r.choose(2) == 0 {
		x, y = y, x
	}
	list := []string{"Add", "Mul", "Sub", "Add", "Mul", "Max", "Min", "Div", "Pow"}
	if r.smooth {
		list = list[:7]
	} else if !isFloat(x) {
		list = list[:5]
	}
	z := r.Op(list[r.choose(len(list))], vals(x, y))
	if r.smooth {
		z = r.Unary("Tanh", z) // keeps it small
	}
	return vals(z)
}

func (r *randomNet) integers() []*graph.Value {
	x := r.pick(isInt)
	if x == nil {
		return nil
	}
	return vals(r.Op([]string{"Add", "Mul", "Sub", "Neg"}[r.choose(3)], vals(x, r.operand(x))))
}

// view squeezes, unsqueezes or flattens.
func (r *randomNet) reduce() []*graph.Value {
	x := r.pick(ranked(isFloat, 1, 5))
	if x == nil {
		return nil
	}
	list := []string{"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare"}
	if r.smooth {
		list = list[:4]
	}
	axes := []int64{r.axis(x.Type.Shape)}
	if len(x.Type.Shape) > 2 && r.choose(2) == 0 {
		axes = []int64{0, int64(1 + r.choose(len(x.Type.Shape)-1))}
	}
	in := vals(x, r.Ints(axes...))
	attrs := []*graph.Attr{graph.IntAttr("keepdims", int64(r.choose(2)))}
	if r.choose(5) == 0 {
		in, attrs = in[:1], append(attrs, graph.IntAttr("noop_with_empty_axes", int64(r.choose(2))))
	}
	return vals(r.Op(list[r.choose(len(list))], in, attrs...))
}

// product multiplies with weights and adds a bias.
func (r *randomNet) product() []*graph.Value {
	x := r.pick(ranked(isFloat, 2, 3))
	if x == nil {
		return nil
	}
	k, ok := x.Type.Shape[len(x.Type.Shape)-1].Int()
	if !ok || k == 0 {
		return nil
	}
	n := int64(1 + r.choose(3))
	if len(x.Type.Shape) == 2 && r.choose(3) == 0 { // x^T g, as in the gradients of weights
		g := r.pick(func(v *graph.Value) bool { return ranked(isFloat, 2, 2)(v) && v.Type.Shape[0].Equal(x.Type.Shape[0]) })
		if g != nil {
			if r.choose(2) == 0 {
				return vals(r.Transpose(r.Op("Gemm", vals(x, g), graph.IntAttr("transA", 1)), 1, 0))
			}
			return vals(r.Op([]string{"MatMul", "Gemm"}[r.choose(2)], vals(r.Transpose(x, 1, 0), g)))
		}
	}
	w := r.weights(k, n)
	var y *graph.Value
	if len(x.Type.Shape) == 2 && r.choose(2) == 0 {
		y = r.Op("Gemm", vals(x, w), graph.FloatAttr("alpha", []float32{1, 1, 0.3}[r.choose(3)]))
	} else {
		y = r.MatMul(x, w)
	}
	if r.choose(2) == 0 {
		b := r.weights(n)
		if r.choose(4) == 0 {
			b = r.weights(1, n)
		}
		if r.choose(2) == 0 {
			y = r.Add(b, y)
		} else {
			y = r.Add(y, b)
		}
	}
	return vals(y)
}

// weights returns an initializer, or sometimes a constant, of small numbers.
func (r *randomNet) weights(dims ...int64) *graph.Value {
	t := &graph.Tensor{Dims: dims}
	data := make([]float32, t.Len())
	for i := range data {
		data[i] = float32(r.choose(9)-4) / 4
	}
	w := graph.Floats(dims, data...)
	if r.choose(4) == 0 {
		return r.Const(w)
	}
	return r.G.AddInit(r.G.Model.Fresh("w"), w)
}

// window convolves or pools, with what may stand around that.
func (r *randomNet) window() []*graph.Value {
	x := r.pick(ranked(isFloat, 4, 4))
	if x == nil {
		return nil
	}
	c, ok := x.Type.Shape[1].Int()
	if !ok || c == 0 {
		return nil
	}
	switch r.choose(4) {
	case 0:
		return vals(r.Op("MaxPool", vals(r.Op("Pad", vals(x, r.Ints(0, 0, 1, 0, 0, 0, 0, 1), r.Like(x, math.Inf(-1))))), graph.IntsAttr("kernel_shape", 2, 2)))
	case 1:
		return vals(r.Op("Mul", vals(r.convolved(x, c, 2), r.weights(2, 1, 1))))
	case 2:
		y := r.convolved(x, c, 2)
		return vals(r.Op("BatchNormalization", vals(y, r.weights(2), r.weights(2), r.weights(2), r.Const(graph.Floats([]int64{2}, 1, 0.5)))))
	}
	return vals(r.Op("Add", vals(r.convolved(x, c, 3), r.weights(1, 3, 1, 1))))
}

func (r *randomNet) convolved(x *graph.Value, in, out int64) *graph.Value {
	if r.choose(3) == 0 {
		x = r.Op("Pad", vals(x, r.Ints(0, 0, 1, 0, 0, 0, 0, 1)))
	}
	args := vals(x, r.weights(out, in, 1, 1))
	if r.choose(2) == 0 {
		args = append(args, r.weights(out))
	}
	return r.Op("Conv", args)
}

func (r *randomNet) cast() []*graph.Value {
	x := r.pick(anyType)
	if x == nil {
		return nil
	}
	to := []graph.DataType{graph.Float, graph.Double, graph.Float, graph.Float16, graph.Int64, graph.Int32, graph.Bool}
	if r.smooth {
		to = to[:3]
	}
	return vals(r.Op("Cast", vals(x), graph.IntAttr("to", int64(to[r.choose(len(to))]))))
}

// again repeats a node that is there.
func (r *randomNet) again() []*graph.Value {
	v := r.pick(func(v *graph.Value) bool { return v.Def != nil && len(v.Def.Subgraphs()) == 0 })
	if v == nil {
		return nil
	}
	return r.Node(v.Def.Op, v.Def.In, len(v.Def.Out), v.Def.Attrs...).Out
}

// sizes computes with shapes.
func (r *randomNet) sizes() []*graph.Value {
	x := r.pick(ranked(anyType, 1, 5))
	if x == nil {
		return nil
	}
	switch r.choose(4) {
	case 0:
		return vals(r.Shape(x))
	case 1:
		return vals(r.Full(r.Shape(x), graph.Float, r.number()))
	case 2:
		return vals(r.Op("Size", vals(x)))
	}
	return vals(r.Mul(r.DimOf(x, r.choose(len(x.Type.Shape))), r.Ints(2)))
}

// scatter writes rows of a value into another.
func (r *randomNet) scatter() []*graph.Value {
	u := r.pick(ranked(isFloat, 1, 3))
	if u == nil {
		return nil
	}
	n, ok := u.Type.Shape[0].Int()
	if !ok || n < 1 || n > 8 {
		return nil
	}
	first := int64(r.choose(2))
	at := make([]int64, n)
	for i := range at {
		at[i] = first + int64(i)
	}
	if r.choose(4) == 0 {
		at[0] = at[n-1]
	}
	index := r.Const(graph.Ints([]int64{n, 1}, at...))
	dims := vals(r.Ints(n + first + int64(r.choose(2))))
	for j := range u.Type.Shape[1:] {
		dims = append(dims, r.DimOf(u, j+1))
	}
	x := r.Full(r.Concat(0, dims...), graph.Float, r.number())
	return vals(r.Op("ScatterND", vals(x, index, u), graph.StringAttr("reduction", []string{"none", "none", "add"}[r.choose(3)])))
}

func (r *randomNet) variadic() []*graph.Value {
	x := r.pick(isFloat)
	if x == nil {
		return nil
	}
	in := vals(x)
	for range r.choose(3) {
		in = append(in, r.operand(x))
	}
	return vals(r.Op([]string{"Sum", "Max", "Min", "Mean"}[r.choose(4)], in))
}

func (r *randomNet) normalize() []*graph.Value {
	x := r.pick(ranked(isFloat, 1, 4))
	if x == nil {
		return nil
	}
	if n, ok := x.Type.Shape[len(x.Type.Shape)-1].Int(); ok && n > 0 && r.choose(2) == 0 {
		return vals(r.Op("LayerNormalization", vals(x, r.weights(n)), graph.FloatAttr("epsilon", 0.1)))
	}
	return vals(r.Op("Softmax", vals(x), graph.IntAttr("axis", r.axis(x.Type.Shape))))
}

func (r *randomNet) compare() []*graph.Value {
	x := r.pick(isNumber)
	if x == nil {
		return nil
	}
	return vals(r.Op([]string{"Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"}[r.choose(5)], vals(x, r.operand(x))))
}

func (r *randomNet) logic() []*graph.Value {
	x := r.pick(isBool)
	if x == nil {
		return nil
	}
	if r.choose(3) == 0 {
		return vals(r.Unary("Not", x))
	}
	return vals(r.Op([]string{"And", "Or", "Xor"}[r.choose(3)], vals(x, r.operand(x))))
}

func (r *randomNet) where() []*graph.Value {
	c, x := r.pick(isBool), r.pick(isFloat)
	if c == nil || x == nil {
		return nil
	}
	if r.choose(3) == 0 {
		c = r.coin()
	}
	return vals(r.Where(c, x, r.operand(x)))
}

// decided is an If whose condition is constant, or a Loop of one trip or two.
func (r *randomNet) decided() []*graph.Value {
	x := r.pick(isFloat)
	if x == nil {
		return nil
	}
	m := r.G.Model
	branch := func(name, f string) *graph.Graph {
		g := m.NewGraph(m.Fresh(name))
		b := r.For(g)
		g.AddOutput(b.Unary(f, x))
		return g
	}
	if r.choose(2) == 0 {
		c := r.pick(ranked(isBool, 0, 0))
		if c == nil || r.choose(2) == 0 {
			c = r.coin()
		}
		return vals(r.Op("If", vals(c), graph.GraphAttr("then_branch", branch("then", "Neg")), graph.GraphAttr("else_branch", branch("else", "Relu"))))
	}
	g := m.NewGraph(m.Fresh("body"))
	b := r.For(g)
	g.AddInput(m.Fresh("i"), graph.TensorOf(graph.Int64, graph.Shape{}))
	c := g.AddInput(m.Fresh("c"), graph.TensorOf(graph.Bool, graph.Shape{}))
	v := g.AddInput(m.Fresh("v"), x.Type)
	g.AddOutput(b.Unary("Identity", c))
	g.AddOutput(b.Add(b.Unary("Tanh", v), x))
	n := r.Node("Loop", vals(r.IntScalar(int64(r.choose(3))), nil, x), 1, graph.GraphAttr("body", g))
	return n.Out
}

// sample applies any operator of the table to what one of its samples asks for, cut out of values of the pool.
func (r *randomNet) sample() []*graph.Value {
	all := op.All()
	d := all[r.choose(len(all))]
	if d.Domain != "" || d.Eval == nil || d.Facts&(op.Random|op.Training|op.Control) != 0 || len(d.Samples) == 0 {
		return nil
	}
	s := d.Samples[r.choose(len(d.Samples))]
	if s.Build != nil {
		return nil
	}
	in := make([]*graph.Value, len(s.In))
	for i, a := range s.In {
		switch {
		case a.Elem == graph.Undefined:
			continue
		case !a.Elem.IsFloat() && !a.Elem.IsInt() && a.Elem != graph.Bool:
			return nil
		}
		n := 1
		dims := make([]int64, len(a.Shape))
		for k, x := range a.Shape {
			dims[k] = int64(x)
			n *= x
		}
		x := r.pick(func(v *graph.Value) bool {
			k, ok := v.Type.Shape.Size().Int()
			return ok && k >= int64(n) && n > 0 && v.Type.Elem == a.Elem
		})
		if a.Values != nil || a.Const || x == nil {
			c := op.NewArray(a.Elem, a.Shape, false)
			for k := range c.Len() {
				switch {
				case a.Values != nil:
					set(c, k, a.Values[k%len(a.Values)])
				case c.IsFloat() || c.I64 != nil:
					set(c, k, a.Lo+(a.Hi-a.Lo)*float64(r.choose(8))/8)
				}
			}
			in[i] = r.Const(c.Round().Tensor())
			continue
		}
		in[i] = r.ReshapeTo(r.Slice(r.ReshapeTo(x, -1), r.Ints(0), r.Ints(int64(n)), r.Ints(0), nil), dims...)
	}
	return r.Node(d.Name, in, max(s.Outs, 1), s.Attrs...).Out
}

// coin returns a constant that is true or false.
func (r *randomNet) coin() *graph.Value {
	a := op.NewArray(graph.Bool, []int{}, false)
	a.I64[0] = int64(r.choose(2))
	return r.Const(a.Tensor())
}
