package legal

import (
	"cmp"
	"slices"

	"gradtool/graph"
)

// The backward pass of attention reads the weights P of the forward pass, or has them computed again, makes the cotangent of the scores from them
// and uses both up in three products. All of it is one walk: the scores are computed again, tile by tile, and the weights are made of them and of
// what the rows of the softmax have in common, its maximum and the inverse of its sum, which the forward pass stores. The sum over a row of
// the cotangent of P times P is that of the result's cotangent times the result (Dao et al., "FlashAttention", 2022, section B.2):
//
//	sum over n of P[m,n] * (sum over k of dO[m,k] V[n,k]) = sum over k of dO[m,k] * (sum over n of P[m,n] V[n,k])

// backward makes one walk of a contraction that reads weights and sums over rows, and of what uses up the weights and what it makes.
func (wk *Walker) backward() int {
	for i, k := range wk.p.Kernels {
		c, ok := k.(*Contract)
		if !ok || !c.Sums(wk.Large) {
			continue
		}
		buffers := len(wk.p.Buffers)
		b := &backer{Walker: wk, w: walkOf(c), members: []int{i}, changed: map[int]Kernel{}}
		b.w.along = reducedOver(c.Post)
		if b.build() {
			b.place()
			return 1
		}
		wk.p.Buffers = wk.p.Buffers[:buffers]
	}
	return 0
}

// backer builds the walk of a backward pass.
type backer struct {
	*Walker
	w       *Walk
	members []int // kernels that the walk takes the place of
	squares []*absorbed
	add     []Kernel // to stand before the walk
	behind  []Kernel // and behind it
	at      int      // kernel whose place it takes
	changed map[int]Kernel
	before  []int // kernels that are to stand before it
}

func (b *backer) build() bool {
	for b.next() {
	}
	if len(b.squares) == 0 || !b.rowSums() {
		return false
	}
	for i := 0; i < len(b.w.Body.Out); i++ {
		b.extend(b.w.Body.Out[i].To.Buf)
	}
	var uses []*Buffer
	for _, o := range b.w.Body.Out {
		if !slices.Contains(uses, o.To.Buf) {
			uses = append(uses, o.To.Buf)
		}
	}
	for _, s := range uses {
		if b.sinks(s) {
			b.w.unstore(s)
		}
	}
	if len(b.w.Sinks) == 0 {
		return false
	}
	b.w.tidy()
	return b.w.inside() && b.standing() && b.Better(b.w, b.instead())
}

// clone returns a copy of the walk that shares nothing with it but buffers.
func (k *Walk) clone() *Walk {
	c := *k
	c.Dims, c.Body = slices.Clone(k.Dims), k.Body.Clone()
	c.Scores, c.Sinks = slices.Clone(k.Scores), slices.Clone(k.Sinks)
	for i := range c.Scores {
		c.Scores[i].A, c.Scores[i].B = c.Scores[i].A.Clone(), c.Scores[i].B.Clone()
	}
	for i := range c.Sinks {
		c.Sinks[i].B, c.Sinks[i].Post = c.Sinks[i].B.Clone(), c.Sinks[i].Post.Clone()
	}
	return &c
}

// sinks gives the walk the products that use up a square which its body makes, and reports whether nobody else reads it. Products of the forward
// pass, along rows of weights, stay.
func (b *backer) sinks(s *Buffer) bool {
	from := slices.IndexFunc(b.squares, func(q *absorbed) bool { return q.makes(s) })
	names := []*Buffer{s}
	if from >= 0 {
		if x := b.squares[from].realOf(s); x != s {
			names = append(names, x) // read under both names, that of the first time in the forward pass
		}
	}
	all := s.Role == Temp
	for _, name := range names {
		for _, j := range b.readers[name] {
			if slices.Contains(b.members, j) || from >= 0 && j == b.squares[from].again {
				continue
			}
			if !b.sinkOf(j, name, s, from >= 0 && name == s) {
				all = false
			}
		}
	}
	return all || from >= 0
}

// extend has the body compute what nests make of a square that it makes, point by point.
func (b *backer) extend(s *Buffer) {
	for _, j := range b.readers[s] {
		n, ok := b.p.Kernels[j].(*Nest)
		if !ok || slices.Contains(b.members, j) || reducedOver(n) != 0 || len(n.Out) != 1 || n.Out[0].To.Buf.Bytes() < b.Large {
			continue
		}
		w, c := b.w.clone(), n.Clone()
		c.squeeze()
		if r, _ := readOf(c, s); r == nil {
			continue
		}
		pairs, ok := match(w, c, func(k splitter) (*Access, []int) {
			if k == splitter(c) {
				r, _ := readOf(c, s)
				return r, c.Dims
			}
			return w.Body.Out[writeOf(w.Body, s)].To, w.Body.Dims
		})
		if !ok || len(pairs) != len(c.Dims) {
			continue
		}
		to := make([]int, len(c.Dims))
		for _, x := range pairs {
			to[x[1]] = x[0]
		}
		c.renumber(to, w.Body.Dims)
		if w.Body = concat(w.Body, c); w.Body != nil {
			b.w = w
			b.members = append(b.members, j)
		}
	}
}

// sinkOf makes kernel j, which reads the walk's square s under a name, a sink of the walk, unless it is forward and sums along rows.
func (b *backer) sinkOf(j int, name, s *Buffer, forward bool) bool {
	c, ok := b.p.Kernels[j].(*Contract)
	if !ok || (c.A.Buf == name) == (c.B.Buf == name) || c.Post != nil && slices.ContainsFunc(c.Post.In[1:], func(a *Access) bool { return a.Buf == name }) {
		return false
	}
	q, rest := b.p.plain(c)
	left := q.A.Buf == name
	q = q.Clone()
	if left {
		q.A.Buf = s
	} else {
		q.B.Buf = s
	}
	w := b.w.clone()
	if !w.sink(q, left, s) || forward && w.Sinks[len(w.Sinks)-1].Over == w.along {
		return false
	}
	b.w = w
	if rest != nil {
		b.behind = append(b.behind, rest)
	}
	b.members = append(b.members, j)
	return true
}

// plain returns the contraction, storing its sums as they are in one place, and what else its epilogue does, nil if that is all.
func (p *Program) plain(k *Contract) (*Contract, *Nest) {
	if k.Post == nil && k.C.Buf.Stored == graph.Undefined || k.Post != nil && len(k.Post.Body) == 0 && len(k.Post.Out) == 1 && k.Post.Out[0].To.Buf.Stored == graph.Undefined {
		return k, nil
	}
	return p.apart(k.withPost())
}

// standing finds the place of the walk: where all that it reads is there and nothing that it makes has been read.
func (b *backer) standing() bool {
	slices.SortFunc(b.members, cmp.Compare[int])
	for _, at := range b.members {
		early := b.early(at)
		mine := append(append([]Kernel{b.w}, b.add...), b.behind...)
		for _, x := range early {
			mine = append(mine, b.kernel(x))
		}
		reads, makes := map[*Buffer]bool{}, map[*Buffer]bool{}
		for _, k := range mine {
			t := Touches(k)
			for x := range t.writes {
				makes[x] = true
			}
			for x := range t.reads {
				reads[x] = true
			}
		}
		ok := true
		for x := range b.p.Kernels {
			if slices.Contains(b.members, x) || slices.Contains(early, x) {
				continue
			}
			t := Touches(b.kernel(x))
			for y := range t.writes {
				ok = ok && !makes[y] && !(reads[y] && x > at)
			}
			for y := range t.reads {
				ok = ok && !(makes[y] && x < at)
			}
		}
		if ok {
			b.at = at
			return true
		}
	}
	return false
}

// early returns the kernels that have to move to place at, to stand before the walk.
func (b *backer) early(at int) []int {
	var out []int
	for _, j := range b.before {
		if j > at {
			out = append(out, j)
		}
	}
	return out
}

// kernel returns kernel i as it is to be.
func (b *backer) kernel(i int) Kernel {
	if c := b.changed[i]; c != nil {
		return c
	}
	return b.p.Kernels[i]
}

// instead returns the kernels that the walk takes the place of.
func (b *backer) instead() []Kernel {
	var out []Kernel
	for _, i := range b.members {
		out = append(out, b.p.Kernels[i])
	}
	return out
}

// place puts the walk into the program.
func (b *backer) place() {
	list := b.instead()
	var origins []Origin
	for _, k := range list {
		origins = append(origins, *k.Origin())
	}
	b.w.Origin0 = list[0].Origin().of(origins...)
	early := b.early(b.at)
	var out []Kernel
	for i := range b.p.Kernels {
		if i == b.at {
			for _, j := range early {
				out = append(out, b.kernel(j))
			}
			out = append(append(append(out, b.add...), b.w), b.behind...)
		}
		if !slices.Contains(b.members, i) && !slices.Contains(early, i) {
			out = append(out, b.kernel(i))
		}
	}
	b.p.Kernels = out
}
