//go:build ort

package ort

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	ortgo "github.com/yalue/onnxruntime_go"
)

var initialize = sync.OnceValue(func() error {
	path, err := library()
	if err != nil {
		return err
	}
	ortgo.SetSharedLibraryPath(path)
	if err := ortgo.InitializeEnvironment(ortgo.WithLogLevelError()); err != nil {
		return fmt.Errorf("onnx runtime library %s: %w", path, err)
	}
	return nil
})

// library finds the shared library.
func library() (string, error) {
	if p := os.Getenv(LibraryEnv); p != "" {
		return p, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		found, _ := filepath.Glob(filepath.Join(dir, ".cache", "onnxruntime", "libonnxruntime.so*"))
		if len(found) > 0 {
			slices.Sort(found)
			return found[0], nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no onnx runtime library found: run scripts/fetch-onnxruntime or set %s", LibraryEnv)
		}
		dir = up
	}
}

// Available reports whether the library can be called, and if not, why.
func Available() error { return initialize() }

// Version returns the library's version, "" without one.
func Version() string {
	if initialize() != nil {
		return ""
	}
	return ortgo.GetVersion()
}

// Session is a loaded model.
type Session struct {
	session *ortgo.DynamicAdvancedSession
	inputs  []string
	outputs []Output
	discard bool
}

// Load creates a session for the model file, which takes the named inputs and gives the outputs.
func Load(path string, inputs []string, outputs []Output, opt Options) (*Session, error) {
	if err := initialize(); err != nil {
		return nil, err
	}
	if len(inputs) == 0 {
		return nil, fmt.Errorf("the onnx runtime binding cannot run models without inputs")
	}
	so, err := ortgo.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	defer so.Destroy()
	levels := map[string]ortgo.GraphOptimizationLevel{"disable": ortgo.GraphOptimizationLevelDisableAll, "basic": ortgo.GraphOptimizationLevelEnableBasic, "extended": ortgo.GraphOptimizationLevelEnableExtended}
	if opt.Optimize != "" {
		level, ok := levels[opt.Optimize]
		if !ok {
			return nil, fmt.Errorf("onnx runtime optimisation level %q: want disable, basic or extended", opt.Optimize)
		}
		if err := so.SetGraphOptimizationLevel(level); err != nil {
			return nil, err
		}
	}
	if opt.Threads > 0 {
		if err := so.SetIntraOpNumThreads(opt.Threads); err != nil {
			return nil, err
		}
	}
	if opt.Save != "" {
		if err := so.SetOptimizedModelFilePath(opt.Save); err != nil {
			return nil, err
		}
	}
	names := make([]string, len(outputs))
	for i, o := range outputs {
		names[i] = o.Name
	}
	s, err := ortgo.NewDynamicAdvancedSession(path, inputs, names, so)
	if err != nil {
		return nil, fmt.Errorf("onnx runtime refuses the model: %w", err)
	}
	return &Session{s, inputs, outputs, opt.Discard}, nil
}

// Close frees the session.
func (s *Session) Close() { s.session.Destroy() }

// Run evaluates the model on one tensor per input, in the order given to Load.
func (s *Session) Run(inputs []Tensor) ([]Tensor, error) {
	if len(inputs) != len(s.inputs) {
		return nil, fmt.Errorf("%d inputs, want %d", len(inputs), len(s.inputs))
	}
	in := make([]ortgo.Value, len(inputs))
	out := make([]ortgo.Value, len(s.outputs))
	var made []ortgo.Value // what has to be freed
	defer func() {
		for _, v := range made {
			v.Destroy()
		}
	}()
	for i, t := range inputs {
		k, err := kindOf(t.Elem)
		if err == nil {
			in[i], err = k.value(t.Shape, t.Data)
		}
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", s.inputs[i], err)
		}
		made = append(made, in[i])
	}
	for i, o := range s.outputs {
		k, err := kindOf(o.Elem)
		switch {
		case err != nil:
		case o.Shape != nil && (len(o.Shape) == 0 || k.read == nil):
			out[i], err = k.value(o.Shape, make([]byte, k.size*count(o.Shape)))
		case k.read == nil:
			err = fmt.Errorf("the shape of a 16-bit float output must be known in advance")
		}
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", o.Name, err)
		}
		if out[i] != nil {
			made = append(made, out[i])
		}
	}
	given := slices.Clone(out)
	if err := s.session.Run(in, out); err != nil {
		return nil, err // what the binding put into out by then may be nil pointers
	}
	for i, v := range out {
		if given[i] == nil {
			made = append(made, v)
		}
	}
	if s.discard {
		return nil, nil
	}
	res := make([]Tensor, len(out))
	for i, v := range out {
		o := s.outputs[i]
		k, _ := kindOf(o.Elem)
		data, err := k.bytes(v)
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", o.Name, err)
		}
		shape := []int64(v.GetShape())
		if o.Shape != nil && len(o.Shape) == 0 {
			shape = []int64{}
		}
		res[i] = Tensor{o.Name, o.Elem, slices.Clone(shape), data}
	}
	return res, nil
}

func count(shape []int64) int {
	n := 1
	for _, d := range shape {
		n *= int(d)
	}
	return n
}

// kind is how the binding holds an element type. The 16-bit floats have neither read nor scalar.
type kind struct {
	elem   int32
	size   int
	make   func(shape []int64, data []byte) (ortgo.Value, error)
	scalar func(data []byte) (ortgo.Value, error)
	read   func(v ortgo.Value) ([]byte, bool)
}

func typed[T ortgo.TensorData](elem int32) kind {
	var zero T
	size := int(unsafe.Sizeof(zero))
	view := func(data []byte) []T {
		out := make([]T, len(data)/size)
		if len(out) > 0 {
			copy(unsafe.Slice((*byte)(unsafe.Pointer(&out[0])), len(out)*size), data)
		}
		return out
	}
	raw := func(data []T) []byte {
		if len(data) == 0 {
			return []byte{}
		}
		return slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), len(data)*size))
	}
	return kind{elem, size,
		func(shape []int64, data []byte) (ortgo.Value, error) { return ortgo.NewTensor(shape, view(data)) },
		func(data []byte) (ortgo.Value, error) { return ortgo.NewScalar(view(data)[0]) },
		func(v ortgo.Value) ([]byte, bool) {
			switch v := v.(type) {
			case *ortgo.Tensor[T]:
				return raw(v.GetData()), true
			case *ortgo.Scalar[T]:
				return raw([]T{v.GetData()}), true
			}
			return nil, false
		}}
}

func kindOf(elem int32) (kind, error) {
	switch elem {
	case 1:
		return typed[float32](elem), nil
	case 2:
		return typed[uint8](elem), nil
	case 3:
		return typed[int8](elem), nil
	case 4:
		return typed[uint16](elem), nil
	case 5:
		return typed[int16](elem), nil
	case 6:
		return typed[int32](elem), nil
	case 7:
		return typed[int64](elem), nil
	case 9:
		return typed[bool](elem), nil
	case 11:
		return typed[float64](elem), nil
	case 12:
		return typed[uint32](elem), nil
	case 13:
		return typed[uint64](elem), nil
	case 10, 16:
		return kind{elem: elem, size: 2}, nil
	}
	return kind{}, fmt.Errorf("element type number %d cannot be passed to onnx runtime", elem)
}

// value makes a tensor of the binding's.
func (k kind) value(shape []int64, data []byte) (ortgo.Value, error) {
	switch {
	case len(data) != k.size*count(shape):
		return nil, fmt.Errorf("%d bytes for shape %v", len(data), shape)
	case k.read == nil:
		if len(shape) == 0 {
			return nil, fmt.Errorf("the onnx runtime binding has no 16-bit scalars")
		}
		return ortgo.NewCustomDataTensor(shape, data, ortgo.TensorElementDataType(k.elem))
	case len(shape) == 0:
		return k.scalar(data)
	}
	return k.make(shape, data)
}

// bytes returns the elements of v.
func (k kind) bytes(v ortgo.Value) ([]byte, error) {
	if c, ok := v.(*ortgo.CustomDataTensor); ok {
		return slices.Clone(c.GetData()), nil
	}
	if k.read != nil {
		if data, ok := k.read(v); ok {
			return data, nil
		}
	}
	return nil, fmt.Errorf("onnx runtime returned %T, want element type number %d", v, k.elem)
}
