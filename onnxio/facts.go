package onnxio

import (
	"gradtool/graph"
	"gradtool/onnxio/onnxpb"
)

// ExternalFile returns the location, as the file gives it, of a tensor whose data lie outside the model
// file, "" for others.
func ExternalFile(t *graph.Tensor) string {
	o, ok := t.Src.(*origin[*onnxpb.TensorProto])
	if !ok || o.pb.GetDataLocation() != onnxpb.TensorProto_EXTERNAL {
		return ""
	}
	for _, e := range o.pb.ExternalData {
		if e.GetKey() == "location" {
			return e.GetValue()
		}
	}
	return ""
}

// TrainingInfos returns the number of training_info entries that the model's file has. They are kept, and
// nothing else is done with them.
func TrainingInfos(m *graph.Model) int {
	if o, ok := m.Src.(*origin[*onnxpb.ModelProto]); ok {
		return len(o.pb.TrainingInfo)
	}
	return 0
}
