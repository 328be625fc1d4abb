package wire

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// A mark is a private unknown field inside a message, see the package comment.
// Its payload is magic, the store's nonce, the kind, and an index in the
// store's table for that kind. The nonce keeps a mark from being taken for one
// of another store, or for a field of a file made to look like one.
const (
	markNumber = protowire.MaxValidNumber
	magic      = "\x00gradtool mark\x00\xff"
	markSize   = len(magic) + 8 + 1 + 4
)

type markKind byte

const (
	spanMark   markKind = 1
	originMark markKind = 2
)

type mark struct {
	kind  markKind
	index int
}

func (s *Store) appendMark(b []byte, kind markKind, index int) []byte {
	b = protowire.AppendTag(b, markNumber, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(markSize))
	b = append(b, magic...)
	b = append(b, s.nonce[:]...)
	b = append(b, byte(kind))
	return binary.LittleEndian.AppendUint32(b, uint32(index))
}

// mark decodes the field with the given number, type and payload. ok is false
// for an ordinary field; the error is ErrForeign for a mark that is not one of s.
func (s *Store) mark(num protowire.Number, typ protowire.Type, payload []byte) (m mark, ok bool, err error) {
	if num != markNumber || typ != protowire.BytesType || len(payload) < len(magic) || string(payload[:len(magic)]) != magic {
		return mark{}, false, nil
	}
	if len(payload) != markSize || string(payload[len(magic):len(magic)+8]) != string(s.nonce[:]) {
		return mark{}, false, ErrForeign
	}
	m.kind = markKind(payload[len(magic)+8])
	m.index = int(binary.LittleEndian.Uint32(payload[len(magic)+9:]))
	switch m.kind {
	case spanMark:
		ok = m.index < len(s.spans)
	case originMark:
		ok = m.index < len(s.origins)
	}
	if !ok {
		return mark{}, false, ErrForeign
	}
	return m, true, nil
}

// An element is one field of encoded bytes.
type element struct {
	num             protowire.Number
	typ             protowire.Type
	start, val, end int // tag, first byte of the value or payload, end
}

// next reads the field at pos of data[:hi]. For a length-delimited field val is
// where the payload begins. The reason is empty if it could be read.
func next(data []byte, pos, hi int) (e element, reason string) {
	num, typ, n := protowire.ConsumeTag(data[pos:hi])
	if n < 0 {
		return e, tagReason(n, "field tag")
	}
	e = element{num: num, typ: typ, start: pos, val: pos + n}
	if typ == protowire.BytesType {
		size, k := protowire.ConsumeVarint(data[e.val:hi])
		if k < 0 {
			return e, tagReason(k, "length")
		}
		e.val += k
		if size > uint64(hi-e.val) {
			return e, cutShort(num, size, hi-e.val)
		}
		e.end = e.val + int(size)
		return e, ""
	}
	n = protowire.ConsumeFieldValue(num, typ, data[e.val:hi])
	if n < 0 {
		return e, tagReason(n, "value")
	}
	e.end = e.val + n
	return e, ""
}

// minimal says that the tag and the length of a length-delimited e are encoded
// in as few bytes as they can.
func (e element) minimal() bool {
	return e.val-e.start == protowire.SizeTag(e.num)+protowire.SizeVarint(uint64(e.end-e.val))
}
