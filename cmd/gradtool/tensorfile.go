package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"google.golang.org/protobuf/proto"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/npz"
	"gradtool/onnxio"
	"gradtool/onnxio/onnxpb"
)

// named is a run-time value with the name that its file gives it, "" for none.
type named struct {
	name  string
	value *op.Array
}

// readProto reads a .pb file as the standard's test data have them: a TensorProto or, where a value of
// another kind is expected, a SequenceProto or OptionalProto.
func readProto(path string, kind graph.Kind) (named, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return named{}, err
	}
	fail := func(err error) (named, error) { return named{}, fmt.Errorf("%s: %w", path, err) }
	switch kind {
	case graph.KindSequence:
		var pb onnxpb.SequenceProto
		if err := proto.Unmarshal(raw, &pb); err != nil {
			return fail(errors.New("not a SequenceProto"))
		}
		a, err := sequenceArray(&pb)
		if err != nil {
			return fail(err)
		}
		return named{pb.GetName(), a}, nil
	case graph.KindOptional:
		var pb onnxpb.OptionalProto
		if err := proto.Unmarshal(raw, &pb); err != nil {
			return fail(errors.New("not an OptionalProto"))
		}
		a, err := optionalArray(&pb)
		if err != nil {
			return fail(err)
		}
		return named{pb.GetName(), a}, nil
	}
	var pb onnxpb.TensorProto
	if err := proto.Unmarshal(raw, &pb); err != nil || pb.GetDataType() == 0 {
		return fail(errors.New("not a TensorProto"))
	}
	a, err := tensorArray(&pb)
	if err != nil {
		return fail(err)
	}
	return named{pb.GetName(), a}, nil
}

// tensorArray decodes a tensor. Package onnxio reads tensors as parts of models only, so it is given a
// model that has this one.
func tensorArray(pb *onnxpb.TensorProto) (*op.Array, error) {
	t := proto.CloneOf(pb)
	t.Name = proto.String("tensor")
	raw, err := proto.Marshal(&onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{t}}})
	if err != nil {
		return nil, err
	}
	m, closer, err := onnxio.Read(bytes.NewReader(raw), "tensor", onnxio.ReadOptions{})
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	return op.FromTensor(m.Graph.Inits[0].Init, false)
}

func sequenceArray(pb *onnxpb.SequenceProto) (*op.Array, error) {
	seq := op.NewSequence(graph.Undefined)
	add := func(a *op.Array, err error) error {
		if err != nil {
			return err
		}
		seq.Elem = a.Elem
		seq.Seq = append(seq.Seq, a)
		return nil
	}
	for _, t := range pb.TensorValues {
		if err := add(tensorArray(t)); err != nil {
			return nil, err
		}
	}
	for _, t := range pb.SequenceValues {
		if err := add(sequenceArray(t)); err != nil {
			return nil, err
		}
	}
	for _, t := range pb.OptionalValues {
		if err := add(optionalArray(t)); err != nil {
			return nil, err
		}
	}
	if len(pb.SparseTensorValues)+len(pb.MapValues) > 0 {
		return nil, errors.New("sequences of maps or sparse tensors cannot be read")
	}
	return seq, nil
}

func optionalArray(pb *onnxpb.OptionalProto) (*op.Array, error) {
	var a *op.Array
	var err error
	switch {
	case pb.TensorValue != nil:
		a, err = tensorArray(pb.TensorValue)
	case pb.SequenceValue != nil:
		a, err = sequenceArray(pb.SequenceValue)
	case pb.SparseTensorValue != nil || pb.MapValue != nil || pb.OptionalValue != nil:
		err = errors.New("optional maps, optionals and sparse tensors cannot be read")
	}
	if err != nil {
		return nil, err
	}
	elem := graph.Undefined
	if a != nil {
		elem = a.Elem
	}
	return op.NewOptional(elem, a), nil
}

// arrayProto encodes a value under a name, as readProto reads it.
func arrayProto(name string, a *op.Array) (proto.Message, error) {
	switch a.Kind {
	case graph.KindSequence:
		pb := &onnxpb.SequenceProto{Name: proto.String(name), ElemType: proto.Int32(int32(onnxpb.SequenceProto_TENSOR))}
		for _, e := range a.Seq {
			m, err := arrayProto("", e)
			if err != nil {
				return nil, err
			}
			t, ok := m.(*onnxpb.TensorProto)
			if !ok {
				return nil, fmt.Errorf("%q is a sequence of sequences: no file format for it here", name)
			}
			pb.TensorValues = append(pb.TensorValues, t)
		}
		return pb, nil
	case graph.KindOptional:
		pb := &onnxpb.OptionalProto{Name: proto.String(name), ElemType: proto.Int32(int32(onnxpb.OptionalProto_UNDEFINED))}
		if len(a.Seq) == 0 {
			return pb, nil
		}
		m, err := arrayProto("", a.Seq[0])
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case *onnxpb.TensorProto:
			pb.ElemType, pb.TensorValue = proto.Int32(int32(onnxpb.OptionalProto_TENSOR)), m
		case *onnxpb.SequenceProto:
			pb.ElemType, pb.SequenceValue = proto.Int32(int32(onnxpb.OptionalProto_SEQUENCE)), m
		}
		return pb, nil
	}
	t := a.Tensor()
	pb := &onnxpb.TensorProto{Name: proto.String(name), Dims: t.Dims, DataType: proto.Int32(int32(t.Elem))}
	if t.Elem == graph.String {
		for _, s := range t.Strings {
			pb.StringData = append(pb.StringData, []byte(s))
		}
		return pb, nil
	}
	raw, err := t.Data.Bytes()
	pb.RawData = raw
	return pb, err
}

// npyTypes pairs NumPy's element descriptions with element types.
var npyTypes = []struct {
	descr string
	elem  graph.DataType
}{
	{"|b1", graph.Bool}, {"|i1", graph.Int8}, {"|u1", graph.Uint8}, {"<i2", graph.Int16}, {"<u2", graph.Uint16}, {"<i4", graph.Int32},
	{"<u4", graph.Uint32}, {"<i8", graph.Int64}, {"<u8", graph.Uint64}, {"<f2", graph.Float16}, {"<f4", graph.Float}, {"<f8", graph.Double},
	{"<c8", graph.Complex64}, {"<c16", graph.Complex128},
}

// readNumPy reads the arrays of a .npy or .npz file.
func readNumPy(path string) ([]named, error) {
	list, err := npz.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []named
	for _, x := range list {
		t := &graph.Tensor{Dims: make([]int64, len(x.Shape)), Data: graph.Bytes(x.Data)}
		for i, d := range x.Shape {
			t.Dims[i] = int64(d)
		}
		for _, k := range npyTypes {
			if k.descr == x.Descr {
				t.Elem = k.elem
			}
		}
		a, err := op.FromTensor(t, false)
		if err != nil {
			return nil, fmt.Errorf("%s: array %q: %w", path, x.Name, err)
		}
		out = append(out, named{x.Name, a})
	}
	return out, nil
}

// numPy encodes a value for a .npz file. What NumPy has no type for is widened: bfloat16 to float32, integers of
// fewer than 8 bits to 8.
func numPy(name string, a *op.Array) (npz.Array, error) {
	if !a.IsTensor() || a.Str != nil {
		return npz.Array{}, fmt.Errorf("output %q is %s: .npz files hold numeric tensors only; use --out-dir", name, a.Type())
	}
	b := *a
	switch a.Elem {
	case graph.BFloat16:
		b.Elem = graph.Float
	case graph.Int4, graph.Int2:
		b.Elem = graph.Int8
	case graph.Uint4, graph.Uint2:
		b.Elem = graph.Uint8
	}
	for _, k := range npyTypes {
		if k.elem == b.Elem {
			raw, err := b.Tensor().Data.Bytes()
			return npz.Array{Name: name, Descr: k.descr, Shape: a.Shape, Data: raw}, err
		}
	}
	return npz.Array{}, fmt.Errorf("output %q: NumPy has no type for %s", name, a.Elem)
}
