package onnxio

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"gradtool/graph"
	"gradtool/onnxio/internal/wire"
	"gradtool/onnxio/onnxpb"
)

// tensor returns the message for t under a name; where names it in messages. Only an initializer may
// have its data moved to an external file.
func (w *writer) tensor(t *graph.Tensor, name string, init bool, where func() string) *onnxpb.TensorProto {
	src := source[onnxpb.TensorProto](w, t.Src)
	p := patchOf(src)
	if src.GetName() != name {
		p.edit().Name = optional(name)
	}
	if p.fresh || src.GetDataType() != int32(t.Elem) {
		p.edit().DataType = proto.Int32(int32(t.Elem))
	}
	if !same(src.GetDims(), t.Dims) {
		p.edit().Dims = t.Dims
	}
	if t.Elem == graph.String && t.Data == nil {
		if p.fresh || !slices.EqualFunc(src.GetStringData(), t.Strings, func(b []byte, s string) bool { return string(b) == s }) {
			w.newData(p.edit(), t, where)
		}
		return p.P
	}
	kept := w.kept(t)
	d, _ := t.Data.(*data)
	switch {
	case w.side != nil && init && t.ByteLen() >= w.side.threshold:
		w.moveOut(p.edit(), t, where)
	case !kept:
		w.newData(p.edit(), t, where)
	case d.isExternal() && !w.staysExternal(d.file):
		w.newData(p.edit(), t, where)
	}
	return p.P
}

// kept reports whether t still has the data and the element type of the message it was read from.
func (w *writer) kept(t *graph.Tensor) bool {
	src, ok := t.Src.(*origin[*onnxpb.TensorProto])
	if !ok {
		return false
	}
	d, ok := t.Data.(*data)
	return ok && d.pb == src.pb && d.pb.GetDataType() == int32(t.Elem)
}

// staysExternal reports whether references to external data of f hold where the output will be.
func (w *writer) staysExternal(f *file) bool {
	if w.side != nil || w.dir == "" {
		return false
	}
	stays, known := w.same[f]
	if !known {
		stays = sameDir(w.dir, f.dir)
		w.same[f] = stays
	}
	return stays
}

// newData gives pb the data of t in place of any it had.
func (w *writer) newData(pb *onnxpb.TensorProto, t *graph.Tensor, where func() string) {
	pb.ExternalData, pb.DataLocation, pb.Segment = nil, nil, nil
	if err := w.store.SetSpans(pb); err != nil {
		w.fail(fmt.Errorf("%s: %w", where(), err))
		return
	}
	ref, err := w.payload(t, where)
	if err != nil {
		w.fail(err)
		return
	}
	switch d, _ := t.Data.(*data); {
	case t.Elem == graph.String:
		pb.StringData = byteSlices(t.Strings)
	case d != nil && d.isExternal() && w.staysExternal(d.file):
		// A new tensor with the data of one that was read.
		pb.ExternalData, pb.DataLocation = d.pb.ExternalData, d.pb.DataLocation
	case ref.Len() < smallData:
		b, err := ref.Bytes()
		if err != nil {
			w.fail(fmt.Errorf("%s: %w", where(), err))
		}
		pb.RawData = append([]byte{}, b...)
	default:
		if err := w.store.SetRef(pb, ref); err != nil {
			w.fail(fmt.Errorf("%s: %w", where(), err))
		}
	}
}

// smallData is the length below which data are put into the message itself.
const smallData = 1 << 10

// payload returns the elements of t in the layout of raw_data, without reading them if they lie so in
// a file. Its errors name the tensor.
func (w *writer) payload(t *graph.Tensor, where func() string) (wire.Ref, error) {
	switch d := t.Data.(type) {
	case *data: // names itself in errors
		if ref, ok, err := d.ref(); err != nil {
			return wire.Ref{}, err
		} else if ok {
			return ref, named(t.Check(), where)
		}
		b, err := d.Bytes()
		if err != nil {
			return wire.Ref{}, err
		}
		return wire.BytesRef(b), named(t.Check(), where)
	case *sparse:
		b, err := d.Bytes()
		if err != nil {
			return wire.Ref{}, err
		}
		return wire.BytesRef(b), named(t.Check(), where)
	case nil:
		return wire.Ref{}, named(t.Check(), where)
	}
	if err := t.Check(); err != nil {
		return wire.Ref{}, named(err, where)
	}
	b, err := t.Data.Bytes()
	return wire.BytesRef(b), named(err, where)
}

func named(err error, where func() string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", where(), err)
}

// sparseInit returns the message for a sparse initializer that is still what was read; nil for any
// other. One that was changed is written as a dense initializer.
func (w *writer) sparseInit(v *graph.Value) *onnxpb.SparseTensorProto {
	t := v.Init
	o, ok := t.Src.(*origin[*onnxpb.SparseTensorProto])
	if !ok {
		return nil
	}
	s, ok := t.Data.(*sparse)
	if !ok || s.values.pb != o.pb.GetValues() || int32(t.Elem) != o.pb.GetValues().GetDataType() || !same(t.Dims, o.pb.Dims) {
		return nil
	}
	src := take(w, o.file, o.pb)
	p := patchOf(src)
	values := patchOf(src.GetValues())
	if values.P.GetName() != v.Name {
		values.edit().Name = proto.String(v.Name)
	}
	where := func() string { return fmt.Sprintf("sparse initializer %q", v.Name) }
	values.P = w.embed(s.values, values.P, where)
	if values.P != src.GetValues() && !(src.GetValues() == nil && v.Name == "") {
		p.edit().Values = values.P
	}
	if index := w.embed(s.index, src.GetIndices(), where); index != src.GetIndices() {
		p.edit().Indices = index
	}
	return p.P
}

// embed returns pb, whose data d is, with external data put into it if they cannot stay where they are.
func (w *writer) embed(d *data, pb *onnxpb.TensorProto, where func() string) *onnxpb.TensorProto {
	if !d.isExternal() || w.staysExternal(d.file) {
		return pb
	}
	pb = shallow(pb)
	w.newData(pb, &graph.Tensor{Elem: graph.DataType(pb.GetDataType()), Dims: pb.Dims, Data: d}, where)
	return pb
}

// training returns the training graphs of a file, which are kept as they are, apart from external data
// that cannot stay where they are.
func (w *writer) training(f *file, list []*onnxpb.TrainingInfoProto) []*onnxpb.TrainingInfoProto {
	if len(list) == 0 || w.staysExternal(f) {
		return list
	}
	out := slices.Clone(list)
	for i, t := range list {
		c := proto.CloneOf(t)
		if w.embedAll(f, c.ProtoReflect()) {
			out[i] = c
		}
	}
	return out
}

// embedAll embeds the external data of every tensor in m and reports whether there were any.
func (w *writer) embedAll(f *file, m protoreflect.Message) (changed bool) {
	if pb, ok := m.Interface().(*onnxpb.TensorProto); ok && pb.GetDataLocation() == onnxpb.TensorProto_EXTERNAL {
		what := fmt.Sprintf("training tensor %q", pb.GetName())
		d := &data{file: f, pb: shallow(pb), what: what}
		w.newData(pb, &graph.Tensor{Elem: graph.DataType(pb.GetDataType()), Dims: pb.Dims, Data: d}, func() string { return what })
		return true
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Kind() != protoreflect.MessageKind:
		case fd.IsList():
			for i := range v.List().Len() {
				changed = w.embedAll(f, v.List().Get(i).Message()) || changed
			}
		default:
			changed = w.embedAll(f, v.Message()) || changed
		}
		return true
	})
	return changed
}

// A sidecar is the external data file of a model being written.
type sidecar struct {
	name      string
	threshold int64
	chunks    []chunk
	end       int64
}

type chunk struct {
	at  int64
	ref wire.Ref
}

// pageSize is what offsets of external data are multiples of, so that a reader can map each tensor
// (the comment at TensorProto.external_data in the standard's schema).
const pageSize = 4096

// moveOut makes pb refer to data of t that go to the sidecar.
func (w *writer) moveOut(pb *onnxpb.TensorProto, t *graph.Tensor, where func() string) {
	pb.Segment = nil
	if err := w.store.SetSpans(pb); err != nil {
		w.fail(fmt.Errorf("%s: %w", where(), err))
		return
	}
	ref, err := w.payload(t, where)
	if err != nil {
		w.fail(err)
		return
	}
	s := w.side
	at := (s.end + pageSize - 1) / pageSize * pageSize
	s.chunks = append(s.chunks, chunk{at, ref})
	s.end = at + ref.Len()
	entry := func(key, value string) *onnxpb.StringStringEntryProto {
		return &onnxpb.StringStringEntryProto{Key: proto.String(key), Value: proto.String(value)}
	}
	pb.DataLocation = onnxpb.TensorProto_EXTERNAL.Enum()
	pb.ExternalData = []*onnxpb.StringStringEntryProto{
		entry("location", s.name),
		entry("offset", strconv.FormatInt(at, 10)),
		entry("length", strconv.FormatInt(ref.Len(), 10)),
	}
}

// write writes the data, each at its offset.
func (s *sidecar) write(f *os.File) error {
	for _, c := range s.chunks {
		if _, err := f.Seek(c.at, io.SeekStart); err != nil {
			return err
		}
		if _, err := c.ref.WriteTo(f); err != nil {
			return err
		}
	}
	return nil
}
