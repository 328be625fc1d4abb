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

// absorbed is a contraction whose epilogue is computed again in the walk.
type absorbed struct {
	at int
	k  *Contract
	// again is a later kernel that computes the same, -1 if there is none, and renamed the buffers of it, which the program reads, by those of k.
	again   int
	renamed map[*Buffer]*Buffer
	part    string // the cluster that the later kernel is of
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
	if w.Body = concatScores(q.Post, w.Body, len(w.Scores)); w.Body == nil {
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

// concatScores puts the statements of c, whose first n loads are sums, behind those of p, which has one such load; that becomes load n. What p
// stores, c does not load. It returns the nest, which stores what both store, nil if c loads in another way than p stores.
func concatScores(p, c *Nest, n int) *Nest {
	m := &Nest{Origin0: c.Origin0, Dims: c.Dims}
	m.In = append(append(m.In, c.In[:n]...), nil)
	loads := make([]int, len(c.In))
	for i, a := range c.In {
		if i < n {
			loads[i] = i
			continue
		}
		if writeOf(p, a.Buf) < 0 {
			loads[i] = len(m.In)
			m.In = append(m.In, a)
			continue
		}
		at := slices.IndexFunc(p.Out, func(o Store) bool { return o.To.sameOver(a, p.Dims) })
		if at < 0 {
			return nil
		}
		loads[i] = -1 - p.Out[at].Value
	}
	first := len(m.In) // of the loads of p but its sums
	m.In = append(m.In, p.In[1:]...)
	ofP := func(v int) int {
		switch {
		case v == 0:
			return n
		case v < len(p.In):
			return first + v - 1
		}
		return len(m.In) + v - len(p.In)
	}
	for _, s := range p.Body {
		s.Args = slices.Clone(s.Args)
		for j, a := range s.Args {
			s.Args[j] = ofP(a)
		}
		m.Body = append(m.Body, s)
	}
	base := len(m.In) + len(m.Body) - len(c.In)
	ofC := func(v int) int {
		switch {
		case v >= len(c.In):
			return v + base
		case loads[v] < 0:
			return ofP(-1 - loads[v])
		}
		return loads[v]
	}
	for _, s := range c.Body {
		s.Args = slices.Clone(s.Args)
		for j, a := range s.Args {
			s.Args[j] = ofC(a)
		}
		m.Body = append(m.Body, s)
	}
	for _, o := range c.Out {
		m.Out = append(m.Out, Store{o.To, ofC(o.Value), o.Part})
	}
	for _, o := range p.Out {
		m.Out = append(m.Out, Store{o.To, ofP(o.Value), o.Part})
	}
	return m
}

// withLoads returns the nest with loads in place of values.
func (k *Nest) withLoads(values []int, loads []*Access) *Nest {
	base, more := len(k.In), len(loads)
	of := func(v int) int {
		if i := slices.Index(values, v); i >= 0 {
			return base + i
		}
		if v >= base {
			return v + more
		}
		return v
	}
	m := &Nest{Origin0: k.Origin0, Dims: k.Dims, In: append(slices.Clone(k.In), loads...)}
	for _, s := range k.Body {
		s.Args = slices.Clone(s.Args)
		for j, a := range s.Args {
			s.Args[j] = of(a)
		}
		m.Body = append(m.Body, s)
	}
	for _, o := range k.Out {
		m.Out = append(m.Out, Store{o.To, of(o.Value), o.Part})
	}
	return m
}

// rowSums has the body load sums along rows of a cotangent times weights, which are sums of the cotangent of a result times the result.
func (b *backer) rowSums() bool {
	for {
		b.w.tidy()
		body := b.w.Body
		at := slices.IndexFunc(body.Body, func(s Stmt) bool { return s.Op.Reduces() })
		if at < 0 {
			return true
		}
		v := len(body.In) + at
		a := b.rowSum(v)
		if a == nil {
			return false
		}
		b.w.Body = b.w.Body.withLoads([]int{v}, []*Access{a})
	}
}

// factors appends the factors of a value to a list. One that is 0 where some value is no number, as weights are in a row that is masked as a whole, counts as
// what it is elsewhere; such values are appended to guards.
func (k *Nest) factors(v int, list []int, guards *[]int) []int {
	if v < len(k.In) {
		return append(list, v)
	}
	s := &k.Body[v-len(k.In)]
	switch {
	case s.Op == Mul:
		return k.factors(s.Args[1], k.factors(s.Args[0], list, guards), guards)
	case s.Op == Select:
		zero, ok := k.constant(s.Args[1])
		if g := s.Args[0] - len(k.In); g >= 0 && ok && zero == 0 && k.Body[g].Op == Ne && k.Body[g].Args[0] == k.Body[g].Args[1] {
			*guards = append(*guards, k.Body[g].Args[0])
			return k.factors(s.Args[2], list, guards)
		}
		if zero, ok := k.constant(s.Args[2]); ok && zero == 0 && s.Elem == graph.Float { // times a truth value
			list = k.factors(s.Args[1], list, guards)
			if !slices.Contains(list, s.Args[0]) {
				list = append(list, s.Args[0])
			}
			return list
		}
	}
	return append(list, v)
}

// blank returns the load, of a row, among factors that is infinite or no number where weights of the row are no number, and whether some guard, which
// must be by the weights that have this factor, makes the product 0 there. It returns false if guards are by something else.
func (b *backer) blank(v int, all, guards []int, cols uint32) (row *Access, guarded, ok bool) {
	body := b.w.Body
	found := -1
	for _, f := range all {
		if f >= len(b.w.Scores) && f < len(body.In) && body.In[f].Varies()&cols == 0 && b.stats[body.In[f].Buf] {
			found, row = f, body.In[f]
		}
	}
	for _, g := range guards {
		var inner []int
		own := body.factors(g, nil, &inner)
		if len(inner) > 0 || found < 0 || !slices.Contains(own, found) || slices.ContainsFunc(own, func(f int) bool { return !slices.Contains(all, f) }) {
			return nil, false, false
		}
	}
	return row, len(guards) > 0 && !slices.Contains(body.bare(v, nil), found), true
}

// bare appends the factors of a value that no guard is about.
func (k *Nest) bare(v int, list []int) []int {
	if v >= len(k.In) {
		switch s := &k.Body[v-len(k.In)]; s.Op {
		case Mul:
			return k.bare(s.Args[1], k.bare(s.Args[0], list))
		case Select:
			return list
		}
	}
	return append(list, v)
}

// rowSum returns the access to the sum that value v of the body is, made by a kernel of its own.
func (b *backer) rowSum(v int) *Access {
	body := b.w.Body
	sum := &body.Body[v-len(body.In)]
	var guards []int
	all := body.factors(sum.Args[0], nil, &guards)
	score := slices.IndexFunc(all, func(f int) bool { return f < len(b.w.Scores) })
	if sum.Op != Sum || score < 0 {
		return nil
	}
	row, zero, ok := b.blank(sum.Args[0], all, guards, sum.Over)
	if !ok {
		return nil
	}
	x := all[score]
	rest := slices.Delete(slices.Clone(all), score, score+1)
	for _, s := range b.squares {
		for _, o := range s.k.Post.outs() {
			own := slices.IndexFunc(body.Out, func(p Store) bool { return p.To.Buf == o.To.Buf })
			if own < 0 {
				continue
			}
			v := body.Out[own].Value
			var guards []int
			list := body.factors(v, nil, &guards)
			scale, ok := b.quotient(rest, list)
			_, zeroOwn, known := b.blank(v, list, guards, sum.Over)
			if !ok || !known {
				continue
			}
			blank := row // where weights are no number the result is 0 and the sum is not, or the other way round
			if zero == zeroOwn {
				blank = nil
			}
			for _, j := range b.readers[o.To.Buf] {
				if a := b.dotted(o.To.Buf, j, x, sum.Over, scale, blank, zero); a != nil {
					return a
				}
			}
		}
	}
	return nil
}

// outs returns the stores of a nest, which may be nil.
func (k *Nest) outs() []Store {
	if k == nil {
		return nil
	}
	return k.Out
}

// quotient returns the product of the factors in one list that are not in the other, which must be constants.
func (b *backer) quotient(all, part []int) (float64, bool) {
	all = slices.Clone(all)
	for _, f := range part {
		i := slices.Index(all, f)
		if i < 0 {
			return 0, false
		}
		all = slices.Delete(all, i, i+1)
	}
	scale := 1.0
	for _, f := range all {
		c, ok := b.w.Body.constant(f)
		if !ok {
			return 0, false
		}
		scale *= c
	}
	return scale, true
}

// dotted returns the access to the sums over cols of score x times the square that buffer s holds: kernel j multiplies that square with an operand
// of the score, and its result times the score's other operand, summed up, is the same. Where blank is not finite the sum is 0, or no number unless zero is set.
func (b *backer) dotted(s *Buffer, j, x int, cols uint32, scale float64, blank *Access, zero bool) *Access {
	c, ok := b.p.Kernels[j].(*Contract)
	if !ok || slices.Contains(b.members, j) || c.A.Buf == c.B.Buf {
		return nil
	}
	if k, is := b.changed[j].(*Contract); is {
		c = k
	}
	q, _ := b.p.plain(c)
	trial := b.w.clone()
	if !trial.sink(q, q.A.Buf == s, s) || len(trial.Dims) != len(b.w.Dims) || trial.Sinks[0].Over != cols {
		return nil
	}
	k := trial.Sinks[0]
	sc := trial.Scores[x]
	other := sc.A
	if !k.B.sameOver(sc.B, trial.Dims) {
		if other = sc.B; !k.B.sameOver(sc.A, trial.Dims) {
			return nil
		}
	}
	if trial.Inner(k.B) != sc.Over || other.Varies()&cols != 0 {
		return nil
	}
	// The result, as it is: stored already, or to be stored.
	result := k.Post.Out[0].To
	if !slices.ContainsFunc(c.Writes(), func(a *Access) bool { return a.Buf == result.Buf }) {
		d := c.withPost()
		d.Post.Out = append(d.Post.Out, Store{To: q.result().Clone()})
		b.changed[j] = d
	}
	b.before = append(b.before, j)
	n := &Nest{Origin0: b.w.Origin0, Dims: slices.Clone(trial.Dims), In: []*Access{other.Clone(), result.Clone()}}
	for i := range n.Dims {
		if cols>>i&1 != 0 || trial.Square>>i&1 == 0 && sc.Over>>i&1 == 0 {
			n.Dims[i] = 1
		}
	}
	if blank != nil {
		n.In = append(n.In, blank.Clone())
	}
	add := func(s Stmt) int {
		if s.Elem == graph.Undefined {
			s.Elem = graph.Float
		}
		n.Body = append(n.Body, s)
		return len(n.In) + len(n.Body) - 1
	}
	last := add(Stmt{Op: Sum, Args: []int{add(Stmt{Op: Mul, Args: []int{0, 1}})}, Over: sc.Over})
	if scale != 1 {
		last = add(Stmt{Op: Mul, Args: []int{last, add(Stmt{Op: ConstOp, Imm: scale})}})
	}
	if blank != nil {
		nought := add(Stmt{Op: ConstOp})
		none := add(Stmt{Op: Mul, Args: []int{2, nought}}) // 0 or no number
		if zero {
			last = add(Stmt{Op: Select, Args: []int{add(Stmt{Op: Ne, Elem: graph.Int32, Args: []int{none, none}}), nought, last}})
		} else {
			last = add(Stmt{Op: Add, Args: []int{last, none}})
		}
	}
	rows := n.Varies()[last]
	to := b.p.whole(graph.Float, n.Dims, rows)
	b.p.Buffers = append(b.p.Buffers, to.Buf)
	n.Out = []Store{{To: to, Value: last}}
	load := to.Clone()
	n.squeeze()
	b.add = append(b.add, n)
	return load
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

// makes reports whether the kernel stores a buffer.
func (s *absorbed) makes(b *Buffer) bool {
	return slices.ContainsFunc(s.k.Writes(), func(a *Access) bool { return a.Buf == b })
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
