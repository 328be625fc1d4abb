package sim

import (
	"cmp"
	"slices"

	"gradtool/npu/isa"
)

// usageBlock is the number of bytes whose use is followed as one.
const usageBlock = 256

// usageBins is the number of stretches of time for which use is reported.
const usageBins = 200

// usage computes how much of the on-chip memories holds values that are still read: the most in each stretch of time. A block is in use from a write
// to the last read before it is written anew.
func (tl *Timeline) usage(p *isa.Program) {
	type touch struct {
		at    float64
		write bool
		acc   isa.Access
	}
	var list []touch
	var effects []isa.Access
	for q := range tl.Spans {
		for _, s := range tl.Spans[q] {
			effects = p.Queues[q][s.Instr].Effects(effects[:0])
			for _, e := range effects {
				switch {
				case e.Space == isa.DRAM:
				case e.Write:
					list = append(list, touch{s.Start, true, e})
				default:
					list = append(list, touch{s.End, false, e})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(x, y touch) int { return cmp.Compare(x.at, y.at) })
	tl.Scratchpad, tl.Accumulator = make([]int64, usageBins), make([]int64, usageBins)
	if tl.Cycles == 0 {
		return
	}
	type block struct{ from, last float64 } // last < from: not read yet
	blocks := [3][]block{isa.Scratch: make([]block, p.Machine.Scratchpad.Bytes/usageBlock+1), isa.Accum: make([]block, p.Machine.Accumulator.Bytes/usageBlock+1)}
	type change struct {
		at    float64
		bytes int64
	}
	var changes [3][]change
	end := func(space isa.Space, b *block) {
		if b.last > b.from {
			changes[space] = append(changes[space], change{b.from, usageBlock}, change{b.last, -usageBlock})
		}
	}
	for i := range list {
		t := &list[i]
		bs := blocks[t.acc.Space]
		for k := t.acc.Addr / usageBlock; k <= (t.acc.End()-1)/usageBlock; k++ {
			b := &bs[k]
			switch {
			case !t.write:
				b.last = t.at
			case b.last > b.from || b.from == 0:
				end(t.acc.Space, b)
				*b = block{from: t.at, last: -1}
			}
		}
	}
	for space, bs := range blocks {
		for k := range bs {
			end(isa.Space(space), &bs[k])
		}
	}
	for space, use := range [3][]int64{isa.Scratch: tl.Scratchpad, isa.Accum: tl.Accumulator} {
		// Of changes at one time the ends come first.
		slices.SortFunc(changes[space], func(x, y change) int {
			return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.bytes, y.bytes))
		})
		now, bin := int64(0), 0
		for _, c := range changes[space] {
			for k := min(int(c.at/tl.Cycles*usageBins), usageBins-1); bin < k; {
				bin++
				use[bin] = now
			}
			now += c.bytes
			use[bin] = max(use[bin], now)
		}
	}
}
