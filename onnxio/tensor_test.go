package onnxio

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"gradtool/graph"
	"gradtool/onnxio/onnxpb"
)

// TestTypedData decodes every way in which a TensorProto can store elements.
func TestTypedData(t *testing.T) {
	const one = "0000803f" // float 1
	for _, tc := range []struct {
		elem graph.DataType
		dims string
		data string
		want string // hex of raw data
	}{
		{graph.Float, "1 2", "float_data: 1 float_data: -2", one + "000000c0"},
		{graph.Float, "2", `raw_data: "\000\000\200?\000\000\000\300"`, one + "000000c0"},
		{graph.Double, "1", "double_data: 1", "000000000000f03f"},
		{graph.Int32, "2", "int32_data: 1 int32_data: -2", "01000000feffffff"},
		{graph.Int64, "2", "int64_data: 1 int64_data: -2", "0100000000000000feffffffffffffff"},
		{graph.Int8, "2", "int32_data: 1 int32_data: -2", "01fe"},
		{graph.Uint8, "2", "int32_data: 1 int32_data: 254", "01fe"},
		{graph.Int16, "2", "int32_data: 1 int32_data: -2", "0100feff"},
		{graph.Uint16, "1", "int32_data: 65534", "feff"},
		{graph.Bool, "2", "int32_data: 1 int32_data: 0", "0100"},
		{graph.Float16, "2", "int32_data: 15360 int32_data: 49152", "003c00c0"},
		{graph.BFloat16, "1", "int32_data: 16256", "803f"},
		{graph.Float8E4M3, "1", "int32_data: 200", "c8"},
		{graph.Uint32, "2", "uint64_data: 1 uint64_data: 4294967294", "01000000feffffff"},
		{graph.Uint64, "1", "uint64_data: 18446744073709551614", "feffffffffffffff"},
		{graph.Complex64, "1", "float_data: 1 float_data: -2", one + "000000c0"},
		{graph.Complex128, "1", "double_data: 1 double_data: 1", "000000000000f03f000000000000f03f"},
		{graph.Int4, "3", "int32_data: 33 int32_data: 3", "2103"},
		{graph.Uint4, "2 2", `raw_data: "\041\003"`, "2103"},
		{graph.Float4E2M1, "1", "int32_data: 5", "05"},
		{graph.Int2, "5", "int32_data: 228 int32_data: 1", "e401"},
		{graph.Float, "0", "", ""},
		{graph.Float, "3 0", `raw_data: ""`, ""},
		{graph.Float, "", "float_data: 1", one},
	} {
		dims := ""
		for _, d := range strings.Fields(tc.dims) {
			dims += " dims: " + d
		}
		t.Run(fmt.Sprintf("%s %s", tc.elem, tc.data), func(t *testing.T) {
			m := parse(t, encode(t, fmt.Sprintf(`ir_version: 8 graph { initializer { name: "w" data_type: %d %s %s } }`, tc.elem, dims, tc.data)))
			w := m.Graph.Inits[0].Init
			got, err := w.Data.Bytes()
			if err != nil || hex.EncodeToString(got) != tc.want {
				t.Errorf("got %x, %v, want %s", got, err, tc.want)
			}
			if err := w.Check(); err != nil {
				t.Error(err)
			}
			want := dump(m)
			strip(m)
			if got := dump(reread(t, m)); got != want {
				t.Errorf("rebuilt: got %s, want %s", got, want)
			}
		})
	}
}

// TestLargeTypedData has lists that stay in the file until they are used.
func TestLargeTypedData(t *testing.T) {
	const n = 3000
	for _, elem := range []graph.DataType{graph.Float, graph.Double, graph.Int64, graph.Uint64, graph.Uint32, graph.Int32, graph.Float16, graph.Int8, graph.Complex64} {
		t.Run(elem.String(), func(t *testing.T) {
			pb := &onnxpb.TensorProto{Name: proto.String("w"), DataType: proto.Int32(int32(elem)), Dims: []int64{n}}
			var want []byte
			for i := range n {
				v := uint64(i * 2654435761)
				switch field, _ := typedField(elem); {
				case elem == graph.Complex64:
					pb.FloatData = append(pb.FloatData, float32(i), -float32(i))
				case elem == graph.Float:
					pb.FloatData = append(pb.FloatData, float32(i))
				case elem == graph.Double:
					pb.DoubleData = append(pb.DoubleData, float64(i))
				case field == 7:
					pb.Int64Data = append(pb.Int64Data, -int64(v))
					want = appendUint(want, -v, 8)
				case field == 11:
					v >>= 64 - elem.Bits()
					pb.Uint64Data = append(pb.Uint64Data, v)
					want = appendUint(want, v, int64(elem.Bits()/8))
				default:
					x := int32(v) >> (32 - elem.Bits())
					pb.Int32Data = append(pb.Int32Data, x)
					want = appendUint(want, uint64(x), int64(elem.Bits()/8))
				}
			}
			for _, f := range pb.FloatData {
				want = binary.LittleEndian.AppendUint32(want, math.Float32bits(f))
			}
			for _, f := range pb.DoubleData {
				want = binary.LittleEndian.AppendUint64(want, math.Float64bits(f))
			}
			b, err := proto.Marshal(&onnxpb.ModelProto{IrVersion: proto.Int64(8), Graph: &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{pb}}})
			if err != nil {
				t.Fatal(err)
			}
			m := parse(t, b)
			w := m.Graph.Inits[0].Init
			if w.Data.Len() != int64(len(want)) {
				t.Errorf("got %d bytes, want %d", w.Data.Len(), len(want))
			}
			if got, err := w.Data.Bytes(); err != nil || !bytes.Equal(got, want) {
				t.Errorf("got %d bytes, %v, not those wanted", len(got), err)
			}
			if got := encoded(t, m); !bytes.Equal(got, b) {
				t.Error("not written back as it was")
			}
		})
	}
}

// TestMalformedTensors: a tensor that contradicts itself does not keep the model from being read and
// written back; its data are an error that names it.
func TestMalformedTensors(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"short raw", `dims: 2 data_type: 1 raw_data: "1234"`, "4 bytes in raw_data, want 8 for float[2]"},
		{"long raw", `dims: 1 data_type: 1 raw_data: "12345"`, "5 bytes in raw_data, want 4"},
		{"short list", `dims: 3 data_type: 7 int64_data: 1`, "8 bytes in int64_data, want 24 for int64[3]"},
		{"wrong list", `dims: 1 data_type: 1 int64_data: 1`, "0 bytes in float_data, want 4"},
		{"no data", `dims: 2 data_type: 1`, "0 bytes in float_data, want 8"},
		{"negative", `dims: -1 data_type: 1 raw_data: "1234"`, "dimensions [-1] are not a shape"},
		{"huge", `dims: 4611686018427387904 dims: 8 data_type: 1`, "are not a shape"},
		{"large", `dims: 1099511627776 data_type: 1`, "0 bytes in float_data, want 4398046511104"},
		{"no type", `dims: 1 raw_data: "1234"`, "element type 0 is not known"},
		{"unknown type", `dims: 1 data_type: 99 raw_data: "1234"`, "element type 99 is not known"},
		{"segment", `dims: 1 data_type: 1 raw_data: "1234" segment { begin: 0 end: 1 }`, "segments"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := encode(t, `ir_version: 8 graph { initializer { name: "bad" `+tc.text+` } initializer { name: "good" data_type: 1 float_data: 1 } }`)
			m := parse(t, b)
			if got := encoded(t, m); !bytes.Equal(got, b) {
				t.Errorf("got %q, want %q", got, b)
			}
			_, err := m.Graph.Inits[0].Init.Data.Bytes()
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), `test: initializer "bad"`) {
				t.Errorf("got %v, want %q of initializer bad", err, tc.want)
			}
			strip(m)
			if err := Write(new(bytes.Buffer), m); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("rebuilt: got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestNewTensors(t *testing.T) {
	m := graph.NewModel("g", 18)
	m.Graph.AddInit("f", graph.Floats([]int64{2}, 1, 2))
	m.Graph.AddInit("s", &graph.Tensor{Elem: graph.String, Dims: []int64{2}, Strings: []string{"a", "\xff"}})
	m.Graph.AddInit("none", &graph.Tensor{Elem: graph.Float, Dims: []int64{0}})
	big := &graph.Tensor{Elem: graph.Uint8, Dims: []int64{5000}, Data: graph.Bytes(make([]byte, 5000))}
	m.Graph.AddInit("big", big)
	if got, want := dump(reread(t, m)), strings.Replace(dump(m), `"none" float[0] []`, `"none" float[0] `, 1); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	big.Dims[0]++
	if err := Write(new(bytes.Buffer), m); err == nil || !strings.Contains(err.Error(), `initializer "big": 5000 bytes, want 5001`) {
		t.Errorf("got %v", err)
	}
}

// TestBackendValues reads the inputs and outputs of the ONNX backend suite as what their models
// declare, and writes and reads them again.
func TestBackendValues(t *testing.T) {
	kinds := map[graph.Kind]int{}
	bad := 0
	eachFile(t, filepath.Join("corpus", "onnx-backend"), func(path string) {
		m, c, err := Open(path, ReadOptions{})
		if err != nil {
			return
		}
		defer c.Close()
		check := func(file string, v *graph.Value) {
			if _, err := os.Stat(file); err != nil {
				return
			}
			d, err := ReadDatum(file, v.Type)
			if err != nil {
				t.Errorf("%s (%s): %v", file, v.Type, err)
				return
			}
			if d.Kind != v.Type.Kind {
				t.Errorf("%s: got kind %d, want %d", file, d.Kind, v.Type.Kind)
			}
			kinds[d.Kind]++
			var b bytes.Buffer
			if err := WriteDatum(&b, d); err != nil {
				bad++
				t.Logf("%s: %v", file, err)
				return
			}
			again, err := ParseDatum(b.Bytes(), "again", v.Type)
			if err != nil || dumpDatum(again) != dumpDatum(d) {
				t.Errorf("%s: got %v, %v, want %v", file, dumpDatum(again), err, dumpDatum(d))
			}
		}
		sets, err := filepath.Glob(filepath.Join(filepath.Dir(path), "test_data_set_*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range sets {
			for i, v := range m.Graph.Inputs {
				check(filepath.Join(dir, fmt.Sprintf("input_%d.pb", i)), v)
			}
			for i, v := range m.Graph.Outputs {
				check(filepath.Join(dir, fmt.Sprintf("output_%d.pb", i)), v)
			}
		}
	}, "model.onnx")
	t.Logf("%d tensors, %d sequences, %d optionals; %d cannot be written", kinds[graph.KindTensor], kinds[graph.KindSequence], kinds[graph.KindOptional], bad)
	if kinds[graph.KindTensor] == 0 || kinds[graph.KindSequence] == 0 || kinds[graph.KindOptional] == 0 {
		t.Error("a kind is missing")
	}
}

func dumpDatum(d *Datum) string {
	if d == nil {
		return "nil"
	}
	s := fmt.Sprintf("%d %q", d.Kind, d.Name)
	if d.Tensor != nil {
		s += " " + dumpTensor(d.Tensor)
	}
	if d.Sparse != nil {
		s += " " + dumpTensor(d.Sparse.Values) + dumpTensor(d.Sparse.Indices)
	}
	if d.Keys != nil {
		s += " " + dumpTensor(d.Keys)
	}
	for _, item := range d.Items {
		s += " {" + dumpDatum(item) + "}"
	}
	return s
}

func TestDatum(t *testing.T) {
	tensor := func(v float32) *Datum {
		return &Datum{Kind: graph.KindTensor, Tensor: graph.Floats(nil, v)}
	}
	seq := func(items ...*Datum) *Datum { return &Datum{Kind: graph.KindSequence, Items: items} }
	for _, d := range []*Datum{
		tensor(1),
		seq(), seq(tensor(1), tensor(2)), seq(seq(tensor(1)), seq()),
		{Kind: graph.KindOptional, Name: "o"}, {Kind: graph.KindOptional, Items: []*Datum{seq(tensor(3))}},
		{Kind: graph.KindMap, Keys: graph.Ints(nil, -1, 5), Items: []*Datum{tensor(1), tensor(2)}},
		{Kind: graph.KindMap, Keys: &graph.Tensor{Elem: graph.String, Dims: []int64{1}, Strings: []string{"k"}}, Items: []*Datum{tensor(1)}},
		{Kind: graph.KindMap, Keys: &graph.Tensor{Elem: graph.Int8, Dims: []int64{1}, Data: graph.Bytes{0xfe}}, Items: []*Datum{tensor(1)}},
		{Kind: graph.KindSparse, Sparse: &graph.Sparse{Dims: []int64{3}, Values: graph.Floats(nil, 1), Indices: graph.Ints(nil, 2)}},
	} {
		var b bytes.Buffer
		if err := WriteDatum(&b, d); err != nil {
			t.Errorf("%s: %v", dumpDatum(d), err)
			continue
		}
		got, err := ParseDatum(b.Bytes(), "again", graph.Type{Kind: d.Kind})
		if err != nil || dumpDatum(got) != dumpDatum(d) {
			t.Errorf("got %s, %v, want %s", dumpDatum(got), err, dumpDatum(d))
		}
	}
	if err := WriteDatum(new(bytes.Buffer), seq(tensor(1), seq())); err == nil {
		t.Error("a sequence of different kinds is written")
	}
	if _, err := ParseDatum([]byte("text"), "in", graph.Type{Kind: graph.KindTensor}); err == nil {
		t.Error("text is a tensor")
	}
}

// FuzzDatum: no input panics as a value of any kind, and what can be read can be written.
func FuzzDatum(f *testing.F) {
	f.Add([]byte("\x08\x02\x10\x01\x22\x08\x00\x00\x80\x3f\x00\x00\x00\x40"), uint8(graph.KindTensor))
	f.Add([]byte("\x10\x01\x1a\x04\x10\x01\x4a\x00"), uint8(graph.KindSequence))
	f.Add([]byte("\x10\x07\x18\x05\x2a\x06\x10\x01\x1a\x02\x10\x01"), uint8(graph.KindMap))
	f.Fuzz(func(t *testing.T, in []byte, kind uint8) {
		typ := graph.Type{Kind: graph.Kind(kind % uint8(graph.KindOpaque))}
		d, err := ParseDatum(in, "in", typ)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if WriteDatum(&b, d) != nil {
			return // malformed data
		}
		again, err := ParseDatum(b.Bytes(), "in", graph.Type{Kind: d.Kind})
		if err != nil || dumpDatum(again) != dumpDatum(d) {
			t.Fatalf("got %s, %v, want %s", dumpDatum(again), err, dumpDatum(d))
		}
	})
}

// TestHeap: weights are not loaded, neither by reading nor by writing, changed or not.
func TestHeap(t *testing.T) {
	const size = 64 << 20
	m := graph.NewModel("g", 18)
	x := m.Graph.AddInit("w", &graph.Tensor{Elem: graph.Uint8, Dims: []int64{size}, Data: graph.Bytes(make([]byte, size))})
	m.Graph.AddOutput(x)
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := WriteFile(path, m); err != nil {
		t.Fatal(err)
	}
	m = nil
	allocated := func() uint64 {
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.TotalAlloc
	}
	before := allocated()
	m, c, err := Open(path, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m.Graph.Inits[0].Name = "renamed"
	m.Graph.Inits[0].Init.Dims = []int64{size / 2, 2}
	for _, o := range []WriteOptions{{}, {External: true}} {
		if err := o.WriteFile(path+".new", m); err != nil {
			t.Fatal(err)
		}
	}
	if got := allocated() - before; got > size/32 {
		t.Errorf("%d bytes allocated for a model of %d", got, size)
	}
}
