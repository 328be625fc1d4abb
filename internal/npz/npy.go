// Package npz reads and writes NumPy's array files: .npy, one array, and .npz,
// a zip archive of them. The formats are described in NumPy's
// numpy/lib/format.py and NEP 1.
//
// Arrays are exchanged as raw little-endian bytes in C order. Reading takes
// either byte order, C and Fortran order, and stored or deflated archives;
// writing gives little-endian C order in a stored archive, byte for byte the
// same for the same arrays. Files are not trusted: a malformed or truncated one
// is an error, and memory is taken only as data arrives, whatever a header says.
package npz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Array is one array. Descr is NumPy's description of the elements in
// little-endian form: "|b1", "|i1", "|u1", "<i2" ... "<i8", "<u2" ... "<u8",
// "<f2", "<f4", "<f8", "<c8" (two float32), "<c16" (two float64). Data holds
// the elements in C order; an empty Shape is a scalar.
type Array struct {
	Name  string
	Descr string
	Shape []int
	Data  []byte
}

// Limits on what a header may say.
const (
	maxHeader = 1 << 16
	maxRank   = 64 // NumPy's own is 32, then 64
)

var magic = []byte("\x93NUMPY")

// elementSize returns the bytes of one element of the little-endian or
// byte-order-free description d, and of its scalar parts (half of a complex).
func elementSize(d string) (size, part int, ok bool) {
	switch d {
	case "|b1", "|i1", "|u1":
		return 1, 1, true
	case "<i2", "<u2", "<f2":
		return 2, 2, true
	case "<i4", "<u4", "<f4":
		return 4, 4, true
	case "<i8", "<u8", "<f8":
		return 8, 8, true
	case "<c8":
		return 8, 4, true
	case "<c16":
		return 16, 8, true
	}
	return 0, 0, false
}

// byteCount returns the bytes of an array, an error when a dimension is
// negative or the product overflows.
func byteCount(shape []int, size int) (int, error) {
	n, empty := uint64(size), false
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("negative dimension %d", d)
		}
		if d == 0 {
			empty = true
			continue
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > 1<<62 {
			return 0, fmt.Errorf("shape %v is too large", shape)
		}
		n = lo
	}
	if empty {
		return 0, nil
	}
	if n > uint64(^uint(0)>>1) {
		return 0, fmt.Errorf("shape %v is too large", shape)
	}
	return int(n), nil
}

// ReadNPY reads one .npy stream. The name of the array stays empty. Bytes after
// the array are left unread.
func ReadNPY(r io.Reader) (Array, error) {
	h, err := readHeader(r)
	if err != nil {
		return Array{}, err
	}
	descr, swap := h.descr, false
	switch {
	case strings.HasPrefix(descr, ">"):
		swap = true
		descr = "<" + descr[1:]
	case strings.HasPrefix(descr, "="):
		descr = "<" + descr[1:]
	}
	if len(descr) == 3 && descr[2] == '1' && descr[0] == '<' {
		descr = "|" + descr[1:]
	}
	if descr == "|?" || descr == "<?" || descr == "?" {
		descr = "|b1"
	}
	size, part, ok := elementSize(descr)
	if !ok {
		return Array{}, fmt.Errorf("element type %q is not supported", h.descr)
	}
	n, err := byteCount(h.shape, size)
	if err != nil {
		return Array{}, err
	}
	data, err := readExactly(r, n)
	if err != nil {
		return Array{}, fmt.Errorf("data of shape %v, type %s: %w", h.shape, descr, err)
	}
	if swap && part > 1 {
		for i := 0; i < len(data); i += part {
			slices.Reverse(data[i : i+part])
		}
	}
	if h.fortran {
		data = toCOrder(data, h.shape, size)
	}
	return Array{Descr: descr, Shape: h.shape, Data: data}, nil
}

// readExactly reads n bytes, growing the buffer only as data arrives, so that a
// header cannot ask for memory the file does not fill.
func readExactly(r io.Reader, n int) ([]byte, error) {
	const step = 1 << 16
	if n <= step {
		buf := make([]byte, n)
		_, err := io.ReadFull(r, buf)
		return buf, truncated(err)
	}
	var b bytes.Buffer
	b.Grow(step)
	m, err := io.CopyN(&b, r, int64(n))
	if err != nil {
		return nil, fmt.Errorf("%d of %d bytes: %w", m, n, truncated(err))
	}
	return b.Bytes(), nil
}

func truncated(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// toCOrder returns the elements of a column-major array in row-major order.
func toCOrder(data []byte, shape []int, size int) []byte {
	if len(shape) < 2 || len(data) == 0 {
		return data
	}
	stride := make([]int, len(shape)) // in the column-major source, in bytes
	s := size
	for i, d := range shape {
		stride[i] = s
		s *= d
	}
	out := make([]byte, 0, len(data))
	index := make([]int, len(shape))
	for at := 0; ; {
		out = append(out, data[at:at+size]...)
		i := len(shape) - 1
		for ; i >= 0; i-- {
			index[i]++
			at += stride[i]
			if index[i] < shape[i] {
				break
			}
			at -= index[i] * stride[i]
			index[i] = 0
		}
		if i < 0 {
			return out
		}
	}
}

type header struct {
	descr   string
	fortran bool
	shape   []int
}

func readHeader(r io.Reader) (header, error) {
	var pre [8]byte
	if _, err := io.ReadFull(r, pre[:]); err != nil {
		return header{}, fmt.Errorf("npy header: %w", truncated(err))
	}
	if !bytes.Equal(pre[:6], magic) {
		return header{}, errors.New("not an npy file")
	}
	var n uint32
	switch pre[6] {
	case 1:
		var b [2]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return header{}, fmt.Errorf("npy header: %w", truncated(err))
		}
		n = uint32(binary.LittleEndian.Uint16(b[:]))
	case 2, 3:
		var b [4]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return header{}, fmt.Errorf("npy header: %w", truncated(err))
		}
		n = binary.LittleEndian.Uint32(b[:])
	default:
		return header{}, fmt.Errorf("npy version %d.%d is not supported", pre[6], pre[7])
	}
	if n > maxHeader {
		return header{}, fmt.Errorf("npy header of %d bytes is too large", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return header{}, fmt.Errorf("npy header: %w", truncated(err))
	}
	h, err := parseHeader(string(text))
	if err != nil {
		return header{}, fmt.Errorf("npy header: %w", err)
	}
	return h, nil
}

// WriteNPY writes a as a version 1.0 .npy stream.
func WriteNPY(w io.Writer, a Array) error {
	head, err := npyHeader(a)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err = w.Write(a.Data)
	return err
}

// npyHeader returns the bytes in front of the data, checked against it.
func npyHeader(a Array) ([]byte, error) {
	size, _, ok := elementSize(a.Descr)
	if !ok {
		return nil, fmt.Errorf("array %q: element type %q is not supported", a.Name, a.Descr)
	}
	if len(a.Shape) > maxRank {
		return nil, fmt.Errorf("array %q: %d dimensions are too many", a.Name, len(a.Shape))
	}
	n, err := byteCount(a.Shape, size)
	if err != nil {
		return nil, fmt.Errorf("array %q: %w", a.Name, err)
	}
	if n != len(a.Data) {
		return nil, fmt.Errorf("array %q: shape %v of %s takes %d bytes, not %d", a.Name, a.Shape, a.Descr, n, len(a.Data))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{'descr': '%s', 'fortran_order': False, 'shape': (", a.Descr)
	for i, d := range a.Shape {
		if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(strconv.Itoa(d))
		if i == 0 || i < len(a.Shape)-1 {
			b.WriteString(",")
		}
	}
	b.WriteString("), }")
	// The data starts at a multiple of 64; the header ends with a newline.
	const before = 10 // magic, version, length
	pad := 63 - (before+b.Len())%64
	b.WriteString(strings.Repeat(" ", pad) + "\n")
	out := append(slices.Clone(magic), 1, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(b.Len()))
	return append(out, b.String()...), nil
}
