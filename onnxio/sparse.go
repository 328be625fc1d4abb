package onnxio

import (
	"encoding/binary"
	"slices"

	"gradtool/graph"
	"gradtool/onnxio/onnxpb"
)

// maxDense is the most bytes that a sparse initializer may take as a dense tensor. Its size in the
// file says nothing about that, so a limit is needed.
const maxDense = 1 << 28

// sparse is the elements of a sparse initializer as a dense tensor, a [graph.Blob]: nodes read sparse
// initializers as dense values (IR.md, "Graphs").
type sparse struct {
	values *data
	index  *data
	dims   []int64
}

// sparseInit wraps a sparse initializer as a dense tensor.
func (f *file) sparseInit(pb *onnxpb.SparseTensorProto, what string) *graph.Tensor {
	return &graph.Tensor{
		Elem: graph.DataType(pb.GetValues().GetDataType()),
		Dims: slices.Clone(pb.Dims),
		Data: &sparse{
			values: &data{file: f, pb: pb.GetValues(), what: what},
			index:  &data{file: f, pb: pb.GetIndices(), what: "the indices of " + what},
			dims:   pb.Dims,
		},
		Src: &origin[*onnxpb.SparseTensorProto]{f, pb},
	}
}

func (s *sparse) dense() graph.Tensor {
	return graph.Tensor{Elem: graph.DataType(s.values.pb.GetDataType()), Dims: s.dims}
}

// Len returns the number of bytes of the dense tensor.
func (s *sparse) Len() int64 {
	t := s.dense()
	return max(t.ByteLen(), 0)
}

// Bytes returns the elements of the dense tensor.
func (s *sparse) Bytes() ([]byte, error) {
	t := s.dense()
	n := t.ByteLen()
	width := int64(t.Elem.Bits() / 8)
	switch {
	case !t.Elem.Valid() || n < 0:
		return nil, s.values.errorf("element type %d and dimensions %v make no tensor", int32(t.Elem), s.dims)
	case width == 0:
		return nil, s.values.errorf("sparse tensors of %s are not supported", t.Elem)
	case n > maxDense:
		return nil, s.values.errorf("%d bytes as a dense tensor, the limit is %d", n, maxDense)
	}
	values, err := s.values.bytes()
	if err != nil {
		return nil, err
	}
	index, err := s.index.bytes()
	if err != nil {
		return nil, err
	}
	nnz := int64(len(values)) / width
	rank := int64(len(s.dims))
	perValue := int64(1)
	if len(s.index.pb.Dims) == 2 {
		perValue = rank
	}
	if graph.DataType(s.index.pb.GetDataType()) != graph.Int64 || int64(len(index)) != 8*nnz*perValue {
		return nil, s.index.errorf("%d bytes of %s, want int64 for %d values", len(index), graph.DataType(s.index.pb.GetDataType()), nnz)
	}
	out := make([]byte, n)
	for i := range nnz {
		at := int64(0)
		for j := range perValue {
			k := int64(binary.LittleEndian.Uint64(index[8*(i*perValue+j):]))
			limit := n / width
			if perValue != 1 || len(s.index.pb.Dims) == 2 {
				limit = s.dims[j]
			}
			if k < 0 || k >= limit {
				return nil, s.index.errorf("index %d is outside of %v", k, s.dims)
			}
			at = at*limit + k
		}
		copy(out[at*width:(at+1)*width], values[i*width:])
	}
	return out, nil
}

// bytes is Bytes for data that no one else asks for.
func (d *data) bytes() ([]byte, error) {
	if d.pb == nil {
		return nil, d.errorf("missing")
	}
	if ref, ok, err := d.ref(); err != nil {
		return nil, err
	} else if ok {
		return ref.Bytes()
	}
	return d.decode()
}
