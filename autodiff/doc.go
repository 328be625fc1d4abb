// Package autodiff appends derivatives to a graph, as ordinary ONNX operators.
//
// Reverse mode ([Reverse]) walks the nodes between the differentiated outputs and the values wanted
// backwards and asks each operator's [Rule] for its VJP: given the cotangents of the results, the
// cotangents of the operands. The driver does once what every rule would repeat: it accumulates
// contributions, reduces a cotangent to its operand's shape after broadcasting, casts it to the
// operand's element type, and skips operands that nobody needs. Rules emit only operators that have
// rules themselves, so derivatives of any order compose.
//
// Forward mode ([Forward]) walks the same nodes forwards and gives the results tangents. Operators that are linear, multilinear or
// element by element have the obvious JVP (see [structures]); for the others it is derived: a VJP is linear in the cotangents,
// and its own VJP with respect to them is the JVP. What the derivation computed on the way alone is removed again.
// Tangents and cotangents that are zero are never materialized, except where an operator needs an operand of zeros. If,
// Loop and Scan compute tangents beside their values. [JVP], [Gradient] and [Jacobian] do all this to a model.
//
// Numeric conventions are those of PyTorch: relu, abs and sign have slope 0 at 0; clip has slope 1 at
// its bounds; ties of element-wise and reducing max and min share the cotangent evenly; MaxPool and TopK give it to
// the chosen index; the norm of the zero vector has gradient 0; a^b contributes nothing to b where a = 0; Where passes no NaN
// from the branch not taken. Apart from PyTorch's, the square root has slope 0 at 0, so that a norm written out in simple
// operators has gradient 0 at the zero vector too.
package autodiff
