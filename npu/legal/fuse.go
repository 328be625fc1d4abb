package legal

import (
	"slices"
)

// maxBody bounds the statements of a kernel that fusion makes, maxAccess its loads and stores.
const (
	maxBody   = 96
	maxAccess = 20
)

// Fuser joins kernels so that what one makes and another uses stays on chip.
type Fuser struct {
	// Fits reports whether a nest can be cut into tiles that leave room for others; FitsPost the same of a contraction with an
	// epilogue.
	Fits     func(k *Nest) bool
	FitsPost func(k *Contract) bool

	p       *Program
	touch   map[Kernel]Touch
	writers map[*Buffer][]Kernel
	readers map[*Buffer][]Kernel
	index   map[Kernel]int
	outputs map[*Buffer]bool
	// Fused counts the kernels that went into others.
	Fused int
}

// Run fuses the kernels of p where it can.
func (f *Fuser) Run(p *Program) {
	f.begin(p)
	for i, k := range p.Kernels {
		if n, ok := k.(*Nest); ok {
			n.squeeze()
		}
		f.enter(k, i)
	}
	for i := range p.Kernels {
		for at := i; at >= 0; {
			c, ok := p.Kernels[at].(*Nest)
			if !ok {
				break
			}
			at = f.fuseInto(at, c)
		}
	}
	f.siblings()
	p.Kernels = slices.DeleteFunc(p.Kernels, func(k Kernel) bool { return k == nil })
	p.dropDead()
	p.separateAxes()
}

// enter notes what kernel i touches.
func (f *Fuser) enter(k Kernel, i int) {
	t := Touches(k)
	f.touch[k], f.index[k] = t, i
	for b := range t.writes {
		f.writers[b] = append(f.writers[b], k)
	}
	for b := range t.reads {
		f.readers[b] = append(f.readers[b], k)
	}
}

// leave forgets a kernel.
func (f *Fuser) leave(k Kernel) {
	drop := func(list []Kernel) []Kernel { return slices.DeleteFunc(list, func(x Kernel) bool { return x == k }) }
	for b := range f.touch[k].writes {
		f.writers[b] = drop(f.writers[b])
	}
	for b := range f.touch[k].reads {
		f.readers[b] = drop(f.readers[b])
	}
	delete(f.touch, k)
	delete(f.index, k)
}

// fuseInto joins kernel i, the nest c, with a kernel that makes one of its operands, and returns where the result stands, -1
// if there is none. The place of a kernel that is gone is empty.
func (f *Fuser) fuseInto(i int, c *Nest) int {
	tried := map[Kernel]bool{}
	for _, a := range c.In {
		if a == nil || len(f.writers[a.Buf]) != 1 {
			continue
		}
		p := f.writers[a.Buf][0]
		j := f.index[p]
		if j >= i || tried[p] {
			continue
		}
		tried[p] = true
		down, up := f.canMove(j, i), f.canMove(i, j)
		var shared []*Buffer // made by p, read by c
		early := false
		for _, x := range c.In {
			if x != nil && f.touch[p].writes[x.Buf] && len(f.writers[x.Buf]) == 1 && !slices.Contains(shared, x.Buf) {
				shared = append(shared, x.Buf)
				early = early || f.worthEarly(c, x.Buf)
			}
		}
		if !down && !(up && early) {
			continue
		}
		var merged Kernel
		var nest *Nest
		for _, b := range shared {
			switch p := p.(type) {
			case *Nest:
				if nest, _ = f.join(p, c, b); nest != nil {
					merged = nest
				}
			case *Contract:
				if m, _ := f.joinPost(p, c, b); m != nil {
					merged, nest = m, m.Post
				}
			}
			if merged != nil {
				break
			}
		}
		if merged == nil {
			continue
		}
		f.Fused++
		f.leave(p)
		f.leave(c)
		keep, drop := i, j
		if !down {
			keep, drop = j, i
		}
		f.p.Kernels[keep], f.p.Kernels[drop] = merged, nil
		live := map[*Buffer]bool{}
		for _, o := range nest.Out {
			b := o.To.Buf
			live[b] = f.outputs[b] || len(f.readers[b])+len(f.writers[b]) > 0
		}
		nest.dropStores(live)
		f.enter(merged, keep)
		return keep
	}
	return -1
}

// worthEarly reports whether c may be computed where its operand b is made, long before its own turn perhaps: what it makes
// must be kept until then, which is worth it only if that is much less than b, or if nobody else wants b.
func (f *Fuser) worthEarly(c *Nest, b *Buffer) bool {
	made := 0
	for _, o := range c.Out {
		if !f.outputs[o.To.Buf] {
			made += o.To.Buf.Len
		}
	}
	return 2*made <= b.Len || len(f.readers[b]) == 1 && !f.outputs[b]
}

// canMove reports whether kernel from can stand right beside kernel to, where the two become one: nothing between conflicts
// with it.
func (f *Fuser) canMove(from, to int) bool {
	t := f.touch[f.p.Kernels[from]]
	lo, hi := min(from, to), max(from, to)
	for i := lo + 1; i < hi; i++ {
		if k := f.p.Kernels[i]; k != nil && t.Conflict(f.touch[k]) {
			return false
		}
	}
	return true
}

// readOf returns the one access by which c reads a buffer, nil if it reads it in several ways or does more than fill.
func readOf(c *Nest, b *Buffer) (*Access, []int) {
	var found *Access
	var at []int
	for i, a := range c.In {
		if a == nil || a.Buf != b {
			continue
		}
		if found != nil && !found.sameOver(a, c.Dims) {
			return nil, nil
		}
		found = a
		at = append(at, i)
	}
	return found, at
}

// writeOf returns the store of p to a buffer.
func writeOf(p *Nest, b *Buffer) int {
	return slices.IndexFunc(p.Out, func(o Store) bool { return o.To.Buf == b })
}

// join returns the nest that does what p and then c do, where b is what p makes and c reads, or what both read, nil if they do not
// go together.
func (f *Fuser) join(p, c *Nest, b *Buffer) (*Nest, error) {
	if len(p.Body)+len(c.Body) > maxBody || len(p.In)+len(c.In)+len(p.Out)+len(c.Out) > maxAccess {
		return nil, errLong
	}
	p, c = p.Clone(), c.Clone()
	c.squeeze()
	p.squeeze()
	// What p does with b if it does not make it: it reads it, as c does.
	sibling := writeOf(p, b) < 0
	if r, _ := readOf(c, b); r == nil {
		return nil, errWays
	}
	if r, _ := readOf(p, b); sibling && r == nil {
		return nil, errWays
	}
	pairs, ok := match(p, c, func(k splitter) (*Access, []int) {
		n := k.(*Nest)
		switch a, _ := readOf(n, b); {
		case n == c || sibling:
			return a, n.Dims
		}
		return p.Out[writeOf(p, b)].To, p.Dims
	})
	if !ok || sibling && (len(pairs) != len(p.Dims) || len(pairs) != len(c.Dims)) {
		return nil, errOrder
	}
	to := make([]int, len(p.Dims)) // dimension of c for each of p
	for i := range to {
		to[i] = -1
	}
	taken := make([]bool, len(c.Dims))
	for _, x := range pairs {
		to[x[0]] = x[1]
		taken[x[1]] = true
	}
	var own, other []int // dimensions that the other has not: reduced by p, broadcast by c
	for i := range p.Dims {
		if to[i] < 0 {
			own = append(own, i)
		}
	}
	for i := range c.Dims {
		if !taken[i] {
			other = append(other, i)
		}
	}
	dims := slices.Clone(c.Dims)
	switch {
	case len(own) == 0:
	case len(other) == 0:
		for _, i := range own {
			to[i] = len(dims)
			dims = append(dims, p.Dims[i])
		}
	case len(own) == len(other):
		for x := range own {
			if p.Dims[own[x]] != c.Dims[other[x]] {
				return nil, errDims
			}
			to[own[x]] = other[x]
		}
	default:
		return nil, errDims
	}
	if len(dims) > 8 {
		return nil, errLong
	}
	identity := make([]int, len(c.Dims))
	for i := range identity {
		identity[i] = i
	}
	p.renumber(to, dims)
	c.renumber(identity, dims)
	m := concat(p, c)
	switch {
	case m == nil:
		return nil, errOrder
	case !f.Fits(m):
		return nil, errFits
	}
	return m, nil
}

// split cuts a dimension of the contraction and of its epilogue.
func (k *Contract) split(dim, n int) bool {
	if !k.Post.split(dim, n) {
		return false
	}
	k.A.split(dim, n)
	k.B.split(dim, n)
	k.Dims = slices.Insert(k.Dims, dim+1, n)
	k.Dims[dim] /= n
	k.Kind = slices.Insert(k.Kind, dim+1, k.Kind[dim])
	return true
}

// joinPost returns the contraction that does what p and then c do, nil if they do not go together: every dimension of c must
// be one of the sums.
func (f *Fuser) joinPost(p *Contract, c *Nest, b *Buffer) (*Contract, error) {
	q := &Contract{Origin0: p.Origin0.of(p.Origin0, c.Origin0), Dims: slices.Clone(p.Dims), Kind: slices.Clone(p.Kind), A: p.A.Clone(), B: p.B.Clone(), Part: p.Part}
	if p.Post != nil {
		q.Post = p.Post.Clone()
	} else {
		q.Post = &Nest{Origin0: p.Origin0, In: []*Access{nil}, Out: []Store{{To: p.C.Clone()}}}
		for i, d := range p.Dims {
			if p.Kind[i] == K {
				d = 1
			}
			q.Post.Dims = append(q.Post.Dims, d)
		}
	}
	c = c.Clone()
	c.squeeze()
	if len(q.Post.Body)+len(c.Body) > maxBody || len(q.Post.In)+len(c.In)+len(q.Post.Out)+len(c.Out) > maxAccess {
		return nil, errLong
	}
	if r, _ := readOf(c, b); r == nil {
		return nil, errWays
	}
	pairs, ok := match(q, c, func(k splitter) (*Access, []int) {
		if k == splitter(q) {
			return q.Post.Out[writeOf(q.Post, b)].To, q.Post.Dims
		}
		a, _ := readOf(c, b)
		return a, c.Dims
	})
	switch {
	case !ok:
		return nil, errOrder
	case len(pairs) != len(c.Dims):
		return nil, errSums
	}
	to := make([]int, len(c.Dims))
	for _, x := range pairs {
		to[x[1]] = x[0]
	}
	c.renumber(to, q.Post.Dims)
	if q.Post = concat(q.Post, c); q.Post == nil {
		return nil, errOrder
	}
	if !f.FitsPost(q) {
		return nil, errFits
	}
	return q, nil
}
