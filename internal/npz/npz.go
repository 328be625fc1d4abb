package npz

import (
	"archive/zip"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
)

const (
	maxArrays = 1 << 20  // members of an archive
	utf8Flag  = 1 << 11  // the member's name is UTF-8
	firstDay  = 1<<5 | 1 // 1980-01-01, the earliest date of the zip format
)

// Read reads all arrays of a .npz archive in the order of the archive. Names
// have the ".npy" of the member removed, as numpy.load does. Members that are
// not .npy files and repeated names are errors.
func Read(r io.ReaderAt, size int64) ([]Array, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not an npz archive: %w", err)
	}
	if len(z.File) > maxArrays {
		return nil, fmt.Errorf("archive of %d members is too large", len(z.File))
	}
	var out []Array
	seen := map[string]bool{}
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		name, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			return nil, fmt.Errorf("member %q is not an npy file", f.Name)
		}
		if seen[name] {
			return nil, fmt.Errorf("member %q appears twice", f.Name)
		}
		seen[name] = true
		a, err := readMember(f)
		if err != nil {
			return nil, fmt.Errorf("member %q: %w", f.Name, err)
		}
		a.Name = name
		out = append(out, a)
	}
	return out, nil
}

func readMember(f *zip.File) (Array, error) {
	rc, err := f.Open()
	if err != nil {
		return Array{}, err
	}
	defer rc.Close()
	a, err := ReadNPY(rc)
	if err != nil {
		return Array{}, err
	}
	// Reading to the end has the checksum verified.
	n, err := io.Copy(io.Discard, io.LimitReader(rc, 1))
	if err != nil {
		return Array{}, err
	}
	if n > 0 {
		return Array{}, errors.New("bytes after the array")
	}
	return a, nil
}

// ReadFile reads an .npz file, or an .npy file as one array without a name.
func ReadFile(path string) ([]Array, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var start [6]byte
	n, err := f.ReadAt(start[:], 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if n == len(start) && string(start[:]) == string(magic) {
		a, err := ReadNPY(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return []Array{a}, nil
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	arrays, err := Read(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return arrays, nil
}

// Write writes the arrays as a .npz archive, stored, in the given order and
// with a fixed date, so that equal arrays give equal bytes. Names must be distinct
// and not empty.
func Write(w io.Writer, arrays []Array) error {
	z := zip.NewWriter(w)
	seen := map[string]bool{}
	for _, a := range arrays {
		if a.Name == "" {
			return errors.New("array without a name")
		}
		if seen[a.Name] {
			return fmt.Errorf("two arrays are named %q", a.Name)
		}
		seen[a.Name] = true
		if err := writeMember(z, a); err != nil {
			return err
		}
	}
	return z.Close()
}

// writeMember writes a with its sizes and checksum in front: some readers of
// .npz files map the arrays and do not know the trailing form.
func writeMember(z *zip.Writer, a Array) error {
	head, err := npyHeader(a)
	if err != nil {
		return err
	}
	size := uint64(len(head) + len(a.Data))
	w, err := z.CreateRaw(&zip.FileHeader{
		Name:  a.Name + ".npy",
		Flags: utf8Flag,
		//lint:ignore SA1019 CreateRaw writes this field and not Modified
		ModifiedDate:       firstDay,
		Method:             zip.Store,
		CRC32:              crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, a.Data),
		CompressedSize64:   size,
		UncompressedSize64: size,
	})
	if err != nil {
		return fmt.Errorf("array %q: %w", a.Name, err)
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err = w.Write(a.Data)
	return err
}
