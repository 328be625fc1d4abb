package legal

import "slices"

// Two contractions with a buffer between them that is too large to stay on chip can be done in strips, if both walk through its outer
// dimensions: a strip of the first, then the same strip of the second, with a buffer that holds a strip. The scores of attention, a square of
// the length, are then made, turned into weights and used up rows by rows.

// maxStrips bounds the strips of a pair of contractions.
const maxStrips = 96

// Strips does so for buffers of more than most bytes, into strips of at most that, and returns how many buffers it was.
func (p *Program) Strips(most int) int {
	readers, writers := map[*Buffer]int{}, map[*Buffer]int{}
	for _, k := range p.Kernels {
		t := Touches(k)
		for b := range t.reads {
			readers[b]++
		}
		for b := range t.writes {
			writers[b]++
		}
	}
	done := 0
	var out []Kernel
	for i := 0; i < len(p.Kernels); i++ {
		first, ok := p.Kernels[i].(*Contract)
		if ok && i+1 < len(p.Kernels) {
			second, ok := p.Kernels[i+1].(*Contract)
			if ok && first.result() != nil {
				if b := first.result().Buf; b.Role == Temp && b.Bytes() > most && readers[b] == 1 && writers[b] == 1 {
					if list := p.strips(first, second, most); list != nil {
						out = append(out, list...)
						done++
						i++
						continue
					}
				}
			}
		}
		out = append(out, p.Kernels[i])
	}
	p.Kernels = out
	if done > 0 {
		p.dropDead()
	}
	return done
}

// strips returns the two contractions strip by strip, nil if they do not go together so.
func (p *Program) strips(first, second *Contract, most int) []Kernel {
	to := first.result()
	if second.A.Buf != to.Buf || second.B.Buf == to.Buf {
		return nil
	}
	for _, k := range []*Contract{first, second} {
		if k.Post == nil {
			continue
		}
		if slices.ContainsFunc(k.Post.Body, func(s Stmt) bool { return s.Op == Iota }) {
			return nil
		}
		for _, a := range k.Post.In[1:] {
			if a.Buf == to.Buf {
				return nil
			}
		}
	}
	from, ok := radices(to, first.outer())
	if !ok {
		return nil
	}
	into, ok := radices(second.A, second.Dims)
	if !ok || len(from) != len(into) {
		return nil
	}
	size := make([]int, len(from)) // of a strip, innermost first
	if first.B.Buf.Bytes()+second.B.Buf.Bytes() <= most/2 {
		most /= 2 // then what each strip reads again can stay on chip beside it
	}
	left := most / Size(to.Buf.Elem)
	count := 1
	for i := range from {
		if from[i].n != into[i].n || from[i].stride != into[i].stride {
			return nil
		}
		size[i] = min(from[i].n, left)
		if size[i] < from[i].n && (!first.outermost(from[i].dim) || !second.outermost(into[i].dim)) {
			return nil
		}
		if size[i] < 1 {
			return nil
		}
		parts := (from[i].n + size[i] - 1) / size[i]
		size[i] = (from[i].n + parts - 1) / parts
		count *= parts
		left /= size[i]
		if left == 0 {
			left = 1
		}
	}
	if count < 2 || count > maxStrips {
		return nil
	}
	// What all strips read again must be less than half of what they save.
	again := 0
	for _, k := range []struct {
		*Contract
		dims []radix
	}{{first, from}, {second, into}} {
		part := slices.Clone(k.Dims)
		for i, r := range k.dims {
			part[r.dim] = size[i]
		}
		again += count*extent(k.B, part) - extent(k.B, k.Dims)
	}
	if again > to.Buf.Len {
		return nil
	}
	var list []Kernel
	at := make([]int, len(from))
	for {
		a, b := first.Clone(), second.Clone()
		n := 1
		strip := &Buffer{ID: len(p.Buffers), Name: to.Buf.Name, Elem: to.Buf.Elem, Role: Temp}
		p.Buffers = append(p.Buffers, strip)
		w, r := &Access{Buf: strip}, &Access{Buf: strip}
		for i := range from {
			d := min(size[i], from[i].n-at[i])
			a.restrict(from[i].dim, at[i], d)
			b.restrict(into[i].dim, at[i], d)
			w.Axes = append(w.Axes, Axis{Size: d, Stride: n, Coef: along(len(first.Dims), from[i].dim)[:len(first.Dims)]})
			r.Axes = append(r.Axes, Axis{Size: d, Stride: n, Coef: along(len(second.Dims), into[i].dim)[:len(second.Dims)]})
			n *= d
		}
		strip.Len = n
		slices.Reverse(w.Axes)
		slices.Reverse(r.Axes)
		if a.Post == nil {
			a.C = w
		} else {
			a.Post.Out[0].To = w
		}
		b.A = r
		list = append(list, a.tidied(), b.tidied())
		i := 0
		for ; i < len(at); i++ {
			if at[i] += size[i]; at[i] < from[i].n {
				break
			}
			at[i] = 0
		}
		if i == len(at) {
			return list
		}
	}
}

// extent returns how many elements an access reads, those read at several indices once for each.
func extent(a *Access, dims []int) int {
	n := 1
	for i, d := range dims {
		if a.Varies()>>i&1 != 0 {
			n *= d
		}
	}
	return n
}

// outermost reports whether parts of a dimension can be computed one after the other: no sum runs over it.
func (k *Contract) outermost(dim int) bool {
	if k.Kind[dim] != Batch && k.Kind[dim] != M {
		return false
	}
	if k.Post != nil {
		for _, s := range k.Post.Body {
			if s.Over>>dim&1 != 0 {
				return false
			}
		}
	}
	return true
}

// Clone returns a copy of the contraction that shares nothing with it but buffers.
func (k *Contract) Clone() *Contract {
	c := *k
	c.Dims, c.Kind = slices.Clone(k.Dims), slices.Clone(k.Kind)
	c.A, c.B = k.A.Clone(), k.B.Clone()
	if k.C != nil {
		c.C = k.C.Clone()
	}
	if k.Post != nil {
		c.Post = k.Post.Clone()
	}
	return &c
}

// all returns the accesses of the contraction.
func (k *Contract) all() []*Access {
	list := []*Access{k.A, k.B}
	if k.Post != nil {
		return append(list, k.Post.accesses()...)
	}
	return append(list, k.C)
}

// restrict makes the contraction compute n indices of a dimension, from lo on.
func (k *Contract) restrict(dim, lo, n int) {
	for _, a := range k.all() {
		for i := range a.Axes {
			a.Axes[i].Off += a.Axes[i].Coef[dim] * lo
		}
	}
	k.Dims[dim] = n
	if k.Post != nil && k.Kind[dim] != K {
		k.Post.Dims[dim] = n
	}
}

// tidied returns the contraction with its accesses in their simplest form.
func (k *Contract) tidied() *Contract {
	for _, a := range k.all() {
		a.tidy(k.Dims)
	}
	return k
}
