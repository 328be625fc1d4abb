package isa

import (
	"fmt"
	"sync"
)

// Exec carries out an instruction that Check accepts. Errors are indices out of range.
func (s *Core) Exec(in *Instr) error {
	switch a := in.Args.(type) {
	case *DMA:
		if in.Op == OpLoad {
			s.load(a)
		} else {
			s.store(a)
		}
	case *Gather:
		return s.gather(in.Op, a)
	case *Matmul:
		s.matmul(a)
	case *Vec:
		s.vec(in.Op.Intrinsic(), a)
	case *Reduce:
		s.reduce(in.Op.Intrinsic(), a)
	case *Scan:
		s.scan(in.Op.Intrinsic(), a)
	case *Arg:
		s.arg(in.Op.Intrinsic(), a)
	case *Iota:
		s.iota(a)
	case *Rows:
		return s.rows(in.Op, a)
	}
	return nil
}

// loop calls f for each index tuple of counts, outermost first, with the offsets that the strides give; a count of 0 is 1.
// Each element of strides has the strides of one operand.
func loop(n []int32, strides [][]int64, f func(off []int64)) {
	off := make([]int64, len(strides))
	idx := make([]int32, len(n))
	for {
		f(off)
		d := len(n) - 1
		for ; d >= 0; d-- {
			idx[d]++
			for k := range off {
				off[k] += strides[k][d]
			}
			if idx[d] < n[d] {
				break
			}
			for k := range off {
				off[k] -= strides[k][d] * int64(idx[d])
			}
			idx[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// plan merges the dimensions that all operands run through evenly and drops those of one element; the result has at least
// one dimension. Strides are indexed by operand and dimension.
func plan(n []int32, strides [][]int64) ([]int32, [][]int64) {
	counts := make([]int32, 0, len(n))
	out := make([][]int64, len(strides))
	for d := len(n) - 1; d >= 0; d-- {
		if n[d] <= 1 {
			continue
		}
		even := len(counts) > 0 && int64(n[d])*int64(counts[len(counts)-1]) < 1<<31
		for k := range strides {
			if even && strides[k][d] != out[k][len(counts)-1]*int64(counts[len(counts)-1]) {
				even = false
			}
		}
		if even {
			counts[len(counts)-1] *= n[d]
			continue
		}
		counts = append(counts, n[d])
		for k := range strides {
			out[k] = append(out[k], strides[k][d])
		}
	}
	if len(counts) == 0 {
		counts = append(counts, 1)
		for k := range out {
			out[k] = append(out[k], 0)
		}
	}
	for i, j := 0, len(counts)-1; i < j; i, j = i+1, j-1 {
		counts[i], counts[j] = counts[j], counts[i]
		for k := range out {
			out[k][i], out[k][j] = out[k][j], out[k][i]
		}
	}
	return counts, out
}

func widths[S int32 | int64](s []S) []int64 {
	out := make([]int64, len(s))
	for i, v := range s {
		out[i] = int64(v)
	}
	return out
}

// parallel calls f on consecutive parts of [0, n), on several goroutines where the work, in elements, is worth it.
func (s *Core) parallel(n int, work int64, f func(lo, hi int)) {
	w := min(s.Workers, n, int(work>>15))
	if w <= 1 {
		f(0, n)
		return
	}
	var wg sync.WaitGroup
	for i := range w {
		wg.Go(func() { f(n*i/w, n*(i+1)/w) })
	}
	wg.Wait()
}

func (s *Core) load(a *DMA) {
	local, lw := s.words(a.Local)
	dram := s.mem[DRAM]
	n := a.N
	lo, padded := int64(0), false
	var total [MoveDims]int32
	for i := range n {
		n[i] = max(n[i], 1)
		total[i] = n[i] + a.Lo[i] + a.Hi[i]
		lo += int64(a.Lo[i]) * int64(a.LS[i])
		padded = padded || total[i] != n[i]
	}
	small := a.LType.Bytes() != 4
	base := a.Local.Offset() / int64(a.LType.Bytes())
	if !small {
		base = int64(lw)
	}
	if padded {
		counts, st := plan(total[:], [][]int64{widths(a.LS[:])})
		loop(counts, st, func(off []int64) {
			if small {
				putSmall(local, (base+off[0])*2, a.LType, uint32(a.Fill))
			} else {
				local[base+off[0]] = uint32(a.Fill)
			}
		})
	}
	base += lo
	counts, st := plan(n[:], [][]int64{a.DS[:], widths(a.LS[:])})
	last := len(counts) - 1
	run, ds, ls := int64(counts[last]), st[0][last], st[1][last]
	size := int64(a.Type.Bytes())
	loop(counts[:last], [][]int64{st[0][:last], st[1][:last]}, func(off []int64) {
		src, dst := off[0], base+off[1]
		switch {
		case size == 4 && ds == 1 && ls == 1:
			w := a.DRAM/4 + src
			copy(local[dst:dst+run], dram[w:w+run])
		case size == 4:
			w := a.DRAM/4 + src
			for i := range run {
				local[dst+i*ls] = dram[w+i*ds]
			}
		default:
			for i := range run {
				v := getSmall(dram, a.DRAM+(src+i*ds)*size, a.Type)
				if small {
					putSmall(local, (dst+i*ls)*2, a.LType, v)
				} else {
					local[dst+i*ls] = widen(a.Type, v)
				}
			}
		}
	})
}

func (s *Core) store(a *DMA) {
	local, lw := s.words(a.Local)
	dram := s.mem[DRAM]
	small := a.LType.Bytes() != 4
	base := a.Local.Offset() / int64(a.LType.Bytes())
	if !small {
		base = int64(lw)
	}
	counts, st := plan(a.N[:], [][]int64{a.DS[:], widths(a.LS[:])})
	last := len(counts) - 1
	run, ds, ls := int64(counts[last]), st[0][last], st[1][last]
	size := int64(a.Type.Bytes())
	loop(counts[:last], [][]int64{st[0][:last], st[1][:last]}, func(off []int64) {
		dst, src := off[0], base+off[1]
		switch {
		case size == 4 && a.Update == Set && ds == 1 && ls == 1:
			w := a.DRAM/4 + dst
			copy(dram[w:w+run], local[src:src+run])
		case size == 4:
			w := a.DRAM/4 + dst
			for i := range run {
				p := &dram[w+i*ds]
				*p = s.update(a.Update, a.Type, *p, local[src+i*ls])
			}
		default:
			for i := range run {
				var v uint32
				if small {
					v = getSmall(local, (src+i*ls)*2, a.LType)
				} else {
					v = narrow(a.Type, local[src+i*ls])
				}
				putSmall(dram, a.DRAM+(dst+i*ds)*size, a.Type, v)
			}
		}
	})
}

// updateOps are the element-wise instructions whose functions the updates use.
var updateOps = [numUpdates]Op{Set: OpMov, Add: OpAdd, Mul: OpMul, Max: OpMax, Min: OpMin}

// update combines an old word with a new one.
func (s *Core) update(u Update, t DType, old, v uint32) uint32 {
	if u == Set {
		return v
	}
	d := &Intrinsics[updateOps[u]]
	if t == I32 {
		return uint32(d.I32(int32(old), int32(v), 0))
	}
	return s.scalarF32(d, old, v, 0)
}

// row returns the number of the row that an index names, and whether there is one.
func row(index, limit int32) (int64, bool) {
	if index < 0 {
		index += limit
	}
	return int64(index), index >= 0 && index < limit
}

func (s *Core) gather(op Op, a *Gather) error {
	idx, iw := s.words(a.Index)
	local, lw := s.words(a.Local)
	dram := s.mem[DRAM][a.DRAM/4:]
	n := int64(a.Len)
	for r := range int64(a.Rows) {
		i := int32(idx[int64(iw)+r*int64(a.IndexS)])
		row, ok := row(i, a.Limit)
		at := int64(lw) + r*int64(a.LPitch)
		l := local[at : at+n]
		switch {
		case !ok && !a.Skip:
			return fmt.Errorf("index %d of row %d is not in a table of %d rows", i, r, a.Limit)
		case !ok && op == OpGather:
			for j := range l {
				l[j] = uint32(a.Fill)
			}
		case !ok:
		case op == OpGather:
			copy(l, dram[row*a.Pitch:])
		default:
			t := dram[row*a.Pitch:]
			for j, v := range l {
				t[j] = s.update(a.Update, a.Type, t[j], v)
			}
		}
	}
	return nil
}

func (s *Core) rows(op Op, a *Rows) error {
	idx, iw := s.words(a.Index)
	local, lw := s.words(a.Local)
	table, tw := s.words(a.Table)
	for r := range int64(a.Rows) {
		i := int32(idx[int64(iw)+r*int64(a.IndexS)])
		row, ok := row(i, a.Limit)
		if !ok && !a.Skip {
			return fmt.Errorf("index %d of row %d is not in a table of %d rows", i, r, a.Limit)
		}
		at, tt := int64(lw)+r*int64(a.LPitch), int64(tw)+row*int64(a.Pitch)
		for range a.Len {
			switch {
			case !ok && op == OpRowsGet:
				local[at] = uint32(a.Fill)
			case !ok:
			case op == OpRowsGet:
				local[at] = table[tt]
			default:
				table[tt] = s.update(a.Update, a.Type, table[tt], local[at])
			}
			at += int64(a.LStep)
			tt += int64(a.TS)
		}
	}
	return nil
}

func (s *Core) iota(a *Iota) {
	mem, w := s.words(a.Dst.Addr)
	loop(a.N[:], [][]int64{widths(a.Dst.S[:]), widths(a.Step[:])}, func(off []int64) {
		mem[int64(w)+off[0]] = uint32(a.Start + int32(off[1]))
	})
}
