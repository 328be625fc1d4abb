package isa

import (
	"math"

	"gradtool/internal/half"
	"gradtool/npu/machine"
)

// Core is the contents of a machine's memories, as little-endian 32-bit words.
type Core struct {
	Machine *machine.Machine
	mem     [numSpaces][]uint32
	// Workers is the number of goroutines that a large instruction may use; values do not depend on it.
	Workers int
}

// NewCore returns zeroed memories with dramBytes of DRAM.
func NewCore(m *machine.Machine, dramBytes int64) *Core {
	s := &Core{Machine: m, Workers: 1}
	s.mem[DRAM] = make([]uint32, (dramBytes+3)/4)
	s.mem[Scratch] = make([]uint32, m.Scratchpad.Bytes/4)
	s.mem[Accum] = make([]uint32, m.Accumulator.Bytes/4)
	return s
}

// Words returns a memory. Byte a of it is byte a mod 4, counted from the least significant, of word a / 4.
func (s *Core) Words(space Space) []uint32 { return s.mem[space] }

// words returns the memory of a local address and the number of its word.
func (s *Core) words(a Local) ([]uint32, int) { return s.mem[a.Space()], int(a.Offset() / 4) }

// LoadBytes writes bytes to DRAM.
func (s *Core) LoadBytes(addr int64, data []byte) {
	mem := s.mem[DRAM]
	for ; len(data) > 0 && addr&3 != 0; addr, data = addr+1, data[1:] {
		putSmall(mem, addr, U8, uint32(data[0]))
	}
	for ; len(data) >= 4; addr, data = addr+4, data[4:] {
		mem[addr>>2] = uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
	}
	for i, b := range data {
		putSmall(mem, addr+int64(i), U8, uint32(b))
	}
}

// StoreBytes reads n bytes of DRAM.
func (s *Core) StoreBytes(addr int64, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		a := addr + int64(i)
		out[i] = byte(s.mem[DRAM][a>>2] >> (8 * (a & 3)))
	}
	return out
}

// getSmall reads an element of one or two bytes at a byte address.
func getSmall(mem []uint32, a int64, t DType) uint32 {
	w := mem[a>>2] >> (8 * (a & 3))
	if t.Bytes() == 2 {
		return w & 0xffff
	}
	return w & 0xff
}

// putSmall writes an element of one or two bytes at a byte address.
func putSmall(mem []uint32, a int64, t DType, v uint32) {
	shift := 8 * (a & 3)
	mask := uint32(0xff)
	if t.Bytes() == 2 {
		mask = 0xffff
	}
	mem[a>>2] = mem[a>>2]&^(mask<<shift) | v&mask<<shift
}

// widen returns the bits of the 4-byte element that an element of a narrow type stands for.
func widen(t DType, v uint32) uint32 {
	switch t {
	case F16:
		return math.Float32bits(halfToF32(v))
	case BF16:
		return v << 16
	case I8:
		return uint32(int32(int8(v)))
	}
	return v
}

// halfToF32 widens binary16 exactly.
func halfToF32(v uint32) float32 {
	e, f := v>>10&31, v&0x3ff
	sign := v >> 15 << 31
	switch e {
	case 0:
		x := float32(f) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(x))
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | f<<13)
	}
	return math.Float32frombits(sign | (e+112)<<23 | f<<13)
}

// narrow returns the bits of a narrow element for those of a 4-byte one, rounding floats to nearest even.
func narrow(t DType, w uint32) uint32 {
	switch t {
	case F16:
		return uint32(half.Float16.Encode(float64(math.Float32frombits(w)), half.Mode{}))
	case BF16:
		return uint32(half.BFloat16.Encode(float64(math.Float32frombits(w)), half.Mode{}))
	}
	return w
}

// flush returns zero for a denormal.
func flush(x float32) float32 {
	b := math.Float32bits(x)
	if b&0x7f800000 == 0 {
		return math.Float32frombits(b & (1 << 31))
	}
	return x
}

// fma32 is a*b + c with one rounding: the sum is rounded to odd in binary64, which has more than two digits to spare, and
// then to float32.
func fma32(a, b, c float32) float32 {
	p, z := float64(a)*float64(b), float64(c) // p is exact
	s := p + z
	if s-s != 0 { // infinite or NaN
		return float32(s)
	}
	t := s - p
	err := float64(p-float64(s-t)) + float64(z-t)
	if err != 0 && math.Float64bits(s)&1 == 0 {
		if err > 0 == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return float32(s)
}
