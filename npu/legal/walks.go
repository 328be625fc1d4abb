package legal

import (
	"slices"

	"gradtool/graph"
)

// Walker makes walks of products with a square between them.
type Walker struct {
	// Better says whether a walk takes less time than the kernels that it is made of.
	Better func(w *Walk, instead []Kernel) bool
	// Large is the size in bytes from which a square is looked at.
	Large int

	p                *Program
	readers, writers map[*Buffer][]int // kernels, by place
	touch            []Touch
	stats            map[*Buffer]bool // hold what rows of a softmax have in common, for walks
}

// Walks makes walks of contractions where that is better and returns how many.
func (wk *Walker) Walks(p *Program) int {
	wk.p, wk.stats = p, map[*Buffer]bool{}
	done := 0
	for wk.look(); ; wk.look() {
		n := wk.backward()
		if n == 0 {
			n = wk.forward()
		}
		if n == 0 {
			n = wk.alone()
		}
		if n == 0 {
			break
		}
		done += n
		p.dropDead()
	}
	return done
}

// look notes which kernels touch which buffers.
func (wk *Walker) look() {
	wk.readers, wk.writers, wk.touch = map[*Buffer][]int{}, map[*Buffer][]int{}, nil
	for i, k := range wk.p.Kernels {
		t := Touches(k)
		wk.touch = append(wk.touch, t)
		for b := range t.reads {
			wk.readers[b] = append(wk.readers[b], i)
		}
		for b := range t.writes {
			wk.writers[b] = append(wk.writers[b], i)
		}
	}
}

// only reports whether a buffer is made by kernel i and read by the given ones alone.
func (wk *Walker) only(b *Buffer, i int, by ...int) bool {
	return b.Role == Temp && slices.Equal(wk.writers[b], []int{i}) && slices.Equal(wk.readers[b], by)
}

// between reports whether kernel i can be done at the place of kernel j, which comes later.
func (wk *Walker) between(i, j int) bool {
	for x := i + 1; x < j; x++ {
		if wk.touch[i].Conflict(wk.touch[x]) {
			return false
		}
	}
	return true
}

// forward makes one walk of a contraction, whose epilogue is a softmax along what another sums over, and that other.
func (wk *Walker) forward() int {
	for j, k := range wk.p.Kernels {
		second, ok := k.(*Contract)
		if !ok {
			continue
		}
		for _, left := range []bool{true, false} {
			b := second.operand(left).Buf
			if len(wk.writers[b]) != 1 || b.Bytes() < wk.Large || second.operand(!left).Buf == b {
				continue
			}
			i := wk.writers[b][0]
			first, ok := wk.p.Kernels[i].(*Contract)
			if !ok || i >= j || first.Post == nil || reducedOver(first.Post) == 0 || !wk.only(b, i, j) || !wk.between(i, j) {
				continue
			}
			second, rest := wk.p.detached(second)
			w := walkOf(first)
			if !w.sink(second, left, b) {
				continue
			}
			w.unstore(b)
			if !w.inside() || !w.makeRun(w.Sinks[0].Over, wk.stats) || !wk.Better(w, []Kernel{first, second}) {
				continue
			}
			w.Origin0 = second.Origin0.of(first.Origin0, second.Origin0)
			wk.p.Kernels[j] = w
			if rest != nil {
				wk.p.Kernels = slices.Insert(wk.p.Kernels, j+1, Kernel(rest))
			}
			wk.p.Kernels = slices.Delete(wk.p.Kernels, i, i+1)
			return 1
		}
	}
	return 0
}

// alone makes a walk of a contraction whose epilogue has nothing left to store but what the rows of a softmax have in common.
func (wk *Walker) alone() int {
	for i, k := range wk.p.Kernels {
		c, ok := k.(*Contract)
		if !ok || c.Post == nil || !c.Softmax(wk.Large) || slices.ContainsFunc(c.Post.Out, func(o Store) bool { return !wk.stats[o.To.Buf] }) {
			continue
		}
		w := walkOf(c)
		if !w.inside() || !w.makeRun(reducedOver(c.Post), wk.stats) || !wk.Better(w, []Kernel{c}) {
			continue
		}
		wk.p.Kernels[i] = w
		return 1
	}
	return 0
}

// sink adds a contraction one of whose operands is a buffer that the body of the walk stores: the value takes the place of the buffer, which the
// caller is to stop storing. It returns false, and may have changed the walk, if the two do not go together.
func (k *Walk) sink(c *Contract, left bool, b *Buffer) bool {
	q := c.withPost()
	if !left {
		q.A, q.B = q.B, q.A
		for i, kind := range q.Kind {
			switch kind {
			case M:
				q.Kind[i] = N
			case N:
				q.Kind[i] = M
			}
		}
	}
	if reducedOver(q.Post) != 0 || writeOf(k.Body, b) < 0 {
		return false
	}
	pairs, ok := match(k, q, func(s splitter) (*Access, []int) {
		if s == splitter(q) {
			return q.A, q.Dims
		}
		return k.Body.Out[writeOf(k.Body, b)].To, k.Body.Dims
	})
	if !ok {
		return false
	}
	to := make([]int, len(q.Dims))
	for i := range to {
		to[i] = -1
	}
	over, seen := uint32(0), uint32(0)
	for _, x := range pairs {
		to[x[1]] = x[0]
		seen |= 1 << x[0]
		if q.Kind[x[1]] == K {
			over |= 1 << x[0]
		}
	}
	for i, d := range k.Body.Dims {
		if d > 1 && seen>>i&1 == 0 {
			return false
		}
	}
	inner := k.inners(q, to)
	if inner == nil || over == 0 {
		return false
	}
	dims := slices.Clone(k.Dims)
	for i := range dims {
		if over>>i&1 != 0 || k.Square>>i&1 == 0 && !slices.Contains(inner, i) {
			dims[i] = 1
		}
	}
	at := writeOf(k.Body, b)
	s := Sink{Value: k.Body.Out[at].Value, B: q.B, Over: over, Scale: -1, Blank: -1, Post: q.Post, Part: q.Part}
	s.B.renumber(to, len(k.Dims))
	s.Post.renumber(to, dims)
	if s.Value < len(k.Body.In) { // sinks read what the body computes
		k.Body.Body = append(k.Body.Body, Stmt{Op: Mov, Elem: graph.Float, Args: []int{s.Value}})
		s.Value = len(k.Body.In) + len(k.Body.Body) - 1
	}
	k.Sinks = append(k.Sinks, s)
	return true
}

// unstore takes out the stores of the body to a buffer.
func (k *Walk) unstore(b *Buffer) {
	k.Body.Out = slices.DeleteFunc(k.Body.Out, func(o Store) bool { return o.To.Buf == b })
}

// inners gives the dimensions of q that the square has not a place outside of it, that of one which the walk has already where the operand then
// is one that it reads already. It returns them, nil if there is a dimension that is none of the result.
func (k *Walk) inners(q *Contract, to []int) []int {
	var own []int
	for i, d := range q.Dims {
		if to[i] >= 0 || d == 1 {
			continue
		}
		if q.Kind[i] != N || len(k.Dims)+len(q.Dims) > 31 {
			return nil
		}
		own = append(own, i)
	}
	// Another operand of the same buffer that moves alike, each dimension of it outside of the square standing for one of q's.
	steps := q.B.Steps(len(q.Dims))
	for _, a := range k.operands() {
		if a.Buf != q.B.Buf {
			continue
		}
		as := a.Steps(len(k.Dims))
		trial := slices.Clone(to)
		for _, i := range own {
			for d, n := range k.Dims {
				if k.Square>>d&1 == 0 && n == q.Dims[i] && as[d] == steps[i] && !slices.Contains(trial, d) {
					trial[i] = d
					break
				}
			}
		}
		if slices.ContainsFunc(own, func(i int) bool { return trial[i] < 0 }) {
			continue
		}
		b := q.B.Clone()
		b.renumber(trial, len(k.Dims))
		if b.sameOver(a, k.Dims) {
			copy(to, trial)
			own = nil
			break
		}
	}
	for _, i := range own {
		to[i] = k.grow(q.Dims[i])
	}
	out := []int{}
	for i, d := range q.Dims {
		if d > 1 && k.Square>>to[i]&1 == 0 {
			out = append(out, to[i])
		}
	}
	return out
}

// detached returns the contraction and its epilogue apart, if that reduces: the nest reads the sums from a buffer. Else it is nil.
func (p *Program) detached(k *Contract) (*Contract, *Nest) {
	if k.Post == nil || reducedOver(k.Post) == 0 {
		return k, nil
	}
	return p.apart(k)
}

// apart returns a contraction and its epilogue, which it must have, apart.
func (p *Program) apart(k *Contract) (*Contract, *Nest) {
	c := k.Clone()
	rest := c.Post
	c.Post = nil
	for _, o := range rest.Out {
		if o.Value == 0 && o.To.Varies() == rest.loadVaries(nil) && o.To.Buf.Stored == graph.Undefined {
			c.C = o.To.Clone()
		}
	}
	if c.C == nil {
		c.C = p.whole(graph.Float, rest.Dims, rest.loadVaries(nil))
		p.Buffers = append(p.Buffers, c.C.Buf)
	} else {
		rest.Out = slices.DeleteFunc(rest.Out, func(o Store) bool { return o.To.Buf == c.C.Buf })
	}
	rest.In[0] = c.C.Clone()
	rest.squeeze()
	return c, rest
}

// inside reports whether no operand has a border: a walk reads no padding.
func (k *Walk) inside() bool {
	return !slices.ContainsFunc(k.operands(), func(a *Access) bool { return !a.Inside(k.Dims) })
}

// operands returns the operands of scores and sinks.
func (k *Walk) operands() []*Access {
	var out []*Access
	for _, s := range k.Scores {
		out = append(out, s.A, s.B)
	}
	for _, s := range k.Sinks {
		out = append(out, s.B)
	}
	return out
}

// withPost returns a copy of the contraction with an epilogue, one that only stores the sums if it had none.
func (k *Contract) withPost() *Contract {
	q := k.Clone()
	if q.Post == nil {
		q.Post = &Nest{Origin0: q.Origin0, Dims: q.outer(), In: []*Access{nil}, Out: []Store{{To: q.C}}}
		q.C = nil
	}
	return q
}
