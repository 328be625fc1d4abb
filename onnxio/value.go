package onnxio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"gradtool/graph"
	"gradtool/onnxio/internal/wire"
	"gradtool/onnxio/onnxpb"
)

// A Datum is a value in a file of its own, as test data have it: input_0.pb beside a model. Kind tells
// which other fields count.
type Datum struct {
	Kind   graph.Kind
	Name   string
	Tensor *graph.Tensor // KindTensor
	Sparse *graph.Sparse // KindSparse
	// Items are the elements of a sequence or the values of a map, in the order of its Keys. An optional
	// has none or one.
	Items []*Datum
	Keys  *graph.Tensor // of a map: a vector of integers or strings
}

// ReadTensor reads a file that holds one TensorProto, with its name.
func ReadTensor(path string) (*graph.Tensor, error) {
	d, err := ReadDatum(path, graph.Type{Kind: graph.KindTensor})
	if err != nil {
		return nil, err
	}
	return d.Tensor, nil
}

// ReadDatum reads a file that holds one value. The file does not say of what kind it is; t, usually
// the type of the model's input or output, does. Of an unknown type, a tensor or sequence is recognized.
// If the bytes are no such value, the error is a [*FormatError].
func ReadDatum(path string, t graph.Type) (*Datum, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseDatum(b, path, filepath.Dir(path), t)
}

// ParseDatum is ReadDatum for bytes, which must not change as long as the value is used; name is for
// messages.
func ParseDatum(b []byte, name string, t graph.Type) (*Datum, error) {
	return parseDatum(b, name, ".", t)
}

func parseDatum(b []byte, name, dir string, t graph.Type) (*Datum, error) {
	f := &file{name: name, dir: dir, src: wire.FromBytes(b), store: wire.NewStore()}
	read := func(m proto.Message) error {
		err := f.store.Read(f.src, m)
		switch syntax, ok := errors.AsType[*wire.SyntaxError](err); {
		case ok:
			return &FormatError{File: name, Offset: syntax.Offset, Msg: "not a value of the expected kind: " + syntax.Reason, Err: err}
		case err == wire.ErrEmpty || errors.Is(err, wire.ErrEmpty):
			// A tensor without any field is no valid one; an optional without value may be written so.
			if t.Kind == graph.KindOptional {
				return nil
			}
			return &FormatError{File: name, Offset: -1, Msg: "empty file", Err: err}
		}
		return err
	}
	switch t.Kind {
	case graph.KindSequence:
		m := new(onnxpb.SequenceProto)
		if err := read(m); err != nil {
			return nil, err
		}
		return f.sequence(m)
	case graph.KindOptional:
		m := new(onnxpb.OptionalProto)
		if err := read(m); err != nil {
			return nil, err
		}
		return f.optional(m)
	case graph.KindMap:
		m := new(onnxpb.MapProto)
		if err := read(m); err != nil {
			return nil, err
		}
		return f.mapping(m)
	case graph.KindSparse:
		m := new(onnxpb.SparseTensorProto)
		if err := read(m); err != nil {
			return nil, err
		}
		return f.sparseDatum(m)
	}
	m := new(onnxpb.TensorProto)
	err := read(m)
	if err == nil && graph.DataType(m.GetDataType()).Valid() {
		return f.tensorDatum(m), nil
	}
	if t.Kind == graph.KindUnknown {
		s := new(onnxpb.SequenceProto)
		if read(s) == nil && s.ElemType != nil {
			return f.sequence(s)
		}
	}
	if err == nil {
		err = &FormatError{File: name, Offset: -1, Msg: fmt.Sprintf("not a tensor: its element type is %d", m.GetDataType())}
	}
	return nil, err
}

func (f *file) tensorDatum(pb *onnxpb.TensorProto) *Datum {
	t := f.tensor(pb, fmt.Sprintf("tensor %q", pb.GetName()))
	t.Name = pb.GetName()
	return &Datum{Kind: graph.KindTensor, Name: t.Name, Tensor: t}
}

func (f *file) sparseDatum(pb *onnxpb.SparseTensorProto) (*Datum, error) {
	if pb.Values == nil || pb.Indices == nil {
		return nil, &FormatError{File: f.name, Offset: -1, Msg: "a sparse tensor without values or indices"}
	}
	r := &reader{file: f}
	return &Datum{Kind: graph.KindSparse, Name: pb.Values.GetName(), Sparse: r.sparse(pb, "sparse tensor")}, nil
}

func (f *file) sequence(pb *onnxpb.SequenceProto) (*Datum, error) {
	d := &Datum{Kind: graph.KindSequence, Name: pb.GetName()}
	for _, t := range pb.TensorValues {
		d.Items = append(d.Items, f.tensorDatum(t))
	}
	add := func(item *Datum, err error) error {
		d.Items = append(d.Items, item)
		return err
	}
	for _, t := range pb.SparseTensorValues {
		if err := add(f.sparseDatum(t)); err != nil {
			return nil, err
		}
	}
	for _, s := range pb.SequenceValues {
		if err := add(f.sequence(s)); err != nil {
			return nil, err
		}
	}
	for _, m := range pb.MapValues {
		if err := add(f.mapping(m)); err != nil {
			return nil, err
		}
	}
	for _, o := range pb.OptionalValues {
		if err := add(f.optional(o)); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (f *file) optional(pb *onnxpb.OptionalProto) (*Datum, error) {
	d := &Datum{Kind: graph.KindOptional, Name: pb.GetName()}
	var item *Datum
	var err error
	switch {
	case pb.TensorValue != nil:
		item = f.tensorDatum(pb.TensorValue)
	case pb.SparseTensorValue != nil:
		item, err = f.sparseDatum(pb.SparseTensorValue)
	case pb.SequenceValue != nil:
		item, err = f.sequence(pb.SequenceValue)
	case pb.MapValue != nil:
		item, err = f.mapping(pb.MapValue)
	case pb.OptionalValue != nil:
		item, err = f.optional(pb.OptionalValue)
	default:
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	d.Items = []*Datum{item}
	return d, nil
}

func (f *file) mapping(pb *onnxpb.MapProto) (*Datum, error) {
	d := &Datum{Kind: graph.KindMap, Name: pb.GetName()}
	elem := graph.DataType(pb.GetKeyType())
	switch {
	case elem == graph.String:
		d.Keys = &graph.Tensor{Elem: elem, Dims: []int64{int64(len(pb.StringKeys))}}
		for _, s := range pb.StringKeys {
			d.Keys.Strings = append(d.Keys.Strings, string(s))
		}
	case elem.IsInt() && elem.Bits() >= 8:
		var raw []byte
		for _, k := range pb.Keys {
			raw = appendUint(raw, uint64(k), int64(elem.Bits()/8))
		}
		d.Keys = &graph.Tensor{Elem: elem, Dims: []int64{int64(len(pb.Keys))}, Data: graph.Bytes(raw)}
	default:
		return nil, &FormatError{File: f.name, Offset: -1, Msg: fmt.Sprintf("map %q has keys of type %d", d.Name, pb.GetKeyType())}
	}
	if pb.Values != nil {
		values, err := f.sequence(pb.Values)
		if err != nil {
			return nil, err
		}
		d.Items = values.Items
	}
	if int64(len(d.Items)) != d.Keys.Dims[0] {
		return nil, &FormatError{File: f.name, Offset: -1, Msg: fmt.Sprintf("map %q has %d keys and %d values", d.Name, d.Keys.Dims[0], len(d.Items))}
	}
	return d, nil
}

// WriteTensor writes t, under its name, as a TensorProto.
func WriteTensor(w io.Writer, t *graph.Tensor) error {
	return WriteDatum(w, &Datum{Kind: graph.KindTensor, Name: t.Name, Tensor: t})
}

// WriteDatum writes d as the message of its kind.
func WriteDatum(w io.Writer, d *Datum) error {
	wr := &writer{store: wire.NewStore()}
	m, _ := wr.datum(d)
	if err := joinErrors(wr.errs); err != nil {
		return err
	}
	_, err := wr.store.Write(w, m)
	return err
}

// datum returns the message for d and its kind as SequenceProto and OptionalProto number it.
func (w *writer) datum(d *Datum) (proto.Message, int32) {
	where := func() string { return fmt.Sprintf("value %q", d.Name) }
	switch d.Kind {
	case graph.KindTensor:
		return w.tensor(d.Tensor, d.Name, false, where), int32(onnxpb.SequenceProto_TENSOR)
	case graph.KindSparse:
		return w.sparse(nil, d.Sparse, where), int32(onnxpb.SequenceProto_SPARSE_TENSOR)
	case graph.KindSequence:
		return w.sequence(d), int32(onnxpb.SequenceProto_SEQUENCE)
	case graph.KindMap:
		return w.mapping(d, where), int32(onnxpb.SequenceProto_MAP)
	case graph.KindOptional:
		pb := &onnxpb.OptionalProto{Name: optional(d.Name), ElemType: proto.Int32(0)}
		if len(d.Items) > 0 {
			m, kind := w.datum(d.Items[0])
			pb.ElemType = &kind
			switch m := m.(type) {
			case *onnxpb.TensorProto:
				pb.TensorValue = m
			case *onnxpb.SparseTensorProto:
				pb.SparseTensorValue = m
			case *onnxpb.SequenceProto:
				pb.SequenceValue = m
			case *onnxpb.MapProto:
				pb.MapValue = m
			case *onnxpb.OptionalProto:
				pb.OptionalValue = m
			}
		}
		return pb, int32(onnxpb.SequenceProto_OPTIONAL)
	}
	w.fail(fmt.Errorf("%s is of no kind that a file can hold", where()))
	return &onnxpb.TensorProto{}, 0
}

func (w *writer) sequence(d *Datum) *onnxpb.SequenceProto {
	pb := &onnxpb.SequenceProto{Name: optional(d.Name), ElemType: proto.Int32(int32(onnxpb.SequenceProto_TENSOR))}
	for i, item := range d.Items {
		m, kind := w.datum(item)
		if i > 0 && kind != pb.GetElemType() {
			w.fail(fmt.Errorf("value %q: element %d is of another kind than those before", d.Name, i))
		}
		pb.ElemType = &kind
		switch m := m.(type) {
		case *onnxpb.TensorProto:
			pb.TensorValues = append(pb.TensorValues, m)
		case *onnxpb.SparseTensorProto:
			pb.SparseTensorValues = append(pb.SparseTensorValues, m)
		case *onnxpb.SequenceProto:
			pb.SequenceValues = append(pb.SequenceValues, m)
		case *onnxpb.MapProto:
			pb.MapValues = append(pb.MapValues, m)
		case *onnxpb.OptionalProto:
			pb.OptionalValues = append(pb.OptionalValues, m)
		}
	}
	return pb
}

func (w *writer) mapping(d *Datum, where func() string) *onnxpb.MapProto {
	pb := &onnxpb.MapProto{Name: optional(d.Name), KeyType: proto.Int32(int32(d.Keys.Elem))}
	if d.Keys.Elem == graph.String {
		pb.StringKeys = byteSlices(d.Keys.Strings)
	} else {
		raw, err := d.Keys.Data.Bytes()
		width := d.Keys.Elem.Bits() / 8
		if err != nil || width == 0 || len(raw)%width != 0 {
			w.fail(fmt.Errorf("%s: the keys cannot be read: %w", where(), err))
			return pb
		}
		for key := range slices.Chunk(raw, width) {
			pb.Keys = append(pb.Keys, signed(key, d.Keys.Elem))
		}
	}
	pb.Values = w.sequence(&Datum{Kind: graph.KindSequence, Items: d.Items})
	return pb
}

// signed decodes a little-endian integer of type t.
func signed(b []byte, t graph.DataType) int64 {
	var full [8]byte
	copy(full[:], b)
	v := int64(binary.LittleEndian.Uint64(full[:]))
	if shift := 64 - t.Bits(); t.IsSigned() {
		v = v << shift >> shift
	}
	return v
}
