package legal

import (
	"cmp"
	"slices"
)

// Products that differ in where an operand and the result begin, by steps of the same size, are one product with one more
// dimension: those of the taps of a convolution's weight gradient, say, which then read the image once.

// MergeProducts merges such contractions and returns how many went into others.
func (p *Program) MergeProducts() int {
	total := 0
	for {
		n := p.mergeProducts()
		if n == 0 {
			return total
		}
		total += n
	}
}

// mergeReach is how many kernels ahead others are looked for.
const mergeReach = 128

// twin is a contraction that differs from another by offsets.
type twin struct {
	at         int // kernel
	from, into int // first element of the operand that differs, and of the result
	left       bool
}

func (p *Program) mergeProducts() int {
	merged := 0
	gone := make([]bool, len(p.Kernels))
	touch := make([]Touch, len(p.Kernels))
	for i, k := range p.Kernels {
		touch[i] = Touches(k)
	}
	for i, k := range p.Kernels {
		first, ok := k.(*Contract)
		if !ok || gone[i] || first.result() == nil {
			continue
		}
		var list []twin
		for j := i + 1; j < min(i+mergeReach, len(p.Kernels)); j++ {
			c, ok := p.Kernels[j].(*Contract)
			if !ok || gone[j] {
				continue
			}
			t, ok := first.twin(c)
			if !ok || len(list) > 0 && list[0].left != t.left {
				continue
			}
			blocked := false
			for x := i + 1; x < j && !blocked; x++ {
				blocked = !gone[x] && touch[x].Conflict(touch[j]) && !slices.ContainsFunc(list, func(o twin) bool { return o.at == x })
			}
			if !blocked {
				t.at = j
				list = append(list, t)
			}
		}
		if len(list) == 0 {
			continue
		}
		left := list[0].left
		list = append(list, twin{i, first.operand(left).first(), first.result().first(), left})
		slices.SortFunc(list, func(a, b twin) int { return cmp.Compare(a.from, b.from) })
		from, into := list[1].from-list[0].from, list[1].into-list[0].into
		n := 1
		for n < len(list) && list[n].from-list[n-1].from == from && list[n].into-list[n-1].into == into {
			n++
		}
		if from <= 0 || into <= 0 {
			continue
		}
		m := p.Kernels[list[0].at].(*Contract).widened(left, n, from, into)
		if m == nil || !m.result().injective(m.outer()) {
			continue
		}
		for _, t := range list[:n] {
			gone[t.at] = true
		}
		at := list[0].at
		var origins []Origin
		for _, t := range list[:n] {
			at = min(at, t.at)
			k := p.Kernels[t.at].(*Contract)
			origins = append(origins, k.Origin0)
			m.adds(k)
		}
		m.Origin0 = m.Origin0.of(origins...)
		p.Kernels[at], gone[at] = m, false
		touch[at] = Touches(m)
		merged += n - 1
	}
	var keep []Kernel
	for i, k := range p.Kernels {
		if !gone[i] {
			keep = append(keep, k)
		}
	}
	p.Kernels = keep
	return merged
}

// result returns the one access that the contraction writes, nil if there are several.
func (k *Contract) result() *Access {
	switch {
	case k.Post == nil:
		return k.C
	case len(k.Post.Out) == 1:
		return k.Post.Out[0].To
	}
	return nil
}

// outer returns the dimensions with those of kind K being 1.
func (k *Contract) outer() []int {
	d := slices.Clone(k.Dims)
	for i, kind := range k.Kind {
		if kind == K {
			d[i] = 1
		}
	}
	return d
}

func (k *Contract) operand(left bool) *Access {
	if left {
		return k.A
	}
	return k.B
}

// shifted reports whether two accesses differ in nothing but their base.
func (a *Access) shifted(b *Access) bool {
	c := *b
	c.Base = a.Base
	return a.Same(&c) && a.Fill == b.Fill
}

// twin reports whether c differs from k in the base of one operand and of the result alone.
func (k *Contract) twin(c *Contract) (twin, bool) {
	var t twin
	y := c.result()
	if !slices.Equal(k.Dims, c.Dims) || !slices.Equal(k.Kind, c.Kind) || y == nil || !k.result().shifted(y) || (k.Post == nil) != (c.Post == nil) {
		return t, false
	}
	if k.Post != nil {
		if len(k.Post.In) != len(c.Post.In) || len(k.Post.Body) != len(c.Post.Body) || k.Post.Out[0].Value != c.Post.Out[0].Value {
			return t, false
		}
		for i := 1; i < len(k.Post.In); i++ {
			if !k.Post.In[i].Same(c.Post.In[i]) || k.Post.In[i].Fill != c.Post.In[i].Fill {
				return t, false
			}
		}
		for i := range k.Post.Body {
			if !k.Post.Body[i].same(&c.Post.Body[i]) {
				return t, false
			}
		}
	}
	switch {
	case k.A.Same(c.A) && k.B.shifted(c.B) && c.B.Inside(c.Dims):
		return twin{from: c.B.first(), into: y.first()}, true
	case k.B.Same(c.B) && k.A.shifted(c.A) && c.A.Inside(c.Dims):
		return twin{from: c.A.first(), into: y.first(), left: true}, true
	}
	return t, false
}

// widened returns the contraction with a new outermost dimension of n indices, along which one operand moves by from elements and
// the result by into.
func (k *Contract) widened(left bool, n, from, into int) *Contract {
	kind := N
	if left {
		kind = M
	}
	m := &Contract{Origin0: k.Origin0, Part: k.Part, Dims: slices.Insert(slices.Clone(k.Dims), 0, n), Kind: slices.Insert(slices.Clone(k.Kind), 0, kind),
		A: k.A.widened(len(k.Dims), 0, 1), B: k.B.widened(len(k.Dims), 0, 1)}
	if left {
		m.A = k.A.widened(len(k.Dims), from, n)
	} else {
		m.B = k.B.widened(len(k.Dims), from, n)
	}
	m.A.mergeAxes(m.Dims)
	m.B.mergeAxes(m.Dims)
	if k.Post == nil {
		m.C = k.C.widened(len(k.Dims), into, n)
		return m
	}
	m.Post = k.Post.Clone()
	to := make([]int, len(k.Dims))
	for i := range to {
		to[i] = i + 1
	}
	if len(k.Dims) >= 31 {
		return nil
	}
	m.Post.renumber(to, m.outer())
	m.Post.Out[0].To = k.Post.Out[0].To.widened(len(k.Dims), into, n)
	return m
}

// widened returns the access, over dims dimensions, with a new outermost one along which it moves by step elements, n times.
func (a *Access) widened(dims, step, n int) *Access {
	b := a.Clone()
	for i := range b.Axes {
		b.Axes[i].Coef = slices.Insert(b.Axes[i].Coef, 0, 0)
	}
	if step != 0 {
		c := make([]int, dims+1)
		c[0] = 1
		b.Axes = append(b.Axes, Axis{Size: n, Stride: step, Coef: c})
	}
	return b
}

// mergeAxes makes one axis of those with the same stride, for an access that stays in range.
func (a *Access) mergeAxes(dims []int) {
	if !a.Inside(dims) {
		return
	}
	zero := make([]int, len(dims))
	var out []Axis
	for _, x := range a.Axes {
		i := slices.IndexFunc(out, func(o Axis) bool { return o.Stride == x.Stride })
		if i < 0 {
			out = append(out, x)
			continue
		}
		o := &out[i]
		o.Off += x.Off
		o.Coef = slices.Clone(o.Coef)
		for d, c := range x.Coef {
			o.Coef[d] += c
		}
		_, most := o.Range(zero, dims)
		o.Size = most + 1
	}
	a.Axes = out
}
