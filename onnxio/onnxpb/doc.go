// Package onnxpb holds the Go types of the ONNX serialization schema, IR
// versions 1 to 14, generated from onnx.proto by scripts/gen-onnxpb.
//
// The messages are those of the ONNX standard (onnx.proto and onnx-data.proto),
// declared in the proto package gradtool.onnx and registered under the path
// gradtool/onnx/onnx.proto, so that a program may also link another package
// that registers onnx.*. Field presence is kept (proto2): a field that a file
// sets to its default value is written again.
//
// Large models are read and written through package onnxio/internal/wire, which
// leaves the weights in the file; proto.Unmarshal copies them.
package onnxpb
