package fuse

import (
	"errors"
	"fmt"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Chunking says how the tail of a training graph, a product that makes logits with the cross entropy over them and its
// gradient, is computed piece by piece, so that the logits never exist as a whole.
type Chunking struct {
	Way  Way
	Size int64 // rows or classes of a piece; 0: what fits Room
	Room int64 // bytes that one tensor of a piece may take; 0: 32 MiB
	// Least is the size of the logits in bytes from which on they are worth it; 0: 4 MiB. An explicit Way or Size is obeyed always.
	Least int64
	Dims  map[string]int64 // sizes of symbolic dimensions, for the choice alone
	// Allow is asked before each rewrite; nil allows all.
	Allow func(format string, args ...any) bool
}

// Way is what a tail is divided by.
type Way uint8

// Ways of chunking.
const (
	Best      Way = iota // the one that is estimated to need less memory
	ByRows               // a piece is some rows and all classes: three products, as without pieces
	ByClasses            // a piece is all rows and some classes: the logits are computed twice, the weights' gradient only once
)

// String returns the name that users know.
func (w Way) String() string { return [...]string{"auto", "rows", "classes"}[w] }

// ParseWay is the inverse of [Way.String].
func ParseWay(s string) (Way, error) {
	for _, w := range []Way{Best, ByRows, ByClasses} {
		if w.String() == s {
			return w, nil
		}
	}
	return Best, fmt.Errorf("%q: want auto, rows or classes", s)
}

// Chunked is a tail that was rewritten.
type Chunked struct {
	Node   string // label of the node that made the logits
	Way    Way
	Size   int64 // rows or classes of a piece
	Pieces graph.Dim
	Logits graph.Dim // bytes of the logits
	Peak   [2]Peak   // estimates before and after
}

// Peak is an estimate of the bytes that a tail needs at one time beside its operands.
type Peak = graph.Dim

// ChunkResult is what Chunk did.
type ChunkResult struct {
	Done []Chunked
	Left []Refusal // cross entropies that stay whole, with the reason in Why
}

// Chunk rewrites the loss tails of m's main graph. Results are the same up to the order of sums. The model must be sorted,
// canonical and inferred; it is sorted afterwards.
func Chunk(m *graph.Model, info *op.Info, c Chunking) (*ChunkResult, error) {
	r := &ChunkResult{}
	g := m.Graph
	for _, n := range append([]*graph.Node{}, g.Nodes...) {
		if !n.Is("LogSoftmax") && !n.Is("Softmax") || n.Graph != g {
			continue
		}
		t, err := findTail(n, info)
		if errors.Is(err, errNoTail) {
			continue
		}
		var plan *chunkPlan
		if err == nil {
			plan, err = c.plan(t)
		}
		if err != nil {
			r.Left = append(r.Left, Refusal{A: n.Label(), Why: err.Error()})
			continue
		}
		if c.Allow != nil && !c.Allow("chunk %s", t.product.Label()) {
			break
		}
		done := Chunked{Node: t.product.Label(), Way: plan.way, Size: plan.size, Pieces: plan.pieces, Logits: bytesOf(t.logits), Peak: [2]Peak{plan.before, plan.after}}
		if err := t.rewrite(info, plan); err != nil {
			return r, fmt.Errorf("internal error: chunks of %s: %w", n.Label(), err)
		}
		r.Done = append(r.Done, done)
	}
	if len(r.Done) == 0 {
		return r, nil
	}
	return r, g.Sort()
}

// chunkPlan is how a tail will be computed.
type chunkPlan struct {
	way           Way
	size          int64
	pieces        graph.Dim
	before, after Peak
}

const (
	defaultRoom  = 32 << 20
	defaultLeast = 4 << 20
)

// plan chooses the way and the size of the pieces.
func (c Chunking) plan(t *tail) (*chunkPlan, error) {
	room, least := c.Room, c.Least
	if room == 0 {
		room = defaultRoom
	}
	if least == 0 {
		least = defaultLeast
	}
	logits := Estimate(bytesOf(t.logits), c.Dims)
	if c.Way == Best && c.Size == 0 && logits < float64(least) {
		return nil, fmt.Errorf("the logits take %.3g bytes only, less than %d", logits, least)
	}
	rows := c.byRows(t, room)
	classes, err := c.byClasses(t, room)
	switch c.Way {
	case ByRows:
		return rows, nil
	case ByClasses:
		return classes, err
	}
	if c.Size == 0 && err == nil && Estimate(classes.after, c.Dims) < 0.8*Estimate(rows.after, c.Dims) {
		return classes, nil
	}
	return rows, nil
}

// byRows plans pieces of some rows.
func (c Chunking) byRows(t *tail, room int64) *chunkPlan {
	p := &chunkPlan{way: ByRows, size: c.Size, before: t.whole()}
	row := t.classes * wideBytes(t.logits)
	if p.size == 0 {
		p.size = max(room/row, 1)
		if p.size > 16 {
			p.size -= p.size % 16 // as kernels of products like them
		}
	}
	if n, ok := t.rows.Int(); ok {
		p.size = min(p.size, max(n, 1))
	}
	p.pieces = t.rows.CeilDiv(graph.Known(p.size)).Max(graph.Known(1))
	// A piece's probabilities before and after they are scaled; the sum of the weights' gradients before and after a piece.
	p.after = graph.Known(2 * p.size * row).Add(t.gradients(2))
	return p
}

// byClasses plans pieces of some classes.
func (c Chunking) byClasses(t *tail, room int64) (*chunkPlan, error) {
	if err := t.divisible(); err != nil {
		return nil, err
	}
	p := &chunkPlan{way: ByClasses, size: c.Size, before: t.whole()}
	column := t.rows.Mul(graph.Known(wideBytes(t.logits)))
	if p.size == 0 {
		p.size = int64(float64(room) / max(Estimate(column, c.Dims), 1))
	}
	p.size = divisor(t.classes, p.size)
	if p.size < minClasses && p.size < t.classes {
		return nil, fmt.Errorf("%d classes have no divisor that makes pieces of a good size", t.classes)
	}
	p.pieces = graph.Known(t.classes / p.size)
	copies := int64(1)
	if t.dw != nil && t.dw.turned == (t.dw.turn != nil) {
		copies++ // it is turned at the end
	}
	p.after = column.Mul(graph.Known(2 * p.size)).Add(t.gradients(copies))
	if !t.turned {
		p.after = p.after.Add(bytesOf(t.w))
	}
	return p, nil
}

// minClasses is the least number of classes that are worth a piece.
const minClasses = 64

// divisor returns the largest divisor of n that is at most want, or else the least that is larger.
func divisor(n, want int64) int64 {
	want = min(max(want, 1), n)
	below, above := int64(1), n
	for d := int64(1); d*d <= n; d++ {
		if n%d != 0 {
			continue
		}
		for _, k := range []int64{d, n / d} {
			if k <= want {
				below = max(below, k)
			} else {
				above = min(above, k)
			}
		}
	}
	if below < minClasses {
		return above
	}
	return below
}

// whole estimates what the tail needs without pieces: two tensors of the logits' size, and the gradients with the copy that a
// transposed one takes.
func (t *tail) whole() Peak {
	copies := int64(1)
	if t.dw != nil && t.dw.turn != nil {
		copies = 2
	}
	return bytesOf(t.logits).Mul(graph.Known(2 * wideBytes(t.logits) / narrowBytes(t.logits))).Add(t.gradients(copies))
}

// gradients returns the size of the gradient of the weights, times copies.
func (t *tail) gradients(copies int64) graph.Dim {
	if t.dw == nil {
		return graph.Known(0)
	}
	return bytesOf(t.w).Mul(graph.Known(copies))
}

func bytesOf(v *graph.Value) graph.Dim {
	return v.Type.Shape.Size().Mul(graph.Known(narrowBytes(v)))
}

func narrowBytes(v *graph.Value) int64 { return int64(max(v.Type.Elem.Bits()/8, 1)) }

// wideBytes is the size of an element in the type that sums are made in.
func wideBytes(v *graph.Value) int64 { return max(narrowBytes(v), 4) }
