// Package onnxio reads and writes ONNX files as graph models.
//
// Reading is faithful: what the file holds and package graph has no field for stays attached to the
// objects' Src fields, so a model, or any part of one, that nobody changed is written with the very
// bytes it was read from. A changed object keeps what the change did not concern, unknown fields
// included; a new one is encoded as the standard's own tools would.
//
// Weights are not loaded. The file is mapped, a tensor's data are a reference into it, and writing
// copies them from file to file. External data files are mapped when first needed. The closer that
// Open and Read return ends the mapping: close it after the last use of the model and of every
// tensor taken from it.
//
// # Names
//
// The file connects nodes by name, the model by pointer. Names are resolved as the standard says: in
// the graph itself, then in the enclosing graphs. Nodes may stand in any order. Where a file defines a
// name twice, a node reads the definition before it, if there is one; of Constant nodes it reads the
// last, as runtimes do. A name that nothing defines becomes a value without definition, which the verifier reports. Writing checks that every name
// would again resolve to the value it stands for, so a clash of names is an error and not a model
// that computes something else.
//
// # Types
//
// Types declared in the file are written back as declared, even if inference knows more; see
// [Redeclare]. New graph inputs and outputs are declared from their values' types.
package onnxio
