package onnxio

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gradtool/onnxio/internal/wire"
)

// An external is a mapped external data file, or why it is not to be had.
type external struct {
	src  *wire.Source
	file *os.File
	err  error
}

// A location is where external data lie, as the entries of external_data say.
type location struct {
	path     string // slash-separated, relative to the model's folder
	offset   int64
	length   int64 // -1 if not given
	checksum string
}

func (d *data) location() (location, error) {
	at := location{length: -1}
	number := func(key, value string) (int64, error) {
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil || n < 0 {
			return 0, d.errorf("external data: %s %q is not a size", key, value)
		}
		return n, nil
	}
	var err error
	for _, e := range d.pb.ExternalData {
		switch e.GetKey() {
		case "location":
			at.path = e.GetValue()
		case "offset":
			at.offset, err = number("offset", e.GetValue())
		case "length":
			at.length, err = number("length", e.GetValue())
		case "checksum":
			at.checksum = e.GetValue()
		}
		if err != nil {
			return at, err
		}
	}
	if at.path == "" {
		return at, d.errorf("external data without a location")
	}
	return at, nil
}

// externalRef returns where the elements lie in their external file, which is mapped if it was not yet.
func (d *data) externalRef() (wire.Ref, error) {
	at, err := d.location()
	if err != nil {
		return wire.Ref{}, err
	}
	if at.length < 0 {
		if at.length = d.want(); at.length < 0 {
			return wire.Ref{}, d.check(0, at.path)
		}
	}
	if err := d.check(at.length, "external data"); err != nil {
		return wire.Ref{}, err
	}
	src, err := d.file.openExternal(at)
	if err != nil {
		return wire.Ref{}, &ExternalError{File: d.file.name, Tensor: d.what, Location: at.path, Err: err}
	}
	ref, err := src.Ref(at.offset, at.length)
	if err != nil {
		err = fmt.Errorf("external data: %w; is it the file of this model, and complete?", err)
		return wire.Ref{}, &ExternalError{File: d.file.name, Tensor: d.what, Location: at.path, Err: err}
	}
	return ref, nil
}

// openExternal maps an external data file, once.
func (f *file) openExternal(at location) (*wire.Source, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, wire.ErrClosed
	}
	x := f.external[at.path]
	if x == nil {
		if f.external == nil {
			f.external = map[string]*external{}
		}
		x = &external{}
		x.src, x.file, x.err = f.mapExternal(at.path)
		if x.err == nil && f.opt.Checksums && at.checksum != "" {
			x.err = x.verify(at)
		}
		f.external[at.path] = x
	}
	return x.src, x.err
}

func (f *file) mapExternal(path string) (*wire.Source, *os.File, error) {
	local := filepath.FromSlash(path)
	if !filepath.IsLocal(local) {
		return nil, nil, fmt.Errorf("external data file %q is refused: it must lie in the model's folder %s", path, f.dir)
	}
	h, err := f.openLocal(local)
	if errors.Is(err, fs.ErrNotExist) {
		remedy := "put it beside the model"
		if f.path == "" {
			remedy = "a model from a stream needs its folder as the base directory"
		}
		return nil, nil, fmt.Errorf("external data file %q is not in %s: %s (%w)", path, f.dir, remedy, fs.ErrNotExist)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("external data file %q in %s: %w", path, f.dir, err)
	}
	if st, err := h.Stat(); err != nil || !st.Mode().IsRegular() {
		h.Close()
		return nil, nil, fmt.Errorf("external data file %q in %s is not a regular file", path, f.dir)
	}
	src, err := wire.FromReader(h, filepath.Join(f.dir, local))
	if err != nil {
		h.Close()
		return nil, nil, err
	}
	return src, h, nil
}

// openLocal opens a file in the model's folder and does not follow symbolic links out of it. If the
// model itself is a symbolic link, as in caches that keep files by content, the link of the data file
// may lead to the folder that the model's link leads to.
func (f *file) openLocal(path string) (*os.File, error) {
	h, err := openIn(f.dir, path)
	if err == nil || errors.Is(err, fs.ErrNotExist) || f.path == "" {
		return h, err
	}
	model, err1 := filepath.EvalSymlinks(f.path)
	target, err2 := filepath.EvalSymlinks(filepath.Join(f.dir, path))
	if err1 != nil || err2 != nil {
		return nil, err
	}
	rel, err3 := filepath.Rel(filepath.Dir(model), target)
	if err3 != nil || !filepath.IsLocal(rel) {
		return nil, fmt.Errorf("refused, a link leads out of the folder: %w", err)
	}
	return openIn(filepath.Dir(model), rel)
}

func openIn(dir, path string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if st, err := root.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, fs.ErrInvalid // a FIFO would block
	}
	return root.Open(path)
}

func (x *external) verify(at location) error {
	ref, err := x.src.Ref(0, x.src.Len())
	if err != nil {
		return err
	}
	h := sha1.New()
	if _, err := ref.WriteTo(h); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, at.checksum) {
		return fmt.Errorf("external data file %q: SHA-1 checksum %s, the model says %s", at.path, got, at.checksum)
	}
	return nil
}
