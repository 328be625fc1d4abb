package onnxio

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"gradtool/graph"
	"gradtool/onnxio/internal/wire"
	"gradtool/onnxio/onnxpb"
)

// heavyModel writes a model with weights just worth padding, behind which their place is to be found.
func heavyModel(t *testing.T) (path string, marker []byte) {
	marker = []byte("the first bytes of the weights")
	raw := make([]byte, alignFrom)
	copy(raw, marker)
	b, err := proto.Marshal(&onnxpb.ModelProto{
		IrVersion:   proto.Int64(9),
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(21)}},
		Graph: &onnxpb.GraphProto{
			Name: proto.String("heavy"),
			Node: []*onnxpb.NodeProto{{OpType: proto.String("Neg"), Input: []string{"w"}, Output: []string{"y"}}},
			Initializer: []*onnxpb.TensorProto{{
				Name: proto.String("w"), DataType: proto.Int32(1), Dims: []int64{alignFrom / 4}, RawData: raw,
			}},
			Output: []*onnxpb.ValueInfoProto{{Name: proto.String("y")}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "heavy.onnx")
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path, marker
}

// Weights keep their place within the blocks of a file through a chain of stages, each of which adds a
// node; there is never more than one padding, no stage sees it, and streams have the bytes of files.
func TestAlign(t *testing.T) {
	path, marker := heavyModel(t)
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for stage, name := range []string{"a", strings.Repeat("b", 300), "c"} {
		m, c, err := Open(path, ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		g := m.Graph
		last := g.Nodes[len(g.Nodes)-1]
		if len(last.Meta) != 0 {
			t.Errorf("stage %d: a reader sees metadata %v", stage, last.Meta)
		}
		var same bytes.Buffer
		if err := Write(&same, m); err != nil {
			t.Fatal(err)
		}
		if now, _ := os.ReadFile(path); !bytes.Equal(same.Bytes(), now) {
			t.Errorf("stage %d: an untouched model is written differently", stage)
		}
		n := g.NewNode("", "Neg", []*graph.Value{last.Out[0]}, []string{name})
		g.Nodes = append(g.Nodes, n)
		to := filepath.Join(t.TempDir(), "next.onnx")
		if err := WriteFile(to, m); err != nil {
			t.Fatal(err)
		}
		var stream bytes.Buffer
		if err := Write(&stream, m); err != nil {
			t.Fatal(err)
		}
		c.Close()
		now, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(now, stream.Bytes()) {
			t.Errorf("stage %d: the stream differs from the file", stage)
		}
		a, b := bytes.Index(was, marker), bytes.Index(now, marker)
		if (b-a)%wire.BlockSize != 0 {
			t.Errorf("stage %d: weights at byte %d were at %d: not multiples of %d apart", stage, b, a, wire.BlockSize)
		}
		if k := bytes.Count(now, []byte(paddingKey)); k != 1 {
			t.Errorf("stage %d: %d paddings", stage, k)
		}
		if !bytes.Equal(now[b:b+alignFrom], was[a:a+alignFrom]) {
			t.Errorf("stage %d: the weights are others", stage)
		}
		path, was = to, now
	}
}

// Every size that a padding can have is met exactly, with or without one that was there before.
func TestPadTo(t *testing.T) {
	was := &onnxpb.NodeProto{OpType: proto.String("Neg"), Output: []string{"y"}}
	pb := &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{was}}}
	missed := 0
	for size := 32; size < 20000; size += 1 + size/50 {
		for _, from := range []*onnxpb.ModelProto{pb, padTo(pb, 1000)} {
			padded := padTo(from, size)
			if padded == nil {
				missed++
				continue
			}
			if got := fieldSize(padded.Graph.Node[0]) - fieldSize(from.Graph.Node[0]); got != size {
				t.Errorf("the node is %d bytes longer, not %d", got, size)
			}
		}
	}
	if missed > 4 {
		t.Errorf("%d sizes are not met", missed)
	}
	if len(was.MetadataProps) > 0 {
		t.Error("the padded message has been changed")
	}
}
