package profile

import (
	"gradtool/npu/isa"
	"gradtool/npu/sim"
)

// Slice is a stretch of time: what the units do in it, and the most that is in use on chip.
type Slice struct {
	From        float64 `json:"from"`
	To          float64 `json:"to"`
	Load        float64 `json:"load_cycles"`
	Store       float64 `json:"store_cycles"`
	Matrix      float64 `json:"matrix_cycles"`
	Vector      float64 `json:"vector_cycles"`
	Scratchpad  int64   `json:"scratchpad_bytes"`
	Accumulator int64   `json:"accumulator_bytes"`
}

// stretchCount is the number of stretches into which the time is cut.
const stretchCount = 20

// stretches cuts the timeline into stretches of equal length.
func stretches(tl *sim.Timeline) []Slice {
	out := make([]Slice, stretchCount)
	length := tl.Cycles / stretchCount
	for i := range out {
		out[i].From, out[i].To = length*float64(i), length*float64(i+1)
		// The samples of the memories' use are many for each stretch.
		for k := range tl.Scratchpad {
			if k*stretchCount/len(tl.Scratchpad) == i {
				out[i].Scratchpad = max(out[i].Scratchpad, tl.Scratchpad[k])
				out[i].Accumulator = max(out[i].Accumulator, tl.Accumulator[k])
			}
		}
	}
	if length <= 0 {
		return out
	}
	for q := range isa.NumQueues {
		for _, s := range tl.Spans[q] {
			for i := min(int(s.Start/length), stretchCount-1); i < stretchCount && out[i].From < s.End; i++ {
				part := min(s.End, out[i].To) - max(s.Start, out[i].From)
				*[]*float64{isa.Load: &out[i].Load, isa.Store: &out[i].Store, isa.Matrix: &out[i].Matrix, isa.Vector: &out[i].Vector}[q] += max(part, 0)
			}
		}
	}
	return out
}
