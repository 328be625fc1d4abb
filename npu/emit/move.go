package emit

import (
	"cmp"
	"slices"

	"gradtool/npu/isa"
	"gradtool/npu/legal"
)

// window is the part of an axis that a tile touches.
type window struct {
	axis     *legal.Axis
	lo, n    int // first coordinate and number of coordinates
	from, to int // those in range: from <= coordinate < to
	stride   int // between coordinates on chip
}

// oddFrom is the number of elements from which rows are padded to an odd pitch.
const oddFrom = 8

// odd returns the distance of rows of n elements on chip: an odd number of words, so that elements below each other lie in
// different banks.
func odd(n int) int {
	if n >= oddFrom {
		return n | 1
	}
	return n
}

// windows returns the parts of the axes that a tile touches, in the order of DRAM, with strides on chip, compact or padded to
// odd pitches, and how many elements they hold. It returns false if all of them are out of range.
func windows(a *legal.Access, t box, pad bool) ([]window, int, bool) {
	ws := make([]window, len(a.Axes))
	for i := range a.Axes {
		x := &a.Axes[i]
		lo, hi := x.Range(t.lo, t.hi)
		w := window{axis: x, lo: lo, n: hi - lo + 1, from: max(lo, 0), to: min(hi+1, x.Size)}
		if w.from >= w.to {
			return nil, 0, false
		}
		ws[i] = w
	}
	slices.SortStableFunc(ws, func(p, q window) int {
		return cmp.Compare(max(q.axis.Stride, -q.axis.Stride), max(p.axis.Stride, -p.axis.Stride))
	})
	n := 1
	for i := len(ws) - 1; i >= 0; i-- {
		ws[i].stride = n
		n *= ws[i].n
		if pad && i > 0 && ws[i].n > 1 {
			n = odd(n)
		}
	}
	return ws, n, true
}

// words returns the number of elements that the tile of an access takes on chip, besides those of buffers that are there anyway.
func (e *Emitter) words(a *legal.Access, t box, pad bool) int {
	ws, n, ok := windows(a, t, pad)
	if !ok {
		return 0
	}
	if e.held[a.Buf] != nil && !slices.ContainsFunc(ws, func(w window) bool { return w.lo < 0 || w.lo+w.n > w.axis.Size }) {
		return 0
	}
	return n
}

// key tells whether two tiles of one access hold the same.
func key(a *legal.Access, t box) []int {
	var k []int
	for i := range a.Axes {
		lo, hi := a.Axes[i].Range(t.lo, t.hi)
		k = append(k, lo, hi)
	}
	return k
}

// load brings the tile of an access on chip.
func (e *Emitter) load(a *legal.Access, t box, pad bool) (*place, error) {
	if r := e.held[a.Buf]; r != nil {
		return e.inPlace(r, a, t, pad)
	}
	p := &place{stride: make([]int, len(t.lo)), elem: a.Buf.Elem}
	ws, n, ok := windows(a, t, pad)
	if !ok {
		p.imm = bits(p.elem, a.Fill)
		return p, nil
	}
	mem, err := e.take(e.scratch, n)
	if err != nil {
		return nil, err
	}
	p.mem = mem
	base := e.local(mem)
	p.addr = base
	size := int64(legal.Size(a.Buf.Mem()))
	at := e.Addr[a.Buf] + size*int64(a.Base)
	var ms []move
	for _, w := range ws {
		at += size * int64(w.from) * int64(w.axis.Stride)
		ms = append(ms, move{w.to - w.from, int64(w.axis.Stride), w.stride, w.from - w.lo, w.lo + w.n - w.to})
		origin := w.axis.Off
		for i, c := range w.axis.Coef {
			p.stride[i] += c * w.stride
			origin += c * t.lo[i]
		}
		p.addr += isa.Local(4 * w.stride * (origin - w.lo))
	}
	e.transfer(isa.OpLoad, a, at, base, ms)
	return p, nil
}

// move is a dimension of a transfer.
type move struct {
	n      int
	dram   int64
	local  int
	before int
	behind int
}

func (m move) padded() bool { return m.before+m.behind > 0 }

// transfer emits the DMA of a box, cut up where it has more dimensions than the machine takes. The local address is that of
// the first element, padding included.
func (e *Emitter) transfer(op isa.Op, a *legal.Access, dram int64, local isa.Local, ms []move) {
	ms = mergeMoves(ms)
	if len(ms) > isa.MoveDims {
		if slices.ContainsFunc(ms, move.padded) {
			total := 1 // with what lies between rows of an odd pitch
			for i := range ms {
				total += (ms[i].n + ms[i].before + ms[i].behind - 1) * ms[i].local
			}
			e.add(isa.OpMov, &isa.Vec{N: isa.Counts(int32(total)), Dst: isa.At(local, 1),
				A: isa.Operand{IsImm: true, Value: *bits(a.Buf.Elem, a.Fill)}, Type: dtype(a.Buf.Elem)})
			for i := range ms {
				local += isa.Local(4 * ms[i].before * ms[i].local)
				ms[i].before, ms[i].behind = 0, 0
			}
		}
		outer, rest := ms[0], ms[1:]
		for i := range outer.n {
			e.transfer(op, a, dram+int64(legal.Size(a.Buf.Mem())*i)*outer.dram, local+isa.Local(4*i*outer.local), slices.Clone(rest))
		}
		return
	}
	d := &isa.DMA{DRAM: dram, Local: local, Type: dtype(a.Buf.Mem()), LType: dtype(a.Buf.Elem), Purpose: e.purpose(a.Buf)}
	off := isa.MoveDims - len(ms)
	for i, m := range ms {
		d.N[off+i], d.DS[off+i], d.LS[off+i] = int32(m.n), m.dram, int32(m.local)
		d.Lo[off+i], d.Hi[off+i] = int32(m.before), int32(m.behind)
		if m.padded() {
			d.Fill = *bits(a.Buf.Elem, a.Fill)
		}
	}
	e.add(op, d)
}

// mergeMoves joins dimensions that continue each other and drops those of one element.
func mergeMoves(ms []move) []move {
	var out []move
	for _, m := range ms {
		if m.n == 1 && !m.padded() {
			continue
		}
		if last := len(out) - 1; last >= 0 && !m.padded() && !out[last].padded() &&
			out[last].dram == int64(m.n)*m.dram && out[last].local == m.n*m.local {
			out[last] = move{n: out[last].n * m.n, dram: m.dram, local: m.local}
			continue
		}
		out = append(out, m)
	}
	return out
}

// store writes a value of a tile through an access.
func (e *Emitter) store(a *legal.Access, v *place, t box) error {
	if r := e.held[a.Buf]; r != nil {
		if e.keep(r, a, v, t); !r.Through {
			return nil
		}
	}
	if v.imm != nil {
		var err error
		if v, err = e.spread(v, len(t.lo)); err != nil {
			return err
		}
		defer v.drop()
	}
	at, ms := e.moves(a, v, t)
	e.transfer(isa.OpStore, a, at, v.addr, ms)
	return nil
}

// spread returns an immediate as a value in memory, over n dimensions: one element, repeated by strides of 0.
func (e *Emitter) spread(v *place, n int) (*place, error) {
	mem, err := e.take(e.scratch, 1)
	if err != nil {
		return nil, err
	}
	e.add(isa.OpMov, &isa.Vec{Dst: isa.At(e.local(mem)), A: isa.Operand{IsImm: true, Value: *v.imm}, Type: dtype(v.elem)})
	return &place{mem: mem, addr: e.local(mem), stride: make([]int, n), elem: v.elem}, nil
}

// moves returns the transfer between a value of a tile and the elements of an access: the address in DRAM, and a dimension for each that
// the access follows, the one of smallest stride in DRAM innermost.
func (e *Emitter) moves(a *legal.Access, v *place, t box) (int64, []move) {
	size := int64(legal.Size(a.Buf.Mem()))
	at := e.Addr[a.Buf] + size*int64(a.Base)
	for _, x := range a.Axes {
		c := x.Off
		for i, f := range x.Coef {
			c += f * t.lo[i]
		}
		at += size * int64(c) * int64(x.Stride)
	}
	var ms []move
	for i := range t.lo {
		s := int64(0)
		for _, x := range a.Axes {
			s += int64(x.Stride) * int64(x.Coef[i])
		}
		if s != 0 {
			ms = append(ms, move{n: t.hi[i] - t.lo[i], dram: s, local: v.stride[i]})
		}
	}
	slices.SortStableFunc(ms, func(p, q move) int { return cmp.Compare(max(q.dram, -q.dram), max(p.dram, -p.dram)) })
	return at, ms
}
