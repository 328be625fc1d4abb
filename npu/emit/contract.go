package emit

import (
	"cmp"
	"slices"

	"gradtool/graph"
	"gradtool/npu/isa"
	"gradtool/npu/legal"
)

// contractRun is the state of emitting a contraction tile by tile.
type contractRun struct {
	e    *Emitter
	k    *legal.Contract
	plan *Plan
	post *nestRun
	a, b cached
	// Dimensions in the order in which the result has them in memory, so that elements that are next to each other there are so in the
	// accumulator.
	order []int
}

// cached is the tile of an operand that is on chip.
type cached struct {
	p   *place
	key []int
	// pieces, if set, are those of an operand that stays on chip; those that are not there yet have no place.
	pieces map[int]*kept
}

// tile returns the tile of an operand, that on chip if it is the same.
func (r *contractRun) tile(c *cached, a *legal.Access, t box) (*place, error) {
	e := r.e
	if c.pieces != nil {
		whole := r.plan.piece(r.k, a, t)
		x := c.pieces[r.plan.id(r.k, a, t)]
		if x.p == nil {
			p, err := e.load(a, whole, true)
			if err != nil {
				return nil, err
			}
			x.p = p
		}
		p := x.p
		for i := range t.lo {
			if d := t.lo[i] - whole.lo[i]; d > 0 && p.imm == nil {
				p = p.step(i, d)
			}
		}
		return p, nil
	}
	k := key(a, t)
	if c.p != nil && slices.Equal(k, c.key) {
		return c.p, nil
	}
	c.p.drop()
	c.p = nil
	p, err := e.load(a, t, true)
	if err != nil {
		return nil, err
	}
	c.p, c.key = p, k
	return p, nil
}

// read notes that the tile of both operands has been read: a piece is dropped after the last time.
func (r *contractRun) read(t box) {
	for _, o := range []struct {
		c *cached
		a *legal.Access
	}{{&r.a, r.k.A}, {&r.b, r.k.B}} {
		if o.c.pieces == nil {
			continue
		}
		x := o.c.pieces[r.plan.id(r.k, o.a, t)]
		if x.left--; x.left == 0 {
			x.p.drop()
		}
	}
}

// Contract emits a contraction as planned: sums of a tile of the result stay in the accumulator until they are complete.
func (e *Emitter) Contract(k *legal.Contract, p *Plan) error {
	r := &contractRun{e: e, k: k, plan: p, order: resultOrder(k)}
	return e.attempt(func() error {
		if k.Post != nil {
			var err error
			if r.post, err = e.newNestRun(k.Post, p.Post); err != nil {
				return err
			}
		}
		if p.KeepA {
			r.a.pieces = p.pieces(k, k.A)
		}
		if p.KeepB {
			r.b.pieces = p.pieces(k, k.B)
		}
		t := box{make([]int, len(k.Dims)), p.first()}
		outer, across, inner := p.loops(k)
		// Sums that the epilogue adds up over several tiles are complete after the last of these.
		err := each(k.Dims, p.Tile, p.First, outer, t, func(bool) error {
			err := each(k.Dims, p.Tile, nil, across, t, func(first bool) error { return r.sums(t, inner, first, len(across) == 0) })
			if err != nil || len(across) == 0 {
				return err
			}
			return r.post.finish(r.result(t))
		})
		r.a.p.drop()
		r.b.p.drop()
		if r.post != nil {
			for _, p := range r.post.places {
				p.drop()
			}
		}
		return err
	})
}

// resultOrder returns the dimensions of a contraction in the order of their steps through the largest of its results; those of kind K,
// whose terms are added in order, as they are.
func resultOrder(k *legal.Contract) []int {
	var step []int
	most := -1
	for _, a := range k.Writes() {
		n := 1
		for i, d := range k.Dims {
			if a.Varies()>>i&1 != 0 {
				n *= d
			}
		}
		if n > most {
			most, step = n, a.Steps(len(k.Dims))
		}
	}
	order := make([]int, len(k.Dims))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(max(step[b], -step[b]), max(step[a], -step[a])) })
	return order
}

// result returns the tile of the result that a tile adds to.
func (r *contractRun) result(t box) box {
	out := box{slices.Clone(t.lo), slices.Clone(t.hi)}
	for i, kind := range r.k.Kind {
		if kind == legal.K {
			out.lo[i], out.hi[i] = 0, 1
		}
	}
	return out
}

// sums computes one tile of the result, the first or another of those that the epilogue adds up; if finish is set there are no others.
func (r *contractRun) sums(t box, inner []int, first, finish bool) error {
	e, k := r.e, r.k
	out := r.result(t)
	c := &place{stride: make([]int, len(k.Dims)), elem: graph.Float}
	n := 1
	for _, kind := range []legal.Kind{legal.N, legal.M, legal.Batch} {
		for _, i := range slices.Backward(r.order) {
			if k.Kind[i] == kind {
				c.stride[i] = n
				n *= t.hi[i] - t.lo[i]
			}
		}
	}
	mem, err := e.take(e.accum, n)
	if err != nil {
		return err
	}
	c.mem, c.addr = mem, e.local(mem)
	started := false
	err = each(k.Dims, r.plan.Tile, nil, inner, t, func(bool) error {
		a, b, err := r.operands(t)
		if err != nil {
			return err
		}
		if a.imm != nil || b.imm != nil { // all of it is padding
			r.read(t)
			return nil
		}
		r.batches(t, 0, a, b, c, started)
		started = true
		r.read(t)
		return nil
	})
	if err != nil {
		return err
	}
	if !started {
		e.add(isa.OpMov, &isa.Vec{N: isa.Counts(int32(n)), Dst: isa.At(c.addr, 1), A: isa.Float(0)})
	}
	if r.post == nil {
		err := e.store(k.C, c, out)
		c.drop()
		return err
	}
	err = r.epilogue(out, c, first, finish)
	c.drop()
	return err
}

// epilogue works off the sums of a tile in parts; those that some reduction adds up come one after the other.
func (r *contractRun) epilogue(whole box, c *place, begin, finish bool) error {
	size := r.plan.Post
	t := box{slices.Clone(whole.lo), slices.Clone(whole.hi)}
	var outer, inner []int
	for i := range size {
		switch {
		case size[i] >= whole.hi[i]-whole.lo[i]:
		case r.post.across>>i&1 != 0:
			inner = append(inner, i)
		default:
			outer = append(outer, i)
		}
	}
	err := parts(whole, size, nil, outer, t, func(bool) error {
		err := parts(whole, size, nil, inner, t, func(first bool) error {
			sums := *c
			for i := range t.lo {
				sums.addr += isa.Local(4 * (t.lo[i] - whole.lo[i]) * c.stride[i])
			}
			r.post.places[0] = &sums
			return r.post.early(t, first && begin)
		})
		if err != nil || !finish {
			return err
		}
		return r.post.finish(t)
	})
	r.post.places[0] = nil
	return err
}

// operands brings the tiles of both operands on chip, that first whose buffer was written earlier: the other may have to wait.
func (r *contractRun) operands(t box) (a, b *place, err error) {
	e, k := r.e, r.k
	if e.age(k.B.Buf) <= e.age(k.A.Buf) {
		if _, err = r.tile(&r.b, k.B, t); err != nil {
			return nil, nil, err
		}
	}
	if a, err = r.tile(&r.a, k.A, t); err != nil {
		return nil, nil, err
	}
	b, err = r.tile(&r.b, k.B, t)
	return a, b, err
}

// batches emits the products of a tile, one for each index of the dimensions of kind Batch from dim on.
func (r *contractRun) batches(t box, dim int, a, b, c *place, acc bool) {
	for dim < len(t.lo) && (r.k.Kind[dim] != legal.Batch || t.hi[dim]-t.lo[dim] == 1) {
		dim++
	}
	if dim == len(t.lo) {
		r.product(t, a, b, c, acc)
		return
	}
	for i := range t.hi[dim] - t.lo[dim] {
		r.batches(t, dim+1, a.step(dim, i), b.step(dim, i), c.step(dim, i), acc)
	}
}

// step returns p moved by i along dimension dim.
func (p *place) step(dim, i int) *place {
	q := *p
	q.addr += isa.Local(4 * i * p.stride[dim])
	return &q
}

// term is a count of a matrix product with the strides of both operands and of the result.
type term struct{ n, a, b, c int }

// group returns the counts of one kind, joined where all strides continue.
func (r *contractRun) group(t box, kind legal.Kind, a, b, c *place) []term {
	var out []term
	for _, i := range r.order {
		n := t.hi[i] - t.lo[i]
		if r.k.Kind[i] != kind || n == 1 {
			continue
		}
		x := term{n, a.stride[i], b.stride[i], c.stride[i]}
		if kind == legal.K {
			x.c = 0
		}
		if last := len(out) - 1; last >= 0 && out[last].a == n*x.a && out[last].b == n*x.b && out[last].c == n*x.c {
			out[last] = term{out[last].n * n, x.a, x.b, x.c}
			continue
		}
		out = append(out, x)
	}
	return out
}

func (r *contractRun) product(t box, a, b, c *place, acc bool) {
	m, n, k := r.group(t, legal.M, a, b, c), r.group(t, legal.N, a, b, c), r.group(t, legal.K, a, b, c)
	pitch := 1
	for _, x := range n {
		pitch *= x.n
	}
	r.terms(m, n, k, a.addr, b.addr, c.addr, pitch, acc)
}

// terms emits one product, or several where a group has more than three counts.
func (r *contractRun) terms(m, n, k []term, a, b, c isa.Local, pitch int, acc bool) {
	for g, list := range [][]term{k, m, n} {
		if len(list) <= 3 {
			continue
		}
		x := list[0]
		for i := range x.n {
			groups := [][]term{k, m, n}
			groups[g] = list[1:]
			r.terms(groups[1], groups[2], groups[0], a+isa.Local(4*i*x.a), b+isa.Local(4*i*x.b), c+isa.Local(4*i*x.c), pitch, acc || g == 0 && i > 0)
		}
		return
	}
	v := &isa.Matmul{A: a, B: b, C: c, CM: int32(pitch), Acc: acc}
	for i, x := range m {
		at := 3 - len(m) + i
		v.M[at], v.AM[at] = int32(x.n), int32(x.a)
	}
	for i, x := range n {
		at := 3 - len(n) + i
		v.N[at], v.BN[at] = int32(x.n), int32(x.b)
	}
	for i, x := range k {
		at := 3 - len(k) + i
		v.K[at], v.AK[at], v.BK[at] = int32(x.n), int32(x.a), int32(x.b)
	}
	ws, os := *v, *v
	ws.Flow, os.Flow = isa.WS, isa.OS
	mach := r.e.Machine
	a1, a2 := (&isa.Instr{Op: isa.OpMatmul, Args: &ws}).Work(mach), (&isa.Instr{Op: isa.OpMatmul, Args: &os}).Work(mach)
	if v = &os; a1.Cycles < a2.Cycles {
		v = &ws
	}
	r.e.add(isa.OpMatmul, v)
}
