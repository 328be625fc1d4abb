package emit

import (
	"math"
	"slices"

	"gradtool/npu/isa"
	"gradtool/npu/legal"
)

// exactWalk is the state of computing a walk by the numeric contract.
type exactWalk struct {
	x        *Exact
	k        *legal.Walk
	run      *legal.Running
	varies   []uint32
	vals     []array
	operands []array // of the sinks
	sums     []array // of the sinks
}

// walk computes a walk. Sums of products are added one by one in the order of what they run over, whatever the tiles. If the body runs along the
// columns, a tile of columns after the other: the maximum takes in that of the tile; what was summed up before, of exponentials and of
// products, is multiplied with exp(older maximum - newer); and then the sum of the tile is added, the products one by one.
func (x *Exact) walk(k *legal.Walk, p *Plan) error {
	run, _ := k.Running()
	w := &exactWalk{x: x, k: k, run: run, varies: k.Body.Varies()}
	n := len(k.Dims)
	whole := box{make([]int, n), k.Body.Dims}
	for v := range w.varies {
		w.vals = append(w.vals, newArray(k.Body.Dims, w.varies[v]))
	}
	for i, s := range k.Scores {
		x.products(k.Dims, whole, s.Over, w.vals[i], x.read(s.A, k.Dims), x.read(s.B, k.Dims), true)
	}
	for v := len(k.Scores); v < len(k.Body.In); v++ {
		w.vals[v] = x.read(k.Body.In[v], k.Body.Dims)
	}
	for _, s := range k.Sinks {
		w.operands = append(w.operands, x.read(s.B, k.Dims))
		w.sums = append(w.sums, newArray(s.Post.Dims, result(k, &s)))
	}
	if run == nil {
		if err := w.tile(whole, true); err != nil {
			return err
		}
	} else {
		var cut []int
		for _, i := range p.Order {
			if run.Cols>>i&1 != 0 {
				cut = append(cut, i)
			}
		}
		t := box{make([]int, n), slices.Clone(k.Body.Dims)}
		for _, i := range cut {
			t.hi[i] = p.Tile[i]
		}
		if err := each(k.Body.Dims, p.Tile, nil, cut, t, func(first bool) error { return w.tile(t, first) }); err != nil {
			return err
		}
		if err := w.statements(whole, func(v int) bool { return run.Late[v] }); err != nil {
			return err
		}
	}
	for _, o := range k.Body.Out {
		x.write(o, k.Body.Dims, w.vals[o.Value])
	}
	for i, s := range k.Sinks {
		if s.Scale >= 0 {
			op := isa.OpMul
			if s.Divide {
				op = isa.OpDiv
			}
			f := op.Intrinsic().Element(x.Machine.Numerics, isa.F32, isa.F32)
			points(box{make([]int, n), s.Post.Dims}, ^uint32(0), []array{w.sums[i], w.vals[s.Scale]}, func(at []int) {
				w.sums[i].data[at[0]] = f(w.sums[i].data[at[0]], w.vals[s.Scale].data[at[1]], 0)
			})
		}
		if s.Blank >= 0 {
			points(box{make([]int, n), s.Post.Dims}, ^uint32(0), []array{w.sums[i], w.vals[s.Blank]}, func(at []int) {
				if w.vals[s.Blank].data[at[1]] != 0 {
					w.sums[i].data[at[0]] = 0
				}
			})
		}
		if err := x.nest(s.Post, tiles(s.Post.Dims, s.Post.Dims), w.sums[i].data); err != nil {
			return err
		}
	}
	return nil
}

// tile computes the body and adds to the sinks for a tile along the columns.
func (w *exactWalk) tile(t box, first bool) error {
	x, k := w.x, w.k
	var alpha array
	if w.run == nil {
		if err := w.statements(t, func(int) bool { return true }); err != nil {
			return err
		}
	} else {
		old := slices.Clone(w.vals[w.run.Max].data)
		held := map[int][]uint32{}
		for _, v := range slices.Concat(w.run.Sums, w.run.Tallies) {
			held[v] = slices.Clone(w.vals[v].data)
		}
		err := w.statements(t, func(v int) bool { return v <= w.run.Max })
		if err != nil {
			return err
		}
		if !first {
			most := w.vals[w.run.Max]
			alpha = array{make([]uint32, len(old)), most.stride}
			fold := x.fold(isa.OpMax)
			sub, exp := x.fold(isa.OpSub), x.fold(isa.OpExp)
			for i := range old {
				most.data[i] = fold(w.vals[w.run.Most].data[i], old[i], 0)
				alpha.data[i] = exp(sub(old[i], most.data[i], 0), 0, 0)
			}
		}
		if err := w.statements(t, func(v int) bool { return v > w.run.Max && !w.run.Late[v] }); err != nil {
			return err
		}
		if !first {
			w.combine(held, alpha)
		}
	}
	for i := range k.Sinks {
		s := &k.Sinks[i]
		whole := box{slices.Clone(t.lo), slices.Clone(t.hi)}
		for d := range k.Dims {
			if k.Inner(s.B)>>d&1 != 0 {
				whole.lo[d], whole.hi[d] = 0, k.Dims[d]
			}
		}
		if alpha.data != nil {
			mul := x.fold(isa.OpMul)
			points(whole, result(k, s), []array{w.sums[i], alpha}, func(at []int) {
				w.sums[i].data[at[0]] = mul(w.sums[i].data[at[0]], alpha.data[at[1]], 0)
			})
		}
		x.products(k.Dims, whole, s.Over, w.sums[i], w.vals[s.Value], w.operands[i], first)
	}
	return nil
}

// combine adds what a tile gives to what rows have in common to what was held before: sums of exponentials times alpha, the rest as it is.
func (w *exactWalk) combine(held map[int][]uint32, alpha array) {
	x, k := w.x, w.k
	whole := box{make([]int, len(k.Dims)), k.Body.Dims}
	mul, add := x.fold(isa.OpMul), x.fold(isa.OpAdd)
	for _, v := range w.run.Sums {
		points(whole, w.varies[v], []array{w.vals[v], alpha}, func(at []int) {
			w.vals[v].data[at[0]] = add(mul(held[v][at[0]], alpha.data[at[1]], 0), w.vals[v].data[at[0]], 0)
		})
	}
	for _, v := range w.run.Tallies {
		s := &k.Body.Body[v-len(k.Body.In)]
		f := vecOps[s.Op].Intrinsic().Element(x.Machine.Numerics, dtype(s.Elem), dtype(s.Elem))
		for i := range w.vals[v].data {
			w.vals[v].data[i] = f(held[v][i], w.vals[v].data[i], 0)
		}
	}
}

// fold returns the function of an instruction on floats.
func (x *Exact) fold(op isa.Op) func(a, b, c uint32) uint32 {
	return op.Intrinsic().Element(x.Machine.Numerics, isa.F32, isa.F32)
}

// statements computes those of the body that are wanted, for a tile.
func (w *exactWalk) statements(t box, want func(v int) bool) error {
	once := func(_ uint32, f func(t box, first bool) error) error { return f(t, true) }
	elems := w.k.Body.Elems()
	for i := range w.k.Body.Body {
		v := len(w.k.Body.In) + i
		if !want(v) {
			continue
		}
		if err := w.x.statement(w.k.Body, v, t, once, w.varies, elems, w.vals); err != nil {
			return err
		}
	}
	return nil
}

// products adds to each of the sums in a box those of products over some dimensions, one by one; begin says that they begin with +0.
func (x *Exact) products(dims []int, t box, over uint32, sums, a, b array, begin bool) {
	var terms [][2]int
	o := box{slices.Clone(t.lo), slices.Clone(t.hi)}
	for i := range dims {
		if over>>i&1 != 0 && t.hi[i] == 1 && t.lo[i] == 0 {
			o.hi[i] = dims[i] // of a score: not a dimension of the square
		}
	}
	points(o, over, []array{a, b}, func(at []int) { terms = append(terms, [2]int{at[0], at[1]}) })
	points(t, ^over, []array{sums, a, b}, func(at []int) {
		c := uint32(0)
		if !begin {
			c = sums.data[at[0]]
		}
		sums.data[at[0]] = x.more(c, terms, a.data[at[1]:], b.data[at[2]:])
	})
}

// more adds products to c in the order of terms.
func (x *Exact) more(c uint32, terms [][2]int, a, b []uint32) uint32 {
	y := math.Float32frombits(c)
	for _, t := range terms {
		y = isa.MAC(x.Machine.Numerics, y, math.Float32frombits(a[t[0]]), math.Float32frombits(b[t[1]]))
	}
	return math.Float32bits(y)
}
