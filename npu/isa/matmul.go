package isa

import "math"

// tileRows and tileCols are the size of a tile of C that the model of the array computes at a time: an affair of the
// simulator's speed, not of the machine.
const (
	tileRows = 4
	tileCols = 8
)

// mac is one multiply-accumulate of the numeric contract: c + a*b.
func mac(fused, ftz bool, c, a, b float32) float32 {
	var r float32
	switch {
	case fused:
		r = fma32(a, b, c)
	case ftz:
		r = c + flush(float32(a*b))
	default:
		r = c + float32(a*b)
	}
	if ftz {
		r = flush(r)
	}
	return r
}

// macTileGo adds k terms to a tile of C: a holds tileRows values and b tileCols values for each of them.
func macTileGo(c *[tileRows * tileCols]float32, a, b []float32, k int) {
	for range k {
		for i, x := range a[:tileRows] {
			row := c[i*tileCols : (i+1)*tileCols]
			for j, y := range b[:tileCols] {
				row[j] += float32(x * y)
			}
		}
		a, b = a[tileRows:], b[tileCols:]
	}
}

// macTileExact is macTileGo with the machine's switches.
func (s *Core) macTileExact(c *[tileRows * tileCols]float32, a, b []float32, k int) {
	fused, ftz := s.Machine.Numerics.Fused, s.Machine.Numerics.Flush
	for range k {
		for i, x := range a[:tileRows] {
			row := c[i*tileCols : (i+1)*tileCols]
			for j, y := range b[:tileCols] {
				row[j] = mac(fused, ftz, row[j], x, y)
			}
		}
		a, b = a[tileRows:], b[tileCols:]
	}
}

// offsets returns the offsets of all index tuples of three counts, in order.
func offsets(n, s [3]int32) []int64 {
	out := make([]int64, 0, product(n))
	loop(n[:], [][]int64{widths(s[:])}, func(off []int64) { out = append(out, off[0]) })
	return out
}

// fetch reads an operand element of a matmul.
func (s *Core) fetch(base Local, off int64, t DType) float32 {
	mem := s.mem[base.Space()]
	var w uint32
	if t == F32 {
		w = mem[base.Offset()/4+off]
	} else {
		w = widen(t, getSmall(mem, base.Offset()+2*off, t))
	}
	x := math.Float32frombits(w)
	if s.Machine.Numerics.Flush {
		x = flush(x)
	}
	return x
}

// pack copies an operand into panels: width values for each k, zeros behind the last.
func (s *Core) pack(base Local, t DType, lines, ks []int64, width int) []float32 {
	panels := (len(lines) + width - 1) / width
	out := make([]float32, panels*width*len(ks))
	s.parallel(panels, int64(len(out)), func(lo, hi int) {
		for p := lo; p < hi; p++ {
			part := lines[p*width : min((p+1)*width, len(lines))]
			to := out[p*width*len(ks):]
			if t == F32 && !s.Machine.Numerics.Flush {
				mem, first := s.words(base)
				for i, l := range part {
					at := i
					for _, k := range ks {
						to[at] = math.Float32frombits(mem[int64(first)+l+k])
						at += width
					}
				}
				continue
			}
			for k, ko := range ks {
				for i, l := range part {
					to[k*width+i] = s.fetch(base, l+ko, t)
				}
			}
		}
	})
	return out
}

func (s *Core) matmul(a *Matmul) {
	am, ak := offsets(a.M, a.AM), offsets(a.K, a.AK)
	bn, bk := offsets(a.N, a.BN), offsets(a.K, a.BK)
	left := s.pack(a.A, a.Type, am, ak, tileRows)
	right := s.pack(a.B, a.Type, bn, bk, tileCols)
	k := len(ak)
	c := s.mem[Accum]
	base := a.C.Offset() / 4
	exact := s.Machine.Numerics.Fused || s.Machine.Numerics.Flush
	work := int64(len(am)) * int64(len(bn)) * int64(k) / 8
	s.parallel((len(am)+tileRows-1)/tileRows, work, func(lo, hi int) {
		var tile [tileRows * tileCols]float32
		for j := 0; j < len(bn); j += tileCols {
			cols := min(tileCols, len(bn)-j)
			b := right[j*k:]
			for p := lo; p < hi; p++ {
				rows := min(tileRows, len(am)-p*tileRows)
				clear(tile[:])
				at := base + int64(p*tileRows)*int64(a.CM) + int64(j)
				if a.Acc {
					for i := range rows {
						for q, w := range c[at+int64(i)*int64(a.CM):][:cols] {
							x := math.Float32frombits(w)
							if s.Machine.Numerics.Flush {
								x = flush(x)
							}
							tile[i*tileCols+q] = x
						}
					}
				}
				l := left[p*tileRows*k:]
				if exact {
					s.macTileExact(&tile, l, b, k)
				} else {
					macTile(&tile, &l[0], &b[0], k)
				}
				for i := range rows {
					out := c[at+int64(i)*int64(a.CM):][:cols]
					for q := range out {
						out[q] = math.Float32bits(tile[i*tileCols+q])
					}
				}
			}
		}
	})
}
