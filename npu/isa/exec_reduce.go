package isa

import "math"

// partials is the number of partial results of a reduction.
const partials = 16

func (s *Core) reduce(d *Intrinsic, a *Reduce) {
	red := int(min(max(a.Red, 0), Dims))
	out := Dims - red
	mem, w := s.words(a.Dst.Addr)
	av, aw := s.words(a.A.Addr)
	bv, bw := av, aw
	bs := a.A.S
	dot := d.Op == OpDot
	var imm *Operand
	if dot {
		bs = a.B.S
		if a.B.IsImm {
			imm = &a.B
			bs = [Dims]int32{}
		} else {
			bv, bw = s.words(a.B.Addr)
		}
	}
	inner, st := plan(a.N[out:], [][]int64{widths(a.A.S[out:]), widths(bs[out:])})
	last := len(inner) - 1
	fn := s.combine(d, a.Type)
	mul := s.combine(&Intrinsics[OpMul], a.Type)
	n := [Dims]int32{}
	copy(n[:], a.N[:out])
	one := func(dst, ao, bo int64) {
		var p [partials]uint32
		j := 0
		loop(inner[:last], [][]int64{st[0][:last], st[1][:last]}, func(off []int64) {
			at, bt := int64(aw)+ao+off[0], int64(bw)+bo+off[1]
			for range inner[last] {
				v := av[at]
				if dot {
					o := uint32(0)
					if imm != nil {
						o = uint32(imm.Value)
					} else {
						o = bv[bt]
					}
					v = mul(v, o)
				}
				if j < partials {
					p[j] = v
				} else {
					p[j%partials] = fn(p[j%partials], v)
				}
				j++
				at += st[0][last]
				bt += st[1][last]
			}
		})
		r := treeOf(p, j, fn)
		if a.Acc {
			r = fn(mem[int64(w)+dst], r)
		}
		mem[int64(w)+dst] = r
	}
	total := int64(1)
	for _, c := range a.N {
		total *= int64(max(c, 1))
	}
	ds, as, bss := widths(a.Dst.S[:out]), widths(a.A.S[:out]), widths(bs[:out])
	if out == 0 {
		one(0, 0, 0)
		return
	}
	split := 0 // the outermost dimension of more than one element is split among workers
	for split < out-1 && n[split] <= 1 {
		split++
	}
	first := int(max(n[split], 1))
	s.parallel(first, total*2, func(lo, hi int) {
		part := n
		part[split] = int32(hi - lo)
		loop(part[:out], [][]int64{ds, as, bss}, func(off []int64) {
			k := int64(lo)
			one(off[0]+k*ds[split], off[1]+k*as[split], off[2]+k*bss[split])
		})
	})
}

// treeOf combines partial results, of which the first n (at most all) hold something.
func treeOf(p [partials]uint32, n int, fn func(a, b uint32) uint32) uint32 {
	for step := partials / 2; step >= 1; step /= 2 {
		for i := range step {
			if i+step < n {
				p[i] = fn(p[i], p[i+step])
			}
		}
	}
	return p[0]
}

// combine returns a two-operand function on words.
func (s *Core) combine(d *Intrinsic, t DType) func(a, b uint32) uint32 {
	if t == I32 {
		f := d.I32
		return func(a, b uint32) uint32 { return uint32(f(int32(a), int32(b), 0)) }
	}
	if s.Machine.Numerics.Flush {
		return func(a, b uint32) uint32 { return s.scalarF32(d, a, b, 0) }
	}
	f := d.F32
	return func(a, b uint32) uint32 {
		return math.Float32bits(f(math.Float32frombits(a), math.Float32frombits(b), 0))
	}
}

func (s *Core) scan(d *Intrinsic, a *Scan) {
	dst, dw := s.words(a.Dst.Addr)
	src, sw := s.words(a.A.Addr)
	fn := s.combine(d, a.Type)
	const last = Dims - 1
	start := uint32(0)
	if d.Op == OpScanProd {
		start = 1
		if a.Type == F32 {
			start = math.Float32bits(1)
		}
	}
	ds, as := int64(a.Dst.S[last]), int64(a.A.S[last])
	loop(a.N[:last], [][]int64{widths(a.Dst.S[:last]), widths(a.A.S[:last])}, func(off []int64) {
		to, from := int64(dw)+off[0], int64(sw)+off[1]
		run := start
		for i := range max(a.N[last], 1) {
			v := src[from]
			switch {
			case a.Exclusive:
				dst[to] = run
				run = fn(run, v)
			case i == 0:
				run = v
				dst[to] = run
			default:
				run = fn(run, v)
				dst[to] = run
			}
			to += ds
			from += as
		}
	})
}

func (s *Core) arg(d *Intrinsic, a *Arg) {
	out := Dims - int(min(max(a.Red, 0), Dims))
	dst, dw := s.words(a.Dst.Addr)
	src, sw := s.words(a.A.Addr)
	better := func(x, y uint32) bool { return d.I32(int32(x), int32(y), 0) != 0 }
	if a.Type == F32 {
		ftz := s.Machine.Numerics.Flush
		better = func(x, y uint32) bool {
			p, q := math.Float32frombits(x), math.Float32frombits(y)
			if ftz {
				p, q = flush(p), flush(q)
			}
			return d.FCmp(p, q)
		}
	}
	loop(a.N[:out], [][]int64{widths(a.Dst.S[:out]), widths(a.A.S[:out])}, func(off []int64) {
		best, at, j := uint32(0), int32(0), int32(0)
		loop(a.N[out:], [][]int64{widths(a.A.S[out:])}, func(in []int64) {
			v := src[int64(sw)+off[1]+in[0]]
			if j == 0 || better(v, best) || a.Last && !better(best, v) {
				best, at = v, j
			}
			j++
		})
		dst[int64(dw)+off[0]] = uint32(at)
	})
}
