package lower

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gradtool/npu/emit"
	"gradtool/npu/isa"
	"gradtool/npu/legal"
	"gradtool/npu/sim"
)

// Execute computes the outputs, in the bytes of the model's types, from the kernels and their tiles, by the numeric contract: what the program
// gives in the simulator, bit by bit, but that the bits of a NaN are open. It depends on the instructions made in nothing.
func (r *Result) Execute(inputs map[string][]byte) (map[string][]byte, error) {
	if r.Program == nil {
		return nil, errors.New("the model has operators that cannot be lowered")
	}
	x := &emit.Exact{Machine: r.Program.Machine, Mem: map[*legal.Buffer][]uint32{}}
	for _, b := range r.Legal.Buffers {
		if b.Role == legal.Const {
			data, err := constant(b)
			if err != nil {
				return nil, err
			}
			x.Mem[b] = wordsOf(data, isa.F32)
		}
	}
	for i, in := range r.Legal.Inputs {
		raw, ok := inputs[in.Name]
		if !ok {
			if x.Mem[in.Buf] != nil {
				continue // it has a default
			}
			return nil, fmt.Errorf("input %q is missing", in.Name)
		}
		t := &r.Program.Inputs[i]
		data, err := sim.ToDevice(t.Type, raw)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", in.Name, err)
		}
		if want := int(t.Len()) * t.Device.Bytes(); len(data) != want {
			return nil, fmt.Errorf("input %q has %d bytes on the device, want %d", in.Name, len(data), want)
		}
		x.Mem[in.Buf] = wordsOf(data, t.Device)
	}
	for i, k := range r.Legal.Kernels {
		if err := x.Kernel(k, r.plans[i]); err != nil {
			return nil, err
		}
	}
	out := map[string][]byte{}
	for i, y := range r.Legal.Outputs {
		t := &r.Program.Outputs[i]
		raw, err := sim.FromDevice(t.Type, bytesOf(x.Mem[y.Buf][:t.Len()], t.Device))
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", y.Name, err)
		}
		out[y.Name] = raw
	}
	return out, nil
}

// wordsOf returns elements of a type as words, widened.
func wordsOf(data []byte, t isa.DType) []uint32 {
	out := make([]uint32, 0, len(data)/t.Bytes())
	for i := 0; i+t.Bytes() <= len(data); i += t.Bytes() {
		if t.Bytes() == 2 {
			out = append(out, isa.Convert(t, isa.F32, uint32(binary.LittleEndian.Uint16(data[i:]))))
		} else {
			out = append(out, binary.LittleEndian.Uint32(data[i:]))
		}
	}
	return out
}

// bytesOf is the inverse of wordsOf.
func bytesOf(words []uint32, t isa.DType) []byte {
	out := make([]byte, 0, len(words)*t.Bytes())
	for _, w := range words {
		if t.Bytes() == 2 {
			out = binary.LittleEndian.AppendUint16(out, uint16(isa.Convert(isa.F32, t, w)))
		} else {
			out = binary.LittleEndian.AppendUint32(out, w)
		}
	}
	return out
}
