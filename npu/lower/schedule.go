package lower

import (
	"gradtool/npu/emit"
	"gradtool/npu/legal"
)

// group is a step of the schedule: a kernel, and others that run in the time of it.
type group struct {
	kernel legal.Kernel
	others []legal.Kernel
}

// window is how many kernels ahead the schedule looks.
const window = 48

// schedule orders kernels. Kernels that use the matrix unit and others that do not are put together where neither depends on
// the other: a weight's gradient, say, with the normalization that the backward pass goes on with.
func schedule(kernels []legal.Kernel, e *emit.Emitter) []group {
	touch := make([]legal.Touch, len(kernels))
	for i, k := range kernels {
		touch[i] = legal.Touches(k)
	}
	done := make([]bool, len(kernels))
	matrix := func(i int) bool {
		switch kernels[i].(type) {
		case *legal.Contract, *legal.Walk:
			return true
		}
		return false
	}
	// free reports whether kernel j can come before all that is left from i on, but those taken.
	free := func(i, j int, taken map[int]bool) bool {
		for x := i; x < j; x++ {
			if !done[x] && !taken[x] && touch[x].Conflict(touch[j]) {
				return false
			}
		}
		return true
	}
	var out []group
	for i := range kernels {
		for !done[i] {
			// A product goes first if it can, for others run in its time.
			front := i
			if !matrix(i) {
				for j := i + 1; j < min(i+window, len(kernels)); j++ {
					if !done[j] && matrix(j) && free(i, j, nil) {
						front = j
						break
					}
				}
			}
			g := group{kernel: kernels[front]}
			done[front] = true
			if matrix(front) {
				left := e.Estimate(kernels[front])
				taken := map[int]bool{}
				for j := i; j < min(i+window, len(kernels)) && left > 0; j++ {
					if done[j] || matrix(j) || touch[j].Conflict(touch[front]) || !free(i, j, taken) {
						continue
					}
					cost := e.Estimate(kernels[j])
					if cost > 1.5*left {
						continue
					}
					left -= cost
					taken[j] = true
					g.others = append(g.others, kernels[j])
				}
				for j := range taken {
					done[j] = true
				}
			}
			out = append(out, g)
		}
	}
	return out
}
