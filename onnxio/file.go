package onnxio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"gradtool/graph"
	"gradtool/onnxio/internal/wire"
	"gradtool/onnxio/onnxpb"
)

// maxIRVersion is the newest IR version whose schema package onnxpb holds.
const maxIRVersion = int64(onnxpb.Version_IR_VERSION)

// ReadOptions are options of Open and Read; the zero value is the default.
type ReadOptions struct {
	// BaseDir is the folder that the locations of external data are relative to. The default is the
	// model's folder, for a stream the current one.
	BaseDir string
	// Checksums compares external data files with their SHA-1 checksums, where the model gives them,
	// when the data are used.
	Checksums bool
	// Warn, if set, is called for what is no error but worth telling.
	Warn func(msg string)
}

// A file is one input and the external data files it refers to.
type file struct {
	name  string // for messages
	path  string // of the model, "" for a stream
	dir   string // base of external locations
	opt   ReadOptions
	src   *wire.Source
	store *wire.Store

	mu       sync.Mutex
	external map[string]*external // by location
	closed   bool
}

// Close unmaps the file and its external data.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	errs := []error{f.src.Close()}
	for _, x := range f.external {
		if x.src != nil {
			errs = append(errs, x.src.Close(), x.file.Close())
		}
	}
	return errors.Join(errs...)
}

// Open reads the model at path. The closer ends the mapping of the file, see the package comment. If
// the file is not an ONNX model, the error is a [*FormatError].
func Open(path string, opt ReadOptions) (*graph.Model, io.Closer, error) {
	src, err := wire.Open(path)
	if err != nil {
		return nil, nil, err
	}
	dir := opt.BaseDir
	if dir == "" {
		dir = filepath.Dir(path)
	}
	return open(&file{name: path, path: path, dir: dir, opt: opt, src: src, store: wire.NewStore()})
}

// Read reads a model from a stream up to its end; name, such as "-", is for messages. A file
// redirected to standard input is mapped as Open maps it. Errors are those of Open.
func Read(r io.Reader, name string, opt ReadOptions) (*graph.Model, io.Closer, error) {
	src, err := wire.FromReader(r, name)
	if errors.Is(err, wire.ErrTooLarge) {
		return nil, nil, &FormatError{File: name, Offset: -1, Msg: "not a valid ONNX model: " + wire.ErrTooLarge.Error(), Err: err}
	}
	if err != nil {
		return nil, nil, err
	}
	dir := opt.BaseDir
	if dir == "" {
		dir = "."
	}
	return open(&file{name: name, dir: dir, opt: opt, src: src, store: wire.NewStore()})
}

func open(f *file) (*graph.Model, io.Closer, error) {
	m, err := f.read()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return m, f, nil
}

func (f *file) read() (*graph.Model, error) {
	pb, err := f.store.ReadModel(f.src)
	if err != nil {
		return nil, formatError(f.src, err)
	}
	if pb.Graph == nil && len(pb.Functions) == 0 {
		return nil, formatError(f.src, fmt.Errorf("%s: %w", f.name, wire.ErrNotModel))
	}
	if v := pb.GetIrVersion(); v > maxIRVersion {
		f.warn(fmt.Sprintf("%s: IR version %d is newer than %d, the newest known; what it added is kept but not understood", f.name, v, maxIRVersion))
	}
	r := &reader{file: f}
	return r.model(pb), nil
}

func (f *file) warn(msg string) {
	if f.opt.Warn != nil {
		f.opt.Warn(msg)
	}
}

// sameDir reports whether a and b are the same existing folder.
func sameDir(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
