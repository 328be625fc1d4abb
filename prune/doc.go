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
// Exactness. Every rule gives the same bits as what it replaces, if not in the payload of NaNs; the few that do not say
// so in their Effect and are applied to nodes of gradients only, where gradtool put the neutral element itself.
//
// Graph inputs and outputs keep names, order and types. A value that is read under two output names keeps both through
// one Identity.
package prune
