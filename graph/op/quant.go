package op

import (
	"fmt"
	"math"

	"gradtool/graph"
	"gradtool/internal/half"
)

// quantDefs defines the operators on quantized tensors: integer or narrow float codes q that stand for
// the numbers (q - zero point) * scale.
func quantDefs() []Def {
	i := func(name string, v int64) *graph.Attr { return graph.IntAttr(name, v) }
	x, scale := FV([]int{2, 3}, -4.3, -1.2, -0.3, 0.4, 1.3, 5.2), FV(nil, 0.3)
	u8 := func(shape []int, v ...float64) Arg { return TV(graph.Uint8, shape, v...) }
	i8 := func(shape []int, v ...float64) Arg { return TV(graph.Int8, shape, v...) }
	codes := i8([]int{2, 3}, -128, -7, 0, 3, 90, 127)
	step := "piecewise constant; the gradient is the straight-through one"
	q := func(name string, in []Arg, attrs ...*graph.Attr) Sample {
		return Sample{Name: name, In: in, Attrs: attrs, NoGrad: step}
	}
	return []Def{
		{Name: "QuantizeLinear", Facts: CheapRemat, Infer: inferQuantize, Eval: evalQuantize, Cost: perElement(workDivide), Samples: []Sample{
			q("", []Arg{x, scale}), q("zero point", []Arg{x, scale, i8(nil, 3)}), q("axis", []Arg{x, FV([]int{3}, 0.01, 0.3, 2), u8([]int{3}, 128, 3, 0)}),
			q("first axis", []Arg{x, FV([]int{2}, 0.01, 0.3)}, i("axis", 0), i("output_dtype", int64(graph.Int4))),
			q("blocked", []Arg{x, FV([]int{2, 2}, 0.1, 0.2, 0.3, 0.4)}, i("block_size", 2), i("output_dtype", int64(graph.Int16))),
			q("float8", []Arg{x, scale}, i("output_dtype", int64(graph.Float8E4M3))), q("half", []Arg{x.As(graph.Float16), scale.As(graph.Float16), i8(nil, 0)}),
			q("int32", []Arg{TV(graph.Int32, []int{3}, -5, 4, 1000), scale, u8(nil, 3)}),
		}},
		{Name: "DequantizeLinear", Facts: CheapRemat, Infer: inferDequantize, Eval: evalDequantize, Cost: perElement(2), Samples: []Sample{
			{In: []Arg{codes, scale}}, {Name: "zero point", In: []Arg{codes, scale, i8(nil, 3)}}, {Name: "axis", In: []Arg{codes, FR(0.1, 1, 3), i8([]int{3}, -1, 0, 9)}},
			{Name: "first axis", In: []Arg{codes, FR(0.1, 1, 2)}, Attrs: []*graph.Attr{i("axis", -2)}},
			{Name: "middle axis", In: []Arg{u8([]int{1, 2, 2}, 1, 2, 3, 255), FR(0.1, 1, 2), u8([]int{2}, 1, 2)}},
			{Name: "blocked", In: []Arg{codes, FR(0.1, 1, 2, 2)}, Attrs: []*graph.Attr{i("block_size", 2)}},
			{Name: "blocked rows", In: []Arg{TV(graph.Uint4, []int{4, 2}, 1, 2, 3, 15, 5, 6, 0, 8), FR(0.1, 1, 2, 2), TV(graph.Uint4, []int{2, 2}, 8, 7, 1, 0)}, Attrs: []*graph.Attr{i("block_size", 2), i("axis", 0)}},
			{Name: "vector", In: []Arg{i8([]int{3}, 1, 2, 3), scale}, Attrs: []*graph.Attr{i("axis", 0)}}, {Name: "int32", In: []Arg{TV(graph.Int32, []int{2}, 1000, -5), scale}},
			{Name: "half", In: []Arg{codes, FV(nil, 0.5).As(graph.Float16)}}, {Name: "type", In: []Arg{codes, FR(0.1, 1)}, Attrs: []*graph.Attr{i("output_dtype", int64(graph.Double))}},
			{Name: "float8", In: []Arg{TV(graph.Float8E5M2, []int{2, 2}, 1, -2, 3, 0.5).Constant(), scale}},
		}},
		{Name: "DynamicQuantizeLinear", Facts: CheapRemat, Infer: inferDynamicQuantize, Eval: evalDynamicQuantize, Cost: perElement(8), Samples: []Sample{
			{In: []Arg{FApart(2, 3)}, Outs: 3}, {Name: "positive", In: []Arg{FR(0.5, 2, 4)}, Outs: 3}, {Name: "negative", In: []Arg{FR(-2, -0.5, 4)}, Outs: 3}}},
	}
}

// scaleMap says which scale belongs to which element: one for all, one per index of an axis, or one per
// block of consecutive indices of an axis.
type scaleMap struct {
	outer, dim, inner int // the elements before, on and after the axis
	block             int // indices that share a scale; dim for a single scale
	step              int // 1 where the elements after the axis have scales of their own
}

// newScaleMap checks a scale's shape against the tensor's.
func newScaleMap(n *graph.Node, x, scale []int) (scaleMap, error) {
	block := int(n.Int("block_size", 0))
	if block == 0 && prod(scale) == 1 && len(scale) <= 1 {
		return scaleMap{1, 1, prod(x), 1, 0}, nil
	}
	axis, err := normAxis(n.Int("axis", 1), len(x))
	if err != nil && len(x) == 1 {
		axis, err = 0, nil
	}
	if err != nil {
		return scaleMap{}, err
	}
	m := scaleMap{prod(x[:axis]), x[axis], prod(x[axis+1:]), 1, 0}
	if block == 0 {
		if len(scale) != 1 || scale[0] != m.dim {
			return m, fmt.Errorf("scale has shape %v, want %d elements for axis %d of %v", scale, m.dim, axis, x)
		}
		return m, nil
	}
	m.block, m.step = block, 1
	fits := len(scale) == len(x) && block > 0
	for i := range x {
		want := x[i]
		if i == axis && fits {
			want = (x[i] + block - 1) / block
		}
		fits = fits && scale[i] == want
	}
	if !fits {
		return m, fmt.Errorf("scale has shape %v, which does not fit blocks of %d along axis %d of %v", scale, block, axis, x)
	}
	return m, nil
}

// each calls f for runs of n elements from at, whose scales are at s, s + step, ...
func (m scaleMap) each(f func(at, n, s, step int)) {
	blocks := (m.dim + m.block - 1) / m.block
	parallel(m.outer*m.dim, grainOf(workDivide*m.inner), func(lo, hi int) {
		for row := lo; row < hi; row++ {
			o, d := row/m.dim, row%m.dim
			s := d
			if m.step != 0 {
				s = (o*blocks + d/m.block) * m.inner
			}
			f(row*m.inner, m.inner, s, m.step)
		}
	})
}

// quantizedType returns the element type of QuantizeLinear's result.
func quantizedType(n *graph.Node, zero graph.DataType) graph.DataType {
	if t := n.Int("output_dtype", 0); t != 0 {
		return graph.DataType(t)
	}
	if zero != graph.Undefined {
		return zero
	}
	return graph.Uint8
}

func inferQuantize(c *InferCtx) error {
	if c.Has(2) && c.Elem(2) == graph.Undefined {
		c.Set(0, graph.DataType(c.Node.Int("output_dtype", 0)), c.Shape(0))
		return nil
	}
	c.Set(0, quantizedType(c.Node, c.Elem(2)), c.Shape(0))
	return nil
}

func inferDequantize(c *InferCtx) error {
	c.Set(0, graph.DataType(c.Node.Int("output_dtype", int64(c.Elem(1)))), c.Shape(0))
	return nil
}

// rounding returns the function that rounds to a float type; in float64 mode nothing is rounded.
func (c *EvalCtx) rounding(t graph.DataType) func(float64) float64 {
	switch {
	case c.Wide || t == graph.Double:
		return func(x float64) float64 { return x }
	case t == graph.Float16 || t == graph.BFloat16:
		f := narrow(t)
		return func(x float64) float64 { return f.Decode(f.Encode(x, exact)) }
	}
	return func(x float64) float64 { return float64(float32(x)) }
}

// IntRange returns the smallest and largest number of an integer type of at most 32 bits.
func IntRange(t graph.DataType) (lo, hi float64) {
	n := t.Bits()
	if t.IsUnsigned() {
		return 0, math.Ldexp(1, n) - 1
	}
	return -math.Ldexp(1, n-1), math.Ldexp(1, n-1) - 1
}

// FloatMax returns the largest finite number of a float type of at most 16 bits.
func FloatMax(t graph.DataType) float64 { return narrow(t).Max() }

// saturating returns the function that brings a real number to a code of type t: rounded to even after
// dividing, moved by the zero point, and limited to the type's range. NaN becomes the smallest code.
func saturating(t graph.DataType) func(x, zero float64) int64 {
	lo, hi := IntRange(t)
	return func(x, zero float64) int64 {
		v := math.RoundToEven(x) + zero
		switch {
		case v >= hi:
			return int64(hi)
		case v > lo:
			return int64(v)
		}
		return int64(lo)
	}
}

// zeroPoint returns element i of a zero point, 0 where it is omitted.
func zeroPoint(z *Array, i int) float64 {
	if z == nil {
		return 0
	}
	return z.Float(i)
}

// evalQuantize is saturate(round(x / scale) + zero point), divided in attribute precision's type or else the
// scale's.
func evalQuantize(c *EvalCtx) error {
	x, scale, zero := c.In[0], c.In[1], c.Arg(2)
	elem := graph.Undefined
	if zero != nil {
		elem = zero.Elem
	}
	m, err := c.scales(x, scale, zero)
	if err != nil {
		return err
	}
	y := c.New(quantizedType(c.Node, elem), x.Shape)
	round := c.rounding(graph.DataType(c.Node.Int("precision", int64(scale.Elem))))
	if y.I64 != nil {
		code := saturating(y.Elem)
		m.each(func(at, n, s, step int) {
			for i := at; i < at+n; i, s = i+1, s+step {
				y.I64[i] = code(round(round(x.Float(i))/scale.Float(s)), zeroPoint(zero, s))
			}
		})
		c.Set(0, y)
		return nil
	}
	if !y.IsFloat() {
		return c.Errorf("cannot quantize to %s", y.Elem)
	}
	m.each(func(at, n, s, step int) {
		for i := at; i < at+n; i, s = i+1, s+step {
			y.SetFloat(i, round(x.Float(i)/scale.Float(s))+zeroPoint(zero, s))
		}
	})
	roundNarrow(y, half.Mode{NoSaturate: c.Node.Int("saturate", 1) == 0})
	c.Set(0, y)
	return nil
}

// scales maps elements of x to scales and checks the zero point's shape.
func (c *EvalCtx) scales(x, scale, zero *Array) (scaleMap, error) {
	if !scale.IsFloat() {
		return scaleMap{}, c.Errorf("the scale must be of a float type, is %s", scale.Type())
	}
	if zero != nil && zero.Len() != scale.Len() {
		return scaleMap{}, c.Errorf("scale is %s, zero point is %s: shapes differ", scale.Type(), zero.Type())
	}
	return newScaleMap(c.Node, x.Shape, scale.Shape)
}

// evalDequantize is (x - zero point) * scale.
func evalDequantize(c *EvalCtx) error {
	x, scale, zero := c.In[0], c.In[1], c.Arg(2)
	m, err := c.scales(x, scale, zero)
	if err != nil {
		return err
	}
	y := c.New(graph.DataType(c.Node.Int("output_dtype", int64(scale.Elem))), x.Shape)
	if !y.IsFloat() {
		return c.Errorf("attribute output_dtype: %s is no float type", y.Elem)
	}
	m.each(func(at, n, s, step int) {
		for i := at; i < at+n; i, s = i+1, s+step {
			y.SetFloat(i, (x.Float(i)-zeroPoint(zero, s))*scale.Float(s))
		}
	})
	c.Set(0, y)
	return nil
}

func inferDynamicQuantize(c *InferCtx) error {
	c.Set(0, graph.Uint8, c.Shape(0))
	c.Set(1, graph.Float, graph.Shape{})
	c.Set(2, graph.Uint8, graph.Shape{})
	return nil
}

// evalDynamicQuantize quantizes to the range of the data, widened to hold 0. A tensor of zeros has scale 1.
func evalDynamicQuantize(c *EvalCtx) error {
	x, round := c.In[0], c.rounding(graph.Float)
	lo, hi := 0.0, 0.0
	for i := range x.Len() {
		lo, hi = min(lo, x.Float(i)), max(hi, x.Float(i))
	}
	s := round(round(hi-lo) / 255)
	if s == 0 {
		s = 1
	}
	z := math.RoundToEven(clamp(round(-lo/s), 0, 255))
	y, scale, zero := c.New(graph.Uint8, x.Shape), c.New(graph.Float, nil), c.New(graph.Uint8, nil)
	code := saturating(graph.Uint8)
	for i := range y.I64 {
		y.I64[i] = code(round(x.Float(i)/s), z)
	}
	scale.SetFloat(0, s)
	zero.I64[0] = int64(z)
	c.Set(0, y)
	c.Set(1, scale)
	c.Set(2, zero)
	return nil
}
