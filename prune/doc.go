// Package prune makes graphs smaller without changing what they compute.
//
// [Clean] removes what nothing reads and needs no types. [Run] does all there is: it folds constants, merges equal nodes
// and equal constants, applies algebraic identities (the tables in rules_*.go, see [Rules]), writes run-time shapes as
// constants where inference knows them, and inlines Ifs and Loops that are decided.
//
// What is constant. Constant nodes and initializers that are no inputs, but for those that training changes: float
// initializers, unless [Options.Frozen] names them. Nothing is folded through random operators or operators in training
// mode.
//
// Growth. A constant takes a node's place only if it takes no more bytes than its operands that go with the node, and an
// allowance: [NodeAllowance] per node and [ModelAllowance] for the whole model. Tensors of one repeated element stay
// ConstantOfShape or Expand and take part in the algebra as such. Sizes are computed before anything is allocated.
//
// Exactness. Every rule gives the same bits as what it replaces, if not in the payload of NaNs; those that do not say so in
// their Effect. Of the latter some concern the sign of zeros and infinite operands, and are applied to nodes of gradients
// only, where gradtool put the neutral element itself; others round differently, and need [Options.Reassociate]. The same
// bits are those of the standard's formulas, computed operator by operator as package interp does: a runtime may choose
// another kernel for another operator, or for one whose operands are constant, and round as that kernel does.
//
// Layout. Transposes are moved to where they save nodes, see layouts.
//
// Budget. [Fit] drops gradients of a training graph until it fits a memory budget.
//
// Graph inputs and outputs keep names, order and types. A value that is read under two output names keeps both through
// one Identity.
package prune
