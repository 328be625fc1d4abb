package emit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gradtool/npu/isa"
	"gradtool/npu/legal"
	"gradtool/npu/machine"
)

// Plan says how a kernel is cut into tiles.
type Plan struct {
	Tile  []int // by dimension of the kernel
	Order []int // dimensions that are cut, outermost loop first
	First []int // size of the first tile, nil if that is as large as the others
	// Post is the size of the parts in which the epilogue of a contraction works off a tile of sums, nil without one.
	Post []int
	// KeepA and KeepB say that pieces of an operand of a contraction stay on chip until they have been read for the last time.
	KeepA, KeepB bool
	// Keep are the dimensions of a walk's batch and of its inner loops if operands that move along these alone stay on chip while the outer loops go
	// on, 0 if they do not.
	Keep uint32
	// Cycles is the estimate by which the plan was chosen: of transfers and of computing.
	DMA, Compute float64
}

// Cost returns the estimate of the cycles that the plan takes: transfers run under computing.
func (p *Plan) Cost() float64 { return max(p.DMA, p.Compute) }

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// flow returns the dataflow in which a product takes fewer cycles, and how many: a fold of the array's rows and columns
// holds part of B while rows of A stream by, or part of C while the terms stream by.
func flow(m *machine.Machine, rows, cols, depth int) (isa.Flow, int) {
	ws := ceilDiv(depth, m.Array.Rows) * ceilDiv(cols, m.Array.Cols) * max(rows, m.Array.Rows)
	os := ceilDiv(rows, m.Array.Rows) * ceilDiv(cols, m.Array.Cols) * max(depth, m.Array.Rows)
	if ws < os {
		return isa.WS, ws
	}
	return isa.OS, os
}

// candidates are sizes of tiles that are tried for each group of dimensions.
var candidates = []int{1, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 4096}

// shares sets tile sizes of the dimensions of a mask whose product is about target, and returns the product: dimensions are taken whole in
// the given order, the one that does not fit is cut into equal parts.
func shares(dims, order []int, mask uint32, target int, tile []int) int {
	total := 1
	for _, i := range order {
		if mask>>i&1 == 0 {
			continue
		}
		room := max(target/total, 1)
		parts := ceilDiv(dims[i], min(room, dims[i]))
		tile[i] = ceilDiv(dims[i], parts)
		total *= tile[i]
	}
	return total
}

// limits is what a kernel may use.
type limits struct{ scratch, accum int } // words

func (e *Emitter) limits() limits {
	free := func(p *pool) int { return (p.size - p.used) / 4 }
	return limits{free(e.scratch), free(e.accum)}
}

// ContractPlans returns ways to cut a contraction, the best first.
func (e *Emitter) ContractPlans(k *legal.Contract) []*Plan {
	var plans []*Plan
	seen := map[string]bool{}
	size := map[legal.Kind]int{legal.Batch: 1, legal.M: 1, legal.N: 1, legal.K: 1}
	for i, kind := range k.Kind {
		size[kind] *= k.Dims[i]
	}
	whole := whole(k)
	orders := dimOrders(k)
	tries := func(kind legal.Kind) []int {
		var out []int
		for _, c := range candidates {
			if c < size[kind] {
				out = append(out, c)
			}
		}
		return append(out, size[kind])
	}
	for _, m := range tries(legal.M) {
		for _, n := range tries(legal.N) {
			for _, kk := range tries(legal.K) {
				if (m < min(16, size[legal.M]) || n < min(16, size[legal.N]) || kk < min(16, size[legal.K])) && len(plans) > 0 {
					continue
				}
				for _, b := range []int{1, 4, 16, 64} {
					if b > 1 && b > size[legal.Batch] || b > 1 && (m < size[legal.M] || n < size[legal.N] || kk < size[legal.K]) {
						continue
					}
					for _, order := range orders {
						tile := make([]int, len(k.Dims))
						for _, g := range []struct {
							kind legal.Kind
							n    int
						}{{legal.M, m}, {legal.N, n}, {legal.K, kk}, {legal.Batch, b}} {
							shares(k.Dims, order, mask(k.Kind, g.kind), g.n, tile)
						}
						for i := range tile {
							if whole>>i&1 != 0 {
								tile[i] = k.Dims[i]
							}
						}
						id := fmt.Sprint(tile)
						if seen[id] {
							continue
						}
						seen[id] = true
						for _, w := range []walk{{}, {nFirst: true}, {keepB: true}, {nFirst: true, keepA: true}} {
							if p := e.contractPlan(k, tile, w); p != nil {
								plans = append(plans, p)
							}
						}
					}
				}
			}
		}
	}
	slices.SortStableFunc(plans, func(p, q *Plan) int { return cmp.Compare(e.Rank(p), e.Rank(q)) })
	return e.ends(k, plans)
}

// Rank is the cost by which plans are compared.
func (e *Emitter) Rank(p *Plan) float64 { return p.Cost() + e.Bus*p.DMA }

// begin is about how many cycles pass from one tile to the next besides what the estimates count.
const begin = 32

// walk is an order in which tiles are computed: rows outermost unless nFirst, all tiles of one operand staying on chip perhaps.
type walk struct{ nFirst, keepA, keepB bool }

// contractPlan estimates one way to cut a contraction, nil if it does not fit or is no other than a simpler one.
func (e *Emitter) contractPlan(k *legal.Contract, tile []int, w walk) *Plan {
	t := box{make([]int, len(tile)), tile}
	lim := e.limits()
	counts := map[legal.Kind]int{legal.Batch: 1, legal.M: 1, legal.N: 1, legal.K: 1}
	prods := map[legal.Kind]int{legal.Batch: 1, legal.M: 1, legal.N: 1, legal.K: 1}
	for i, kind := range k.Kind {
		counts[kind] *= ceilDiv(k.Dims[i], tile[i])
		prods[kind] *= tile[i]
	}
	if w.keepA && (counts[legal.N] == 1 || counts[legal.M]*counts[legal.K] == 1) || w.keepB && (counts[legal.M] == 1 || counts[legal.N]*counts[legal.K] == 1) {
		return nil
	}
	a, b := max(e.words(k.A, t, true), 1), max(e.words(k.B, t, true), 1)
	c := prods[legal.Batch] * prods[legal.M] * prods[legal.N]
	tiles := counts[legal.Batch] * counts[legal.M] * counts[legal.N]
	aBatch, bBatch := counts[legal.Batch], counts[legal.Batch] // batches with tiles of their own
	if k.A.Varies()&mask(k.Kind, legal.Batch) == 0 {
		aBatch = 1
	}
	if k.B.Varies()&mask(k.Kind, legal.Batch) == 0 {
		bBatch = 1
	}
	// Two tiles of each operand, so that one is loaded while the other is read.
	// A tile of the result needs a second place only if there is another.
	room := func(words, batch, kept int, keep bool) int {
		switch {
		case keep:
			return words * kept * min(batch, 2)
		case tiles*counts[legal.K] == 1:
			return words
		}
		return 2 * words
	}
	scratch := room(a, aBatch, counts[legal.M]*counts[legal.K], w.keepA) + room(b, bBatch, counts[legal.N]*counts[legal.K], w.keepB) + 256
	if tiles > 1 {
		scratch += 768
	}
	if scratch > lim.scratch || c > lim.accum {
		return nil
	}
	across := addedUp(k, tile)
	if across&mask(k.Kind, legal.Batch) != 0 || w.nFirst && across&mask(k.Kind, legal.N) != 0 || !w.nFirst && across&mask(k.Kind, legal.M) != 0 {
		return nil
	}
	p := &Plan{Tile: tile, KeepA: w.keepA, KeepB: w.keepB}
	post := 0.0 // cycles of the epilogue for a tile
	if k.Post != nil {
		outer := outerTile(k, tile)
		if p.Post = e.postTile(k, outer, across, lim.scratch-scratch); p.Post == nil {
			return nil
		}
		post = e.vectorCycles(k.Post, outer)
	}
	aLoads, bLoads := tiles*counts[legal.K], tiles*counts[legal.K]
	if counts[legal.K] == 1 {
		if w.nFirst {
			bLoads = counts[legal.Batch] * counts[legal.N]
			if counts[legal.M] == 1 {
				aLoads = tiles
			}
		} else {
			aLoads = counts[legal.Batch] * counts[legal.M]
		}
		if aBatch == 1 && counts[legal.M] == 1 {
			aLoads = 1
		}
		if bBatch == 1 && counts[legal.N] == 1 {
			bLoads = 1
		}
	}
	if w.keepA {
		aLoads = aBatch * counts[legal.M] * counts[legal.K]
	}
	if w.keepB {
		bLoads = bBatch * counts[legal.N] * counts[legal.K]
	}
	p.DMA = float64(aLoads)*(begin+e.dmaCycles(k.A, t)) + float64(bLoads)*(begin+e.dmaCycles(k.B, t))
	for _, w := range k.Writes() {
		p.DMA += float64(tiles) * e.storeCycles(w, box{t.lo, outerTile(k, tile)})
	}
	_, each := flow(e.Machine, prods[legal.M], prods[legal.N], prods[legal.K])
	p.Compute = float64(tiles*counts[legal.K]) * (begin + float64(prods[legal.Batch]*each))
	// The first load and the last store have nothing to run under.
	start := (float64(a)+float64(b)+float64(c))*4/float64(e.Machine.DMA.BytesPerCycle) + 2*float64(e.Machine.DMA.Latency)
	if tiles > 1 && 2*c+64 > lim.accum {
		wait := post // the next tile waits for the epilogue, and for the store of the sums themselves
		for i, w := range k.Writes() {
			if k.Post == nil || k.Post.Out[i].Value == 0 {
				wait += e.storeCycles(w, box{t.lo, outerTile(k, tile)}) + float64(e.Machine.DMA.Latency)
			}
		}
		p.Compute += float64(tiles-1) * wait
	}
	p.Compute = max(p.Compute, float64(tiles)*post) + start + post
	p.DMA += 2 * float64(e.Machine.DMA.Latency)
	kinds := []legal.Kind{legal.Batch, legal.M, legal.N, legal.K}
	if w.nFirst {
		kinds = []legal.Kind{legal.Batch, legal.N, legal.M, legal.K}
	}
	for _, kind := range kinds {
		for i := range k.Kind {
			if k.Kind[i] == kind && tile[i] < k.Dims[i] {
				p.Order = append(p.Order, i)
			}
		}
	}
	slices.SortStableFunc(p.Order, func(i, j int) int { return int(across>>i&1) - int(across>>j&1) })
	return p
}

func mask(kinds []legal.Kind, of legal.Kind) uint32 {
	m := uint32(0)
	for i, k := range kinds {
		if k == of {
			m |= 1 << i
		}
	}
	return m
}

// storeCycles estimates the transfer of a tile to DRAM.
func (e *Emitter) storeCycles(a *legal.Access, t box) float64 {
	if r := e.held[a.Buf]; r != nil && !r.Through {
		return 0
	}
	return e.moveCycles(a, t)
}

// dmaCycles estimates the transfer of a tile from DRAM, of a buffer that is not on chip.
func (e *Emitter) dmaCycles(a *legal.Access, t box) float64 {
	if e.held[a.Buf] != nil {
		return 0
	}
	return e.moveCycles(a, t)
}

// moveCycles estimates the transfer of a tile of an access: bursts touched by each contiguous run.
func (e *Emitter) moveCycles(a *legal.Access, t box) float64 {
	ws, n, ok := windows(a, t, false)
	if !ok {
		return 0
	}
	run := 1
	for i := len(ws) - 1; i >= 0; i-- {
		s := ws[i].axis.Stride
		if s != run && s != -run {
			break
		}
		run *= ws[i].to - ws[i].from
		if ws[i].n != ws[i].to-ws[i].from || ws[i].axis.Size != ws[i].n {
			break
		}
	}
	d := e.Machine.DMA
	bytes := math.Ceil(float64(4*run)/float64(d.Burst)) * float64(d.Burst)
	if run*4%d.Burst != 0 && run < n {
		bytes += float64(d.Burst) / 2 // runs that begin inside a burst
	}
	return float64(n) / float64(run) * bytes / float64(d.BytesPerCycle)
}

// burstCycles estimates the transfer of a tile of an access, like dmaCycles, but counts the bursts that runs touch for each place in a
// burst at which the runs of some tile may begin.
func (e *Emitter) burstCycles(a *legal.Access, t box) float64 {
	ws, n, ok := windows(a, t, false)
	if !ok {
		return 0
	}
	d := e.Machine.DMA
	run, step := 1, gcd(d.Burst, 4*a.Base) // step divides the places, in bytes, at which runs begin
	inside := true
	for i := len(ws) - 1; i >= 0; i-- {
		w := &ws[i]
		s := max(w.axis.Stride, -w.axis.Stride)
		if inside = inside && s == run; !inside {
			step = gcd(step, 4*s)
			continue
		}
		if run *= w.to - w.from; w.n != w.to-w.from || w.axis.Size != w.n {
			step = gcd(step, 4*s*w.n)
			inside = false
		}
	}
	bursts, places := 0, 0
	for at := 0; at < d.Burst; at += step {
		bursts += ceilDiv(at+4*run, d.Burst)
		places++
	}
	return float64(n) / float64(run) * float64(bursts) / float64(places) * float64(d.Burst) / float64(d.BytesPerCycle)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// vectorCycles estimates the time of the vector unit for a tile of a nest.
func (e *Emitter) vectorCycles(k *legal.Nest, tile []int) float64 {
	varies := k.Varies()
	v := e.Machine.Vector
	total := 0.0
	for i, s := range k.Body {
		if s.Op == legal.ConstOp {
			continue
		}
		mask := varies[len(k.In)+i]
		if s.Op.Reduces() {
			mask |= s.Over
		}
		n := 1
		for d, t := range tile {
			if mask>>d&1 != 0 {
				n *= t
			}
		}
		rate := v.Lanes
		if op, ok := vecOps[s.Op]; ok && op.Intrinsic().Special {
			rate = v.Special
		}
		total += float64(ceilDiv(n, rate) + v.Issue)
	}
	return total
}

// FitsAlone reports whether a nest can be cut into tiles that fit in five sixteenths of the scratchpad, which leaves a margin in the part that
// it gets beside another kernel.
func (e *Emitter) FitsAlone(k *legal.Nest) bool {
	_, ok := e.NestTile(k, e.Machine.Scratchpad.Bytes/4*5/16)
	return ok
}

// Fits reports whether a nest can be cut so that tiles leave room for others.
func (e *Emitter) Fits(k *legal.Nest) bool {
	_, ok := e.NestTile(k, e.Machine.Scratchpad.Bytes/4/3)
	return ok
}

// dimOrders returns orders in which dimensions are made whole: inner ones first, and those along which the result is
// contiguous first, where that is another order.
func dimOrders(k *legal.Contract) [][]int {
	inner := innerFirst(len(k.Dims))
	step := k.Writes()[0].Steps(len(k.Dims))
	across := slices.Clone(inner)
	slices.SortStableFunc(across, func(a, b int) int {
		x, y := step[a], step[b]
		if x == 0 || y == 0 { // dimensions of kind K keep their order behind the others
			return cmp.Compare(b2i(x == 0), b2i(y == 0))
		}
		return cmp.Compare(max(x, -x), max(y, -y))
	})
	if slices.Equal(inner, across) {
		return [][]int{inner}
	}
	return [][]int{inner, across}
}

// innerFirst returns n dimensions from the innermost to the outermost.
func innerFirst(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = n - 1 - i
	}
	return out
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
