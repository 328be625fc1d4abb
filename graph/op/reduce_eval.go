package op

import (
	"math"
	"slices"

	"gradtool/graph"
)

// reduction is the layout of a reduction: result o combines the elements bases[o]+offs[r] for all r.
type reduction struct {
	out         []int // the result's shape
	bases, offs []int
}

// planReduction lays out the reduction of a tensor over some of its axes, sorted ones.
func planReduction(shape, axes []int, keep bool) reduction {
	var p reduction
	p.out = []int{}
	var kept []int
	for i, n := range shape {
		switch {
		case !slices.Contains(axes, i):
			kept = append(kept, i)
			p.out = append(p.out, n)
		case keep:
			p.out = append(p.out, 1)
		}
	}
	p.bases, p.offs = axisOffsets(shape, kept), axisOffsets(shape, axes)
	return p
}

// axisOffsets returns, in row-major order, where the elements lie whose indices on all other axes are 0.
func axisOffsets(shape, axes []int) []int {
	st := strides(shape)
	out := []int{0}
	for _, a := range axes {
		next := make([]int, 0, len(out)*shape[a])
		for _, o := range out {
			for i := range shape[a] {
				next = append(next, o+i*st[a])
			}
		}
		out = next
	}
	return out
}

// evalReduce evaluates the reduction of that name. Floats are summed in float64.
func evalReduce(c *EvalCtx, name string) error {
	x := c.Arg(0)
	axes, err := reduceAxes(c.Ints(1), c.Arg(1) != nil, c.Node.Int("noop_with_empty_axes", 0) != 0, x.Rank())
	if err != nil {
		return err
	}
	p := planReduction(x.Shape, axes, c.Node.Int("keepdims", 1) != 0)
	y := x.NewLike(p.out)
	switch {
	case x.F32 != nil:
		reduceInto(p, x.F32, y.F32, floatReducer[float32](name))
	case x.F64 != nil:
		reduceInto(p, x.F64, y.F64, floatReducer[float64](name))
	case x.I64 != nil:
		reduceInto(p, x.I64, y.I64, intReducer(name, x.Elem))
	default:
		return c.Errorf("elements of type %s cannot be reduced", x.Elem)
	}
	c.Set(0, y)
	return nil
}

func reduceInto[T any](p reduction, x, y []T, f func(x []T, offs []int) T) {
	parallel(len(p.bases), grainOf(len(p.offs)), func(lo, hi int) {
		for o := lo; o < hi; o++ {
			if len(p.offs) == 0 {
				y[o] = f(nil, nil)
			} else {
				y[o] = f(x[p.bases[o]:], p.offs)
			}
		}
	})
}

// floatReducer returns the function that combines the elements of x at the given offsets.
func floatReducer[T float32 | float64](name string) func(x []T, offs []int) T {
	sum := func(f func(v float64) float64) func(x []T, offs []int) float64 {
		return func(x []T, offs []int) float64 {
			s := 0.0
			for _, o := range offs {
				s += f(float64(x[o]))
			}
			return s
		}
	}
	plain := func(x []T, offs []int) float64 {
		if len(offs) == 0 {
			return 0
		}
		s := math.Copysign(0, -1) // which adds nothing, not even the sign of a zero: the sum of one element is that element
		for _, o := range offs {
			s += float64(x[o])
		}
		return s
	}
	squares := sum(func(v float64) float64 { return v * v })
	var f func(x []T, offs []int) float64
	switch name {
	case "ReduceSum":
		f = plain
	case "ReduceMean":
		f = func(x []T, offs []int) float64 { return plain(x, offs) / float64(len(offs)) }
	case "ReduceMax":
		f = func(x []T, offs []int) float64 {
			return extremeOf(x, offs, math.Inf(-1), func(a, b T) bool { return a > b })
		}
	case "ReduceMin":
		f = func(x []T, offs []int) float64 {
			return extremeOf(x, offs, math.Inf(1), func(a, b T) bool { return a < b })
		}
	case "ReduceProd":
		f = func(x []T, offs []int) float64 {
			s := 1.0
			for _, o := range offs {
				s *= float64(x[o])
			}
			return s
		}
	case "ReduceL1":
		f = sum(math.Abs)
	case "ReduceL2":
		f = func(x []T, offs []int) float64 { return math.Sqrt(squares(x, offs)) }
	case "ReduceLogSum":
		f = func(x []T, offs []int) float64 { return math.Log(plain(x, offs)) }
	case "ReduceLogSumExp":
		f = func(x []T, offs []int) float64 {
			m := extremeOf(x, offs, math.Inf(-1), func(a, b T) bool { return a > b })
			if math.IsInf(m, 0) || m != m {
				return m
			}
			s := 0.0
			for _, o := range offs {
				s += math.Exp(float64(x[o]) - m)
			}
			return math.Log(s) + m
		}
	case "ReduceSumSquare":
		f = squares
	}
	return func(x []T, offs []int) T { return T(f(x, offs)) }
}

// extremeOf returns the first element that no other beats, NaN if there is one, empty if there are no elements.
func extremeOf[T float32 | float64](x []T, offs []int, empty float64, beats func(a, b T) bool) float64 {
	if len(offs) == 0 {
		return empty
	}
	m := x[offs[0]]
	for _, o := range offs {
		if v := x[o]; v != v || beats(v, m) {
			m = v
			if v != v {
				break
			}
		}
	}
	return float64(m)
}

// intReducer is floatReducer for integers of the given type. Sums and products wrap; what is not an integer is cut off.
func intReducer(name string, elem graph.DataType) func(x []int64, offs []int) int64 {
	toFloat := func(v int64) float64 {
		if elem == graph.Uint64 {
			return float64(uint64(v))
		}
		return float64(v)
	}
	less := func(a, b int64) bool { return a < b }
	if elem == graph.Uint64 {
		less = func(a, b int64) bool { return uint64(a) < uint64(b) }
	}
	extreme := func(empty int64, beats func(a, b int64) bool) func(x []int64, offs []int) int64 {
		return func(x []int64, offs []int) int64 {
			if len(offs) == 0 {
				return empty
			}
			m := x[offs[0]]
			for _, o := range offs {
				if beats(x[o], m) {
					m = x[o]
				}
			}
			return m
		}
	}
	sum := func(f func(v int64) int64) func(x []int64, offs []int) int64 {
		return func(x []int64, offs []int) int64 {
			s := int64(0)
			for _, o := range offs {
				s += f(x[o])
			}
			return s
		}
	}
	plain := sum(func(v int64) int64 { return v })
	lo, hi := intRange(elem)
	switch name {
	case "ReduceSum":
		return plain
	case "ReduceMax":
		return extreme(lo, func(a, b int64) bool { return less(b, a) })
	case "ReduceMin":
		return extreme(hi, less)
	case "ReduceProd":
		return func(x []int64, offs []int) int64 {
			s := int64(1)
			for _, o := range offs {
				s *= x[o]
			}
			return s
		}
	case "ReduceMean":
		return func(x []int64, offs []int) int64 {
			switch s := plain(x, offs); {
			case len(offs) == 0:
				return 0
			case elem == graph.Uint64:
				return int64(uint64(s) / uint64(len(offs)))
			default:
				return s / int64(len(offs))
			}
		}
	case "ReduceL1":
		return sum(func(v int64) int64 {
			if less(v, 0) {
				return -v
			}
			return v
		})
	case "ReduceSumSquare":
		return sum(func(v int64) int64 { return v * v })
	}
	f := floatReducer[float64](name) // L2, LogSum, LogSumExp
	return func(x []int64, offs []int) int64 {
		at, all := make([]float64, len(offs)), make([]int, len(offs))
		for i, o := range offs {
			at[i], all[i] = toFloat(x[o]), i
		}
		return int64(f(at, all))
	}
}

// intRange returns the least and greatest value of an integer type, uint64's as bit patterns.
func intRange(elem graph.DataType) (lo, hi int64) {
	bits := elem.Bits()
	switch {
	case elem == graph.Bool:
		return 0, 1
	case elem == graph.Uint64:
		return 0, -1
	case elem.IsUnsigned():
		return 0, 1<<bits - 1
	}
	return -1 << (bits - 1), 1<<(bits-1) - 1
}
