package op

import "fmt"

// view is a regular region of an array: the element with index i in dims is number off + sum of i*step.
// Steps may be zero (repetition) or negative (reversal).
type view struct {
	off  int
	step []int
}

// dense returns the view of all elements of an array of the given shape, in order.
func dense(shape []int) view { return view{step: strides(shape)} }

// copyView copies a region of src to a region of dst, both indexed by dims. The arrays must have the
// same storage.
func copyView(dst *Array, d view, src *Array, s view, dims []int) {
	switch {
	case dst.F32 != nil:
		copyStrided(dst.F32, d, src.F32, s, dims)
	case dst.F64 != nil:
		copyStrided(dst.F64, d, src.F64, s, dims)
	case dst.I64 != nil:
		copyStrided(dst.I64, d, src.I64, s, dims)
	case dst.C128 != nil:
		copyStrided(dst.C128, d, src.C128, s, dims)
	case dst.Str != nil:
		copyStrided(dst.Str, d, src.Str, s, dims)
	}
}

// copyStrided is copyView on elements. Axes that both sides step through alike are merged, so that most
// copies become few long runs; the outermost axis is split over cores.
func copyStrided[T any](dst []T, d view, src []T, s view, dims []int) {
	var n, ds, ss []int // merged, outermost first
	for i, size := range dims {
		switch last := len(n) - 1; {
		case size == 0:
			return
		case size == 1:
		case last >= 0 && ds[last] == d.step[i]*size && ss[last] == s.step[i]*size:
			n[last], ds[last], ss[last] = n[last]*size, d.step[i], s.step[i]
		default:
			n, ds, ss = append(n, size), append(ds, d.step[i]), append(ss, s.step[i])
		}
	}
	if len(n) == 0 {
		dst[d.off] = src[s.off]
		return
	}
	work := prod(n[1:])
	parallel(n[0], grainOf(work), func(lo, hi int) {
		c := strided[T]{dst, src, n, ds, ss}
		c.copy(0, lo, hi, d.off, s.off)
	})
}

// strided is a copy between two regions: sizes and the steps of both sides by axis.
type strided[T any] struct {
	dst, src  []T
	n, ds, ss []int
}

// tile is the side of the blocks in which two axes are exchanged, so that both sides stay in the cache.
const tile = 32

// copy copies positions lo to hi of an axis, with all of the axes inside it.
func (c *strided[T]) copy(axis, lo, hi, d, s int) {
	ds, ss := c.ds[axis], c.ss[axis]
	switch len(c.n) - axis {
	case 1:
		if ds == 1 && ss == 1 {
			copy(c.dst[d+lo:d+hi], c.src[s+lo:s+hi])
			return
		}
		for i, p, q := lo, d+lo*ds, s+lo*ss; i < hi; i, p, q = i+1, p+ds, q+ss {
			c.dst[p] = c.src[q]
		}
		return
	case 2:
		if c.ss[axis+1] != 1 && ss == 1 || c.ds[axis+1] != 1 && ds == 1 {
			c.exchange(axis, lo, hi, d, s)
			return
		}
	}
	for i := lo; i < hi; i++ {
		c.copy(axis+1, 0, c.n[axis+1], d+i*ds, s+i*ss)
	}
}

// exchange copies the last two axes in square blocks.
func (c *strided[T]) exchange(axis, lo, hi, d, s int) {
	d0, s0, d1, s1, n := c.ds[axis], c.ss[axis], c.ds[axis+1], c.ss[axis+1], c.n[axis+1]
	for i := lo; i < hi; i += tile {
		for j := 0; j < n; j += tile {
			for k := i; k < min(i+tile, hi); k++ {
				p, q := d+k*d0+j*d1, s+k*s0+j*s1
				for range min(tile, n-j) {
					c.dst[p] = c.src[q]
					p, q = p+d1, q+s1
				}
			}
		}
	}
}

// permuted returns x with result axis i taken from axis perm[i].
func permuted(x *Array, perm []int) *Array {
	from := strides(x.Shape)
	shape, step := make([]int, len(perm)), make([]int, len(perm))
	for i, p := range perm {
		shape[i], step[i] = x.Shape[p], from[p]
	}
	y := x.NewLike(shape)
	copyView(y, dense(shape), x, view{step: step}, shape)
	return y
}

// axisOf returns the attribute axis of an evaluated node, counted from the front.
func (c *EvalCtx) axisOf(def int64, rank int) (int, error) {
	return normAxis(c.Node.Int("axis", def), rank)
}

// axesOr returns the axes that an operand lists, counted from the front; all, if it is omitted.
func axesOr(axes []int64, given bool, rank int) ([]int, error) {
	if !given {
		all := make([]int, rank)
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	return normAxes(axes, rank)
}

// around splits a shape at an axis: the product of the sizes before it, its size, and the product after it.
func around(shape []int, axis int) (outer, n, inner int) {
	return prod(shape[:axis]), shape[axis], prod(shape[axis+1:])
}

// index returns i, which may be negative, counted from the front of n elements.
func index(i int64, n int) (int, error) {
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		return 0, fmt.Errorf("index %d is outside a dimension of %d", i, n)
	}
	return int(i), nil
}
