package emit

import (
	"gradtool/npu/legal"
)

// footprint returns the most words that a tile of a nest takes on chip at one time: all its loads, and the values between
// their computation and last use.
func (e *Emitter) footprint(k *legal.Nest, tile []int) int {
	t := box{make([]int, len(tile)), tile}
	n := 0
	pad := acrossRows(k)
	for _, a := range k.In {
		if a != nil {
			n += e.words(a, t, pad)
		}
	}
	varies := k.Varies()
	last := make([]int, len(varies))
	for i, s := range k.Body {
		for _, a := range s.Args {
			last[a] = i
		}
	}
	for _, o := range k.Out {
		last[o.Value] = len(k.Body)
	}
	size := func(v int) int {
		w := 1
		for i, d := range tile {
			if varies[v]>>i&1 != 0 {
				w *= d
			}
		}
		return w
	}
	if sumsAcross(k) {
		n += size(0)
	}
	peak, live := 0, 0
	ends := make([][]int, len(k.Body)+1) // values by the statement that reads them last
	for i, s := range k.Body {
		v := len(k.In) + i
		if s.Op == legal.ConstOp {
			continue
		}
		inPlace := false
		for _, a := range s.Args {
			inPlace = inPlace || a >= len(k.In) && last[a] == i && varies[a] == varies[v] && !s.Op.Reduces()
		}
		live += size(v)
		if inPlace {
			peak = max(peak, live-size(v))
		} else {
			peak = max(peak, live)
		}
		ends[last[v]] = append(ends[last[v]], v)
		for _, w := range ends[i] {
			live -= size(w)
		}
	}
	return n + peak
}

// NestTile returns the size of the tiles that a nest is cut into, for at most so many words on chip at a time. That dimension is cut next which leaves
// transfers longest, the outer one of equals. It reports whether they fit.
func (e *Emitter) NestTile(k *legal.Nest, target int) ([]int, bool) {
	tile := append([]int{}, k.Dims...)
	for e.footprint(k, tile) > target {
		cut, least := -1, 0.0
		for i := range tile {
			if tile[i] == 1 {
				continue
			}
			old := tile[i]
			tile[i] = ceilDiv(old, 2)
			if _, err := e.newNestRun(k, tile); err == nil {
				if c := e.nestDMA(k, tile); cut < 0 || c < 0.99*least {
					cut, least = i, c
				}
			}
			tile[i] = old
		}
		if cut < 0 {
			return tile, false
		}
		parts := ceilDiv(k.Dims[cut], tile[cut]) * 2
		for tile[cut] == ceilDiv(k.Dims[cut], parts) {
			parts++
		}
		tile[cut] = ceilDiv(k.Dims[cut], parts)
	}
	return tile, true
}

// nestDMA estimates the transfers of a nest cut into tiles, each load and store being done for each tile that it varies with.
func (e *Emitter) nestDMA(k *legal.Nest, tile []int) float64 {
	t := box{make([]int, len(tile)), tile}
	total := 0.0
	add := func(a *legal.Access, cycles func(*legal.Access, box) float64) {
		varies := a.Varies()
		n := 1
		for i := range tile {
			if varies>>i&1 != 0 {
				n *= ceilDiv(k.Dims[i], tile[i])
			}
		}
		total += float64(n) * cycles(a, t)
	}
	for _, a := range k.In {
		if a != nil {
			add(a, e.dmaCycles)
		}
	}
	for _, o := range k.Out {
		add(o.To, e.storeCycles)
	}
	return total
}

// Estimate returns about how many cycles a kernel takes on its own.
func (e *Emitter) Estimate(k legal.Kernel) float64 {
	bytes := 0.0
	move := func(a *legal.Access, dims []int) {
		n := 1
		for i, d := range dims {
			if a.Varies()>>i&1 != 0 {
				n *= d
			}
		}
		bytes += 4 * float64(n)
	}
	burst := float64(e.Machine.DMA.BytesPerCycle)
	switch k := k.(type) {
	case *legal.Contract:
		macs := 1.0
		for _, d := range k.Dims {
			macs *= float64(d)
		}
		return macs / float64(e.Machine.PeakMACs())
	case *legal.Walk:
		macs := 0.0
		for _, s := range k.Scores {
			macs += float64(extent(k.Dims, k.Square|s.Over))
		}
		for _, s := range k.Sinks {
			macs += float64(extent(k.Dims, k.Square|k.Inner(s.B)))
		}
		return max(macs/float64(e.Machine.PeakMACs()), e.vectorCycles(k.Body, k.Dims))
	case *legal.Nest:
		for _, a := range k.In {
			move(a, k.Dims)
		}
		for _, o := range k.Out {
			move(o.To, k.Dims)
		}
		return max(bytes/burst, e.vectorCycles(k, k.Dims))
	case *legal.Gather:
		return 8 * float64(k.Rows*max(k.Width, 16)) / burst
	case *legal.Scatter:
		return 12 * float64(k.Rows*max(k.Width, 16)) / burst
	}
	return 0
}
