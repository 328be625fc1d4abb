package token_test

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gradtool/npu/isa"
	"gradtool/npu/machine"
	"gradtool/npu/sim"
	"gradtool/npu/token"
)

// words is the size of the part of each memory that random programs use: small, so that accesses meet often.
const words = 512

// place returns a random box of at most 4 by 8 words: an address in words and the outer stride.
func place(r *rand.Rand) (addr, rows, cols, pitch int32) {
	rows, cols = 1+r.Int32N(4), 1+r.Int32N(8)
	pitch = cols + r.Int32N(3)*r.Int32N(20)
	return r.Int32N(words - rows*pitch), rows, cols, pitch
}

// random returns a program's instructions.
func random(r *rand.Rand, n int) []isa.Instr {
	var list []isa.Instr
	for len(list) < n {
		a, rows, cols, pa := place(r)
		b := r.Int32N(words - rows*cols)
		c := r.Int32N(words - rows*cols)
		in := isa.Instr{Node: 0}
		dma := &isa.DMA{N: [5]int32{3: rows, 4: cols}, DRAM: 4 * int64(a), DS: [5]int64{3: int64(pa), 4: 1}, Local: isa.Local(4 * b), LS: [5]int32{3: cols, 4: 1}}
		switch r.IntN(8) {
		case 0, 1:
			in.Op, in.Args = isa.OpLoad, dma
		case 2:
			in.Op, in.Args = isa.OpStore, dma
		case 3:
			dma.Update = isa.Add
			in.Op, in.Args = isa.OpStore, dma
			if r.IntN(2) == 0 {
				dma.Local += isa.AccBase
			}
		case 4:
			in.Op = isa.OpMatmul
			in.Args = &isa.Matmul{M: [3]int32{2: rows}, N: [3]int32{2: cols}, K: [3]int32{2: 4}, A: isa.Local(4 * (a % (words - 16))), AM: [3]int32{2: 4}, AK: [3]int32{2: 1},
				B: isa.Local(4 * min(b, words-64)), BK: [3]int32{2: cols}, BN: [3]int32{2: 1}, C: isa.AccBase + isa.Local(4*c), CM: cols, Acc: r.IntN(2) == 0}
		case 5:
			in.Op = isa.OpSum
			in.Args = &isa.Reduce{N: isa.Counts(rows, cols), Red: 1, Dst: isa.At(isa.AccBase+isa.Local(4*(c/2)), 1, 0), A: isa.At(isa.Local(4*a), pa, 1), Acc: r.IntN(2) == 0}
		default:
			dst := isa.At(isa.Local(4*c), cols, 1)
			if r.IntN(3) == 0 {
				dst.Addr += isa.AccBase
			}
			in.Op = []isa.Op{isa.OpAdd, isa.OpMax, isa.OpSub}[r.IntN(3)]
			in.Args = &isa.Vec{N: isa.Counts(rows, cols), Dst: dst, A: isa.At(isa.Local(4*a), pa, 1), B: isa.At(isa.Local(4*b), cols, 1)}
		}
		m, err := machine.Builtin("ref-small")
		if err != nil {
			panic(err)
		}
		if in.Check(m, in.Op.Intrinsic().Queue, 4*words) == nil { // operands may overlap
			list = append(list, in)
		}
	}
	return list
}

// wrap returns a program that fills the memories, runs list and writes everything back.
func wrap(t *testing.T, list []isa.Instr) (*isa.Program, []isa.Instr) {
	t.Helper()
	m, err := machine.Builtin("ref-small")
	if err != nil {
		t.Fatal(err)
	}
	move := func(op isa.Op, dram int64, local isa.Local) isa.Instr {
		return isa.Instr{Op: op, Args: &isa.DMA{N: [5]int32{4: words}, DRAM: dram, DS: [5]int64{4: 1}, Local: local, LS: [5]int32{4: 1}}}
	}
	all := []isa.Instr{move(isa.OpLoad, 0, 0), move(isa.OpLoad, 0, isa.AccBase)}
	all = append(all, list...)
	all = append(all, move(isa.OpStore, 4*words, 0), move(isa.OpStore, 8*words, isa.AccBase))
	p := &isa.Program{Machine: m, DRAMBytes: 12 * words, Nodes: []isa.Source{{Name: "n"}}}
	p.Inputs = []isa.Tensor{{Name: "x", Type: "float", Shape: []int64{words}}}
	p.Outputs = []isa.Tensor{{Name: "y", Type: "float", Shape: []int64{3 * words}}}
	if p.Queues, err = token.Insert(m, p.DRAMBytes, all); err != nil {
		t.Fatal(err)
	}
	return p, all
}

func input(r *rand.Rand) []byte {
	b := make([]byte, 4*words)
	for i := range words {
		v := math.Float32bits(float32(r.IntN(7) - 3))
		b[4*i], b[4*i+1], b[4*i+2], b[4*i+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	}
	return b
}

// TestRandomPrograms checks that the queues give what the list gives in order, that no wait is missing, and that each wait
// is needed: without it the simulator reports a hazard.
func TestRandomPrograms(t *testing.T) {
	removed := 0
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 9))
		p, all := wrap(t, random(r, 30))
		x := input(r)
		core := isa.NewCore(p.Machine, p.DRAMBytes)
		core.LoadBytes(0, x)
		for i := range all {
			if err := core.Exec(&all[i]); err != nil {
				t.Fatal(err)
			}
		}
		res, err := sim.Run(context.Background(), p, map[string][]byte{"x": x}, sim.Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !bytes.Equal(res.Outputs["y"], core.StoreBytes(0, 12*words)) {
			t.Fatalf("seed %d: other values than in order", seed)
		}
		if _, err := sim.Time(p); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for q := range p.Queues {
			for i, in := range p.Queues[q] {
				if in.Op != isa.OpWait {
					continue
				}
				removed++
				mutant := *p
				mutant.Queues[q] = slices.Delete(slices.Clone(p.Queues[q]), i, i+1)
				if _, err := sim.Run(context.Background(), &mutant, map[string][]byte{"x": x}, sim.Options{}); err == nil {
					t.Errorf("seed %d: the %s queue does not need its wait %d", seed, isa.Queue(q), i)
				}
			}
		}
	}
	if removed < 1000 {
		t.Errorf("only %d waits", removed)
	}
}

func TestInsertRefuses(t *testing.T) {
	m, err := machine.Builtin("ref-small")
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []isa.Instr{
		{Op: isa.OpWait, Args: &isa.Sync{}},
		{Op: isa.OpNone},
		{Op: isa.OpAdd, Args: &isa.Sync{}},
		{Op: isa.OpAdd, Args: &isa.Vec{N: isa.Counts(1 << 20)}},
	} {
		if _, err := token.Insert(m, 1024, []isa.Instr{in}); err == nil {
			t.Errorf("%s is accepted", in.Text())
		}
	}
}
