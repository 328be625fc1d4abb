package op

import (
	"encoding/binary"
	"fmt"
	"math"

	"gradtool/graph"
	"gradtool/internal/half"
)

// FromTensor reads constant data into an array. In wide mode floats are held as float64.
func FromTensor(t *graph.Tensor, wide bool) (*Array, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	shape := make([]int, len(t.Dims))
	for i, d := range t.Dims {
		shape[i] = int(d)
	}
	if t.Elem != graph.String && t.Data == nil || t.Len() == 0 {
		return NewArray(t.Elem, shape, wide), nil
	}
	a := NewArray(t.Elem, shape, wide)
	if t.Elem == graph.String {
		copy(a.Str, t.Strings)
		return a, nil
	}
	raw, err := t.Data.Bytes()
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) != t.ByteLen() {
		return nil, fmt.Errorf("%d bytes, want %d", len(raw), t.ByteLen())
	}
	a.decode(raw)
	return a, nil
}

// decode fills a from raw_data.
func (a *Array) decode(raw []byte) {
	le := binary.LittleEndian
	setF := func(at func(i int) float64) {
		if a.F64 != nil {
			for i := range a.F64 {
				a.F64[i] = at(i)
			}
			return
		}
		for i := range a.F32 {
			a.F32[i] = float32(at(i))
		}
	}
	setI := func(at func(i int) int64) {
		for i := range a.I64 {
			a.I64[i] = at(i)
		}
	}
	switch a.Elem {
	case graph.Float:
		if a.F32 != nil {
			for i := range a.F32 {
				a.F32[i] = math.Float32frombits(le.Uint32(raw[4*i:]))
			}
			return
		}
		setF(func(i int) float64 { return float64(math.Float32frombits(le.Uint32(raw[4*i:]))) })
	case graph.Double:
		setF(func(i int) float64 { return math.Float64frombits(le.Uint64(raw[8*i:])) })
	case graph.Float16, graph.BFloat16:
		f := narrow(a.Elem)
		setF(func(i int) float64 { return f.Decode(le.Uint16(raw[2*i:])) })
	case graph.Float8E4M3, graph.Float8E4M3U, graph.Float8E5M2, graph.Float8E5M2U, graph.Float8E8M0:
		f := narrow(a.Elem)
		setF(func(i int) float64 { return f.Decode(uint16(raw[i])) })
	case graph.Float4E2M1:
		f := narrow(a.Elem)
		setF(func(i int) float64 { return f.Decode(uint16(raw[i/2] >> (4 * (i & 1)) & 15)) })
	case graph.Bool, graph.Uint8:
		setI(func(i int) int64 { return int64(raw[i]) })
	case graph.Int8:
		setI(func(i int) int64 { return int64(int8(raw[i])) })
	case graph.Uint16:
		setI(func(i int) int64 { return int64(le.Uint16(raw[2*i:])) })
	case graph.Int16:
		setI(func(i int) int64 { return int64(int16(le.Uint16(raw[2*i:]))) })
	case graph.Uint32:
		setI(func(i int) int64 { return int64(le.Uint32(raw[4*i:])) })
	case graph.Int32:
		setI(func(i int) int64 { return int64(int32(le.Uint32(raw[4*i:]))) })
	case graph.Int64, graph.Uint64:
		setI(func(i int) int64 { return int64(le.Uint64(raw[8*i:])) })
	case graph.Uint4:
		setI(func(i int) int64 { return int64(raw[i/2] >> (4 * (i & 1)) & 15) })
	case graph.Int4:
		setI(func(i int) int64 { return int64(int8(raw[i/2]>>(4*(i&1))<<4) >> 4) })
	case graph.Uint2:
		setI(func(i int) int64 { return int64(raw[i/4] >> (2 * (i & 3)) & 3) })
	case graph.Int2:
		setI(func(i int) int64 { return int64(int8(raw[i/4]>>(2*(i&3))<<6) >> 6) })
	case graph.Complex64:
		for i := range a.C128 {
			re, im := math.Float32frombits(le.Uint32(raw[8*i:])), math.Float32frombits(le.Uint32(raw[8*i+4:]))
			a.C128[i] = complex(float64(re), float64(im))
		}
	case graph.Complex128:
		for i := range a.C128 {
			a.C128[i] = complex(math.Float64frombits(le.Uint64(raw[16*i:])), math.Float64frombits(le.Uint64(raw[16*i+8:])))
		}
	}
}

// Tensor returns a's elements as constant data. Floats are rounded to a's element type.
func (a *Array) Tensor() *graph.Tensor {
	t := &graph.Tensor{Elem: a.Elem, Dims: make([]int64, len(a.Shape))}
	for i, d := range a.Shape {
		t.Dims[i] = int64(d)
	}
	if a.Elem == graph.String {
		t.Strings = a.Str
		return t
	}
	raw := make([]byte, t.ByteLen())
	le := binary.LittleEndian
	n := a.Len()
	for i := range n {
		switch a.Elem {
		case graph.Float:
			le.PutUint32(raw[4*i:], math.Float32bits(float32(a.Float(i))))
		case graph.Double:
			le.PutUint64(raw[8*i:], math.Float64bits(a.Float(i)))
		case graph.Float16, graph.BFloat16:
			le.PutUint16(raw[2*i:], narrow(a.Elem).Encode(a.Float(i), exact))
		case graph.Float8E4M3, graph.Float8E4M3U, graph.Float8E5M2, graph.Float8E5M2U, graph.Float8E8M0:
			raw[i] = byte(narrow(a.Elem).Encode(a.Float(i), exact))
		case graph.Float4E2M1:
			raw[i/2] |= byte(narrow(a.Elem).Encode(a.Float(i), exact)) << (4 * (i & 1))
		case graph.Bool, graph.Uint8, graph.Int8:
			raw[i] = byte(a.I64[i])
		case graph.Uint16, graph.Int16:
			le.PutUint16(raw[2*i:], uint16(a.I64[i]))
		case graph.Uint32, graph.Int32:
			le.PutUint32(raw[4*i:], uint32(a.I64[i]))
		case graph.Int64, graph.Uint64:
			le.PutUint64(raw[8*i:], uint64(a.I64[i]))
		case graph.Uint4, graph.Int4:
			raw[i/2] |= byte(a.I64[i]&15) << (4 * (i & 1))
		case graph.Uint2, graph.Int2:
			raw[i/4] |= byte(a.I64[i]&3) << (2 * (i & 3))
		case graph.Complex64:
			le.PutUint32(raw[8*i:], math.Float32bits(float32(real(a.C128[i]))))
			le.PutUint32(raw[8*i+4:], math.Float32bits(float32(imag(a.C128[i]))))
		case graph.Complex128:
			le.PutUint64(raw[16*i:], math.Float64bits(real(a.C128[i])))
			le.PutUint64(raw[16*i+8:], math.Float64bits(imag(a.C128[i])))
		}
	}
	t.Data = graph.Bytes(raw)
	return t
}

// Round brings every element into the range and precision of a's element type: narrow floats are
// rounded to nearest even, integers wrap as two's complement, bool becomes 0 or 1. Float64 storage of
// other types than double (float64 mode) is left alone. It returns a.
func (a *Array) Round() *Array {
	switch {
	case a.F32 != nil && a.Elem != graph.Float:
		f := narrow(a.Elem)
		for i, x := range a.F32 {
			a.F32[i] = float32(f.Decode(f.Encode(float64(x), exact)))
		}
	case a.I64 != nil:
		wrap := wrapper(a.Elem)
		if wrap == nil {
			break
		}
		for i, x := range a.I64 {
			a.I64[i] = wrap(x)
		}
	}
	return a
}

// wrapper returns the function that wraps an int64 to the integer type, nil for the 64-bit ones.
func wrapper(t graph.DataType) func(int64) int64 {
	switch t {
	case graph.Bool:
		return func(x int64) int64 {
			if x != 0 {
				return 1
			}
			return 0
		}
	case graph.Int8:
		return func(x int64) int64 { return int64(int8(x)) }
	case graph.Uint8:
		return func(x int64) int64 { return int64(uint8(x)) }
	case graph.Int16:
		return func(x int64) int64 { return int64(int16(x)) }
	case graph.Uint16:
		return func(x int64) int64 { return int64(uint16(x)) }
	case graph.Int32:
		return func(x int64) int64 { return int64(int32(x)) }
	case graph.Uint32:
		return func(x int64) int64 { return int64(uint32(x)) }
	case graph.Uint4:
		return func(x int64) int64 { return x & 15 }
	case graph.Int4:
		return func(x int64) int64 { return int64(int8(x<<4) >> 4) }
	case graph.Uint2:
		return func(x int64) int64 { return x & 3 }
	case graph.Int2:
		return func(x int64) int64 { return int64(int8(x<<6) >> 6) }
	}
	return nil
}

// exact keeps infinities and NaN as they are: whatever saturates has done so before.
var exact = half.Mode{NoSaturate: true}

// narrow returns the format of a float type of at most 16 bits.
func narrow(t graph.DataType) half.Format {
	switch t {
	case graph.Float16:
		return half.Float16
	case graph.BFloat16:
		return half.BFloat16
	case graph.Float8E4M3:
		return half.E4M3FN
	case graph.Float8E4M3U:
		return half.E4M3FNUZ
	case graph.Float8E5M2:
		return half.E5M2
	case graph.Float8E5M2U:
		return half.E5M2FNUZ
	case graph.Float4E2M1:
		return half.E2M1
	}
	return half.E8M0
}
