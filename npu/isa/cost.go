package isa

import (
	"cmp"
	"math/bits"
	"slices"

	"gradtool/npu/machine"
)

// Work is what an instruction costs on a machine, as long as no other instruction contends with it for a memory.
type Work struct {
	// Cycles is the time for which the instruction occupies the unit of its queue.
	Cycles int64
	// Head is time before that which may pass under the instruction before: the latency of a DMA transfer, the first weights
	// of a matmul.
	Head int64
	// Tail is time from leaving the unit to the last result, in which the next instruction may run.
	Tail int64
	// MACs counts multiply-accumulates of the array, Elements those of the vector unit.
	MACs, Elements int64
	// Read and Written are the bytes that a transfer moves from and to DRAM; Busy are the bytes of DRAM bandwidth that it takes,
	// whole bursts.
	Read, Written, Busy int64
	// Scratch and Accum are the accesses to words of the memories.
	Scratch, Accum int64
	// Conflict is the factor by which bank conflicts slow the instruction down.
	Conflict int64
}

// Work returns the cost of an instruction that Check accepts. It depends on operands only, not on data.
func (in *Instr) Work(m *machine.Machine) Work {
	switch a := in.Args.(type) {
	case *DMA:
		return moveWork(m, in)
	case *Gather:
		return gatherWork(m, in, a)
	case *Matmul:
		return matmulWork(m, a)
	case *Vec:
		return vecWork(m, in.Op.Intrinsic(), a)
	case *Reduce:
		return reduceWork(m, in.Op.Intrinsic(), a)
	case *Scan:
		rows := total(a.N[:Dims-1])
		w := vectorWork(m, total(a.N[:]), ceil(rows, int64(m.Vector.Lanes))*int64(max(a.N[Dims-1], 1)))
		w.touch(m, &a.A, a.N, a.Type)
		w.touch(m, &a.Dst, a.N, a.Type)
		return w
	case *Arg:
		w := vectorWork(m, total(a.N[:]), ceil(total(a.N[:]), int64(m.Vector.Lanes)))
		w.touch(m, &a.A, a.N, a.Type)
		return w
	case *Iota:
		w := vectorWork(m, total(a.N[:]), ceil(total(a.N[:]), int64(m.Vector.Lanes)))
		w.touch(m, &a.Dst, a.N, I32)
		return w
	case *Rows:
		return rowsWork(m, a)
	}
	return Work{}
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

func total(n []int32) int64 {
	t := int64(1)
	for _, c := range n {
		t *= int64(max(c, 1))
	}
	return t
}

// count adds accesses to words of a memory.
func (w *Work) count(s Space, words int64) {
	switch s {
	case Scratch:
		w.Scratch += words
	case Accum:
		w.Accum += words
	}
}

// banks returns the number of banks of an on-chip memory.
func banks(m *machine.Machine, s Space) int {
	if s == Accum {
		return m.Accumulator.Banks
	}
	return m.Scratchpad.Banks
}

// conflict returns how many accesses of one group fall on one bank at most: the group is the first width elements of a box
// whose dimensions are given fastest first, with strides in elements of size bytes. Elements of one word are one access.
func conflict(m *machine.Machine, a Local, size int, n []int32, s []int64, width int) int64 {
	nb := int64(banks(m, a.Space()))
	var idx [2 * Dims]int32
	words := make([]int64, 0, width)
	at := a.Offset()
	for len(words) < width {
		words = append(words, at/machine.Word)
		d := 0
		for ; d < len(n); d++ {
			idx[d]++
			at += s[d] * int64(size)
			if idx[d] < max(n[d], 1) {
				break
			}
			at -= s[d] * int64(size) * int64(idx[d])
			idx[d] = 0
		}
		if d == len(n) {
			break
		}
	}
	slices.Sort(words)
	words = slices.Compact(words)
	for i := range words {
		words[i] = ((words[i] % nb) + nb) % nb
	}
	slices.Sort(words)
	most, run := 1, 1
	for i := 1; i < len(words); i++ {
		if words[i] == words[i-1] {
			run++
			most = max(most, run)
		} else {
			run = 1
		}
	}
	return int64(most)
}

// touch counts the accesses of an operand over a box, and its conflicts: the lanes take elements in the order of the box.
func (w *Work) touch(m *machine.Machine, o *Operand, n [Dims]int32, t DType) {
	if o.IsImm {
		return
	}
	distinct := int64(1)
	var rn [Dims]int32
	var rs [Dims]int64
	for i := range n {
		if o.S[i] != 0 {
			distinct *= int64(max(n[i], 1))
		}
		rn[Dims-1-i], rs[Dims-1-i] = n[i], int64(o.S[i])
	}
	e := total(n[:])
	c := conflict(m, o.Addr, t.Bytes(), rn[:], rs[:], min(m.Vector.Lanes, int(min(e, 1<<20))))
	w.Conflict = max(w.Conflict, c)
	// A broadcast along the inner dimensions is fetched once, along the outer ones each time.
	inner := int64(1)
	for i := Dims - 1; i >= 0 && (o.S[i] == 0 || n[i] <= 1); i-- {
		inner *= int64(max(n[i], 1))
	}
	w.count(o.Addr.Space(), max(distinct, e/inner))
}

// vectorWork is an instruction of the vector unit that takes cycles beside its issue.
func vectorWork(m *machine.Machine, elements, cycles int64) Work {
	return Work{Cycles: cycles, Head: int64(m.Vector.Issue), Elements: elements, Conflict: 1}
}

func vecWork(m *machine.Machine, d *Intrinsic, a *Vec) Work {
	e := total(a.N[:])
	rate := int64(m.Vector.Lanes)
	if d.Special && a.Type == F32 {
		rate = int64(m.Vector.Special)
	}
	w := vectorWork(m, e, ceil(e, rate))
	for i, o := range []*Operand{&a.A, &a.B, &a.C} {
		if i < d.Operands {
			w.touch(m, o, a.N, a.Type)
		}
	}
	w.touch(m, &a.Dst, a.N, resultType(d, a))
	if rate == int64(m.Vector.Lanes) {
		w.Cycles *= w.Conflict
	} else {
		w.Cycles = max(w.Cycles, ceil(e, int64(m.Vector.Lanes))*w.Conflict)
	}
	return w
}

// reduceWork: each result takes its elements in groups of 16, or of the next power of two where there are fewer.
func reduceWork(m *machine.Machine, d *Intrinsic, a *Reduce) Work {
	out := Dims - int(min(max(a.Red, 0), Dims))
	n, results := total(a.N[out:]), total(a.N[:out])
	group := int64(partials)
	if n < group {
		group = 1 << bits.Len64(uint64(n-1))
	}
	w := vectorWork(m, n*results, ceil(ceil(n, group)*group*results, int64(m.Vector.Lanes)))
	w.touch(m, &a.A, a.N, a.Type)
	if d.Op == OpDot {
		w.touch(m, &a.B, a.N, a.Type)
	}
	w.count(a.Dst.Addr.Space(), results)
	if a.Acc {
		w.count(a.Dst.Addr.Space(), results)
	}
	w.Cycles *= w.Conflict
	w.Tail = 4 // the levels of the tree
	return w
}

// rowsWork: a quarter of the lanes generate addresses of rows.
func rowsWork(m *machine.Machine, a *Rows) Work {
	lanes := int64(m.Vector.Lanes)
	e := int64(a.Rows) * int64(a.Len)
	w := vectorWork(m, e, max(ceil(e, lanes), ceil(int64(a.Rows), max(lanes/4, 1))))
	w.count(a.Index.Space(), int64(a.Rows))
	w.count(a.Local.Space(), e)
	w.count(a.Table.Space(), e)
	if a.Update != Set {
		w.count(a.Table.Space(), e)
	}
	return w
}

// side is an operand of a matmul as the array fetches it: vectors along the first dimension, or along the second if the
// machine has a transposer.
type side struct {
	m      *machine.Machine
	base   Local
	size   int
	n1, n2 [3]int32 // counts of the two dimensions
	s1, s2 [3]int32 // their strides
}

// fetch returns the cycles for count vectors of width elements along the first dimension, and the conflicts among the elements
// of a vector. Along the second dimension, blocks of depth vectors at a time take width fetches instead.
func (x *side) fetch(count, width, depth int64) (cycles, conflicts int64) {
	along := func(n, s [3]int32, width int64) int64 {
		return conflict(x.m, x.base, x.size, []int32{n[2], n[1], n[0]}, []int64{int64(s[2]), int64(s[1]), int64(s[0])}, int(width))
	}
	c := along(x.n1, x.s1, width)
	cycles, conflicts = count*c, c
	if c > 1 && x.m.Array.Transposer {
		d := along(x.n2, x.s2, min(depth, count))
		if turned := ceil(count, depth) * width * d; turned < cycles {
			cycles, conflicts = max(turned, count), d
		}
	}
	return cycles, conflicts
}

// matmulWork: weight-stationary, a fold holds Rows (times the rate of the type) of K by Cols of N and lets the rows of A
// stream through; output-stationary, it holds Rows of M by Cols of N and streams K. The closed form without overlap is
// folds * (T + 2 Rows + Cols - 2) - 1, T being what streams.
func matmulWork(m *machine.Machine, a *Matmul) Work {
	mm, nn, kk := int64(product(a.M)), int64(product(a.N)), int64(product(a.K))
	r, c := int64(m.Array.Rows), int64(m.Array.Cols)
	per := int64(max(m.Rate(a.Type.String()), 1))
	size := a.Type.Bytes()
	right := side{m, a.B, size, a.N, a.K, a.BN, a.BK}
	w := Work{MACs: mm * nn * kk}
	var folds, stream, load, da, db int64
	if a.Flow == WS {
		left := side{m, a.A, size, a.K, a.M, a.AK, a.AM}
		folds = ceil(kk, r*per) * ceil(nn, c)
		stream, da = left.fetch(mm, min(kk, r*per), r)
		load, db = right.fetch(min(r, ceil(kk, per)), min(nn, c), r)
		w.Scratch = wordsOf(mm*kk*ceil(nn, c), size) + wordsOf(kk*nn, size)
		w.Accum = mm * nn * (2*ceil(kk, r*per) - 1)
	} else {
		left := side{m, a.A, size, a.M, a.K, a.AM, a.AK}
		var other int64
		folds = ceil(mm, r) * ceil(nn, c)
		stream, da = left.fetch(ceil(kk, per), min(mm, r), r)
		other, db = right.fetch(ceil(kk, per), min(nn, c), r)
		stream = max(stream, other)
		load = min(r, mm)
		w.Scratch = wordsOf(mm*kk*ceil(nn, c), size) + wordsOf(kk*nn*ceil(mm, r), size)
		w.Accum = mm * nn
	}
	if a.Acc {
		w.Accum += mm * nn
	}
	w.Conflict = max(da, db)
	w.Head = int64(m.Array.Issue)
	if !m.Array.Overlap {
		w.Cycles = folds*(stream+2*r+c-2) - 1
		return w
	}
	w.Cycles = folds * max(stream, load)
	if a.Flow == WS {
		w.Head += load
	}
	w.Tail = r + c - 2
	return w
}

func wordsOf(elements int64, size int) int64 { return ceil(elements*int64(size), machine.Word) }

// sampleRuns is the number of runs from which the bursts of a transfer are extrapolated.
const sampleRuns = 1024

// bursts returns the DRAM bandwidth that an access takes, in bytes: each burst that a run touches, but not again the last one
// of the run before.
func bursts(m *machine.Machine, a *Access) int64 {
	b := int64(m.DMA.Burst)
	_, runs := a.Run()
	n, seen, last := int64(0), int64(0), int64(-1)
	a.Runs(func(lo, hi int64) bool {
		first, end := lo/b, (hi-1)/b
		if first == last {
			first++
		}
		n += end - first + 1
		last = end
		seen++
		return seen < sampleRuns
	})
	if seen < runs {
		n = int64(float64(n) / float64(seen) * float64(runs))
	}
	return n * b
}

func moveWork(m *machine.Machine, in *Instr) Work {
	a := in.Args.(*DMA)
	w := Work{Head: int64(m.DMA.Latency), Conflict: 1}
	acc := in.Effects(nil)
	for i := range acc {
		e := &acc[i]
		if e.Space != DRAM {
			w.count(e.Space, ceil(e.Bytes(), machine.Word))
			continue
		}
		w.Busy += bursts(m, e)
		if e.Write {
			w.Written += e.Bytes()
		} else {
			w.Read += e.Bytes()
		}
	}
	// The local side sees the elements in the order of DRAM addresses.
	type axis struct {
		n  int32
		ds int64
		ls int64
	}
	var dims []axis
	for i, n := range a.N {
		if n > 1 && a.DS[i] != 0 {
			dims = append(dims, axis{n, max(a.DS[i], -a.DS[i]), int64(a.LS[i])})
		}
	}
	slices.SortStableFunc(dims, func(x, y axis) int { return cmp.Compare(x.ds, y.ds) })
	var n []int32
	var s []int64
	for _, d := range dims {
		n, s = append(n, d.n), append(s, d.ls)
	}
	width := max(m.DMA.BytesPerCycle/machine.Word, 1)
	w.Conflict = conflict(m, a.Local, a.LType.Bytes(), n, s, width)
	local := w.Scratch + w.Accum
	w.Cycles = max(ceil(w.Busy, int64(m.DMA.BytesPerCycle)), ceil(local*w.Conflict, int64(width)), 1)
	return w
}

func gatherWork(m *machine.Machine, in *Instr, a *Gather) Work {
	w := Work{Head: int64(m.DMA.Latency), Conflict: 1}
	row := int64(a.Len) * int64(a.Type.Bytes())
	bytes := row * int64(a.Rows)
	b := int64(m.DMA.Burst)
	// A row begins anywhere in a burst unless all rows begin at one.
	per := ceil(row, b)
	if a.DRAM%b != 0 || a.Pitch*int64(a.Type.Bytes())%b != 0 {
		per = ceil(row+b-machine.Word, b)
	}
	passes := int64(1)
	if in.Op == OpGather {
		w.Read = bytes
	} else {
		w.Written = bytes
		if a.Update != Set {
			w.Read = bytes
			passes = 2
		}
	}
	w.Busy = per * b * int64(a.Rows) * passes
	w.count(a.Index.Space(), int64(a.Rows))
	w.count(a.Local.Space(), bytes/machine.Word)
	w.Cycles = max(ceil(w.Busy, int64(m.DMA.BytesPerCycle)), int64(a.Rows), 1)
	return w
}
