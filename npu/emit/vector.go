package emit

import (
	"gradtool/graph"
	"gradtool/npu/isa"
	"gradtool/npu/legal"
)

// vecOps gives the instruction of each operation; [legal.Not], [legal.Half] and others without one are built.
var vecOps = map[legal.Op]isa.Op{
	legal.Mov: isa.OpMov, legal.Neg: isa.OpNeg, legal.Abs: isa.OpAbs, legal.Sign: isa.OpSign, legal.Floor: isa.OpFloor, legal.Ceil: isa.OpCeil,
	legal.Round: isa.OpRound, legal.Trunc: isa.OpTrunc, legal.Sqrt: isa.OpSqrt, legal.Rsqrt: isa.OpRsqrt, legal.Rcp: isa.OpRecip,
	legal.Exp: isa.OpExp, legal.Expm1: isa.OpExpm1, legal.Log: isa.OpLog, legal.Log1p: isa.OpLog1p, legal.Sin: isa.OpSin, legal.Cos: isa.OpCos,
	legal.Tan: isa.OpTan, legal.Asin: isa.OpAsin, legal.Acos: isa.OpAcos, legal.Atan: isa.OpAtan, legal.Sinh: isa.OpSinh, legal.Cosh: isa.OpCosh,
	legal.Tanh: isa.OpTanh, legal.Asinh: isa.OpAsinh, legal.Acosh: isa.OpAcosh, legal.Atanh: isa.OpAtanh, legal.Sigmoid: isa.OpSigmoid,
	legal.Erf: isa.OpErf, legal.Add: isa.OpAdd, legal.Sub: isa.OpSub, legal.Mul: isa.OpMul, legal.Div: isa.OpDiv, legal.Rem: isa.OpMod,
	legal.Max: isa.OpMax, legal.Min: isa.OpMin, legal.Pow: isa.OpPow, legal.And: isa.OpAnd, legal.Or: isa.OpOr, legal.Xor: isa.OpXor,
	legal.Shl: isa.OpShl, legal.Shr: isa.OpShr, legal.Sar: isa.OpSar, legal.Eq: isa.OpEq, legal.Ne: isa.OpNe, legal.Lt: isa.OpLt, legal.Le: isa.OpLe,
	legal.Cast: isa.OpCvt, legal.Select: isa.OpSelect, legal.Sum: isa.OpSum, legal.Prod: isa.OpProd, legal.ReduceMax: isa.OpRMax, legal.ReduceMin: isa.OpRMin,
}

// level is a dimension of a vector instruction: n elements, with a stride for each operand.
type level struct {
	n int
	s [4]int // dst, a, b, c
}

// levels returns the dimensions over which operands, of which there are at most four, run, joined where all continue.
func levels(dims []int, mask uint32, operands []*place) []level {
	var out []level
	for i, n := range dims {
		if mask>>i&1 == 0 || n == 1 {
			continue
		}
		l := level{n: n}
		for j, p := range operands {
			if p != nil && p.imm == nil {
				l.s[j] = p.stride[i]
			}
		}
		out = appendLevel(out, l)
	}
	return out
}

func appendLevel(out []level, l level) []level {
	last := len(out) - 1
	if last >= 0 {
		joined := true
		for j := range l.s {
			joined = joined && out[last].s[j] == l.n*l.s[j]
		}
		if joined {
			out[last] = level{out[last].n * l.n, l.s}
			return out
		}
	}
	return append(out, l)
}

// operand returns p as operand j of an instruction over the levels.
func operand(p *place, ls []level, j int) isa.Operand {
	if p == nil {
		panic("emit: an operand that is not on chip") // else it would be the word at address 0
	}
	if p.imm != nil {
		return isa.Operand{IsImm: true, Value: *p.imm}
	}
	o := isa.Operand{Addr: p.addr}
	for i, l := range ls {
		o.S[isa.Dims-len(ls)+i] = int32(l.s[j])
	}
	return o
}

func counts(ls []level) [isa.Dims]int32 {
	var n [isa.Dims]int32
	for i, l := range ls {
		n[isa.Dims-len(ls)+i] = int32(l.n)
	}
	return n
}

// at returns p moved by i steps of level l.
func (p *place) at(l level, j, i int) *place {
	if p == nil || p.imm != nil {
		return p
	}
	q := *p
	q.addr += isa.Local(4 * i * l.s[j])
	return &q
}

// vec emits an element-wise instruction over the dimensions in mask, several if they are too many.
func (e *Emitter) vec(op isa.Op, typ, to graph.DataType, dims []int, mask uint32, dst *place, args ...*place) {
	all := append([]*place{dst}, args...)
	e.vecLevels(op, dtype(typ), dtype(to), levels(dims, mask, all), all)
}

func (e *Emitter) vecLevels(op isa.Op, typ, to isa.DType, ls []level, all []*place) {
	if len(ls) > isa.Dims {
		for i := range ls[0].n {
			moved := make([]*place, len(all))
			for j, p := range all {
				moved[j] = p.at(ls[0], j, i)
			}
			e.vecLevels(op, typ, to, ls[1:], moved)
		}
		return
	}
	v := &isa.Vec{N: counts(ls), Dst: operand(all[0], ls, 0), Type: typ}
	if op == isa.OpCvt {
		v.To = to
	}
	for j, o := range []*isa.Operand{&v.A, &v.B, &v.C} {
		if j+1 < len(all) {
			*o = operand(all[j+1], ls, j+1)
		}
	}
	e.add(op, v)
}

// reduce emits a reduction: kept dimensions outside, reduced ones inside. With acc the result takes in what dst holds. A
// second operand makes it a sum of products.
func (e *Emitter) reduce(op isa.Op, typ graph.DataType, dims []int, kept, over uint32, dst *place, acc bool, args ...*place) {
	all := append([]*place{dst}, args...)
	inner := levels(dims, over, all)
	for i := range inner {
		inner[i].s[0] = 0
	}
	e.reduceLevels(op, dtype(typ), levels(dims, kept, all), inner, all, acc)
}

func (e *Emitter) reduceLevels(op isa.Op, typ isa.DType, outer, inner []level, all []*place, acc bool) {
	if len(outer)+len(inner) > isa.Dims {
		cut, rest, in := outer, outer, inner
		if len(outer) > 0 {
			rest = outer[1:]
		} else {
			cut, in = inner, inner[1:]
		}
		for i := range cut[0].n {
			moved := make([]*place, len(all))
			for j, p := range all {
				moved[j] = p.at(cut[0], j, i)
			}
			e.reduceLevels(op, typ, rest, in, moved, acc || len(outer) == 0 && i > 0)
		}
		return
	}
	ls := append(append([]level{}, outer...), inner...)
	r := &isa.Reduce{N: counts(ls), Red: int32(len(inner)), Dst: operand(all[0], ls, 0), A: operand(all[1], ls, 1), Type: typ, Acc: acc}
	if len(all) > 2 {
		r.B = operand(all[2], ls, 2)
	}
	e.add(op, r)
}

// iota emits the index along dimension dim, from start on.
func (e *Emitter) iota(dst *place, n, stride, start int) {
	v := &isa.Iota{N: isa.Counts(int32(n)), Dst: isa.At(dst.addr, int32(stride)), Start: int32(start)}
	v.Step[isa.Dims-1] = 1
	e.add(isa.OpIota, v)
}
