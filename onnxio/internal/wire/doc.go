// Package wire reads and writes ONNX messages without ever loading the weights.
//
// A Source is the bytes of one input, mapped from a file or held in memory. A
// Store reads messages from sources: the large tensor payloads (raw_data and
// the packed typed lists) stay in the source as Refs, the rest is decoded to
// ordinary onnxpb messages with a few hundred bytes per tensor. Writing streams
// the payloads back from where they are.
//
//	src, err := wire.Open("model.onnx") // or FromReader(os.Stdin)
//	defer src.Close()                   // after the last use of any Ref
//	store := wire.NewStore()
//	m, err := store.ReadModel(src)
//	spans, err := store.Spans(m.Graph.Initializer[0])
//	n, err := store.Write(out, m)
//
// # Marks
//
// What ties a message to its bytes in the source is a mark: a private unknown
// field inside the message. A span mark stands in a TensorProto for one payload
// that is not decoded. An origin mark stands in any message whose encoding in
// the source is not the one this program would write (fields out of order, a
// list packed where the schema does not pack, a doubled field, ...): it
// remembers where the original bytes are and a hash of the decoded content.
// Write resolves and removes all marks: a payload is spliced in at its place in
// field order; a message whose content still has its hash is written as its
// original bytes, and any other is encoded afresh, its unchanged parts still
// from their own originals.
//
// A conversion to and from another representation therefore keeps files
// byte-identical if it does the one thing it owes the format anyway: carry the
// unknown fields (m.ProtoReflect().GetUnknown()) of every message along, as an
// opaque byte string, and put them back with SetUnknown. A message made anew has
// none. Unknown tells the real unknown fields of a message, without marks.
// Field presence counts as content: an optional field that was set to its
// default value must be set again. Marks mean something to their Store alone;
// every message of one output must come from one Store, which may read any
// number of sources, and Write reports a mark of another Store as an error.
//
// # Identity
//
// Read proves what it promises. Before it returns, it plans the output for the
// message it made and compares that plan with the source, piece by piece, a
// payload being equal if it is the same place of the same source. Origin marks
// are only made when the plan without them differs. So Write of an untouched
// message gives the bytes that were read, for every input that Read accepts.
//
// The encoding is that of protobuf (https://protobuf.dev/programming-guides/encoding),
// the schema that of package onnxpb; which parts can hold tensors is computed
// from its descriptors.
package wire
