// Package autodiff appends derivatives to a graph, as ordinary ONNX operators.
//
// Reverse mode ([Reverse]) walks the nodes between the differentiated outputs and the values wanted
// backwards and asks each operator's [Rule] for its VJP: given the cotangents of the results, the
// cotangents of the operands. The driver does once what every rule would repeat: it accumulates
// contributions, reduces a cotangent to its operand's shape after broadcasting, casts it to the
// operand's element type, and skips operands that nobody needs. Rules emit only operators that have
// rules themselves, so derivatives of any order compose.
//
// Numeric conventions are those of PyTorch: relu, abs and sign have slope 0 at 0; clip has slope 1 at
// its bounds; ties of element-wise and reducing max and min share the cotangent evenly; MaxPool and TopK give it to
// the chosen index; the norm of the zero vector has gradient 0; a^b contributes nothing to b where a = 0; Where passes no NaN
// from the branch not taken. Apart from PyTorch's, the square root has slope 0 at 0, so that a norm written out in simple
// operators has gradient 0 at the zero vector too.
package autodiff
