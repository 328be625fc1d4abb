package emit

import (
	"fmt"
	"slices"
	"strings"

	"gradtool/npu/isa"
	"gradtool/npu/legal"
)

// A product whose operands fit on chip together moves each of them once, however it is cut. What is left to win is at its ends: the
// array waits for the first operands, and the last results for the path to DRAM. So the operands come in pieces along k, the
// first tile of the result is large, to give the array something to do for each piece, and the ones behind it are small, so that
// little is left to store when the last one is complete.

// residentSteps is the number of products beyond which a plan is no longer thought of: the ends do not matter there.
const residentSteps = 160

// kept is a piece of an operand that stays on chip until it has been read for the last time.
type kept struct {
	p    *place
	left int // products to come that read it
}

// walk calls f for each product of a plan in the order in which it is emitted: last tells whether the tile of the result is
// complete with it.
func (p *Plan) walk(k *legal.Contract, f func(t box, last bool) error) error {
	t := box{make([]int, len(k.Dims)), p.first()}
	outer, across, inner := p.loops(k)
	return each(k.Dims, p.Tile, p.First, append(outer, across...), t, func(bool) error {
		steps := 1
		for _, i := range inner {
			steps *= ceilDiv(k.Dims[i], p.Tile[i])
		}
		return each(k.Dims, p.Tile, nil, inner, t, func(bool) error {
			steps--
			return f(t, steps == 0)
		})
	})
}

// loops returns the dimensions of the result that are cut, those apart along which the epilogue adds up tiles, and those of kind K, outermost
// first.
func (p *Plan) loops(k *legal.Contract) (outer, across, inner []int) {
	sums := reduced(k.Post)
	for _, i := range p.Order {
		switch {
		case k.Kind[i] == legal.K:
			inner = append(inner, i)
		case sums>>i&1 != 0:
			across = append(across, i)
		default:
			outer = append(outer, i)
		}
	}
	return outer, across, inner
}

// keeps reports whether the plan keeps both operands on chip.
func (p *Plan) keeps() bool { return p.KeepA && p.KeepB }

// first returns the size of the first tile.
func (p *Plan) first() []int {
	if p.First != nil {
		return slices.Clone(p.First)
	}
	return slices.Clone(p.Tile)
}

// piece returns the part of an operand that is loaded when the product of tile t wants it: behind the first tile along the outermost loop
// there is enough to do until all of k is there, and one transfer is better than many.
func (p *Plan) piece(k *legal.Contract, a *legal.Access, t box) box {
	outer, _, _ := p.loops(k)
	if !p.keeps() || len(outer) == 0 || a.Varies()>>outer[0]&1 == 0 || t.lo[outer[0]] == 0 {
		return t
	}
	t = box{slices.Clone(t.lo), slices.Clone(t.hi)}
	for i, kind := range k.Kind {
		if kind == legal.K {
			t.lo[i], t.hi[i] = 0, k.Dims[i]
		}
	}
	return t
}

// pieces counts how often each piece of an operand is read.
func (p *Plan) pieces(k *legal.Contract, a *legal.Access) map[int]*kept {
	m := map[int]*kept{}
	p.walk(k, func(t box, _ bool) error {
		id := p.id(k, a, t)
		if m[id] == nil {
			m[id] = &kept{}
		}
		m[id].left++
		return nil
	})
	return m
}

// id returns a number that tells the pieces of an operand apart.
func (p *Plan) id(k *legal.Contract, a *legal.Access, t box) int {
	return pieceID(k.Dims, a, p.piece(k, a, t))
}

// pieceID returns the place of a tile in the box of the dimensions along which an access varies.
func pieceID(dims []int, a *legal.Access, t box) int {
	id := 0
	varies := a.Varies()
	for i, d := range dims {
		if varies>>i&1 != 0 {
			id = id*d + t.lo[i]
		}
	}
	return id
}

// slack is how much longer than the fastest a plan may take that moves less.
const slack = 1.02

// ends puts a plan in front that keeps operands on chip if there is one that takes less time than the best of others, or moves less in about
// as long. The time of the others is underestimated: they may have to wait for a place on chip.
func (e *Emitter) ends(k *legal.Contract, plans []*Plan) []*Plan {
	if len(plans) == 0 {
		return plans
	}
	id := e.shape(k)
	p, ok := e.residents[id]
	if !ok {
		p = e.residentPlan(k)
		e.residents[id] = p
	}
	if p == nil {
		return plans
	}
	best := *plans[0]
	if e.estimate(k, &best); slack*p.Compute >= best.Compute && (slack*p.DMA >= best.DMA || p.Compute > 1.1*best.Compute) {
		return plans
	}
	return append([]*Plan{p}, plans...)
}

// shape tells contractions apart that may have different plans: by all but which buffers they touch, and by the room on chip.
func (e *Emitter) shape(k *legal.Contract) string {
	var b strings.Builder
	access := func(list ...*legal.Access) {
		for _, a := range list {
			r := e.held[a.Buf]
			fmt.Fprint(&b, a.Axes, 4*a.Base%e.Machine.DMA.Burst, a.Buf.Mem(), r != nil, r != nil && r.Through, ";")
		}
	}
	fmt.Fprint(&b, e.limits(), k.Dims, k.Kind)
	access(k.Reads()...)
	access(k.Writes()...)
	if k.Post != nil {
		fmt.Fprint(&b, k.Post.Body)
	}
	return b.String()
}

// residentPlan returns the fastest plan that keeps both operands of a contraction on chip; nil if they do not fit or it is so large that
// its ends do not matter.
func (e *Emitter) residentPlan(k *legal.Contract) *Plan {
	size := map[legal.Kind]int{legal.Batch: 1, legal.M: 1, legal.N: 1, legal.K: 1}
	for i, kind := range k.Kind {
		size[kind] *= k.Dims[i]
	}
	whole := box{make([]int, len(k.Dims)), k.Dims}
	if size[legal.Batch] > 1 || e.words(k.A, whole, true)+e.words(k.B, whole, true) > e.limits().scratch {
		return nil
	}
	rows := e.Machine.Array.Rows
	sizes := func(kind legal.Kind, least, most int) []int {
		var out []int
		for c := least; c < size[kind] && c <= most; c *= 2 {
			out = append(out, c)
		}
		return append(out, size[kind])
	}
	var best *Plan
	seen := map[string]bool{}
	fixed := reduced(k.Post)
	for _, m := range sizes(legal.M, rows, 8*rows) {
		for _, n := range sizes(legal.N, 2*e.Machine.Array.Cols, 8*e.Machine.Array.Cols) {
			for _, kk := range sizes(legal.K, rows, 4*rows) {
				for _, order := range dimOrders(k) {
					tile := make([]int, len(k.Dims))
					shares(k.Dims, order, mask(k.Kind, legal.M), m, tile)
					shares(k.Dims, order, mask(k.Kind, legal.N), n, tile)
					shares(k.Dims, order, mask(k.Kind, legal.K), kk, tile)
					for i := range tile {
						if tile[i] = max(tile[i], 1); tile[i] > rows { // parts that leave no cell of the array idle
							tile[i] = min(ceilDiv(tile[i], rows)*rows, k.Dims[i])
						}
						if fixed>>i&1 != 0 {
							tile[i] = k.Dims[i]
						}
					}
					if id := fmt.Sprint(tile); seen[id] {
						continue
					} else {
						seen[id] = true
					}
					for _, times := range []int{1, 2, 3, 4, 6} {
						for _, p := range e.keeping(k, tile, times) {
							if best == nil || p.Compute < best.Compute {
								best = p
							}
						}
					}
				}
			}
		}
	}
	return best
}

// keeping returns the ways to keep operands on chip with tiles of one size, the first of which is so many times as large along the
// outermost dimension that is cut.
func (e *Emitter) keeping(k *legal.Contract, tile []int, times int) []*Plan {
	var plans []*Plan
	for _, kinds := range [][]legal.Kind{{legal.M, legal.N, legal.K}, {legal.N, legal.M, legal.K}} {
		p := &Plan{Tile: slices.Clone(tile), KeepA: true, KeepB: true}
		n := 1
		for _, kind := range kinds {
			for i := range k.Kind {
				if k.Kind[i] == kind && tile[i] < k.Dims[i] {
					p.Order = append(p.Order, i)
					n *= ceilDiv(k.Dims[i], tile[i])
				}
			}
		}
		if n > residentSteps {
			return nil
		}
		outer, _, _ := p.loops(k)
		if times > 1 {
			if len(outer) == 0 || times*tile[outer[0]] >= k.Dims[outer[0]] {
				return nil
			}
			p.First = slices.Clone(tile)
			p.First[outer[0]] *= times
		}
		if k.Post != nil {
			p.Post = outerTile(k, p.first())
		}
		if e.estimate(k, p) {
			plans = append(plans, p)
		}
		if len(outer) < 2 {
			break
		}
	}
	return plans
}

// estimate fills in the times of a plan by following its products through the units. It returns false if the pieces that the plan keeps
// do not fit.
func (e *Emitter) estimate(k *legal.Contract, p *Plan) bool {
	var pipe pipeline
	first := p.first()
	for i, kind := range k.Kind {
		if kind == legal.K {
			first[i] = 1
		}
	}
	c, scratch := 1, 0
	for _, n := range first {
		c *= n
	}
	if k.Post != nil {
		scratch = 2*e.footprint(k.Post, first) + 1024
	}
	p.DMA = 0
	last := map[*legal.Access]int{} // the piece loaded last, of operands that the plan does not keep
	seen := map[*legal.Access]map[int]bool{k.A: {}, k.B: {}}
	load := func(a *legal.Access, t box, keep bool) {
		id := pieceID(k.Dims, a, t)
		if keep && seen[a][id] {
			return
		}
		if old, ok := last[a]; ok && !keep && old == id {
			return
		}
		last[a] = id
		if keep {
			seen[a][id] = true
			scratch += e.words(a, t, true) + align/4
		}
		if e.held[a.Buf] != nil {
			return
		}
		cycles := e.burstCycles(a, t)
		p.DMA += cycles
		pipe.add(isa.Load, cycles, [isa.NumQueues]int{})
	}
	p.walk(k, func(t box, complete bool) error {
		load(k.B, p.piece(k, k.B, t), p.KeepB)
		load(k.A, p.piece(k, k.A, t), p.KeepA)
		n := map[legal.Kind]int{legal.Batch: 1, legal.M: 1, legal.N: 1, legal.K: 1}
		d := t.dims()
		for i, kind := range k.Kind {
			n[kind] *= d[i]
		}
		_, cycles := flow(e.Machine, n[legal.M], n[legal.N], n[legal.K])
		after := pipe.done()
		pipe.add(isa.Matrix, float64(n[legal.Batch]*cycles), [isa.NumQueues]int{isa.Load: after[isa.Load]})
		if !complete {
			return nil
		}
		out := box{slices.Clone(t.lo), slices.Clone(t.hi)}
		for i, kind := range k.Kind {
			if kind == legal.K {
				out.lo[i], out.hi[i] = 0, 1
			}
		}
		from := isa.Matrix
		if k.Post != nil {
			for _, a := range k.Post.In[1:] {
				load(a, out, false)
			}
			pipe.add(isa.Vector, e.vectorCycles(k.Post, out.dims()), pipe.done())
			from = isa.Vector
		}
		after = [isa.NumQueues]int{}
		after[from] = len(pipe[from])
		for _, w := range k.Writes() {
			if r := e.held[w.Buf]; r != nil && !r.Through {
				continue
			}
			cycles := e.burstCycles(w, out)
			p.DMA += cycles
			pipe.add(isa.Store, cycles, after)
		}
		return nil
	})
	lim := e.limits()
	if p.keeps() && (scratch+256 > lim.scratch || 2*c+64 > lim.accum) {
		return false
	}
	m := e.Machine
	var head, tail [isa.NumQueues]float64
	wait := float64(2 * m.Queues.SyncCycles)
	head[isa.Load] = float64(m.DMA.Latency)
	head[isa.Store] = float64(m.DMA.Latency) + wait
	head[isa.Matrix] = float64(m.Array.Issue+m.Array.Rows) + wait
	head[isa.Vector] = float64(m.Vector.Issue) + wait
	tail[isa.Matrix] = float64(m.Array.Rows + m.Array.Cols - 2)
	p.Compute = pipe.time(head, tail)
	return true
}
