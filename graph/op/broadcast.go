package op

import "fmt"

// broadcast is a walk over a result to which operands of other shapes are broadcast, numpy style. Axes
// of the result that every operand steps through alike are merged, so that operands of one shape, scalars
// and trailing rows all become long runs in which an operand either advances by one element or stays.
type broadcast struct {
	shape []int   // of the result
	dims  []int   // the result's axes after merging, never empty
	step  [][]int // by operand: elements to advance per step along each merged axis, 0 where it is repeated
}

// newBroadcast plans the walk for operands of the given shapes. The error says which sizes do not fit.
func newBroadcast(shapes ...[]int) (*broadcast, error) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	p := &broadcast{shape: make([]int, rank)}
	for i := range p.shape {
		p.shape[i] = 1
		for _, s := range shapes {
			j := i - (rank - len(s))
			if j < 0 || s[j] == 1 {
				continue
			}
			if p.shape[i] != 1 && p.shape[i] != s[j] {
				return nil, fmt.Errorf("shapes %v cannot be broadcast: %d against %d", shapes, p.shape[i], s[j])
			}
			p.shape[i] = s[j]
		}
	}
	p.merge(shapes)
	return p, nil
}

// broadcastTo plans the walk over a result of the given shape, to which the operands must broadcast one way.
func broadcastTo(shape []int, shapes ...[]int) (*broadcast, error) {
	p, err := newBroadcast(append([][]int{shape}, shapes...)...)
	if err != nil {
		return nil, err
	}
	if len(p.shape) != len(shape) || prod(p.shape) != prod(shape) {
		return nil, fmt.Errorf("shapes %v do not broadcast to %v", shapes, shape)
	}
	p.step = p.step[1:]
	return p, nil
}

// merge fills dims and step, from the innermost axis outwards.
func (p *broadcast) merge(shapes [][]int) {
	rank := len(p.shape)
	full := make([][]int, len(shapes)) // steps by axis of the result
	for k, s := range shapes {
		full[k] = make([]int, rank)
		n := 1
		for j := len(s) - 1; j >= 0; j-- {
			if s[j] != 1 {
				full[k][j+rank-len(s)] = n
			}
			n *= s[j]
		}
	}
	var dims []int // innermost first, until turned round below
	var axes []int // the innermost original axis of each
	for i := rank - 1; i >= 0; i-- {
		if p.shape[i] == 1 {
			continue
		}
		fits := len(dims) > 0
		if fits {
			inner, size := axes[len(axes)-1], dims[len(dims)-1]
			for k := range full {
				fits = fits && full[k][i] == full[k][inner]*size
			}
		}
		if fits {
			dims[len(dims)-1] *= p.shape[i]
		} else {
			dims, axes = append(dims, p.shape[i]), append(axes, i)
		}
	}
	if len(dims) == 0 {
		p.dims = []int{1}
		for range shapes {
			p.step = append(p.step, []int{0})
		}
		return
	}
	n := len(dims)
	p.dims = make([]int, n)
	p.step = make([][]int, len(shapes))
	for k := range shapes {
		p.step[k] = make([]int, n)
	}
	for i := range n {
		p.dims[n-1-i] = dims[i]
		for k := range shapes {
			p.step[k][n-1-i] = full[k][axes[i]]
		}
	}
}

// size returns the number of result elements.
func (p *broadcast) size() int { return prod(p.dims) }

// advances reports whether operand k advances within a run; if not, one of its elements serves the whole run.
func (p *broadcast) advances(k int) bool { return p.step[k][len(p.dims)-1] != 0 }

// span returns the elements of operand k that a run of n from offset at reads: n of them, or one.
func span[T any](p *broadcast, k int, x []T, at, n int) []T {
	if p.advances(k) {
		return x[at : at+n]
	}
	return x[at : at+1]
}

// runs calls f for consecutive runs that cover the result elements [lo, hi): n elements from out, with
// the operands' offsets in at, which f must not keep.
func (p *broadcast) runs(lo, hi int, f func(out, n int, at []int)) {
	if lo >= hi {
		return
	}
	last := len(p.dims) - 1
	index := make([]int, len(p.dims)) // position of lo, then of the current run
	at := make([]int, len(p.step))
	rest := lo
	for i := last; i >= 0; i-- {
		index[i] = rest % p.dims[i]
		rest /= p.dims[i]
		for k := range at {
			at[k] += index[i] * p.step[k][i]
		}
	}
	for lo < hi {
		n := min(p.dims[last]-index[last], hi-lo)
		f(lo, n, at)
		lo += n
		for k := range at { // back to the start of the row
			at[k] -= index[last] * p.step[k][last]
		}
		index[last] = 0
		for i := last - 1; i >= 0; i-- {
			for k := range at {
				at[k] += p.step[k][i]
			}
			if index[i]++; index[i] < p.dims[i] {
				break
			}
			for k := range at {
				at[k] -= index[i] * p.step[k][i]
			}
			index[i] = 0
		}
	}
}

// each is runs over the whole result, split over cores; work is the cost of an element in elementary operations.
func (p *broadcast) each(work int, f func(out, n int, at []int)) {
	parallel(p.size(), grainOf(work), func(lo, hi int) { p.runs(lo, hi, f) })
}
