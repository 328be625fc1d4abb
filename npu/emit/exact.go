package emit

import (
	"fmt"
	"math"
	"slices"

	"gradtool/graph"
	"gradtool/npu/isa"
	"gradtool/npu/legal"
	"gradtool/npu/machine"
)

// Exact computes kernels element by element, by the numeric contract: the reference that the instructions made of them must equal bit by bit. It
// knows no chip, no transfers and no order in time. Of a plan it takes the tiles, as these decide the order of sums: a reduction over a dimension
// that is cut adds the results of its tiles one by one, and the terms of a product come tile by tile.
type Exact struct {
	Machine *machine.Machine
	// Mem holds the elements of buffers as words; of buffers whose elements are narrower in memory, widened.
	Mem map[*legal.Buffer][]uint32
}

// Kernel computes one kernel as planned.
func (x *Exact) Kernel(k legal.Kernel, p *Plan) error {
	for _, a := range append(k.Reads(), k.Writes()...) {
		if a != nil && x.Mem[a.Buf] == nil {
			x.Mem[a.Buf] = make([]uint32, a.Buf.Len)
		}
	}
	var err error
	switch k := k.(type) {
	case *legal.Nest:
		err = x.nest(k, tiles(k.Dims, p.Tile), nil)
	case *legal.Contract:
		err = x.contract(k, p)
	case *legal.Walk:
		err = x.walk(k, p)
	case *legal.Gather:
		err = x.gather(k)
	case *legal.Scatter:
		err = x.scatter(k)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", k.Origin().Node, err)
	}
	return nil
}

// set writes an element, rounded to the type that it has in memory.
func (x *Exact) set(b *legal.Buffer, at int, v uint32) {
	if t := dtype(b.Mem()); t == isa.F16 || t == isa.BF16 {
		v = isa.Convert(t, isa.F32, isa.Convert(isa.F32, t, v))
	}
	x.Mem[b][at] = v
}

// array is values in a box of the dimensions along which they vary.
type array struct {
	data   []uint32
	stride []int // by dimension, 0 where they do not vary
}

func newArray(dims []int, mask uint32) array {
	a := array{stride: make([]int, len(dims))}
	n := 1
	for i := len(dims) - 1; i >= 0; i-- {
		if mask>>i&1 != 0 {
			a.stride[i] = n
			n *= dims[i]
		}
	}
	a.data = make([]uint32, n)
	return a
}

// points calls f for each point of a box in the dimensions of mask, in order, with the places of each array there.
func points(t box, mask uint32, arrays []array, f func(at []int)) {
	at := make([]int, len(arrays))
	for i := range t.lo {
		for j := range arrays {
			if mask>>i&1 != 0 {
				at[j] += t.lo[i] * arrays[j].stride[i]
			}
		}
	}
	var walk func(i int)
	walk = func(i int) {
		for i < len(t.lo) && mask>>i&1 == 0 {
			i++
		}
		if i == len(t.lo) {
			f(at)
			return
		}
		n := t.hi[i] - t.lo[i]
		for range n {
			walk(i + 1)
			for j := range arrays {
				at[j] += arrays[j].stride[i]
			}
		}
		for j := range arrays {
			at[j] -= n * arrays[j].stride[i]
		}
	}
	walk(0)
}

// read returns what an access reads.
func (x *Exact) read(a *legal.Access, dims []int) array {
	mask := a.Varies()
	out := newArray(dims, mask)
	mem := x.Mem[a.Buf]
	whole := box{make([]int, len(dims)), dims}
	if a.Inside(dims) {
		first, _ := a.At(make([]int, len(dims)))
		points(whole, mask, []array{out, {stride: a.Steps(len(dims))}}, func(at []int) { out.data[at[0]] = mem[first+at[1]] })
		return out
	}
	fill := uint32(*bits(a.Buf.Elem, a.Fill))
	index := make([]array, len(dims), len(dims)+1)
	for i := range index {
		index[i].stride = make([]int, len(dims))
		index[i].stride[i] = 1
	}
	points(whole, mask, append(index, out), func(at []int) {
		v := fill
		if from, ok := a.At(at[:len(dims)]); ok {
			v = mem[from]
		}
		out.data[at[len(dims)]] = v
	})
	return out
}

// order calls f for the boxes, in order, whose partial results a reduction over the dimensions of a mask adds up.
type order func(over uint32, f func(t box, first bool) error) error

// tiles returns the order in which tiles of a size are walked.
func tiles(dims, tile []int) order {
	return func(over uint32, f func(t box, first bool) error) error {
		var cut []int
		t := box{make([]int, len(dims)), slices.Clone(dims)}
		for i := range dims {
			if over>>i&1 != 0 && tile[i] < dims[i] {
				cut = append(cut, i)
				t.hi[i] = tile[i]
			}
		}
		return each(dims, tile, nil, cut, t, func(first bool) error { return f(t, first) })
	}
}

// parts returns the order in which the epilogue of a contraction works off the tiles of a plan, part by part.
func (p *Plan) parts(k *legal.Contract) order {
	dims := k.Post.Dims
	return func(over uint32, f func(t box, first bool) error) error {
		_, across, _ := p.loops(k)
		across = slices.DeleteFunc(across, func(i int) bool { return over>>i&1 == 0 })
		t := box{make([]int, len(dims)), slices.Clone(dims)}
		begin := true
		return each(dims, p.Tile, nil, across, t, func(bool) error {
			whole := box{slices.Clone(t.lo), slices.Clone(t.hi)}
			var cut []int
			for i := range dims {
				if over>>i&1 != 0 && p.Post[i] < whole.hi[i]-whole.lo[i] {
					cut = append(cut, i)
				}
			}
			part := box{slices.Clone(t.lo), slices.Clone(t.hi)}
			return parts(whole, p.Post, nil, cut, part, func(bool) error {
				first := begin
				begin = false
				return f(part, first)
			})
		})
	}
}

// nest computes a nest whose reductions add up in an order. Sums are value 0 of an epilogue.
func (x *Exact) nest(k *legal.Nest, o order, sums []uint32) error {
	varies, elems := k.Varies(), k.Elems()
	vals := make([]array, len(varies))
	for v, a := range k.In {
		if a == nil {
			vals[v] = newArray(k.Dims, varies[v])
			vals[v].data = sums
			continue
		}
		vals[v] = x.read(a, k.Dims)
	}
	whole := box{make([]int, len(k.Dims)), k.Dims}
	for v := len(k.In); v < len(varies); v++ {
		vals[v] = newArray(k.Dims, varies[v])
		if err := x.statement(k, v, whole, o, varies, elems, vals); err != nil {
			return err
		}
	}
	for _, o := range k.Out {
		x.write(o, k.Dims, vals[o.Value])
	}
	return nil
}

// statement computes value v of a nest for a box, a reduction in the order given.
func (x *Exact) statement(k *legal.Nest, v int, t box, o order, varies []uint32, elems []graph.DataType, vals []array) error {
	s := &k.Body[v-len(k.In)]
	if s.Op.Reduces() {
		x.reduce(s, o, varies, vals[v], vals[s.Args[0]])
		return nil
	}
	f, err := x.function(s, elems)
	if err != nil {
		return err
	}
	list := []array{vals[v]}
	for _, a := range s.Args {
		list = append(list, vals[a])
	}
	if s.Op == legal.Iota {
		index := make([]int, len(k.Dims))
		index[s.Dim] = 1
		points(t, varies[v], append(list, array{stride: index}), func(at []int) { vals[v].data[at[0]] = uint32(at[1]) })
		return nil
	}
	points(t, varies[v], list, func(at []int) {
		var w [3]uint32
		for j := range at[1:] {
			w[j] = list[j+1].data[at[j+1]]
		}
		vals[v].data[at[0]] = f(w[0], w[1], w[2])
	})
	return nil
}

// write stores a value of a nest of the given dimensions.
func (x *Exact) write(o legal.Store, dims []int, v array) {
	index := make([]array, len(dims), len(dims)+1)
	for i := range index {
		index[i].stride = make([]int, len(dims))
		index[i].stride[i] = 1
	}
	points(box{make([]int, len(dims)), dims}, o.To.Varies(), append(index, v), func(at []int) {
		to, _ := o.To.At(at[:len(dims)])
		x.set(o.To.Buf, to, v.data[at[len(dims)]])
	})
}

// function returns the function of a statement that does not reduce.
func (x *Exact) function(s *legal.Stmt, elems []graph.DataType) (func(a, b, c uint32) uint32, error) {
	n := x.Machine.Numerics
	of := s.Elem
	if len(s.Args) > 0 {
		of = elems[s.Args[0]]
	}
	round := func(t isa.DType) func(a, _, _ uint32) uint32 {
		return func(a, _, _ uint32) uint32 { return isa.Convert(t, isa.F32, isa.Convert(isa.F32, t, a)) }
	}
	switch s.Op {
	case legal.ConstOp:
		c := uint32(*bits(s.Elem, s.Imm))
		return func(_, _, _ uint32) uint32 { return c }, nil
	case legal.Iota:
		return nil, nil
	case legal.Select:
		return func(a, b, c uint32) uint32 {
			if a != 0 {
				return b
			}
			return c
		}, nil
	case legal.Not:
		return func(a, _, _ uint32) uint32 { return a ^ 1 }, nil
	case legal.Half:
		return round(isa.F16), nil
	case legal.BFloat:
		return round(isa.BF16), nil
	}
	op, ok := vecOps[s.Op]
	if !ok {
		return nil, fmt.Errorf("no instruction for %s", s.Op)
	}
	return op.Intrinsic().Element(n, dtype(of), dtype(s.Elem)), nil
}

// partials is the number of partial results of a reduction.
const partials = 16

// reduce computes a reduction.
func (x *Exact) reduce(s *legal.Stmt, o order, varies []uint32, out, arg array) {
	fold := vecOps[s.Op].Intrinsic().Element(x.Machine.Numerics, dtype(s.Elem), dtype(s.Elem))
	o(s.Over, func(whole box, begin bool) error {
		size, cut := chunks(whole.dims(), s.Over)
		t := box{slices.Clone(whole.lo), slices.Clone(whole.hi)}
		return parts(whole, size, nil, cut, t, func(first bool) error {
			x.partial(fold, s.Over, varies[s.Args[0]]&^s.Over, t, first && begin, out, arg)
			return nil
		})
	})
}

// partial reduces a box over some dimensions, for each point along others, and combines that with what is there unless it is the first.
func (x *Exact) partial(fold func(a, b, c uint32) uint32, over, kept uint32, t box, first bool, out, arg array) {
	points(t, kept, []array{out, arg}, func(at []int) {
		var p [partials]uint32
		n := 0
		from := at[1]
		points(t, over, []array{arg}, func(in []int) {
			v := arg.data[from+in[0]]
			if n < partials {
				p[n] = v
			} else {
				p[n%partials] = fold(p[n%partials], v, 0)
			}
			n++
		})
		for step := partials / 2; step >= 1; step /= 2 {
			for i := range step {
				if i+step < n {
					p[i] = fold(p[i], p[i+step], 0)
				}
			}
		}
		if !first {
			p[0] = fold(out.data[at[0]], p[0], 0)
		}
		out.data[at[0]] = p[0]
	})
}

// contract computes the sums of a contraction and its epilogue.
func (x *Exact) contract(k *legal.Contract, p *Plan) error {
	mask := uint32(0)
	for i, kind := range k.Kind {
		if kind != legal.K && k.Dims[i] > 1 {
			mask |= 1 << i
		}
	}
	a, b := x.read(k.A, k.Dims), x.read(k.B, k.Dims)
	sums := newArray(k.Dims, mask)
	outer, across, inner := p.loops(k)
	outer = append(outer, across...)
	inside := k.A.Inside(k.Dims) && k.B.Inside(k.Dims)
	t := box{make([]int, len(k.Dims)), p.first()}
	var terms [][2]int // places of both operands, by term
	each(k.Dims, p.Tile, p.First, outer, t, func(bool) error {
		if !inside || terms == nil {
			terms = terms[:0]
			each(k.Dims, p.Tile, nil, inner, t, func(bool) error {
				if touches(k.A, p.piece(k, k.A, t)) && touches(k.B, p.piece(k, k.B, t)) { // else all of it is padding, and left out
					points(t, ^mask, []array{a, b}, func(at []int) { terms = append(terms, [2]int{at[0], at[1]}) })
				}
				return nil
			})
		}
		points(t, mask, []array{sums, a, b}, func(at []int) { sums.data[at[0]] = x.sum(terms, a.data[at[1]:], b.data[at[2]:]) })
		return nil
	})
	if k.Post != nil {
		return x.nest(k.Post, p.parts(k), sums.data)
	}
	store := &legal.Nest{Dims: slices.Clone(k.Dims), In: []*legal.Access{nil}, Out: []legal.Store{{To: k.C}}}
	for i, kind := range k.Kind {
		if kind == legal.K {
			store.Dims[i] = 1
		}
	}
	return x.nest(store, tiles(store.Dims, store.Dims), sums.data)
}

// sum adds up products in the order of terms.
func (x *Exact) sum(terms [][2]int, a, b []uint32) uint32 {
	c := float32(0)
	if n := x.Machine.Numerics; n.Fused || n.Flush {
		for _, t := range terms {
			c = isa.MAC(n, c, math.Float32frombits(a[t[0]]), math.Float32frombits(b[t[1]]))
		}
		return math.Float32bits(c)
	}
	for _, t := range terms {
		c += float32(math.Float32frombits(a[t[0]]) * math.Float32frombits(b[t[1]]))
	}
	return math.Float32bits(c)
}

// touches reports whether a tile of an access has elements in range.
func touches(a *legal.Access, t box) bool {
	_, _, ok := windows(a, t, false)
	return ok
}

// row returns the row of a table that an index stands for.
func row(index uint32, rows int) (int, error) {
	i := int(int32(index))
	if i < 0 {
		i += rows
	}
	if i < 0 || i >= rows {
		return 0, fmt.Errorf("index %d into a table of %d rows", int32(index), rows)
	}
	return i, nil
}

func (x *Exact) gather(k *legal.Gather) error {
	index := x.read(k.Index, []int{k.Rows})
	for i := range k.Rows {
		r, err := row(index.data[i*index.stride[0]], k.TableRows)
		if err != nil {
			return err
		}
		for j := range k.Width {
			from, _ := k.Table.At([]int{r, j})
			to, _ := k.Out.At([]int{i, j})
			x.set(k.Out.Buf, to, x.Mem[k.Table.Buf][from])
		}
	}
	return nil
}

func (x *Exact) scatter(k *legal.Scatter) error {
	index, from := x.read(k.Index, []int{k.Rows}), x.read(k.From, []int{k.Rows, k.Width})
	t := dtype(k.Table.Buf.Elem)
	update := vecOps[k.Mode].Intrinsic().Element(x.Machine.Numerics, t, t)
	for i := range k.Rows {
		r, err := row(index.data[i*index.stride[0]], k.TableRows)
		if err != nil {
			return err
		}
		for j := range k.Width {
			at, _ := k.Table.At([]int{r, j})
			v := from.data[i*from.stride[0]+j*from.stride[1]]
			if k.Mode != legal.Mov {
				v = update(x.Mem[k.Table.Buf][at], v, 0)
			}
			x.set(k.Table.Buf, at, v)
		}
	}
	return nil
}
