// Package legal is the first level below graph operators: programs of a few kinds of kernels over flat buffers.
//
// A [Nest] computes element by element and reduces, over a box of loop indices; a [Contract] is a sum of products that a
// matrix unit can take, matrix products and convolutions alike; a [Walk] is products, a nest on their sums and products of
// its values, tile by tile; a [Gather] reads and a [Scatter] writes rows whose place
// is data. Everything else is addressing: a kernel reads and writes its buffers through an [Access], an affine map from
// loop indices to elements, so transposition, slicing, padding, broadcasting and the windows of a convolution cost no
// kernel of their own. Shapes are numbers at this level.
//
// [Lower] makes a program of a model whose shapes are known. Each operator is lowered by an entry of the table, rewritten
// into simpler operators first, or computed at compile time where its operands are known; what is left is reported.
//
// Rules of a program, which [Program.Verify] checks:
//
//  1. Every buffer has an element type that kernels compute with and, inputs and outputs excepted, a length of at least one element.
//  2. A buffer is written before it is read, unless it is an input or constant; those are never written.
//  3. An access stays inside its buffer for every index in range; reads outside an axis give the fill value.
//  4. Writes touch no element twice in one kernel, scatter with a combining mode excepted.
//  5. A statement reads earlier values only, and its type follows from theirs.
//  6. A reduction leaves out the dimensions that it reduces; nothing else does.
//  7. In a contraction the first operand does not vary along n, the second not along m, the result not along k.
//  8. In a walk scores are sums over dimensions outside of the square, sinks over dimensions of it, and what a sink is scaled by does
//     not vary along these.
package legal
