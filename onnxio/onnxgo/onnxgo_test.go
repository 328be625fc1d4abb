package onnxgo

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/owulveryck/onnx-go"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"gradtool/graph"
	"gradtool/internal/public"
	"gradtool/onnxio"
	"gradtool/onnxio/onnxpb"
	"gradtool/testmodels"
)

// lines gives what both importers must agree on, a line for each part: inputs without initializer,
// outputs, initializers, and the nodes in order with operands, results and attributes.
func lines(m *graph.Model, structure bool) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	g := m.Graph
	for _, v := range g.Inputs {
		if v.Init == nil && !structure {
			add("input %q", v.Name)
		}
	}
	for _, v := range g.Outputs {
		add("output %q", v.Name)
	}
	if !structure {
		inits := map[string]string{}
		for _, v := range g.Inits {
			inits[v.Name] = data(v.Init)
		}
		for _, name := range slices.Sorted(maps.Keys(inits)) {
			add("initializer %q %s", name, inits[name])
		}
	}
	for _, n := range g.Nodes {
		line := n.Op + "(" + names(n.In) + ") -> (" + names(n.Out) + ")"
		attrs := slices.Clone(n.Attrs)
		slices.SortFunc(attrs, func(a, b *graph.Attr) int { return strings.Compare(a.Name, b.Name) })
		for _, a := range attrs {
			if a.Ref != "" {
				continue
			}
			line += fmt.Sprintf(" %s=%s %v %v %q %v %v %q", a.Name, a.Type, a.F, a.I, a.S, a.Floats, a.Ints, a.Strings)
			if a.T != nil {
				line += data(a.T)
			}
		}
		add("%s", line)
	}
	return out
}

func names(values []*graph.Value) string {
	var out []string
	for _, v := range values {
		if v == nil {
			out = append(out, "-")
		} else {
			out = append(out, v.Name)
		}
	}
	return strings.Join(out, ", ")
}

func data(t *graph.Tensor) string {
	if t.Data == nil {
		return fmt.Sprintf("%s%v %q", t.Elem, t.Dims, t.Strings)
	}
	b, err := t.Data.Bytes()
	return fmt.Sprintf("%s%v %x %v", t.Elem, t.Dims, b, err)
}

// compare returns the first part in which the two importers differ, "" if they agree.
func compare(b []byte, m *graph.Model, structure bool) (string, error) {
	want, _, err := onnxio.Read(bytes.NewReader(b), "test", onnxio.ReadOptions{})
	if err != nil {
		return "", err
	}
	x, y := lines(m, structure), lines(want, structure)
	for i := range max(len(x), len(y)) {
		switch {
		case i >= len(x):
			return fmt.Sprintf("onnx-go lacks %.200s", y[i]), nil
		case i >= len(y):
			return fmt.Sprintf("onnx-go has besides %.200s", x[i]), nil
		case x[i] != y[i]:
			return fmt.Sprintf("onnx-go has %.200s, the file %.200s", x[i], y[i]), nil
		}
	}
	return "", nil
}

func TestBuiltInModels(t *testing.T) {
	for _, tm := range testmodels.All() {
		t.Run(tm.Name, func(t *testing.T) {
			var b bytes.Buffer
			src := tm.Build()
			if err := onnxio.Write(&b, src); err != nil {
				t.Fatal(err)
			}
			m, loss, err := Decode(b.Bytes(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			diff, err := compare(b.Bytes(), m, false)
			if err != nil || diff != "" {
				t.Errorf("%s, %v", diff, err)
			}
			if m.Opset("") != src.Opset("") || len(loss.Items) == 0 {
				t.Errorf("got opset %d, want %d; loss %q", m.Opset(""), src.Opset(""), loss)
			}
			for i, v := range m.Graph.Inputs {
				if w := src.Graph.Inputs[i]; !v.Type.Same(w.Type) {
					t.Errorf("input %q: got type %s, want %s", v.Name, v.Type, w.Type)
				}
			}
		})
	}
}

func marshal(t *testing.T, text string) []byte {
	t.Helper()
	m := new(onnxpb.ModelProto)
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDecode has what a backend made of gonum's graphs loses: an operand read twice, omitted operands
// and results, nodes without operands, several results, values that are declared twice.
func TestDecode(t *testing.T) {
	const float = `type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } dim { dim_value: 2 } } } }`
	b := marshal(t, `ir_version: 3 producer_name: "p" opset_import { domain: "" version: 11 } opset_import { domain: "d" version: 1 }
		graph { name: "g"
			node { name: "n" domain: "d" op_type: "Mul" input: "x" input: "x" output: "a" }
			node { op_type: "Clip" input: "a" input: "" input: "w" output: "b" attribute { name: "z" type: INT i: 0 } attribute { name: "f" type: FLOATS floats: 1 } }
			node { op_type: "Constant" output: "c" attribute { name: "value" type: TENSOR t { data_type: 7 dims: 2 int64_data: 3 int64_data: 4 } } }
			node { op_type: "Constant" output: "e" attribute { name: "value" type: TENSOR t { data_type: 1 float_data: 3 } } }
			node { op_type: "Split" input: "b" input: "c" output: "" output: "s" output: "y" }
			input { name: "x" `+float+` } input { name: "w" `+float+` }
			value_info { name: "y" `+float+` } value_info { name: "stale" `+float+` }
			output { name: "y" `+float+` }
			initializer { name: "w" data_type: 1 dims: 1 float_data: 2 } initializer { name: "v" data_type: 1 dims: 1 float_data: 5 } }`)
	m, loss, err := Decode(b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff, err := compare(b, m, false); err != nil || diff != "" {
		t.Errorf("%s, %v", diff, err)
	}
	if n := m.Graph.Nodes[0]; n.Domain != "d" || m.Opset("d") != 1 || m.Graph.Inputs[0].Type.String() != "float[N,2]" {
		t.Errorf("got domain %q, opset %d, input type %s", n.Domain, m.Opset("d"), m.Graph.Inputs[0].Type)
	}
	want := `2 opset imports ("" version 11)
1 producers (p)
1 graph names (g)
1 inputs with an initializer (w)
5 dimensions that are no number (N of x)
1 node names (n)
1 node domains (d)
`
	if got := loss.String(); got != want {
		t.Errorf("got loss\n%s\nwant\n%s", got, want)
	}
	// The same by way of onnx-go's own interface.
	backend := NewBackend()
	om := onnx.NewModel(backend)
	if err := om.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	m, _, err = backend.Model(om, Options{Opset: 9})
	if err != nil {
		t.Fatal(err)
	}
	if diff, err := compare(b, m, false); err != nil || diff != "" || m.Opset("") != 9 {
		t.Errorf("%s, %v, opset %d", diff, err, m.Opset(""))
	}
	x, ok := om.GetNodeByName("x")
	a, _ := om.GetNodeByName("a")
	if !ok || !backend.HasEdgeFromTo(a.ID(), x.ID()) || backend.HasEdgeFromTo(x.ID(), a.ID()) || backend.From(a.ID()).Len() != 1 || backend.To(x.ID()).Len() != 1 {
		t.Error("the record is not the graph that onnx-go described")
	}
}

func TestRefused(t *testing.T) {
	const node = `node { op_type: "Abs" input: "x" output: "y" }`
	for _, tc := range []struct{ name, text, want string }{
		{"subgraph", `ir_version: 3 graph { node { op_type: "If" output: "y" attribute { name: "then_branch" type: GRAPH g {} } } output { name: "y" } }`, `attribute "then_branch"`},
		{"float16", `ir_version: 3 graph { ` + node + ` output { name: "y" type { tensor_type { elem_type: 10 shape {} } } } }`, "FLOAT16"},
		{"no nodes", `ir_version: 3 graph { output { name: "y" } }`, "onnx-go"},
		{"huge", `ir_version: 3 graph { ` + node + ` output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1099511627776 } } } } } }`, "too large"},
		{"negative", `ir_version: 3 graph { ` + node + ` output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: -1 } } } } } }`, "too large"},
		{"panic", `ir_version: 3 graph { ` + node + ` output { name: "y" } initializer { name: "x" data_type: 1 dims: 3 float_data: 1 } }`, "panicked"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := Decode(marshal(t, tc.text), Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if _, _, err := Decode([]byte("text"), Options{}); err == nil {
		t.Error("text is a model")
	}
}

// TestCorpus compares the importers on every public model that onnx-go accepts.
func TestCorpus(t *testing.T) {
	root := public.Path(t, "corpus")
	var models, accepted, structure, agree, agreeStructure, panics int
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".onnx" || strings.HasPrefix(d.Name(), "LICENSE") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		models++
		for _, s := range []bool{false, true} {
			m, loss, err := Decode(b, Options{Structure: s})
			if err != nil {
				if !s && strings.Contains(err.Error(), "panicked") {
					panics++
				}
				continue
			}
			diff, err := compare(b, m, s)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if s {
				structure++
			} else {
				accepted++
			}
			switch {
			case diff == "" && s:
				agreeStructure++
			case diff == "":
				agree++
			case strings.Contains(loss.String(), "sparse initializers") || strings.Contains(loss.String(), "tensors with external data"):
				t.Logf("%s (structure only: %v): the loss explains that %.200s", strings.TrimPrefix(path, root), s, diff)
			default:
				t.Errorf("%s (structure only: %v): %.400s", strings.TrimPrefix(path, root), s, diff)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d models: %d decoded, %d of them the same as with onnxio; %d panics; without data %d decoded, %d the same",
		models, accepted, agree, panics, structure, agreeStructure)
	if agree == 0 {
		t.Error("no model was decoded")
	}
}
