package emit

import (
	"cmp"
	"slices"

	"gradtool/npu/legal"
)

// outerTile returns the tile of the result that a tile of a contraction adds to.
func outerTile(k *legal.Contract, tile []int) []int {
	out := slices.Clone(tile)
	for i, kind := range k.Kind {
		if kind == legal.K {
			out[i] = 1
		}
	}
	return out
}

// Parts in which an epilogue works off its sums are cut further while they hold more than so many elements and the tile is less than so
// many of them: what one part computes the next one's transfers run under.
const (
	partWords = 4096
	partCount = 4
)

// postTile returns the size of the parts in which the epilogue of a contraction works off a tile of sums, given the words that it
// may take; nil if there is none. Dimensions of large steps in the result are cut first, for long transfers. Across are dimensions along
// which several tiles are added up: then parts are cut along dimensions that are added up only, for there is one place for each sum.
func (e *Emitter) postTile(k *legal.Contract, outer []int, across uint32, room int) []int {
	sums := reduced(k.Post)
	step := k.Post.Out[0].To.Steps(len(outer))
	order := make([]int, len(outer))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(max(step[b], -step[b]), max(step[a], -step[a])) })
	tile := slices.Clone(outer)
	size, total := 1, 1
	for _, n := range outer {
		total *= n
	}
	size = total
	for {
		fits := 2*e.footprint(k.Post, tile) <= room
		if fits && (size <= partWords || size*partCount <= total) {
			return tile
		}
		cut := slices.IndexFunc(order, func(i int) bool {
			return tile[i] > 1 && (across == 0 || sums>>i&1 != 0) && (sums>>i&1 == 0 || e.cuts(k.Post, tile, i))
		})
		if cut < 0 {
			if fits {
				return tile
			}
			return nil
		}
		i := order[cut]
		size /= tile[i]
		tile[i] = ceilDiv(tile[i], 2)
		size *= tile[i]
	}
}

// cuts reports whether a nest can be done in smaller tiles along a dimension that some reduction reduces.
func (e *Emitter) cuts(k *legal.Nest, tile []int, dim int) bool {
	smaller := slices.Clone(tile)
	smaller[dim] = ceilDiv(tile[dim], 2)
	return e.does(k, smaller)
}

// does reports whether a nest can be done in tiles of a size.
func (e *Emitter) does(k *legal.Nest, tile []int) bool {
	_, err := e.newNestRun(k, tile)
	return err == nil
}

// whole returns the dimensions that tiles of a contraction hold whole: those that the epilogue reduces, but for those over which it can add
// up tile by tile, rows first.
func whole(k *legal.Contract) uint32 {
	all := reduced(k.Post)
	if all == 0 {
		return 0
	}
	e := &Emitter{}
	tile := slices.Clone(k.Post.Dims)
	for _, kind := range []legal.Kind{legal.M, legal.N} {
		for i, n := range tile {
			if all>>i&1 == 0 || k.Kind[i] != kind || n == 1 {
				continue
			}
			if tile[i] = ceilDiv(n, 2); !e.does(k.Post, tile) {
				tile[i] = n
				continue
			}
			all &^= 1 << i
		}
	}
	return all
}

// addedUp returns the dimensions along which the epilogue of a contraction adds up tiles: they are walked innermost.
func addedUp(k *legal.Contract, tile []int) uint32 {
	m := reduced(k.Post)
	for i, d := range k.Dims {
		if tile[i] == d {
			m &^= 1 << i
		}
	}
	return m
}

// reduced returns the dimensions that an epilogue, which may be nil, reduces.
func reduced(k *legal.Nest) uint32 {
	m := uint32(0)
	if k != nil {
		for _, s := range k.Body {
			m |= s.Over
		}
	}
	return m
}

// manyRows is how many rows of the result are enough for the other operand not to be read too often.
const manyRows = 64

// FitsPost reports whether a contraction can be cut so that its epilogue leaves room for others: into tiles of so many rows that the other operand
// need not be read often, or of as few as the array has if that operand can stay on chip. Rows of scores, of few terms each, are long.
func (e *Emitter) FitsPost(k *legal.Contract) bool {
	if e.fitsPost(k, manyRows) {
		return true
	}
	one := slices.Clone(k.Dims)
	for i, kind := range k.Kind {
		if kind == legal.Batch {
			one[i] = 1
		}
	}
	t := box{make([]int, len(one)), one}
	least := min(e.words(k.A, t, true), e.words(k.B, t, true))
	return 4*least <= e.Machine.Scratchpad.Bytes/4 && e.fitsPost(k, min(manyRows, e.Machine.Array.Rows))
}

// fitsPost reports that for tiles of so many rows.
func (e *Emitter) fitsPost(k *legal.Contract, most int) bool {
	tile := make([]int, len(k.Dims))
	whole := whole(k)
	rows := 1
	for i := len(tile) - 1; i >= 0; i-- {
		switch {
		case k.Kind[i] == legal.K:
			tile[i] = 1
		case whole>>i&1 != 0:
			tile[i] = k.Dims[i]
		default:
			tile[i] = max(1, min(k.Dims[i], most/rows))
			rows *= tile[i]
		}
	}
	n := 1
	for _, t := range tile {
		n *= t
	}
	return 4*n <= e.Machine.Accumulator.Bytes/2 && e.postTile(k, tile, addedUp(k, tile)&^mask(k.Kind, legal.K), e.Machine.Scratchpad.Bytes/4/8) != nil
}
