package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gradtool/fuse"
	"gradtool/fuse/batch"
	"gradtool/graph"
	"gradtool/graph/pass"
	"gradtool/internal/size"
	"gradtool/memplan/recompute"
)

// inPieces says what "fuse --chunk" would do for a model with no plan for the budget: the logits of a large vocabulary, their
// softmax and its gradient are alive at once, whatever is computed again. It is empty if the loss has no part in the refusal.
func (b *budgeter) inPieces(low *recompute.BudgetError) string {
	m, closer, err := b.open()
	if err != nil {
		return ""
	}
	defer closer.Close()
	var res *fuse.ChunkResult
	if err := b.runPasses(m, []pass.Pass{pass.Sort(), pass.Upgrade(), pass.Infer(), chunkPass(fuse.Chunking{Dims: b.dims}, &res)}); err != nil || res == nil {
		return ""
	}
	const how = `"gradtool fuse --for ort --chunk auto" computes `
	for _, d := range res.Done {
		before, after := int64(dimNumber(d.Peak[0], b.dims)), int64(dimNumber(d.Peak[1], b.dims))
		if before > low.Budget/4 {
			return fmt.Sprintf(how+"the loss in pieces, which need about %s in place of %s; then plan again", size.Bytes(after), size.Bytes(before))
		}
	}
	for _, x := range res.Left {
		alive := slices.ContainsFunc(low.Alive, func(n recompute.Need) bool { return n.Name == x.A })
		if alive || low.Step == x.A {
			return fmt.Sprintf(how+"a loss in pieces, but not this one: %s", x.Why)
		}
	}
	return ""
}

// byParts says how many parts of the batch would help a model with no plan for the budget, if the node at which memory lacks is one that
// they divide. It is empty for others.
func (b *budgeter) byParts(low *recompute.BudgetError) string {
	m, closer, err := b.open()
	if err != nil {
		return ""
	}
	defer closer.Close()
	if n, err := strconv.Atoi(m.Meta.Get(batch.MetaParts)); err == nil {
		return fmt.Sprintf("--curve shows the budgets that have plans; the step is computed in %d parts of its batch, \"gradtool fuse --chunk batch=%d\" of the graph before makes more", n, 2*n)
	}
	var res *batch.Result
	if err := b.runPasses(m, []pass.Pass{pass.Sort(), pass.Upgrade(), pass.Infer(), batchPass(batch.Options{}, b.dims, &res)}); err != nil {
		return ""
	}
	for _, x := range res.Borders {
		if x.Node == low.Step {
			return ""
		}
	}
	return fmt.Sprintf("\"gradtool fuse --chunk batch=%d\" computes the step by parts of the batch, which lets nodes need less; then prune and plan again", res.Parts)
}

// stacked reports whether what a loop left for its gradient, iteration by iteration, has a large part in a refusal.
func stacked(m *graph.Model, low *recompute.BudgetError) bool {
	backward := map[*graph.Value]bool{} // what the gradient reads, in the bodies of its loops too
	for _, n := range m.Graph.Nodes {
		if n.Meta.Get(graph.MetaRole) == graph.RoleBackward {
			for _, v := range slices.Concat(n.In, n.Captures()) {
				backward[v] = v != nil
			}
		}
	}
	return slices.ContainsFunc(m.Graph.Nodes, func(n *graph.Node) bool {
		carried := len(n.In) - 2
		switch {
		case n.Is("Scan"):
			carried = len(n.In) - int(n.Int("num_scan_inputs", 0))
		case !n.Is("Loop"):
			return false
		}
		large := slices.ContainsFunc(low.Alive, func(x recompute.Need) bool { return strings.HasSuffix(x.Name, n.Label()) && x.Bytes > low.Budget/4 })
		return large && slices.ContainsFunc(n.Out[min(max(carried, 0), len(n.Out)):], func(v *graph.Value) bool { return backward[v] })
	})
}
