package wire

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"gradtool/onnxio/onnxpb"
)

// The fields of TensorProto that a Span can stand for.
const (
	FloatData  protowire.Number = 4  // packed, 4 bytes each
	Int32Data  protowire.Number = 5  // packed varints
	Int64Data  protowire.Number = 7  // packed varints
	RawData    protowire.Number = 9  // little-endian elements
	DoubleData protowire.Number = 10 // packed, 8 bytes each
	Uint64Data protowire.Number = 11 // packed varints
)

// A Span is one tensor payload that is not decoded: the bytes of raw_data, or
// the packed encoding of a typed list. Packed floats and doubles are laid out
// as raw_data of FLOAT, COMPLEX64, DOUBLE and COMPLEX128 would be.
type Span struct {
	Field protowire.Number
	Ref   Ref
}

// Held is the number of bytes of all payloads that the store's spans stand for.
func (s *Store) Held() (n int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, sp := range s.spans {
		n += sp.Ref.n
	}
	return n
}

// An origin is the encoding that a message had in its source, and the hash of
// the canonical encoding, marks included, of what it was decoded to.
type origin struct {
	ref  Ref
	hash [sha256.Size]byte
}

// A Store reads and writes messages whose payloads stay in their sources. It
// may be used from several goroutines, each with messages of its own.
type Store struct {
	nonce [8]byte

	mu      sync.RWMutex
	spans   []Span
	origins []origin
}

// NewStore makes an empty store.
func NewStore() *Store {
	s := &Store{}
	rand.Read(s.nonce[:]) // never fails, and never reaches an output
	return s
}

// Spans is the payloads of t that are not decoded, in field order. The fields
// they stand for are unset in t. ErrForeign if t stems from another store.
func (s *Store) Spans(t *onnxpb.TensorProto) ([]Span, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var spans []Span
	err := s.unknown(t, func(m mark, isMark bool, _ []byte) {
		if isMark && m.kind == spanMark {
			spans = append(spans, s.spans[m.index])
		}
	})
	slices.SortFunc(spans, func(a, b Span) int { return int(a.Field - b.Field) })
	return spans, err
}

// SetRef makes r the raw_data of t, in place of all data that t held, decoded
// or not. Name, shape, type and the rest of t stay.
func (s *Store) SetRef(t *onnxpb.TensorProto, r Ref) error {
	return s.SetSpans(t, Span{RawData, r})
}

// SetSpans makes spans the only data of t. It fails if a field is not one a
// Span can stand for, or is given twice.
func (s *Store) SetSpans(t *onnxpb.TensorProto, spans ...Span) error {
	m, err := schemaOf(t)
	if err != nil {
		return err
	}
	for i, sp := range spans {
		if !m.field(sp.Field).lazy {
			return fmt.Errorf("tensor %q: field %d cannot be a span", t.GetName(), sp.Field)
		}
		if slices.ContainsFunc(spans[:i], func(o Span) bool { return o.Field == sp.Field }) {
			return fmt.Errorf("tensor %q: field %d is given twice", t.GetName(), sp.Field)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var keep []byte
	err = s.unknown(t, func(m mark, isMark bool, raw []byte) {
		if !isMark || m.kind != spanMark {
			keep = append(keep, raw...)
		}
	})
	if err != nil {
		return err
	}
	r := t.ProtoReflect()
	fields := r.Descriptor().Fields()
	for num, f := range m.fields {
		if f.lazy || num == stringData {
			r.Clear(fields.ByNumber(protowire.Number(num)))
		}
	}
	for _, sp := range spans {
		keep = s.appendMark(keep, spanMark, len(s.spans))
		s.spans = append(s.spans, sp)
	}
	r.SetUnknown(keep)
	return nil
}

// stringData is the one data field of a tensor that is always decoded.
const stringData = 6

// Decode turns the spans of t into decoded fields, on the heap.
func (s *Store) Decode(t *onnxpb.TensorProto) error {
	spans, err := s.Spans(t)
	if err != nil || len(spans) == 0 {
		return err
	}
	old := t.ProtoReflect().GetUnknown()
	for _, sp := range spans {
		b, err := sp.Ref.Bytes()
		if err != nil {
			return err
		}
		enc := protowire.AppendTag(nil, sp.Field, protowire.BytesType)
		enc = protowire.AppendBytes(enc, b)
		if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(enc, t); err != nil {
			return fmt.Errorf("tensor %q: field %d is not a packed list: %w", t.GetName(), sp.Field, err)
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var keep []byte
	t.ProtoReflect().SetUnknown(old)
	err = s.unknown(t, func(m mark, isMark bool, raw []byte) {
		if !isMark || m.kind != spanMark {
			keep = append(keep, raw...)
		}
	})
	t.ProtoReflect().SetUnknown(keep)
	return err
}

// Unknown is the unknown fields of m itself, without marks, nil if there are none.
func (s *Store) Unknown(m proto.Message) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var real []byte
	err := s.unknown(m, func(_ mark, isMark bool, raw []byte) {
		if !isMark {
			real = append(real, raw...)
		}
	})
	return real, err
}

// unknown calls f for each unknown field of m, raw being its tag and value.
func (s *Store) unknown(m proto.Message, f func(mk mark, isMark bool, raw []byte)) error {
	data := []byte(m.ProtoReflect().GetUnknown())
	for pos := 0; pos < len(data); {
		e, reason := next(data, pos, len(data))
		if reason != "" {
			return &SyntaxError{"unknown fields", int64(pos), nameOf(m), reason}
		}
		mk, ok, err := s.mark(e.num, e.typ, data[e.val:e.end])
		if err != nil {
			return err
		}
		f(mk, ok, data[pos:e.end])
		pos = e.end
	}
	return nil
}

func nameOf(m proto.Message) string {
	return string(m.ProtoReflect().Descriptor().FullName().Name())
}
