package lower

import (
	"gradtool/npu/emit"
	"gradtool/npu/legal"
	"gradtool/npu/machine"
)

// walks decides which products with a square between them are done tile by tile.
type walks struct {
	e *emit.Emitter
	// large is the size in bytes from which a square is looked at: smaller ones stay on chip.
	large int
	// apart are the nodes of products whose rows are not to be held by an epilogue, for no walk came of it.
	apart map[string]bool
}

func newWalks(m *machine.Machine) *walks {
	e := emit.New(m, nil)
	e.Bus = busShared
	return &walks{e: e, large: m.Scratchpad.Bytes / 2, apart: map[string]bool{}}
}

// fitsPost reports whether a contraction may have its epilogue: if it fits on chip, or if its rows, too long for that, may become those
// of a walk.
func (w *walks) fitsPost(k *legal.Contract) bool {
	return w.e.FitsPost(k) || !w.apart[k.Origin().Node] && w.rows(k)
}

// rows reports whether a contraction has an epilogue that a walk could work off in tiles.
func (w *walks) rows(k *legal.Contract) bool { return k.Softmax(w.large) || k.Sums(w.large) }

// made makes walks. It returns false if rows are left that do not fit on chip: they are noted, and the program is to be made again.
func (w *walks) made(p *legal.Program) bool {
	wk := &legal.Walker{Large: w.large, Better: w.better}
	wk.Walks(p)
	ok := true
	for _, k := range p.Kernels {
		if c, is := k.(*legal.Contract); is && c.Post != nil && !w.apart[c.Origin().Node] && w.rows(c) && !w.e.FitsPost(c) {
			w.apart[c.Origin().Node] = true
			ok = false
		}
	}
	return ok
}

// better reports whether a walk is estimated to take less time than the kernels that it is made of.
func (w *walks) better(k *legal.Walk, instead []legal.Kernel) bool {
	plans := w.e.WalkPlans(k)
	if len(plans) == 0 {
		return false
	}
	return w.e.Rank(plans[0]) < w.apartCost(instead)
}

// apartCost estimates the time of contractions, one after the other, that hand each other a buffer: on chip in strips, if rows of it fit there
// and one reads it, else in memory.
func (w *walks) apartCost(list []legal.Kernel) float64 {
	made, readers := map[*legal.Buffer]bool{}, map[*legal.Buffer]int{}
	for _, k := range list {
		for _, a := range k.Writes() {
			made[a.Buf] = true
		}
		for _, a := range k.Reads() {
			readers[a.Buf]++
		}
	}
	total := 0.0
	held := map[*legal.Buffer]*emit.Resident{}
	for _, k := range list {
		for _, a := range k.Reads() {
			if made[a.Buf] && held[a.Buf] == nil && readers[a.Buf] == 1 {
				held[a.Buf] = &emit.Resident{Row: a.Buf.Len, Pitch: a.Buf.Len}
			}
		}
	}
	e := emit.New(w.e.Machine, nil)
	e.Bus = w.e.Bus
	e.Assume(held)
	for _, k := range list {
		c, ok := k.(*legal.Contract)
		if !ok {
			continue
		}
		if c.Post == nil || e.FitsPost(c) {
			if plans := e.ContractPlans(c); len(plans) > 0 {
				total += e.Rank(plans[0])
				continue
			}
		}
		total += e.Estimate(c)
		if c.Post != nil { // stored, loaded by the nest that the epilogue becomes, stored and loaded again
			total += 4 * float64(4*c.Post.Extent(^uint32(0))) / float64(e.Machine.DMA.BytesPerCycle)
		}
	}
	return total
}
