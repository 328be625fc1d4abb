package onnxio

import (
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/onnxio/onnxpb"
)

// attrType returns the type of an attribute. Files of the first IR versions do not state it: then the
// field that is set tells.
func attrType(pb *onnxpb.AttributeProto) graph.AttrType {
	switch {
	case pb.GetType() != onnxpb.AttributeProto_UNDEFINED:
		return graph.AttrType(pb.GetType())
	case pb.F != nil:
		return graph.AttrFloat
	case pb.I != nil:
		return graph.AttrInt
	case pb.S != nil:
		return graph.AttrString
	case pb.T != nil:
		return graph.AttrTensor
	case pb.G != nil:
		return graph.AttrGraph
	case len(pb.Floats) > 0:
		return graph.AttrFloats
	case len(pb.Ints) > 0:
		return graph.AttrInts
	case len(pb.Strings) > 0:
		return graph.AttrStrings
	case len(pb.Tensors) > 0:
		return graph.AttrTensors
	case len(pb.Graphs) > 0:
		return graph.AttrGraphs
	case pb.SparseTensor != nil:
		return graph.AttrSparseTensor
	case len(pb.SparseTensors) > 0:
		return graph.AttrSparseTensors
	case pb.Tp != nil:
		return graph.AttrTypeProto
	case len(pb.TypeProtos) > 0:
		return graph.AttrTypeProtos
	}
	return graph.AttrUndefined
}

// attr reads an attribute of n, which stands at a position of sc; n is nil for the defaults of a
// function's attributes.
func (r *reader) attr(pb *onnxpb.AttributeProto, n *graph.Node, sc *scope, at int) *graph.Attr {
	a := &graph.Attr{
		Name: pb.GetName(),
		Type: attrType(pb),
		Ref:  pb.GetRefAttrName(),
		Src:  &origin[*onnxpb.AttributeProto]{r.file, pb},
	}
	what := fmt.Sprintf("attribute %q", a.Name)
	if n != nil {
		what += " of node " + n.Label()
	}
	switch a.Type {
	case graph.AttrFloat:
		a.F = pb.GetF()
	case graph.AttrInt:
		a.I = pb.GetI()
	case graph.AttrString:
		a.S = string(pb.S)
	case graph.AttrTensor:
		if pb.T != nil {
			a.T = r.tensor(pb.T, what)
		}
	case graph.AttrGraph:
		if pb.G != nil {
			a.G = r.graph(pb.G, sc, at, n)
		}
	case graph.AttrFloats:
		a.Floats = slices.Clone(pb.Floats)
	case graph.AttrInts:
		a.Ints = slices.Clone(pb.Ints)
	case graph.AttrStrings:
		for _, s := range pb.Strings {
			a.Strings = append(a.Strings, string(s))
		}
	case graph.AttrTensors:
		for _, t := range pb.Tensors {
			a.Tensors = append(a.Tensors, r.tensor(t, what))
		}
	case graph.AttrGraphs:
		for _, g := range pb.Graphs {
			a.Graphs = append(a.Graphs, r.graph(g, sc, at, n))
		}
	case graph.AttrSparseTensor:
		if pb.SparseTensor != nil {
			a.Sparse = []*graph.Sparse{r.sparse(pb.SparseTensor, what)}
		}
	case graph.AttrSparseTensors:
		for _, s := range pb.SparseTensors {
			a.Sparse = append(a.Sparse, r.sparse(s, what))
		}
	case graph.AttrTypeProto:
		if pb.Tp != nil {
			a.Types = []graph.Type{typeOf(pb.Tp)}
		}
	case graph.AttrTypeProtos:
		for _, t := range pb.TypeProtos {
			a.Types = append(a.Types, typeOf(t))
		}
	}
	return a
}

// tensor reads a tensor within an attribute, which unlike an initializer has a name of its own.
func (r *reader) tensor(pb *onnxpb.TensorProto, what string) *graph.Tensor {
	t := r.file.tensor(pb, what)
	t.Name = pb.GetName()
	return t
}

func (r *reader) sparse(pb *onnxpb.SparseTensorProto, what string) *graph.Sparse {
	s := &graph.Sparse{Dims: slices.Clone(pb.Dims)}
	if pb.Values != nil {
		s.Values = r.tensor(pb.Values, what)
	}
	if pb.Indices != nil {
		s.Indices = r.tensor(pb.Indices, "the indices of "+what)
	}
	return s
}
