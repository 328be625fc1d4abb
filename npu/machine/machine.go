// Package machine describes an NPU: the sizes, rates and numeric rules that the compiler, the cycle model and the
// simulator share. A description is data; nothing here depends on one machine.
package machine

import (
	"errors"
	"fmt"
	"math/bits"
)

// Schema names the version of the JSON form of a Machine.
const Schema = "gradtool.machine/1"

// Word is the width in bytes of an accumulator element, of a scratchpad bank, and the unit in which hazards are tracked.
const Word = 4

// Machine is a description of an NPU with a systolic array, a vector unit, a banked scratchpad, an accumulator memory and
// two DMA engines (load and store) that share one path to DRAM. Sizes are bytes and rates are per clock cycle unless a
// field says otherwise.
type Machine struct {
	Schema      string      `json:"schema" doc:"the version of this form, gradtool.machine/1"`
	Name        string      `json:"name" doc:"a name for messages"`
	Doc         string      `json:"doc,omitempty" doc:"a remark; may be left out"`
	ClockMHz    int         `json:"clock_mhz" doc:"clock, to turn cycles into time"`
	Array       Array       `json:"array"`
	Scratchpad  Memory      `json:"scratchpad"`
	Accumulator Memory      `json:"accumulator"`
	DMA         DMA         `json:"dma"`
	Vector      Vector      `json:"vector"`
	Queues      Queues      `json:"queues"`
	Numerics    Numerics    `json:"numerics"`
	MACs        []MACRate   `json:"macs"`
	DRAM        DRAMExtents `json:"dram"`
}

// Array is a systolic array of Rows x Cols multiply-accumulate cells. Weight-stationary, Rows is a slice of K and Cols a
// slice of N; output-stationary, Rows is a slice of M and Cols a slice of N.
type Array struct {
	Rows int `json:"rows" doc:"cells along K (weight-stationary) or M (output-stationary)"`
	Cols int `json:"cols" doc:"cells along N"`
	// Overlap says that a second set of weight registers is filled under the current fold, so that consecutive folds of
	// one instruction stream without a gap. Without it each fold costs the whole fill, stream and drain.
	Overlap bool `json:"overlap" doc:"a second set of weights fills under the fold that runs"`
	// Transposer says that blocks of Rows x Rows of A and Rows x Cols of B may be fetched along either dimension and are
	// turned on the way into the array, so that an operand streams without bank conflicts if it does along one of the two.
	Transposer bool `json:"transposer" doc:"blocks of an operand may be fetched along either dimension"`
	// Issue is the number of cycles between two matrix instructions: decode and address set-up.
	Issue int `json:"issue" doc:"cycles to decode a matrix instruction"`
}

// MACRate says how many array cells' worth of work one cell does in a cycle with operands of a type.
type MACRate struct {
	Type string `json:"type" doc:"operand type: f32, bf16 or f16; f32 is needed"` // f32, bf16, f16
	Per  int    `json:"per_cell" doc:"MACs per cell with operands of the type"`
}

// Memory is an on-chip memory of Bytes in Banks banks, each one Word wide with one access a cycle; the bank of a byte
// address a is (a / Word) mod Banks.
type Memory struct {
	Bytes int `json:"bytes" doc:"size of the memory"`
	Banks int `json:"banks" doc:"banks, each one 4-byte word wide with one access a cycle; a power of two"`
}

// DMA describes the path to DRAM shared by the load and the store engine.
type DMA struct {
	BytesPerCycle int `json:"bytes_per_cycle" doc:"bandwidth of DRAM, shared by loads and stores"`
	// Burst is the unit of a DRAM access: each contiguous run of a transfer costs the bursts that it touches.
	Burst int `json:"burst" doc:"unit of a DRAM access: each contiguous run costs the bursts it touches; a power of two"`
	// Latency is the number of cycles between the issue of a transfer and its first byte.
	Latency int `json:"latency" doc:"cycles from issue to the first byte"`
	// Outstanding is the number of transfers of one engine whose latencies may overlap.
	Outstanding int `json:"outstanding" doc:"transfers of each engine whose latencies overlap"`
	// Align is the alignment in bytes that the compiler gives to tensors in DRAM; the hardware needs only the
	// alignment of the element.
	Align int `json:"align" doc:"alignment that the compiler gives to tensors in DRAM; a power of two"`
}

// Vector describes the vector unit.
type Vector struct {
	Lanes   int `json:"lanes" doc:"elements of simple operations"`                                                // elements a cycle of simple operations
	Special int `json:"special" doc:"elements of special functions: exponential, logarithm, division, root, ..."` // elements a cycle of special functions: exponential, logarithm, division, root, ...
	Issue   int `json:"issue" doc:"cycles from one vector instruction to the next beside its elements"`           // cycles from one instruction to the next beside its elements
}

// Queues describes the control of the four queues.
type Queues struct {
	Depth      int `json:"depth" doc:"instructions of a queue that are issued and not complete; 2 hide decoding, transfers take as many as are outstanding"` // instructions of a queue that are issued and not complete
	Semaphores int `json:"semaphores" doc:"counters that the queues share; 4 or more"`                                                                       // counters shared by the queues
	SyncCycles int `json:"sync" doc:"cycles of a wait or a signal"`                                                                                          // cycles of a wait or a signal
}

// DRAMExtents bounds the memory outside.
type DRAMExtents struct {
	Bytes int64 `json:"bytes" doc:"DRAM that a program may use"`
}

// Numerics are the switches of the numeric contract.
type Numerics struct {
	// Fused says that a MAC rounds once; otherwise the product is rounded to float32 and then the sum is.
	Fused bool `json:"fused" doc:"a MAC rounds once"`
	// Flush says that denormal float32 operands count as zero and denormal results become zero, in the array and in the
	// vector unit; the sign stays.
	Flush bool `json:"flush_denormals" doc:"denormals count as zero"`
	// Rounding is the rounding of every float operation: "rne", to nearest, ties to even.
	Rounding string `json:"rounding" doc:"rne: to nearest, ties to even"`
}

// Rate returns how many cells' worth of MACs a cell does per cycle with operands of a type, 0 if the array has no such type.
func (m *Machine) Rate(typ string) int {
	for _, r := range m.MACs {
		if r.Type == typ {
			return r.Per
		}
	}
	return 0
}

// PeakMACs returns the float32 MACs per cycle of the array.
func (m *Machine) PeakMACs() int { return m.Array.Rows * m.Array.Cols * max(1, m.Rate("f32")) }

// Check returns what is wrong with a description, all problems joined.
func (m *Machine) Check() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("machine %q: "+format, append([]any{m.Name}, args...)...))
	}
	if m.Schema != Schema {
		bad("schema is %q, not %q", m.Schema, Schema)
	}
	if m.Name == "" {
		bad("has no name")
	}
	type bound struct {
		what      string
		v, lo, hi int
	}
	for _, b := range []bound{
		{"clock_mhz", m.ClockMHz, 1, 100_000},
		{"array.rows", m.Array.Rows, 1, 1024},
		{"array.cols", m.Array.Cols, 1, 1024},
		{"array.issue", m.Array.Issue, 0, 1_000_000},
		{"scratchpad.bytes", m.Scratchpad.Bytes, 1024, 1 << 30},
		{"scratchpad.banks", m.Scratchpad.Banks, 1, 1 << 16},
		{"accumulator.bytes", m.Accumulator.Bytes, 256, 1 << 30},
		{"accumulator.banks", m.Accumulator.Banks, 1, 1 << 16},
		{"dma.bytes_per_cycle", m.DMA.BytesPerCycle, 1, 1 << 20},
		{"dma.burst", m.DMA.Burst, Word, 1 << 16},
		{"dma.latency", m.DMA.Latency, 0, 1_000_000},
		{"dma.outstanding", m.DMA.Outstanding, 1, 1 << 16},
		{"dma.align", m.DMA.Align, Word, 1 << 16},
		{"vector.lanes", m.Vector.Lanes, 1, 1 << 16},
		{"vector.special", m.Vector.Special, 1, 1 << 16},
		{"vector.issue", m.Vector.Issue, 0, 1_000_000},
		{"queues.depth", m.Queues.Depth, 1, 1 << 20},
		{"queues.semaphores", m.Queues.Semaphores, 4, 1 << 12},
		{"queues.sync", m.Queues.SyncCycles, 0, 1_000_000},
	} {
		if b.v < b.lo || b.v > b.hi {
			bad("%s is %d, not between %d and %d", b.what, b.v, b.lo, b.hi)
		}
	}
	pow := func(what string, v int) {
		if v > 0 && bits.OnesCount(uint(v)) != 1 {
			bad("%s is %d, not a power of two", what, v)
		}
	}
	pow("scratchpad.banks", m.Scratchpad.Banks)
	pow("accumulator.banks", m.Accumulator.Banks)
	pow("dma.burst", m.DMA.Burst)
	pow("dma.align", m.DMA.Align)
	if m.Scratchpad.Bytes%Word != 0 || m.Accumulator.Bytes%Word != 0 {
		bad("memory sizes are not multiples of %d", Word)
	}
	if m.DRAM.Bytes < 1<<16 || m.DRAM.Bytes > 1<<40 {
		bad("dram.bytes is %d, not between %d and %d", m.DRAM.Bytes, 1<<16, int64(1)<<40)
	}
	if m.Numerics.Rounding != "rne" {
		bad("numerics.rounding is %q; only \"rne\" is known", m.Numerics.Rounding)
	}
	if m.Rate("f32") < 1 {
		bad("macs has no rate for f32")
	}
	seen := map[string]bool{}
	for _, r := range m.MACs {
		switch r.Type {
		case "f32", "bf16", "f16":
		default:
			bad("macs names the type %q; f32, bf16 and f16 are known", r.Type)
		}
		if r.Per < 1 || r.Per > 64 {
			bad("macs gives %s %d per cell, not between 1 and 64", r.Type, r.Per)
		}
		if seen[r.Type] {
			bad("macs gives %s twice", r.Type)
		}
		seen[r.Type] = true
	}
	return errors.Join(errs...)
}
