package legal

import (
	"cmp"
	"slices"
)

// Places of one buffer, once written by one kernel and once read by another, tell which dimensions of the two are the same.

// radix is a dimension along which an access moves.
type radix struct{ dim, n, stride int }

// radices returns the dimensions along which the access moves, those of small steps first, and false if they do not count
// through the buffer element by element.
func radices(a *Access, dims []int) ([]radix, bool) {
	var out []radix
	for i, s := range a.Steps(len(dims)) {
		if s != 0 && dims[i] > 1 {
			out = append(out, radix{i, dims[i], s})
		}
	}
	slices.SortFunc(out, func(p, q radix) int { return cmp.Compare(p.stride, q.stride) })
	at := 1
	for _, r := range out {
		if r.stride != at {
			return nil, false
		}
		at *= r.n
	}
	return out, at == a.Buf.Len && a.first() == 0 && a.Inside(dims)
}

// splitter is a kernel whose dimensions can be cut.
type splitter interface {
	split(dim, n int) bool
}

// match cuts dimensions of a producer and a consumer so that the dimensions along which they move through the same buffer
// are the same, and returns them in pairs. access returns each one's access to the buffer and its dimensions.
func match(p, c splitter, access func(k splitter) (*Access, []int)) ([][2]int, bool) {
	for range 64 {
		pa, pd := access(p)
		ca, cd := access(c)
		pr, ok := radices(pa, pd)
		if !ok {
			return nil, false
		}
		cr, ok := radices(ca, cd)
		if !ok {
			return nil, false
		}
		var pairs [][2]int
		for i := 0; ; i++ {
			if i == len(pr) && i == len(cr) {
				return pairs, true
			}
			x, y := pr[i], cr[i]
			switch {
			case x.n == y.n:
				pairs = append(pairs, [2]int{x.dim, y.dim})
				continue
			case x.n%y.n == 0:
				ok = p.split(x.dim, y.n)
			case y.n%x.n == 0:
				ok = c.split(y.dim, x.n)
			default:
				ok = false
			}
			if !ok {
				return nil, false
			}
			break
		}
	}
	return nil, false
}
