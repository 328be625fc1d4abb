package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"gradtool/onnxio"
	"gradtool/onnxio/onnxpb"
)

// TestLargeModel takes a model with 3 GiB of weights, more than one protobuf message can hold, through the stages: weights that
// are in a file of their own stay there, unread. The file has a hole in the place of data, so it takes no room.
func TestLargeModel(t *testing.T) {
	pb := &onnxpb.ModelProto{}
	if err := prototext.Unmarshal([]byte(`ir_version: 8 opset_import { domain: "" version: 17 } graph { name: "large"
		node { op_type: "Gather" input: "table" input: "rows" output: "h" }
		node { op_type: "MatMul" input: "h" input: "w" output: "y" }
		initializer { name: "table" data_type: 1 dims: 786432 dims: 1024 data_location: EXTERNAL external_data { key: "location" value: "weights.bin" } }
		initializer { name: "w" data_type: 1 dims: 1024 dims: 1 data_location: EXTERNAL external_data { key: "location" value: "weights.bin" } external_data { key: "length" value: "4096" } }
		input { name: "rows" type { tensor_type { elem_type: 7 shape { dim { dim_param: "N" } } } } }
		output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } dim { dim_value: 1 } } } } } }`), pb); err != nil {
		t.Fatal(err)
	}
	b, err := proto.Marshal(pb)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in := filepath.Join(dir, "large.onnx")
	if err := os.WriteFile(in, b, 0o666); err != nil {
		t.Fatal(err)
	}
	weights, err := os.Create(filepath.Join(dir, "weights.bin"))
	if err == nil {
		err = weights.Truncate(3 << 30)
	}
	if err != nil {
		t.Skipf("no file of 3 GiB, not even with a hole: %v", err)
	}
	weights.Close()
	last := in
	for _, stage := range []string{"grad --freeze table", "prune", "fuse", "inline"} {
		out := filepath.Join(dir, strings.Fields(stage)[0]+".onnx")
		if code, _, errs := gradtool(t, "", append(strings.Fields(stage), last, "-o", out)...); code != 0 {
			t.Fatalf("%s: %s", stage, errs)
		}
		if info, err := os.Stat(out); err != nil || info.Size() > 1<<20 {
			t.Errorf("%s: the model takes %d bytes, so weights are in it (%v)", stage, info.Size(), err)
		}
		last = out
	}
	m, closer, err := onnxio.Open(last, onnxio.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	if n := m.Graph.Inits[0].Init.Len(); n != 786432*1024 {
		t.Errorf("the table has %d elements", n)
	}

	// Elsewhere the weights would have to go into the model, or beside it where that is asked for.
	other := filepath.Join(t.TempDir(), "grad.onnx")
	code, _, errs := gradtool(t, "", "grad", "--freeze", "table", in, "-o", other)
	if code != 1 || !strings.Contains(errs, "2 GiB") || !strings.Contains(errs, "external data") {
		t.Errorf("in another folder: exit code %d: %s", code, errs)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("a model that is too large was left behind")
	}
	code, _, errs = gradtool(t, "", "grad", "--freeze", "table", in)
	if code != 1 || !strings.Contains(errs, "2 GiB") {
		t.Errorf("to a pipe: exit code %d: %s", code, errs)
	}
}
