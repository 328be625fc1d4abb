package emit

import (
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/npu/isa"
	"gradtool/npu/legal"
)

// nestRun is the state of emitting a nest tile by tile.
type nestRun struct {
	e       *Emitter
	k       *legal.Nest
	tile    []int
	varies  []uint32
	elems   []graph.DataType
	across  uint32 // tiled dimensions that some reduction reduces: their tiles accumulate
	late    []bool // by value: depends on an accumulated reduction
	accum   []bool // by value: is an accumulated reduction
	fused   []bool // by value: a product that the sum that reads it computes
	outside []bool // by value: it may not lie in the accumulator
	uses    []int  // by value: reads by statements and stores
	places  []*place
	keys    [][]int
	left    []int // uses to come in this tile
	order   []int // loads, those of buffers written early first
	pad     bool  // pitches are odd: elements are read across rows
	moved   bool  // the sums of a contraction are copied first, to odd pitches
}

// newNestRun prepares a nest for tiles of the given size. It fails if values that vary along an accumulated dimension depend on
// the accumulated result, or if reductions accumulate along different dimensions.
func (e *Emitter) newNestRun(k *legal.Nest, tile []int) (*nestRun, error) {
	n := len(k.In) + len(k.Body)
	r := &nestRun{e: e, k: k, tile: tile, varies: k.Varies(), elems: k.Elems(), late: make([]bool, n), accum: make([]bool, n), fused: make([]bool, n), outside: make([]bool, n),
		pad: acrossRows(k), uses: make([]int, n), places: make([]*place, n), keys: make([][]int, n), left: make([]int, n)}
	tiled := uint32(0)
	for i, d := range k.Dims {
		if tile[i] < d {
			tiled |= 1 << i
		}
	}
	for _, s := range k.Body {
		r.across |= s.Over & tiled
	}
	for i, s := range k.Body {
		v := len(k.In) + i
		for _, a := range s.Args {
			r.late[v] = r.late[v] || r.late[a] || r.accum[a]
			r.uses[a]++
		}
		r.accum[v] = s.Over&tiled != 0
		if (r.late[v] || r.accum[v]) && r.varies[v]&r.across != 0 || r.late[v] && r.accum[v] {
			return nil, fmt.Errorf("value %d varies along a dimension that is reduced tile by tile", v)
		}
		if r.accum[v] && r.across&^s.Over != 0 {
			return nil, fmt.Errorf("value %d would be added up again for each tile of a dimension that it does not reduce", v)
		}
	}
	for _, o := range k.Out {
		r.uses[o.Value]++
		if (r.late[o.Value] || r.accum[o.Value]) && o.To.Varies()&r.across != 0 {
			return nil, fmt.Errorf("value %d is stored along a dimension that is reduced tile by tile", o.Value)
		}
	}
	for v, a := range k.In {
		if a != nil {
			r.order = append(r.order, v)
		}
	}
	slices.SortStableFunc(r.order, func(p, q int) int { return e.age(k.In[p].Buf) - e.age(k.In[q].Buf) })
	r.moved = sumsAcross(k)
	// A sum of a product that nothing else reads is one instruction.
	for _, s := range k.Body {
		if s.Op != legal.Sum || s.Elem != graph.Float || s.Args[0] < len(k.In) {
			continue
		}
		if p := &k.Body[s.Args[0]-len(k.In)]; p.Op == legal.Mul && r.uses[s.Args[0]] == 1 {
			r.fused[s.Args[0]] = true
		}
	}
	return r, nil
}

// Nest emits a nest in tiles of the given size.
func (e *Emitter) Nest(k *legal.Nest, tile []int) error {
	r, err := e.newNestRun(k, tile)
	if err != nil {
		return err
	}
	return e.attempt(func() error {
		t := box{make([]int, len(k.Dims)), make([]int, len(k.Dims))}
		var outer, inner []int
		for i := range k.Dims {
			t.hi[i] = tile[i]
			switch {
			case tile[i] == k.Dims[i]:
			case r.across>>i&1 != 0:
				inner = append(inner, i)
			default:
				outer = append(outer, i)
			}
		}
		err := each(k.Dims, tile, nil, outer, t, func(bool) error {
			err := each(k.Dims, tile, nil, inner, t, func(first bool) error { return r.early(t, first) })
			if err != nil {
				return err
			}
			return r.finish(t)
		})
		for v, p := range r.places {
			p.drop()
			r.places[v] = nil
		}
		return err
	})
}

// each sets t to the tiles of the given dimensions, the last one innermost, and calls f, telling it of the first. The first tile
// along a dimension has the size that lead gives, if that is not nil.
func each(dims, tile, lead, over []int, t box, f func(first bool) error) error {
	return parts(box{make([]int, len(dims)), dims}, tile, lead, over, t, f)
}

// parts does so for the tiles that a part of the loops is made of.
func parts(whole box, tile, lead, over []int, t box, f func(first bool) error) error {
	first := true
	var walk func(i int) error
	walk = func(i int) error {
		if i == len(over) {
			err := f(first)
			first = false
			return err
		}
		d := over[i]
		for at := whole.lo[d]; at < whole.hi[d]; at = t.hi[d] {
			n := tile[d]
			if at == whole.lo[d] && lead != nil {
				n = lead[d]
			}
			t.lo[d], t.hi[d] = at, min(at+n, whole.hi[d])
			if err := walk(i + 1); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(0)
}

// early computes what depends on no accumulated result, for one tile. In the first tile accumulators start.
func (r *nestRun) early(t box, first bool) error {
	if err := r.loads(t); err != nil {
		return err
	}
	if r.moved {
		dims := t.dims()
		p, err := r.fresh(0, r.varies[0], dims)
		if err != nil {
			return err
		}
		r.e.vec(isa.OpMov, r.elems[0], r.elems[0], dims, r.varies[0], p, r.places[0])
		r.places[0] = p
		defer p.drop()
	}
	copy(r.left, r.uses)
	for i := range r.k.Body {
		v := len(r.k.In) + i
		if r.late[v] || r.fused[v] {
			continue
		}
		if err := r.stmt(v, t, r.accum[v] && !first); err != nil {
			return err
		}
	}
	for _, o := range r.k.Out {
		if r.late[o.Value] || r.accum[o.Value] {
			continue
		}
		if r.varies[o.Value]&r.across == 0 && o.To.Varies()&r.across == 0 && !first {
			continue
		}
		if err := r.store(o, t); err != nil {
			return err
		}
	}
	return nil
}

// loads brings the loads of a tile on chip, those that are not there.
func (r *nestRun) loads(t box) error {
	for _, v := range r.order {
		a := r.k.In[v]
		if k := key(a, t); r.places[v] == nil || !slices.Equal(k, r.keys[v]) {
			r.places[v].drop()
			r.places[v] = nil
			p, err := r.e.load(a, t, r.pad)
			if err != nil {
				return err
			}
			r.places[v], r.keys[v] = p, k
		}
	}
	return nil
}

// finish computes what depends on accumulated results, once they are complete.
func (r *nestRun) finish(t box) error {
	for i := range r.k.Body {
		v := len(r.k.In) + i
		if !r.late[v] || r.fused[v] {
			continue
		}
		if err := r.stmt(v, t, false); err != nil {
			return err
		}
	}
	for _, o := range r.k.Out {
		if r.late[o.Value] || r.accum[o.Value] {
			if err := r.store(o, t); err != nil {
				return err
			}
		}
	}
	// Values of this tile are done with; loads stay, for the next tile may want the same.
	for v := len(r.k.In); v < len(r.places); v++ {
		r.places[v].drop()
		r.places[v] = nil
	}
	return nil
}

func (r *nestRun) store(o legal.Store, t box) error {
	if err := r.e.store(o.To, r.places[o.Value], t); err != nil {
		return err
	}
	r.used(o.Value)
	return nil
}

// used notes a use of a value; after the last one its memory is free, unless it is a load or an accumulator.
func (r *nestRun) used(v int) {
	r.left[v]--
	if r.left[v] == 0 && v >= len(r.k.In) && !r.accum[v] {
		r.places[v].drop()
		r.places[v] = nil
	}
}

// fresh returns memory for a value that varies along mask, in row-major order.
func (r *nestRun) fresh(v int, mask uint32, dims []int) (*place, error) {
	p := &place{stride: make([]int, len(dims)), elem: r.elems[v]}
	n := 1
	for i := len(dims) - 1; i >= 0; i-- {
		if mask>>i&1 != 0 {
			p.stride[i] = n
			if n *= dims[i]; r.pad && dims[i] > 1 {
				n = odd(n)
			}
		}
	}
	mem, err := r.e.take(r.e.scratch, n)
	if err != nil {
		return nil, err
	}
	p.mem, p.addr = mem, r.e.local(mem)
	return p, nil
}

// reusable returns the operand, if there is one, whose memory the result may take: it is read for the last time, by this
// statement, and varies along the same dimensions.
func (r *nestRun) reusable(s *legal.Stmt, v int) *place {
	for _, a := range s.Args {
		p := r.places[a]
		reads := 0
		for _, b := range s.Args {
			if b == a {
				reads++
			}
		}
		own := a >= len(r.k.In) || r.k.In[a] == nil
		if own && p != nil && p.mem != nil && r.left[a] == reads && p.mem.holds == 1 && !(r.outside[v] && p.mem.pool == r.e.accum) && !r.accum[a] && r.varies[a] == r.varies[v] {
			return p
		}
	}
	return nil
}

// stmt emits a statement for a tile; with acc a reduction goes on from what it has.
func (r *nestRun) stmt(v int, t box, acc bool) error {
	s := &r.k.Body[v-len(r.k.In)]
	dims := t.dims()
	e := r.e
	if !acc {
		r.places[v].drop()
		r.places[v] = nil
	}
	if s.Op == legal.ConstOp {
		r.places[v] = &place{imm: bits(s.Elem, s.Imm), stride: make([]int, len(dims)), elem: s.Elem}
		return nil
	}
	mask := r.varies[v]
	var args []*place
	for _, a := range s.Args {
		args = append(args, r.places[a])
	}
	if s.Op.Reduces() {
		from := s.Args
		if r.fused[s.Args[0]] {
			from = r.k.Body[s.Args[0]-len(r.k.In)].Args
			args = []*place{r.places[from[0]], r.places[from[1]]}
		}
		if !acc {
			p, err := r.fresh(v, mask, dims)
			if err != nil {
				return err
			}
			r.places[v] = p
		}
		op := vecOps[s.Op]
		if len(args) == 2 {
			op = isa.OpDot
			if args[0].imm != nil { // the machine takes an immediate in the second place only
				args[0], args[1] = args[1], args[0]
			}
		}
		if args[0].imm != nil { // a tile that is all padding
			p, err := e.spread(args[0], len(dims))
			if err != nil {
				return err
			}
			defer p.drop()
			args[0] = p
		}
		whole := box{make([]int, len(dims)), dims}
		size, cut := chunks(dims, s.Over)
		c := box{slices.Clone(whole.lo), slices.Clone(size)}
		parts(whole, size, nil, cut, c, func(first bool) error {
			moved := slices.Clone(args)
			for i, p := range moved {
				for _, d := range cut {
					if p.imm == nil {
						p = p.step(d, c.lo[d])
					}
				}
				moved[i] = p
			}
			e.reduce(op, s.Elem, c.dims(), mask, s.Over, r.places[v], acc || !first, moved...)
			return nil
		})
		for _, a := range from {
			r.used(a)
		}
		return nil
	}
	dst := r.reusable(s, v)
	if dst != nil {
		q := *dst
		q.elem = r.elems[v]
		q.mem.hold()
		dst = &q
	} else {
		p, err := r.fresh(v, mask, dims)
		if err != nil {
			return err
		}
		dst = p
	}
	r.places[v] = dst
	typ := s.Elem
	if len(s.Args) > 0 {
		typ = r.elems[s.Args[0]]
	}
	switch s.Op {
	case legal.Iota:
		e.iota(dst, dims[s.Dim], dst.stride[s.Dim], t.lo[s.Dim])
	case legal.Select:
		e.vec(isa.OpSelect, graph.Int32, graph.Int32, dims, mask, dst, args[1], args[2], args[0])
	case legal.Not:
		e.vec(isa.OpXor, graph.Int32, graph.Int32, dims, mask, dst, args[0], &place{imm: bits(graph.Int32, 1)})
	case legal.Half:
		return r.half(isa.F16, v, dims, mask, args[0], s.Args[0])
	case legal.BFloat:
		return r.half(isa.BF16, v, dims, mask, args[0], s.Args[0])
	default:
		op, ok := vecOps[s.Op]
		if !ok {
			return fmt.Errorf("no instruction for %s", s.Op)
		}
		e.vec(op, typ, s.Elem, dims, mask, dst, args...)
	}
	for _, a := range s.Args {
		r.used(a)
	}
	return nil
}

// chunkLimit is how many elements are reduced at a time at most: a sum of many is the sum of sums of some, for a sum's error grows with
// the number of terms that one partial result takes in.
const chunkLimit = 4096

// chunks returns the size of the boxes in which the dimensions of a mask are reduced one after the other, and which of them are cut.
func chunks(dims []int, over uint32) (size, cut []int) {
	size = slices.Clone(dims)
	room := chunkLimit
	for i := len(dims) - 1; i >= 0; i-- {
		if over>>i&1 == 0 {
			continue
		}
		if size[i] = min(dims[i], room); size[i] < dims[i] {
			cut = append(cut, i)
		}
		room /= size[i]
	}
	slices.Reverse(cut)
	return size, cut
}

// half rounds to a 16-bit format and back.
func (r *nestRun) half(f isa.DType, v int, dims []int, mask uint32, arg *place, a int) error {
	mid, err := r.fresh(v, mask, dims)
	if err != nil {
		return err
	}
	dst := r.places[v]
	for i, pair := range [][2]*place{{mid, arg}, {dst, mid}} {
		typ, to := isa.F32, f
		if i == 1 {
			typ, to = f, isa.F32
		}
		all := pair[:]
		r.e.vecLevels(isa.OpCvt, typ, to, levels(dims, mask, all), all)
	}
	mid.drop()
	r.used(a)
	return nil
}

// sumsAcross reports whether an epilogue reduces the sums of its contraction, as they are or times something, across the rows in which they
// lie in the accumulator.
func sumsAcross(k *legal.Nest) bool {
	if len(k.In) == 0 || k.In[0] != nil {
		return false
	}
	inner := -1
	for i, n := range k.Dims {
		if n > 1 {
			inner = i
		}
	}
	for _, s := range k.Body {
		if !s.Op.Reduces() || inner < 0 || s.Over>>inner&1 != 0 {
			continue
		}
		a := s.Args[0]
		if a == 0 || a >= len(k.In) && slices.Contains(k.Body[a-len(k.In)].Args, 0) {
			return true
		}
	}
	return false
}

// acrossRows reports whether a nest reads elements across the rows in which they lie: a reduction leaves the innermost
// dimension, or accesses have different ones innermost.
func acrossRows(k *legal.Nest) bool {
	inner := func(mask uint32) int {
		for i := len(k.Dims) - 1; i >= 0; i-- {
			if mask>>i&1 != 0 && k.Dims[i] > 1 {
				return i
			}
		}
		return -1
	}
	varies := k.Varies()
	for _, s := range k.Body {
		if s.Op.Reduces() && s.Over>>max(inner(varies[s.Args[0]]), 0)&1 == 0 {
			return true
		}
	}
	first := -1
	look := func(a *legal.Access) bool {
		best, at := 0, -1
		for i, s := range a.Steps(len(k.Dims)) {
			if s = max(s, -s); s != 0 && k.Dims[i] > 1 && (at < 0 || s < best) {
				best, at = s, i
			}
		}
		if at < 0 {
			return false
		}
		if first < 0 {
			first = at
		}
		return first != at
	}
	for _, a := range k.In {
		if a != nil && look(a) {
			return true
		}
	}
	for _, o := range k.Out {
		if look(o.To) {
			return true
		}
	}
	return false
}
