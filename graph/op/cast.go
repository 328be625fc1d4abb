package op

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gradtool/graph"
	"gradtool/internal/half"
)

// castDefs defines the operators that change an element type, and Identity.
func castDefs() []Def {
	to := func(t graph.DataType) *graph.Attr { return graph.IntAttr("to", int64(t)) }
	cast := func(name string, in Arg, t graph.DataType, attrs ...*graph.Attr) Sample {
		return Sample{Name: name, In: []Arg{in}, Attrs: append([]*graph.Attr{to(t)}, attrs...)}
	}
	return []Def{
		{Name: "Cast", Facts: Elementwise | CheapRemat, Infer: inferCast, Eval: evalCast, Samples: []Sample{
			cast("widen", F(2, 3), graph.Double), cast("narrow", F(2, 3), graph.Float16), cast("same", F(2), graph.Float),
			cast("int", FV([]int{4}, -1.7, -0.2, 0.9, 2.5), graph.Int32), cast("from-int", I(1, -2), graph.Float), cast("dims", I(3, -2).Variable(), graph.Int32),
			cast("wrap", I(200, -129), graph.Int8), cast("bool", FV([]int{3}, -0.5, 0, 2), graph.Bool), cast("from-bool", TV(graph.Bool, []int{2}, 0, 1), graph.Int64),
			cast("float8", FV([]int{3}, 0.3, 1000, -3), graph.Float8E4M3), cast("float8-nan", FV([]int{3}, 0.3, 1000, -3), graph.Float8E4M3U, graph.IntAttr("saturate", 0)),
			cast("float4", FV([]int{3}, 0.3, 1000, -3), graph.Float4E2M1), cast("e8m0", FV([]int{3}, 0.3, 1000, 3), graph.Float8E8M0, graph.StringAttr("round_mode", "down")),
			cast("string", FV([]int{3}, 0.3, 1000, -3), graph.String), cast("from-string", TV(graph.String, []int{2}, 1.5, 2), graph.Double),
		}},
		{Name: "CastLike", Facts: Elementwise | CheapRemat, Infer: inferCastLike, Eval: evalCastLike, Samples: []Sample{
			{In: []Arg{F(2, 3), F(1).As(graph.Double)}}, {Name: "int", In: []Arg{F(2, 3), I(1)}}, {Name: "scalar", In: []Arg{F(), F(2).As(graph.Float16)}},
		}},
		{Name: "BitCast", Facts: Elementwise | CheapRemat, Infer: inferBitCast, Eval: evalBitCast, Samples: []Sample{
			cast("", F(2, 3), graph.Int32), cast("float", TV(graph.Uint16, []int{2}, 15360, 49152), graph.Float16), cast("sign", TV(graph.Uint8, []int{2}, 3, 250), graph.Int8),
		}},
		{Name: "Identity", Facts: Elementwise | View | CheapRemat, Infer: inferIdentity, Eval: func(c *EvalCtx) error {
			c.Set(0, c.In[0])
			return nil
		}, Cost: perElement(0), Samples: []Sample{{In: []Arg{F(2, 3)}}, {Name: "dims", In: []Arg{I(1, 2).Variable()}}}},
	}
}

func inferCast(c *InferCtx) error {
	return c.cast(graph.DataType(c.Node.Int("to", 0)))
}

func inferCastLike(c *InferCtx) error { return c.cast(c.Elem(1)) }

// cast infers result 0 as operand 0 in element type to; integers known symbolically stay so, in types that hold sizes.
func (c *InferCtx) cast(to graph.DataType) error {
	if c.Node.Op == "Cast" && !to.Valid() {
		return c.Errorf("attribute to: element type %d is not known", to)
	}
	c.Set(0, to, c.Shape(0))
	if to == graph.Int64 || to == graph.Int32 || to == graph.Uint64 {
		c.SetDims(0, c.Dims(0))
	}
	return nil
}

func inferBitCast(c *InferCtx) error {
	to := graph.DataType(c.Node.Int("to", 0))
	if from := c.Elem(0); from != graph.Undefined && from.Bits() != to.Bits() {
		return c.Errorf("%s has %d bits, %s has %d", from, from.Bits(), to, to.Bits())
	}
	c.Set(0, to, c.Shape(0))
	return nil
}

// inferIdentity passes on whatever is known, of sequences and optionals too.
func inferIdentity(c *InferCtx) error {
	c.SetType(0, c.In(0))
	c.SetDims(0, c.Dims(0))
	return nil
}

func evalCast(c *EvalCtx) error {
	return c.cast(c.In[0], graph.DataType(c.Node.Int("to", 0)))
}

func evalCastLike(c *EvalCtx) error { return c.cast(c.In[0], c.In[1].Elem) }

// cast makes result 0 the elements of x in type to. Floats become integers by truncation, integers
// wrap, numbers out of a float type's range become infinite, or the largest number for types of
// 8 bits and fewer unless attribute saturate is 0.
func (c *EvalCtx) cast(x *Array, to graph.DataType) error {
	y := c.New(to, x.Shape)
	switch {
	case x.Elem == to:
		c.Set(0, x)
		return nil
	case x.C128 != nil || y.C128 != nil:
		return c.Errorf("%s cannot be cast to %s", x.Elem, to)
	case x.Str != nil:
		if err := parseStrings(y, x.Str); err != nil {
			return err
		}
	case y.Str != nil:
		for i := range y.Str {
			y.Str[i] = formatElement(x, i)
		}
	case to == graph.Bool:
		for i := range y.I64 {
			if x.Float(i) != 0 {
				y.I64[i] = 1
			}
		}
	case y.IsFloat():
		convertToFloat(y, x)
	default:
		convertToInt(y, x)
	}
	if y.IsFloat() && to.Bits() <= 8 {
		mode, err := castMode(c.Node)
		if err != nil {
			return err
		}
		roundNarrow(y, mode)
	}
	c.Set(0, y)
	return nil
}

// castMode returns how a node rounds to types of 8 bits and fewer.
func castMode(n *graph.Node) (half.Mode, error) {
	m := half.Mode{NoSaturate: n.Int("saturate", 1) == 0}
	switch r := n.Str("round_mode", "up"); r {
	case "up":
	case "down":
		m.Round = half.Down
	case "nearest":
		m.Round = half.Nearest
	default:
		return m, fmt.Errorf("attribute round_mode: %q is none of up, down, nearest", r)
	}
	return m, nil
}

// roundNarrow brings the elements of y, of a type of 8 bits or fewer, into its precision and range.
func roundNarrow(y *Array, m half.Mode) {
	f := narrow(y.Elem)
	for i := range y.Len() {
		y.SetFloat(i, f.Decode(f.Encode(y.Float(i), m)))
	}
}

// convertToFloat rounds once, directly from the source's type to the target's.
func convertToFloat(y, x *Array) {
	switch {
	case x.I64 != nil && x.Elem == graph.Uint64 && y.F32 != nil:
		mapTo(y.F32, x.I64, workCheap, func(v int64) float32 { return float32(uint64(v)) })
	case x.I64 != nil && x.Elem == graph.Uint64:
		mapTo(y.F64, x.I64, workCheap, func(v int64) float64 { return float64(uint64(v)) })
	case x.I64 != nil && y.F32 != nil:
		mapTo(y.F32, x.I64, workCheap, func(v int64) float32 { return float32(v) })
	case x.I64 != nil:
		mapTo(y.F64, x.I64, workCheap, func(v int64) float64 { return float64(v) })
	case x.F32 != nil && y.F32 != nil:
		copy(y.F32, x.F32)
	case x.F32 != nil:
		mapTo(y.F64, x.F32, workCheap, func(v float32) float64 { return float64(v) })
	case y.F64 != nil:
		copy(y.F64, x.F64)
	case y.Elem == graph.Float16 || y.Elem == graph.BFloat16:
		f := narrow(y.Elem)
		mapTo(y.F32, x.F64, workCheap, func(v float64) float32 { return float32(f.Decode(f.Encode(v, exact))) })
	default:
		mapTo(y.F32, x.F64, workCheap, func(v float64) float32 { return float32(v) })
	}
}

// convertToInt truncates floats; Round wraps afterwards.
func convertToInt(y, x *Array) {
	if x.I64 != nil {
		copy(y.I64, x.I64)
		return
	}
	for i := range y.I64 {
		y.I64[i] = truncate(x.Float(i), y.Elem)
	}
}

// truncate converts toward zero. Numbers out of range are undefined by the standard; here they take the
// nearest end of the 64-bit range, and NaN is 0, before wrapping.
func truncate(x float64, to graph.DataType) int64 {
	switch {
	case x != x:
		return 0
	case to == graph.Uint64 && x >= math.MaxUint64:
		return -1
	case to == graph.Uint64 && x > 0:
		return int64(uint64(x))
	case x >= math.MaxInt64:
		return math.MaxInt64
	case x <= math.MinInt64:
		return math.MinInt64
	}
	return int64(x)
}

// parseStrings reads numbers in plain and scientific notation, INF and NaN in any case.
func parseStrings(y *Array, in []string) error {
	for i, s := range in {
		s = strings.TrimSpace(s)
		if n, err := strconv.ParseInt(s, 10, 64); err == nil && y.I64 != nil {
			y.I64[i] = n
			continue
		}
		if n, err := strconv.ParseUint(s, 10, 64); err == nil && y.Elem == graph.Uint64 {
			y.I64[i] = int64(n)
			continue
		}
		x, err := strconv.ParseFloat(s, 64)
		if err != nil && !math.IsInf(x, 0) { // beyond float64 is infinite
			return &strconv.NumError{Func: "cast", Num: s, Err: strconv.ErrSyntax}
		}
		switch {
		case y.Elem == graph.Bool:
			y.I64[i] = truth(x != 0)
		case y.I64 != nil:
			y.I64[i] = truncate(x, y.Elem)
		case y.F32 != nil && y.Elem == graph.Float:
			f, _ := strconv.ParseFloat(s, 32)
			y.F32[i] = float32(f)
		default:
			y.SetFloat(i, x)
		}
	}
	return nil
}

// formatElement writes a number with the fewest digits that read back the same.
func formatElement(x *Array, i int) string {
	switch {
	case x.I64 != nil && x.Elem == graph.Uint64:
		return strconv.FormatUint(uint64(x.I64[i]), 10)
	case x.I64 != nil:
		return strconv.FormatInt(x.I64[i], 10)
	}
	v := x.Float(i)
	switch {
	case v != v:
		return "NaN"
	case math.IsInf(v, 1):
		return "INF"
	case math.IsInf(v, -1):
		return "-INF"
	}
	bits := 32
	if x.Elem == graph.Double {
		bits = 64
	}
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		format = 'e'
	}
	return strconv.FormatFloat(v, format, -1, bits)
}

// evalBitCast reads the bit patterns of x as another type of the same width.
func evalBitCast(c *EvalCtx) error {
	x, to := c.In[0], graph.DataType(c.Node.Int("to", 0))
	if x.Str != nil || x.Elem.Bits() != to.Bits() {
		return c.Errorf("%s and %s have not the same width", x.Elem, to)
	}
	raw, err := x.Tensor().Data.Bytes()
	if err != nil {
		return err
	}
	y := c.New(to, x.Shape)
	y.decode(raw)
	c.Set(0, y)
	return nil
}

// truth is a bool as it is stored.
func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
