package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"gradtool/onnxio/onnxpb"
)

// ReadModel reads a model. The source must stay open as long as the model or
// any of its Refs is used. Errors: ErrEmpty, ErrTooLarge, ErrNotModel for bytes
// that can be read as a message but are no model, *SyntaxError for others.
func (s *Store) ReadModel(src *Source) (*onnxpb.ModelProto, error) {
	m := new(onnxpb.ModelProto)
	if err := s.Read(src, m); err != nil {
		if _, syntax := errors.AsType[*SyntaxError](err); syntax && bytes.HasPrefix(src.data, []byte("version https://git-lfs")) {
			err = fmt.Errorf("%s: %w: it is a Git LFS pointer; fetch the file itself with git lfs pull", src.name, ErrNotModel)
		}
		return nil, err
	}
	if m.Graph == nil && m.IrVersion == nil && len(m.OpsetImport) == 0 && len(m.Functions) == 0 {
		return nil, fmt.Errorf("%s: %w: it has no graph, no functions and no IR version", src.name, ErrNotModel)
	}
	return m, nil
}

// Read reads any ONNX message, such as a lone TensorProto, into m. An empty
// source is ErrEmpty, though protobuf takes it for a message without fields.
func (s *Store) Read(src *Source, m proto.Message) error {
	ms, err := schemaOf(m)
	if err != nil {
		return err
	}
	switch {
	case src.done:
		return fmt.Errorf("%s: %w", src.name, ErrClosed)
	case src.Len() == 0:
		return fmt.Errorf("%s: %w", src.name, ErrEmpty)
	case src.Len() > MaxSize:
		return fmt.Errorf("%s: %w", src.name, ErrTooLarge)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	spans, origins := len(s.spans), len(s.origins)
	err = guard(func() error { return s.read(src, ms, m) })
	if err != nil {
		s.spans, s.origins = s.spans[:spans], s.origins[:origins]
	}
	if err == ErrChanged || err == ErrForeign {
		return fmt.Errorf("%s: %w", src.name, err)
	}
	return err
}

// How much is remembered of the original encoding.
const (
	noOrigins   = iota
	someOrigins // of each message that is not encoded canonically
	rootOrigin  // of the whole as well
)

// read tries with as few origins as will do, and proves that they do.
func (s *Store) read(src *Source, ms *message, m proto.Message) error {
	spans, origins := len(s.spans), len(s.origins)
	for level := noOrigins; level <= rootOrigin; level++ {
		s.spans, s.origins = s.spans[:spans], s.origins[:origins]
		sh := &shrinker{store: s, src: src, data: src.data, origins: level > noOrigins}
		if fail := sh.message(ms, 0, len(src.data), 0, true); fail != nil {
			return fail
		}
		if level == rootOrigin {
			sh.origin(0, len(src.data))
		}
		// One more than maxDepth, which counts from 0 at the root.
		if err := (proto.UnmarshalOptions{RecursionLimit: maxDepth + 1}).Unmarshal(sh.out, m); err != nil {
			return s.locate(src, ms, err)
		}
		skel, err := encode(m)
		if err != nil {
			return fmt.Errorf("%s: %w", src.name, err)
		}
		if level > noOrigins {
			if _, _, err := s.plan(ms, skel, true); err != nil {
				return err
			}
		}
		segs, _, err := s.plan(ms, skel, false)
		if err != nil {
			return err
		}
		if same(segs, src) {
			return nil
		}
	}
	return fmt.Errorf("%s: cannot be represented without loss", src.name)
}

// locate turns the error of the decoder, which does not say where, into one
// that does, by a look at every message.
func (s *Store) locate(src *Source, ms *message, err error) error {
	sh := &shrinker{store: s, src: src, data: src.data, origins: true}
	if fail := sh.message(ms, 0, len(src.data), 0, true); fail != nil {
		return fail
	}
	return &SyntaxError{Source: src.name, Reason: err.Error()}
}

// encode is the canonical encoding of m, marks and all.
func encode(m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m)
}

// Write writes m, a message of this store or one made anew, and returns the
// number of bytes given to w. The encoding is deterministic: known fields in
// protobuf's order, then unknown ones. Before anything is written, it fails
// with ErrTooLarge, with ErrForeign, and with ErrOverwrite if w is a file that
// m has data in. If w is a regular file, large payloads are copied between the
// files by the system; otherwise w is given slices of the mapping.
func (s *Store) Write(w io.Writer, m proto.Message) (int64, error) {
	segs, size, err := s.pieces(m)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", nameOf(m), err)
	}
	if size > MaxSize {
		return 0, fmt.Errorf("%s of %d bytes: %w", nameOf(m), size, ErrTooLarge)
	}
	out := newOutput(w)
	defer out.close()
	for _, sg := range segs {
		if sg.ref.n > 0 && sg.ref.src.done {
			return 0, fmt.Errorf("%s: %w", sg.ref.src.name, ErrClosed)
		}
		if out.overwrites(sg.ref.src) {
			return 0, fmt.Errorf("%s: %w", sg.ref.src.name, ErrOverwrite)
		}
	}
	if err := guard(func() error { segs = runs(segs); return nil }); err != nil {
		return 0, err
	}
	for _, sg := range segs {
		if sg.ref.n > 0 {
			out.ref(sg.ref)
		} else {
			out.bytes(sg.lit)
		}
	}
	out.flush()
	return out.n, out.err
}

// Size is the number of bytes that Write would write.
func (s *Store) Size(m proto.Message) (int64, error) {
	_, size, err := s.pieces(m)
	return size, err
}

// Displacement says how many bytes more in front of the payloads would make those that lie
// alike, counted in bytes most of what m takes from files, begin as far into a block as they do in their
// files: 0 to BlockSize-1. moved is how many bytes these are, 0 if all of m's payloads are short.
func (s *Store) Displacement(m proto.Message) (by, moved int64, err error) {
	segs, _, err := s.pieces(m)
	if err != nil {
		return 0, 0, err
	}
	var pos int64
	bytes := map[int64]int64{}
	for _, sg := range segs {
		if sg.ref.n >= copyAt {
			bytes[(sg.ref.off-pos)&(BlockSize-1)] += sg.ref.n
		}
		pos += sg.ref.n + int64(len(sg.lit))
	}
	for d, n := range bytes {
		if n > moved || n == moved && d < by {
			by, moved = d, n
		}
	}
	return by, moved, nil
}

func (s *Store) pieces(m proto.Message) ([]segment, int64, error) {
	ms, err := schemaOf(m)
	if err != nil {
		return nil, 0, err
	}
	skel, err := encode(m)
	if err != nil {
		return nil, 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.plan(ms, skel, false)
}
