package wire

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"gradtool/onnxio/onnxpb"
)

// payload is n bytes that differ from each other in a run.
func payload(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

func tensor(name string, n int) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{
		Name: proto.String(name), DataType: proto.Int32(int32(onnxpb.TensorProto_UINT8)),
		Dims: []int64{int64(n)}, RawData: payload(n), DocString: proto.String("after raw_data"),
	}
}

func testModel(sizes ...int) *onnxpb.ModelProto {
	g := &onnxpb.GraphProto{Name: proto.String("g")}
	for _, n := range sizes {
		g.Initializer = append(g.Initializer, tensor("w", n))
	}
	inner := &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{tensor("captured", 3000)}}
	g.Node = []*onnxpb.NodeProto{{
		OpType: proto.String("If"), Input: []string{"c"}, Output: []string{"y"},
		Attribute: []*onnxpb.AttributeProto{{
			Name: proto.String("then_branch"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: inner,
		}},
	}}
	return &onnxpb.ModelProto{IrVersion: proto.Int64(10), Graph: g}
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, s *Store, m proto.Message) []byte {
	t.Helper()
	var out bytes.Buffer
	n, err := s.Write(&out, m)
	if err != nil {
		t.Fatal(err)
	}
	if size, err := s.Size(m); size != n || int64(out.Len()) != n || err != nil {
		t.Fatalf("wrote %d bytes, returned %d, Size %d, %v", out.Len(), n, size, err)
	}
	return out.Bytes()
}

func writeFile(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSpans(t *testing.T) {
	enc := marshal(t, testModel(10, lazyAt-1, lazyAt, 200_000))
	store, src := NewStore(), FromBytes(enc)
	m, err := store.ReadModel(src)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range m.Graph.Initializer {
		n := int(w.Dims[0])
		spans, err := store.Spans(w)
		if err != nil {
			t.Fatal(err)
		}
		if n < lazyAt {
			if len(spans) != 0 || !bytes.Equal(w.RawData, payload(n)) {
				t.Errorf("initializer %d: got %d spans and %d bytes, want the bytes", i, len(spans), len(w.RawData))
			}
			continue
		}
		if len(spans) != 1 || spans[0].Field != RawData || w.RawData != nil {
			t.Fatalf("initializer %d: got %v and %d bytes, want one span", i, spans, len(w.RawData))
		}
		if got, _ := spans[0].Ref.Bytes(); !bytes.Equal(got, payload(n)) || spans[0].Ref.Len() != int64(n) {
			t.Errorf("initializer %d: the span has other bytes", i)
		} else if &got[0] != &enc[spans[0].Ref.Offset()] {
			t.Errorf("initializer %d: the bytes are a copy", i)
		}
	}
	inner := m.Graph.Node[0].Attribute[0].G.Initializer[0]
	if spans, err := store.Spans(inner); err != nil || len(spans) != 1 {
		t.Errorf("subgraph initializer: got %v, %v, want one span", spans, err)
	}
	if got := write(t, store, m); !bytes.Equal(got, enc) {
		t.Error("not identical")
	}
	// A clone carries the marks with it.
	if got := write(t, store, proto.Clone(m)); !bytes.Equal(got, enc) {
		t.Error("clone not identical")
	}
}

func TestTypedData(t *testing.T) {
	want := &onnxpb.TensorProto{Name: proto.String("typed")}
	for i := range 2000 {
		want.FloatData = append(want.FloatData, float32(i)/3)
		want.Int32Data = append(want.Int32Data, int32(i-1000))
		want.Int64Data = append(want.Int64Data, int64(i)<<i%60)
		want.DoubleData = append(want.DoubleData, float64(i)/3)
		want.Uint64Data = append(want.Uint64Data, uint64(i)<<i%60)
	}
	enc := marshal(t, want)
	store, got := NewStore(), new(onnxpb.TensorProto)
	if err := store.Read(FromBytes(enc), got); err != nil {
		t.Fatal(err)
	}
	spans, err := store.Spans(got)
	if err != nil || len(spans) != 5 || got.FloatData != nil {
		t.Fatalf("got %d spans, %d floats, %v, want 5 spans", len(spans), len(got.FloatData), err)
	}
	if !bytes.Equal(write(t, store, got), enc) {
		t.Error("not identical")
	}
	if err := store.Decode(got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Error("decoded values differ")
	}
	if !bytes.Equal(write(t, store, got), enc) {
		t.Error("not identical after Decode")
	}
}

func TestSetRef(t *testing.T) {
	store := NewStore()
	m, err := store.ReadModel(FromBytes(marshal(t, testModel(5000, 6000))))
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(writeFile(t, payload(300_000)))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	external, err := other.Ref(100, 200_000)
	if err != nil {
		t.Fatal(err)
	}
	want := testModel(5000, 6000)
	want.Graph.Initializer[0].RawData = payload(300_000)[100:200_100]
	want.Graph.Initializer[1].RawData = []byte("small")
	if err := store.SetRef(m.Graph.Initializer[0], external); err != nil {
		t.Fatal(err)
	}
	if err := store.SetRef(m.Graph.Initializer[1], BytesRef([]byte("small"))); err != nil {
		t.Fatal(err)
	}
	enc := marshal(t, want)
	if !bytes.Equal(write(t, store, m), enc) {
		t.Error("other bytes than a model made with the data inline")
	}
	// The same into a file, where the payload is copied by the system.
	path := filepath.Join(t.TempDir(), "out.onnx")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Write(f, m); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got, _ := os.ReadFile(path); !bytes.Equal(got, enc) {
		t.Error("other bytes in a file")
	}

	if err := store.SetSpans(m.Graph.Initializer[0], Span{stringData, external}); err == nil {
		t.Error("string_data was accepted as a span")
	}
	m.Graph.Initializer[0].RawData = []byte("and inline")
	if _, err := store.Write(io.Discard, m); err == nil {
		t.Error("a tensor with a span and inline data was written")
	}
}

func TestWriteErrors(t *testing.T) {
	a, b := NewStore(), NewStore()
	path := writeFile(t, marshal(t, testModel(100_000)))
	src, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := a.ReadModel(src)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("another store", func(t *testing.T) {
		var out bytes.Buffer
		if n, err := b.Write(&out, m); !errors.Is(err, ErrForeign) || n != 0 || out.Len() != 0 {
			t.Errorf("got %d bytes, %v, want ErrForeign", out.Len(), err)
		}
	})
	t.Run("own input", func(t *testing.T) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := a.Write(f, m); !errors.Is(err, ErrOverwrite) {
			t.Errorf("got %v, want ErrOverwrite", err)
		}
	})
	t.Run("over 2 GiB", func(t *testing.T) {
		r := BytesRef(make([]byte, 1<<20))
		big := testModel()
		for range 1 << 11 {
			w := &onnxpb.TensorProto{}
			if err := b.SetRef(w, r); err != nil {
				t.Fatal(err)
			}
			big.Graph.Initializer = append(big.Graph.Initializer, w)
		}
		var out bytes.Buffer
		if _, err := b.Write(&out, big); !errors.Is(err, ErrTooLarge) || out.Len() != 0 {
			t.Errorf("got %d bytes, %v, want ErrTooLarge", out.Len(), err)
		}
	})
	t.Run("closed source", func(t *testing.T) {
		if err := src.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Write(io.Discard, m); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}

func TestReadErrors(t *testing.T) {
	good := marshal(t, testModel(5000))
	deep := []byte(nil)
	for range 60 { // graph in attribute in node in graph ...
		deep = protowire.AppendBytes(protowire.AppendTag(nil, 6, protowire.BytesType), deep)
		deep = protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), deep)
		deep = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), deep)
	}
	deep = protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), deep)
	badType := marshal(t, &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Input: []*onnxpb.ValueInfoProto{{}, {Name: proto.String("x")}}}})
	badType[len(badType)-2] = 5 // the name claims more than there is
	for _, tc := range []struct {
		name string
		data []byte
		is   error
		want string
	}{
		{"empty", nil, ErrEmpty, "memory: the input is empty"},
		{"cut", good[:len(good)-100], nil, "byte 2 (graph): field 7 should have"},
		{"text", []byte("not a model at all"), nil, "memory: byte"},
		{"lfs", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"), ErrNotModel, "git lfs pull"},
		{"other message", marshal(t, &onnxpb.ModelProto{ProducerName: proto.String("p")}), ErrNotModel, "no graph"},
		{"deep", deep, nil, "nested more than 100 deep"},
		{"inside a type", badType, nil, "byte 6 (graph.input[1].name): field 1 should have 5 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := NewStore()
			_, err := store.ReadModel(FromBytes(tc.data))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got %v, want %v", err, tc.is)
			}
			if _, syntax := errors.AsType[*SyntaxError](err); syntax == (tc.is != nil) {
				t.Errorf("got %T, want a *SyntaxError exactly where there is no other kind", err)
			}
			if len(store.spans) != 0 {
				t.Error("a failed read left spans behind")
			}
		})
	}
}
