package isa

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
)

// random returns an instruction with random operands, valid for the encoder though not for a machine.
func random(r *rand.Rand, op Op) Instr {
	d := op.Intrinsic()
	in := Instr{Op: op, Node: int32(r.IntN(1000)) - 1, Args: d.Form.New()}
	slots := d.Form.slots()
	vals := make([]uint64, len(slots))
	for i, s := range slots {
		switch {
		case r.IntN(3) == 0:
		case s.limit > 0:
			vals[i] = r.Uint64N(s.limit)
		case s.wide:
			vals[i] = r.Uint64()
		default:
			vals[i] = uint64(r.Uint32())
		}
	}
	setValues(in.Args, vals)
	canonical(d, in.Args)
	return in
}

// canonical clears what assembly does not write: the places of immediates, the values of others, operands that are not used.
func canonical(d *Intrinsic, a Args) {
	fix := func(o *Operand, used bool) {
		switch {
		case !used:
			*o = Operand{}
		case o.IsImm:
			o.Addr, o.S = 0, [Dims]int32{}
		default:
			o.Value = 0
		}
	}
	switch a := a.(type) {
	case *Vec:
		fix(&a.Dst, true)
		fix(&a.A, d.Operands > 0)
		fix(&a.B, d.Operands > 1)
		fix(&a.C, d.Operands > 2)
	case *Reduce:
		fix(&a.Dst, true)
		fix(&a.A, true)
		fix(&a.B, d.Op == OpDot)
	case *Scan:
		fix(&a.Dst, true)
		fix(&a.A, true)
	case *Arg:
		fix(&a.Dst, true)
		fix(&a.A, true)
	case *Iota:
		fix(&a.Dst, true)
	}
}

func TestRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var e Encoder
	for op := OpNone + 1; op < NumOps; op++ {
		if op.Intrinsic().Name == "" || op.Intrinsic().Formula == "" {
			t.Fatalf("operation %d has no name or no formula", op)
		}
		for range 50 {
			in := random(r, op)
			code, err := e.Append(nil, &in)
			if err != nil {
				t.Fatal(err)
			}
			back, rest, err := e.Decode(append(code, 1, 2))
			if err != nil || len(rest) != 2 || !reflect.DeepEqual(back, in) {
				t.Fatalf("%s: decodes as %s, %d bytes left, %v", in.Text(), back.Text(), len(rest), err)
			}
			parsed, err := ParseInstr(in.Text())
			parsed.Node = in.Node
			if err != nil || !reflect.DeepEqual(parsed, in) {
				t.Fatalf("%s: parses as %s, %v", in.Text(), parsed.Text(), err)
			}
			again, _ := e.Append(nil, &parsed)
			if !bytes.Equal(again, code) {
				t.Fatalf("%s: other bytes", in.Text())
			}
		}
	}
}

// TestDecodeRefuses checks that damaged code never panics and never decodes to what would encode otherwise.
func TestDecodeRefuses(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var e Encoder
	for range 20_000 {
		in := random(r, Op(1+r.IntN(int(NumOps)-1)))
		code, err := e.Append(nil, &in)
		if err != nil {
			t.Fatal(err)
		}
		code[r.IntN(min(len(code), 24))] ^= 1 << r.IntN(8)
		code = code[:len(code)-r.IntN(2)*r.IntN(len(code))]
		back, rest, err := e.Decode(code)
		if err != nil {
			continue
		}
		again, err := e.Append(nil, &back)
		if err != nil || !bytes.Equal(append(again, rest...), code) {
			t.Fatalf("% x decodes as %s, which encodes as % x", code, back.Text(), again)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, line := range []string{"", "nop", "add x=1", "add n=[1,2,3,4,5,6,7]", "add n=1", "add dst=sp:0x0", "add dst=dram:0[1]", "matmul acc=1", "matmul type=f8", "matmul m=[1] m=[1]", "load fill=0x100000000", "load dram=zz", "add a=#-1"} {
		if _, err := ParseInstr(line); err == nil {
			t.Errorf("%q parses", line)
		}
	}
}
