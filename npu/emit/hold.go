package emit

import (
	"slices"

	"gradtool/graph"
	"gradtool/npu/isa"
	"gradtool/npu/legal"
)

// Resident is where a buffer lies in the scratchpad while several kernels run: rows of so many elements, so many words apart.
type Resident struct {
	At         int // in bytes
	Row, Pitch int
	// Through says that what is written goes to DRAM as well.
	Through bool
}

// Rows returns a layout of a buffer of n elements for the accesses given, each with the dimensions of its kernel: pitches are odd
// where rows of the buffer suit all of them, so that elements below each other lie in different banks.
func Rows(n int, accesses []*legal.Access, dims [][]int) Resident {
	var sizes []int
	for _, a := range accesses {
		for _, x := range a.Axes {
			if s := max(x.Stride, -x.Stride); s >= oddFrom && s < n && n%s == 0 {
				sizes = append(sizes, s)
			}
		}
	}
	slices.Sort(sizes)
	for _, row := range slices.Compact(sizes) {
		suits := true
		for i, a := range accesses {
			suits = suits && rowsSuit(row, a, dims[i])
		}
		if suits {
			return Resident{Row: row, Pitch: odd(row)}
		}
	}
	return Resident{Row: n, Pitch: n}
}

// rowsSuit reports whether an access steps from row to row or inside of one.
func rowsSuit(row int, a *legal.Access, dims []int) bool {
	lo := make([]int, len(dims))
	least := (a.Base%row + row) % row
	most := least
	for i := range a.Axes {
		x := &a.Axes[i]
		if x.Stride%row == 0 {
			continue
		}
		l, h := x.Range(lo, dims)
		l, h = max(l, 0)*x.Stride, min(h, x.Size-1)*x.Stride
		least, most = least+min(l, h), most+max(l, h)
	}
	return least >= 0 && most < row
}

// Words returns the words that a buffer of n elements takes.
func (r *Resident) Words(n int) int { return ceilDiv(n, r.Row) * r.Pitch }

// word returns the place of an element.
func (r *Resident) word(at int) int { return at/r.Row*r.Pitch + at%r.Row }

// step returns how far apart the places are of elements that are s elements apart.
func (r *Resident) step(s int) int {
	if s%r.Row == 0 {
		return s / r.Row * r.Pitch
	}
	return s
}

// Hold says which buffers lie in the scratchpad while the next kernels run, in the order given. Kernels read and write them there, and have
// the rest of the scratchpad.
func (e *Emitter) Hold(buffers []*legal.Buffer, at map[*legal.Buffer]*Resident) {
	e.held = map[*legal.Buffer]*Resident{}
	var taken []span
	for _, b := range buffers {
		r := at[b]
		e.held[b] = r
		taken = append(taken, span{r.At, r.At + (4*r.Words(b.Len)+align-1)/align*align})
	}
	e.scratch.reserve(taken)
}

// Assume makes estimates take buffers for held, wherever they may lie.
func (e *Emitter) Assume(held map[*legal.Buffer]*Resident) { e.held = held }

// fetchWords is the size of the transfers in which a buffer is brought on chip: what is in one can be used while the next is under way.
const fetchWords = 8192

// Fetch loads all of a buffer that is held.
func (e *Emitter) Fetch(b *legal.Buffer, k legal.Kernel) {
	e.role = k.Origin().Role
	r := e.held[b]
	a := &legal.Access{Buf: b}
	part := max(fetchWords/r.Row, 1)
	for at := 0; at*r.Row < b.Len; at += part {
		n := min(part, b.Len/r.Row-at)
		e.transfer(isa.OpLoad, a, e.Addr[b]+4*int64(at)*int64(r.Row), isa.Local(r.At+4*at*r.Pitch),
			[]move{{n: n, dram: int64(r.Row), local: r.Pitch}, {n: r.Row, dram: 1, local: 1}})
	}
}

// inPlace returns the tile of an access to a buffer that is on chip: in its place, or a copy if it has a border.
func (e *Emitter) inPlace(r *Resident, a *legal.Access, t box, pad bool) (*place, error) {
	p := &place{stride: make([]int, len(t.lo)), elem: a.Buf.Elem}
	ws, n, ok := windows(a, t, pad)
	if !ok {
		p.imm = bits(p.elem, a.Fill)
		return p, nil
	}
	at := a.Base
	border := false
	for _, w := range ws {
		at += w.from * w.axis.Stride
		border = border || w.from > w.lo || w.to < w.lo+w.n
	}
	from := isa.Local(r.At + 4*r.word(at))
	if !border {
		p.addr = from
		for _, w := range ws {
			origin := w.axis.Off
			for i, c := range w.axis.Coef {
				p.stride[i] += c * r.step(w.axis.Stride)
				origin += c * t.lo[i]
			}
			p.addr += isa.Local(4 * r.step(w.axis.Stride) * (origin - w.from))
		}
		return p, nil
	}
	mem, err := e.take(e.scratch, n)
	if err != nil {
		return nil, err
	}
	p.mem = mem
	base := e.local(mem)
	p.addr = base
	e.add(isa.OpMov, &isa.Vec{N: isa.Counts(int32(n)), Dst: isa.At(base, 1), A: isa.Operand{IsImm: true, Value: *bits(p.elem, a.Fill)}, Type: dtype(p.elem)})
	var ls []level
	for _, w := range ws {
		origin := w.axis.Off
		for i, c := range w.axis.Coef {
			p.stride[i] += c * w.stride
			origin += c * t.lo[i]
		}
		p.addr += isa.Local(4 * w.stride * (origin - w.lo))
		base += isa.Local(4 * w.stride * (w.from - w.lo))
		if w.to-w.from > 1 {
			ls = appendLevel(ls, level{n: w.to - w.from, s: [4]int{w.stride, r.step(w.axis.Stride)}})
		}
	}
	e.vecLevels(isa.OpMov, dtype(p.elem), dtype(p.elem), ls, []*place{{addr: base}, {addr: from}})
	return p, nil
}

// keep copies a value of a tile to where a buffer lies on chip.
func (e *Emitter) keep(r *Resident, a *legal.Access, v *place, t box) {
	at := a.Base
	for _, x := range a.Axes {
		c := x.Off
		for i, f := range x.Coef {
			c += f * t.lo[i]
		}
		at += c * x.Stride
	}
	to := &place{addr: isa.Local(r.At + 4*r.word(at)), stride: make([]int, len(t.lo)), elem: v.elem}
	moves := uint32(0)
	for _, x := range a.Axes {
		for i, c := range x.Coef {
			if c != 0 {
				to.stride[i] += c * r.step(x.Stride)
				moves |= 1 << i
			}
		}
	}
	typ := v.elem
	if typ == graph.Undefined {
		typ = a.Buf.Elem
	}
	e.vec(isa.OpMov, typ, typ, t.dims(), moves, to, v)
}
