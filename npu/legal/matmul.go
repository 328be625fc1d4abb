package legal

import (
	"slices"

	"gradtool/graph"
)

// matmulOps holds the matrix products.
func matmulOps() map[string]lowering {
	return map[string]lowering{"MatMul": lowerMatMul, "Gemm": lowerGemm, "Einsum": lowerEinsum}
}

// side is an operand or result of a contraction: a view, and the group of dimensions that each of its axes belongs to.
type side struct {
	v    val
	axes []int
}

// contraction describes a sum of products over groups of dimensions.
type contraction struct {
	size    []int // by group
	kind    []Kind
	a, b, c side
	post    func(e *epilogue, sum reg) reg // gives what is stored in c; nil stores the sums
}

// contract makes the kernel. Operands whose axes have parts cut the groups into dimensions.
func (l *lowerer) contract(t contraction) {
	cuts := make([][]int, len(t.size))
	for g, n := range t.size {
		cuts[g] = []int{n}
	}
	sides := []*side{&t.a, &t.b, &t.c}
	for _, s := range sides {
		if s.v.imm != nil {
			s.v = l.materialize(s.v)
		}
		if s.v.parts == nil {
			continue
		}
		ok := true
		next := slices.Clone(cuts)
		for i, g := range s.axes {
			if next[g], ok = commonCuts(next[g], s.v.parts[i]); !ok {
				break
			}
		}
		if ok {
			cuts = next
		} else {
			s.v = l.copyOf("copy", s.v)
		}
	}
	r := &refined{}
	var kind []Kind
	for g, pieces := range cuts {
		for _, n := range pieces {
			r.dims, r.from = append(r.dims, n), append(r.from, g)
			kind = append(kind, t.kind[g])
		}
	}
	k := &Contract{Dims: r.dims, Kind: kind}
	k.A, k.B = l.sideAccess(&t.a, r), l.sideAccess(&t.b, r)
	k.A.mergeAxes(k.Dims)
	k.B.mergeAxes(k.Dims)
	if t.post == nil {
		k.C = l.sideAccess(&t.c, r)
		l.add(k)
		return
	}
	outer := slices.Clone(r.dims)
	for i, kd := range kind {
		if kd == K {
			outer[i] = 1
		}
	}
	e := &epilogue{nest: l.nest(outer), axes: t.c.axes, r: r}
	e.loads = append(e.loads, nil)
	y := t.post(e, 0)
	e.k.Out = append(e.k.Out, Store{To: l.sideAccess(&t.c, r), Value: int(y)})
	k.Post = e.finish()
	l.add(k)
}

// sideAccess returns the access to s over the dimensions that the groups are cut into.
func (l *lowerer) sideAccess(s *side, r *refined) *Access {
	local := &refined{}
	var place []int
	for i, g := range s.axes {
		for _, d := range r.of(g) {
			local.dims, local.from = append(local.dims, r.dims[d]), append(local.from, i)
			place = append(place, d)
		}
	}
	w, ok := s.v.cut(local)
	if !ok {
		w, _ = l.copyOf("copy", s.v).cut(local)
	}
	c := make([][]int, len(place))
	for i, d := range place {
		c[i] = along(len(r.dims), d)
	}
	return w.access(c).tidy(r.dims)
}

// epilogue builds what follows a contraction, where each axis of the result may be several dimensions.
type epilogue struct {
	*nest
	axes []int
	r    *refined
}

// at reads v, which is broadcast to the shape of the result.
func (e *epilogue) at(v val) reg {
	if v.imm != nil {
		return e.konst(v.dev(), *v.imm)
	}
	e.loads = append(e.loads, e.l.sideAccess(&side{v, e.axes}, e.r))
	return reg(len(e.loads) - 1)
}

// lowerMatMul lowers numpy's matrix product: vectors get an axis for the time being, leading axes are broadcast.
func lowerMatMul(l *lowerer, n *graph.Node) error {
	a, b := l.raw(0), l.raw(1)
	if a.dev() != graph.Float {
		return unsupported("integers")
	}
	y := l.result(0)
	shape := slices.Clone(y.shape)
	if len(a.shape) == 1 {
		a, _ = a.reshaped([]int{1, a.shape[0]})
		shape = slices.Insert(shape, max(0, len(shape)-1), 1)
	}
	if len(b.shape) == 1 {
		b, _ = b.reshaped([]int{b.shape[0], 1})
		shape = append(shape, 1)
	}
	c, _ := y.reshaped(shape)
	lead := len(shape) - 2
	t := contraction{size: append(slices.Clone(shape), a.shape[len(a.shape)-1])}
	for range lead {
		t.kind = append(t.kind, Batch)
	}
	t.kind = append(t.kind, M, N, K)
	m, nn, k := lead, lead+1, lead+2
	t.a, t.b, t.c = side{v: a}, side{v: b}, side{v: c}
	for i := range lead {
		t.c.axes = append(t.c.axes, i)
	}
	t.c.axes = append(t.c.axes, m, nn)
	// Leading axes of one operand alone belong to its rows or columns: a batch of products with one matrix is one product.
	full := func(v val, i int) bool {
		j := i - lead + len(v.shape) - 2
		return j >= 0 && v.shape[j] != 1
	}
	for i := range lead {
		switch {
		case shape[i] == 1:
		case !full(b, i):
			t.kind[i] = M
		case !full(a, i):
			t.kind[i] = N
		}
	}
	for _, o := range []struct {
		s     *side
		inner []int
	}{{&t.a, []int{m, k}}, {&t.b, []int{k, nn}}} {
		v := o.s.v
		off := lead - (len(v.shape) - 2)
		var keep []int
		for j := range v.shape[:len(v.shape)-2] {
			if v.shape[j] != 1 || shape[off+j] == 1 {
				o.s.axes = append(o.s.axes, off+j)
				keep = append(keep, j)
			}
		}
		o.s.axes = append(o.s.axes, o.inner...)
		keep = append(keep, len(v.shape)-2, len(v.shape)-1)
		o.s.v = v.permuted(keep)
	}
	l.contract(t)
	return nil
}

// lowerGemm lowers alpha*A'*B' + beta*C, where ' may transpose.
func lowerGemm(l *lowerer, n *graph.Node) error {
	a, b := l.raw(0), l.raw(1)
	if a.dev() != graph.Float {
		return unsupported("integers")
	}
	if n.Int("transA", 0) != 0 {
		a = a.permuted([]int{1, 0})
	}
	if n.Int("transB", 0) != 0 {
		b = b.permuted([]int{1, 0})
	}
	y := l.result(0)
	t := contraction{
		size: []int{y.shape[0], y.shape[1], a.shape[1]}, kind: []Kind{M, N, K},
		a: side{a, []int{0, 2}}, b: side{b, []int{2, 1}}, c: side{y, []int{0, 1}},
	}
	alpha, beta := n.Float("alpha", 1), n.Float("beta", 1)
	c, ok := l.in(2)
	if alpha == 1 && (!ok || beta == 0) {
		l.contract(t)
		return nil
	}
	t.post = func(e *epilogue, sum reg) reg {
		sum = e.scaled(sum, alpha)
		if ok && beta != 0 {
			sum = e.do(Add, sum, e.scaled(e.at(c.broadcast(y.shape)), beta))
		}
		return e.wrap(sum, y.elem)
	}
	l.contract(t)
	return nil
}
