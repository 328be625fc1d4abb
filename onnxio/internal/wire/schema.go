package wire

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"gradtool/onnxio/onnxpb"
)

// A message is what the walks over encoded bytes need to know of one type.
type message struct {
	typ     protoreflect.MessageType
	fields  []field // by number; the largest ONNX number is small
	tensor  bool    // is TensorProto
	reaches bool    // is, or can contain at any depth, TensorProto
}

// A field is one field of a message; the zero field is unknown.
type field struct {
	name  string
	child *message // nil for scalars
	list  bool
	lazy  bool // a tensor payload that is left in the source when large
}

func (m *message) field(n protowire.Number) field {
	if n < protowire.Number(len(m.fields)) {
		return m.fields[n]
	}
	return field{}
}

// schema is computed once from the descriptors and never changed.
var schema = sync.OnceValue(func() map[protoreflect.FullName]*message {
	all := map[protoreflect.FullName]*message{}
	var add func(protoreflect.MessageDescriptor) *message
	add = func(d protoreflect.MessageDescriptor) *message {
		if m := all[d.FullName()]; m != nil {
			return m
		}
		typ, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
		if err != nil {
			panic(err) // a generated message that is not registered: a broken build
		}
		m := &message{typ: typ, tensor: d == (*onnxpb.TensorProto)(nil).ProtoReflect().Descriptor()}
		m.reaches = m.tensor
		all[d.FullName()] = m
		for i := range d.Fields().Len() {
			fd := d.Fields().Get(i)
			for int(fd.Number()) >= len(m.fields) {
				m.fields = append(m.fields, field{})
			}
			f := field{name: string(fd.Name()), list: fd.IsList()}
			if fd.Kind() == protoreflect.MessageKind {
				f.child = add(fd.Message())
			} else if m.tensor {
				f.lazy = fd.IsPacked() || fd.Kind() == protoreflect.BytesKind && !fd.IsList()
			}
			m.fields[fd.Number()] = f
		}
		return m
	}
	roots := onnxpb.File_gradtool_onnx_onnx_proto.Messages()
	for i := range roots.Len() {
		add(roots.Get(i))
	}
	for changed := true; changed; { // least fixed point: the types are recursive
		changed = false
		for _, m := range all {
			for _, f := range m.fields {
				if f.child != nil && f.child.reaches && !m.reaches {
					m.reaches, changed = true, true
				}
			}
		}
	}
	return all
})

func schemaOf(m proto.Message) (*message, error) {
	name := m.ProtoReflect().Descriptor().FullName()
	if s := schema()[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%s is not an ONNX message", name)
}
