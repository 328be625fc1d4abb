package isa

import (
	"math"
	"math/rand/v2"
	"testing"

	"gradtool/npu/machine"
)

// sameWord compares words; NaNs are equal whatever their bits.
func sameWord(a, b uint32) bool {
	x, y := math.Float32frombits(a), math.Float32frombits(b)
	return a == b || x != x && y != y
}

// each calls f with every index tuple of the counts.
func each(n [Dims]int32, f func(i [Dims]int32)) {
	var i [Dims]int32
	for {
		f(i)
		d := Dims - 1
		for ; d >= 0; d-- {
			if i[d]++; i[d] < max(n[d], 1) {
				break
			}
			i[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

func wordAt(o *Operand, i [Dims]int32) int {
	at := int32(o.Addr.Offset() / 4)
	for d := range i {
		at += i[d] * o.S[d]
	}
	return int(at)
}

func valueAt(mem []uint32, o *Operand, i [Dims]int32) uint32 {
	if o.IsImm {
		return uint32(o.Value)
	}
	return mem[wordAt(o, i)]
}

// TestVectorContract runs every element-wise instruction over strided operands and compares it with its element function.
func TestVectorContract(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, num := range []machine.Numerics{{}, {Flush: true}, {Fused: true}} {
		m := testMachine(t, num)
		for op := OpMov; op <= OpCvt; op++ {
			d := op.Intrinsic()
			for _, typ := range []DType{F32, I32} {
				for trial := range 6 {
					shapes := [][Dims]int32{Counts(3, 2, 7), Counts(700), Counts(2, 600), Counts(1), Counts(5, 1, 4, 3), Counts(1100, 2)}
					v := &Vec{N: shapes[trial], Type: typ}
					if op == OpCvt {
						v.To = I32 - typ
					}
					operand := func(base int32) Operand {
						switch r.IntN(5) {
						case 0:
							return Operand{IsImm: true, Value: Bits(math.Float32bits(float32(r.NormFloat64())))}
						case 1:
							return At(Local(4*base), 0, 0, 0)
						}
						return denseOperand(Local(4*base), v.N, 1+int32(r.IntN(2)))
					}
					v.A = operand(0)
					if op == OpCvt {
						v.A = denseOperand(0, v.N, 1)
					}
					if d.Operands > 1 {
						v.B = operand(4450)
					}
					if d.Operands > 2 {
						v.C = operand(8950)
					}
					v.Dst = denseOperand(4*13400, v.N, 1)
					if r.IntN(3) == 0 && !v.A.IsImm && v.A.S != [Dims]int32{} {
						v.Dst = v.A // in place
					}
					in := Instr{Op: op, Args: v}
					if err := in.Check(m, Vector, 0); err != nil {
						if d.I32 == nil || d.F32 == nil && d.FCmp == nil {
							continue // the instruction has not this type
						}
						t.Fatalf("%s: %v", in.Text(), err)
					}
					s := NewCore(m, 0)
					s.Workers = 2
					fill(r, s.mem[Scratch])
					old := append([]uint32(nil), s.mem[Scratch]...)
					if err := s.Exec(&in); err != nil {
						t.Fatal(err)
					}
					each(v.N, func(i [Dims]int32) {
						got := s.mem[Scratch][wordAt(&v.Dst, i)]
						want := element(num, d, typ, valueAt(old, &v.A, i), valueAt(old, &v.B, i), valueAt(old, &v.C, i))
						if typ == I32 && d.FCmp == nil && op != OpCvt && got != want || !sameWord(got, want) {
							t.Fatalf("%+v: %s at %v: %08x, want %08x", num, in.Text(), i, got, want)
						}
						old[wordAt(&v.Dst, i)] = got
					})
					for i, w := range s.mem[Scratch] {
						if w != old[i] {
							t.Fatalf("%s: word %d outside of the result changed", in.Text(), i)
						}
					}
				}
			}
		}
	}
}

// denseOperand has the strides of a row-major tensor whose elements are step words apart.
func denseOperand(a Local, n [Dims]int32, step int32) Operand {
	o := Operand{Addr: a}
	for d := Dims - 1; d >= 0; d-- {
		o.S[d] = step
		step *= max(n[d], 1)
	}
	return o
}

// element is the value of one element, written from the contract.
func element(num machine.Numerics, d *Intrinsic, typ DType, a, b, c uint32) uint32 {
	x, y, z := math.Float32frombits(a), math.Float32frombits(b), math.Float32frombits(c)
	switch {
	case d.Op == OpMov:
		return a
	case d.Op == OpCvt && typ == I32:
		return math.Float32bits(float32(int32(a)))
	case d.Op == OpCvt:
		return uint32(int32(min(max(math.Trunc(float64(x)), -1<<31), 1<<31-1))) // fill gives no NaN
	case typ == I32:
		return uint32(d.I32(int32(a), int32(b), int32(c)))
	}
	ftz := func(x float32) float32 {
		if num.Flush && x != 0 && math.Abs(float64(x)) < 0x1p-126 {
			return float32(math.Copysign(0, float64(x)))
		}
		return x
	}
	x, y, z = ftz(x), ftz(y), ftz(z)
	switch {
	case d.FCmp != nil:
		return uint32(bit(d.FCmp(x, y)))
	case d.Op == OpFma:
		return math.Float32bits(refMAC(num, z, x, y))
	}
	return math.Float32bits(ftz(d.F32(x, y, z)))
}

// TestReduceContract compares reductions with the order that the contract states.
func TestReduceContract(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	m := testMachine(t, machine.Numerics{})
	for _, op := range []Op{OpSum, OpProd, OpRMax, OpRMin, OpDot} {
		for _, n := range []struct {
			n   [Dims]int32
			red int32
		}{{Counts(5, 37), 1}, {Counts(3, 4, 2, 9), 2}, {Counts(7, 3), 0}, {Counts(100), 6}, {Counts(6, 16), 1}, {Counts(200, 5), 1}} {
			for _, acc := range []bool{false, true} {
				a := &Reduce{N: n.n, Red: n.red, Acc: acc, A: denseOperand(0, n.n, 1), Dst: At(AccBase)}
				step := int32(1)
				for d := Dims - 1 - int(n.red); d >= 0; d-- {
					a.Dst.S[d] = step
					step *= max(n.n[d], 1)
				}
				if op == OpDot {
					a.B = denseOperand(4*5000, n.n, 2)
					if n.red == 1 {
						a.B = Float(1.7)
					}
				}
				in := Instr{Op: op, Args: a}
				if err := in.Check(m, Vector, 0); err != nil {
					t.Fatal(err)
				}
				s := NewCore(m, 0)
				s.Workers = 2
				fill(r, s.mem[Scratch])
				fill(r, s.mem[Accum])
				old := append([]uint32(nil), s.mem[Accum]...)
				groups := map[int][]float32{}
				each(n.n, func(i [Dims]int32) {
					v := math.Float32frombits(valueAt(s.mem[Scratch], &a.A, i))
					if op == OpDot {
						v = float32(v * math.Float32frombits(valueAt(s.mem[Scratch], &a.B, i)))
					}
					o := i
					for d := Dims - int(n.red); d < Dims; d++ {
						o[d] = 0
					}
					at := wordAt(&a.Dst, o)
					groups[at] = append(groups[at], v)
				})
				if err := s.Exec(&in); err != nil {
					t.Fatal(err)
				}
				f := func(x, y float32) float32 { return x + y }
				switch op {
				case OpProd:
					f = func(x, y float32) float32 { return x * y }
				case OpRMax:
					f = func(x, y float32) float32 { return max(x, y) }
				case OpRMin:
					f = func(x, y float32) float32 { return min(x, y) }
				}
				for at, g := range groups {
					part := append([]float32(nil), g[:min(16, len(g))]...)
					for j := 16; j < len(g); j++ {
						part[j%16] = f(part[j%16], g[j])
					}
					for s := 8; s > 0; s /= 2 {
						for p := range s {
							if p+s < len(part) {
								part[p] = f(part[p], part[p+s])
							}
						}
						part = part[:min(len(part), s)]
					}
					want := part[0]
					if acc {
						want = f(math.Float32frombits(old[at]), want)
					}
					if got := s.mem[Accum][at]; !sameWord(got, math.Float32bits(want)) {
						t.Fatalf("%s: %v, want %v", in.Text(), math.Float32frombits(got), want)
					}
				}
			}
		}
	}
}

// TestOthers checks scans, searches, ramps and row moves on small examples.
func TestOthers(t *testing.T) {
	m := testMachine(t, machine.Numerics{})
	nan := float32(math.NaN())
	s := NewCore(m, 64)
	put := func(at int, v ...float32) {
		for i, x := range v {
			s.mem[Scratch][at+i] = math.Float32bits(x)
		}
	}
	ints := func(at int, v ...int32) {
		for i, x := range v {
			s.mem[Scratch][at+i] = uint32(x)
		}
	}
	run := func(op Op, a Args) error {
		in := Instr{Op: op, Args: a}
		q := Vector
		if d := op.Intrinsic(); !d.Any {
			q = d.Queue
		}
		if err := in.Check(m, q, 64); err != nil {
			t.Fatalf("%s: %v", in.Text(), err)
		}
		return s.Exec(&in)
	}
	expect := func(what string, at int, want ...int32) {
		t.Helper()
		for i, w := range want {
			if got := int32(s.mem[Scratch][at+i]); got != w {
				t.Errorf("%s: element %d is %d, want %d", what, i, got, w)
			}
		}
	}
	floats := func(what string, at int, want ...float32) {
		t.Helper()
		for i, w := range want {
			if got := s.mem[Scratch][at+i]; !sameWord(got, math.Float32bits(w)) {
				t.Errorf("%s: element %d is %v, want %v", what, i, math.Float32frombits(got), w)
			}
		}
	}
	put(0, 1, 2, 3, 4)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(run(OpScanSum, &Scan{N: Counts(4), Dst: At(400, 1), A: At(0, 1)}))
	floats("running sum", 100, 1, 3, 6, 10)
	must(run(OpScanSum, &Scan{N: Counts(4), Dst: At(412, -1), A: At(12, -1), Exclusive: true}))
	floats("reverse exclusive sum", 100, 9, 7, 4, 0)
	must(run(OpScanProd, &Scan{N: Counts(4), Dst: At(400, 1), A: At(0, 1), Exclusive: true}))
	floats("exclusive product", 100, 1, 1, 2, 6)
	put(0, 2, 5, 5, 1, 3, nan, 7, nan, 4, 4, 4, 4)
	must(run(OpArgMax, &Arg{N: Counts(3, 4), Red: 1, Dst: At(400, 1, 0), A: At(0, 4, 1)}))
	expect("argmax", 100, 1, 1, 0)
	must(run(OpArgMax, &Arg{N: Counts(3, 4), Red: 1, Dst: At(400, 1, 0), A: At(0, 4, 1), Last: true}))
	expect("last argmax", 100, 2, 3, 3)
	must(run(OpArgMin, &Arg{N: Counts(3, 4), Red: 1, Dst: At(400, 1, 0), A: At(0, 4, 1)}))
	expect("argmin", 100, 3, 1, 0)
	must(run(OpIota, &Iota{N: Counts(2, 3), Dst: At(400, 3, 1), Start: 7, Step: Counts(10, -1)}))
	expect("iota", 100, 7, 6, 5, 17, 16, 15)
	ints(10, 2, -1, 0)
	put(20, 1, 2, 3, 4, 5, 6) // three rows of two
	must(run(OpRowsGet, &Rows{Rows: 3, Len: 2, Index: 40, IndexS: 1, Table: 80, Pitch: 2, TS: 1, Limit: 3, Local: 400, LPitch: 2, LStep: 1, Type: F32}))
	floats("gathered rows", 100, 5, 6, 5, 6, 1, 2)
	must(run(OpRowsPut, &Rows{Rows: 3, Len: 2, Index: 40, IndexS: 1, Table: 80, Pitch: 2, TS: 1, Limit: 3, Local: 400, LPitch: 2, LStep: 1, Update: Add}))
	floats("scattered rows", 20, 2, 4, 3, 4, 15, 18)
	ints(10, 3)
	if err := run(OpRowsGet, &Rows{Rows: 1, Len: 2, Index: 40, Table: 80, Pitch: 2, TS: 1, Limit: 3, Local: 400, LPitch: 2, LStep: 1}); err == nil {
		t.Error("an index out of range is accepted")
	}
	must(run(OpRowsGet, &Rows{Rows: 1, Len: 2, Index: 40, Table: 80, Pitch: 2, TS: 1, Limit: 3, Local: 400, LPitch: 2, LStep: 1, Skip: true, Fill: FloatBits(9)}))
	floats("skipped row", 100, 9, 9)
	s.LoadBytes(0, make([]byte, 64))
	ints(10, 1, 1)
	must(run(OpScatter, &Gather{Rows: 2, Len: 2, Index: 40, IndexS: 1, DRAM: 0, Pitch: 4, Limit: 4, Local: 80, LPitch: 2, Update: Add}))
	must(run(OpGather, &Gather{Rows: 1, Len: 2, Index: 40, DRAM: 0, Pitch: 4, Limit: 4, Local: 400, LPitch: 2}))
	floats("scatter in DRAM", 100, 5, 8)
	put(0, 1.00390625, -65520, 3)
	must(run(OpCvt, &Vec{N: Counts(3), A: At(0, 1), Dst: At(400, 1), To: BF16}))
	must(run(OpCvt, &Vec{N: Counts(3), A: At(400, 1), Dst: At(0, 1), Type: BF16}))
	floats("through bfloat16", 0, 1, -65536, 3)
	must(run(OpCvt, &Vec{N: Counts(2), A: At(0, 1), Dst: At(400, 1), To: F16}))
	must(run(OpCvt, &Vec{N: Counts(2), A: At(400, 1), Dst: At(0, 1), Type: F16}))
	floats("through float16", 0, 1, float32(math.Inf(-1)))
}
