package onnxio

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"gradtool/graph"
	"gradtool/onnxio/internal/wire"
	"gradtool/onnxio/onnxpb"
)

// An origin, in a Src field, is the message that an object was read from. It is never changed.
type origin[M proto.Message] struct {
	file *file
	pb   M
}

// A message is a pointer to a generated message type.
type message[T any] interface {
	*T
	proto.Message
}

// A patch is a message about to be written: the source message itself until the first difference,
// then a copy. A new object has an empty source, from which everything differs that it sets.
type patch[T any, P message[T]] struct {
	P     P
	fresh bool // there is no source message
	dirty bool
}

func patchOf[T any, P message[T]](src P) *patch[T, P] {
	if src == nil {
		return &patch[T, P]{P: new(T), fresh: true, dirty: true}
	}
	return &patch[T, P]{P: src}
}

// edit returns the message to set fields of. Lists are to be replaced, not changed.
func (p *patch[T, P]) edit() P {
	if !p.dirty {
		p.P, p.dirty = shallow(p.P), true
	}
	return p.P
}

// shallow copies a message but not the messages and lists within it.
func shallow[M proto.Message](m M) M {
	from := m.ProtoReflect()
	to := from.New()
	from.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		to.Set(fd, v)
		return true
	})
	to.SetUnknown(from.GetUnknown())
	return to.Interface().(M)
}

// optional is a field value that is left out when empty.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// source returns the message in src for writing with w, nil without one.
func source[T any, P message[T]](w *writer, src any) P {
	if o, ok := src.(*origin[P]); ok {
		return take(w, o.file, o.pb)
	}
	return nil
}

// take returns pb, of file f, as a message of the writer's store. One of another store is copied: the
// references into its file are good anywhere, the marks that stand for them are not.
func take[M proto.Message](w *writer, f *file, pb M) M {
	if f.store == w.store {
		return pb
	}
	out := proto.CloneOf(pb)
	if err := adopt(w.store, f.store, out.ProtoReflect()); err != nil {
		w.fail(err)
	}
	return out
}

func adopt(to, from *wire.Store, m protoreflect.Message) error {
	msg := m.Interface()
	var spans []wire.Span
	t, isTensor := msg.(*onnxpb.TensorProto)
	if isTensor {
		var err error
		if spans, err = from.Spans(t); err != nil {
			return err
		}
	}
	real, err := from.Unknown(msg)
	if err != nil {
		return err
	}
	m.SetUnknown(real)
	if len(spans) > 0 {
		if err := to.SetSpans(t, spans...); err != nil {
			return err
		}
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Kind() != protoreflect.MessageKind:
		case fd.IsList():
			for i := 0; i < v.List().Len() && err == nil; i++ {
				err = adopt(to, from, v.List().Get(i).Message())
			}
		default:
			err = adopt(to, from, v.Message())
		}
		return err == nil
	})
	return err
}

// metaProto returns the entries that m is written as, those of src where they say the same.
func metaProto(src []*onnxpb.StringStringEntryProto, m graph.Meta) []*onnxpb.StringStringEntryProto {
	out := make([]*onnxpb.StringStringEntryProto, len(m))
	next := 0 // the source's entries are used in order, so what stays keeps its bytes
	for i, e := range m {
		for j := next; j < len(src); j++ {
			if src[j].GetKey() == e.Key && src[j].GetValue() == e.Value {
				out[i], next = src[j], j+1
				break
			}
		}
		if out[i] == nil {
			out[i] = &onnxpb.StringStringEntryProto{Key: proto.String(e.Key), Value: proto.String(e.Value)}
		}
	}
	return out
}

func metaOf(src []*onnxpb.StringStringEntryProto) graph.Meta {
	var m graph.Meta
	for _, e := range src {
		m = append(m, graph.MetaEntry{Key: e.GetKey(), Value: e.GetValue()})
	}
	return m
}

// opsetProto is metaProto for opset imports.
func opsetProto(src []*onnxpb.OperatorSetIdProto, list []graph.Opset) []*onnxpb.OperatorSetIdProto {
	out := make([]*onnxpb.OperatorSetIdProto, len(list))
	next := 0
	for i, o := range list {
		for j := next; j < len(src); j++ {
			if src[j].GetDomain() == o.Domain && src[j].GetVersion() == o.Version {
				out[i], next = src[j], j+1
				break
			}
		}
		if out[i] == nil {
			out[i] = &onnxpb.OperatorSetIdProto{Domain: proto.String(o.Domain), Version: proto.Int64(o.Version)}
		}
	}
	return out
}

func opsetsOf(src []*onnxpb.OperatorSetIdProto) []graph.Opset {
	var list []graph.Opset
	for _, o := range src {
		list = append(list, graph.Opset{Domain: o.GetDomain(), Version: o.GetVersion()})
	}
	return list
}
