package legal

// siblingReach is how many kernels ahead another reader of the same buffer is looked for.
const siblingReach = 32

// siblings joins nests that do not depend on each other and read the same large buffer: it is then read once.
func (f *Fuser) siblings() {
	ks := f.p.Kernels
	for i := range ks {
		c, ok := ks[i].(*Nest)
		if !ok {
			continue
		}
		for j := i - 1; j >= max(0, i-siblingReach); j-- {
			p, ok := ks[j].(*Nest)
			if !ok || f.touch[p].Conflict(f.touch[c]) {
				continue
			}
			b := f.shared(p, c)
			if b == nil {
				continue
			}
			down, up := f.canMove(j, i), f.canMove(i, j)
			if !down && !up {
				continue
			}
			m, _ := f.join(p, c, b)
			if m == nil {
				continue
			}
			keep, drop := i, j
			if !down {
				keep, drop = j, i
			}
			f.Fused++
			f.leave(p)
			f.leave(c)
			ks[keep], ks[drop] = m, nil
			f.enter(m, keep)
			if keep != i {
				break
			}
			c = m
		}
	}
}

// shared returns the largest buffer that both nests read and whose reading is most of what the smaller of the two moves, nil if there is none.
func (f *Fuser) shared(p, c *Nest) *Buffer {
	var best *Buffer
	for _, a := range p.In {
		if a != nil && f.touch[c].reads[a.Buf] && (best == nil || a.Buf.Len > best.Len) {
			best = a.Buf
		}
	}
	if best == nil {
		return nil
	}
	moved := func(n *Nest) int {
		total := 0
		for _, a := range n.accesses() {
			total += n.Extent(a.Varies())
		}
		return total
	}
	if 3*best.Len < min(moved(p), moved(c)) {
		return nil
	}
	return best
}
