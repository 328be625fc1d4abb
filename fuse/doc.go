// Package fuse groups the nodes of a graph into clusters, each of which can be computed in one go, and writes each cluster
// as a model-local function of the domain "gradtool". What a cluster computes is unchanged: its body holds the very nodes.
// A runtime that knows the function's name runs a kernel for it; any other runs the body.
//
// Clusters are found in three steps. Rules (package-internal tables) find what one kernel computes though it holds several
// matrix products or passes: attention, gated products, the gradient of each forward cluster. Then nodes
// grow together by the kinds of their operators ([op.KindOf]), along the edge that saves most memory
// traffic first. A cost model refuses what would not pay; [Options.Explain] gets its reasons.
//
// The functions obey what runtimes ask of them:
//
//  1. They are of an own domain, imported by the model, and shadow no operator.
//  2. A body imports the domains it uses, ai.onnx in the model's version; the IR version is at least 8.
//  3. Small constants (axes, sizes, scalars) are inside the body; weights are operands.
//  4. No control flow and no captured value inside; clusters are convex; every live value is a result.
//  5. Only operators with a schema at the model's opset go inside, and every attribute has a type.
//  6. Equal clusters share one function; its name ends in a hash of its body.
//  7. What only the call knows (names, metadata of the nodes, the pair in the other direction, bytes saved) is in its
//     metadata_props, not in attributes.
//
// [Inline] restores the graph node for node.
//
// Two further stages change the graph itself, up to rounding: [Rewrite] puts fused operators of the standard in the place of what
// spells them out, and [Chunk] computes a loss over many classes piece by piece.
package fuse
