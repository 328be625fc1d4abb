package remat

// most is how many computations move together.
const most = 12

// later moves a computation behind steps that follow it, together with those among them that depend on it.
func (a *annealer) later() bool {
	v := int32(a.pick(len(a.when)))
	from := a.when[v][a.pick(len(a.when[v]))]
	window := 1 + a.pick(40)
	block := append(a.block[:0], from)
	end, steps := from, 0
	slot := from + 1
	for ; slot < a.slots && steps < window; slot++ {
		c := a.at[slot]
		if c < 0 {
			continue
		}
		steps++
		end = slot
		if a.readsOf(c, slot, block) {
			if len(block) == most {
				return false
			}
			block = append(block, slot)
		}
	}
	a.block = block
	if len(block) > steps { // nothing else in the window
		return false
	}
	for ; slot < a.slots && a.at[slot] < 0; slot++ {
	}
	gap := slot - end - 1
	if int(gap) < len(block) {
		a.full++
		return false
	}
	for k := len(block) - 1; k >= 0; k-- {
		to := end + int32(int64(k+1)*int64(gap)/int64(len(block)))
		if !a.transfer(block[k], to) {
			return false
		}
	}
	return true
}

// readsOf reports whether the step of c at slot reads one of the block's computations, or computes the same node.
func (a *annealer) readsOf(c, slot int32, block []int32) bool {
	for _, b := range block {
		w := a.at[b]
		if w == c {
			return true
		}
		for _, p := range a.g.Parents[c] {
			if p == w && a.when[p][a.before(p, slot)] == b {
				return true
			}
		}
	}
	return false
}

// earlier moves a computation in front of steps before it, together with those among them that it depends on.
func (a *annealer) earlier() bool {
	v := int32(a.pick(len(a.when)))
	from := a.when[v][a.pick(len(a.when[v]))]
	window := 1 + a.pick(40)
	block := append(a.block[:0], from)
	begin, steps := from, 0
	slot := from - 1
	for ; slot >= 0 && steps < window; slot-- {
		c := a.at[slot]
		if c < 0 {
			continue
		}
		steps++
		begin = slot
		if a.readBy(c, slot, block) {
			if len(block) == most {
				return false
			}
			block = append(block, slot)
		}
	}
	a.block = block
	if len(block) > steps {
		return false
	}
	for ; slot >= 0 && a.at[slot] < 0; slot-- {
	}
	gap := begin - slot - 1
	if int(gap) < len(block) {
		a.full++
		return false
	}
	for k := len(block) - 1; k >= 0; k-- {
		to := begin - int32(int64(k+1)*int64(gap)/int64(len(block)))
		if !a.transfer(block[k], to) {
			return false
		}
	}
	return true
}

// readBy reports whether the step of c at slot is read by one of the block's computations, or computes the same node.
func (a *annealer) readBy(c, slot int32, block []int32) bool {
	for _, b := range block {
		w := a.at[b]
		if w == c {
			return true
		}
		for _, p := range a.g.Parents[w] {
			if p == c && a.when[p][a.before(p, b)] == slot {
				return true
			}
		}
	}
	return false
}

// transfer moves the computation at from to an empty slot; false, with a change half done, if that cannot be.
func (a *annealer) transfer(from, to int32) bool {
	v := a.at[from]
	if a.at[to] >= 0 || !a.ready(v, to) {
		return false
	}
	a.insert(v, to)
	k := a.before(v, from) + 1
	if !a.removable(v, k) {
		return false
	}
	a.remove(v, from)
	return true
}
