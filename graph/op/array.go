package op

import (
	"fmt"
	"slices"

	"gradtool/graph"
)

// Array is a value at run time: a dense row-major tensor, or a sequence or optional of such.
//
// Elements are stored by class, whatever their width: real floating-point types in F32, or in F64 for
// double and, in float64 mode, for all of them; integers and bool (0 and 1) in I64 (uint64 as its bit
// pattern); complex types in C128; strings in Str. Exactly one of those is non-nil for a tensor. After
// computing, [Array.Round] brings elements of narrow types back into their range. Arrays are shared
// freely between values: no kernel changes an operand.
type Array struct {
	Elem  graph.DataType
	Shape []int
	F32   []float32
	F64   []float64
	I64   []int64
	C128  []complex128
	Str   []string

	Kind graph.Kind // KindTensor (or zero), KindSequence or KindOptional
	Seq  []*Array   // elements of a sequence; for an optional its value, if it has one
}

// NewArray returns a tensor of zeros. In wide mode (float64 evaluation) all float types use F64. It panics with a [*SizeError]
// where [CheckSize] returns one: sizes come from operands and attributes, and kernels need not look at them.
func NewArray(elem graph.DataType, shape []int, wide bool) *Array {
	a := &Array{Elem: elem, Shape: slices.Clone(shape), Kind: graph.KindTensor}
	if a.Shape == nil {
		a.Shape = []int{}
	}
	n, err := allocation(shape, storedBytes(elem, wide))
	if err != nil {
		panic(err)
	}
	switch {
	case elem.IsFloat() && (wide || elem == graph.Double):
		a.F64 = make([]float64, n)
	case elem.IsFloat():
		a.F32 = make([]float32, n)
	case elem.IsComplex():
		a.C128 = make([]complex128, n)
	case elem == graph.String:
		a.Str = make([]string, n)
	default:
		a.I64 = make([]int64, n)
	}
	return a
}

// NewLike returns zeros of a's element type and storage in another shape.
func (a *Array) NewLike(shape []int) *Array { return NewArray(a.Elem, shape, a.F64 != nil) }

// Ints returns an int64 vector.
func Ints(v ...int64) *Array {
	return &Array{Elem: graph.Int64, Shape: []int{len(v)}, I64: append([]int64{}, v...), Kind: graph.KindTensor}
}

// IntScalar returns an int64 scalar.
func IntScalar(v int64) *Array {
	return &Array{Elem: graph.Int64, Shape: []int{}, I64: []int64{v}, Kind: graph.KindTensor}
}

// IsTensor reports whether a is a dense tensor.
func (a *Array) IsTensor() bool { return a.Kind == graph.KindTensor || a.Kind == graph.KindUnknown }

// Len returns the number of elements.
func (a *Array) Len() int { return prod(a.Shape) }

// Rank returns the number of dimensions.
func (a *Array) Rank() int { return len(a.Shape) }

// Type returns the array's type with known dimensions.
func (a *Array) Type() graph.Type {
	switch a.Kind {
	case graph.KindSequence, graph.KindOptional:
		t := graph.Type{Kind: a.Kind}
		if len(a.Seq) > 0 {
			inner := a.Seq[0].Type()
			t.Inner = &inner
		} else {
			t.Inner = &graph.Type{Kind: graph.KindTensor, Elem: a.Elem}
		}
		return t
	}
	s := make(graph.Shape, len(a.Shape))
	for i, d := range a.Shape {
		s[i] = graph.Known(int64(d))
	}
	return graph.TensorOf(a.Elem, s)
}

// WithShape returns a view of the same elements in another shape of the same size.
func (a *Array) WithShape(shape []int) *Array {
	b := *a
	b.Shape = append([]int{}, shape...)
	return &b
}

// Clone returns a copy that shares no elements.
func (a *Array) Clone() *Array {
	b := *a
	b.Shape = slices.Clone(a.Shape)
	b.F32, b.F64, b.I64 = slices.Clone(a.F32), slices.Clone(a.F64), slices.Clone(a.I64)
	b.C128, b.Str = slices.Clone(a.C128), slices.Clone(a.Str)
	return &b
}

// Float returns element i as float64: of a float, integer or bool tensor.
func (a *Array) Float(i int) float64 {
	switch {
	case a.F32 != nil:
		return float64(a.F32[i])
	case a.F64 != nil:
		return a.F64[i]
	case a.I64 != nil:
		if a.Elem == graph.Uint64 {
			return float64(uint64(a.I64[i]))
		}
		return float64(a.I64[i])
	case a.C128 != nil:
		return real(a.C128[i])
	}
	return 0
}

// SetFloat sets element i of a float tensor.
func (a *Array) SetFloat(i int, x float64) {
	if a.F64 != nil {
		a.F64[i] = x
	} else {
		a.F32[i] = float32(x)
	}
}

// IsFloat reports whether a's elements are real floating-point numbers.
func (a *Array) IsFloat() bool { return a.F32 != nil || a.F64 != nil }

// copyFrom copies element j of b, which has the same storage, to element i of a.
func (a *Array) copyFrom(i int, b *Array, j int) {
	switch {
	case a.F32 != nil:
		a.F32[i] = b.F32[j]
	case a.F64 != nil:
		a.F64[i] = b.F64[j]
	case a.I64 != nil:
		a.I64[i] = b.I64[j]
	case a.C128 != nil:
		a.C128[i] = b.C128[j]
	case a.Str != nil:
		a.Str[i] = b.Str[j]
	}
}

// copyRun copies n elements of b from element j to a from element i; the storage must be the same.
func (a *Array) copyRun(i int, b *Array, j, n int) {
	switch {
	case a.F32 != nil:
		copy(a.F32[i:i+n], b.F32[j:j+n])
	case a.F64 != nil:
		copy(a.F64[i:i+n], b.F64[j:j+n])
	case a.I64 != nil:
		copy(a.I64[i:i+n], b.I64[j:j+n])
	case a.C128 != nil:
		copy(a.C128[i:i+n], b.C128[j:j+n])
	case a.Str != nil:
		copy(a.Str[i:i+n], b.Str[j:j+n])
	}
}

// Seq and optional values.

// NewSequence returns a sequence of the given elements; elem tells the element type of an empty one.
func NewSequence(elem graph.DataType, items ...*Array) *Array {
	return &Array{Kind: graph.KindSequence, Elem: elem, Seq: items}
}

// NewOptional returns an optional that holds v, or nothing for nil.
func NewOptional(elem graph.DataType, v *Array) *Array {
	a := &Array{Kind: graph.KindOptional, Elem: elem}
	if v != nil {
		a.Seq = []*Array{v}
	}
	return a
}

// String describes a, with the elements of small tensors.
func (a *Array) String() string {
	if !a.IsTensor() {
		return fmt.Sprintf("%s of %d", a.Type(), len(a.Seq))
	}
	if a.Len() > 16 {
		return a.Type().String()
	}
	switch {
	case a.F32 != nil:
		return fmt.Sprint(a.Type(), a.F32)
	case a.F64 != nil:
		return fmt.Sprint(a.Type(), a.F64)
	case a.I64 != nil:
		return fmt.Sprint(a.Type(), a.I64)
	case a.C128 != nil:
		return fmt.Sprint(a.Type(), a.C128)
	}
	return fmt.Sprint(a.Type(), a.Str)
}

func prod(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// strides returns row-major strides of a shape, in elements.
func strides(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}
