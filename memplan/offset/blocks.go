package offset

import (
	"slices"
	"sort"
)

// block is a placed box: bytes [low, high) in sections [lo, hi).
type block struct {
	low, high int64
	lo, hi    int32
}

// chunk is the most blocks that are kept in one slice, so that an insertion moves few.
const chunk = 512

// blockList is a list of blocks in the order of low.
type blockList struct{ chunks [][]block }

func (l *blockList) insert(b block) {
	if len(l.chunks) == 0 {
		l.chunks = append(l.chunks, nil)
	}
	c := sort.Search(len(l.chunks)-1, func(c int) bool { return l.chunks[c+1][0].low > b.low })
	list := l.chunks[c]
	k := sort.Search(len(list), func(k int) bool { return list[k].low > b.low })
	list = slices.Insert(list, k, b)
	l.chunks[c] = list
	if len(list) > chunk {
		l.chunks[c] = list[: chunk/2 : chunk/2]
		l.chunks = slices.Insert(l.chunks, c+1, slices.Clone(list[chunk/2:]))
	}
}

// blockIndex keeps blocks in one list for all times and one for each of several stretches of time: a short lifetime is
// compared with the blocks of its stretch only.
type blockIndex struct {
	all     blockList
	parts   []blockList
	perPart int32 // sections
}

// newBlockIndex makes an index for n blocks.
func newBlockIndex(n, sections int) *blockIndex {
	parts := min(n/1000, 24)
	if parts < 2 {
		return &blockIndex{}
	}
	return &blockIndex{parts: make([]blockList, parts), perPart: int32((sections + parts - 1) / parts)}
}

func (x *blockIndex) insert(b block) {
	x.all.insert(b)
	if x.parts == nil || b.lo == b.hi {
		return
	}
	for p := b.lo / x.perPart; p <= (b.hi-1)/x.perPart; p++ {
		x.parts[p].insert(b)
	}
}

// near returns a list that has all blocks that are live in sections [lo, hi), and others.
func (x *blockIndex) near(lo, hi int32) *blockList {
	if x.parts != nil && lo/x.perPart == (hi-1)/x.perPart {
		return &x.parts[lo/x.perPart]
	}
	return &x.all
}
