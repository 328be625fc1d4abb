package legal

import (
	"slices"

	"gradtool/graph"
)

// Sums along rows of a square, of its cotangent times itself, are sums of a result's cotangent times the result, which a kernel in front of the walk
// makes of what is there.

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
