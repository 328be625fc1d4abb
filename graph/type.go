package graph

import "strings"

// DataType is an ONNX element type; the numbers are those of TensorProto.DataType.
type DataType int32

// Element types of ONNX up to IR version 14.
const (
	Undefined    DataType = 0
	Float        DataType = 1
	Uint8        DataType = 2
	Int8         DataType = 3
	Uint16       DataType = 4
	Int16        DataType = 5
	Int32        DataType = 6
	Int64        DataType = 7
	String       DataType = 8
	Bool         DataType = 9
	Float16      DataType = 10
	Double       DataType = 11
	Uint32       DataType = 12
	Uint64       DataType = 13
	Complex64    DataType = 14
	Complex128   DataType = 15
	BFloat16     DataType = 16
	Float8E4M3   DataType = 17
	Float8E4M3U  DataType = 18
	Float8E5M2   DataType = 19
	Float8E5M2U  DataType = 20
	Uint4        DataType = 21
	Int4         DataType = 22
	Float4E2M1   DataType = 23
	Float8E8M0   DataType = 24
	Uint2        DataType = 25
	Int2         DataType = 26
	numDataTypes          = 27
)

// dataTypes holds, by DataType, the name in the ONNX text syntax and the size in bits (0: no fixed size).
var dataTypes = [numDataTypes]struct {
	name string
	bits int
}{
	Undefined: {"undefined", 0}, Float: {"float", 32}, Uint8: {"uint8", 8}, Int8: {"int8", 8}, Uint16: {"uint16", 16},
	Int16: {"int16", 16}, Int32: {"int32", 32}, Int64: {"int64", 64}, String: {"string", 0}, Bool: {"bool", 8},
	Float16: {"float16", 16}, Double: {"double", 64}, Uint32: {"uint32", 32}, Uint64: {"uint64", 64},
	Complex64: {"complex64", 64}, Complex128: {"complex128", 128}, BFloat16: {"bfloat16", 16},
	Float8E4M3: {"float8e4m3fn", 8}, Float8E4M3U: {"float8e4m3fnuz", 8}, Float8E5M2: {"float8e5m2", 8},
	Float8E5M2U: {"float8e5m2fnuz", 8}, Uint4: {"uint4", 4}, Int4: {"int4", 4}, Float4E2M1: {"float4e2m1", 4},
	Float8E8M0: {"float8e8m0", 8}, Uint2: {"uint2", 2}, Int2: {"int2", 2},
}

// String returns the name that the ONNX text syntax uses: float, int64, bfloat16, ...
func (t DataType) String() string {
	if t < 0 || t >= numDataTypes {
		return "undefined"
	}
	return dataTypes[t].name
}

// ParseDataType returns the element type of a name as String gives it.
func ParseDataType(name string) (DataType, bool) {
	for t := range dataTypes {
		if dataTypes[t].name == name && t != 0 {
			return DataType(t), true
		}
	}
	return Undefined, false
}

// Valid reports whether t is one of the element types above, Undefined excluded.
func (t DataType) Valid() bool { return t > Undefined && t < numDataTypes }

// Bits returns the size of one element in bits, 0 for strings and undefined.
func (t DataType) Bits() int {
	if t < 0 || t >= numDataTypes {
		return 0
	}
	return dataTypes[t].bits
}

// IsFloat reports whether t is a real floating-point type, the 8- and 4-bit ones included.
func (t DataType) IsFloat() bool {
	switch t {
	case Float, Double, Float16, BFloat16, Float8E4M3, Float8E4M3U, Float8E5M2, Float8E5M2U, Float4E2M1, Float8E8M0:
		return true
	}
	return false
}

// IsDifferentiable reports whether gradients flow through values of type t: float, double, float16
// and bfloat16. The narrower floats are storage formats that no arithmetic operator accepts.
func (t DataType) IsDifferentiable() bool {
	return t == Float || t == Double || t == Float16 || t == BFloat16
}

// IsInt reports whether t is a signed or unsigned integer type; Bool is not.
func (t DataType) IsInt() bool { return t.IsSigned() || t.IsUnsigned() }

// IsSigned reports whether t is a signed integer type.
func (t DataType) IsSigned() bool {
	return t == Int8 || t == Int16 || t == Int32 || t == Int64 || t == Int4 || t == Int2
}

// IsUnsigned reports whether t is an unsigned integer type.
func (t DataType) IsUnsigned() bool {
	return t == Uint8 || t == Uint16 || t == Uint32 || t == Uint64 || t == Uint4 || t == Uint2
}

// IsComplex reports whether t is a complex type.
func (t DataType) IsComplex() bool { return t == Complex64 || t == Complex128 }

// Kind tells the kinds of values that ONNX knows.
type Kind uint8

// Kinds of values. KindUnknown is the type of a value nothing is known of.
const (
	KindUnknown Kind = iota
	KindTensor
	KindSequence
	KindOptional
	KindMap
	KindSparse
	KindOpaque
)

// Type is the type of a value: for tensors the element type and shape, for sequences and optionals
// the type of what they hold. The zero Type says that nothing is known.
type Type struct {
	Kind   Kind
	Elem   DataType // tensors and sparse tensors; Undefined if not known
	Shape  Shape    // tensors and sparse tensors; nil if the rank is not known
	Inner  *Type    // element of a sequence or optional, value of a map
	Key    DataType // key of a map
	Name   string   // of an opaque type, with Domain
	Domain string
}

// TensorOf returns the type of a tensor with element type e and shape s (nil: unknown rank).
func TensorOf(e DataType, s Shape) Type { return Type{Kind: KindTensor, Elem: e, Shape: s} }

// SequenceOf returns the type of a sequence of inner.
func SequenceOf(inner Type) Type { return Type{Kind: KindSequence, Inner: &inner} }

// OptionalOf returns the type of an optional inner.
func OptionalOf(inner Type) Type { return Type{Kind: KindOptional, Inner: &inner} }

// IsTensor reports whether t is the type of a dense tensor.
func (t Type) IsTensor() bool { return t.Kind == KindTensor }

// Same reports whether t and u are the same type, unknown parts included.
func (t Type) Same(u Type) bool {
	if t.Kind != u.Kind || t.Elem != u.Elem || t.Key != u.Key || t.Name != u.Name || t.Domain != u.Domain ||
		(t.Inner == nil) != (u.Inner == nil) || !t.Shape.Same(u.Shape) {
		return false
	}
	return t.Inner == nil || t.Inner.Same(*u.Inner)
}

// String returns t in the ONNX text syntax: float[N,3], int64[], float (unknown rank), seq(float[2]), ...
func (t Type) String() string {
	inner := func() string {
		if t.Inner == nil {
			return "?"
		}
		return t.Inner.String()
	}
	switch t.Kind {
	case KindTensor:
		return t.Elem.String() + t.Shape.suffix()
	case KindSparse:
		return "sparse_tensor(" + t.Elem.String() + t.Shape.suffix() + ")"
	case KindSequence:
		return "seq(" + inner() + ")"
	case KindOptional:
		return "optional(" + inner() + ")"
	case KindMap:
		return "map(" + t.Key.String() + ", " + inner() + ")"
	case KindOpaque:
		if t.Domain == "" {
			return "opaque(" + t.Name + ")"
		}
		return "opaque(" + t.Domain + ", " + t.Name + ")"
	}
	return "?"
}

// Shape is a list of dimensions. A nil Shape has unknown rank; a non-nil empty one is a scalar's.
type Shape []Dim

// ShapeOf returns the shape with the given known dimensions, a scalar's without any.
func ShapeOf(dims ...int64) Shape {
	s := make(Shape, len(dims))
	for i, d := range dims {
		s[i] = Known(d)
	}
	return s
}

// UnknownShape returns the shape of the given rank with every dimension unknown.
func UnknownShape(rank int) Shape { return make(Shape, rank) }

// HasRank reports whether the number of dimensions is known.
func (s Shape) HasRank() bool { return s != nil }

// Ints returns the dimensions as numbers, if all are known.
func (s Shape) Ints() ([]int64, bool) {
	if s == nil {
		return nil, false
	}
	out := make([]int64, len(s))
	for i, d := range s {
		n, ok := d.Int()
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// Size returns the number of elements as an expression, unknown if some dimension is.
func (s Shape) Size() Dim {
	if s == nil {
		return Unknown()
	}
	n := Known(1)
	for _, d := range s {
		n = n.Mul(d)
	}
	return n
}

// Equal reports whether s and t provably have the same rank and dimensions.
func (s Shape) Equal(t Shape) bool {
	if s == nil || t == nil || len(s) != len(t) {
		return false
	}
	for i := range s {
		if !s[i].Equal(t[i]) {
			return false
		}
	}
	return true
}

// Same reports whether s and t are the same description of a shape, unknown parts included.
func (s Shape) Same(t Shape) bool {
	if (s == nil) != (t == nil) || len(s) != len(t) {
		return false
	}
	for i := range s {
		if !s[i].Same(t[i]) {
			return false
		}
	}
	return true
}

// Clone returns a copy of s that shares no memory with it; a nil Shape stays nil.
func (s Shape) Clone() Shape {
	if s == nil {
		return nil
	}
	return append(Shape{}, s...)
}

// String returns s as [N,3,?], [] for a scalar and [...] for unknown rank.
func (s Shape) String() string {
	if s == nil {
		return "[...]"
	}
	var b strings.Builder
	b.WriteByte('[')
	for i, d := range s {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(d.String())
	}
	b.WriteByte(']')
	return b.String()
}

// suffix is String for use behind an element type, where the text syntax writes unknown rank as nothing.
func (s Shape) suffix() string {
	if s == nil {
		return ""
	}
	return s.String()
}
