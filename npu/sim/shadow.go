package sim

import "gradtool/npu/isa"

// cell is what the simulator knows of a word: who wrote it last and who has read it since.
type cell struct {
	w uint32                // stamp of the last write; 0: never written
	r [isa.NumQueues]uint32 // number of the last reading instruction of each queue since that write; 0: none
}

// A stamp is a queue and the number of an instruction in it.
func stamp(q isa.Queue, seq uint32) uint32       { return uint32(q)<<30 | seq }
func unstamp(w uint32) (q isa.Queue, seq uint32) { return isa.Queue(w >> 30), w & (1<<30 - 1) }

// preset is the number that stands for "before the program": the first instruction of a queue has the next one.
const preset = 1

// pageWords is the number of words that share a cell while they have had the same fate.
const pageWords = 64

// page is a stretch of memory: one cell for all its words, or one for each.
type page struct {
	all   cell
	cells *[pageWords]cell
}

// shadow is the state of all words of a memory.
type shadow struct{ pages []page }

func newShadow(bytes int64) *shadow {
	return &shadow{pages: make([]page, (bytes/4+pageWords)/pageWords)}
}

// visit calls f for the cells of the words that hold bytes [lo, hi), once for a page that is covered as a whole, until f
// returns false. The argument is the address of the first word that the cell stands for.
func (s *shadow) visit(lo, hi int64, f func(c *cell, addr int64) bool) bool {
	first, end := lo>>2, (hi+3)>>2
	for first < end {
		p := &s.pages[first/pageWords]
		base := first / pageWords * pageWords
		last := min(end, base+pageWords)
		if p.cells == nil {
			if last-first == pageWords {
				if !f(&p.all, first*4) {
					return false
				}
				first = last
				continue
			}
			p.cells = new([pageWords]cell)
			for i := range p.cells {
				p.cells[i] = p.all
			}
		}
		for i := first; i < last; i++ {
			if !f(&p.cells[i-base], i*4) {
				return false
			}
		}
		if last-first == pageWords && uniform(p.cells[:]) {
			p.all, p.cells = p.cells[0], nil
		}
		first = last
	}
	return true
}

func uniform(c []cell) bool {
	for i := range c[1:] {
		if c[i+1] != c[0] {
			return false
		}
	}
	return true
}
