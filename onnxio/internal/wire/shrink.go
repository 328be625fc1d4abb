package wire

import (
	"bytes"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// lazyAt is the length from which a tensor payload is left in the source.
const lazyAt = 1 << 10

// A shrinker makes the skeleton of encoded bytes: the same message with a span
// mark in place of each large tensor payload. Parts that cannot contain a
// tensor are copied without a look. With origins set it looks at every message,
// and adds an origin mark to those that are not encoded canonically.
type shrinker struct {
	store   *Store
	src     *Source
	data    []byte
	origins bool
	out     []byte
}

// message appends the skeleton of data[lo:hi]. With exact unset nothing in it
// gets a mark: it is one of several encodings that a decoder merges into one
// message, and marks cannot be merged.
func (s *shrinker) message(m *message, lo, hi, depth int, exact bool) *SyntaxError {
	if depth > maxDepth {
		return s.fail(lo, fmt.Sprintf("messages are nested more than %d deep", maxDepth))
	}
	twice, fail := s.repeated(m, lo, hi)
	if fail != nil {
		return fail
	}
	var spans []byte // marks
	var own []byte   // the message with empty children, to test its encoding
	canonical := true
	for pos := lo; pos < hi; {
		e, _ := next(s.data, pos, hi)
		if _, isMark, err := s.store.mark(e.num, e.typ, s.data[e.val:e.end]); isMark || err != nil {
			return s.fail(pos, "the field is reserved to gradtool's memory")
		}
		f := m.field(e.num)
		single := e.num >= 64 || twice&(1<<uint(e.num)) == 0
		switch {
		case e.typ == protowire.BytesType && f.child != nil && (f.child.reaches || s.origins):
			if fail := s.child(f, e, depth, exact && (single || f.list)); fail != nil {
				fail.Path = joinPath(s.step(f, lo, e), fail.Path)
				return fail
			}
			if s.origins {
				own = append(own, s.data[e.start:e.start+tagSize(s.data[e.start:])]...)
				own = append(own, 0)
				canonical = canonical && e.minimal()
			}
		case e.typ == protowire.BytesType && f.lazy && exact && single && e.end-e.val >= lazyAt:
			spans = s.store.appendMark(spans, spanMark, len(s.store.spans))
			s.store.spans = append(s.store.spans, Span{e.num, Ref{s.src, int64(e.val), int64(e.end - e.val)}})
			if s.origins {
				own = protowire.AppendTag(own, e.num, protowire.BytesType)
				own = protowire.AppendBytes(own, make([]byte, 8)) // a valid list of any element
				canonical = canonical && e.minimal()
			}
		default:
			s.write(e.start, e.end)
			if s.origins {
				own = append(own, s.data[e.start:e.end]...)
			}
		}
		pos = e.end
	}
	s.out = append(s.out, spans...)
	if s.origins && exact && !(canonical && isCanonical(m, own)) {
		s.origin(lo, hi)
	}
	return nil
}

// write appends data[lo:hi]. The skeleton of a large graph takes megabytes, so its buffer doubles where append would copy
// five times as much as it holds in the end.
func (s *shrinker) write(lo, hi int) {
	if more := hi - lo; len(s.out)+more > cap(s.out) {
		s.out = slices.Grow(s.out, max(more, cap(s.out), 1<<12))
	}
	s.out = append(s.out, s.data[lo:hi]...)
}

func (s *shrinker) origin(lo, hi int) {
	s.out = s.store.appendMark(s.out, originMark, len(s.store.origins))
	s.store.origins = append(s.store.origins, origin{ref: Ref{s.src, int64(lo), int64(hi - lo)}})
}

// child appends the field e, a message, with its new length.
func (s *shrinker) child(f field, e element, depth int, exact bool) *SyntaxError {
	start := len(s.out)
	s.write(e.start, e.val)
	body := len(s.out)
	if fail := s.message(f.child, e.val, e.end, depth+1, exact); fail != nil {
		return fail
	}
	size := len(s.out) - body
	if size == e.end-e.val {
		return nil
	}
	head := start + tagSize(s.data[e.start:])
	s.out = slices.Replace(s.out, head, body, protowire.AppendVarint(nil, uint64(size))...)
	return nil
}

// repeated is the set of field numbers below 64 that occur more than once. It
// also checks that the fields can be read.
func (s *shrinker) repeated(m *message, lo, hi int) (twice uint64, fail *SyntaxError) {
	var once uint64
	for pos := lo; pos < hi; {
		e, reason := next(s.data, pos, hi)
		if reason != "" {
			fail := s.fail(pos, reason)
			if f := m.field(e.num); f.name != "" {
				fail.Path = s.step(f, lo, e)
			}
			return 0, fail
		}
		if e.num < 64 {
			bit := uint64(1) << uint(e.num)
			twice |= once & bit
			once |= bit
		}
		pos = e.end
	}
	return twice, nil
}

// isCanonical says that decoding and encoding gives the same bytes.
func isCanonical(m *message, enc []byte) bool {
	x := m.typ.New().Interface()
	if err := proto.Unmarshal(enc, x); err != nil {
		return false
	}
	again, err := encode(x)
	return err == nil && bytes.Equal(enc, again)
}

func (s *shrinker) fail(at int, reason string) *SyntaxError {
	return &SyntaxError{Source: s.src.name, Offset: int64(at), Reason: reason}
}

// step names the field e of the message that begins at lo, such as node[3].
func (s *shrinker) step(f field, lo int, e element) string {
	if !f.list {
		return f.name
	}
	index := 0
	for pos := lo; pos < e.start; {
		o, _ := next(s.data, pos, e.start)
		if o.num == e.num {
			index++
		}
		pos = o.end
	}
	return fmt.Sprintf("%s[%d]", f.name, index)
}

func joinPath(a, b string) string {
	if b == "" {
		return a
	}
	return a + "." + b
}

func tagSize(b []byte) int {
	_, n := protowire.ConsumeVarint(b)
	return n
}

func tagReason(code int, what string) string {
	return fmt.Sprintf("cannot read a %s: %v", what, protowire.ParseError(code))
}

func cutShort(num protowire.Number, size uint64, left int) string {
	return fmt.Sprintf("field %d should have %d bytes, but only %d are left", num, size, left)
}
