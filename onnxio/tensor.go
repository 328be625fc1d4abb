package onnxio

import (
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"gradtool/graph"
	"gradtool/onnxio/internal/wire"
	"gradtool/onnxio/onnxpb"
)

// data is the elements of a tensor of a file, a [graph.Blob]. Where the file holds them in the layout
// of raw_data, nothing is read before Bytes and nothing copied by it; typed lists are decoded then.
type data struct {
	file *file
	pb   *onnxpb.TensorProto
	what string // for messages: initializer "w"

	decoded func() ([]byte, error) // of typed lists, once
}

// tensor wraps pb; what names it in messages.
func (f *file) tensor(pb *onnxpb.TensorProto, what string) *graph.Tensor {
	t := &graph.Tensor{
		Elem: graph.DataType(pb.GetDataType()),
		Dims: slices.Clone(pb.Dims),
		Src:  &origin[*onnxpb.TensorProto]{f, pb},
	}
	if t.Elem == graph.String && pb.GetDataLocation() != onnxpb.TensorProto_EXTERNAL {
		t.Strings = make([]string, len(pb.StringData))
		for i, s := range pb.StringData {
			t.Strings[i] = string(s)
		}
		return t
	}
	d := &data{file: f, pb: pb, what: what}
	d.decoded = sync.OnceValues(d.decode)
	t.Data = d
	return t
}

// want returns the number of bytes that shape and element type ask for, -1 if they make no sense.
func (d *data) want() int64 {
	t := graph.Tensor{Elem: graph.DataType(d.pb.GetDataType()), Dims: d.pb.Dims}
	if !t.Elem.Valid() {
		return -1
	}
	return t.ByteLen()
}

// isExternal reports whether the elements are in a file of their own.
func (d *data) isExternal() bool {
	return d.pb.GetDataLocation() == onnxpb.TensorProto_EXTERNAL
}

// Len returns the number of bytes that Bytes returns; if Bytes fails, what the file seems to hold.
func (d *data) Len() int64 {
	if d.isExternal() {
		if at, err := d.location(); err == nil && at.length >= 0 {
			return at.length
		}
		return max(d.want(), 0)
	}
	if n, ok := d.rawLen(); ok {
		return n
	}
	count, width := d.typedLen()
	return count * width
}

// Bytes returns the elements. It fails, naming the tensor, if they do not fit its shape and type or
// cannot be read.
func (d *data) Bytes() ([]byte, error) {
	ref, ok, err := d.ref()
	if err != nil {
		return nil, err
	}
	if !ok {
		return d.decoded()
	}
	b, err := ref.Bytes()
	if err != nil {
		return nil, d.errorf("%w", err)
	}
	return b, nil
}

func (d *data) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", d.file.name, d.what, fmt.Errorf(format, args...))
}

// check compares a number of bytes with what the shape asks for.
func (d *data) check(n int64, where string) error {
	elem := graph.DataType(d.pb.GetDataType())
	want := d.want()
	switch {
	case !elem.Valid():
		return d.errorf("element type %d is not known", d.pb.GetDataType())
	case want < 0:
		return d.errorf("dimensions %v are not a shape", d.pb.Dims)
	case d.pb.Segment != nil:
		return d.errorf("tensors stored in segments are not supported")
	case n != want:
		return d.errorf("%d bytes in %s, want %d for %s%v", n, where, want, elem, d.pb.Dims)
	}
	return nil
}

// ref returns where the elements lie in the layout of raw_data; ok is false if they do not and must
// be decoded. The length has been checked.
func (d *data) ref() (r wire.Ref, ok bool, err error) {
	if d.isExternal() {
		r, err = d.externalRef()
		return r, err == nil, err
	}
	spans, err := d.file.store.Spans(d.pb)
	if err != nil {
		return r, false, d.errorf("%w", err)
	}
	for _, sp := range spans {
		if sp.Field == wire.RawData {
			return sp.Ref, true, d.check(sp.Ref.Len(), "raw_data")
		}
	}
	if len(d.pb.RawData) > 0 || d.pb.RawData != nil && d.want() == 0 {
		return wire.BytesRef(d.pb.RawData), true, d.check(int64(len(d.pb.RawData)), "raw_data")
	}
	field, name := typedField(graph.DataType(d.pb.GetDataType()))
	for _, sp := range spans {
		if sp.Field == field && (field == wire.FloatData || field == wire.DoubleData) {
			return sp.Ref, true, d.check(sp.Ref.Len(), name)
		}
	}
	return wire.Ref{}, false, nil
}

// rawLen returns the length of raw_data or of a span laid out like it.
func (d *data) rawLen() (int64, bool) {
	spans, err := d.file.store.Spans(d.pb)
	if err != nil {
		return 0, false
	}
	for _, sp := range spans {
		if sp.Field == wire.RawData {
			return sp.Ref.Len(), true
		}
	}
	return int64(len(d.pb.RawData)), len(d.pb.RawData) > 0
}

// typedField returns the list of a TensorProto that holds elements of type t, if raw_data does not.
func typedField(t graph.DataType) (protowire.Number, string) {
	switch t {
	case graph.Float, graph.Complex64:
		return wire.FloatData, "float_data"
	case graph.Double, graph.Complex128:
		return wire.DoubleData, "double_data"
	case graph.Int64:
		return wire.Int64Data, "int64_data"
	case graph.Uint64, graph.Uint32:
		return wire.Uint64Data, "uint64_data"
	}
	return wire.Int32Data, "int32_data"
}
