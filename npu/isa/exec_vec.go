package isa

import "math"

// chunk is the number of elements that the vector unit's model handles at a time.
const chunk = 512

// lane is an operand of an element-wise instruction: a memory, the word of element 0, and strides in words.
type lane struct {
	mem    []uint32
	base   int64
	stride int64 // along the innermost dimension
	imm    bool
	buf    [chunk]uint32
}

// read returns n elements from offset off.
func (l *lane) read(off int64, n int) []uint32 {
	at := l.base + off
	if l.stride == 1 && !l.imm {
		return l.mem[at : at+int64(n)]
	}
	b := l.buf[:n]
	switch {
	case l.imm: // filled when the lane was made
	case l.stride == 0:
		v := l.mem[at]
		for i := range b {
			b[i] = v
		}
	default:
		for i := range b {
			b[i] = l.mem[at]
			at += l.stride
		}
	}
	return b
}

// write stores n elements at offset off.
func (l *lane) write(off int64, v []uint32) {
	at := l.base + off
	if l.stride == 1 {
		copy(l.mem[at:], v)
		return
	}
	for _, x := range v {
		l.mem[at] = x
		at += l.stride
	}
}

func (s *Core) lane(o *Operand, stride int64) *lane {
	l := &lane{stride: stride, imm: o.IsImm}
	if !o.IsImm {
		mem, w := s.words(o.Addr)
		l.mem, l.base = mem, int64(w)
	} else {
		for i := range l.buf {
			l.buf[i] = uint32(o.Value)
		}
	}
	return l
}

func (s *Core) vec(d *Intrinsic, a *Vec) {
	if d.Op == OpCvt && (a.Type.Bytes() != 4 || a.To.Bytes() != 4) {
		s.cvtSmall(a)
		return
	}
	ops := []*Operand{&a.Dst, &a.A, &a.B, &a.C}[:1+d.Operands]
	strides := make([][]int64, len(ops))
	for i, o := range ops {
		strides[i] = widths(o.S[:])
		if o.IsImm {
			strides[i] = make([]int64, Dims)
		}
	}
	counts, st := plan(a.N[:], strides)
	if len(counts) == 1 && counts[0] > chunk { // so that large instructions split into rows
		if n := counts[0]; n%chunk == 0 {
			for i := range st {
				st[i] = []int64{st[i][0] * chunk, st[i][0]}
			}
			counts = []int32{n / chunk, chunk}
		}
	}
	last := len(counts) - 1
	total := int64(1)
	for _, c := range counts {
		total *= int64(c)
	}
	f := s.kernel(d, a.Type, a.To)
	rows := func(lo, hi int) {
		lanes := make([]*lane, len(ops))
		outer := make([][]int64, len(ops))
		n := append([]int32(nil), counts[:last]...)
		for i, o := range ops {
			lanes[i] = s.lane(o, st[i][last])
			outer[i] = st[i][:last]
			if last > 0 {
				lanes[i].base += int64(lo) * st[i][0]
			}
		}
		if last > 0 {
			n[0] = int32(hi - lo)
		}
		out := make([]uint32, chunk)
		args := make([][]uint32, 3)
		loop(n, outer, func(off []int64) {
			for at := 0; at < int(counts[last]); at += chunk {
				k := min(chunk, int(counts[last])-at)
				for i := 1; i < len(ops); i++ {
					args[i-1] = lanes[i].read(off[i]+int64(at)*lanes[i].stride, k)
				}
				f(out[:k], args[0], args[1], args[2])
				lanes[0].write(off[0]+int64(at)*lanes[0].stride, out[:k])
			}
		})
	}
	if last == 0 {
		rows(0, 1)
		return
	}
	cost := total
	if d.Special {
		cost *= 16
	}
	s.parallel(int(counts[0]), cost, rows)
}

// kernel returns the function that computes a chunk of results.
func (s *Core) kernel(d *Intrinsic, t, to DType) func(out, a, b, c []uint32) {
	switch {
	case d.Op == OpMov:
		return func(out, a, _, _ []uint32) { copy(out, a) }
	case d.Op == OpCvt && t == F32:
		return func(out, a, _, _ []uint32) {
			for i := range out {
				out[i] = uint32(truncI32(math.Float32frombits(a[i])))
			}
		}
	case d.Op == OpCvt:
		return func(out, a, _, _ []uint32) {
			for i := range out {
				out[i] = math.Float32bits(float32(int32(a[i])))
			}
		}
	case t == I32:
		f := d.I32
		switch d.Operands {
		case 1:
			return func(out, a, _, _ []uint32) {
				for i := range out {
					out[i] = uint32(f(int32(a[i]), 0, 0))
				}
			}
		case 2:
			return func(out, a, b, _ []uint32) {
				for i := range out {
					out[i] = uint32(f(int32(a[i]), int32(b[i]), 0))
				}
			}
		}
		return func(out, a, b, c []uint32) {
			for i := range out {
				out[i] = uint32(f(int32(a[i]), int32(b[i]), int32(c[i])))
			}
		}
	case s.Machine.Numerics.Flush || s.Machine.Numerics.Fused:
		return func(out, a, b, c []uint32) {
			for i := range out {
				var y, z uint32
				if b != nil {
					y = b[i]
				}
				if c != nil {
					z = c[i]
				}
				out[i] = s.scalarF32(d, a[i], y, z)
			}
		}
	case d.FCmp != nil:
		f := d.FCmp
		return func(out, a, b, _ []uint32) {
			for i := range out {
				out[i] = uint32(bit(f(math.Float32frombits(a[i]), math.Float32frombits(b[i]))))
			}
		}
	}
	return floatKernel(d)
}

// floatKernel has tight loops for the most frequent instructions; the general loop gives the same values.
func floatKernel(d *Intrinsic) func(out, a, b, c []uint32) {
	switch d.Op {
	case OpAdd:
		return func(out, a, b, _ []uint32) {
			a, b = a[:len(out)], b[:len(out)]
			for i := range out {
				out[i] = math.Float32bits(math.Float32frombits(a[i]) + math.Float32frombits(b[i]))
			}
		}
	case OpSub:
		return func(out, a, b, _ []uint32) {
			a, b = a[:len(out)], b[:len(out)]
			for i := range out {
				out[i] = math.Float32bits(math.Float32frombits(a[i]) - math.Float32frombits(b[i]))
			}
		}
	case OpMul:
		return func(out, a, b, _ []uint32) {
			a, b = a[:len(out)], b[:len(out)]
			for i := range out {
				out[i] = math.Float32bits(math.Float32frombits(a[i]) * math.Float32frombits(b[i]))
			}
		}
	case OpFma:
		return func(out, a, b, c []uint32) {
			a, b, c = a[:len(out)], b[:len(out)], c[:len(out)]
			for i := range out {
				p := float32(math.Float32frombits(a[i]) * math.Float32frombits(b[i]))
				out[i] = math.Float32bits(p + math.Float32frombits(c[i]))
			}
		}
	}
	f := d.F32
	switch d.Operands {
	case 1:
		return func(out, a, _, _ []uint32) {
			for i := range out {
				out[i] = math.Float32bits(f(math.Float32frombits(a[i]), 0, 0))
			}
		}
	case 2:
		return func(out, a, b, _ []uint32) {
			for i := range out {
				out[i] = math.Float32bits(f(math.Float32frombits(a[i]), math.Float32frombits(b[i]), 0))
			}
		}
	}
	return func(out, a, b, c []uint32) {
		for i := range out {
			out[i] = math.Float32bits(f(math.Float32frombits(a[i]), math.Float32frombits(b[i]), math.Float32frombits(c[i])))
		}
	}
}

// scalarF32 computes one element of a float instruction with the machine's numerics.
func (s *Core) scalarF32(d *Intrinsic, a, b, c uint32) uint32 {
	return d.float(s.Machine.Numerics, a, b, c)
}

// truncI32 converts to an integer toward zero; NaN gives 0, values out of range the nearest integer.
func truncI32(x float32) int32 {
	switch {
	case x != x:
		return 0
	case x >= 1<<31:
		return math.MaxInt32
	case x < -1<<31:
		return math.MinInt32
	}
	return int32(x)
}

// cvtSmall converts between f32 and the 16-bit floats.
func (s *Core) cvtSmall(a *Vec) {
	src, dst := s.mem[a.A.Addr.Space()], s.mem[a.Dst.Addr.Space()]
	sb, db := int64(a.Type.Bytes()), int64(a.To.Bytes())
	loop(a.N[:], [][]int64{widths(a.Dst.S[:]), widths(a.A.S[:])}, func(off []int64) {
		from, to := a.A.Addr.Offset()+off[1]*sb, a.Dst.Addr.Offset()+off[0]*db
		var w uint32
		if sb == 4 {
			w = src[from/4]
		} else {
			w = widen(a.Type, getSmall(src, from, a.Type))
		}
		if db == 4 {
			dst[to/4] = w
		} else {
			putSmall(dst, to, a.To, narrow(a.To, w))
		}
	})
}
