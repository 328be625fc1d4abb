package isa

import (
	"math"

	"gradtool/npu/machine"
)

// Element returns the function of one element of an element-wise instruction of type t, converting to type to if it is a conversion. Operands and
// results are words; those of 16-bit types have their bits in the low half.
func (d *Intrinsic) Element(n machine.Numerics, t, to DType) func(a, b, c uint32) uint32 {
	switch {
	case d.Op == OpMov:
		return func(a, _, _ uint32) uint32 { return a }
	case d.Op == OpCvt:
		return func(a, _, _ uint32) uint32 { return Convert(t, to, a) }
	case t == I32:
		f := d.I32
		return func(a, b, c uint32) uint32 { return uint32(f(int32(a), int32(b), int32(c))) }
	}
	return func(a, b, c uint32) uint32 { return d.float(n, a, b, c) }
}

// Convert returns an element of type t in type to.
func Convert(t, to DType, a uint32) uint32 {
	if t.Bytes() != 4 {
		a, t = widen(t, a), F32
	}
	switch {
	case t == F32 && to == I32:
		return uint32(truncI32(math.Float32frombits(a)))
	case t == I32 && to == F32:
		return math.Float32bits(float32(int32(a)))
	case to.Bytes() != 4:
		return narrow(to, a)
	}
	return a
}

// MAC returns c + a*b by the numeric contract.
func MAC(n machine.Numerics, c, a, b float32) float32 {
	if n.Flush {
		c, a, b = flush(c), flush(a), flush(b)
	}
	return mac(n.Fused, n.Flush, c, a, b)
}

// float computes one element of a float instruction.
func (d *Intrinsic) float(n machine.Numerics, a, b, c uint32) uint32 {
	x, y, z := math.Float32frombits(a), math.Float32frombits(b), math.Float32frombits(c)
	if n.Flush {
		x, y, z = flush(x), flush(y), flush(z)
	}
	if d.FCmp != nil {
		return uint32(bit(d.FCmp(x, y)))
	}
	var r float32
	if d.Op == OpFma {
		r = mac(n.Fused, n.Flush, z, x, y)
	} else {
		r = d.F32(x, y, z)
	}
	if n.Flush {
		r = flush(r)
	}
	return math.Float32bits(r)
}
