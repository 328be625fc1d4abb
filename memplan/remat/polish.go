package remat

import "slices"

// polisher takes out of sequences what need not be computed again.
type polisher struct {
	t    *timeline
	list []spared
}

// spared is a computation that may go.
type spared struct {
	node, slot int32
	score      float64
}

// polish returns the sequence, which keeps to the budget, without computations for which there is room to keep the result
// from the one before. Those that save most for each byte and step of keeping go first, and with them computations that
// nothing else reads.
func (p *polisher) polish(g *Graph, sequence []int32, budget int64) []int32 {
	if p.t == nil {
		p.t = &timeline{g: g, children: g.children(), room: 1}
		p.t.makeLists()
	}
	t := p.t
	t.layOut(sequence)
	if t.peak[1] > budget {
		return sequence
	}
	p.list = p.list[:0]
	for _, v := range t.dups {
		for k := 1; k < len(t.when[v]); k++ {
			gap := t.when[v][k] - t.until[v][k-1]
			score := float64(g.Cost[v]) / float64(max(g.Memory[v], 1)) / float64(gap)
			p.list = append(p.list, spared{v, t.when[v][k], score})
		}
	}
	slices.SortStableFunc(p.list, func(a, b spared) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return int(a.slot - b.slot)
	})
	for _, c := range p.list {
		if t.at[c.slot] != c.node {
			continue
		}
		if k := t.before(c.node, c.slot) + 1; k == 0 || !t.removable(c.node, k) {
			continue
		}
		t.log = t.log[:0]
		t.remove(c.node, c.slot)
		t.sweep(c.node, 8)
		if t.peak[1] > budget {
			t.undo()
		}
	}
	return t.sequence()
}
