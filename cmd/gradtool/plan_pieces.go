package main

import (
	"fmt"
	"slices"
	"strings"

	"gradtool/fuse"
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

// stacked reports whether what a loop left for its gradient, iteration by iteration, has a large part in a refusal.
func stacked(low *recompute.BudgetError) bool {
	return slices.ContainsFunc(low.Alive, func(n recompute.Need) bool {
		loop := strings.HasSuffix(n.Name, "(Loop)") || strings.HasSuffix(n.Name, "(Scan)")
		return loop && n.Name != low.Step && n.Bytes > low.Budget/4
	})
}
