package isa

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Version is the version of the binary form of instructions.
const Version = 1

// The binary form of an instruction is a sequence of little-endian 32-bit words:
//
//	word 0  operation code (bits 7:0), length in words (bits 15:8), 0
//	word 1  number of the source node + 1, 0 for none
//	word 2  bits 31:0 of the mask of values that follow
//	word 3  bits 63:32 of it
//	...     the values that are not 0, in the order of the fields: one word each, two for 64-bit values (low word first)
//
// An array is a value for each element; an operand is an address, Dims strides, a flag and a value. Every instruction has one
// form only: a value that follows is not 0.
const headWords = 4

// Encoder encodes instructions. The zero value is ready.
type Encoder struct {
	vals  []uint64
	slots [FormSync + 1][]slot
}

func (e *Encoder) of(f Form) []slot {
	if e.slots[f] == nil {
		e.slots[f] = f.slots()
	}
	return e.slots[f]
}

// Append appends the binary form of an instruction.
func (e *Encoder) Append(buf []byte, in *Instr) ([]byte, error) {
	d := in.Op.Intrinsic()
	if d == nil || !d.Form.holds(in.Args) {
		return nil, fmt.Errorf("%s: operands of another form", in.Op)
	}
	e.vals = values(in.Args, e.vals[:0])
	slots := e.of(d.Form)
	start := len(buf)
	var mask uint64
	buf = append(buf, make([]byte, 4*headWords)...)
	for i, v := range e.vals {
		if v == 0 {
			continue
		}
		mask |= 1 << i
		buf = binary.LittleEndian.AppendUint32(buf, uint32(v))
		if slots[i].wide {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(v>>32))
		}
	}
	words := (len(buf) - start) / 4
	binary.LittleEndian.PutUint32(buf[start:], uint32(in.Op)|uint32(words)<<8)
	binary.LittleEndian.PutUint32(buf[start+4:], uint32(in.Node+1))
	binary.LittleEndian.PutUint64(buf[start+8:], mask)
	return buf, nil
}

// Decode reads an instruction and returns the bytes behind it. Any form that Append does not write is an error.
func (e *Encoder) Decode(buf []byte) (Instr, []byte, error) {
	if len(buf) < 4*headWords {
		return Instr{}, nil, errors.New("the code ends within an instruction")
	}
	w0 := binary.LittleEndian.Uint32(buf)
	op, words := Op(w0), int(w0>>8&0xff)
	d := op.Intrinsic()
	if d == nil || w0>>16 != 0 {
		return Instr{}, nil, fmt.Errorf("no instruction begins with the word 0x%08x", w0)
	}
	if words < headWords || 4*words > len(buf) {
		return Instr{}, nil, fmt.Errorf("%s: length of %d words", d.Name, words)
	}
	node := int32(binary.LittleEndian.Uint32(buf[4:]) - 1)
	mask := binary.LittleEndian.Uint64(buf[8:])
	body := buf[4*headWords : 4*words]
	slots := e.of(d.Form)
	if bits.Len64(mask) > len(slots) {
		return Instr{}, nil, fmt.Errorf("%s: the mask 0x%x names values that it has not", d.Name, mask)
	}
	e.vals = e.vals[:0]
	for i, s := range slots {
		if mask>>i&1 == 0 {
			e.vals = append(e.vals, 0)
			continue
		}
		n := 4
		if s.wide {
			n = 8
		}
		if len(body) < n {
			return Instr{}, nil, fmt.Errorf("%s: too short for its mask", d.Name)
		}
		v := uint64(binary.LittleEndian.Uint32(body))
		if s.wide {
			v = binary.LittleEndian.Uint64(body)
		}
		if v == 0 || s.limit > 0 && v >= s.limit {
			return Instr{}, nil, fmt.Errorf("%s: value %d is %d", d.Name, i, v)
		}
		e.vals = append(e.vals, v)
		body = body[n:]
	}
	if len(body) > 0 {
		return Instr{}, nil, fmt.Errorf("%s: longer than its mask", d.Name)
	}
	in := Instr{Op: op, Node: node, Args: d.Form.New()}
	setValues(in.Args, e.vals)
	return in, buf[4*words:], nil
}
