package wire

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"gradtool/onnxio/onnxpb"
)

// A raw builds encoded fields in any order and form.
type raw []byte

func (r raw) str(num protowire.Number, s string) raw {
	return protowire.AppendString(protowire.AppendTag(r, num, protowire.BytesType), s)
}

func (r raw) msg(num protowire.Number, b raw) raw { return r.str(num, string(b)) }

func (r raw) int(num protowire.Number, v uint64) raw {
	return protowire.AppendVarint(protowire.AppendTag(r, num, protowire.VarintType), v)
}

// long is msg with a length of one byte more than needed.
func (r raw) long(num protowire.Number, b raw) raw {
	r = protowire.AppendTag(r, num, protowire.BytesType)
	n := protowire.AppendVarint(nil, uint64(len(b)))
	n[len(n)-1] |= 0x80
	return append(append(append(r, n...), 0), b...)
}

// TestNonCanonical covers every way in which bytes can differ from what this
// program would write, and checks that a change elsewhere leaves them alone.
func TestNonCanonical(t *testing.T) {
	big := raw(payload(5000))
	weight := raw(nil).str(8, "w").msg(9, big)
	for _, tc := range []struct {
		name string
		node raw // the node of a graph with a weight
	}{
		{"canonical", raw(nil).str(1, "a").str(2, "y").str(4, "Relu")},
		{"out of order", raw(nil).str(4, "Relu").str(2, "y").str(1, "a")},
		{"interleaved list", raw(nil).str(1, "a").str(2, "y").str(1, "b")},
		{"doubled field", raw(nil).str(3, "first").str(3, "second")},
		{"unknown field in the middle", raw(nil).str(1, "a").str(900, "kept").str(4, "Relu")},
		{"unknown group", protowire.AppendTag(protowire.AppendTag(raw(nil), 901, protowire.StartGroupType), 901, protowire.EndGroupType)},
		{"wrong wire type", raw(nil).int(4, 3).str(4, "Relu")},
		{"explicit default", raw(nil).str(1, "").str(4, "")},
		{"long length", raw(nil).long(5, raw(nil).str(1, "alpha"))},
		{"long varint", raw(nil).msg(5, append(raw(nil).int(20, 1)[:2], 0x81, 0x80, 0x00))},
		{"unknown enum value", raw(nil).msg(5, raw(nil).int(20, 99).str(21, "ref"))},
		{"packed ints", raw(nil).msg(5, raw(nil).str(8, "\x01\x02\x03"))},
		{"unpacked floats", raw(nil).msg(5, raw(nil).msg(5, append(protowire.AppendTag(raw(nil), 4, protowire.Fixed32Type), 0, 0, 128, 63)))},
		{"weight before name", raw(nil).msg(5, raw(nil).msg(5, raw(nil).msg(9, big).str(8, "w")))},
		{"weight of long length", raw(nil).msg(5, raw(nil).msg(5, raw(nil).long(9, big)))},
		{"doubled weight", raw(nil).msg(5, raw(nil).msg(5, raw(nil).msg(9, big).msg(9, big[1:])))},
		{"weight list in two parts", raw(nil).msg(5, raw(nil).msg(5, raw(nil).msg(4, big).msg(4, big)))},
		{"merged tensors", raw(nil).msg(5, raw(nil).msg(5, weight).msg(5, raw(nil).str(12, "doc")))},
		{"merged tensors, second weight", raw(nil).msg(5, raw(nil).msg(5, weight).msg(5, weight))},
		{"oneof set twice", raw(nil).msg(5, raw(nil).msg(14, raw(nil).msg(1, raw(nil).int(1, 1)).msg(4, raw(nil)).msg(1, raw(nil).int(1, 7))))},
		{"unknown field after weight", raw(nil).msg(5, raw(nil).msg(5, raw(nil).msg(9, big).str(900, "kept")))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			graph := raw(nil).msg(1, tc.node).str(2, "g").msg(5, weight)
			enc := []byte(raw(nil).int(1, 8).msg(7, graph))
			store := NewStore()
			m, err := store.ReadModel(FromBytes(enc))
			if err != nil {
				t.Fatal(err)
			}
			plain := new(onnxpb.ModelProto)
			if err := proto.Unmarshal(enc, plain); err != nil {
				t.Fatal(err)
			}
			if got := write(t, store, m); !bytes.Equal(got, enc) {
				t.Fatalf("untouched:\ngot  %q\nwant %q", got, enc)
			}
			// A change outside the node leaves the node's bytes.
			m.Graph.Name = proto.String("renamed")
			m.ProducerName = proto.String("p")
			want := []byte(raw(nil).int(1, 8).str(2, "p").msg(7, raw(nil).msg(1, tc.node).str(2, "renamed").msg(5, weight)))
			if got := write(t, store, m); !bytes.Equal(got, want) {
				t.Fatalf("changed elsewhere:\ngot  %q\nwant %q", got, want)
			}
			// A change inside it is written, with nothing lost.
			m.Graph.Node[0].Domain = proto.String("changed")
			plain.Graph.Name, plain.ProducerName, plain.Graph.Node[0].Domain = m.Graph.Name, m.ProducerName, m.Graph.Node[0].Domain
			got := new(onnxpb.ModelProto)
			if err := proto.Unmarshal(write(t, store, m), got); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(got, plain) {
				t.Fatalf("changed inside:\ngot  %v\nwant %v", got, plain)
			}
			if real, err := store.Unknown(m.Graph.Node[0]); err != nil || !bytes.Equal(real, plain.Graph.Node[0].ProtoReflect().GetUnknown()) {
				t.Errorf("got unknown fields %q, %v, want %q", real, err, plain.Graph.Node[0].ProtoReflect().GetUnknown())
			}
		})
	}
}

// FuzzReadModel: no input panics, and what can be read is written back as it
// was; with a change, it can still be read.
func FuzzReadModel(f *testing.F) {
	f.Add(marshal(f, testModel(2000)))
	f.Add([]byte(raw(nil).msg(7, raw(nil).str(2, "g").msg(1, raw(nil).str(4, "Relu").str(1, "a"))).int(1, 8)))
	f.Add([]byte(raw(nil).msg(7, raw(nil).msg(5, raw(nil).msg(9, payload(1500)).long(8, raw("w"))))))
	f.Add([]byte(raw(nil).msg(7, raw(nil).msg(5, raw(nil).msg(4, payload(1600)))).msg(7, raw(nil).str(2, "again"))))
	f.Add([]byte{})
	f.Add([]byte("\x3a\xff\xff\xff\xff\x07"))
	f.Fuzz(func(t *testing.T, data []byte) {
		store := NewStore()
		m, err := store.ReadModel(FromBytes(data))
		if err != nil {
			return
		}
		if got := write(t, store, m); !bytes.Equal(got, data) {
			t.Fatalf("got  %q\nwant %q", got, data)
		}
		m.ProducerName = proto.String("changed")
		again, err := store.ReadModel(FromBytes(write(t, store, m)))
		if err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
		if again.GetProducerName() != "changed" {
			t.Fatalf("got producer %q", again.GetProducerName())
		}
	})
}
