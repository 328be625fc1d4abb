package emit

import (
	"cmp"
	"slices"

	"gradtool/graph"
	"gradtool/npu/isa"
	"gradtool/npu/legal"
)

// walkRun is the state of emitting a walk tile by tile.
type walkRun struct {
	e        *Emitter
	k        *legal.Walk
	s        *walkShape
	plan     *Plan
	nest     *nestRun // the body
	products []*contractRun
	posts    []*nestRun
	operands []walkOperand // those that are the same once
	sums     []*place      // of the sinks, of those that stay in the accumulator
}

// walkStep is a tile of a walk.
type walkStep struct {
	t           box
	first, last bool   // of the tiles along the columns, if the body runs along them
	begin, end  []bool // by sink: first and last of the tiles that add to one place
}

// Walk emits a walk as planned. The scores of a tile are made before the body of the tile before it is worked off: the array then has something to
// do while the vector unit works.
func (e *Emitter) Walk(k *legal.Walk, p *Plan) error {
	r := &walkRun{e: e, k: k, s: shapeOfWalk(k), plan: p, sums: make([]*place, len(k.Sinks))}
	return e.attempt(func() error {
		if err := r.prepare(); err != nil {
			return err
		}
		steps := r.steps()
		var next []*place
		for i := range steps {
			scores := next
			if i == 0 {
				var err error
				if scores, err = r.scores(&steps[0]); err != nil {
					return err
				}
			}
			if i+1 < len(steps) {
				var err error
				if next, err = r.scores(&steps[i+1]); err != nil {
					return err
				}
			}
			if err := r.step(&steps[i], scores); err != nil {
				return err
			}
			if i+1 < len(steps) {
				r.forget(steps[i].t, steps[i+1].t)
			}
		}
		r.forget(box{}, box{})
		for _, p := range r.nest.places {
			p.drop()
		}
		return nil
	})
}

// prepare makes what the steps share.
func (r *walkRun) prepare() error {
	e, k := r.e, r.k
	var err error
	if r.nest, err = e.newNestRun(k.Body, k.Body.Dims); err != nil {
		return err
	}
	r.nest.moved = false
	for _, s := range k.Sinks { // the values that sinks read stay until they have been read
		r.nest.uses[s.Value]++
		for _, v := range []int{s.Scale, s.Blank} {
			if v >= 0 {
				r.nest.uses[v]++
			}
		}
		r.nest.fused[s.Value] = false
		r.nest.outside[s.Value] = true
	}
	if run := r.s.running; run != nil {
		for _, list := range [][]int{{run.Max}, run.Sums, run.Tallies} {
			for _, v := range list {
				r.nest.uses[v]++
			}
		}
	}
	for _, a := range distinct(k) {
		r.operands = append(r.operands, walkOperand{a: a, stays: r.plan.stays(k, a)})
	}
	for i := range k.Scores {
		r.products = append(r.products, r.product(i, nil))
	}
	for i := range k.Sinks {
		s := &k.Sinks[i]
		r.products = append(r.products, r.product(len(k.Scores)+i, s.Post.Out[0].To))
		post, err := e.newNestRun(s.Post, s.Post.Dims)
		if err != nil {
			return err
		}
		r.posts = append(r.posts, post)
	}
	return nil
}

// product returns what emits the products of a score or a sink, whose result is stored as given or, if to is nil, stays on chip.
func (r *walkRun) product(i int, to *legal.Access) *contractRun {
	n := len(r.k.Dims)
	c := &contractRun{e: r.e, k: &legal.Contract{Dims: r.k.Dims, Kind: r.s.kinds[i]}}
	for d := range n {
		c.order = append(c.order, d)
	}
	if to != nil {
		step := to.Steps(n)
		slices.SortStableFunc(c.order, func(a, b int) int { return cmp.Compare(max(step[b], -step[b]), max(step[a], -step[a])) })
	}
	return c
}

// steps returns the tiles of a walk in order.
func (r *walkRun) steps() []walkStep {
	k, p, run := r.k, r.plan, r.s.running
	var out []walkStep
	t := box{make([]int, len(k.Dims)), slices.Clone(p.Tile)}
	each(k.Dims, p.Tile, nil, p.Order, t, func(bool) error {
		s := walkStep{t: box{slices.Clone(t.lo), slices.Clone(t.hi)}}
		at := func(mask uint32) (first, last bool) {
			first, last = true, true
			for i := range k.Dims {
				if mask>>i&1 != 0 {
					first = first && t.lo[i] == 0
					last = last && t.hi[i] == k.Dims[i]
				}
			}
			return first, last
		}
		if run != nil {
			s.first, s.last = at(run.Cols)
		}
		for i := range k.Sinks {
			b, e := at(k.Sinks[i].Over)
			s.begin, s.end = append(s.begin, b), append(s.end, e)
		}
		out = append(out, s)
		return nil
	})
	return out
}

// clip returns a box in which dimensions outside a mask have one index.
func clip(t box, mask uint32) box {
	out := box{slices.Clone(t.lo), slices.Clone(t.hi)}
	for i := range out.lo {
		if mask>>i&1 == 0 {
			out.lo[i], out.hi[i] = 0, 1
		}
	}
	return out
}

// multiply emits the products of a tile, of dimensions that have a part in them.
func (c *contractRun) multiply(t box, a, b, to *place, acc bool) {
	part := uint32(0)
	for i, kind := range c.k.Kind {
		if kind != 0 {
			part |= 1 << i
		}
	}
	t = clip(t, part)
	c.batches(t, 0, a, b, to, acc)
}

// scores makes the scores of a tile.
func (r *walkRun) scores(s *walkStep) ([]*place, error) {
	var out []*place
	for i, x := range r.k.Scores {
		a, err := r.operand(x.A, s.t)
		if err != nil {
			return nil, err
		}
		b, err := r.operand(x.B, s.t)
		if err != nil {
			return nil, err
		}
		c, err := r.room(r.products[i], s.t, r.s.kinds[i])
		if err != nil {
			return nil, err
		}
		r.products[i].multiply(s.t, a, b, c, false)
		out = append(out, c)
	}
	return out, nil
}

// step works off the scores of a tile.
func (r *walkRun) step(s *walkStep, scores []*place) error {
	t := clip(s.t, r.k.Square)
	var err error
	var alpha *place // what was added up before is multiplied with this
	if r.s.running == nil {
		err = r.body(t, scores)
	} else {
		alpha, err = r.running(t, scores, s.first)
	}
	if err != nil {
		return err
	}
	for i := range r.k.Sinks {
		if err := r.sink(i, s, alpha); err != nil {
			return err
		}
	}
	alpha.drop()
	for v := range scores {
		scores[v].drop()
		r.nest.places[v] = nil
	}
	for i := range r.k.Sinks {
		v := r.k.Sinks[i].Value
		r.nest.places[v].drop()
		r.nest.places[v] = nil
	}
	if r.s.running != nil && !s.last {
		return nil
	}
	return r.complete(s, t)
}

// body computes the body for a tile.
func (r *walkRun) body(t box, scores []*place) error {
	n := r.nest
	copy(n.places, scores)
	if err := n.loads(t); err != nil {
		return err
	}
	copy(n.left, n.uses)
	for i := range n.k.Body {
		if err := n.stmt(len(n.k.In)+i, t, false); err != nil {
			return err
		}
	}
	for _, o := range n.k.Out {
		if err := n.store(o, t); err != nil {
			return err
		}
	}
	return nil
}

// running computes the body for a tile, with a maximum that runs along the columns, and returns what older sums are to be multiplied with, nil
// in the first tile.
func (r *walkRun) running(t box, scores []*place, first bool) (*place, error) {
	n, run, e := r.nest, r.s.running, r.e
	copy(n.places, scores)
	if err := n.loads(t); err != nil {
		return nil, err
	}
	copy(n.left, n.uses)
	dims := t.dims()
	rows := n.varies[run.Max]
	var alpha *place
	for i := range n.k.Body {
		v := len(n.k.In) + i
		switch {
		case run.Late[v]:
		case v == run.Max && !first:
			old := n.places[v]
			to, err := n.fresh(v, rows, dims)
			if err != nil {
				return nil, err
			}
			e.vec(isa.OpMax, graph.Float, graph.Float, dims, rows, to, n.places[run.Most], old)
			n.used(run.Most)
			n.places[v] = to
			if alpha, err = n.fresh(v, rows, dims); err != nil {
				return nil, err
			}
			e.vec(isa.OpSub, graph.Float, graph.Float, dims, rows, alpha, old, to)
			e.vec(isa.OpExp, graph.Float, graph.Float, dims, rows, alpha, alpha)
			old.drop()
		case slices.Contains(run.Sums, v):
			if !first {
				l := n.places[v]
				e.vec(isa.OpMul, graph.Float, graph.Float, dims, n.varies[v], l, l, alpha)
			}
			if err := n.stmt(v, t, !first); err != nil {
				return nil, err
			}
		case slices.Contains(run.Tallies, v):
			if err := n.stmt(v, t, !first); err != nil {
				return nil, err
			}
		default:
			if err := n.stmt(v, t, false); err != nil {
				return nil, err
			}
		}
	}
	for _, o := range n.k.Out { // what does not depend on complete rows
		if ofRow(run, o.Value) {
			continue
		}
		if err := n.store(o, t); err != nil {
			return nil, err
		}
	}
	return alpha, nil
}

// ofRow reports whether a value is known only once rows are complete.
func ofRow(run *legal.Running, v int) bool {
	return run.Late[v] || v == run.Max || slices.Contains(run.Sums, v) || slices.Contains(run.Tallies, v)
}

// sink adds the products of a tile to the result of a sink.
func (r *walkRun) sink(i int, s *walkStep, alpha *place) error {
	e, x := r.e, &r.k.Sinks[i]
	c := r.products[len(r.k.Scores)+i]
	kinds := c.k.Kind
	out := clip(s.t, result(r.k, x))
	b, err := r.operand(x.B, s.t)
	if err != nil {
		return err
	}
	spilled := r.plan.spilled(r.k, x)
	to := r.sums[i]
	if spilled || s.begin[i] {
		if to, err = r.room(c, s.t, kinds); err != nil {
			return err
		}
	}
	switch {
	case s.begin[i]:
	case spilled:
		a := x.Post.Out[0].To
		at, ms := e.moves(a, to, out)
		e.transfer(isa.OpLoad, a, at, to.addr, ms)
	case alpha != nil:
		e.vec(isa.OpMul, graph.Float, graph.Float, out.dims(), ^uint32(0), to, to, alpha)
	}
	c.multiply(s.t, r.nest.places[x.Value], b, to, !s.begin[i])
	r.sums[i] = to
	if spilled || r.s.running == nil && s.end[i] {
		return r.deliver(i, out)
	}
	return nil
}

// deliver works off the epilogue of a sink and lets go of its sums.
func (r *walkRun) deliver(i int, out box) error {
	x, c := &r.k.Sinks[i], r.sums[i]
	r.sums[i] = nil
	defer c.drop()
	if x.Scale >= 0 {
		op := isa.OpMul
		if x.Divide {
			op = isa.OpDiv
		}
		r.e.vec(op, graph.Float, graph.Float, out.dims(), ^uint32(0), c, c, r.nest.places[x.Scale])
	}
	if x.Blank >= 0 {
		zero := &place{imm: bits(graph.Int32, 0)}
		r.e.vec(isa.OpSelect, graph.Int32, graph.Int32, out.dims(), ^uint32(0), c, zero, c, r.nest.places[x.Blank])
	}
	if len(x.Post.Body) == 0 {
		for _, o := range x.Post.Out {
			if err := r.e.store(o.To, c, out); err != nil {
				return err
			}
		}
		return nil
	}
	p := r.posts[i]
	p.places[0] = c
	if err := p.early(out, true); err != nil {
		return err
	}
	p.places[0] = nil
	if err := p.finish(out); err != nil {
		return err
	}
	for v, x := range p.places {
		x.drop()
		p.places[v] = nil
	}
	return nil
}

// complete computes what depends on complete rows, once they are, and drops the values of the tile.
func (r *walkRun) complete(s *walkStep, t box) error {
	n, run := r.nest, r.s.running
	if run != nil {
		for i := range n.k.Body {
			if v := len(n.k.In) + i; run.Late[v] {
				if err := n.stmt(v, t, false); err != nil {
					return err
				}
			}
		}
		for _, o := range n.k.Out {
			if ofRow(run, o.Value) {
				if err := n.store(o, t); err != nil {
					return err
				}
			}
		}
		for i := range r.k.Sinks {
			if err := r.deliver(i, clip(s.t, result(r.k, &r.k.Sinks[i]))); err != nil {
				return err
			}
		}
	}
	for v := len(n.k.In); v < len(n.places); v++ {
		n.places[v].drop()
		n.places[v] = nil
	}
	return nil
}
