package onnxio

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"gradtool/graph"
	"gradtool/internal/atomicfile"
	"gradtool/onnxio/internal/wire"
	"gradtool/onnxio/onnxpb"
)

// WriteOptions are options of writing; the zero value is the default.
type WriteOptions struct {
	// Dir is, for Write, the folder in which the output will be a file, if that is known. Tensors whose
	// data are in external files of that same folder stay there; others are embedded.
	Dir string
	// External makes WriteFile write initializers of at least Threshold bytes to a file of their own,
	// named as the model with ".data" added.
	External bool
	// Threshold is 1024 if it is 0.
	Threshold int64
	// Exclusive makes WriteFile fail, with an error that wraps fs.ErrExist, where a file exists already.
	Exclusive bool
}

// Write writes m with default options.
func Write(w io.Writer, m *graph.Model) error { return WriteOptions{}.Write(w, m) }

// WriteFile writes m to path with default options.
func WriteFile(path string, m *graph.Model) error { return WriteOptions{}.WriteFile(path, m) }

// Write writes m as an ONNX file. Everything is checked before the first byte is written: that names
// resolve to the values they stand for, that new tensors have the data their shape asks for, that
// external data that must be embedded are there, and that the whole stays below 2 GiB. All problems are
// reported, joined.
func (o WriteOptions) Write(w io.Writer, m *graph.Model) error {
	if o.External {
		return errors.New("external data can only be written next to a file")
	}
	pb, wr, err := o.convert(m, nil)
	if err != nil {
		return err
	}
	_, err = wr.store.Write(w, pb)
	return sizeError(err)
}

// WriteFile writes m to path as Write does. The file is replaced in one step when all is written, so
// it may be the one that m was read from. Data of m in external files of the same folder stay there.
func (o WriteOptions) WriteFile(path string, m *graph.Model) error {
	o.Dir = filepath.Dir(path)
	var side *sidecar
	if o.External {
		side = &sidecar{name: filepath.Base(path) + ".data", threshold: o.Threshold}
		if side.threshold == 0 {
			side.threshold = 1 << 10
		}
	}
	pb, wr, err := o.convert(m, side)
	if err != nil {
		return err
	}
	if side != nil && len(side.chunks) > 0 {
		// The model comes second; that it can be written is to be known before the data are.
		if size, err := wr.store.Size(pb); err == nil && size > wire.MaxSize {
			return sizeError(fmt.Errorf("%s of %d bytes: %w", path, size, wire.ErrTooLarge))
		}
		if err := o.replaceFile(filepath.Join(o.Dir, side.name), side.write); err != nil {
			return err
		}
	}
	return o.replaceFile(path, func(f *os.File) error {
		_, err := wr.store.Write(f, pb)
		return sizeError(err)
	})
}

// sizeError adds the remedy to the error for a model that is too large.
func sizeError(err error) error {
	if errors.Is(err, wire.ErrTooLarge) {
		return fmt.Errorf("%w: write to a file, with external data", err)
	}
	return err
}

// replaceFile puts what write writes in place of path when all is written.
func (o WriteOptions) replaceFile(path string, write func(*os.File) error) error {
	f, err := atomicfile.Create(path, atomicfile.Options{Exclusive: o.Exclusive})
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := write(f.File()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return f.Commit()
}

// A writer turns a model into messages of one store.
type writer struct {
	store *wire.Store
	dir   string   // where the output will be, "" if not known
	side  *sidecar // for external data, or nil
	same  map[*file]bool
	errs  []error
}

func (w *writer) fail(err error) { w.errs = append(w.errs, err) }

func (o WriteOptions) convert(m *graph.Model, side *sidecar) (*onnxpb.ModelProto, *writer, error) {
	w := &writer{dir: o.Dir, side: side, same: map[*file]bool{}}
	if src, ok := m.Src.(*origin[*onnxpb.ModelProto]); ok {
		w.store = src.file.store
	} else {
		w.store = wire.NewStore()
	}
	pb := w.model(m)
	if len(w.errs) == 0 && !o.External {
		var err error
		if pb, err = w.align(pb); err != nil {
			w.fail(err)
		}
	}
	return pb, w, joinErrors(w.errs)
}

func (w *writer) model(m *graph.Model) *onnxpb.ModelProto {
	src := source[onnxpb.ModelProto](w, m.Src)
	p := patchOf(src)
	if p.fresh || src.GetIrVersion() != m.IRVersion {
		p.edit().IrVersion = proto.Int64(m.IRVersion)
	}
	if src.GetProducerName() != m.Producer {
		p.edit().ProducerName = optional(m.Producer)
	}
	if src.GetProducerVersion() != m.ProducerVersion {
		p.edit().ProducerVersion = optional(m.ProducerVersion)
	}
	if src.GetDomain() != m.Domain {
		p.edit().Domain = optional(m.Domain)
	}
	if src.GetModelVersion() != m.Version {
		p.edit().ModelVersion = proto.Int64(m.Version)
	}
	if src.GetDocString() != m.Doc {
		p.edit().DocString = optional(m.Doc)
	}
	if list := opsetProto(src.GetOpsetImport(), m.Opsets); !same(list, src.GetOpsetImport()) {
		p.edit().OpsetImport = list
	}
	if list := metaProto(src.GetMetadataProps(), m.Meta); !same(list, src.GetMetadataProps()) {
		p.edit().MetadataProps = list
	}
	if g := w.graph(m.Graph, nil, -1); g != src.GetGraph() && (src.GetGraph() != nil || p.fresh || !proto.Equal(g, &onnxpb.GraphProto{})) {
		p.edit().Graph = g
	}
	if o, ok := m.Src.(*origin[*onnxpb.ModelProto]); ok {
		if list := w.training(o.file, src.GetTrainingInfo()); !same(list, src.GetTrainingInfo()) {
			p.edit().TrainingInfo = list
		}
	}
	var functions []*onnxpb.FunctionProto
	for _, f := range m.Functions {
		functions = append(functions, w.function(f))
	}
	if !same(functions, src.GetFunctions()) {
		p.edit().Functions = functions
	}
	return p.P
}

func (w *writer) function(f *graph.Function) *onnxpb.FunctionProto {
	src := source[onnxpb.FunctionProto](w, f.Src)
	p := patchOf(src)
	if src.GetName() != f.Name {
		p.edit().Name = proto.String(f.Name)
	}
	if src.GetDomain() != f.Domain {
		p.edit().Domain = proto.String(f.Domain)
	}
	if src.GetOverload() != f.Overload {
		p.edit().Overload = optional(f.Overload)
	}
	if src.GetDocString() != f.Doc {
		p.edit().DocString = optional(f.Doc)
	}
	if !same(src.GetAttribute(), f.Attrs) {
		p.edit().Attribute = f.Attrs
	}
	if list := opsetProto(src.GetOpsetImport(), f.Opsets); !same(list, src.GetOpsetImport()) {
		p.edit().OpsetImport = list
	}
	if list := metaProto(src.GetMetadataProps(), f.Meta); !same(list, src.GetMetadataProps()) {
		p.edit().MetadataProps = list
	}
	g := f.Body
	gs, _ := g.Src.(*graphSource)
	sc := newScope(g, nil, -1)
	w.unique(sc, gs)
	if len(g.Inits) > 0 {
		w.fail(fmt.Errorf("function %q: a function's body cannot hold initializers; make them Constant nodes", f.Name))
	}
	if list := names(g.Inputs); !same(list, src.GetInput()) {
		p.edit().Input = list
	}
	if list := names(g.Outputs); !same(list, src.GetOutput()) {
		p.edit().Output = list
	}
	for i, v := range g.Outputs {
		w.resolves(sc, v, math.MaxInt, func() string { return fmt.Sprintf("function %q: output %d", f.Name, i) })
	}
	if list := w.nodes(g, sc); !same(list, src.GetNode()) {
		p.edit().Node = list
	}
	if list := w.infos(gs, sc); !same(list, src.GetValueInfo()) {
		p.edit().ValueInfo = list
	}
	var defaults []*onnxpb.AttributeProto
	for _, a := range f.Defaults {
		defaults = append(defaults, w.attr(a, sc, -1, func() string { return fmt.Sprintf("function %q", f.Name) }))
	}
	if !same(defaults, src.GetAttributeProto()) {
		p.edit().AttributeProto = defaults
	}
	return p.P
}

// same reports whether two lists hold the same messages or strings.
func same[T comparable](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func names(values []*graph.Value) []string {
	var out []string
	for _, v := range values {
		out = append(out, v.Name)
	}
	return out
}
