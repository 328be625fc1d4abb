package legal

import (
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// expansion looks at a node whose operator has no lowering of its own, and returns what builds its results of operators that have one,
// or why the node's form is not covered.
type expansion func(info *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error)

// expansions returns the expansions by operator. Those of one family stand in one file.
func expansions() map[op.Key]expansion {
	t := map[op.Key]expansion{}
	for _, family := range []map[string]expansion{lossExpansions(), quantExpansions(), placeExpansions(), controlExpansions(), linearExpansions(), intExpansions()} {
		for name, f := range family {
			t[op.Key{Name: name}] = f
		}
	}
	return t
}

// expandRounds bounds how deep expansions and decompositions may lead to others.
const expandRounds = 16

// maxExpanded bounds the nodes of a model that expansions lead to.
const maxExpanded = 200_000

// decompose replaces nodes that have no lowering by their expansions here and their decompositions in the operator table, until none is
// left. It returns why nodes were left that an expansion does not cover.
func decompose(m *graph.Model, info *op.Info) (map[*graph.Node]error, error) {
	lowered, expand := table(), expansions()
	left := map[*graph.Node]error{}
	for range expandRounds {
		changed := false
		for _, n := range slices.Clone(m.Graph.Nodes) {
			key, d := op.KeyOf(n), op.Of(n)
			if d == nil || left[n] != nil || known(info, n) {
				continue
			}
			build := d.Decompose
			if f := expand[key]; f != nil {
				with, err := f(info, n)
				if err != nil {
					left[n] = err
					continue
				}
				build = nil
				if with != nil {
					build = func(b *op.Builder, _ *graph.Node) []*graph.Value { return with(b) }
				}
			} else if build != nil && (lowered[key] != nil || op.CheckDecomposition(n) != nil) {
				continue
			}
			if build == nil {
				continue
			}
			if len(m.Graph.Nodes) > maxExpanded {
				left[n] = unsupported("the model has more than %d nodes by now", maxExpanded)
				continue
			}
			b := op.NewBuilder(m.Graph, info)
			b.ReplaceBy(n, build)
			if b.Err != nil {
				return nil, fmt.Errorf("decompose %s: %w", d.Name, b.Err)
			}
			changed = true
		}
		if !changed {
			break
		}
	}
	return left, nil
}

// known reports whether inference knows all results of n.
func known(info *op.Info, n *graph.Node) bool {
	for _, y := range n.Out {
		if y != nil && info.Const(y) == nil {
			return false
		}
	}
	return true
}

// sizes returns the shape of v as numbers.
func sizes(v *graph.Value) ([]int64, error) {
	s, ok := v.Type.Shape.Ints()
	if !ok {
		return nil, unsupported("value %q has shape %s, which depends on values", v.Name, v.Type.Shape)
	}
	return s, nil
}

func sizesOfTwo(v, w *graph.Value) (a, b []int64, err error) {
	if a, err = sizes(v); err == nil {
		b, err = sizes(w)
	}
	return a, b, err
}

// lossExpansions holds the standard's losses.
func lossExpansions() map[string]expansion {
	loss := func(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
		return func(b *op.Builder) []*graph.Value { return expandLoss(b, n) }, nil
	}
	return map[string]expansion{"SoftmaxCrossEntropyLoss": loss, "NegativeLogLikelihoodLoss": loss}
}

// expandLoss picks minus the log probability of each label, times the label's weight, 0 where the label is ignored.
func expandLoss(b *op.Builder, n *graph.Node) []*graph.Value {
	x, labels, weights := n.In[0], n.In[1], n.Operand(2)
	logProb := x
	if n.Op == "SoftmaxCrossEntropyLoss" {
		logProb = b.Unary("LogSoftmax", x, graph.IntAttr("axis", 1))
	}
	var counts *graph.Value
	if n.HasAttr("ignore_index") {
		ignored := b.Binary("Equal", labels, b.Like(labels, float64(n.Int("ignore_index", 0))))
		labels = b.Where(ignored, b.Like(labels, 0), labels)
		counts = b.Unary("Not", ignored)
	}
	loss := b.Neg(b.Squeeze(b.Op("GatherElements", []*graph.Value{logProb, b.Unsqueeze(labels, 1)}, graph.IntAttr("axis", 1)), 1))
	var w *graph.Value // by label
	if weights != nil {
		w = b.Gather(weights, labels, 0)
		loss = b.Mul(loss, w)
	}
	if counts != nil {
		loss = b.Where(counts, loss, b.Like(loss, 0))
		if w == nil {
			w = b.Cast(counts, loss.Type.Elem)
		} else {
			w = b.Where(counts, w, b.Like(w, 0))
		}
	}
	switch n.Str("reduction", "mean") {
	case "sum":
		loss = b.ReduceAll(loss)
	case "mean":
		total := b.ReduceAll(loss)
		if w == nil {
			count, _ := loss.Type.Shape.Ints()
			loss = b.Div(total, b.Like(total, float64(prod(ints(count)))))
		} else {
			loss = b.Div(total, b.ReduceAll(w))
		}
	}
	return []*graph.Value{loss, logProb}
}
