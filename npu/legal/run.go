package legal

import (
	"fmt"
	"math"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/half"
)

// Run executes the program plainly, element by element: a reference for what lower levels make of it. Memory holds the
// elements of each buffer by its ID; Run fills in constants, and reads inputs from and leaves outputs in mem.
func (p *Program) Run(mem [][]float64) error {
	for _, b := range p.Buffers {
		if b.Role == Const {
			a, err := op.FromTensor(b.Data, false)
			if err != nil {
				return err
			}
			mem[b.ID] = make([]float64, b.Len)
			for i := range mem[b.ID] {
				mem[b.ID][i] = a.Float(i)
			}
		}
		if mem[b.ID] == nil {
			mem[b.ID] = make([]float64, b.Len)
		}
	}
	for i, k := range p.Kernels {
		var err error
		switch k := k.(type) {
		case *Nest:
			k.run(mem)
		case *Contract:
			k.run(mem)
		case *Walk:
			k.run(mem)
		case *Gather:
			err = k.run(mem)
		case *Scatter:
			err = k.run(mem)
		}
		if err != nil {
			return fmt.Errorf("kernel %d (%s): %w", i, k.Origin().Node, err)
		}
	}
	return nil
}

func (a *Access) read(mem [][]float64, index []int) float64 {
	if at, ok := a.At(index); ok {
		return mem[a.Buf.ID][at]
	}
	return a.Fill
}

// each calls f with every index of the box in which dimensions outside mask have one index.
func each(dims []int, mask uint32, f func(index []int)) {
	index := make([]int, len(dims))
	var walk func(i int)
	walk = func(i int) {
		if i == len(dims) {
			f(index)
			return
		}
		n := dims[i]
		if mask>>i&1 == 0 {
			n = 1
		}
		for index[i] = 0; index[i] < n; index[i]++ {
			walk(i + 1)
		}
		index[i] = 0
	}
	walk(0)
}

// run executes the nest; sums are the values of those whose loads are nil, over all dimensions.
func (k *Nest) run(mem [][]float64, sums ...[]float64) {
	k.values(mem, sums...)
}

// values does so and returns all values, each with its strides by dimension.
func (k *Nest) values(mem [][]float64, sums ...[]float64) (vals [][]float64, strides [][]int) {
	varies := k.Varies()
	strides = make([][]int, len(varies))
	vals = make([][]float64, len(varies))
	for v, mask := range varies {
		strides[v] = make([]int, len(k.Dims))
		n := 1
		for i := len(k.Dims) - 1; i >= 0; i-- {
			if mask>>i&1 != 0 {
				strides[v][i] = n
				n *= k.Dims[i]
			}
		}
		vals[v] = make([]float64, n)
	}
	place := func(v int, index []int) *float64 {
		at := 0
		for i, s := range strides[v] {
			at += s * index[i]
		}
		return &vals[v][at]
	}
	for v, a := range k.In {
		if a == nil {
			vals[v] = sums[v]
			continue
		}
		each(k.Dims, varies[v], func(index []int) { *place(v, index) = a.read(mem, index) })
	}
	elems := make([]graph.DataType, len(k.In))
	for i, a := range k.In {
		elems[i] = graph.Float
		if a != nil {
			elems[i] = a.Buf.Elem
		}
	}
	for i, s := range k.Body {
		v := len(k.In) + i
		if s.Op.Reduces() {
			start := map[Op]float64{Sum: 0, Prod: 1, ReduceMax: math.Inf(-1), ReduceMin: math.Inf(1)}[s.Op]
			if s.Elem == graph.Int32 && math.IsInf(start, 0) {
				start = math.Copysign(1<<31, start)
			}
			for j := range vals[v] {
				vals[v][j] = start
			}
			fold := s.Op.Fold()
			each(k.Dims, varies[s.Args[0]]|s.Over, func(index []int) {
				y := place(v, index)
				*y = scalar(fold, s.Elem, 0, *y, *place(s.Args[0], index), 0)
			})
			for j := range vals[v] {
				vals[v][j] = rounded(s.Elem, vals[v][j])
			}
			elems = append(elems, s.Elem)
			continue
		}
		each(k.Dims, varies[v], func(index []int) {
			var x [3]float64
			for j, a := range s.Args {
				x[j] = *place(a, index)
			}
			imm, of := s.Imm, s.Elem
			if s.Op == Iota {
				imm = float64(index[s.Dim])
			}
			if len(s.Args) > 0 && s.Op != Select {
				of = elems[s.Args[0]]
			}
			*place(v, index) = rounded(s.Elem, scalar(s.Op, of, imm, x[0], x[1], x[2]))
		})
		elems = append(elems, s.Elem)
	}
	for _, o := range k.Out {
		each(k.Dims, o.To.Varies(), func(index []int) {
			at, _ := o.To.At(index)
			mem[o.To.Buf.ID][at] = *place(o.Value, index)
		})
	}
	return vals, strides
}

// rounded brings x into the range of values of elem.
func rounded(elem graph.DataType, x float64) float64 {
	if elem == graph.Float {
		return float64(float32(x))
	}
	return float64(int32(int64(x)))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// unary gives the functions of one float.
var unary = map[Op]func(float64) float64{
	Neg: func(x float64) float64 { return -x }, Abs: math.Abs, Floor: math.Floor, Ceil: math.Ceil, Round: math.RoundToEven, Trunc: math.Trunc,
	Sqrt: math.Sqrt, Rsqrt: func(x float64) float64 { return 1 / math.Sqrt(x) }, Rcp: func(x float64) float64 { return 1 / x },
	Exp: math.Exp, Expm1: math.Expm1, Log: math.Log, Log1p: math.Log1p, Sin: math.Sin, Cos: math.Cos, Tan: math.Tan, Asin: math.Asin,
	Acos: math.Acos, Atan: math.Atan, Sinh: math.Sinh, Cosh: math.Cosh, Tanh: math.Tanh, Asinh: math.Asinh, Acosh: math.Acosh,
	Atanh: math.Atanh, Erf: math.Erf, Not: func(x float64) float64 { return 1 - x },
	Sigmoid: func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	Sign:    func(x float64) float64 { return truth(x > 0) - truth(x < 0) },
	Mov:     func(x float64) float64 { return x }, Cast: func(x float64) float64 { return x },
	Half:   func(x float64) float64 { return half.Float16.Decode(half.Float16.Encode(x, half.Mode{})) },
	BFloat: func(x float64) float64 { return half.BFloat16.Decode(half.BFloat16.Encode(x, half.Mode{})) },
}

// scalar returns the operation's result for operands of type of.
func scalar(o Op, of graph.DataType, imm, x, y, z float64) float64 {
	if f := unary[o]; f != nil {
		return f(x)
	}
	whole := of == graph.Int32
	switch o {
	case ConstOp, Iota:
		return imm
	case Add, Sum:
		return x + y
	case Sub:
		return x - y
	case Mul, Prod:
		return x * y
	case Div:
		if whole {
			if y == 0 {
				return 0
			}
			return math.Trunc(x / y)
		}
		return x / y
	case Rem:
		if whole && y == 0 {
			return 0
		}
		return math.Mod(x, y)
	case Max, ReduceMax:
		return math.Max(x, y)
	case Min, ReduceMin:
		return math.Min(x, y)
	case Pow:
		return math.Pow(x, y)
	case And:
		return float64(int32(x) & int32(y))
	case Or:
		return float64(int32(x) | int32(y))
	case Xor:
		return float64(int32(x) ^ int32(y))
	case Shl:
		return float64(int32(x) << uint32(y))
	case Shr:
		return float64(int32(uint32(int32(x)) >> uint32(y)))
	case Sar:
		return float64(int32(x) >> uint32(y))
	case Eq:
		return truth(x == y)
	case Ne:
		return truth(x != y)
	case Lt:
		return truth(x < y)
	case Le:
		return truth(x <= y)
	case Select:
		if x != 0 {
			return y
		}
		return z
	}
	panic("legal: no meaning for " + o.String())
}

func (k *Contract) run(mem [][]float64) {
	outer := uint32(0)
	for i, kind := range k.Kind {
		if kind != K {
			outer |= 1 << i
		}
	}
	all := uint32(1)<<len(k.Dims) - 1
	var sums []float64
	each(k.Dims, outer, func(index []int) {
		at := append([]int{}, index...)
		total := 0.0
		inner := make([]int, len(k.Dims))
		each(k.Dims, all&^outer, func(over []int) {
			for i := range inner {
				inner[i] = at[i] + over[i]
			}
			total += k.A.read(mem, inner) * k.B.read(mem, inner)
		})
		total = rounded(graph.Float, total)
		if k.Post == nil {
			place, _ := k.C.At(at)
			mem[k.C.Buf.ID][place] = total
			return
		}
		sums = append(sums, total)
	})
	if k.Post != nil {
		k.Post.run(mem, sums)
	}
}

// row returns the row of a table that an index stands for.
func row(index float64, rows int) (int, error) {
	i := int(index)
	if i < 0 {
		i += rows
	}
	if i < 0 || i >= rows {
		return 0, fmt.Errorf("index %g into a table of %d rows", index, rows)
	}
	return i, nil
}

func (k *Gather) run(mem [][]float64) error {
	for i := range k.Rows {
		r, err := row(k.Index.read(mem, []int{i}), k.TableRows)
		if err != nil {
			return err
		}
		for j := range k.Width {
			at, _ := k.Out.At([]int{i, j})
			mem[k.Out.Buf.ID][at] = k.Table.read(mem, []int{r, j})
		}
	}
	return nil
}

func (k *Scatter) run(mem [][]float64) error {
	for i := range k.Rows {
		r, err := row(k.Index.read(mem, []int{i}), k.TableRows)
		if err != nil {
			return err
		}
		for j := range k.Width {
			at, _ := k.Table.At([]int{r, j})
			m := mem[k.Table.Buf.ID]
			x := k.From.read(mem, []int{i, j})
			if k.Mode == Mov {
				m[at] = x
			} else {
				m[at] = rounded(k.Table.Buf.Elem, scalar(k.Mode, k.Table.Buf.Elem, 0, m[at], x, 0))
			}
		}
	}
	return nil
}
