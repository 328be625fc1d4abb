package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"gradtool/internal/suggest"
	"gradtool/npu/isa"
)

// hostType describes an element type of the model: its size, and whether it is a signed integer.
type hostType struct {
	bytes  int
	signed bool
	device isa.DType
}

// hostTypes are the types that inputs and outputs may have, by ONNX name, with the type that they have on the device.
func hostTypes(name string) (hostType, bool) {
	switch name {
	case "float":
		return hostType{4, true, isa.F32}, true
	case "float16":
		return hostType{2, true, isa.F16}, true
	case "bfloat16":
		return hostType{2, true, isa.BF16}, true
	case "int64":
		return hostType{8, true, isa.I32}, true
	case "uint64":
		return hostType{8, false, isa.I32}, true
	case "int32":
		return hostType{4, true, isa.I32}, true
	case "uint32":
		return hostType{4, false, isa.I32}, true
	case "int16":
		return hostType{2, true, isa.I32}, true
	case "uint16":
		return hostType{2, false, isa.I32}, true
	case "int8":
		return hostType{1, true, isa.I32}, true
	case "uint8", "bool":
		return hostType{1, false, isa.I32}, true
	}
	return hostType{}, false
}

// DeviceType returns the type that elements of an ONNX type have on the device, false if it has no such type.
func DeviceType(name string) (isa.DType, bool) {
	t, ok := hostTypes(name)
	return t.device, ok
}

// ToDevice converts elements of an ONNX type to their form in DRAM. An integer that does not fit 32 bits is an error.
func ToDevice(name string, raw []byte) ([]byte, error) {
	t, ok := hostTypes(name)
	if !ok {
		return nil, fmt.Errorf("the device has no elements of type %s", name)
	}
	if len(raw)%t.bytes != 0 {
		return nil, fmt.Errorf("%d bytes are no whole number of elements of type %s", len(raw), name)
	}
	if t.device != isa.I32 || t.bytes == 4 {
		return raw, nil
	}
	out := make([]byte, 0, len(raw)/t.bytes*4)
	for i := 0; i < len(raw); i += t.bytes {
		v := hostInt(t, raw[i:])
		if v < math.MinInt32 || v > math.MaxInt32 {
			return nil, fmt.Errorf("element %d is %d, which has no room in the 32 bits of the device", i/t.bytes, v)
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	return out, nil
}

// hostInt reads an integer of the model.
func hostInt(t hostType, raw []byte) int64 {
	switch t.bytes {
	case 8:
		v := binary.LittleEndian.Uint64(raw)
		if !t.signed && v > math.MaxInt64 {
			return math.MaxInt64
		}
		return int64(v)
	case 2:
		v := binary.LittleEndian.Uint16(raw)
		if t.signed {
			return int64(int16(v))
		}
		return int64(v)
	case 1:
		if t.signed {
			return int64(int8(raw[0]))
		}
		return int64(raw[0])
	}
	return int64(int32(binary.LittleEndian.Uint32(raw)))
}

// FromDevice converts elements in DRAM to an ONNX type.
func FromDevice(name string, raw []byte) ([]byte, error) {
	t, ok := hostTypes(name)
	if !ok {
		return nil, fmt.Errorf("the device has no elements of type %s", name)
	}
	if t.device != isa.I32 || t.bytes == 4 {
		return raw, nil
	}
	out := make([]byte, 0, len(raw)/4*t.bytes)
	for i := 0; i+4 <= len(raw); i += 4 {
		v := int64(int32(binary.LittleEndian.Uint32(raw[i:])))
		switch {
		case name == "bool" && v != 0:
			out = append(out, 1)
		case t.bytes == 8:
			out = binary.LittleEndian.AppendUint64(out, uint64(v))
		case t.bytes == 2:
			out = binary.LittleEndian.AppendUint16(out, uint16(v))
		default:
			out = append(out, byte(v))
		}
	}
	return out, nil
}

// feed writes the inputs to DRAM.
func (r *runner) feed(inputs map[string][]byte) error {
	var errs []error
	known := map[string]bool{}
	var names []string
	for i := range r.p.Inputs {
		t := &r.p.Inputs[i]
		known[t.Name] = true
		names = append(names, t.Name)
		raw, ok := inputs[t.Name]
		if !ok {
			if !t.Default {
				errs = append(errs, fmt.Errorf("input %q is missing", t.Name))
			}
			continue
		}
		h, ok := hostTypes(t.Type)
		if want := t.Len() * int64(h.bytes); !ok || int64(len(raw)) != want {
			errs = append(errs, fmt.Errorf("input %q: %d bytes given, %s%v has %d", t.Name, len(raw), t.Type, t.Shape, want))
			continue
		}
		dev, err := ToDevice(t.Type, raw)
		if err != nil {
			errs = append(errs, fmt.Errorf("input %q: %w", t.Name, err))
			continue
		}
		r.preset(t.Addr, dev)
	}
	var unknown []string
	for name := range inputs {
		if !known[name] {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		hint := ""
		if near := suggest.Nearest(name, names); len(near) > 0 {
			hint = fmt.Sprintf(": did you mean %q?", near[0])
		}
		errs = append(errs, fmt.Errorf("the program has no input %q%s", name, hint))
	}
	return errors.Join(errs...)
}

// outputs reads the outputs from DRAM; words that nothing has written are errors.
func (r *runner) outputs() (*Result, error) {
	res := &Result{Outputs: map[string][]byte{}}
	for i := range r.p.Outputs {
		t := &r.p.Outputs[i]
		n := t.Len() * int64(t.Device.Bytes())
		ok := n == 0 || r.shadows[isa.DRAM].visit(t.Addr, t.Addr+n, func(c *cell, _ int64) bool { return c.w != 0 })
		if !ok {
			return nil, fmt.Errorf("output %q is not written completely", t.Name)
		}
		raw, err := FromDevice(t.Type, r.core.StoreBytes(t.Addr, int(n)))
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", t.Name, err)
		}
		res.Outputs[t.Name] = raw
	}
	return res, nil
}
