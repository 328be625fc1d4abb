package onnxio

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"gradtool/graph"
	"gradtool/onnxio/onnxpb"
)

// editModel has a bit of everything that a change elsewhere must leave alone.
const editModel = `ir_version: 8 producer_name: "p" producer_version: "" model_version: 0 opset_import { version: 18 } metadata_props { key: "k" value: "v" }
	graph { name: "g" doc_string: ""
		node { input: "x" input: "w" output: "h" op_type: "Add" name: "add" domain: "" doc_string: "why" attribute { name: "extra" type: INT i: 0 } metadata_props { key: "a" value: "b" }
			device_configurations { configuration_id: "c" sharding_spec { tensor_name: "w" device: 1 } } }
		node { input: "h" output: "y" op_type: "Relu" }
		input { name: "x" doc_string: "the input" type { denotation: "IMAGE" tensor_type { elem_type: 1 shape { dim { dim_param: "N" denotation: "DATA_BATCH" } dim { dim_value: 2 } } } } }
		output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_param: "M" } dim {} } } } metadata_props { key: "o" value: "p" } }
		value_info { name: "stale" type { tensor_type { elem_type: 1 } } }
		value_info { name: "h" type { tensor_type { elem_type: 1 shape { dim {} dim { dim_value: 2 } } } } }
		initializer { name: "w" dims: 2 data_type: 1 float_data: 1 float_data: 2 doc_string: "weight" }
		initializer { name: "s" data_type: 1 float_data: 1 }
		quantization_annotation { tensor_name: "w" quant_parameter_tensor_names { key: "SCALE_TENSOR" value: "s" } } }
	training_info { algorithm { name: "step" node { input: "w" output: "w2" op_type: "Identity" } } update_binding { key: "w" value: "w2" } }
	configuration { name: "c" num_devices: 2 }`

// withUnknown gives the first node, the graph and the model a field that no version of the schema has.
func withUnknown(t testing.TB, b []byte) []byte {
	m := new(onnxpb.ModelProto)
	if err := proto.Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
	field := protowire.AppendVarint(protowire.AppendTag(nil, 500, protowire.VarintType), 7)
	m.Graph.Node[0].ProtoReflect().SetUnknown(field)
	m.Graph.ProtoReflect().SetUnknown(field)
	m.ProtoReflect().SetUnknown(field)
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestEdits changes one thing; the written model must be the source with just that change, which is
// made to the message directly for comparison.
func TestEdits(t *testing.T) {
	source := withUnknown(t, encode(t, editModel))
	str := proto.String
	for _, tc := range []struct {
		name string
		edit func(m *graph.Model)
		want func(pb *onnxpb.ModelProto)
	}{
		{"nothing", func(*graph.Model) {}, func(*onnxpb.ModelProto) {}},
		{"sort", func(m *graph.Model) { m.Graph.Sort() }, func(*onnxpb.ModelProto) {}},
		{"refined types", func(m *graph.Model) {
			m.Graph.Outputs[0].Type = graph.TensorOf(graph.Float, graph.Shape{graph.Sym("N"), graph.Known(2)})
			m.Graph.Nodes[0].Out[0].Type = m.Graph.Outputs[0].Type
		}, func(*onnxpb.ModelProto) {}},
		{"model fields", func(m *graph.Model) {
			m.IRVersion, m.Producer, m.ProducerVersion, m.Doc = 9, "q", "1", "doc"
			m.SetOpset("", 20)
			m.SetOpset("com.x", 1)
			m.Meta.Set("gradtool.x", "y")
		}, func(pb *onnxpb.ModelProto) {
			pb.IrVersion, pb.ProducerName, pb.ProducerVersion, pb.DocString = proto.Int64(9), str("q"), str("1"), str("doc")
			pb.OpsetImport = []*onnxpb.OperatorSetIdProto{{Domain: str(""), Version: proto.Int64(20)}, {Domain: str("com.x"), Version: proto.Int64(1)}}
			pb.MetadataProps = append(pb.MetadataProps, &onnxpb.StringStringEntryProto{Key: str("gradtool.x"), Value: str("y")})
		}},
		{"attribute", func(m *graph.Model) { m.Graph.Nodes[0].Attr("extra").I = 5 },
			func(pb *onnxpb.ModelProto) { pb.Graph.Node[0].Attribute[0].I = proto.Int64(5) }},
		{"attribute type", func(m *graph.Model) { m.Graph.Nodes[0].SetAttr(graph.FloatAttr("extra", 0)) },
			func(pb *onnxpb.ModelProto) {
				pb.Graph.Node[0].Attribute[0] = &onnxpb.AttributeProto{Name: str("extra"), F: proto.Float32(0), Type: onnxpb.AttributeProto_FLOAT.Enum()}
			}},
		{"rename input", func(m *graph.Model) { m.Graph.Inputs[0].Name = "z" },
			func(pb *onnxpb.ModelProto) { pb.Graph.Input[0].Name = str("z"); pb.Graph.Node[0].Input[0] = "z" }},
		{"rename weight", func(m *graph.Model) { m.Graph.Inits[0].Name = "u" }, func(pb *onnxpb.ModelProto) {
			pb.Graph.Initializer[0].Name = str("u")
			pb.Graph.Node[0].Input[1] = "u"
			pb.Graph.Node[0].DeviceConfigurations[0].ShardingSpec[0].TensorName = str("u")
			pb.Graph.QuantizationAnnotation[0].TensorName = str("u")
		}},
		{"rename result", func(m *graph.Model) { m.Graph.Nodes[0].Out[0].Name = "hidden" }, func(pb *onnxpb.ModelProto) {
			pb.Graph.Node[0].Output[0], pb.Graph.Node[1].Input[0], pb.Graph.ValueInfo[1].Name = "hidden", "hidden", str("hidden")
		}},
		{"remove initializer", func(m *graph.Model) { m.Graph.RemoveInits(func(v *graph.Value) bool { return v.Name == "s" }) },
			func(pb *onnxpb.ModelProto) {
				pb.Graph.Initializer, pb.Graph.QuantizationAnnotation = pb.Graph.Initializer[:1], nil
			}},
		{"remove node", func(m *graph.Model) {
			n := m.Graph.Nodes[0]
			n.Out[0].ReplaceUses(m.Graph.Inputs[0])
			m.Graph.Remove(n)
		}, func(pb *onnxpb.ModelProto) {
			pb.Graph.Node = pb.Graph.Node[1:]
			pb.Graph.Node[0].Input[0] = "x"
			pb.Graph.ValueInfo = pb.Graph.ValueInfo[:1]
		}},
		{"add node", func(m *graph.Model) {
			g := m.Graph
			n := g.NewNode("", "Abs", []*graph.Value{g.Inputs[0], nil, g.Inits[0]}, []string{"stale"}, graph.IntsAttr("axes", 0, 1))
			n.Meta.Set(graph.MetaRole, graph.RoleBackward)
			g.InsertBefore(g.Nodes[1], n)
			n.Out[0].Type = graph.TensorOf(graph.Float, graph.Shape{graph.Sym("N").Add(graph.Known(1)), graph.Unknown()})
			g.AddOutput(n.Out[0])
		}, func(pb *onnxpb.ModelProto) {
			n := &onnxpb.NodeProto{Input: []string{"x", "", "w"}, Output: []string{"stale"}, OpType: str("Abs"),
				Attribute:     []*onnxpb.AttributeProto{{Name: str("axes"), Ints: []int64{0, 1}, Type: onnxpb.AttributeProto_INTS.Enum()}},
				MetadataProps: []*onnxpb.StringStringEntryProto{{Key: str("gradtool.role"), Value: str("backward")}}}
			pb.Graph.Node = []*onnxpb.NodeProto{pb.Graph.Node[0], n, pb.Graph.Node[1]}
			pb.Graph.ValueInfo = pb.Graph.ValueInfo[1:]
			shape := &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "N + 1"}}, {}}}
			pb.Graph.Output = append(pb.Graph.Output, &onnxpb.ValueInfoProto{Name: str("stale"), Type: &onnxpb.TypeProto{
				Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(1), Shape: shape}}}})
		}},
		{"element type", func(m *graph.Model) {
			m.Graph.Inputs[0].Type.Elem = graph.Float16
		}, func(pb *onnxpb.ModelProto) { pb.Graph.Input[0].Type.GetTensorType().ElemType = proto.Int32(10) }},
		{"bound dimension", func(m *graph.Model) {
			v := m.Graph.Inputs[0]
			v.Type.Shape[0] = graph.Known(8)
			Redeclare(v)
		}, func(pb *onnxpb.ModelProto) {
			pb.Graph.Input[0].Type.GetTensorType().Shape.Dim[0].Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 8}
		}},
		{"documentation", func(m *graph.Model) { m.Graph.Inputs[0].Doc = "new" },
			func(pb *onnxpb.ModelProto) { pb.Graph.Input[0].DocString = str("new") }},
		{"swap outputs", func(m *graph.Model) { m.Graph.SetOutputs(m.Graph.Inputs[0], m.Graph.Outputs[0]) },
			func(pb *onnxpb.ModelProto) {
				in := proto.CloneOf(pb.Graph.Input[0])
				in.Type.Denotation = nil
				in.Type.GetTensorType().Shape.Dim[0].Denotation = nil
				pb.Graph.Output = []*onnxpb.ValueInfoProto{in, pb.Graph.Output[0]}
			}},
		{"new data", func(m *graph.Model) { m.Graph.Inits[0].Init = graph.Floats([]int64{2}, 3, 4) },
			func(pb *onnxpb.ModelProto) {
				pb.Graph.Initializer[0] = &onnxpb.TensorProto{Name: str("w"), Dims: []int64{2}, DataType: proto.Int32(1), RawData: []byte("\x00\x00\x40\x40\x00\x00\x80\x40")}
			}},
		{"reshaped data", func(m *graph.Model) {
			m.Graph.Inits[0].Init.Dims = []int64{1, 2}
		}, func(pb *onnxpb.ModelProto) { pb.Graph.Initializer[0].Dims = []int64{1, 2} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := parse(t, source)
			tc.edit(m)
			want := new(onnxpb.ModelProto)
			if err := proto.Unmarshal(source, want); err != nil {
				t.Fatal(err)
			}
			tc.want(want)
			got := decode(t, m)
			if !proto.Equal(got, want) {
				t.Errorf("got\n%v\nwant\n%v", got, want)
			}
			if tc.name == "nothing" || tc.name == "sort" {
				if b := encoded(t, m); !bytes.Equal(b, source) {
					t.Error("the bytes differ")
				}
			}
			if a, b := dump(reread(t, m)), dump(m); a != b {
				t.Errorf("read again: got\n%s\nwant\n%s", a, b)
			}
		})
	}
}

// TestNameClash: a name that would stand for another value is an error that tells both.
func TestNameClash(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(m *graph.Model)
		want []string
	}{
		{"two of a name", func(m *graph.Model) { m.Graph.Nodes[0].Out[0].Name = "x" },
			[]string{`graph "g": the name "x" is given to an input of graph "g" and to result 0 of node "add" (Add)`}},
		{"a later result", func(m *graph.Model) { m.Graph.Nodes[1].Out[0].Name = "x" },
			[]string{`graph "g": the name "x" is given to an input`, `result 0 of node "x" (Relu)`}},
		{"no name", func(m *graph.Model) { m.Graph.Nodes[0].Out[0].Name = "" }, []string{"operand 0 is a value without a name"}},
		{"shadowed", func(m *graph.Model) {
			sub := m.NewGraph("sub")
			n := m.Graph.NewNode("", "If", []*graph.Value{m.Graph.Inputs[0]}, []string{"r"}, graph.GraphAttr("then_branch", sub))
			m.Graph.Append(n)
			inner := sub.NewNode("", "Abs", []*graph.Value{m.Graph.Inits[0]}, []string{"w"})
			sub.Append(inner)
			other := sub.NewNode("", "Neg", []*graph.Value{m.Graph.Inits[0]}, []string{"q"})
			sub.Append(other)
			sub.AddOutput(other.Out[0])
		}, []string{`node "q" (Neg): operand 0: the name "w" would stand for another value, result 0 of node "w" (Abs)`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := parse(t, encode(t, editModel))
			tc.edit(m)
			var b bytes.Buffer
			err := Write(&b, m)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}

// TestTwoFiles moves parts of one file's model into another's: data and unknown fields come along.
func TestTwoFiles(t *testing.T) {
	large := strings.Repeat("float_data: 1.5 ", 2000)
	source := withUnknown(t, encode(t, `ir_version: 8 graph { node { output: "c" op_type: "Constant" attribute { name: "value" type: TENSOR t { data_type: 1 dims: 2000 `+large+` } } } }
		functions { name: "F" domain: "d" node { output: "c" op_type: "Constant" attribute { name: "value" type: TENSOR t { data_type: 1 dims: 2000 `+large+` } } } }`))
	a, b := parse(t, source), parse(t, encode(t, editModel))
	n := a.Graph.Nodes[0]
	moved := b.Graph.NewNode(n.Domain, n.Op, nil, []string{"c"})
	moved.Attrs, moved.Src = n.Attrs, n.Src
	b.Graph.Append(moved)
	b.Functions = a.Functions
	got, from := decode(t, b), decode(t, a)
	if !proto.Equal(got.Graph.Node[2], from.Graph.Node[0]) || !proto.Equal(got.Functions[0], from.Functions[0]) {
		t.Errorf("got %.300v and %.300v", got.Graph.Node[2], got.Functions[0])
	}
}

// TestChecker has the onnx package check edited models of the public test data.
func TestChecker(t *testing.T) {
	python := os.Getenv("GRADTOOL_PYTHON")
	if python == "" {
		python = "python3"
	}
	const script = `
import sys, onnx
for line in sys.stdin:
    a, b = line.rstrip("\n").split("\t")
    try:
        onnx.checker.check_model(onnx.load(a))
    except Exception:
        continue
    try:
        onnx.checker.check_model(onnx.load(b))
        print("ok")
    except Exception as e:
        print("bad", a, str(e).replace("\n", " "))
`
	if out, err := exec.Command(python, "-c", "import onnx").CombinedOutput(); err != nil {
		t.Skipf("%s has no package onnx (set GRADTOOL_PYTHON to one that has): %s", python, out)
	}
	dir := t.TempDir()
	var list strings.Builder
	count := 0
	eachFile(t, "corpus", func(path string) {
		if count++; count%5 != 0 {
			return
		}
		m, c, err := Open(path, ReadOptions{})
		if err != nil || len(m.Graph.Inputs) == 0 || m.Opset("") < 13 {
			return
		}
		defer c.Close()
		g := m.Graph
		v := g.Inputs[0]
		extra := g.NewNode("", "Identity", []*graph.Value{v}, []string{m.Fresh("extra")})
		extra.Out[0].Type = v.Type
		g.Append(extra)
		g.AddOutput(extra.Out[0])
		v.Name = m.Fresh("renamed")
		if count%2 == 0 {
			strip(m)
		}
		to := filepath.Join(dir, fmt.Sprint(count, ".onnx"))
		if err := WriteFile(to, m); err != nil {
			return // broken external data
		}
		fmt.Fprintf(&list, "%s\t%s\n", path, to)
	}, ".onnx")
	cmd := exec.Command(python, "-c", script)
	cmd.Stdin = strings.NewReader(list.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	good := 0
	for line := range strings.Lines(string(out)) {
		if line == "ok\n" {
			good++
		} else {
			t.Error(line)
		}
	}
	t.Logf("%d edited models pass the checker", good)
	if good == 0 {
		t.Error("no model was checked")
	}
}
