// Package isa defines the instruction set of the reference NPU: each instruction once, with its queue, operands, meaning,
// memory effects and cost. Simulator, assembler, disassembler, encoder and documentation are derived from that.
package isa

import (
	"fmt"
	"math"
)

// DType is the type of an element in a memory of the machine.
type DType uint8

// The element types. Integers wider than 32 bits and booleans of a model are I32 on the device.
const (
	F32  DType = iota // IEEE binary32
	I32               // two's complement, wraps
	F16               // IEEE binary16: storage, matmul operands, conversions
	BF16              // bfloat16: the same
	U8                // a byte, zero-extended on load and truncated on store: DMA only
	I8                // a byte, sign-extended on load: DMA only
	numDTypes
)

var dtypeNames = [numDTypes]string{"f32", "i32", "f16", "bf16", "u8", "i8"}

func (t DType) String() string {
	if t < numDTypes {
		return dtypeNames[t]
	}
	return fmt.Sprintf("dtype(%d)", uint8(t))
}

// Bytes returns the size of an element.
func (t DType) Bytes() int {
	switch t {
	case F16, BF16:
		return 2
	case U8, I8:
		return 1
	}
	return 4
}

// Queue is one of the in-order instruction queues. Instructions of different queues run at the same time and are ordered
// by semaphores alone.
type Queue uint8

// The queues, in the order in which reports list them.
const (
	Load Queue = iota
	Store
	Matrix
	Vector
	NumQueues
)

var queueNames = [NumQueues]string{"load", "store", "matrix", "vector"}

func (q Queue) String() string {
	if q < NumQueues {
		return queueNames[q]
	}
	return fmt.Sprintf("queue(%d)", uint8(q))
}

// Space is a memory.
type Space uint8

// The memories.
const (
	DRAM Space = iota
	Scratch
	Accum
	numSpaces
)

var spaceNames = [numSpaces]string{"dram", "scratchpad", "accumulator"}

func (s Space) String() string {
	if s < numSpaces {
		return spaceNames[s]
	}
	return fmt.Sprintf("space(%d)", uint8(s))
}

// Local is a byte address on chip: in the accumulator where bit 31 is set, else in the scratchpad.
type Local uint32

// AccBase is the local address of byte 0 of the accumulator.
const AccBase Local = 1 << 31

// Space returns the memory of an address.
func (a Local) Space() Space {
	if a&AccBase != 0 {
		return Accum
	}
	return Scratch
}

// Offset returns the byte offset in the memory of an address.
func (a Local) Offset() int64 { return int64(a &^ AccBase) }

func (a Local) String() string {
	if a.Space() == Accum {
		return fmt.Sprintf("acc:0x%x", a.Offset())
	}
	return fmt.Sprintf("sp:0x%x", a.Offset())
}

// Purpose says what a DMA transfer is for, so that reports can tell the traffic apart.
type Purpose uint8

// The purposes of transfers.
const (
	Activation Purpose = iota // a value of the forward graph
	Input
	Weight
	Gradient // a value of the backward graph
	Output
	State // parameters and optimizer state written back
	Spill // a value that the scratchpad had no room for
	NumPurposes
)

var purposeNames = [NumPurposes]string{"activation", "input", "weight", "gradient", "output", "state", "spill"}

func (p Purpose) String() string {
	if p < NumPurposes {
		return purposeNames[p]
	}
	return fmt.Sprintf("purpose(%d)", uint8(p))
}

// Flow is the dataflow of a matmul. It changes cycles, never values.
type Flow uint8

// The dataflows.
const (
	WS Flow = iota // weight-stationary: a fold keeps Rows x Cols of B and streams the rows of A
	OS             // output-stationary: a fold keeps Rows x Cols of C and streams K
	numFlows
)

var flowNames = [numFlows]string{"ws", "os"}

func (f Flow) String() string {
	if f < numFlows {
		return flowNames[f]
	}
	return fmt.Sprintf("flow(%d)", uint8(f))
}

// Update says what scatter and store do with the value already there.
type Update uint8

// The updates. The last write wins for Set; the others combine in order of row number.
const (
	Set Update = iota
	Add
	Mul
	Max
	Min
	numUpdates
)

var updateNames = [numUpdates]string{"set", "add", "mul", "max", "min"}

func (u Update) String() string {
	if u < numUpdates {
		return updateNames[u]
	}
	return fmt.Sprintf("update(%d)", uint8(u))
}

// Bits is a raw 32-bit value: an immediate operand or a fill.
type Bits uint32

// FloatBits returns the bits of a float32 immediate.
func FloatBits(x float32) Bits { return Bits(math.Float32bits(x)) }

// IntBits returns the bits of an int32 immediate.
func IntBits(x int32) Bits { return Bits(uint32(x)) }
