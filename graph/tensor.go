package graph

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Blob is where a tensor's bytes live: in memory, or in a mapped file from which they are read only
// when asked for.
type Blob interface {
	// Len returns the number of bytes without reading them.
	Len() int64
	// Bytes returns the bytes; the caller must not change them.
	Bytes() ([]byte, error)
}

// Bytes is a Blob held in memory.
type Bytes []byte

// Len returns the number of bytes.
func (b Bytes) Len() int64 { return int64(len(b)) }

// Bytes returns b.
func (b Bytes) Bytes() ([]byte, error) { return b, nil }

// Tensor is constant data: an initializer's or an attribute's. Elements are stored in row-major
// order, little-endian, packed as TensorProto.raw_data prescribes (elements of fewer than 8 bits
// share bytes, first element in the low bits; bool is one byte). Strings are held apart.
type Tensor struct {
	Name    string // only inside attributes; an initializer's name is its value's
	Elem    DataType
	Dims    []int64
	Data    Blob     // nil for strings
	Strings []string // for Elem == String
	Src     any      // belongs to the package that read the tensor
}

// Len returns the number of elements, or -1 if a dimension is negative or the product overflows.
func (t *Tensor) Len() int64 {
	n := int64(1)
	large := false
	for _, d := range t.Dims {
		if d < 0 {
			return -1
		}
		if d > 0 && n > math.MaxInt64/d {
			large, d = true, 1 // unless a later one is 0
		}
		n *= d
	}
	if large && n > 0 {
		return -1
	}
	return n
}

// ByteLen returns the number of bytes that the elements take as raw data; 0 for strings.
func (t *Tensor) ByteLen() int64 {
	n := t.Len()
	if n < 0 || n > math.MaxInt64/128 {
		return -1
	}
	return (n*int64(t.Elem.Bits()) + 7) / 8
}

// Type returns the tensor's type; all dimensions are known.
func (t *Tensor) Type() Type { return TensorOf(t.Elem, ShapeOf(t.Dims...)) }

// Check reports whether the data's length fits the type and shape.
func (t *Tensor) Check() error {
	n := t.Len()
	switch {
	case !t.Elem.Valid():
		return fmt.Errorf("element type %d is not known", int32(t.Elem))
	case n < 0:
		return fmt.Errorf("dimensions %v are not a shape", t.Dims)
	case t.Elem == String:
		if int64(len(t.Strings)) != n {
			return fmt.Errorf("%d strings, want %d for shape %v", len(t.Strings), n, t.Dims)
		}
	case t.Data == nil:
		if n != 0 {
			return fmt.Errorf("no data, want %d bytes for %s%v", t.ByteLen(), t.Elem, t.Dims)
		}
	case t.Data.Len() != t.ByteLen():
		return fmt.Errorf("%d bytes, want %d for %s%v", t.Data.Len(), t.ByteLen(), t.Elem, t.Dims)
	}
	return nil
}

// Ints returns a new int64 tensor with the given values; dims nil means one dimension of len(values).
func Ints(dims []int64, values ...int64) *Tensor {
	if dims == nil {
		dims = []int64{int64(len(values))}
	}
	b := make([]byte, 8*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(v))
	}
	return &Tensor{Elem: Int64, Dims: dims, Data: Bytes(b)}
}

// Floats returns a new float32 tensor with the given values; dims nil means one dimension of len(values).
func Floats(dims []int64, values ...float32) *Tensor {
	if dims == nil {
		dims = []int64{int64(len(values))}
	}
	b := make([]byte, 4*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
	return &Tensor{Elem: Float, Dims: dims, Data: Bytes(b)}
}
