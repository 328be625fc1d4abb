package emit

import (
	"math"

	"gradtool/npu/isa"
)

// job is work of a unit in a model of time: cycles, once the jobs named have left their units.
type job struct {
	cycles float64
	after  [isa.NumQueues]int // by queue, how many jobs of it must be done
}

// pipeline is the jobs of each unit, in order.
type pipeline [isa.NumQueues][]job

func (p *pipeline) add(q isa.Queue, cycles float64, after [isa.NumQueues]int) {
	p[q] = append(p[q], job{cycles, after})
}

// done returns how many jobs each unit has so far.
func (p *pipeline) done() [isa.NumQueues]int {
	var n [isa.NumQueues]int
	for q := range p {
		n[q] = len(p[q])
	}
	return n
}

// time returns the cycles until all jobs are done. A job begins head cycles after what it waits for, which pass under the job before, and
// its result is there tail cycles after it. Loads and stores that run at the same time share the path to DRAM.
func (p *pipeline) time(head, tail [isa.NumQueues]float64) float64 {
	var next [isa.NumQueues]int
	var left, free [isa.NumQueues]float64 // of the running job, 0 if there is none; end of the job before
	var ends [isa.NumQueues][]float64     // when results are there
	t := 0.0
	for {
		event := math.Inf(1)
		for q := range p {
			if left[q] > 0 || next[q] == len(p[q]) {
				continue
			}
			start := free[q]
			for o, n := range p[q][next[q]].after {
				if n > len(ends[o]) {
					start = math.Inf(1)
				} else if n > 0 {
					start = max(start, ends[o][n-1]+head[q])
				}
			}
			if next[q] == 0 {
				start = max(start, head[q])
			}
			if start <= t {
				left[q] = max(p[q][next[q]].cycles, 1)
			} else {
				event = min(event, start)
			}
		}
		rate := [isa.NumQueues]float64{1, 1, 1, 1}
		if left[isa.Load] > 0 && left[isa.Store] > 0 {
			rate[isa.Load], rate[isa.Store] = 0.5, 0.5
		}
		for q := range p {
			if left[q] > 0 {
				event = min(event, t+left[q]/rate[q])
			}
		}
		if math.IsInf(event, 1) {
			break
		}
		for q := range p {
			if left[q] == 0 {
				continue
			}
			if left[q] -= (event - t) * rate[q]; left[q] < 1e-6 {
				left[q], free[q] = 0, event
				next[q]++
				ends[q] = append(ends[q], event+tail[q])
			}
		}
		t = event
	}
	for q := range ends {
		if n := len(ends[q]); n > 0 {
			t = max(t, ends[q][n-1])
		}
	}
	return t
}
