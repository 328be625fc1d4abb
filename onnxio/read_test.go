package onnxio

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"gradtool/graph"
	"gradtool/onnxio/onnxpb"
)

// encode makes the bytes of a model from protobuf's text format.
func encode(t testing.TB, text string) []byte {
	t.Helper()
	m := new(onnxpb.ModelProto)
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t testing.TB, b []byte) *graph.Model {
	t.Helper()
	m, _, err := Read(bytes.NewReader(b), "test", ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// decode is the message that m is written as.
func decode(t testing.TB, m *graph.Model) *onnxpb.ModelProto {
	t.Helper()
	pb := new(onnxpb.ModelProto)
	if err := proto.Unmarshal(encoded(t, m), pb); err != nil {
		t.Fatal(err)
	}
	return pb
}

// TestNames resolves names the hard way; every model must also be written back as it was.
func TestNames(t *testing.T) {
	const tensor = `type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } dim { dim_value: 3 } } } }`
	for _, tc := range []struct {
		name, text string
		check      func(t *testing.T, m *graph.Model)
	}{
		{"any order", `ir_version: 8 graph {
			node { input: "h" output: "y" op_type: "Relu" } node { input: "x" output: "h" op_type: "Abs" }
			input { name: "x" ` + tensor + ` } output { name: "y" } }`,
			func(t *testing.T, m *graph.Model) {
				n := m.Graph.Nodes
				if n[0].In[0] != n[1].Out[0] || n[1].In[0] != m.Graph.Inputs[0] || m.Graph.Outputs[0] != n[0].Out[0] {
					t.Error("the nodes are not connected")
				}
				if got, want := m.Graph.Inputs[0].Type.String(), "float[N,3]"; got != want {
					t.Errorf("got type %s, want %s", got, want)
				}
			}},
		{"omitted", `ir_version: 8 graph { node { input: "x" input: "" input: "s" input: "" output: "" output: "y" output: "" op_type: "Op" }
			input { name: "x" } input { name: "s" } output { name: "y" } }`,
			func(t *testing.T, m *graph.Model) {
				n := m.Graph.Nodes[0]
				if len(n.In) != 4 || n.In[1] != nil || n.In[3] != nil || len(n.Out) != 3 || n.Out[0] != nil || n.Out[1].Index != 1 {
					t.Errorf("got operands %v and results %v", n.In, n.Out)
				}
			}},
		{"undefined", `ir_version: 8 graph { node { input: "u" input: "u" output: "y" op_type: "Add" } output { name: "y" } output { name: "v" } output {} }`,
			func(t *testing.T, m *graph.Model) {
				n := m.Graph.Nodes[0]
				if n.In[0] == nil || n.In[0] != n.In[1] || n.In[0].Def != nil || m.Graph.Outputs[1].Name != "v" {
					t.Error("an undefined name is not one value")
				}
			}},
		{"defined twice", `ir_version: 2 graph {
			node { input: "x" output: "a" op_type: "Abs" } node { input: "a" output: "b" op_type: "Relu" }
			node { input: "b" output: "a" op_type: "Neg" } node { input: "a" output: "y" op_type: "Exp" }
			input { name: "x" } output { name: "y" } output { name: "a" } }`,
			func(t *testing.T, m *graph.Model) {
				n := m.Graph.Nodes
				if n[1].In[0] != n[0].Out[0] || n[3].In[0] != n[2].Out[0] || m.Graph.Outputs[1] != n[2].Out[0] {
					t.Error("the last definition before the use does not count")
				}
			}},
		{"constant twice", `ir_version: 8 graph {
			node { output: "c" op_type: "Constant" attribute { name: "value_float" type: FLOAT f: 1 } }
			node { input: "c" output: "y" op_type: "Abs" }
			node { output: "z" op_type: "If" attribute { name: "then_branch" type: GRAPH g { node { input: "c" output: "t" op_type: "Neg" } output { name: "t" } } } }
			node { output: "c" op_type: "Constant" attribute { name: "value_float" type: FLOAT f: 2 } } output { name: "y" } output { name: "c" } }`,
			func(t *testing.T, m *graph.Model) {
				n := m.Graph.Nodes
				last := n[3].Out[0]
				if n[1].In[0] != last || n[2].Subgraph("then_branch").Nodes[0].In[0] != last || m.Graph.Outputs[1] != last {
					t.Error("not the last constant is read")
				}
			}},
		{"default", `ir_version: 3 graph { node { input: "w" output: "y" op_type: "Abs" } input { name: "w" } output { name: "y" }
			initializer { name: "w" data_type: 1 float_data: 2 } initializer { name: "w" data_type: 1 float_data: 3 } }`,
			func(t *testing.T, m *graph.Model) {
				g := m.Graph
				if len(g.Inits) != 2 || g.Inits[0] != g.Inputs[0] || g.Inits[1] == g.Inputs[0] {
					t.Error("the first initializer is not the input's, or the second is")
				}
			}},
		{"capture", `ir_version: 8 graph {
			node { input: "c" output: "y" op_type: "If"
				attribute { name: "then_branch" type: GRAPH g { node { input: "late" output: "z" op_type: "Abs" } output { name: "z" } } }
				attribute { name: "else_branch" type: GRAPH g { output { name: "x" } } } }
			node { input: "x" output: "late" op_type: "Neg" }
			input { name: "c" } input { name: "x" } output { name: "y" } }`,
			func(t *testing.T, m *graph.Model) {
				n := m.Graph.Nodes
				caught := n[0].Captures()
				if len(caught) != 2 || caught[0] != n[1].Out[0] || caught[1] != m.Graph.Inputs[1] {
					t.Errorf("got captures %v", caught)
				}
				if n[0].Attrs[0].G.Parent != n[0] {
					t.Error("the branch does not know its node")
				}
			}},
		{"shadow", `ir_version: 8 graph {
			node { output: "y" op_type: "Loop" attribute { name: "body" type: GRAPH
				g { node { input: "x" output: "z" op_type: "Abs" } input { name: "x" } output { name: "z" } } } }
			input { name: "x" } output { name: "y" } }`,
			func(t *testing.T, m *graph.Model) {
				body := m.Graph.Nodes[0].Subgraph("body")
				if body.Nodes[0].In[0] != body.Inputs[0] {
					t.Error("the outer value is read")
				}
			}},
		{"function", `ir_version: 8 functions { name: "F" domain: "d" input: "a" output: "b" attribute: "k" opset_import { domain: "" version: 18 }
				node { input: "a" output: "b" op_type: "Elu" attribute { name: "alpha" ref_attr_name: "k" type: FLOAT } }
				attribute_proto { name: "m" type: INT i: 0 } value_info { name: "b" ` + tensor + ` } }
			graph { node { input: "x" output: "y" op_type: "F" domain: "d" } input { name: "x" } output { name: "y" } }`,
			func(t *testing.T, m *graph.Model) {
				f := m.Function("d", "F", "")
				if f == nil || f.Body.Nodes[0].Attrs[0].Ref != "k" || f.Body.Outputs[0].Type.String() != "float[N,3]" || f.Defaults[0].Name != "m" {
					t.Errorf("got %+v", f)
				}
				if f.Body.Nodes[0].Opset() != 18 {
					t.Error("the function's opset does not hold in its body")
				}
			}},
		{"only functions", `ir_version: 8 functions { name: "F" domain: "d" }`, func(*testing.T, *graph.Model) {}},
		{"old attributes", `ir_version: 1 graph { node { output: "y" op_type: "C" attribute { name: "a" f: 0 } attribute { name: "b" ints: 1 ints: 2 } attribute { name: "e" } } }`,
			func(t *testing.T, m *graph.Model) {
				a := m.Graph.Nodes[0].Attrs
				if a[0].Type != graph.AttrFloat || a[1].Type != graph.AttrInts || a[2].Type != graph.AttrUndefined {
					t.Errorf("got types %s, %s, %s", a[0].Type, a[1].Type, a[2].Type)
				}
			}},
		{"sparse initializer", `ir_version: 8 graph { node { input: "w" output: "y" op_type: "Abs" } output { name: "y" }
			sparse_initializer { dims: 2 dims: 3 values { name: "w" data_type: 1 dims: 2 float_data: 5 float_data: 7 }
				indices { data_type: 7 dims: 2 dims: 2 int64_data: 0 int64_data: 1 int64_data: 1 int64_data: 2 } }
			sparse_initializer { dims: 4 values { name: "v" data_type: 7 dims: 1 int64_data: 9 } indices { data_type: 7 dims: 1 int64_data: 2 } } }`,
			func(t *testing.T, m *graph.Model) {
				for i, want := range []*graph.Tensor{graph.Floats([]int64{2, 3}, 0, 5, 0, 0, 0, 7), graph.Ints(nil, 0, 0, 9, 0)} {
					if got := dumpTensor(m.Graph.Inits[i].Init); got != dumpTensor(want) {
						t.Errorf("got %s, want %s", got, dumpTensor(want))
					}
				}
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := encode(t, tc.text)
			m := parse(t, b)
			tc.check(t, m)
			if got := encoded(t, m); !bytes.Equal(got, b) {
				t.Errorf("got %q, want %q", got, b)
			}
			want := dump(m)
			strip(m)
			if tc.name == "defined twice" || tc.name == "constant twice" || tc.name == "default" {
				if err := Write(new(bytes.Buffer), m); err == nil {
					t.Error("a new model defines a name twice")
				}
				return
			}
			if got := dump(reread(t, m)); got != want {
				t.Errorf("rebuilt: got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestFormatErrors: what is no model is refused with a hint at what it is.
func TestFormatErrors(t *testing.T) {
	good := encode(t, `ir_version: 8 graph { node { op_type: "Relu" input: "x" output: "y" } name: "a graph" }`)
	tensor, err := proto.Marshal(&onnxpb.TensorProto{DataType: proto.Int32(1), Dims: []int64{1}, FloatData: []float32{1}, Name: proto.String("w")})
	if err != nil {
		t.Fatal(err)
	}
	bare, err := proto.Marshal(&onnxpb.GraphProto{Node: []*onnxpb.NodeProto{{OpType: proto.String("Relu"), Input: []string{"x"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, in, want string
		offset         bool
	}{
		{"empty", "", "empty input: did the previous stage fail?", false},
		{"text", "hello, world\nsecond line", `it is a text file ("hello, world")`, false},
		{"error message", "gradtool: error: no\n", "it is a text file", false},
		{"text format", "ir_version: 8\ngraph {}", "protobuf's text format", false},
		{"text syntax", "<ir_version: 8>\nagraph (float[N] x) => (float[N] y) { y = Relu(x) }", "ONNX's text syntax", false},
		{"web page", "<!DOCTYPE html><html>", "web page", false},
		{"lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "git lfs pull", false},
		{"torch zip", "PK\x03\x04\x00\x00\x00\x00archive/data.pkl\x80\x02", "PyTorch checkpoint", false},
		{"zip", "PK\x03\x04\x00\x00\x00\x00", "zip archive", false},
		{"npz", "PK\x03\x04\x00\x00\x00\x00x.npy", "NumPy .npz", false},
		{"pickle", "\x80\x02}q\x00.", "pickle", false},
		{"hdf5", "\x89HDF\r\n\x1a\n\x00\x00", "HDF5", false},
		{"gzip", "\x1f\x8b\x08\x00", "gzip", false},
		{"tflite", "\x1c\x00\x00\x00TFL3\x00\x00", "TensorFlow Lite", false},
		{"ort", "\x1c\x00\x00\x00ORTM\x00\x00", "ONNX Runtime's own format", false},
		{"graphdef", "\x0a\x0f\x0a\x01x\x12\x0bPlaceholder", "TensorFlow GraphDef (its first node is a Placeholder)", false},
		{"saved model", "\x08\x01\x12\x14\x0a\x12\x12\x05serve\x22\x09tensorflo", "TensorFlow SavedModel", false},
		{"tensor", string(tensor), "a single tensor (w)", false},
		{"graph", string(bare), "bare graph", false},
		{"no graph", "\x08\x08\x12\x01p", "it has no graph", false},
		{"cut short", string(good[:len(good)-4]), "cut short", true},
		{"noise", "\x07\x07\x07\xff\xff\xff", "not a valid ONNX model", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := Read(strings.NewReader(tc.in), "in", ReadOptions{})
			fe, ok := errors.AsType[*FormatError](err)
			if !ok {
				t.Fatalf("got %v, want a FormatError", err)
			}
			if fe.File != "in" || !strings.Contains(fe.Error(), tc.want) || (fe.Offset >= 0) != tc.offset {
				t.Errorf("got %v (offset %d), want %q", fe, fe.Offset, tc.want)
			}
			path := filepath.Join(t.TempDir(), "m.onnx")
			if err := os.WriteFile(path, []byte(tc.in), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := Open(path, ReadOptions{}); !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Open: got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestNewerIRVersion(t *testing.T) {
	var warnings []string
	b := encode(t, `ir_version: 15 graph { }`)
	m, _, err := Read(bytes.NewReader(b), "in", ReadOptions{Warn: func(msg string) { warnings = append(warnings, msg) }})
	if err != nil || m.IRVersion != 15 {
		t.Fatalf("got %v", err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "IR version 15 is newer than 14") {
		t.Errorf("got warnings %q", warnings)
	}
	if got := encoded(t, m); !bytes.Equal(got, b) {
		t.Errorf("got %q, want %q", got, b)
	}
}

// FuzzRead: no input panics, also not when all its data are asked for, and what can be read is written
// back as it was.
func FuzzRead(f *testing.F) {
	f.Add(encode(f, `ir_version: 8 graph { node { input: "x" input: "w" output: "y" op_type: "Add" attribute { name: "a" type: INTS ints: 3 } }
		input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } } } } } output { name: "y" } value_info { name: "y" }
		initializer { name: "w" dims: 2 data_type: 10 int32_data: 1 int32_data: 2 } quantization_annotation { tensor_name: "y" } }`))
	f.Add(encode(f, `ir_version: 3 graph { node { output: "y" op_type: "If" attribute { name: "b" type: GRAPH g { output { name: "q" } } } } }
		functions { name: "F" input: "a" output: "b" node { input: "a" output: "b" op_type: "Neg" } }`))
	f.Add(encode(f, `ir_version: 8 graph { sparse_initializer { dims: 1073741824 dims: 4 values { name: "w" data_type: 1 dims: 1 float_data: 1 } indices { data_type: 7 dims: 1 int64_data: 1 } }
		initializer { name: "e" dims: 9223372036854775807 dims: 9 data_type: 1 data_location: EXTERNAL external_data { key: "location" value: "../x" } } }`))
	f.Add([]byte("\x3a\xff\xff\xff\xff\x07"))
	f.Fuzz(func(t *testing.T, in []byte) {
		m, c, err := Read(bytes.NewReader(in), "in", ReadOptions{BaseDir: t.TempDir()})
		if err != nil {
			return
		}
		defer c.Close()
		// The folder is that of the input, so that references to external files can stay.
		var got bytes.Buffer
		dir := m.Src.(*origin[*onnxpb.ModelProto]).file.dir
		if err := (WriteOptions{Dir: dir}).Write(&got, m); err != nil {
			t.Fatalf("cannot write what was read: %v", err)
		}
		if !bytes.Equal(got.Bytes(), in) {
			t.Fatalf("got %q, want %q", got.Bytes(), in)
		}
		for g := range m.Graph.Graphs() {
			for _, v := range g.Inits {
				if v.Init.Data != nil && v.Init.ByteLen() < 1<<20 {
					if b, err := v.Init.Data.Bytes(); err == nil && int64(len(b)) != v.Init.ByteLen() {
						t.Fatalf("%d bytes for %s", len(b), v.Init.Type())
					}
				}
			}
		}
		strip(m)
		Write(&got, m) // may fail, with an error
	})
}
