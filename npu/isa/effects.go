package isa

// Effects appends what an instruction reads and writes to list. It knows the operands only, not data: a table of rows counts
// as touched in all its rows.
func (in *Instr) Effects(list []Access) []Access {
	switch a := in.Args.(type) {
	case *DMA:
		return dmaEffects(list, in.Op, a)
	case *Gather:
		return gatherEffects(list, in.Op, a)
	case *Matmul:
		return matmulEffects(list, a)
	case *Vec:
		return vecEffects(list, in.Op, a)
	case *Reduce:
		n, red := a.N[:], outer(a.N, a.Red)
		list = operandAccess(list, "a", &a.A, a.Type, n, false)
		if in.Op == OpDot {
			list = operandAccess(list, "b", &a.B, a.Type, n, false)
		}
		if a.Acc {
			list = operandAccess(list, "dst", &a.Dst, a.Type, red, false)
		}
		return operandAccess(list, "dst", &a.Dst, a.Type, red, true)
	case *Scan:
		list = operandAccess(list, "a", &a.A, a.Type, a.N[:], false)
		return operandAccess(list, "dst", &a.Dst, a.Type, a.N[:], true)
	case *Arg:
		list = operandAccess(list, "a", &a.A, a.Type, a.N[:], false)
		return operandAccess(list, "dst", &a.Dst, I32, outer(a.N, a.Red), true)
	case *Iota:
		return operandAccess(list, "dst", &a.Dst, I32, a.N[:], true)
	case *Rows:
		return rowsEffects(list, in.Op, a)
	}
	return list
}

// outer returns the counts of the dimensions outside the inner red ones.
func outer(n [Dims]int32, red int32) []int32 { return n[:Dims-min(max(red, 0), Dims)] }

// operandAccess appends the access of an operand over counts, which are those of the outer dimensions.
func operandAccess(list []Access, name string, o *Operand, t DType, n []int32, write bool) []Access {
	if o.IsImm {
		return list
	}
	var strides [Dims]int64
	for i := range n {
		strides[i] = int64(o.S[i]) * int64(t.Bytes())
	}
	return append(list, newAccess(name, o.Addr.Space(), o.Addr.Offset(), t.Bytes(), n, strides[:len(n)], write))
}

// moveAccess appends an access with strides in elements.
func moveAccess[S int32 | int64](list []Access, name string, space Space, addr int64, t DType, n []int32, s []S, write bool) []Access {
	var strides [2 * Dims]int64
	for i := range n {
		strides[i] = int64(s[i]) * int64(t.Bytes())
	}
	return append(list, newAccess(name, space, addr, t.Bytes(), n, strides[:len(n)], write))
}

func dmaEffects(list []Access, op Op, a *DMA) []Access {
	local := a.N
	if op == OpLoad {
		for i := range local {
			local[i] = max(a.N[i], 1) + a.Lo[i] + a.Hi[i]
		}
		list = moveAccess(list, "dram", DRAM, a.DRAM, a.Type, a.N[:], a.DS[:], false)
		return moveAccess(list, "local", a.Local.Space(), a.Local.Offset(), a.LType, local[:], a.LS[:], true)
	}
	list = moveAccess(list, "local", a.Local.Space(), a.Local.Offset(), a.LType, local[:], a.LS[:], false)
	if a.Update != Set {
		list = moveAccess(list, "dram", DRAM, a.DRAM, a.Type, a.N[:], a.DS[:], false)
	}
	return moveAccess(list, "dram", DRAM, a.DRAM, a.Type, a.N[:], a.DS[:], true)
}

func gatherEffects(list []Access, op Op, a *Gather) []Access {
	list = moveAccess(list, "index", a.Index.Space(), a.Index.Offset(), I32, []int32{a.Rows}, []int32{a.IndexS}, false)
	local := func(write bool) {
		list = moveAccess(list, "local", a.Local.Space(), a.Local.Offset(), a.Type, []int32{a.Rows, a.Len}, []int32{a.LPitch, 1}, write)
	}
	table := func(write bool) {
		list = moveAccess(list, "dram", DRAM, a.DRAM, a.Type, []int32{a.Limit, a.Len}, []int64{a.Pitch, 1}, write)
		list[len(list)-1].Table = true
	}
	if op == OpGather {
		table(false)
		local(true)
		return list
	}
	local(false)
	if a.Update != Set {
		table(false)
	}
	table(true)
	return list
}

func matmulEffects(list []Access, a *Matmul) []Access {
	list = moveAccess(list, "a", a.A.Space(), a.A.Offset(), a.Type, join(a.M, a.K), join(a.AM, a.AK), false)
	list = moveAccess(list, "b", a.B.Space(), a.B.Offset(), a.Type, join(a.K, a.N), join(a.BK, a.BN), false)
	c := func(write bool) {
		list = moveAccess(list, "c", a.C.Space(), a.C.Offset(), F32, []int32{product(a.M), product(a.N)}, []int32{a.CM, 1}, write)
	}
	if a.Acc {
		c(false)
	}
	c(true)
	return list
}

func join(a, b [3]int32) []int32 { return []int32{a[0], a[1], a[2], b[0], b[1], b[2]} }

// product returns the number of index tuples of three counts.
func product(n [3]int32) int32 { return max(n[0], 1) * max(n[1], 1) * max(n[2], 1) }

func vecEffects(list []Access, op Op, a *Vec) []Access {
	d := op.Intrinsic()
	if d.Operands >= 1 {
		list = operandAccess(list, "a", &a.A, a.Type, a.N[:], false)
	}
	if d.Operands >= 2 {
		list = operandAccess(list, "b", &a.B, a.Type, a.N[:], false)
	}
	if d.Operands >= 3 {
		list = operandAccess(list, "c", &a.C, a.Type, a.N[:], false)
	}
	return operandAccess(list, "dst", &a.Dst, resultType(d, a), a.N[:], true)
}

// resultType returns the type of an element-wise instruction's result.
func resultType(d *Intrinsic, a *Vec) DType {
	switch {
	case d.Op == OpCvt:
		return a.To
	case d.FCmp != nil:
		return I32
	}
	return a.Type
}

func rowsEffects(list []Access, op Op, a *Rows) []Access {
	list = moveAccess(list, "index", a.Index.Space(), a.Index.Offset(), I32, []int32{a.Rows}, []int32{a.IndexS}, false)
	local := func(write bool) {
		list = moveAccess(list, "local", a.Local.Space(), a.Local.Offset(), a.Type, []int32{a.Rows, a.Len}, []int32{a.LPitch, a.LStep}, write)
	}
	table := func(write bool) {
		list = moveAccess(list, "table", a.Table.Space(), a.Table.Offset(), a.Type, []int32{a.Limit, a.Len}, []int32{a.Pitch, a.TS}, write)
		list[len(list)-1].Table = true
	}
	if op == OpRowsGet {
		table(false)
		local(true)
		return list
	}
	local(false)
	if a.Update != Set {
		table(false)
	}
	table(true)
	return list
}

// Touched returns the rows of the table that a gather or scatter reads and writes, given its indices. Rows out of range are
// left out.
func (a *Gather) Touched(s *Core, op Op) []Access {
	idx, w := s.words(a.Index)
	return touched("dram", op == OpGather, a.Update, int(a.Rows), a.Limit, func(r int) int32 { return int32(idx[w+r*int(a.IndexS)]) }, func(list []Access, row int64, write bool) []Access {
		return moveAccess(list, "dram", DRAM, a.DRAM+row*a.Pitch*int64(a.Type.Bytes()), a.Type, []int32{a.Len}, []int64{1}, write)
	})
}

// Touched is the same for tables on chip.
func (a *Rows) Touched(s *Core, op Op) []Access {
	idx, w := s.words(a.Index)
	return touched("table", op == OpRowsGet, a.Update, int(a.Rows), a.Limit, func(r int) int32 { return int32(idx[w+r*int(a.IndexS)]) }, func(list []Access, row int64, write bool) []Access {
		return moveAccess(list, "table", a.Table.Space(), a.Table.Offset()+row*int64(a.Pitch)*4, a.Type, []int32{a.Len}, []int32{a.TS}, write)
	})
}

func touched(name string, get bool, u Update, rows int, limit int32, index func(int) int32, access func([]Access, int64, bool) []Access) []Access {
	var list []Access
	seen := map[int64]bool{}
	for r := range rows {
		at, ok := row(index(r), limit)
		if !ok {
			continue
		}
		if get || u != Set && !seen[at] {
			list = access(list, at, false)
		}
		if !get && !seen[at] {
			list = access(list, at, true)
		}
		seen[at] = true
	}
	return list
}
