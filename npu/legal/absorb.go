package legal

import "slices"

// A border around an image that only products read is theirs to make: they read the image, and beyond it the fill.

// AbsorbBorders drops copies of buffers with a border around them whose readers, contractions, can read what was copied, and returns how many.
func (p *Program) AbsorbBorders() int {
	readers, writers := map[*Buffer][]int{}, map[*Buffer][]int{}
	for i, k := range p.Kernels {
		t := Touches(k)
		for b := range t.reads {
			readers[b] = append(readers[b], i)
		}
		for b := range t.writes {
			writers[b] = append(writers[b], i)
		}
	}
	done := 0
	for i, k := range p.Kernels {
		n, ok := k.(*Nest)
		if !ok || len(n.Body) > 0 || len(n.In) != 1 || len(n.Out) != 1 || n.In[0] == nil {
			continue
		}
		in, b := n.In[0], n.Out[0].To.Buf
		if b.Role != Temp || b.Stored != in.Buf.Stored || len(writers[b]) != 1 || in.Inside(n.Dims) || slices.ContainsFunc(writers[in.Buf], func(w int) bool { return w > i }) {
			continue
		}
		to, ok := radices(n.Out[0].To, n.Dims)
		if !ok || !in.follows(to) {
			continue
		}
		var changed []*Contract
		for _, r := range readers[b] {
			c, ok := p.Kernels[r].(*Contract)
			if !ok || c.Post != nil && slices.ContainsFunc(c.Post.In, func(a *Access) bool { return a != nil && a.Buf == b }) {
				break
			}
			q := *c
			for _, side := range []**Access{&q.A, &q.B} {
				if (*side).Buf == b {
					*side = through(*side, c.Dims, to, in)
				}
			}
			if q.A == nil || q.B == nil {
				break
			}
			changed = append(changed, &q)
		}
		if len(changed) < len(readers[b]) || len(changed) == 0 {
			continue
		}
		for x, r := range readers[b] {
			p.Kernels[r] = changed[x]
		}
		readers[in.Buf] = append(readers[in.Buf], readers[b]...)
		done++
	}
	if done > 0 {
		p.dropDead()
	}
	return done
}

// follows reports whether what lies together where the dimensions lead lies together for the access too.
func (a *Access) follows(to []radix) bool {
	if len(to) == 0 {
		return false
	}
	return slices.ContainsFunc(a.Axes, func(x Axis) bool { return x.Stride == 1 && x.Coef[to[0].dim] == 1 })
}

// through returns the access that reads, at the indices of dims at which a reads a buffer, what from reads where to leads to that place; nil if
// no access does.
func through(a *Access, dims []int, to []radix, from *Access) *Access {
	if !a.Inside(dims) || a.Base < 0 {
		return nil
	}
	coef := make([][]int, len(to))
	off := make([]int, len(to))
	base := a.Base
	for i := len(to) - 1; i >= 0; i-- {
		coef[i] = make([]int, len(dims))
		off[i] = base / to[i].stride
		base %= to[i].stride
	}
	for _, x := range a.Axes {
		if x.Stride == 0 {
			continue
		}
		i := slices.IndexFunc(to, func(r radix) bool { return x.Stride >= r.stride && x.Stride < r.stride*r.n && x.Stride%r.stride == 0 })
		if i < 0 {
			return nil
		}
		m := x.Stride / to[i].stride
		off[i] += m * x.Off
		for d, c := range x.Coef {
			coef[i][d] += m * c
		}
	}
	zero := make([]int, len(dims))
	for i, r := range to {
		x := Axis{Off: off[i], Coef: coef[i]}
		if lo, hi := x.Range(zero, dims); lo < 0 || hi >= r.n {
			return nil
		}
	}
	out := &Access{Buf: from.Buf, Base: from.Base, Fill: from.Fill}
	for _, x := range from.Axes {
		y := Axis{Size: x.Size, Stride: x.Stride, Off: x.Off, Coef: make([]int, len(dims))}
		for i, r := range to {
			c := x.Coef[r.dim]
			y.Off += c * off[i]
			for d := range dims {
				y.Coef[d] += c * coef[i][d]
			}
		}
		out.Axes = append(out.Axes, y)
	}
	return out.tidy(dims)
}
