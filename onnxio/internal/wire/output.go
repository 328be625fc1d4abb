package wire

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

const (
	bufferSize = 256 << 10
	// copyAt is the length from which the system is asked to copy from file to
	// file: below it, system calls cost more than the copy.
	copyAt = 64 << 10
	// BlockSize is the alignment on which the system can pass on what it holds of one file to
	// another in the units it holds it in: Linux moves 16 pages at a time, and where these begin
	// elsewhere in both files takes each apart. Any multiple of a file system's blocks will do; a wrong
	// guess only costs time.
	BlockSize = 64 << 10
	// chunkSize is how much is read and written at a time. Larger writes make the
	// system look for larger pages, in vain once memory is fragmented.
	chunkSize = 512 << 10
)

// An output writes literal bytes and Refs. After the first error it does
// nothing more.
type output struct {
	buf   *bufio.Writer
	file  *os.File             // the writer, if it is a regular file
	base  int64                // where in file the output begins
	from  map[*Source]*os.File // own handles of the sources, nil where there is none
	open  []*os.File           // the same, in order
	piece []byte
	n     int64 // bytes given to the writer or its buffer
	err   error
}

func newOutput(w io.Writer) *output {
	o := &output{buf: bufio.NewWriterSize(w, bufferSize), from: map[*Source]*os.File{}}
	if f, ok := w.(*os.File); ok {
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
			o.file = f
			o.base, _ = f.Seek(0, io.SeekCurrent)
		}
	}
	return o
}

func (o *output) bytes(b []byte) {
	if o.err != nil {
		return
	}
	var n int
	o.err = guard(func() (err error) {
		n, err = o.buf.Write(b)
		return err
	})
	o.n += int64(n)
}

func (o *output) ref(r Ref) {
	if o.err != nil || r.n == 0 {
		return
	}
	if r.n >= copyAt && o.file != nil {
		if f := o.handle(r.src); f != nil {
			at := o.base + o.n
			if (at-r.src.base-r.off)%BlockSize != 0 {
				o.chunks(f, r)
				return
			}
			// Where the blocks of both files lie alike the system copies within itself, or
			// only notes that they are shared, if it begins at one.
			head := min(-at&(BlockSize-1), r.n)
			o.chunks(f, Ref{r.src, r.off, head})
			o.copy(f, Ref{r.src, r.off + head, r.n - head})
			return
		}
	}
	b, err := r.Bytes()
	if err != nil {
		o.err = err
		return
	}
	o.bytes(b)
}

// handle is a handle of the source's file with an offset of its own, nil if
// there is none.
func (o *output) handle(src *Source) *os.File {
	f, asked := o.from[src]
	if !asked && src.file != nil && !src.done {
		if again, err := reopen(src.file); err == nil {
			f = again
			o.open = append(o.open, again)
		}
		o.from[src] = f
	}
	return f
}

// chunks reads and writes bytes of a file in pieces that end at blocks of the output.
func (o *output) chunks(f *os.File, r Ref) {
	o.flush()
	if o.piece == nil {
		o.piece = make([]byte, chunkSize)
	}
	for done := int64(0); done < r.n && o.err == nil; {
		b := o.piece[:min(chunkSize-(o.base+o.n)%BlockSize, r.n-done)]
		if _, err := f.ReadAt(b, r.src.base+r.off+done); err != nil {
			if err == io.EOF {
				err = ErrChanged
			}
			o.err = fmt.Errorf("%s: %w", r.src.name, err)
			return
		}
		var k int
		k, o.err = o.file.Write(b)
		o.n += int64(k)
		done += int64(k)
	}
}

func (o *output) copy(f *os.File, r Ref) {
	if o.flush(); o.err != nil {
		return
	}
	if _, o.err = f.Seek(r.src.base+r.off, io.SeekStart); o.err != nil {
		return
	}
	// os.File copies from a limited file within the kernel where it can.
	n, err := o.file.ReadFrom(&io.LimitedReader{R: f, N: r.n})
	o.n += n
	if err == nil && n < r.n {
		err = fmt.Errorf("%s: %w", r.src.name, ErrChanged)
	}
	o.err = err
}

func (o *output) flush() {
	if o.err == nil {
		o.err = o.buf.Flush()
	}
}

func (o *output) close() {
	for _, f := range o.open {
		f.Close()
	}
}

// overwrites says that the output is the file of src.
func (o *output) overwrites(src *Source) bool {
	if o.file == nil || src == nil || src.file == nil {
		return false
	}
	a, err := o.file.Stat()
	if err != nil {
		return false
	}
	b, err := src.file.Stat()
	return err == nil && os.SameFile(a, b)
}
