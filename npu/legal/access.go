package legal

import "slices"

// Varies returns the dimensions along which the access moves, by bit.
func (a *Access) Varies() uint32 {
	mask := uint32(0)
	for _, x := range a.Axes {
		for i, c := range x.Coef {
			if c != 0 {
				mask |= 1 << i
			}
		}
	}
	return mask
}

// At returns the element at the given indices, and false where a coordinate is out of range.
func (a *Access) At(index []int) (int, bool) {
	at := a.Base
	for _, x := range a.Axes {
		c := x.Off
		for i, f := range x.Coef {
			c += f * index[i]
		}
		if c < 0 || c >= x.Size {
			return 0, false
		}
		at += c * x.Stride
	}
	return at, true
}

// Range returns the least and the greatest coordinate of axis x for indices lo[i] <= index[i] < hi[i].
func (x *Axis) Range(lo, hi []int) (least, most int) {
	least, most = x.Off, x.Off
	for i, f := range x.Coef {
		if f >= 0 {
			least += f * lo[i]
			most += f * (hi[i] - 1)
		} else {
			least += f * (hi[i] - 1)
			most += f * lo[i]
		}
	}
	return least, most
}

// Inside reports whether no index in the box of the given dimensions leaves the axes.
func (a *Access) Inside(dims []int) bool {
	lo := make([]int, len(dims))
	for i := range a.Axes {
		if l, h := a.Axes[i].Range(lo, dims); l < 0 || h >= a.Axes[i].Size {
			return false
		}
	}
	return true
}

// Span returns the least and the greatest element that the access can reach through coordinates in range.
func (a *Access) Span(dims []int) (least, most int) {
	lo := make([]int, len(dims))
	least, most = a.Base, a.Base
	for i := range a.Axes {
		x := &a.Axes[i]
		l, h := x.Range(lo, dims)
		l, h = max(l, 0), min(h, x.Size-1)
		if x.Stride < 0 {
			l, h = h, l
		}
		least += l * x.Stride
		most += h * x.Stride
	}
	return least, most
}

// Clone returns a copy that shares no memory with a but the buffer.
func (a *Access) Clone() *Access {
	b := *a
	b.Axes = slices.Clone(a.Axes)
	for i := range b.Axes {
		b.Axes[i].Coef = slices.Clone(b.Axes[i].Coef)
	}
	return &b
}

// Same reports whether a and b touch the same elements at the same indices.
func (a *Access) Same(b *Access) bool {
	if a.Buf != b.Buf || a.Base != b.Base || len(a.Axes) != len(b.Axes) {
		return false
	}
	for i := range a.Axes {
		x, y := &a.Axes[i], &b.Axes[i]
		if x.Size != y.Size || x.Stride != y.Stride || x.Off != y.Off || !slices.Equal(x.Coef, y.Coef) {
			return false
		}
	}
	return true
}

// tidy drops axes that stay at one coordinate in range, and divides an axis whose coefficients share a factor.
func (a *Access) tidy(dims []int) *Access {
	keep := a.Axes[:0:0]
	for _, x := range a.Axes {
		g := 0
		for i := range x.Coef {
			if dims[i] == 1 {
				x.Coef[i] = 0
			}
			g = gcd(g, x.Coef[i])
		}
		if g == 0 && x.Off >= 0 && x.Off < x.Size {
			a.Base += x.Off * x.Stride
			continue
		}
		if g > 1 {
			// Off + g*t with Off = g*q + r is coordinate q + t of every g-th element from r on.
			q := floorDiv(x.Off, g)
			r := x.Off - g*q
			if r < x.Size {
				a.Base += r * x.Stride
				x.Size, x.Stride, x.Off = (x.Size-r+g-1)/g, x.Stride*g, q
				for i := range x.Coef {
					x.Coef[i] /= g
				}
			}
		}
		keep = append(keep, x)
	}
	a.Axes = keep
	return a
}

func gcd(a, b int) int {
	a, b = max(a, -a), max(b, -b)
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func prod(s []int) int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}
