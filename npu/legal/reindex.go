package legal

import "slices"

// Changes of the dimensions of kernels that leave what they compute as it is.

// split cuts a dimension of the access in two, the inner one of n indices.
func (a *Access) split(dim, n int) {
	for i := range a.Axes {
		c := a.Axes[i].Coef
		a.Axes[i].Coef = slices.Insert(slices.Clone(c), dim+1, c[dim])
		a.Axes[i].Coef[dim] = c[dim] * n
	}
}

// renumber puts dimension i at place to[i] of n; a negative place drops a dimension that has one index.
func (a *Access) renumber(to []int, n int) {
	for i := range a.Axes {
		c := make([]int, n)
		for d, t := range to {
			if t >= 0 {
				c[t] = a.Axes[i].Coef[d]
			}
		}
		a.Axes[i].Coef = c
	}
}

// Steps returns how far apart, in elements, the places are that neighbouring indices of each dimension give.
func (a *Access) Steps(dims int) []int {
	s := make([]int, dims)
	for _, x := range a.Axes {
		for i, c := range x.Coef {
			s[i] += c * x.Stride
		}
	}
	return s
}

// first returns the place of index 0.
func (a *Access) first() int {
	at := a.Base
	for _, x := range a.Axes {
		at += x.Off * x.Stride
	}
	return at
}

// sameOver reports whether two accesses, over the same dimensions, touch the same elements at the same indices.
func (a *Access) sameOver(b *Access, dims []int) bool {
	return a.Buf == b.Buf && (a.Same(b) ||
		a.Inside(dims) && b.Inside(dims) && a.first() == b.first() && slices.Equal(a.Steps(len(dims)), b.Steps(len(dims))))
}

// Clone returns a copy of the nest that shares nothing with it but buffers.
func (k *Nest) Clone() *Nest {
	c := *k
	c.Dims = slices.Clone(k.Dims)
	c.In = make([]*Access, len(k.In))
	for i, a := range k.In {
		if a != nil {
			c.In[i] = a.Clone()
		}
	}
	c.Body = slices.Clone(k.Body)
	for i := range c.Body {
		c.Body[i].Args = slices.Clone(c.Body[i].Args)
	}
	c.Out = slices.Clone(k.Out)
	for i := range c.Out {
		c.Out[i].To = c.Out[i].To.Clone()
	}
	return &c
}

func (k *Nest) accesses() []*Access {
	var out []*Access
	for _, a := range k.In {
		if a != nil {
			out = append(out, a)
		}
	}
	for _, o := range k.Out {
		out = append(out, o.To)
	}
	return out
}

// split cuts dimension dim in two, the inner one of n indices. It fails where a statement counts along it.
func (k *Nest) split(dim, n int) bool {
	for _, s := range k.Body {
		if s.Op == Iota && s.Dim == dim {
			return false
		}
	}
	for _, a := range k.accesses() {
		a.split(dim, n)
	}
	for i := range k.Body {
		s := &k.Body[i]
		low := s.Over & (1<<(dim+1) - 1)
		s.Over = low | s.Over>>(dim+1)<<(dim+2) | (low>>dim&1)<<(dim+1)
		if s.Dim > dim {
			s.Dim++
		}
	}
	k.Dims = slices.Insert(k.Dims, dim+1, n)
	k.Dims[dim] /= n
	return true
}

// renumber puts dimension i at place to[i] of dims; a negative place drops it.
func (k *Nest) renumber(to []int, dims []int) {
	for _, a := range k.accesses() {
		a.renumber(to, len(dims))
	}
	for i := range k.Body {
		s := &k.Body[i]
		over := uint32(0)
		for d, t := range to {
			if t >= 0 {
				over |= s.Over >> d & 1 << t
			}
		}
		s.Over = over
		if s.Op == Iota {
			s.Dim = to[s.Dim]
		} else {
			s.Dim = 0
		}
	}
	k.Dims = slices.Clone(dims)
}

// squeeze drops dimensions of one index.
func (k *Nest) squeeze() {
	var dims, to []int
	for _, d := range k.Dims {
		if d == 1 {
			to = append(to, -1)
			continue
		}
		to = append(to, len(dims))
		dims = append(dims, d)
	}
	for i := range k.Body { // counting along one index gives 0
		if s := &k.Body[i]; s.Op == Iota && to[s.Dim] < 0 {
			*s = Stmt{Op: ConstOp, Elem: s.Elem}
		}
	}
	k.renumber(to, dims)
}
