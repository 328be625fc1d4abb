package op

import (
	"runtime"
	"sync"
)

// parallel calls f on consecutive ranges that cover [0, n), on several cores if there are at least two
// ranges of grain items. The calls must not depend on each other; a panic in one is passed on to the caller.
func parallel(n, grain int, f func(lo, hi int)) {
	workers := min(runtime.GOMAXPROCS(0), n/max(grain, 1))
	if workers <= 1 {
		if n > 0 {
			f(0, n)
		}
		return
	}
	var wg sync.WaitGroup
	panics := make([]any, workers)
	for w := range workers {
		wg.Go(func() {
			defer func() { panics[w] = recover() }()
			f(n*w/workers, n*(w+1)/workers)
		})
	}
	wg.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
}

// grainOf returns how many items make it worth starting another core, given the elementary operations per item.
func grainOf(work int) int { return max(1, 1<<15/max(work, 1)) }
