package onnxio

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"gradtool/graph"
	"gradtool/onnxio/onnxpb"
)

// attr returns the message for an attribute of a node at a position of sc; where names its owner.
func (w *writer) attr(a *graph.Attr, sc *scope, at int, where func() string) *onnxpb.AttributeProto {
	src := source[onnxpb.AttributeProto](w, a.Src)
	p := patchOf(src)
	if p.fresh || src.GetName() != a.Name {
		p.edit().Name = proto.String(a.Name)
	}
	if src.GetRefAttrName() != a.Ref {
		p.edit().RefAttrName = optional(a.Ref)
	}
	if p.fresh || attrType(src) != a.Type {
		clearValue(p.edit())
		p.edit().Type = onnxpb.AttributeProto_AttributeType(a.Type).Enum()
		p.fresh = true // the value is to be set even where it is zero
	}
	if a.Ref == "" {
		w.attrValue(p, a, sc, at, func() string { return fmt.Sprintf("%s: attribute %q", where(), a.Name) })
	}
	return p.P
}

func clearValue(pb *onnxpb.AttributeProto) {
	pb.F, pb.I, pb.S, pb.T, pb.G, pb.Tp, pb.SparseTensor = nil, nil, nil, nil, nil, nil, nil
	pb.Floats, pb.Ints, pb.Strings, pb.Tensors, pb.Graphs, pb.TypeProtos, pb.SparseTensors = nil, nil, nil, nil, nil, nil, nil
}

func (w *writer) attrValue(p *patch[onnxpb.AttributeProto, *onnxpb.AttributeProto], a *graph.Attr, sc *scope, at int, where func() string) {
	pb := p.P // as it is so far
	switch a.Type {
	case graph.AttrFloat:
		if p.fresh || !sameFloat(pb.GetF(), a.F) {
			p.edit().F = proto.Float32(a.F)
		}
	case graph.AttrInt:
		if p.fresh || pb.GetI() != a.I {
			p.edit().I = proto.Int64(a.I)
		}
	case graph.AttrString:
		if p.fresh || string(pb.S) != a.S {
			p.edit().S = []byte(a.S)
		}
	case graph.AttrTensor:
		if t := w.attrTensor(a.T, where); t != pb.T {
			p.edit().T = t
		}
	case graph.AttrGraph:
		var g *onnxpb.GraphProto
		if a.G != nil {
			g = w.graph(a.G, sc, at)
		}
		if g != pb.G {
			p.edit().G = g
		}
	case graph.AttrFloats:
		if !slices.EqualFunc(pb.Floats, a.Floats, sameFloat) {
			p.edit().Floats = a.Floats
		}
	case graph.AttrInts:
		if !same(pb.Ints, a.Ints) {
			p.edit().Ints = a.Ints
		}
	case graph.AttrStrings:
		if !slices.EqualFunc(pb.Strings, a.Strings, func(b []byte, s string) bool { return string(b) == s }) {
			p.edit().Strings = byteSlices(a.Strings)
		}
	case graph.AttrTensors:
		var list []*onnxpb.TensorProto
		for _, t := range a.Tensors {
			list = append(list, w.attrTensor(t, where))
		}
		if !same(list, pb.Tensors) {
			p.edit().Tensors = list
		}
	case graph.AttrGraphs:
		var list []*onnxpb.GraphProto
		for _, g := range a.Graphs {
			list = append(list, w.graph(g, sc, at))
		}
		if !same(list, pb.Graphs) {
			p.edit().Graphs = list
		}
	case graph.AttrSparseTensor:
		if len(a.Sparse) == 0 {
			p.edit().SparseTensor = nil
		} else if s := w.sparse(pb.SparseTensor, a.Sparse[0], where); s != pb.SparseTensor {
			p.edit().SparseTensor = s
		}
	case graph.AttrSparseTensors:
		var list []*onnxpb.SparseTensorProto
		for i, s := range a.Sparse {
			var was *onnxpb.SparseTensorProto
			if i < len(pb.SparseTensors) {
				was = pb.SparseTensors[i]
			}
			list = append(list, w.sparse(was, s, where))
		}
		if !same(list, pb.SparseTensors) {
			p.edit().SparseTensors = list
		}
	case graph.AttrTypeProto:
		if len(a.Types) == 0 {
			if pb.Tp != nil {
				p.edit().Tp = nil
			}
		} else if pb.Tp == nil || !typeOf(pb.Tp).Same(a.Types[0]) {
			p.edit().Tp = typeProto(a.Types[0])
		}
	case graph.AttrTypeProtos:
		list := make([]*onnxpb.TypeProto, len(a.Types))
		for i, t := range a.Types {
			if i < len(pb.TypeProtos) && typeOf(pb.TypeProtos[i]).Same(t) {
				list[i] = pb.TypeProtos[i]
			} else if list[i] = typeProto(t); list[i] == nil {
				list[i] = &onnxpb.TypeProto{}
			}
		}
		if !same(list, pb.TypeProtos) {
			p.edit().TypeProtos = list
		}
	}
}

func (w *writer) attrTensor(t *graph.Tensor, where func() string) *onnxpb.TensorProto {
	if t == nil {
		return nil
	}
	return w.tensor(t, t.Name, false, where)
}

// sparse returns the message for a sparse tensor attribute that was read from src, or is new.
func (w *writer) sparse(src *onnxpb.SparseTensorProto, s *graph.Sparse, where func() string) *onnxpb.SparseTensorProto {
	p := patchOf(src)
	if t := w.attrTensor(s.Values, where); t != src.GetValues() {
		p.edit().Values = t
	}
	if t := w.attrTensor(s.Indices, where); t != src.GetIndices() {
		p.edit().Indices = t
	}
	if !same(s.Dims, src.GetDims()) {
		p.edit().Dims = s.Dims
	}
	return p.P
}

func sameFloat(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

func byteSlices(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}
