package op

import (
	"math"

	"gradtool/graph"
)

// constantDefs defines the operators whose results do not depend on tensor values, or on scalars only.
func constantDefs() []Def {
	one := func(elem graph.DataType, v float64) *graph.Attr {
		a := NewArray(elem, []int{1}, false)
		if a.I64 != nil {
			a.I64[0] = int64(v)
		} else {
			a.SetFloat(0, v)
		}
		return graph.TensorAttr("value", a.Tensor())
	}
	sparse := &graph.Attr{Name: "sparse_value", Type: graph.AttrSparseTensor, Sparse: []*graph.Sparse{{
		Values: graph.Floats(nil, 1, 2), Indices: graph.Ints([]int64{2, 2}, 0, 1, 1, 2), Dims: []int64{2, 3}}}}
	attr := func(name string, a *graph.Attr) Sample { return Sample{Name: name, Attrs: []*graph.Attr{a}} }
	return []Def{
		{Name: "Constant", Facts: CheapRemat, Infer: inferConstant, Eval: evalConstant, Cost: perElement(0), Samples: []Sample{
			attr("tensor", graph.TensorAttr("value", graph.Floats([]int64{2, 1}, 1, 2))), attr("float", graph.FloatAttr("value_float", 1.5)),
			attr("floats", graph.FloatsAttr("value_floats", 1, 2)), attr("int", graph.IntAttr("value_int", 7)), attr("ints", graph.IntsAttr("value_ints", 1, 2, 3)),
			attr("string", graph.StringAttr("value_string", "a")), attr("strings", &graph.Attr{Name: "value_strings", Type: graph.AttrStrings, Strings: []string{"a", "b"}}),
			attr("sparse", sparse), attr("sparse-linear", &graph.Attr{Name: "sparse_value", Type: graph.AttrSparseTensor, Sparse: []*graph.Sparse{{
				Values: graph.Ints(nil, 5), Indices: graph.Ints([]int64{1}, 4), Dims: []int64{2, 3}}}}),
		}},
		{Name: "ConstantOfShape", Facts: CheapRemat, Infer: inferConstantOfShape, Eval: evalConstantOfShape, Cost: perElement(0), Samples: []Sample{
			{In: []Arg{I(2, 3)}}, {Name: "int", In: []Arg{I(3)}, Attrs: []*graph.Attr{one(graph.Int64, 7)}}, {Name: "scalar", In: []Arg{I()}},
			{Name: "empty", In: []Arg{I(0, 2)}}, {Name: "half", In: []Arg{I(2)}, Attrs: []*graph.Attr{one(graph.Float16, 0.5)}},
		}},
		{Name: "Range", Facts: CheapRemat | DataDependent, Infer: inferRange, Eval: evalRange, Samples: []Sample{
			{In: []Arg{IS(1), IS(8), IS(3)}}, {Name: "down", In: []Arg{IS(5), IS(-1), IS(-2)}}, {Name: "none", In: []Arg{IS(5), IS(1), IS(1)}},
			{Name: "float", In: []Arg{TV(graph.Float, []int{}, 0.5), TV(graph.Float, []int{}, 2), TV(graph.Float, []int{}, 0.4)}},
			{Name: "double", In: []Arg{TV(graph.Double, []int{}, 3), TV(graph.Double, []int{}, -1), TV(graph.Double, []int{}, -0.7)}},
		}},
		{Name: "EyeLike", Facts: ShapeOnly | CheapRemat, Infer: inferEyeLike, Eval: evalEyeLike, Cost: perElement(0), Samples: []Sample{
			{In: []Arg{F(3, 3)}}, {Name: "upper", In: []Arg{F(2, 4)}, Attrs: []*graph.Attr{graph.IntAttr("k", 1), graph.IntAttr("dtype", int64(graph.Int32))}},
			{Name: "lower", In: []Arg{F(4, 2)}, Attrs: []*graph.Attr{graph.IntAttr("k", -2)}},
		}},
	}
}

// constantTensor returns what a Constant node holds, from whichever attribute gives it.
func constantTensor(n *graph.Node) (*Array, error) {
	for _, a := range n.Attrs {
		switch a.Name {
		case "value":
			if a.T != nil {
				return FromTensor(a.T, false)
			}
		case "value_float":
			x := NewArray(graph.Float, nil, false)
			x.F32[0] = a.F
			return x, nil
		case "value_floats":
			x := NewArray(graph.Float, []int{len(a.Floats)}, false)
			copy(x.F32, a.Floats)
			return x, nil
		case "value_int":
			return IntScalar(a.I), nil
		case "value_ints":
			return Ints(a.Ints...), nil
		case "value_string":
			x := NewArray(graph.String, nil, false)
			x.Str[0] = a.S
			return x, nil
		case "value_strings":
			x := NewArray(graph.String, []int{len(a.Strings)}, false)
			copy(x.Str, a.Strings)
			return x, nil
		case "sparse_value":
			if len(a.Sparse) == 1 {
				return densify(a.Sparse[0])
			}
		}
	}
	return nil, errNoValue
}

// densify returns the dense tensor of a sparse one, whose indices are positions in the flat tensor or
// one row of coordinates per value.
func densify(s *graph.Sparse) (*Array, error) {
	if s.Values == nil || s.Indices == nil {
		return nil, errNoValue
	}
	vals, err := FromTensor(s.Values, false)
	if err != nil {
		return nil, err
	}
	at, err := FromTensor(s.Indices, false)
	if err != nil {
		return nil, err
	}
	full := graph.Tensor{Elem: s.Values.Elem, Dims: s.Dims}
	if n := full.Len(); n < 0 || n > math.MaxInt32 {
		return nil, errSparse
	}
	shape := make([]int, len(s.Dims))
	for i, d := range s.Dims {
		shape[i] = int(d)
	}
	y := NewArray(s.Values.Elem, shape, false)
	n, rank := vals.Len(), len(shape)
	if at.I64 == nil || at.Len() != n && at.Len() != n*rank {
		return nil, errSparse
	}
	for i := range n {
		pos := 0
		if at.Rank() < 2 {
			pos = int(at.I64[i])
		} else {
			for j, d := range shape {
				k := int(at.I64[i*rank+j])
				if k < 0 || k >= d {
					return nil, errSparse
				}
				pos = pos*d + k
			}
		}
		if pos < 0 || pos >= y.Len() {
			return nil, errSparse
		}
		y.copyFrom(pos, vals, i)
	}
	return y, nil
}

func inferConstant(c *InferCtx) error {
	for _, a := range c.Node.Attrs { // large tensors are not read
		switch {
		case a.Name == "value" && a.T != nil:
			c.SetType(0, a.T.Type())
			return nil
		case a.Name == "sparse_value" && len(a.Sparse) == 1 && a.Sparse[0].Values != nil:
			c.Set(0, a.Sparse[0].Values.Elem, graph.ShapeOf(a.Sparse[0].Dims...))
			return nil
		}
	}
	if len(c.Node.Attrs) == 1 && c.Node.Attrs[0].Ref != "" { // a function's parameter
		return nil
	}
	a, err := constantTensor(c.Node)
	if err != nil {
		return err
	}
	c.SetType(0, a.Type())
	return nil
}

func evalConstant(c *EvalCtx) error {
	a, err := constantTensor(c.Node)
	if err != nil {
		return err
	}
	if c.Wide && a.F32 != nil {
		y := c.New(a.Elem, a.Shape)
		convertToFloat(y, a)
		a = y
	}
	c.Set(0, a)
	return nil
}

// constantOfShapeValue returns the element that fills the result: float 0 by default.
func constantOfShapeValue(n *graph.Node, wide bool) (*Array, error) {
	a := n.Attr("value")
	if a == nil || a.T == nil {
		return NewArray(graph.Float, []int{1}, wide), nil
	}
	if a.T.Len() != 1 {
		return nil, errOneElement
	}
	return FromTensor(a.T, wide)
}

func inferConstantOfShape(c *InferCtx) error {
	v, err := constantOfShapeValue(c.Node, false)
	if err != nil {
		return err
	}
	d := c.Dims(0)
	if sizes := c.Node.Operand(0).Def; d == nil && c.Node.Meta.Get(graph.MetaBarrier) != "" && sizes != nil && sizes.Is("Add") {
		d = c.Info.Elems(sizes.Operand(0))
	}
	if d == nil {
		c.Set(0, v.Elem, nil)
		return nil
	}
	for _, x := range d {
		if n, ok := x.Int(); ok && n < 0 {
			return c.Errorf("shape %v has a negative dimension", d)
		}
	}
	c.Set(0, v.Elem, graph.Shape(d))
	if n, ok := graph.Shape(d).Size().Int(); ok && len(d) <= 1 && n <= maxDimsLen && v.Elem.IsInt() {
		c.SetDims(0, repeatDim(graph.Known(v.I64[0]), int(n)))
	}
	return nil
}

func repeatDim(d graph.Dim, n int) []graph.Dim {
	out := make([]graph.Dim, n)
	for i := range out {
		out[i] = d
	}
	return out
}

func evalConstantOfShape(c *EvalCtx) error {
	v, err := constantOfShapeValue(c.Node, c.Wide)
	if err != nil {
		return err
	}
	shape, err := sizes(c.Ints(0))
	if err != nil {
		return err
	}
	y := v.NewLike(shape)
	switch {
	case y.F32 != nil:
		fillUnlessZero(y.F32, v.F32[0])
	case y.F64 != nil:
		fillUnlessZero(y.F64, v.F64[0])
	case y.I64 != nil:
		fillUnlessZero(y.I64, v.I64[0])
	default:
		for i := range y.Len() {
			y.copyFrom(i, v, 0)
		}
	}
	c.Set(0, y)
	return nil
}

// fillUnlessZero fills fresh memory with x, unless that is what it holds already: +0.
func fillUnlessZero[T number](out []T, x T) {
	if x != 0 || math.Signbit(float64(x)) {
		fill(out, x)
	}
}
