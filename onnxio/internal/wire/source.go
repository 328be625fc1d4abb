package wire

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
)

// A Source is the bytes of one input: a mapped file or memory. Its methods may
// be called from several goroutines, Close only after all others returned.
//
// The file must not be truncated or rewritten in place while the source is
// open; replacing it by rename is fine.
type Source struct {
	name  string
	data  []byte
	file  *os.File // nil when the bytes are in memory only
	base  int64    // offset in file of data[0]
	after []func() error
	done  bool
}

// Open maps the file at path. An empty file is a valid, empty source. A FIFO or
// a device is read as FromReader reads it.
func Open(path string) (*Source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		defer f.Close()
		return FromReader(f, path)
	}
	src, err := fromFile(f, path, 0)
	if err != nil {
		f.Close()
		return nil, err
	}
	src.after = append(src.after, f.Close)
	return src, nil
}

// FromBytes makes a source of b, which must not change as long as it is used.
func FromBytes(b []byte) *Source {
	return &Source{name: "memory", data: b}
}

// spoolAt is how much of a stream is held in memory before it goes to a file.
const spoolAt = 1 << 20

// FromReader reads all of r, at most MaxSize bytes, else the error is
// ErrTooLarge. A regular file, such as standard input redirected from one, is
// mapped from its current offset and not read. Any other stream of more than
// 1 MiB is copied to a temporary file without a name, which is then mapped:
// half a gigabyte of weights belongs in the page cache, where the system can
// write it out, and not on the heap, where the garbage collector would let it
// grow to double the size. name is for messages.
func FromReader(r io.Reader, name string) (*Source, error) {
	if f, ok := r.(*os.File); ok {
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
			if at, err := f.Seek(0, io.SeekCurrent); err == nil {
				return fromFile(f, name, at)
			}
		}
	}
	head, err := io.ReadAll(io.LimitReader(r, spoolAt))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(head) < spoolAt {
		return &Source{name: name, data: head}, nil
	}
	return spool(head, r, name)
}

func spool(head []byte, rest io.Reader, name string) (_ *Source, err error) {
	f, err := os.CreateTemp("", "gradtool-*.onnx")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	after := []func() error{f.Close, func() error { return os.Remove(f.Name()) }}
	if runtime.GOOS != "windows" && os.Remove(f.Name()) == nil {
		after = after[:1] // gone already: nothing stays behind whatever happens
	}
	defer func() {
		if err != nil {
			runAll(after)
			err = fmt.Errorf("%s: %w", name, err)
		}
	}()
	if _, err := f.Write(head); err != nil {
		return nil, err
	}
	n, err := f.ReadFrom(io.LimitReader(rest, MaxSize-int64(len(head))+1))
	if err != nil {
		return nil, err
	}
	if n+int64(len(head)) > MaxSize {
		return nil, ErrTooLarge
	}
	src, err := fromFile(f, name, 0)
	if err != nil {
		return nil, err
	}
	src.after = append(src.after, after...)
	return src, nil
}

// fromFile maps f from the offset at on; f stays open, and the caller's.
func fromFile(f *os.File, name string, at int64) (*Source, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is not a file", name)
	}
	size := st.Size()
	if size > math.MaxInt {
		return nil, fmt.Errorf("%s: %d bytes do not fit in the address space", name, size)
	}
	if size <= at {
		return &Source{name: name, file: f, base: at}, nil
	}
	data, free, err := mapFile(f, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &Source{name: name, data: data[at:], file: f, base: at, after: []func() error{free}}, nil
}

func runAll(fs []func() error) error {
	var errs []error
	for _, f := range fs {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// Name is the path or name the source was made with.
func (s *Source) Name() string { return s.name }

// Len is the number of bytes.
func (s *Source) Len() int64 { return int64(len(s.data)) }

// Ref is the n bytes at off, an error if they are not all within the source.
func (s *Source) Ref(off, n int64) (Ref, error) {
	if off < 0 || n < 0 || off > s.Len() || n > s.Len()-off {
		return Ref{}, fmt.Errorf("%s: %d bytes at offset %d reach beyond its %d bytes", s.name, n, off, s.Len())
	}
	return Ref{s, off, n}, nil
}

// Close unmaps the bytes. Slices got from a Ref must not be used afterwards.
func (s *Source) Close() error {
	if s.done {
		return nil
	}
	s.done = true
	return runAll(s.after)
}

// A Ref is a range of bytes of a source. The zero Ref is empty.
type Ref struct {
	src    *Source
	off, n int64
}

// BytesRef refers to b, which must not change as long as the Ref is used.
func BytesRef(b []byte) Ref {
	return Ref{FromBytes(b), 0, int64(len(b))}
}

// Len is the number of bytes.
func (r Ref) Len() int64 { return r.n }

// Source is the source, nil for the zero Ref.
func (r Ref) Source() *Source { return r.src }

// Offset is the position of the first byte in the source.
func (r Ref) Offset() int64 { return r.off }

// Slice is the part of n bytes from off on, an error if out of range.
func (r Ref) Slice(off, n int64) (Ref, error) {
	if off < 0 || n < 0 || off > r.n || n > r.n-off {
		return Ref{}, fmt.Errorf("%d bytes at offset %d reach beyond a range of %d bytes", n, off, r.n)
	}
	return Ref{r.src, r.off + off, n}, nil
}

// Bytes is the bytes themselves, not a copy: they must not be written, and not
// be used after the source is closed. The only error is ErrClosed.
func (r Ref) Bytes() ([]byte, error) {
	if r.src == nil {
		return nil, nil
	}
	if r.src.done {
		return nil, fmt.Errorf("%s: %w", r.src.name, ErrClosed)
	}
	return r.src.data[r.off : r.off+r.n : r.off+r.n], nil
}

// WriteTo streams the bytes to w; between regular files the system copies them.
func (r Ref) WriteTo(w io.Writer) (int64, error) {
	out := newOutput(w)
	defer out.close()
	out.ref(r)
	out.flush()
	return out.n, out.err
}
