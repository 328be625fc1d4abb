// Package ort runs ONNX models in an ONNX Runtime shared library, for comparison.
//
// The library is loaded when first needed, from the path in the environment variable GRADTOOL_ORT_LIB
// or from .cache/onnxruntime of the current folder or one above it, where scripts/fetch-onnxruntime puts it. Calling it needs
// cgo, so this is compiled in with the build tag "ort" only; without it every call fails with
// [ErrNotBuilt].
package ort

import "errors"

// ErrNotBuilt says that the program was built without the tag "ort".
var ErrNotBuilt = errors.New("this gradtool was built without ONNX Runtime: rebuild it with `go build -tags ort ./cmd/gradtool` (needs cgo) and fetch the library with scripts/fetch-onnxruntime")

// LibraryEnv names the environment variable that holds the library's path.
const LibraryEnv = "GRADTOOL_ORT_LIB"

// Tensor is a dense tensor. Elem is the ONNX element type number; Data holds its elements in row-major
// order, little-endian, one byte per bool. Strings are not supported.
type Tensor struct {
	Name  string
	Elem  int32
	Shape []int64
	Data  []byte
}

// Output asks for an output. The element type must be given, and the shape (nil if unknown) where the
// output is a scalar or of a 16-bit float type, since the binding can return neither unasked.
type Output struct {
	Name  string
	Elem  int32
	Shape []int64
}

// Options selects how a session is created.
type Options struct {
	// Optimize is the graph optimisation level: "" for ONNX Runtime's default (all), "disable",
	// "basic" or "extended".
	Optimize string
	Threads  int    // threads within an operator; 0 for the default
	Save     string // where to write the optimised model; "" for nowhere
	Discard  bool   // Run returns no results, for measurements
}
