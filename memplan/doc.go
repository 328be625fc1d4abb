// Package memplan plans the memory of a model's main graph: when each value lives, which values share bytes, in which
// order nodes run, and where in one arena the bytes of each value lie.
//
// # What is planned
//
// The arena holds what nodes compute. Inputs, initializers and results of Constant nodes lie elsewhere, where whoever runs
// the model keeps them; they are counted, not placed. So are values whose size nobody knows before the model runs, strings and
// sequences. Time is counted in steps: step i runs node i of the order. A value lives from the step that computes it to
// the step of its last reader, both included, and a graph output to the end.
//
// # Sharing
//
// A view (Reshape, Squeeze, Unsqueeze, Flatten, Identity) has the bytes of what it views; a view of an input or a constant
// that becomes a graph output is a copy, because callers must not find their inputs in their outputs. A result
// may be written over an operand, "in place", where the node is the operand's last reader, elements are as wide and as many,
// and element i of the result depends on no other element of that operand; the scatter operators write over their
// first operand. Nobody writes over inputs, initializers and outputs. One exception: an optimizer's p_next is written
// over the input p, if all other readers of p come before.
//
// # Subgraphs and scratch memory
//
// A node with subgraphs has, beside its operands and results, a workspace, in which each of its bodies is planned on its own, with its
// inputs. Only one of them runs at a time. Kernels of other operators are taken to need none: what a runtime's kernels need beside, such as
// packed operands of a convolution, is the runtime's own matter.
package memplan
