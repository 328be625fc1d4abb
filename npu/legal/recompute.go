package legal

import (
	"math"
	"slices"

	"gradtool/graph"
)

// Values that are quickly made of others that are stored anyway need no place in memory: whoever reads them computes them
// again. The derivative of an activation, say, is made of the operand that the backward pass reads in any case.

// Limits of what is computed again.
const (
	maxRecipe  = 24 // statements
	maxSpecial = 3  // of them functions that take the slow unit
	small      = 16 // a value that many times smaller than the one it is part of may be stored for it
)

// Recompute drops stores of values that their readers can compute from what is stored anyway, and returns how many. fits and
// fitsPost are those of [Fuser].
func (p *Program) Recompute(fits func(k *Nest) bool, fitsPost func(k *Contract) bool) int {
	r := &recomputer{p: p, fits: fits, fitsPost: fitsPost, readers: map[*Buffer][]int{}, writers: map[*Buffer][]int{}}
	for i, k := range p.Kernels {
		t := Touches(k)
		for b := range t.reads {
			r.readers[b] = append(r.readers[b], i)
		}
		for b := range t.writes {
			r.writers[b] = append(r.writers[b], i)
		}
	}
	dropped := 0
	// Values that are another stored one first: then the other stays.
	for _, plain := range []bool{true, false} {
		for i, k := range p.Kernels {
			n := statements(k)
			if n == nil {
				continue
			}
			for j := 0; j < len(n.Out); j++ {
				if r.drop(i, n, j, plain) {
					dropped++
					j--
				}
			}
		}
	}
	if dropped > 0 {
		p.dropDead()
	}
	return dropped
}

// statements returns the nest of a kernel, nil if it has none.
func statements(k Kernel) *Nest {
	switch k := k.(type) {
	case *Nest:
		return k
	case *Contract:
		return k.Post
	}
	return nil
}

// recomputer drops stores of a program; readers and writers are the kernels that touch a buffer, by place.
type recomputer struct {
	p                *Program
	fits             func(k *Nest) bool
	fitsPost         func(k *Contract) bool
	readers, writers map[*Buffer][]int
}

// recipe says how to compute a value from what is in memory: values number the leaves first, then the statements.
type recipe struct {
	leaves []leaf
	body   []Stmt
}

// leaf is a value in memory: what it is to the kernel that makes it, and the access to it there.
type leaf struct {
	value int
	a     *Access
	fresh bool // to be stored for this
}

// drop tries to do without store j of n, the nest of kernel i. If plain is set it only looks for values that are another
// stored one, but for the sign of zeros perhaps.
func (r *recomputer) drop(i int, n *Nest, j int, plain bool) bool {
	o := n.Out[j]
	b := o.To.Buf
	if b.Role != Temp || len(r.writers[b]) != 1 || len(r.readers[b]) == 0 {
		return false
	}
	if _, whole := radices(o.To, n.Dims); !whole {
		return false
	}
	rc := r.recipe(i, n, j)
	if rc == nil || plain != (rc.alias(n, o.To) != nil) {
		return false
	}
	type change struct {
		at int
		k  Kernel
	}
	var list []change
	for _, c := range r.readers[b] {
		k := r.rewritten(r.p.Kernels[c], n, o.To, rc)
		if k == nil {
			return false
		}
		list = append(list, change{c, k})
	}
	for _, l := range rc.leaves {
		if l.fresh {
			r.p.Buffers = append(r.p.Buffers, l.a.Buf)
			n.Out = append(n.Out, Store{To: l.a, Value: l.value})
			r.writers[l.a.Buf] = []int{i}
		}
	}
	n.Out = slices.Delete(n.Out, j, j+1)
	delete(r.writers, b)
	delete(r.readers, b)
	for _, c := range list {
		r.p.Kernels[c.at] = c.k
		for _, l := range rc.leaves {
			if !slices.Contains(r.readers[l.a.Buf], c.at) {
				r.readers[l.a.Buf] = append(r.readers[l.a.Buf], c.at)
			}
		}
	}
	return true
}

// recipe returns how to compute what store j of n, the nest of kernel i, writes, nil if that takes more than it is worth.
func (r *recomputer) recipe(i int, n *Nest, j int) *recipe {
	o := n.Out[j]
	rc := &recipe{}
	varies := n.Varies()
	elems := n.Elems()
	base := len(n.In)
	// sums tells which values depend on a reduction or on the sums of a contraction.
	sums := make([]bool, len(varies))
	for v := range sums {
		if v < base {
			sums[v] = n.In[v] == nil
			continue
		}
		s := &n.Body[v-base]
		sums[v] = s.Op.Reduces() || s.Op == Iota
		for _, a := range s.Args {
			sums[v] = sums[v] || sums[a]
		}
	}
	number := map[int]int{} // by value of n: of leaves as they are, of statements as -1-index
	special := 0
	// place returns the access that leads to a value in memory.
	place := func(v int) *leaf {
		for x, other := range n.Out {
			if x != j && other.Value == v && other.To.Buf != o.To.Buf && len(r.writers[other.To.Buf]) == 1 && other.To.Inside(n.Dims) && other.To.Buf.Stored == graph.Undefined {
				return &leaf{v, other.To, false}
			}
		}
		if v < base {
			a := n.In[v]
			if a == nil || slices.ContainsFunc(r.writers[a.Buf], func(w int) bool { return w >= i }) || a.Buf.Stored != graph.Undefined {
				return nil
			}
			return &leaf{v, a, false}
		}
		if n.Body[v-base].Op != ConstOp && sums[v] && small*n.Extent(varies[v]) <= o.To.Buf.Len {
			return &leaf{v, r.p.whole(elems[v], n.Dims, varies[v]), true}
		}
		return nil
	}
	var visit func(v int) bool
	visit = func(v int) bool {
		if _, ok := number[v]; ok {
			return true
		}
		if l := place(v); l != nil {
			number[v] = len(rc.leaves)
			rc.leaves = append(rc.leaves, *l)
			return true
		}
		if v < base {
			return false
		}
		s := n.Body[v-base]
		if s.Op.Reduces() || s.Op == Iota {
			return false
		}
		for _, a := range s.Args {
			if !visit(a) {
				return false
			}
		}
		if s.Op.Special() {
			special++
		}
		number[v] = -1 - len(rc.body)
		rc.body = append(rc.body, s)
		return len(rc.body) <= maxRecipe && special <= maxSpecial
	}
	if !visit(o.Value) {
		return nil
	}
	for x := range rc.body {
		s := &rc.body[x]
		s.Args = slices.Clone(s.Args)
		for y, a := range s.Args {
			if s.Args[y] = number[a]; s.Args[y] < 0 {
				s.Args[y] = len(rc.leaves) - 1 - s.Args[y]
			}
		}
	}
	return rc
}

// whole returns an access to a new buffer that holds a value varying along mask.
func (p *Program) whole(elem graph.DataType, dims []int, mask uint32) *Access {
	n := 1
	for d, size := range dims {
		if mask>>d&1 != 0 {
			n *= size
		}
	}
	to := &Access{Buf: &Buffer{ID: len(p.Buffers), Name: "partial", Elem: elem, Role: Temp, Len: n}}
	at := n
	for d, size := range dims {
		if mask>>d&1 == 0 {
			continue
		}
		at /= size
		coef := make([]int, len(dims))
		coef[d] = 1
		to.Axes = append(to.Axes, Axis{Size: size, Stride: at, Coef: coef})
	}
	return to
}

// alias returns the leaf that the value is, but for the sign of zeros perhaps, if it lies in memory as the value does.
func (rc *recipe) alias(n *Nest, to *Access) *leaf {
	if len(rc.leaves) != 1 || !parallel(rc.leaves[0].a, to, n.Dims) || rc.leaves[0].a.Buf.Elem != to.Buf.Elem {
		return nil
	}
	for i, s := range rc.body {
		if s.Op == ConstOp {
			continue
		}
		zero := func(v int) bool {
			return v > 0 && v <= i && rc.body[v-1].Op == ConstOp && rc.body[v-1].Imm == 0
		}
		if s.Op != Add || !zero(s.Args[0]) && !zero(s.Args[1]) {
			return nil
		}
	}
	return &rc.leaves[0]
}

// exact reports whether the value is its only leaf bit by bit.
func (rc *recipe) exact() bool { return len(rc.body) == 0 }

// parallel reports whether two accesses to buffers of one length touch the same places at the same indices.
func parallel(a, b *Access, dims []int) bool {
	return a.Buf.Len == b.Buf.Len && a.Inside(dims) && b.Inside(dims) && a.first() == b.first() && slices.Equal(a.Steps(len(dims)), b.Steps(len(dims)))
}

// rewritten returns kernel c with what n stores through to computed again, nil if that does not work.
func (r *recomputer) rewritten(c Kernel, n *Nest, to *Access, rc *recipe) Kernel {
	b := to.Buf
	swapped := func(a *Access) *Access {
		l := rc.alias(n, to)
		switch {
		case a.Buf != b:
			return a
		case l == nil:
			return nil
		}
		a = a.Clone()
		a.Buf = l.a.Buf
		return a
	}
	switch k := c.(type) {
	case *Nest:
		m := r.inlined(k, n, to, rc)
		if m == nil || !r.fits(m) {
			return nil
		}
		return m
	case *Contract:
		// The sign of zeros does not matter to a sum of products, which begins with +0.
		q := *k
		if q.A, q.B = swapped(k.A), swapped(k.B); q.A == nil || q.B == nil {
			return nil
		}
		if k.Post != nil {
			if q.Post = r.inlined(k.Post, n, to, rc); q.Post == nil || !r.fitsPost(&q) {
				return nil
			}
		}
		return &q
	case *Gather:
		if !rc.exact() {
			return nil
		}
		q := *k
		if q.Table, q.Index = swapped(k.Table), swapped(k.Index); q.Table == nil || q.Index == nil {
			return nil
		}
		return &q
	}
	return nil
}

// inlined returns nest c with the value of a recipe computed where it is loaded, c itself if it does not load it, nil if it would
// have to load more than before.
func (r *recomputer) inlined(c, n *Nest, to *Access, rc *recipe) *Nest {
	b := to.Buf
	if !slices.ContainsFunc(c.In, func(a *Access) bool { return a != nil && a.Buf == b }) {
		return c
	}
	m := c.Clone()
	number := make([]int, len(c.In)) // of the loads of c
	for i := range number {
		number[i] = i
	}
	var body []Stmt // with loads as they are, statements as -1-index
	for i, a := range c.In {
		if a == nil || a.Buf != b {
			continue
		}
		if !a.Inside(c.Dims) {
			return nil
		}
		leaves := make([]int, len(rc.leaves))
		large := 0
		for x, l := range rc.leaves {
			q := carried(l.a, to, n.Dims, a, c.Dims)
			if q == nil {
				return nil
			}
			at := slices.IndexFunc(m.In, func(o *Access) bool { return o != nil && o.sameOver(q, c.Dims) && o.Fill == q.Fill })
			if at < 0 {
				if small*l.a.Buf.Len > b.Len {
					large++
				}
				at = len(m.In)
				m.In = append(m.In, q)
			}
			leaves[x] = at
		}
		if large > 1 {
			return nil
		}
		base := len(body)
		for _, s := range rc.body {
			s.Args, s.Again = slices.Clone(s.Args), true
			for y, v := range s.Args {
				if v < len(leaves) {
					s.Args[y] = leaves[v]
				} else {
					s.Args[y] = -1 - (base + v - len(leaves))
				}
			}
			body = append(body, s)
		}
		if len(rc.body) == 0 {
			number[i] = leaves[0]
		} else {
			number[i] = -1 - (len(body) - 1)
		}
	}
	in := len(m.In)
	resolve := func(v int) int {
		if v < 0 {
			return in - 1 - v
		}
		return v
	}
	of := func(v int) int {
		if v < len(c.In) {
			return resolve(number[v])
		}
		return v - len(c.In) + in + len(body)
	}
	for i := range body {
		for y, v := range body[i].Args {
			body[i].Args[y] = resolve(v)
		}
	}
	for i := range m.Body {
		for y, v := range m.Body[i].Args {
			m.Body[i].Args[y] = of(v)
		}
	}
	for i := range m.Out {
		m.Out[i].Value = of(m.Out[i].Value)
	}
	m.Body = append(body, m.Body...)
	m.Tidy()
	if len(m.Body) > maxBody || len(m.In)+len(m.Out) > maxAccess {
		return nil
	}
	return m
}

// carried returns the access by which a kernel over dims, which reads through a what another one wrote through to, reads what
// that one had through l; nil if the two do not count alike.
func carried(l, to *Access, from []int, a *Access, dims []int) *Access {
	if parallel(l, to, from) {
		q := a.Clone()
		q.Buf = l.Buf
		return q
	}
	if !l.Inside(from) {
		return nil
	}
	w, ok := radices(to, from)
	if !ok {
		return nil
	}
	rd, ok := radices(a, dims)
	if !ok || len(w) != len(rd) {
		return nil
	}
	steps := l.Steps(len(from))
	q := &Access{Buf: l.Buf, Base: l.first()}
	for i := range w {
		if w[i].n != rd[i].n || w[i].stride != rd[i].stride {
			return nil
		}
		if s := steps[w[i].dim]; s != 0 {
			if s < 0 {
				return nil
			}
			coef := make([]int, len(dims))
			coef[rd[i].dim] = 1
			q.Axes = append(q.Axes, Axis{Size: w[i].n, Stride: s, Coef: coef})
			steps[w[i].dim] = 0
		}
	}
	for i, s := range steps {
		if s != 0 && from[i] > 1 {
			return nil
		}
	}
	return q
}

// identity returns the operand that a statement's result is, bit by bit, -1 if it is none: x*1, x/1, x-0, x+(-0), and x+0 of
// integers. constant gives an operand that is known.
func (s *Stmt) identity(constant func(v int) (float64, bool)) int {
	if len(s.Args) != 2 {
		return -1
	}
	is := func(v int, want float64) bool {
		x, ok := constant(v)
		return ok && x == want && (x != 0 || s.Elem != graph.Float || math.Signbit(x) == math.Signbit(want))
	}
	zero := 0.0
	if s.Elem == graph.Float {
		zero = math.Copysign(0, -1)
	}
	switch {
	case s.Op == Mul && is(s.Args[1], 1), s.Op == Div && is(s.Args[1], 1), s.Op == Sub && is(s.Args[1], 0), s.Op == Add && is(s.Args[1], zero):
		return s.Args[0]
	case s.Op == Mul && is(s.Args[0], 1), s.Op == Add && is(s.Args[0], zero):
		return s.Args[1]
	}
	return -1
}
