// Package graph is gradtool's intermediate representation: ONNX models in SSA form.
//
// A [Model] owns one [Graph] and any number of model-local [Function]s. A graph holds [Node]s in
// execution order; nodes read and define [Value]s. A value is defined exactly once, by a node
// result, a graph input or an initializer, and is identified by its pointer: names are for people
// and for files and are never a key inside a pass. Every reading of a value is recorded as a [Use],
// including graph outputs and the values that a subgraph captures from outside.
//
// A [Type] is an element type and a shape whose dimensions ([Dim]) are numbers, expressions over
// named symbols, or unknown.
//
// What a file holds and this package has no field for stays attached through the Src fields, which
// belong to the package that read the file; see package onnxio. Passes leave them alone.
//
// Fields are exported for reading. Edit through the methods, which keep the use lists right:
// [Graph.Append], [Graph.InsertBefore], [Graph.Remove], [Node.SetIn], [Value.ReplaceUses],
// [Graph.SetOutputs]. Misuse by a pass (a value used in a graph that cannot see it, say) is found by
// [Verify], which passes run after every change.
package graph
