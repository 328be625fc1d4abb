package wire

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Errors that callers tell apart with errors.Is. Malformed bytes are reported
// as a *SyntaxError.
var (
	ErrEmpty     = errors.New("the input is empty")
	ErrNotModel  = errors.New("not an ONNX model")
	ErrTooLarge  = errors.New("larger than 2 GiB, the limit of the ONNX file format; keep weights in external data")
	ErrClosed    = errors.New("the source is closed")
	ErrChanged   = errors.New("the file was cut short while in use")
	ErrOverwrite = errors.New("the output is the file that the weights are read from")
	ErrForeign   = errors.New("tensor data that belongs to another store")
)

// MaxSize is the largest encoded message, 2 GiB - 1: protobuf's own limit.
const MaxSize = 1<<31 - 1

// maxDepth is the deepest nesting of messages read or written: what protobuf's
// C++ and Python decoders, and so ONNX Runtime, accept.
const maxDepth = 100

// A SyntaxError says where the bytes of an input stop being a valid message.
type SyntaxError struct {
	Source string // name of the source
	Offset int64  // of the byte that cannot be read
	Path   string // of the message or field, such as graph.initializer[3]; empty at the root
	Reason string
}

func (e *SyntaxError) Error() string {
	where := e.Path
	if where == "" {
		where = "top level"
	}
	return fmt.Sprintf("%s: byte %d (%s): %s", e.Source, e.Offset, where, e.Reason)
}

// guard runs f, which reads mapped memory, and turns the fault that a file
// truncated by somebody else causes into ErrChanged.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, fault := r.(interface{ Addr() uintptr }); !fault {
				panic(r)
			}
			err = ErrChanged
		}
	}()
	return f()
}
