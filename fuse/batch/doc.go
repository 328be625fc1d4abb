// Package batch computes a graph by parts of its batch: every node that treats the samples of a batch alike becomes one node
// for each part, so that no value has to exist for the whole batch at once. Nothing is computed twice, and nothing is
// approximated: sums over the batch, weight gradients and the statistics of batch normalizations among them, are made part by
// part and added up before anybody reads them, so results are those of the whole graph up to the order of sums.
//
// The batch is followed through the graph from the inputs. A table says for each operator what it does with the axis that the
// batch lies in: it maps it (each part of the results depends on the same part of the operands), it sums over it (results of the
// parts are combined, or handed from part to part), or neither. In front of nodes of the last kind, borders, parts are joined.
//
// A graph without borders and statistics runs from the inputs to the gradients for one part after the other, which is known as
// microbatching or gradient accumulation; elsewhere the parts wait for each other at each sum that they need.
package batch
