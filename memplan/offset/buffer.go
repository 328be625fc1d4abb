// Package offset assigns addresses in one arena to buffers whose lifetimes are known: dynamic storage allocation,
// which is strip packing with the horizontal positions given. Buffers that live at the same time must not share bytes;
// the height of the arena is to be small.
//
// Three things stand beside each other: a lower bound (no plan is lower than the most bytes that live at one time), a
// portfolio of greedy orders, and an exact search in the style of MiniMalloc (Moffitt, "MiniMalloc: A Lightweight
// Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023). Effort is counted in steps of work, never in
// seconds, so that equal input gives equal plans on every machine.
package offset

import (
	"errors"
	"fmt"
	"math"
)

// Buffer is a block of memory that is wanted during [Lower, Upper).
type Buffer struct {
	ID           string
	Lower, Upper int64 // lifetime, half-open, in any unit of time
	Size         int64 // bytes
	Align        int64 // the offset must be a multiple of it; 0 and 1 mean any
	Gaps         []Gap // parts of the lifetime in which less is wanted
	Fixed        *int64
	Hint         *int64 // where the buffer might go; it only suggests an order
	Memory       string // of several memories, the one that it must lie in; "" for any (see [SpreadOver])
	Spill        *int64 // what it costs to have it one memory further; nil for its size
}

// Gap is a part of a lifetime, [Lower, Upper), in which a buffer holds only its bytes [Low, High), relative to its own
// offset; none if they are equal.
type Gap struct {
	Lower, Upper int64
	Low, High    int64
}

// Plan is an offset for every buffer.
type Plan struct {
	Offsets []int64
	Height  int64 // the highest end of a buffer
}

// Bounds of the numbers in an input: sums of sizes and products with lengths of time stay within an int64.
const (
	maxTime  = math.MaxInt64 / 4
	maxBytes = math.MaxInt64 / 4
)

// Validate reports everything that is wrong with the buffers: lifetimes and sizes that are empty, alignments and
// offsets that contradict each other, fixed offsets that share bytes, gaps outside their lifetime or overlapping.
func Validate(buffers []Buffer) error {
	var bad []error
	var sum int64
	for i := range buffers {
		b := &buffers[i]
		for _, msg := range b.problems() {
			bad = append(bad, fmt.Errorf("buffer %q: %s", b.ID, msg))
		}
		if b.Size > 0 && b.Size <= maxBytes {
			if sum > maxBytes-b.Size-max(b.Align, 1) {
				return errors.Join(append(bad, fmt.Errorf("buffer %q: all sizes and alignments up to it add up to more than %d bytes", b.ID, int64(maxBytes)))...)
			}
			sum += b.Size + max(b.Align, 1) - 1
		}
	}
	if len(bad) == 0 {
		bad = append(bad, fixedApart(buffers))
	}
	return errors.Join(bad...)
}

// fixedApart reports two buffers whose fixed offsets have them share bytes.
func fixedApart(buffers []Buffer) error {
	var bad []error
	parts := map[string][]Buffer{}
	var names []string
	for _, b := range buffers {
		if b.Fixed == nil {
			continue
		}
		if parts[b.Memory] == nil {
			names = append(names, b.Memory)
		}
		parts[b.Memory] = append(parts[b.Memory], b)
	}
	for _, name := range names {
		var p Plan
		for _, b := range parts[name] {
			p.Offsets = append(p.Offsets, *b.Fixed)
		}
		if err := overlap(parts[name], p); err != nil {
			bad = append(bad, fmt.Errorf("fixed offsets: %w", err))
		}
	}
	return errors.Join(bad...)
}

func (b *Buffer) problems() (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if b.Lower < -maxTime || b.Upper > maxTime {
		say("lifetime [%d, %d) is out of range", b.Lower, b.Upper)
	} else if b.Lower >= b.Upper {
		say("lifetime [%d, %d) is empty", b.Lower, b.Upper)
	}
	if b.Size <= 0 || b.Size > maxBytes {
		say("size %d, want 1 to %d", b.Size, int64(maxBytes))
	}
	if b.Align < 0 || b.Align > maxBytes {
		say("alignment %d, want 0 to %d", b.Align, int64(maxBytes))
	}
	if f := b.Fixed; f != nil {
		switch {
		case *f < 0 || *f > maxBytes:
			say("fixed offset %d, want 0 to %d", *f, int64(maxBytes))
		case b.Align > 1 && *f%b.Align != 0:
			say("fixed offset %d is no multiple of the alignment %d", *f, b.Align)
		}
	}
	if c := b.Spill; c != nil && (*c < 0 || *c > maxBytes) {
		say("spill cost %d, want 0 to %d", *c, int64(maxBytes))
	}
	for i, g := range b.Gaps {
		switch {
		case g.Lower >= g.Upper || g.Lower < b.Lower || g.Upper > b.Upper:
			say("gap [%d, %d) is empty or outside the lifetime [%d, %d)", g.Lower, g.Upper, b.Lower, b.Upper)
		case i > 0 && g.Lower < b.Gaps[i-1].Upper:
			say("gap [%d, %d) begins before the one in front of it ends at %d", g.Lower, g.Upper, b.Gaps[i-1].Upper)
		case g.Low < 0 || g.High < g.Low || g.High > b.Size:
			say("gap [%d, %d) keeps the bytes [%d, %d) of %d", g.Lower, g.Upper, g.Low, g.High, b.Size)
		}
	}
	return list
}

// box is a rectangle of time and bytes that a buffer holds: [lower, upper) times [low, high) relative to its offset.
type box struct {
	lower, upper int64
	low, high    int64
}

// spillCost returns what it costs to have the buffer one memory further.
func (b *Buffer) spillCost() int64 {
	if b.Spill != nil {
		return *b.Spill
	}
	return b.Size
}

// boxes cuts the buffer at its gaps. Boxes that hold nothing are left out.
func (b *Buffer) boxes() []box {
	var list []box
	add := func(lower, upper, low, high int64) {
		if lower < upper && low < high {
			list = append(list, box{lower, upper, low, high})
		}
	}
	at := b.Lower
	for _, g := range b.Gaps {
		add(at, g.Lower, 0, b.Size)
		add(g.Lower, g.Upper, g.Low, g.High)
		at = g.Upper
	}
	add(at, b.Upper, 0, b.Size)
	return list
}

// alignUp returns the lowest multiple of align that is not below x.
func alignUp(x, align int64) int64 {
	if align > 1 {
		if r := x % align; r != 0 {
			return x + align - r
		}
	}
	return x
}
