package offset

import (
	"fmt"
	"slices"
)

// fit is where a greedy allocator puts a buffer: into the lowest hole that holds it, or into the smallest.
type fit int

const (
	firstFit fit = iota
	bestFit
)

// greedyOrders are tried in this order. The first look at contention, as TelaMalloc does (Maas et al., "TelaMalloc:
// Efficient On-Chip Memory Allocation for Production Machine Learning Accelerators", ASPLOS 2023): what is live when most
// is live comes first. The others go by size, as TensorFlow Lite does (Pisarchyk and Lee, "Efficient Memory Management for
// Deep Neural Net Inference", 2020), by lifetime, area and birth, some within classes of size. In layered orders the small
// buffers that live long come first.
var greedyOrders = [...]greedyOrder{
	{letters: "TWZ"}, {letters: "TZ"}, {letters: "TWZ", fit: bestFit}, {letters: "ZW"}, {letters: "WZ", fit: bestFit}, {letters: "H"},
	{letters: "TZ", class: 8, small: 200, long: 2}, {letters: "TWZ", class: 4}, {letters: "A", small: 200, long: 2}, {letters: "TWZ", small: 100, long: 2},
	{letters: "TZ", small: 100, long: 4, fit: bestFit}, {letters: "WZ", class: 8, fit: bestFit}, {letters: "TZ", small: 500, long: 2},
	{letters: "WZ", class: 2, small: 200, long: 2}, {letters: "TWZ", class: 8}, {letters: "TWZ", class: 4, small: 50, long: 2},
	{letters: "LZ", class: 8, small: 100, long: 2}, {letters: "A", small: 500, long: 2},
	{letters: "ZW", fit: bestFit}, {letters: "WZ"}, {letters: "TZ", fit: bestFit}, {letters: "A"}, {letters: "A", fit: bestFit}, {letters: "LW"},
	{letters: "LW", fit: bestFit},
}

// greedyOrder is an order and where buffers go.
type greedyOrder struct {
	letters string
	fit     fit
	class   int64 // larger classes of size go first, each so many times the next; 0 for no classes
	small   int64 // in layers: buffers below the goal divided by it are small; 0 for no layers
	long    int64 // those live long that live for all the time divided by it
}

// String names the order in results.
func (o greedyOrder) String() string {
	s := "greedy " + o.letters + [...]string{" first fit", " best fit"}[o.fit]
	if o.class > 0 {
		s += fmt.Sprintf(", sizes by %d", o.class)
	}
	if o.small > 0 {
		s += ", layers"
	}
	return s
}

// blocksPerStep is how many blocks are looked at in a step of work.
const blocksPerStep = 4

// greedy places buffers one after another.
type greedy struct {
	in     *instance
	blocks *blockIndex
	at     []int64
	work   int64
}

// place places the buffers in the given order and returns the height. Buffers that are fixed go first.
func (g *greedy) place(order []int32, how fit) int64 {
	g.blocks, g.work = newBlockIndex(len(order), g.in.sections), 0
	if g.at == nil {
		g.at = make([]int64, len(g.in.size))
	}
	var height int64
	for _, fixed := range []bool{true, false} {
		for _, i := range order {
			if (g.in.fixed[i] >= 0) != fixed {
				continue
			}
			switch {
			case fixed:
				g.at[i] = g.in.fixed[i]
			case len(g.in.spans[i]) == 1:
				g.at[i] = g.hole(i, how)
			default:
				g.at[i] = g.lowest(i)
			}
			height = max(height, g.at[i]+g.in.size[i])
			for _, p := range g.in.spans[i] {
				g.blocks.insert(block{g.at[i] + p.low, g.at[i] + p.high, p.lo, p.hi})
			}
		}
	}
	return height
}

// hole finds the place of a buffer without gaps.
func (g *greedy) hole(i int32, how fit) int64 {
	p, align := g.in.spans[i][0], g.in.align[i]
	size := g.in.size[i]
	at, best, room := int64(0), int64(-1), int64(0)
	for _, list := range g.blocks.near(p.lo, p.hi).chunks {
		g.work += int64(len(list)) / blocksPerStep
		for k := range list {
			b := &list[k]
			if b.lo >= p.hi || p.lo >= b.hi {
				continue
			}
			if r := b.low - at; r >= size {
				if how == firstFit {
					return at
				}
				if best < 0 || r < room {
					best, room = at, r
				}
			}
			if b.high > at {
				at = alignUp(b.high, align)
			}
		}
	}
	if best >= 0 {
		return best
	}
	return at
}

// lowest finds the lowest place of a buffer with gaps: each block that it meets forbids a range of offsets.
func (g *greedy) lowest(i int32) int64 {
	type forbidden struct{ from, to int64 } // both ends are allowed themselves
	var list []forbidden
	for _, blocks := range g.blocks.all.chunks {
		for _, b := range blocks {
			for _, p := range g.in.spans[i] {
				if b.lo < p.hi && p.lo < b.hi {
					list = append(list, forbidden{b.low - p.high, b.high - p.low})
				}
			}
		}
		g.work += int64(len(blocks)) / blocksPerStep
	}
	slices.SortFunc(list, func(a, b forbidden) int { return cmp(a.from, b.from) })
	at := int64(0)
	for _, f := range list {
		if f.from >= at {
			break
		}
		at = max(at, alignUp(f.to, g.in.align[i]))
	}
	return at
}
