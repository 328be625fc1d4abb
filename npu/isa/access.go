package isa

import "slices"

// Access is a set of elements that an instruction reads or writes: a box of strided dimensions in one memory. Addresses,
// strides and Size are bytes.
type Access struct {
	Name  string // of the operand
	Space Space
	Write bool
	Addr  int64
	Size  int64
	// The first nd of dims are in use. An array, as programs have millions of accesses.
	dims [maxDims]dim
	nd   int
	// Table marks a row table whose rows the data decides: the box covers all rows.
	Table bool
}

// maxDims is the largest number of dimensions of an access: those of a matmul's operand and the bytes of an element.
const maxDims = 7

// box returns the dimensions.
func (a *Access) box() []dim { return a.dims[:a.nd] }

// dim is n steps of stride bytes.
type dim struct {
	n      int64
	stride int64
}

// newAccess makes an access of n elements along each stride, in bytes. Counts of 0 are 1. Negative strides are turned round,
// repeated elements are dropped, and dimensions that together run through evenly spaced places become one, so that equal
// sets mostly have equal descriptions. After that the dimensions are in the order of growing stride and the first is the run
// of contiguous bytes.
func newAccess(name string, space Space, addr int64, size int, n []int32, strides []int64, write bool) Access {
	a := Access{Name: name, Space: space, Write: write, Addr: addr, Size: int64(size)}
	var sorted [maxDims - 1]dim
	k := 0
	for i, c := range n {
		s := strides[i]
		if c <= 1 || s == 0 {
			continue
		}
		if s < 0 {
			a.Addr += s * int64(c-1)
			s = -s
		}
		at := k
		for ; at > 0 && sorted[at-1].stride > s; at-- {
			sorted[at] = sorted[at-1]
		}
		sorted[at] = dim{int64(c), s}
		k++
	}
	a.dims[0], a.nd = dim{int64(size), 1}, 1
next:
	for _, d := range sorted[:k] {
		for i := range a.box() {
			e := &a.dims[i]
			if d.stride%e.stride == 0 && d.stride/e.stride <= e.n {
				e.n += (d.n - 1) * (d.stride / e.stride)
				continue next
			}
		}
		a.dims[a.nd] = d
		a.nd++
	}
	return a
}

// End returns the address behind the last byte.
func (a *Access) End() int64 {
	end := a.Addr + 1
	for _, d := range a.box() {
		end += (d.n - 1) * d.stride
	}
	return end
}

// Bytes returns the number of bytes of the set.
func (a *Access) Bytes() int64 {
	n := int64(1)
	for _, d := range a.box() {
		n *= d.n
	}
	return n
}

// Run returns the length in bytes of the contiguous runs that the set consists of, and how many there are.
func (a *Access) Run() (bytes, count int64) { return a.dims[0].n, a.Bytes() / a.dims[0].n }

// Runs calls f for each contiguous run of bytes until f returns false.
func (a *Access) Runs(f func(lo, hi int64) bool) bool { return runs(a.Addr, a.box(), f) }

func runs(at int64, dims []dim, f func(lo, hi int64) bool) bool {
	last := len(dims) - 1
	if last == 0 {
		return f(at, at+dims[0].n)
	}
	for range dims[last].n {
		if !runs(at, dims[:last], f) {
			return false
		}
		at += dims[last].stride
	}
	return true
}

// maxSteps is the number of interleaved steps that hits looks at.
const maxSteps = 256

// hits reports whether the set has a byte in [lo, hi), given that at is its first byte.
func hits(at int64, dims []dim, lo, hi int64) bool {
	last := len(dims) - 1
	if last == 0 {
		return at < hi && at+dims[0].n > lo
	}
	span := int64(1) // extent of the inner dimensions
	for _, d := range dims[:last] {
		span += (d.n - 1) * d.stride
	}
	d := dims[last]
	// Step i covers [at+i*stride, at+i*stride+span): those i that can meet [lo, hi).
	first := max(0, (lo-span-at)/d.stride)
	end := min(d.n, (hi-at+d.stride-1)/d.stride)
	if span > d.stride && end-first > maxSteps {
		return true // dimensions that interleave: no exact answer at this price
	}
	for i := first; i < end; i++ {
		if hits(at+i*d.stride, dims[:last], lo, hi) {
			return true
		}
	}
	return false
}

// maxRuns is the number of runs up to which Overlaps is exact.
const maxRuns = 1 << 14

// Overlaps reports whether two sets of one memory share a 4-byte word. It is exact unless both consist of very many runs;
// then it may say yes for sets that are interleaved.
func (a *Access) Overlaps(b *Access) bool {
	if a.Space != b.Space || a.Addr&^3 >= (b.End()+3)&^3 || b.Addr&^3 >= (a.End()+3)&^3 {
		return false
	}
	_, na := a.Run()
	_, nb := b.Run()
	if na > nb {
		a, b, na = b, a, nb
	}
	if na > maxRuns {
		return true
	}
	return !a.Runs(func(lo, hi int64) bool { return !hits(b.Addr, b.box(), lo&^3, (hi+3)&^3) })
}

// Covers reports whether a surely holds all of b: it is contiguous around b, or the same set.
func (a *Access) Covers(b *Access) bool {
	if a.Space != b.Space {
		return false
	}
	if a.nd == 1 {
		return a.Addr <= b.Addr && a.End() >= b.End()
	}
	return a.Addr == b.Addr && slices.Equal(a.box(), b.box())
}

// Same reports whether two sets are the same.
func (a *Access) Same(b *Access) bool {
	return a.Space == b.Space && a.Addr == b.Addr && slices.Equal(a.box(), b.box())
}
