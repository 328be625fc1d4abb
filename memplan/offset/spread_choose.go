package offset

import "slices"

// selection is what lies in a memory, as far as sums go: no more bytes are alive at any time than the memory has.
type selection struct {
	*spreader
	k    int
	room int64 // in units
	load []int64
	held []bool
}

// choose takes buffers in order as long as no more than room bytes are alive at any time, and then exchanges some for others as long as
// that keeps more.
func (s *spreader) choose(k int, order []int32, room int64) []int32 {
	c := &selection{s, k, room / s.in.unit, make([]int64, s.in.sections), make([]bool, len(s.buffers))}
	for _, i := range order {
		if c.fits(i) || s.must(i, k) {
			c.put(i, 1)
		}
	}
	for better := true; better && s.work < s.budget; {
		better = false
		for _, i := range order {
			if !c.held[i] {
				better = c.exchange(i, order) || better
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(order), func(i int32) bool { return !c.held[i] })
}

// fits reports whether there are bytes left for buffer i.
func (c *selection) fits(i int32) bool {
	for _, x := range c.in.spans[i] {
		c.work += int64(x.hi-x.lo)/blocksPerStep + 1
		for t := x.lo; t < x.hi; t++ {
			if c.load[t]+x.high-x.low > c.room {
				return false
			}
		}
	}
	return true
}

// put takes buffer i in (sign 1) or out (-1).
func (c *selection) put(i int32, sign int64) {
	for _, x := range c.in.spans[i] {
		c.work += int64(x.hi-x.lo)/blocksPerStep + 1
		for t := x.lo; t < x.hi; t++ {
			c.load[t] += sign * (x.high - x.low)
		}
	}
	c.held[i] = sign > 0
}

// exchange takes buffer i in and others out, those that save least for their bytes first, if what it saves is more. What then fits
// again comes back.
func (c *selection) exchange(i int32, order []int32) bool {
	var out []int32
	var lost int64
	c.put(i, 1)
	over := func() bool {
		for _, x := range c.in.spans[i] {
			for t := x.lo; t < x.hi; t++ {
				if c.load[t] > c.room {
					return true
				}
			}
		}
		return false
	}
	for n := len(order) - 1; n >= 0 && lost < c.spill(i) && over(); n-- {
		j := order[n]
		if j == i || !c.held[j] || c.must(j, c.k) || !c.meet(i, j) {
			continue
		}
		c.put(j, -1)
		out, lost = append(out, j), lost+c.spill(j)
	}
	good := !over()
	if good {
		for n := len(out) - 1; n >= 0; n-- {
			if c.fits(out[n]) {
				c.put(out[n], 1)
				lost -= c.spill(out[n])
			}
		}
	}
	if good && lost < c.spill(i) {
		for _, j := range order {
			if !c.held[j] && j != i && c.fits(j) {
				c.put(j, 1)
			}
		}
		return true
	}
	c.put(i, -1)
	for _, j := range out {
		if !c.held[j] {
			c.put(j, 1)
		}
	}
	return false
}

// meet reports whether two buffers are alive at the same time.
func (c *selection) meet(i, j int32) bool {
	c.work++
	for _, x := range c.in.spans[i] {
		for _, y := range c.in.spans[j] {
			if x.lo < y.hi && y.lo < x.hi {
				return true
			}
		}
	}
	return false
}
