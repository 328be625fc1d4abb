package onnxio

import (
	"google.golang.org/protobuf/proto"

	"gradtool/graph"
	"gradtool/onnxio/onnxpb"
)

// typeOf decodes a type; what is not set is not known.
func typeOf(pb *onnxpb.TypeProto) graph.Type {
	switch v := pb.GetValue().(type) {
	case *onnxpb.TypeProto_TensorType:
		return graph.TensorOf(graph.DataType(v.TensorType.GetElemType()), shapeOf(v.TensorType.Shape))
	case *onnxpb.TypeProto_SparseTensorType:
		t := graph.TensorOf(graph.DataType(v.SparseTensorType.GetElemType()), shapeOf(v.SparseTensorType.Shape))
		t.Kind = graph.KindSparse
		return t
	case *onnxpb.TypeProto_SequenceType:
		return graph.SequenceOf(typeOf(v.SequenceType.ElemType))
	case *onnxpb.TypeProto_OptionalType:
		return graph.OptionalOf(typeOf(v.OptionalType.ElemType))
	case *onnxpb.TypeProto_MapType:
		inner := typeOf(v.MapType.ValueType)
		return graph.Type{Kind: graph.KindMap, Key: graph.DataType(v.MapType.GetKeyType()), Inner: &inner}
	case *onnxpb.TypeProto_OpaqueType:
		return graph.Type{Kind: graph.KindOpaque, Domain: v.OpaqueType.GetDomain(), Name: v.OpaqueType.GetName()}
	}
	return graph.Type{}
}

// shapeOf decodes a shape. A negative size, which some exporters write for "any", is unknown.
func shapeOf(pb *onnxpb.TensorShapeProto) graph.Shape {
	if pb == nil {
		return nil
	}
	s := make(graph.Shape, len(pb.Dim))
	for i, d := range pb.Dim {
		switch v := d.GetValue().(type) {
		case *onnxpb.TensorShapeProto_Dimension_DimValue:
			if v.DimValue >= 0 {
				s[i] = graph.Known(v.DimValue)
			}
		case *onnxpb.TensorShapeProto_Dimension_DimParam:
			s[i] = graph.ParseDim(v.DimParam)
		}
	}
	return s
}

// typeProto encodes t; nil if nothing is known of it.
func typeProto(t graph.Type) *onnxpb.TypeProto {
	inner := func() *onnxpb.TypeProto {
		if t.Inner == nil {
			return nil
		}
		return typeProto(*t.Inner)
	}
	elem := func() *int32 {
		if t.Elem == graph.Undefined {
			return nil
		}
		return proto.Int32(int32(t.Elem))
	}
	switch t.Kind {
	case graph.KindTensor:
		return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{ElemType: elem(), Shape: shapeProto(t.Shape)}}}
	case graph.KindSparse:
		return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_SparseTensorType{
			SparseTensorType: &onnxpb.TypeProto_SparseTensor{ElemType: elem(), Shape: shapeProto(t.Shape)}}}
	case graph.KindSequence:
		return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_SequenceType{SequenceType: &onnxpb.TypeProto_Sequence{ElemType: inner()}}}
	case graph.KindOptional:
		return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_OptionalType{OptionalType: &onnxpb.TypeProto_Optional{ElemType: inner()}}}
	case graph.KindMap:
		return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_MapType{
			MapType: &onnxpb.TypeProto_Map{KeyType: proto.Int32(int32(t.Key)), ValueType: inner()}}}
	case graph.KindOpaque:
		return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_OpaqueType{
			OpaqueType: &onnxpb.TypeProto_Opaque{Domain: optional(t.Domain), Name: optional(t.Name)}}}
	}
	return nil
}

func shapeProto(s graph.Shape) *onnxpb.TensorShapeProto {
	if s == nil {
		return nil
	}
	pb := &onnxpb.TensorShapeProto{Dim: make([]*onnxpb.TensorShapeProto_Dimension, len(s))}
	for i, d := range s {
		pb.Dim[i] = &onnxpb.TensorShapeProto_Dimension{}
		if n, ok := d.Int(); ok {
			pb.Dim[i].Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: n}
		} else if d.IsSymbolic() {
			pb.Dim[i].Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d.String()}
		}
	}
	return pb
}

// contradicts reports whether a value of type t cannot be declared as d: the kind or the element type
// differ. A shape says more or less, which is no contradiction.
func contradicts(d, t graph.Type) bool {
	if d.Kind == graph.KindUnknown || t.Kind == graph.KindUnknown {
		return false
	}
	if d.Kind != t.Kind || d.Key != t.Key ||
		d.Elem != t.Elem && d.Elem != graph.Undefined && t.Elem != graph.Undefined {
		return true
	}
	return d.Inner != nil && t.Inner != nil && contradicts(*d.Inner, *t.Inner)
}
