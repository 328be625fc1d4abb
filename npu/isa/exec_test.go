package isa

import (
	"math"
	"math/rand/v2"
	"testing"

	"gradtool/npu/machine"
)

// testMachine returns ref-small with numerics changed.
func testMachine(t *testing.T, n machine.Numerics) *machine.Machine {
	t.Helper()
	m, err := machine.Builtin("ref-small")
	if err != nil {
		t.Fatal(err)
	}
	n.Rounding = "rne"
	m.Numerics = n
	return m
}

// fill puts random numbers into a memory, some of them special.
func fill(r *rand.Rand, mem []uint32) {
	for i := range mem {
		switch r.IntN(40) {
		case 0:
			mem[i] = 0x80000000 // -0
		case 1:
			mem[i] = r.Uint32() >> 10 // a denormal
		default:
			mem[i] = math.Float32bits(float32(r.NormFloat64()))
		}
	}
}

// TestMatmulContract compares the simulated matmul with a direct evaluation of the contract, bit by bit.
func TestMatmulContract(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, num := range []machine.Numerics{{}, {Fused: true}, {Flush: true}, {Fused: true, Flush: true}} {
		m := testMachine(t, num)
		for _, c := range []Matmul{
			{M: [3]int32{0, 0, 16}, N: [3]int32{0, 0, 16}, K: [3]int32{0, 0, 16}, AM: [3]int32{0, 0, 16}, AK: [3]int32{0, 0, 1}, BK: [3]int32{0, 0, 16}, BN: [3]int32{0, 0, 1}, CM: 16},
			{M: [3]int32{0, 0, 7}, N: [3]int32{0, 0, 13}, K: [3]int32{0, 0, 5}, AM: [3]int32{0, 0, 1}, AK: [3]int32{0, 0, 7}, BK: [3]int32{0, 0, 1}, BN: [3]int32{0, 0, 5}, CM: 20, Acc: true},
			// a 3x3 convolution with stride 2 over a 3-channel 9x9 tile, in place
			{M: [3]int32{1, 4, 4}, N: [3]int32{0, 0, 10}, K: [3]int32{3, 3, 3}, AM: [3]int32{0, 18, 2}, AK: [3]int32{81, 9, 1}, BK: [3]int32{9, 3, 1}, BN: [3]int32{0, 0, 27}, CM: 10},
			{M: [3]int32{2, 3, 2}, N: [3]int32{3, 1, 5}, K: [3]int32{2, 2, 2}, AM: [3]int32{40, 7, 3}, AK: [3]int32{1, 11, 0}, BK: [3]int32{4, 2, 1}, BN: [3]int32{50, 0, 9}, CM: 15, Acc: true},
		} {
			c.B = 8192
			c.C = AccBase + 64
			in := Instr{Op: OpMatmul, Args: &c}
			if err := in.Check(m, Matrix, 0); err != nil {
				t.Fatal(err)
			}
			s := NewCore(m, 0)
			s.Workers = 2
			fill(r, s.mem[Scratch])
			fill(r, s.mem[Accum])
			want := append([]uint32(nil), s.mem[Accum]...)
			row := 0
			for m0 := range max(c.M[0], 1) {
				for m1 := range max(c.M[1], 1) {
					for m2 := range max(c.M[2], 1) {
						col := 0
						for n0 := range max(c.N[0], 1) {
							for n1 := range max(c.N[1], 1) {
								for n2 := range max(c.N[2], 1) {
									at := 16 + row*int(c.CM) + col
									acc := float32(0)
									if c.Acc {
										acc = math.Float32frombits(want[at])
										if num.Flush {
											acc = flush(acc)
										}
									}
									for k0 := range max(c.K[0], 1) {
										for k1 := range max(c.K[1], 1) {
											for k2 := range max(c.K[2], 1) {
												x := math.Float32frombits(s.mem[Scratch][m0*c.AM[0]+m1*c.AM[1]+m2*c.AM[2]+k0*c.AK[0]+k1*c.AK[1]+k2*c.AK[2]])
												y := math.Float32frombits(s.mem[Scratch][2048+n0*c.BN[0]+n1*c.BN[1]+n2*c.BN[2]+k0*c.BK[0]+k1*c.BK[1]+k2*c.BK[2]])
												acc = refMAC(num, acc, x, y)
											}
										}
									}
									want[at] = math.Float32bits(acc)
									col++
								}
							}
						}
						row++
					}
				}
			}
			if err := s.Exec(&in); err != nil {
				t.Fatal(err)
			}
			for i, w := range s.mem[Accum] {
				if w != want[i] {
					t.Fatalf("%+v, %+v: accumulator word %d is %08x, want %08x", num, c, i, w, want[i])
				}
			}
		}
	}
}

// refMAC is the contract's MAC, written independently with exact arithmetic where it is fused.
func refMAC(num machine.Numerics, c, a, b float32) float32 {
	z := func(x float32) float32 {
		if num.Flush && x != 0 && math.Abs(float64(x)) < 0x1p-126 {
			return float32(math.Copysign(0, float64(x)))
		}
		return x
	}
	a, b, c = z(a), z(b), z(c)
	if num.Fused {
		return z(exactFMA(a, b, c))
	}
	return z(c + z(float32(a*b)))
}

// TestSubword checks conversions on the way to and from DRAM.
func TestSubword(t *testing.T) {
	m := testMachine(t, machine.Numerics{})
	s := NewCore(m, 64)
	s.LoadBytes(1, []byte{0x80, 0x7f, 0xff})
	run := func(in Instr, q Queue) {
		t.Helper()
		if err := in.Check(m, q, 64); err != nil {
			t.Fatal(err)
		}
		if err := s.Exec(&in); err != nil {
			t.Fatal(err)
		}
	}
	run(Instr{Op: OpLoad, Args: &DMA{N: [5]int32{0, 0, 0, 0, 3}, DRAM: 1, DS: [5]int64{4: 1}, LS: [5]int32{4: 1}, Type: I8, LType: I32}}, Load)
	for i, want := range []int32{-128, 127, -1} {
		if got := int32(s.mem[Scratch][i]); got != want {
			t.Errorf("i8 %d widens to %d, want %d", i, got, want)
		}
	}
	s.LoadBytes(8, []byte{0x00, 0x3c, 0x01, 0x00, 0xff, 0xfb})
	run(Instr{Op: OpLoad, Args: &DMA{N: [5]int32{4: 3}, DRAM: 8, DS: [5]int64{4: 1}, LS: [5]int32{4: 2}, Local: 32, Lo: [5]int32{4: 1}, Fill: FloatBits(5), Type: F16, LType: F32}}, Load)
	for i, want := range []float32{5, 1, 0x1p-24, -65504} {
		if got := math.Float32frombits(s.mem[Scratch][8+2*i]); got != want {
			t.Errorf("f16 %d widens to %v, want %v", i, got, want)
		}
	}
	run(Instr{Op: OpStore, Args: &DMA{N: [5]int32{4: 4}, DRAM: 34, DS: [5]int64{4: 1}, LS: [5]int32{4: 2}, Local: 32, Type: BF16, LType: F32}}, Store)
	if got := s.StoreBytes(34, 8); string(got) != "\xa0\x40\x80\x3f\x80\x33\x80\xc7" {
		t.Errorf("bf16 are % x", got)
	}
}
