package onnxgo

import (
	"fmt"

	"github.com/owulveryck/onnx-go"

	"gradtool/graph"
	"gradtool/onnxio/internal/wire"
	"gradtool/onnxio/onnxpb"
)

// maxDeclared is the most memory that onnx-go may take for declared values: it allocates a tensor for
// each of them.
const maxDeclared = 1 << 30

// Decode decodes a model with onnx-go. Errors: bytes that are no model, models that onnx-go refuses or
// panics at, and declared shapes for which it would allocate more than 1 GiB.
//
// The loss says what the decoder did not pass on. Three things it has lost are taken from the file all
// the same, because no model is of use without them: opset imports unless the options give one, the
// domains of nodes, and the shapes of inputs and outputs.
func Decode(b []byte, opt Options) (m *graph.Model, loss *Loss, err error) {
	file, err := wire.NewStore().ReadModel(wire.FromBytes(b))
	if err != nil {
		return nil, nil, err
	}
	if err := checkDeclared(file.GetGraph()); err != nil && !opt.Structure {
		return nil, nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			m, loss, err = nil, nil, fmt.Errorf("onnx-go panicked: %v", r)
		}
	}()
	backend := NewBackend()
	backend.noData = opt.Structure
	om := onnx.NewModel(backend)
	if err := om.UnmarshalBinary(b); err != nil {
		return nil, nil, describe(err)
	}
	m, loss, err = backend.Model(om, opt)
	if err != nil {
		return nil, nil, err
	}
	loss.file(file)
	restore(m, file, opt)
	return m, loss, nil
}

// describe shortens onnx-go's message about an attribute, which has the whole attribute in it.
func describe(err error) error {
	if e, ok := err.(*onnx.ErrNotImplemented); ok && e.AttributeName != "" {
		return fmt.Errorf("onnx-go: attribute %q: %s", e.AttributeName, e.Message)
	}
	return fmt.Errorf("onnx-go: %w", err)
}

// checkDeclared adds up the bytes of all declared tensors as onnx-go would allocate them: dimensions
// that are no number count as 1.
func checkDeclared(g *onnxpb.GraphProto) error {
	total := int64(0)
	for _, list := range [][]*onnxpb.ValueInfoProto{g.GetInput(), g.GetValueInfo(), g.GetOutput()} {
		for _, v := range list {
			t := v.GetType().GetTensorType()
			shape := graph.Tensor{Elem: graph.DataType(t.GetElemType())}
			for _, d := range t.GetShape().GetDim() {
				if _, known := d.GetValue().(*onnxpb.TensorShapeProto_Dimension_DimValue); known {
					shape.Dims = append(shape.Dims, d.GetDimValue())
				}
			}
			n := shape.Len()
			if n < 0 || n > maxDeclared/16 {
				return fmt.Errorf("value %q of shape %v is too large for onnx-go", v.GetName(), shape.Dims)
			}
			if total += n * 16; total > maxDeclared { // no element is larger
				return fmt.Errorf("the declared values take more than %d bytes, too much for onnx-go", maxDeclared)
			}
		}
	}
	return nil
}

// restore puts back what Decode promises.
func restore(m *graph.Model, file *onnxpb.ModelProto, opt Options) {
	m.IRVersion = file.GetIrVersion()
	if opt.Opset == 0 {
		m.Opsets = nil
		for _, o := range file.OpsetImport {
			m.Opsets = append(m.Opsets, graph.Opset{Domain: o.GetDomain(), Version: o.GetVersion()})
		}
	}
	if nodes := file.GetGraph().GetNode(); len(nodes) == len(m.Graph.Nodes) {
		for i, n := range m.Graph.Nodes {
			n.Domain = nodes[i].GetDomain()
		}
	}
	shapes := map[string]*onnxpb.TypeProto_Tensor{}
	for _, list := range [][]*onnxpb.ValueInfoProto{file.GetGraph().GetInput(), file.GetGraph().GetOutput()} {
		for _, v := range list {
			if t := v.GetType().GetTensorType(); t != nil && t.Shape != nil {
				shapes[v.GetName()] = t
			}
		}
	}
	for _, list := range [][]*graph.Value{m.Graph.Inputs, m.Graph.Outputs} {
		for _, v := range list {
			if t := shapes[v.Name]; t != nil && v.Type.IsTensor() && v.Type.Shape == nil {
				v.Type.Shape = shapeOf(t.Shape)
			}
		}
	}
}

func shapeOf(s *onnxpb.TensorShapeProto) graph.Shape {
	shape := make(graph.Shape, len(s.Dim))
	for i, d := range s.Dim {
		switch v := d.GetValue().(type) {
		case *onnxpb.TensorShapeProto_Dimension_DimValue:
			if v.DimValue >= 0 {
				shape[i] = graph.Known(v.DimValue)
			}
		case *onnxpb.TensorShapeProto_Dimension_DimParam:
			shape[i] = graph.ParseDim(v.DimParam)
		}
	}
	return shape
}
