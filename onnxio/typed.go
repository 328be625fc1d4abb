package onnxio

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"gradtool/graph"
	"gradtool/onnxio/internal/wire"
)

// entryWidth returns how many bytes of raw data one entry of the typed list for t stands for: one
// element, half a complex one, or a byte full of elements of fewer than 8 bits.
func entryWidth(t graph.DataType) int64 {
	switch {
	case t.IsComplex():
		return int64(t.Bits()) / 16
	case t.Bits() < 8:
		return 1
	}
	return int64(t.Bits()) / 8
}

// typedSpan returns the typed list's packed encoding, if it was left in the file.
func (d *data) typedSpan() ([]byte, bool, error) {
	field, _ := typedField(graph.DataType(d.pb.GetDataType()))
	spans, err := d.file.store.Spans(d.pb)
	if err != nil {
		return nil, false, err
	}
	for _, sp := range spans {
		if sp.Field == field {
			b, err := sp.Ref.Bytes()
			return b, true, err
		}
	}
	return nil, false, nil
}

// typedLen returns the number of entries in the typed list and the bytes that each stands for. A
// packed list of varints is counted by the bytes that end one.
func (d *data) typedLen() (count, width int64) {
	elem := graph.DataType(d.pb.GetDataType())
	width = entryWidth(elem)
	field, _ := typedField(elem)
	if b, ok, err := d.typedSpan(); err == nil && ok {
		switch field {
		case wire.FloatData:
			return int64(len(b)) / 4, width
		case wire.DoubleData:
			return int64(len(b)) / 8, width
		}
		for _, c := range b {
			count += int64(^c >> 7)
		}
		return count, width
	}
	switch field {
	case wire.FloatData:
		count = int64(len(d.pb.FloatData))
	case wire.DoubleData:
		count = int64(len(d.pb.DoubleData))
	case wire.Int64Data:
		count = int64(len(d.pb.Int64Data))
	case wire.Uint64Data:
		count = int64(len(d.pb.Uint64Data))
	default:
		count = int64(len(d.pb.Int32Data))
	}
	return count, width
}

// decode makes raw data of the typed list. Nothing is allocated before the number of entries, which
// the file really holds, is known to fit the shape.
func (d *data) decode() ([]byte, error) {
	elem := graph.DataType(d.pb.GetDataType())
	field, name := typedField(elem)
	count, width := d.typedLen()
	if err := d.check(count*width, name); err != nil {
		return nil, err
	}
	out := make([]byte, 0, count*width)
	packed, inFile, err := d.typedSpan()
	if err != nil {
		return nil, d.errorf("%w", err)
	}
	if inFile { // floats are read in place, see ref
		for len(packed) > 0 {
			v, n := protowire.ConsumeVarint(packed)
			if n < 0 {
				return nil, d.errorf("%s is damaged: %w", name, protowire.ParseError(n))
			}
			out, packed = appendUint(out, v, width), packed[n:]
		}
		return out, nil
	}
	switch field {
	case wire.FloatData:
		for _, v := range d.pb.FloatData {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	case wire.DoubleData:
		for _, v := range d.pb.DoubleData {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
		}
	case wire.Int64Data:
		for _, v := range d.pb.Int64Data {
			out = binary.LittleEndian.AppendUint64(out, uint64(v))
		}
	case wire.Uint64Data:
		for _, v := range d.pb.Uint64Data {
			out = appendUint(out, v, width)
		}
	default:
		for _, v := range d.pb.Int32Data {
			out = appendUint(out, uint64(v), width)
		}
	}
	return out, nil
}

// appendUint appends the low bytes of v.
func appendUint(b []byte, v uint64, width int64) []byte {
	switch width {
	case 1:
		return append(b, byte(v))
	case 2:
		return binary.LittleEndian.AppendUint16(b, uint16(v))
	case 4:
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return binary.LittleEndian.AppendUint64(b, v)
}
