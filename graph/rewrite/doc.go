// Package rewrite replaces small patterns of nodes by better ones until nothing more fits.
//
// A [Rule] is an entry of a table: a pattern around a root node, a condition that says why not, and a function that
// builds the replacement. A [Set] holds the rules of a stage, indexed by the operator of their root. [Set.Apply] tries
// them on every node and, after each rewrite, again on the nodes around it, up to the fixpoint. For one node the rule of
// higher benefit comes first, then the one that was listed first, so that the result depends on the graph alone.
//
// The results of a replaced node keep their identity and their names. Where a rule hands through a value that exists
// already, what read the result reads that value; a graph output keeps its name, if need be by an Identity.
//
// What depends on a whole graph (common subexpressions, dead nodes, live ranges) is code of the stages, not patterns.
package rewrite
