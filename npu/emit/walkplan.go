package emit

import (
	"cmp"
	"fmt"
	"slices"

	"gradtool/npu/legal"
)

// walkShape is what the tiles of a walk are made of.
type walkShape struct {
	batch, rows, cols uint32 // dimensions of the square; cols are those that reductions run along, or the first sink sums over
	running           *legal.Running
	kinds             [][]legal.Kind // of the products of scores, then of sinks: the part each dimension plays, 0 for none
}

// shapeOfWalk returns it, nil if the walk cannot be cut into tiles.
func shapeOfWalk(k *legal.Walk) *walkShape {
	run, ok := k.Running()
	if !ok {
		return nil
	}
	s := &walkShape{running: run}
	kinds := func(in, a, b, over uint32) {
		out := make([]legal.Kind, len(k.Dims))
		for i := range k.Dims {
			switch bit := uint32(1) << i; {
			case in&bit == 0 || k.Dims[i] == 1:
			case over&bit != 0:
				out[i] = legal.K
			case a&bit != 0 && b&bit != 0:
				out[i] = legal.Batch
			case b&bit != 0:
				out[i] = legal.N
			default:
				out[i] = legal.M
			}
		}
		s.kinds = append(s.kinds, out)
	}
	for _, x := range k.Scores {
		kinds(k.Square|x.Over, x.A.Varies(), x.B.Varies(), x.Over)
	}
	for _, x := range k.Sinks {
		kinds(k.Square|k.Inner(x.B), k.Square, x.B.Varies(), x.Over)
	}
	for _, list := range s.kinds {
		s.batch |= mask(list, legal.Batch)
	}
	if run != nil {
		s.cols = run.Cols
	}
	for _, x := range k.Sinks {
		if s.cols == 0 {
			s.cols = x.Over
		}
		if x.Over != s.cols && x.Over&s.cols != 0 {
			return nil
		}
		s.rows |= x.Over &^ s.cols
	}
	for i, d := range k.Dims {
		if bit := uint32(1) << i; k.Square&bit != 0 && d > 1 && (s.rows|s.cols|s.batch)&bit == 0 {
			s.rows |= bit
		}
	}
	if s.cols == 0 || s.batch&s.cols != 0 {
		return nil
	}
	s.batch &^= s.rows & sinksOver(k)
	s.rows &^= s.batch
	return s
}

// sinksOver returns the dimensions that some sink sums over.
func sinksOver(k *legal.Walk) uint32 {
	m := uint32(0)
	for _, x := range k.Sinks {
		m |= x.Over
	}
	return m
}

// result returns the dimensions of a sink's result.
func result(k *legal.Walk, s *legal.Sink) uint32 { return k.Square&^s.Over | k.Inner(s.B) }

// spilled reports whether the result of a sink is added up in memory: between two tiles that add to one place come others.
func (p *Plan) spilled(k *legal.Walk, s *legal.Sink) bool {
	adds := false
	for _, i := range p.Order {
		if s.Over>>i&1 != 0 {
			adds = true
		} else if adds {
			return true
		}
	}
	return false
}

// extent returns the number of elements of a tile in the dimensions of a mask.
func extent(tile []int, mask uint32) int {
	n := 1
	for i, t := range tile {
		if mask>>i&1 != 0 {
			n *= t
		}
	}
	return n
}

// WalkPlans returns ways to cut a walk, the best first.
func (e *Emitter) WalkPlans(k *legal.Walk) []*Plan {
	s := shapeOfWalk(k)
	if s == nil {
		return nil
	}
	var plans []*Plan
	seen, inner := map[string]bool{}, innerFirst(len(k.Dims))
	sizes := func(m uint32) []int {
		n := extent(k.Dims, m)
		var out []int
		for _, c := range candidates {
			if c >= min(8, n) && c < n {
				out = append(out, c)
			}
		}
		return append(out, n)
	}
	for _, rows := range sizes(s.rows) {
		for _, cols := range sizes(s.cols) {
			tile := make([]int, len(k.Dims))
			for i, d := range k.Dims {
				if tile[i] = d; s.batch>>i&1 != 0 {
					tile[i] = 1
				}
			}
			shares(k.Dims, inner, s.rows, rows, tile)
			shares(k.Dims, inner, s.cols, cols, tile)
			for _, outer := range []uint32{s.rows, s.cols} {
				if outer == s.cols && s.running != nil {
					continue
				}
				for _, keep := range []bool{false, true} {
					p := e.walkPlan(k, s, tile, outer, keep)
					if p == nil {
						continue
					}
					if id := fmt.Sprint(p.Tile, p.Order, p.Keep); !seen[id] {
						seen[id] = true
						plans = append(plans, p)
					}
				}
			}
		}
	}
	slices.SortStableFunc(plans, func(p, q *Plan) int { return cmp.Compare(e.Rank(p), e.Rank(q)) })
	return plans
}

// walkPlan estimates one way to cut a walk, nil if it does not fit or sums would have to be added up in memory that cannot be.
func (e *Emitter) walkPlan(k *legal.Walk, s *walkShape, tile []int, outer uint32, keep bool) *Plan {
	lim := e.limits()
	p := &Plan{Tile: slices.Clone(tile)}
	steps, tiles := 1, 1 // all steps; tiles of the outer loops
	for _, group := range []uint32{s.batch, outer, (s.rows | s.cols) &^ outer} {
		for i, d := range k.Dims {
			if group>>i&1 == 0 || tile[i] == d {
				continue
			}
			p.Order = append(p.Order, i)
			steps *= ceilDiv(d, tile[i])
			if group == s.batch || group == outer {
				tiles *= ceilDiv(d, tile[i])
			}
		}
	}
	t := box{make([]int, len(tile)), tile}
	square := extent(tile, k.Square)
	accum := len(k.Scores) * square * 2
	matrix, vector := 0.0, e.vectorCycles(k.Body, tile)
	product := func(i int) {
		prods := map[legal.Kind]int{legal.Batch: 1, legal.M: 1, legal.N: 1, legal.K: 1}
		for d, kind := range s.kinds[i] {
			if kind != 0 {
				prods[kind] *= tile[d]
			}
		}
		_, cycles := flow(e.Machine, prods[legal.M], prods[legal.N], prods[legal.K])
		matrix += begin + float64(prods[legal.Batch]*cycles)
	}
	for i := range k.Scores {
		product(i)
	}
	dma, last := 0.0, 0.0 // per step; at the end of the outer tile
	lanes := float64(e.Machine.Vector.Lanes)
	for i := range k.Sinks {
		x := &k.Sinks[i]
		n := extent(tile, result(k, x))
		product(len(k.Scores) + i)
		store := e.storeCycles(x.Post.Out[0].To, t)
		if p.spilled(k, x) {
			if !x.Plain() {
				return nil
			}
			accum += 2 * n
			dma += 2*store + 2*begin
			continue
		}
		accum += n
		last += store
		if s.running != nil {
			vector += float64(n)/lanes + float64(e.Machine.Vector.Issue)
		}
	}
	if s.running != nil {
		row := float64(extent(tile, k.Square&^s.cols))
		vector += row*(3/lanes+1/float64(e.Machine.Vector.Special)) + 4*float64(e.Machine.Vector.Issue)
	}
	scratch := 1024
	inner := (s.rows | s.cols) &^ outer
	cut := cutMask(k.Dims, tile)
	if keep {
		if outer&cut == 0 || inner&cut == 0 {
			return nil
		}
		p.Keep = s.batch | inner
	}
	batches := 1 // times that what stays is loaded
	for i, d := range k.Dims {
		if s.batch>>i&1 != 0 {
			batches *= ceilDiv(d, tile[i])
		}
	}
	once := 0.0
	for _, a := range distinct(k) {
		n := e.words(a, t, true)
		cost := begin + e.dmaCycles(a, t)
		switch {
		case p.stays(k, a):
			parts := 1
			for i, d := range k.Dims {
				if a.Varies()&inner>>i&1 != 0 {
					parts *= ceilDiv(d, tile[i])
				}
			}
			scratch += (parts + 1) * n
			once += float64(parts*batches) * cost
		case a.Varies()&inner&cut != 0:
			scratch += 2 * n
			dma += cost
		default:
			scratch += 3 * n / 2
			last += cost
		}
	}
	for _, a := range k.Body.In[len(k.Scores):] {
		if a.Varies()&inner&cut != 0 {
			dma += begin + e.dmaCycles(a, t)
		} else {
			last += begin + e.dmaCycles(a, t)
		}
	}
	for _, o := range k.Body.Out {
		if s.running != nil {
			last += e.storeCycles(o.To, t)
		} else {
			dma += e.storeCycles(o.To, t)
		}
	}
	scratch += 2 * e.walkFootprint(k, tile)
	if accum > lim.accum || scratch > lim.scratch {
		return nil
	}
	n := float64(steps)
	p.DMA = n*dma + float64(tiles)*last + once
	start := last + dma + 2*float64(e.Machine.DMA.Latency) + vector + matrix
	p.Compute = n*max(matrix, vector) + start
	return p
}

// stays reports whether the plan keeps the tiles of an operand while the outer loops go on.
func (p *Plan) stays(k *legal.Walk, a *legal.Access) bool {
	moves := a.Varies() & k.Square & cutMask(k.Dims, p.Tile)
	return p.Keep != 0 && moves != 0 && moves&^p.Keep == 0
}

// cutMask returns the dimensions that a tile cuts.
func cutMask(dims, tile []int) uint32 {
	m := uint32(0)
	for i, d := range dims {
		if tile[i] < d {
			m |= 1 << i
		}
	}
	return m
}

// distinct returns the operands of scores and sinks, those that are the same once.
func distinct(k *legal.Walk) []*legal.Access {
	var out []*legal.Access
	add := func(a *legal.Access) {
		if !slices.ContainsFunc(out, func(b *legal.Access) bool { return a.Same(b) && a.Fill == b.Fill }) {
			out = append(out, a)
		}
	}
	for _, s := range k.Scores {
		add(s.A)
		add(s.B)
	}
	for _, s := range k.Sinks {
		add(s.B)
	}
	return out
}

// walkFootprint returns the words that the loads and values of the body take for a tile, those that sinks use included.
func (e *Emitter) walkFootprint(k *legal.Walk, tile []int) int {
	b := *k.Body
	b.Out = slices.Clone(b.Out)
	for _, s := range k.Sinks {
		b.Out = append(b.Out, legal.Store{To: &legal.Access{}, Value: s.Value})
	}
	return e.footprint(&b, tile)
}
