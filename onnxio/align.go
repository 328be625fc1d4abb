package onnxio

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"gradtool/onnxio/internal/wire"
	"gradtool/onnxio/onnxpb"
)

const (
	// paddingKey is the key of a metadata entry of a main graph's last node: spaces, whose only use is
	// their number. Readers drop it.
	paddingKey = "gradtool.padding"
	// alignFrom is how many bytes of weights a model holds at least that is worth padding.
	alignFrom = 64 << 20
)

// align returns pb, padded if weights would lie otherwise in the blocks of its file than in those of
// the file they come from, because nodes were added in front of them. Systems copy whole blocks from file to
// file, or share them, and take others apart. Streams are padded like files, so that both have the same
// bytes.
func (w *writer) align(pb *onnxpb.ModelProto) (*onnxpb.ModelProto, error) {
	if w.store.Held() < alignFrom {
		return pb, nil // known without laying the file out
	}
	by, moved, err := w.store.Displacement(pb)
	if err != nil || by == 0 || moved < alignFrom || len(pb.GetGraph().GetNode()) == 0 {
		return pb, err
	}
	if bare := unpad(pb); bare != pb {
		pb = bare
		if by, _, err = w.store.Displacement(pb); err != nil || by == 0 {
			return pb, err
		}
	}
	// No entry has some of the lengths, where the length's own encoding takes a byte more.
	for _, size := range []int64{by, by + wire.BlockSize} {
		padded := padTo(pb, int(size))
		if padded == nil {
			continue
		}
		if by, _, err := w.store.Displacement(padded); err != nil || by == 0 {
			return padded, err
		}
	}
	return pb, nil
}

// padTo returns pb with a padding that makes the encoding of the graph's last node longer by size, nil if
// there is none.
func padTo(pb *onnxpb.ModelProto, size int) *onnxpb.ModelProto {
	last := len(pb.Graph.Node) - 1
	was := pb.Graph.Node[last]
	n := shallow(was)
	rest := unpadded(was.MetadataProps)
	n.MetadataProps = rest
	target := fieldSize(was) + size
	most := target - fieldSize(n) - len(paddingKey)
	// Beside key and value an entry takes less than twenty bytes.
	for fill := max(0, most-20); fill <= most; fill++ {
		n.MetadataProps = append(rest[:len(rest):len(rest)], &onnxpb.StringStringEntryProto{
			Key: proto.String(paddingKey), Value: proto.String(strings.Repeat(" ", fill)),
		})
		if fieldSize(n) == target {
			pb = shallow(pb)
			pb.Graph = shallow(pb.Graph)
			pb.Graph.Node = slices.Clone(pb.Graph.Node)
			pb.Graph.Node[last] = n
			return pb
		}
	}
	return nil
}

// unpad returns pb without paddings of earlier stages.
func unpad(pb *onnxpb.ModelProto) *onnxpb.ModelProto {
	var g *onnxpb.GraphProto
	for i, n := range pb.Graph.Node {
		if rest := unpadded(n.MetadataProps); len(rest) < len(n.MetadataProps) {
			if g == nil {
				g = shallow(pb.Graph)
				g.Node = slices.Clone(g.Node)
			}
			g.Node[i] = shallow(n)
			g.Node[i].MetadataProps = rest
		}
	}
	if g == nil {
		return pb
	}
	pb = shallow(pb)
	pb.Graph = g
	return pb
}

// fieldSize is the number of bytes of n behind its tag.
func fieldSize(n *onnxpb.NodeProto) int { return protowire.SizeBytes(proto.Size(n)) }

// unpadded returns the entries but for paddings.
func unpadded(list []*onnxpb.StringStringEntryProto) []*onnxpb.StringStringEntryProto {
	if !slices.ContainsFunc(list, isPadding) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), isPadding)
}

func isPadding(e *onnxpb.StringStringEntryProto) bool { return e.GetKey() == paddingKey }
