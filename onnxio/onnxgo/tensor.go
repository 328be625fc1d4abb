package onnxgo

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"gorgonia.org/tensor"

	"gradtool/graph"
)

// elemOf returns the element type for a type of the tensor library.
func elemOf(dt tensor.Dtype) (graph.DataType, bool) {
	for _, e := range []struct {
		dt   tensor.Dtype
		elem graph.DataType
	}{
		{tensor.Float32, graph.Float}, {tensor.Float64, graph.Double}, {tensor.Int8, graph.Int8}, {tensor.Int16, graph.Int16},
		{tensor.Int32, graph.Int32}, {tensor.Int64, graph.Int64}, {tensor.Uint8, graph.Uint8}, {tensor.Uint16, graph.Uint16},
		{tensor.Uint32, graph.Uint32}, {tensor.Uint64, graph.Uint64}, {tensor.Bool, graph.Bool}, {tensor.String, graph.String},
		{tensor.Complex64, graph.Complex64}, {tensor.Complex128, graph.Complex128},
	} {
		if e.dt == dt {
			return e.elem, true
		}
	}
	return graph.Undefined, false
}

// convert copies a tensor.
func convert(t tensor.Tensor) (*graph.Tensor, error) {
	elem, ok := elemOf(t.Dtype())
	if !ok {
		return nil, fmt.Errorf("element type %v is not one of ONNX", t.Dtype())
	}
	out := &graph.Tensor{Elem: elem, Dims: []int64{}}
	for _, d := range t.Shape() {
		out.Dims = append(out.Dims, int64(d))
	}
	switch data := t.Data().(type) {
	case string:
		out.Strings = []string{data}
	case []string:
		out.Strings = data
	default: // a number or bool if t is a scalar, else a slice
		var b bytes.Buffer
		if err := binary.Write(&b, binary.LittleEndian, data); err != nil {
			return nil, err
		}
		out.Data = graph.Bytes(b.Bytes())
	}
	return out, out.Check()
}
