// Package op is the operator table: what gradtool knows of each ONNX operator, in one place.
//
// A [Def] says how to infer the types of an operator's results, how to evaluate it, what it costs,
// and gives samples on which generic tests check all of that and the gradient rules in package
// autodiff. The formal side (arity, attributes, allowed types, versions) comes from package schema.
// One file holds one family of operators; the families are listed in table.go.
//
// Definitions describe one form of each operator, the canonical one: that of the newest version in
// package schema, as [Upgrade] leaves it. Older forms (attribute axes, Upsample, ...) are rewritten by Upgrade
// and known nowhere else.
//
// [Infer] computes types and, for small integer tensors, values: shape arithmetic done by chains of
// Shape, Gather, Concat, Slice, Mul, ... becomes known or symbolic dimensions. [Builder] adds nodes to
// a graph and keeps that inference up to date.
package op
