// Package onnxgo lets programs that decode models with github.com/owulveryck/onnx-go v0.5.0 decode into
// a graph model.
//
// A [Backend] is an onnx-go backend that records the decoder's calls; [Backend.Model] makes a model of
// the record:
//
//	b := onnxgo.NewBackend()
//	om := onnx.NewModel(b)
//	err := om.UnmarshalBinary(data)
//	m, loss, err := b.Model(om, onnxgo.Options{})
//
// [Decode] does all of that, with panics of the decoder turned into errors and memory bounded, and
// tells from the file what the decoder dropped. It is a second reading of a file, independent of
// package onnxio; to read models, use that package.
//
// That decoder knows the schema of 2017. It refuses subgraphs, element types narrower than 32 bits in
// initializers, float16 and later types everywhere, sequences, and graphs without nodes or outputs. Of
// what it accepts it does not pass on opsets, domains, node names, documentation, metadata, functions,
// symbolic dimensions, which inputs have an initializer, and the order of attributes; see [Loss].
package onnxgo
