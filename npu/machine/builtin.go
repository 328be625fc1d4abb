package machine

import (
	"fmt"
	"strings"
)

// Names returns the names of the built-in machines, small to large.
func Names() []string { return []string{"ref-small", "ref-edge", "ref-server"} }

// Builtin returns a fresh copy of a built-in machine, or an error that names those there are.
func Builtin(name string) (*Machine, error) {
	base := Machine{
		Schema:   Schema,
		Name:     name,
		ClockMHz: 1000,
		Queues:   Queues{Depth: 16, Semaphores: 16, SyncCycles: 1},
		Numerics: Numerics{Rounding: "rne"},
		MACs:     []MACRate{{"f32", 1}, {"bf16", 2}, {"f16", 2}},
	}
	switch name {
	case "ref-small":
		base.Doc = "a microcontroller-class NPU: 8x8 cells, 64 KiB scratchpad, 8 bytes a cycle to DRAM"
		base.ClockMHz = 400
		base.Array = Array{Rows: 8, Cols: 8, Overlap: true, Transposer: true, Issue: 4}
		base.Scratchpad = Memory{Bytes: 64 << 10, Banks: 32}
		base.Accumulator = Memory{Bytes: 16 << 10, Banks: 16}
		base.DMA = DMA{BytesPerCycle: 8, Burst: 32, Latency: 40, Outstanding: 4, Align: 64}
		base.Vector = Vector{Lanes: 8, Special: 2, Issue: 4}
		base.DRAM = DRAMExtents{Bytes: 1 << 30}
	case "ref-edge":
		base.Doc = "an edge NPU: 16x16 cells, 1 MiB scratchpad, 32 bytes a cycle to DRAM"
		base.Array = Array{Rows: 16, Cols: 16, Overlap: true, Transposer: true, Issue: 4}
		base.Scratchpad = Memory{Bytes: 1 << 20, Banks: 128}
		base.Accumulator = Memory{Bytes: 256 << 10, Banks: 64}
		base.DMA = DMA{BytesPerCycle: 32, Burst: 64, Latency: 100, Outstanding: 8, Align: 64}
		base.Vector = Vector{Lanes: 32, Special: 8, Issue: 4}
		base.DRAM = DRAMExtents{Bytes: 4 << 30}
	case "ref-server":
		base.Doc = "a server NPU: 128x128 cells, 32 MiB scratchpad, 1 KiB a cycle to DRAM"
		base.Array = Array{Rows: 128, Cols: 128, Overlap: true, Transposer: true, Issue: 4}
		base.Scratchpad = Memory{Bytes: 32 << 20, Banks: 2048}
		base.Accumulator = Memory{Bytes: 8 << 20, Banks: 1024}
		base.DMA = DMA{BytesPerCycle: 1024, Burst: 64, Latency: 400, Outstanding: 64, Align: 64}
		base.Vector = Vector{Lanes: 1024, Special: 256, Issue: 4}
		base.DRAM = DRAMExtents{Bytes: 64 << 30}
		base.Queues.Depth = 64
	default:
		return nil, fmt.Errorf("no built-in machine %q: there are %s", name, strings.Join(Names(), ", "))
	}
	return &base, nil
}
