package sim

import (
	"math"

	"gradtool/npu/isa"
)

// usageBlock is the number of bytes whose use is followed as one.
const usageBlock = 256

// usageBins is the number of stretches of time for which use is reported, usageSteps the number of steps in each.
const (
	usageBins  = 200
	usageSteps = 64
)

// usage computes how much of the on-chip memories holds values that are still read: the most in each stretch of time. A block
// is in use from a write to the last read before it is written anew.
func (tl *Timeline) usage(p *isa.Program) {
	tl.Scratchpad, tl.Accumulator = make([]int64, usageBins), make([]int64, usageBins)
	if tl.Cycles == 0 {
		return
	}
	type block struct{ from, last float64 } // last < from: not read yet
	blocks := [3][]block{isa.Scratch: make([]block, p.Machine.Scratchpad.Bytes/usageBlock+1), isa.Accum: make([]block, p.Machine.Accumulator.Bytes/usageBlock+1)}
	var changes [3][usageBins*usageSteps + 1]int64 // by step: the bytes by which use grows
	step := func(t float64) int { return int(t / tl.Cycles * usageBins * usageSteps) }
	end := func(space isa.Space, b *block) {
		if b.last > b.from {
			changes[space][step(b.from)] += usageBlock
			changes[space][step(b.last)] -= usageBlock
		}
	}
	var effects []isa.Access
	tl.touches(func(q isa.Queue, s *Span, write bool, at float64) {
		effects = p.Queues[q][s.Instr].Effects(effects[:0])
		for i := range effects {
			e := &effects[i]
			if e.Space == isa.DRAM || e.Write != write {
				continue
			}
			bs := blocks[e.Space][e.Addr/usageBlock : (e.End()-1)/usageBlock+1]
			for k := range bs {
				b := &bs[k]
				switch {
				case !write:
					b.last = at
				case b.last > b.from || b.from == 0:
					end(e.Space, b)
					*b = block{from: at, last: -1}
				}
			}
		}
	})
	for space, bs := range blocks {
		for k := range bs {
			end(isa.Space(space), &bs[k])
		}
	}
	for space, use := range [3][]int64{isa.Scratch: tl.Scratchpad, isa.Accum: tl.Accumulator} {
		now := int64(0)
		for k, c := range changes[space] {
			now += c
			if bin := k / usageSteps; bin < len(use) {
				use[bin] = max(use[bin], now)
			}
		}
	}
}

// touches calls f for the start of each instruction, where it writes, and for its end, where it has read, in order of time.
func (tl *Timeline) touches(f func(q isa.Queue, s *Span, write bool, at float64)) {
	var next [isa.NumQueues][2]int // by queue: the next end, the next start
	for {
		best, bq, bk := math.Inf(1), -1, 0
		for k := range 2 { // of what is at one time the ends come first
			for q := range tl.Spans {
				i := next[q][k]
				if i == len(tl.Spans[q]) {
					continue
				}
				at := tl.Spans[q][i].End
				if k == 1 {
					at = tl.Spans[q][i].Start
				}
				if at < best {
					best, bq, bk = at, q, k
				}
			}
		}
		if bq < 0 {
			return
		}
		f(isa.Queue(bq), &tl.Spans[bq][next[bq][bk]], bk == 1, best)
		next[bq][bk]++
	}
}
