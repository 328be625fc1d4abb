package isa

import "fmt"

// Op numbers an instruction; it is the operation code of the binary form.
type Op uint8

// The instructions. The order is part of the binary format: new ones go to the end of their version.
const (
	OpNone Op = iota
	OpLoad
	OpGather
	OpStore
	OpScatter
	OpMatmul
	OpMov
	OpAdd
	OpSub
	OpMul
	OpDiv
	OpMod
	OpFma
	OpAddMax
	OpMax
	OpMin
	OpNeg
	OpAbs
	OpSign
	OpFloor
	OpCeil
	OpRound
	OpTrunc
	OpEq
	OpNe
	OpLt
	OpLe
	OpSelect
	OpAnd
	OpOr
	OpXor
	OpShl
	OpShr
	OpSar
	OpRecip
	OpSqrt
	OpRsqrt
	OpExp
	OpExp2
	OpExpm1
	OpLog
	OpLog2
	OpLog1p
	OpPow
	OpSin
	OpCos
	OpTan
	OpAsin
	OpAcos
	OpAtan
	OpSinh
	OpCosh
	OpTanh
	OpAsinh
	OpAcosh
	OpAtanh
	OpErf
	OpSigmoid
	OpCvt
	OpSum
	OpProd
	OpRMax
	OpRMin
	OpDot
	OpScanSum
	OpScanProd
	OpArgMax
	OpArgMin
	OpIota
	OpRowsGet
	OpRowsPut
	OpSignal
	OpWait
	NumOps
)

// Instr is an instruction: what to do, with what, and the source node that it does it for.
type Instr struct {
	Op   Op
	Node int32 // index in Program.Nodes, -1 for none
	Args Args
}

// Intrinsic returns the description of the instruction's operation.
func (op Op) Intrinsic() *Intrinsic {
	if op > OpNone && op < NumOps {
		return &Intrinsics[op]
	}
	return nil
}

func (op Op) String() string {
	if in := op.Intrinsic(); in != nil {
		return in.Name
	}
	return fmt.Sprintf("op(%d)", uint8(op))
}

// Lookup returns the operation of a name.
func Lookup(name string) (Op, bool) {
	for op := OpNone + 1; op < NumOps; op++ {
		if Intrinsics[op].Name == name {
			return op, true
		}
	}
	return OpNone, false
}
