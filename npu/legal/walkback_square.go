package legal

import "slices"

// Squares that the backward pass reads are computed again in the walk: from the products that they are made of, and from what their rows have in
// common.

// absorbed is a contraction whose epilogue is computed again in the walk.
type absorbed struct {
	at int
	k  *Contract
	// again is a later kernel that computes the same, -1 if there is none, and renamed the buffers of it, which the program reads, by those of k.
	again   int
	renamed map[*Buffer]*Buffer
	part    string // the cluster that the later kernel is of
}

// next absorbs the maker of one square that the body loads, and returns false if there is none.
func (b *backer) next() bool {
	loads := b.w.Body.In[len(b.w.Scores):]
	for _, a := range loads {
		x := a.Buf
		if x.Role != Temp || x.Bytes() < b.Large || len(b.writers[x]) != 1 {
			continue
		}
		at := b.writers[x][0]
		c, ok := b.p.Kernels[at].(*Contract)
		if !ok || at >= b.members[0] || slices.ContainsFunc(b.squares, func(s *absorbed) bool { return s.at == at || s.again == at }) {
			continue
		}
		s := &absorbed{at: at, k: c, again: -1, renamed: map[*Buffer]*Buffer{}}
		if c.Post != nil && reducedOver(c.Post) != 0 {
			if !c.Softmax(b.Large) {
				continue
			}
			if t, from := b.twin(at, x); t >= 0 { // computed again: the first time gives the statistics
				s.at, s.again, s.k = t, at, b.p.Kernels[t].(*Contract)
				s.renamed[from], s.part = x, c.Part
			}
		}
		w := b.w.clone()
		for _, a := range w.Body.In[len(w.Scores):] {
			for from, to := range s.renamed {
				if a.Buf == to {
					a.Buf = from
				}
			}
		}
		for from := range s.renamed {
			x = from
		}
		if w := b.absorb(w, s, x); w != nil {
			b.w = w
			b.squares = append(b.squares, s)
			return true
		}
	}
	return false
}

// realOf returns the buffer that stands in the program for one of an absorbed kernel.
func (s *absorbed) realOf(x *Buffer) *Buffer {
	if y := s.renamed[x]; y != nil {
		return y
	}
	return x
}

// twin returns an earlier kernel that computes what kernel at stores in x, and where it stores it, -1 if there is none.
func (b *backer) twin(at int, x *Buffer) (int, *Buffer) {
	c := b.p.Kernels[at].(*Contract)
	for j := range at {
		t, ok := b.p.Kernels[j].(*Contract)
		if !ok || t.Post == nil || !slices.Equal(t.Dims, c.Dims) || !slices.Equal(t.Kind, c.Kind) || !t.A.Same(c.A) || !t.B.Same(c.B) {
			continue
		}
		for _, o := range t.Post.Out {
			if o.To.Buf.Role == Temp && sameStore(t.Post, o.To.Buf, c.Post, x) && len(b.writers[o.To.Buf]) == 1 {
				return j, o.To.Buf
			}
		}
	}
	return -1, nil
}

// sameStore reports whether p stores in x what q stores in y, in the same order.
func sameStore(p *Nest, x *Buffer, q *Nest, y *Buffer) bool {
	only := func(k *Nest, b *Buffer) *Nest {
		k = k.Clone()
		k.Out = slices.DeleteFunc(k.Out, func(o Store) bool { return o.To.Buf != b })
		k.Tidy()
		return k
	}
	p, q = only(p, x), only(q, y)
	if len(p.In) != len(q.In) || len(p.Body) != len(q.Body) || len(p.Out) != 1 || len(q.Out) != 1 || p.Out[0].Value != q.Out[0].Value ||
		!parallel(p.Out[0].To, q.Out[0].To, p.Dims) {
		return false
	}
	for i := 1; i < len(p.In); i++ {
		if !p.In[i].Same(q.In[i]) || p.In[i].Fill != q.In[i].Fill {
			return false
		}
	}
	for i := range p.Body {
		if !p.Body[i].same(&q.Body[i]) {
			return false
		}
	}
	return true
}

// absorb returns the walk computing what a contraction stores in x, in place of loading it, nil if that does not work. What rows of
// a softmax have in common is loaded, and stored by the kernel that first computes it.
func (b *backer) absorb(w *Walk, s *absorbed, x *Buffer) *Walk {
	q := s.k.withPost()
	if r, _ := readOf(w.Body, x); r == nil {
		return nil
	}
	pairs, ok := match(w, q, func(k splitter) (*Access, []int) {
		if k == splitter(q) {
			return q.Post.Out[writeOf(q.Post, x)].To, q.Post.Dims
		}
		r, _ := readOf(w.Body, x)
		return r, w.Body.Dims
	})
	if !ok || len(w.Dims)+len(q.Dims) > 31 {
		return nil
	}
	to := make([]int, len(q.Dims))
	for i := range to {
		to[i] = -1
	}
	for _, p := range pairs {
		to[p[1]] = p[0]
	}
	over := uint32(0)
	for i, d := range q.Dims {
		switch {
		case to[i] >= 0 || d == 1:
		case q.Kind[i] != K:
			return nil
		default:
			to[i] = w.grow(d)
			over |= 1 << to[i]
		}
	}
	if own := reducedOver(q.Post); own != 0 {
		list := rowValues(q.Post, own)
		if list == nil {
			return nil
		}
		c := s.k.Clone()
		cv, qv, elems := c.Post.Varies(), q.Post.Varies(), c.Post.Elems()
		var loads []*Access
		for _, v := range list {
			store := b.p.whole(elems[v], c.Post.Dims, cv[v])
			b.p.Buffers = append(b.p.Buffers, store.Buf)
			b.stats[store.Buf] = true
			c.Post.Out = append(c.Post.Out, Store{To: store, Value: v})
			load := b.p.whole(elems[v], q.Post.Dims, qv[v])
			load.Buf = store.Buf
			loads = append(loads, load)
		}
		b.changed[s.at] = c
		q.Post = q.Post.withLoads(list, loads)
	}
	for i := range q.Post.Body {
		if q.Post.Body[i].Again = true; s.again >= 0 {
			q.Post.Body[i].Part, q.Post.Body[i].Again = s.part, false
		}
	}
	q.A.renumber(to, len(w.Dims))
	q.B.renumber(to, len(w.Dims))
	q.Post.renumber(to, w.Body.Dims)
	if w.Body = concatBehind(q.Post, w.Body, len(w.Scores)); w.Body == nil {
		return nil
	}
	w.Scores = append(w.Scores, Score{A: q.A, B: q.B, Over: over, Part: s.part})
	return w
}

// rowValues returns the values of a softmax over cols that its rows have in common and that what varies along them is made of, nil if
// there are none.
func rowValues(k *Nest, cols uint32) []int {
	n, _, ok := natures(k, cols)
	if !ok {
		return nil
	}
	varies := k.Varies()
	var list []int
	for j, s := range k.Body {
		if varies[len(k.In)+j]&cols == 0 {
			continue
		}
		for _, a := range s.Args {
			if x := n[a]; (x == top || x == total || x == tally || x == late) && !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	slices.Sort(list)
	return list
}

// makes reports whether the kernel stores a buffer.
func (s *absorbed) makes(b *Buffer) bool {
	return slices.ContainsFunc(s.k.Writes(), func(a *Access) bool { return a.Buf == b })
}
