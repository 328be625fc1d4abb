package emit

import (
	"gradtool/npu/isa"
	"gradtool/npu/legal"
)

// rowBudget is the number of words that the rows of one gather or scatter take on chip.
const rowBudget = 1 << 14

// rowTiles calls f for tiles of rows and columns of a gather or scatter.
func rowTiles(rows, width int, f func(t box) error) error {
	w := min(width, rowBudget)
	n := max(min(rows, rowBudget/w), 1)
	for i := 0; i < rows; i += n {
		for j := 0; j < width; j += w {
			if err := f(box{[]int{i, j}, []int{min(i+n, rows), min(j+w, width)}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// table returns the operands of a transfer of rows of a table: row 0, distance of rows, number of rows.
func (e *Emitter) table(a *legal.Access, rows int, t box, index *place) *isa.Gather {
	first := a.Base
	pitch := 0
	for _, x := range a.Axes {
		first += x.Stride * (x.Off + x.Coef[1]*t.lo[1])
		pitch += x.Stride * x.Coef[0]
	}
	d := t.dims()
	return &isa.Gather{Rows: int32(d[0]), Len: int32(d[1]), Index: index.addr, IndexS: int32(index.stride[0]), DRAM: e.Addr[a.Buf] + 4*int64(first),
		Pitch: int64(pitch), Limit: int32(rows), Type: dtype(a.Buf.Elem), Purpose: e.purpose(a.Buf)}
}

// Gather emits a gather in tiles.
func (e *Emitter) Gather(k *legal.Gather) error {
	return rowTiles(k.Rows, k.Width, func(t box) error {
		index, err := e.load(k.Index, box{t.lo[:1], t.hi[:1]}, false)
		if err != nil {
			return err
		}
		defer index.drop()
		d := t.dims()
		mem, err := e.take(e.scratch, d[0]*d[1])
		if err != nil {
			return err
		}
		defer mem.drop()
		g := e.table(k.Table, k.TableRows, t, index)
		g.Local, g.LPitch = e.local(mem), int32(d[1])
		e.add(isa.OpGather, g)
		return e.store(k.Out, &place{addr: g.Local, stride: []int{d[1], 1}, elem: k.Out.Buf.Elem}, t)
	})
}

// updates gives what a scatter does with a row that is there, by operation.
var updates = map[legal.Op]isa.Update{legal.Mov: isa.Set, legal.Add: isa.Add, legal.Mul: isa.Mul, legal.Max: isa.Max, legal.Min: isa.Min}

// Scatter emits a scatter in tiles, in order of rows.
func (e *Emitter) Scatter(k *legal.Scatter) error {
	return rowTiles(k.Rows, k.Width, func(t box) error {
		index, err := e.load(k.Index, box{t.lo[:1], t.hi[:1]}, false)
		if err != nil {
			return err
		}
		defer index.drop()
		from, err := e.load(k.From, t, false)
		if err != nil {
			return err
		}
		defer from.drop()
		d := t.dims()
		if from.imm != nil || from.stride[1] != 1 && d[1] > 1 {
			mem, err := e.take(e.scratch, d[0]*d[1])
			if err != nil {
				return err
			}
			defer mem.drop()
			to := &place{addr: e.local(mem), stride: []int{d[1], 1}, elem: from.elem}
			e.vec(isa.OpMov, from.elem, from.elem, d, 3, to, from)
			from = to
		}
		g := e.table(k.Table, k.TableRows, t, index)
		g.Local, g.LPitch, g.Update = from.addr, int32(from.stride[0]), updates[k.Mode]
		e.add(isa.OpScatter, g)
		return nil
	})
}
