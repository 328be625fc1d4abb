package onnxio

import (
	"errors"
	"fmt"

	"gradtool/onnxio/internal/wire"
)

// ErrTooLarge says that a model would be larger than the 2 GiB that the file format allows.
var ErrTooLarge = wire.ErrTooLarge

// A FormatError says that an input is not a valid ONNX file.
type FormatError struct {
	File   string // path, or name of the stream
	Offset int64  // of the byte that cannot be read, -1 if no place is to blame
	Msg    string // what is wrong and, where it is known, what to do
	Err    error  // the cause, may be nil
}

// Error gives file, place and message.
func (e *FormatError) Error() string {
	if e.Offset >= 0 {
		return fmt.Sprintf("%s: byte %d: %s", e.File, e.Offset, e.Msg)
	}
	return fmt.Sprintf("%s: %s", e.File, e.Msg)
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// formatError turns an error of the wire layer into a FormatError where the bytes are to blame, with
// a hint at what they seem to be instead.
func formatError(src *wire.Source, err error) error {
	fe := &FormatError{File: src.Name(), Offset: -1, Err: err}
	if errors.Is(err, wire.ErrEmpty) {
		fe.Msg = "empty input: did the previous stage fail?"
		return fe
	}
	if errors.Is(err, wire.ErrTooLarge) {
		fe.Msg = "not a valid ONNX model: " + wire.ErrTooLarge.Error()
		return fe
	}
	syntax, isSyntax := errors.AsType[*wire.SyntaxError](err)
	if !isSyntax && !errors.Is(err, wire.ErrNotModel) {
		return err
	}
	if hint := sniff(src); hint != "" {
		fe.Msg = "not an ONNX model: " + hint
		return fe
	}
	fe.Msg = "not an ONNX model: it has no graph"
	if isSyntax {
		fe.Offset = syntax.Offset
		where := ""
		if syntax.Path != "" {
			where = " in " + syntax.Path
		}
		fe.Msg = fmt.Sprintf("not a valid ONNX model, or cut short: %s%s", syntax.Reason, where)
	}
	return fe
}

// An ExternalError says that a tensor's external data cannot be had: the file is missing, too short,
// or refused because it lies outside of the model's folder.
type ExternalError struct {
	File     string // of the model
	Tensor   string // such as initializer "w"
	Location string // as the model gives it
	Others   int    // tensors that fail for the same reason and are not reported one by one
	Err      error
}

// Error names the tensor, the file, and the remedy.
func (e *ExternalError) Error() string {
	others := ""
	if e.Others > 0 {
		others = fmt.Sprintf(" and %d more", e.Others)
	}
	return fmt.Sprintf("%s: %s%s: %v", e.File, e.Tensor, others, e.Err)
}

// Unwrap returns the cause.
func (e *ExternalError) Unwrap() error { return e.Err }

// joinErrors is errors.Join with one error for all tensors that lack the same external file.
func joinErrors(errs []error) error {
	type key struct{ file, location string }
	first := map[key]*ExternalError{}
	var out []error
	for _, err := range errs {
		x, ok := err.(*ExternalError)
		if !ok {
			out = append(out, err)
			continue
		}
		k := key{x.File, x.Location}
		if f := first[k]; f != nil {
			f.Others++
			continue
		}
		first[k] = &ExternalError{File: x.File, Tensor: x.Tensor, Location: x.Location, Err: x.Err}
		out = append(out, first[k])
	}
	return errors.Join(out...)
}
