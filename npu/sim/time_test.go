package sim_test

import (
	"math"
	"testing"

	"gradtool/npu/isa"
	"gradtool/npu/machine"
	"gradtool/npu/sim"
	"gradtool/npu/token"
)

// single times one list of instructions on a machine.
func single(t *testing.T, m *machine.Machine, list ...isa.Instr) *sim.Timeline {
	t.Helper()
	p := &isa.Program{Machine: m, DRAMBytes: 1 << 24}
	for i := range list {
		list[i].Node = 0
	}
	p.Nodes = []isa.Source{{Name: "n"}}
	var err error
	if p.Queues, err = token.Insert(m, p.DRAMBytes, list); err != nil {
		t.Fatal(err)
	}
	tl, err := sim.Time(p)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func edge(t *testing.T) *machine.Machine {
	t.Helper()
	m, err := machine.Builtin("ref-edge")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// gemm is a matmul with A row-major at 0 and B row-major behind it.
func gemm(m, n, k int32, flow isa.Flow) isa.Instr {
	return isa.Instr{Op: isa.OpMatmul, Args: &isa.Matmul{
		M: [3]int32{2: m}, N: [3]int32{2: n}, K: [3]int32{2: k}, A: 0, AM: [3]int32{2: k}, AK: [3]int32{2: 1},
		B: isa.Local(m * k * 4), BK: [3]int32{2: n}, BN: [3]int32{2: 1}, C: isa.AccBase, CM: n, Flow: flow,
	}}
}

// TestScaleSim compares an array without overlap with the closed form of SCALE-Sim for both dataflows: folds * (T + 2R + C - 2) - 1.
func TestScaleSim(t *testing.T) {
	m := edge(t)
	m.Array.Overlap = false
	m.Array.Issue = 0
	for _, c := range []struct {
		m, n, k int32
		flow    isa.Flow
		want    float64
	}{
		{64, 64, 64, isa.WS, 16*(64+46) - 1},
		{256, 256, 256, isa.WS, 77_311},
		{100, 300, 70, isa.WS, 5*19*(100+46) - 1},
		{100, 300, 70, isa.OS, 7*19*(70+46) - 1},
	} {
		tl := single(t, m, gemm(c.m, c.n, c.k, c.flow))
		if got := tl.Time[isa.Matrix][sim.Busy]; got != c.want {
			t.Errorf("%d x %d x %d %s: %v cycles, want %v", c.m, c.n, c.k, c.flow, got, c.want)
		}
	}
}

// TestOverlap checks the utilisation with the second set of weights.
func TestOverlap(t *testing.T) {
	m := edge(t)
	for _, c := range []struct {
		n    int32
		want float64
	}{{64, 0.92}, {256, 0.99}} {
		tl := single(t, m, gemm(c.n, c.n, c.n, isa.WS))
		use := float64(c.n) * float64(c.n) * float64(c.n) / float64(m.PeakMACs()) / tl.Cycles
		if use < c.want || use > 1 {
			t.Errorf("%d^3: utilisation %.3f, want at least %.2f", c.n, use, c.want)
		}
	}
}

// TestMatmulConflicts: reading A along a stride that all banks share costs an access for each element.
func TestMatmulConflicts(t *testing.T) {
	m := edge(t)
	in := func(pitch int32) isa.Instr {
		return isa.Instr{Op: isa.OpMatmul, Args: &isa.Matmul{
			M: [3]int32{2: 128}, N: [3]int32{2: 16}, K: [3]int32{2: 16}, A: 0, AM: [3]int32{2: 1}, AK: [3]int32{2: pitch},
			B: 1 << 17, BK: [3]int32{2: 16}, BN: [3]int32{2: 1}, C: isa.AccBase, CM: 16,
		}}
	}
	for _, c := range []struct {
		pitch      int32
		transposer bool
		want       float64
	}{{128, false, 128 * 16}, {132, false, 128}, {136, false, 128}, {160, false, 128 * 4}, {128, true, 128}, {160, true, 128}} {
		m.Array.Transposer = c.transposer
		if got := single(t, m, in(c.pitch)).Time[isa.Matrix][sim.Busy]; got != c.want {
			t.Errorf("pitch %d: %v cycles, want %v", c.pitch, got, c.want)
		}
	}
}

// load is a transfer of n words.
func load(dram int64, local isa.Local, n int32) isa.Instr {
	return isa.Instr{Op: isa.OpLoad, Args: &isa.DMA{N: [5]int32{4: n}, DRAM: dram, DS: [5]int64{4: 1}, Local: local, LS: [5]int32{4: 1}}}
}

// TestDMA checks latency, bandwidth, the overlap of latencies, bursts, and sharing between the two engines.
func TestDMA(t *testing.T) {
	m := edge(t)
	d := m.DMA
	bytes := func(n int32) float64 { return float64(n) * 4 / float64(d.BytesPerCycle) }
	if got, want := single(t, m, load(0, 0, 8192)).Cycles, float64(d.Latency)+bytes(8192); got != want {
		t.Errorf("one load takes %v cycles, want %v", got, want)
	}
	var many []isa.Instr
	for i := range 16 {
		many = append(many, load(int64(i)*4096, isa.Local(i)*4096, 1024))
	}
	if got, want := single(t, m, many...).Cycles, float64(d.Latency)+bytes(16*1024); got != want {
		t.Errorf("16 loads take %v cycles, want %v: their latencies overlap", got, want)
	}
	column := isa.Instr{Op: isa.OpLoad, Args: &isa.DMA{N: [5]int32{4: 1000}, DS: [5]int64{4: 64}, LS: [5]int32{4: 1}}}
	if got, want := single(t, m, column).Cycles, float64(d.Latency)+1000*float64(d.Burst)/float64(d.BytesPerCycle); got != want {
		t.Errorf("a column takes %v cycles, want %v: a burst for each element", got, want)
	}
	store := isa.Instr{Op: isa.OpStore, Args: &isa.DMA{N: [5]int32{4: 8192}, DRAM: 1 << 20, DS: [5]int64{4: 1}, Local: 1 << 19, LS: [5]int32{4: 1}}}
	fill := isa.Instr{Op: isa.OpMov, Args: &isa.Vec{N: isa.Counts(8192), Dst: isa.At(1<<19, 1), A: isa.Float(0)}}
	both := single(t, m, fill, load(0, 0, 1<<16), store)
	if got, want := both.Cycles, float64(d.Latency)+bytes(1<<16)+bytes(8192); math.Abs(got-want) > 1 {
		t.Errorf("load and store take %v cycles, want %v: they share the path", got, want)
	}
	if both.Nodes[0].Read[0] != 4<<16 || both.Nodes[0].Written[0] != 4*8192 {
		t.Errorf("bytes are %v and %v", both.Nodes[0].Read, both.Nodes[0].Written)
	}
}

// TestVectorCost checks the rates of the vector unit.
func TestVectorCost(t *testing.T) {
	m := edge(t)
	vec := func(op isa.Op, s int32) isa.Instr {
		return isa.Instr{Op: op, Args: &isa.Vec{N: isa.Counts(3200), Dst: isa.At(1<<18, 1), A: isa.At(0, s)}}
	}
	issue := float64(m.Vector.Issue)
	for _, c := range []struct {
		in   isa.Instr
		want float64
	}{
		{vec(isa.OpNeg, 1), 100},
		{vec(isa.OpNeg, 2), 100},
		{vec(isa.OpNeg, 8), 200},
		{vec(isa.OpNeg, 128), 3200},
		{vec(isa.OpNeg, 0), 100},
		{vec(isa.OpExp, 1), 400},
		{isa.Instr{Op: isa.OpSum, Args: &isa.Reduce{N: isa.Counts(100, 32), Red: 1, Dst: isa.At(1<<18, 1, 0), A: isa.At(0, 32, 1)}}, 104},
	} {
		in := c.in
		if got := in.Work(m); float64(got.Cycles+got.Tail) != c.want || float64(got.Head) != issue {
			t.Errorf("%s: %+v, want %v cycles", in.Text(), got, c.want)
		}
	}
}

// TestPipeline: with two buffers, loads pass under the matmuls, and the whole takes little more than the longer of the two.
func TestPipeline(t *testing.T) {
	m := edge(t)
	var list []isa.Instr
	list = append(list, load(0, 1<<19, 64*64))
	for i := range 32 {
		buf := isa.Local(i%2) << 16
		list = append(list, load(int64(i)*16384, buf, 64*64))
		g := gemm(64, 64, 64, isa.WS)
		a := g.Args.(*isa.Matmul)
		a.A, a.B, a.C = buf, 1<<19, isa.AccBase+isa.Local(i%4)<<14
		list = append(list, g)
	}
	tl := single(t, m, list...)
	compute := 32 * 1024.0
	if tl.Cycles < compute || tl.Cycles > compute*1.06+700 {
		t.Errorf("%v cycles, want a little more than %v", tl.Cycles, compute)
	}
	if busy := tl.Time[isa.Matrix][sim.Busy]; math.Abs(busy-compute) > 1 {
		t.Errorf("the array is busy for %v cycles", busy)
	}
	sum := tl.Other.Cycles
	for _, n := range tl.Nodes {
		sum += n.Cycles
	}
	if math.Abs(sum-tl.Cycles) > 1e-3 {
		t.Errorf("nodes have %v of %v cycles", sum, tl.Cycles)
	}
	for q := range tl.Time {
		s := 0.0
		for _, v := range tl.Time[q] {
			s += v
		}
		if math.Abs(s-tl.Cycles) > 1e-3 {
			t.Errorf("%s queue: reasons sum up to %v of %v cycles", isa.Queue(q), s, tl.Cycles)
		}
	}
	peak := int64(0)
	for _, b := range tl.Scratchpad {
		peak = max(peak, b)
	}
	if want := int64(3 * 16384); peak != want {
		t.Errorf("scratchpad use peaks at %d bytes, want %d", peak, want)
	}
}
