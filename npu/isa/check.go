package isa

import (
	"errors"
	"fmt"
	"math"

	"gradtool/npu/machine"
)

// Check returns what is wrong with an instruction as such: operands that the instruction has not, types, alignment, addresses
// outside the memories, results that overlap operands. An instruction that passes can be executed.
func (in *Instr) Check(m *machine.Machine, q Queue, dramBytes int64) error {
	d := in.Op.Intrinsic()
	if d == nil {
		return fmt.Errorf("no instruction has the operation code %d", uint8(in.Op))
	}
	if !d.Any && d.Queue != q {
		return fmt.Errorf("%s is an instruction of the %s queue, not of the %s queue", d.Name, d.Queue, q)
	}
	if !d.Form.holds(in.Args) {
		return fmt.Errorf("%s has operands of another form", d.Name)
	}
	if err := checkArgs(m, d, in.Args); err != nil {
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	if err := checkOperands(d, in.Args); err != nil {
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	if !spansFit(in.Args) {
		return fmt.Errorf("%s: an operand spans more than 2^44 elements", d.Name)
	}
	acc := in.Effects(nil)
	for i := range acc {
		a := &acc[i]
		limit := dramBytes
		switch a.Space {
		case Scratch:
			limit = int64(m.Scratchpad.Bytes)
		case Accum:
			limit = int64(m.Accumulator.Bytes)
		}
		if a.Addr < 0 || a.End() > limit || a.End() < a.Addr {
			return fmt.Errorf("%s: operand %s is at [0x%x, 0x%x) of the %s, which has 0x%x bytes", d.Name, a.Name, a.Addr, a.End(), a.Space, limit)
		}
		for _, e := range a.box() {
			if e.stride > 1 && e.stride%a.Size != 0 || a.Addr%a.Size != 0 {
				return fmt.Errorf("%s: operand %s at 0x%x of the %s is not aligned to its %d bytes", d.Name, a.Name, a.Addr, a.Space, a.Size)
			}
		}
	}
	return checkAlias(d, in, acc)
}

// holds reports whether operands are of a form.
func (f Form) holds(a Args) bool {
	switch a.(type) {
	case *DMA:
		return f == FormDMA
	case *Gather:
		return f == FormGather
	case *Matmul:
		return f == FormMatmul
	case *Vec:
		return f == FormVec
	case *Reduce:
		return f == FormReduce
	case *Scan:
		return f == FormScan
	case *Arg:
		return f == FormArg
	case *Iota:
		return f == FormIota
	case *Rows:
		return f == FormRows
	case *Sync:
		return f == FormSync
	}
	return false
}

// checkOperands refuses what has no meaning: operands that the instruction does not read, and immediates with a place.
func checkOperands(d *Intrinsic, args Args) error {
	var err error
	one := func(name string, o *Operand, used bool) {
		switch {
		case !used && *o != Operand{}:
			err = fmt.Errorf("has no operand %s", name)
		case o.IsImm && (o.Addr != 0 || o.S != [Dims]int32{}):
			err = fmt.Errorf("operand %s is an immediate with an address", name)
		case !o.IsImm && o.Value != 0:
			err = fmt.Errorf("operand %s is in memory and has a value", name)
		}
	}
	switch a := args.(type) {
	case *Vec:
		one("dst", &a.Dst, true)
		one("a", &a.A, d.Operands > 0)
		one("b", &a.B, d.Operands > 1)
		one("c", &a.C, d.Operands > 2)
	case *Reduce:
		one("dst", &a.Dst, true)
		one("a", &a.A, true)
		one("b", &a.B, d.Op == OpDot)
	case *Scan:
		one("dst", &a.Dst, true)
		one("a", &a.A, true)
	case *Arg:
		one("dst", &a.Dst, true)
		one("a", &a.A, true)
	case *Iota:
		one("dst", &a.Dst, true)
	}
	return err
}

// spansFit reports whether no stride times its count comes near the limits of 64 bits. Addresses of DRAM are bounded too.
func spansFit(args Args) bool {
	ok := true
	span := func(n int32, s int64) {
		if n > 1 && math.Abs(float64(s))*float64(n) > 1<<44 {
			ok = false
		}
	}
	op := func(o *Operand, n [Dims]int32) {
		for i, c := range n {
			span(c, int64(o.S[i]))
		}
	}
	three := func(n, s [3]int32) {
		for i, c := range n {
			span(c, int64(s[i]))
		}
	}
	switch a := args.(type) {
	case *DMA:
		for i, c := range a.N {
			span(c, a.DS[i])
			span(max(c, 1)+a.Lo[i]+a.Hi[i], int64(a.LS[i]))
		}
		ok = ok && a.DRAM >= 0 && a.DRAM < 1<<48
	case *Gather:
		span(a.Rows, int64(a.IndexS))
		span(a.Rows, int64(a.LPitch))
		span(a.Limit, a.Pitch)
		ok = ok && a.DRAM >= 0 && a.DRAM < 1<<48
	case *Matmul:
		three(a.M, a.AM)
		three(a.K, a.AK)
		three(a.K, a.BK)
		three(a.N, a.BN)
		span(product(a.M), int64(a.CM))
	case *Vec:
		op(&a.Dst, a.N)
		op(&a.A, a.N)
		op(&a.B, a.N)
		op(&a.C, a.N)
	case *Reduce:
		op(&a.Dst, a.N)
		op(&a.A, a.N)
		op(&a.B, a.N)
	case *Scan:
		op(&a.Dst, a.N)
		op(&a.A, a.N)
	case *Arg:
		op(&a.Dst, a.N)
		op(&a.A, a.N)
	case *Iota:
		op(&a.Dst, a.N)
	case *Rows:
		span(a.Rows, int64(a.IndexS))
		span(a.Rows, int64(a.LPitch))
		span(a.Len, int64(a.LStep))
		span(a.Limit, int64(a.Pitch))
		span(a.Len, int64(a.TS))
	}
	return ok
}

// maxElements bounds the size of an instruction, so that no count overflows.
const maxElements = 1 << 36

// counts checks that counts are not negative and their product is sane, and returns it.
func counts(what string, n ...int32) error {
	total := int64(1)
	for _, c := range n {
		if c < 0 {
			return fmt.Errorf("%s: a count is %d", what, c)
		}
		if total *= max(int64(c), 1); total > maxElements {
			return fmt.Errorf("%s: more than 2^36 elements", what)
		}
	}
	return nil
}

func oneOf(t DType, types ...DType) error {
	for _, x := range types {
		if t == x {
			return nil
		}
	}
	return fmt.Errorf("type %s is not allowed: %v are", t, types)
}

func checkArgs(m *machine.Machine, d *Intrinsic, args Args) error {
	switch a := args.(type) {
	case *DMA:
		return checkDMA(d, a)
	case *Gather:
		if a.Update >= numUpdates || a.Purpose >= NumPurposes {
			return errors.New("unknown update or purpose")
		}
		if d.Op == OpGather && a.Update != Set {
			return errors.New("a gather does not update")
		}
		if a.Pitch < 0 {
			return fmt.Errorf("pitch is %d", a.Pitch)
		}
		return errors.Join(counts("rows", a.Rows, a.Len), counts("limit", a.Limit, a.Len), positive("rows", a.Rows), positive("len", a.Len), positive("limit", a.Limit), oneOf(a.Type, F32, I32))
	case *Matmul:
		if a.A.Space() != Scratch || a.B.Space() != Scratch || a.C.Space() != Accum {
			return errors.New("a and b are in the scratchpad and c in the accumulator")
		}
		if a.Flow >= numFlows {
			return fmt.Errorf("unknown %s", a.Flow)
		}
		if err := oneOf(a.Type, F32, BF16, F16); err != nil {
			return err
		}
		if m.Rate(a.Type.String()) == 0 {
			return fmt.Errorf("machine %s multiplies no %s", m.Name, a.Type)
		}
		if a.CM < 0 || product(a.M) > 1 && a.CM < product(a.N) {
			return fmt.Errorf("rows of c are %d elements apart and %d long", a.CM, product(a.N))
		}
		return errors.Join(counts("m and k", join(a.M, a.K)...), counts("k and n", join(a.K, a.N)...), counts("m and n", join(a.M, a.N)...))
	case *Vec:
		return checkVec(d, a)
	case *Reduce:
		if a.Red < 0 || a.Red > Dims {
			return fmt.Errorf("red is %d", a.Red)
		}
		return errors.Join(counts("n", a.N[:]...), oneOf(a.Type, F32, I32), notImm(&a.Dst), notImm(&a.A))
	case *Scan:
		return errors.Join(counts("n", a.N[:]...), oneOf(a.Type, F32, I32), notImm(&a.Dst), notImm(&a.A))
	case *Arg:
		if a.Red < 0 || a.Red > Dims {
			return fmt.Errorf("red is %d", a.Red)
		}
		return errors.Join(counts("n", a.N[:]...), oneOf(a.Type, F32, I32), notImm(&a.Dst), notImm(&a.A))
	case *Iota:
		return errors.Join(counts("n", a.N[:]...), notImm(&a.Dst))
	case *Rows:
		if a.Update >= numUpdates {
			return errors.New("unknown update")
		}
		if d.Op == OpRowsGet && a.Update != Set {
			return errors.New("a gather does not update")
		}
		return errors.Join(counts("rows", a.Rows, a.Len), counts("limit", a.Limit, a.Len), positive("rows", a.Rows), positive("len", a.Len), positive("limit", a.Limit), oneOf(a.Type, F32, I32))
	case *Sync:
		if a.Sem < 0 || int(a.Sem) >= m.Queues.Semaphores {
			return fmt.Errorf("there is no semaphore %d: machine %s has %d", a.Sem, m.Name, m.Queues.Semaphores)
		}
		if d.Op == OpSignal && a.Value != 0 || a.Value < 0 {
			return fmt.Errorf("value is %d", a.Value)
		}
	}
	return nil
}

func positive(what string, n int32) error {
	if n < 1 {
		return fmt.Errorf("%s is %d", what, n)
	}
	return nil
}

func notImm(o *Operand) error {
	if o.IsImm {
		return errors.New("an immediate stands where memory is needed")
	}
	return nil
}

func checkDMA(d *Intrinsic, a *DMA) error {
	if a.Update >= numUpdates || a.Purpose >= NumPurposes {
		return errors.New("unknown update or purpose")
	}
	if a.Type >= numDTypes || a.LType >= numDTypes {
		return errors.New("unknown type")
	}
	wide := a.Type
	switch a.Type {
	case F16, BF16:
		wide = F32
	case U8, I8:
		wide = I32
	}
	if a.LType != wide && (a.LType != a.Type || a.Type.Bytes() == 1) {
		return fmt.Errorf("%s in DRAM does not become %s on chip", a.Type, a.LType)
	}
	n := a.N
	for i := range n {
		if a.Lo[i] < 0 || a.Hi[i] < 0 {
			return errors.New("negative padding")
		}
		if a.Lo[i] > 0 || a.Hi[i] > 0 {
			if d.Op == OpStore {
				return errors.New("a store has no padding")
			}
			sum := int64(max(a.N[i], 1)) + int64(a.Lo[i]) + int64(a.Hi[i])
			if sum > math.MaxInt32 {
				return errors.New("too much padding")
			}
			n[i] = int32(sum)
		}
	}
	if d.Op == OpLoad && a.Update != Set {
		return errors.New("a load does not update")
	}
	if a.Update != Set && (a.Type != a.LType || a.Type.Bytes() != 4) {
		return fmt.Errorf("an update needs f32 or i32 on both sides, not %s and %s", a.Type, a.LType)
	}
	return errors.Join(counts("n", a.N[:]...), counts("padded n", n[:]...))
}

func checkVec(d *Intrinsic, a *Vec) error {
	if err := errors.Join(counts("n", a.N[:]...), notImm(&a.Dst)); err != nil {
		return err
	}
	if d.Op == OpCvt {
		if a.Type == a.To {
			return fmt.Errorf("converts %s to %s: that is mov", a.Type, a.To)
		}
		if a.Type == I32 && a.To.Bytes() == 2 || a.To == I32 && a.Type.Bytes() == 2 {
			return errors.New("integers and 16-bit floats convert by way of f32")
		}
		return errors.Join(oneOf(a.Type, F32, I32, F16, BF16), oneOf(a.To, F32, I32, F16, BF16), notImm(&a.A))
	}
	if a.To != F32 {
		return errors.New("only cvt has a type of the result")
	}
	if d.I32 == nil {
		return oneOf(a.Type, F32)
	}
	if d.F32 == nil && d.FCmp == nil {
		return oneOf(a.Type, I32)
	}
	return oneOf(a.Type, F32, I32)
}

// checkAlias refuses results whose elements overlap each other, or overlap an operand otherwise than element for element.
func checkAlias(d *Intrinsic, in *Instr, acc []Access) error {
	if d.Form == FormSync {
		return nil
	}
	w := &acc[len(acc)-1]
	if !w.Write {
		return fmt.Errorf("%s writes nothing", d.Name)
	}
	if want := elements(in); want > 0 && w.Bytes() != want*w.Size {
		update := false
		switch a := in.Args.(type) {
		case *DMA:
			update = a.Update != Set
		}
		if !update {
			return fmt.Errorf("%s: %d results share %d places", d.Name, want, w.Bytes()/w.Size)
		}
	}
	if d.Form == FormDMA || d.Form == FormMatmul {
		return nil // the spaces differ
	}
	for i := range acc[:len(acc)-1] {
		r := &acc[i]
		if r.Name == w.Name || !r.Overlaps(w) {
			continue
		}
		if inPlace(in, r.Name) {
			continue
		}
		return fmt.Errorf("%s: the result overlaps operand %s", d.Name, r.Name)
	}
	return nil
}

// elements returns the number of results of an instruction that must have different places, 0 for tables.
func elements(in *Instr) int64 {
	prod := func(n []int32) int64 {
		p := int64(1)
		for _, c := range n {
			p *= int64(max(c, 1))
		}
		return p
	}
	switch a := in.Args.(type) {
	case *DMA:
		n := a.N
		if in.Op == OpLoad {
			for i := range n {
				n[i] = max(n[i], 1) + a.Lo[i] + a.Hi[i]
			}
		}
		return prod(n[:])
	case *Gather:
		if in.Op == OpGather {
			return int64(a.Rows) * int64(a.Len)
		}
	case *Matmul:
		return int64(product(a.M)) * int64(product(a.N))
	case *Vec:
		return prod(a.N[:])
	case *Reduce:
		return prod(outer(a.N, a.Red))
	case *Scan:
		return prod(a.N[:])
	case *Arg:
		return prod(outer(a.N, a.Red))
	case *Iota:
		return prod(a.N[:])
	case *Rows:
		if in.Op == OpRowsGet {
			return int64(a.Rows) * int64(a.Len)
		}
	}
	return 0
}

// inPlace reports whether the result takes the place of an operand element for element.
func inPlace(in *Instr, name string) bool {
	same := func(o, dst *Operand, n [Dims]int32, wide bool) bool {
		if !wide || o.IsImm || o.Addr != dst.Addr {
			return false
		}
		for i, c := range n {
			if c > 1 && o.S[i] != dst.S[i] {
				return false
			}
		}
		return true
	}
	switch a := in.Args.(type) {
	case *Vec:
		o := map[string]*Operand{"a": &a.A, "b": &a.B, "c": &a.C}[name]
		return o != nil && same(o, &a.Dst, a.N, a.Type.Bytes() == resultType(in.Op.Intrinsic(), a).Bytes())
	case *Scan:
		return same(&a.A, &a.Dst, a.N, true)
	case *Reduce:
		return false
	}
	return false
}
