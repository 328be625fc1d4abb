package op

import "gradtool/graph"

// ResizeStep is what a Resize does along one axis: each of Out results is a weighted sum of some of In elements, or a constant.
type ResizeStep struct {
	Axis, In, Out int
	Same          bool // elements are kept as they are
	plan          axisResize
	taps          [][]tap
}

// ResizeSteps returns what the Resize n does with an operand of the given shape. Of its other operands, nil where omitted, region, scales and sizes
// are given. Results are those of the axes one after the other.
func ResizeSteps(n *graph.Node, shape []int, region, scales, sizes *Array) ([]ResizeStep, error) {
	var list []int64
	if sizes != nil {
		list = sizes.I64
	}
	plan, err := planResize(n, shape, region, scales, list)
	if err != nil {
		return nil, err
	}
	var out []ResizeStep
	for _, p := range plan {
		if p.in == 0 {
			return nil, errEmptyResize
		}
		out = append(out, ResizeStep{p.axis, p.in, p.out, p.out == p.in && p.isIdentity(), p, p.taps()})
	}
	return out, nil
}

// First returns the element that each result takes, or takes first; -1 where the result is a constant.
func (a *ResizeStep) First() []int64 {
	out := make([]int64, a.Out)
	for i, t := range a.taps {
		if out[i] = -1; t != nil {
			out[i] = int64(t[0].index)
		}
	}
	return out
}

// Weights returns the matrix [Out, In] of weights.
func (a *ResizeStep) Weights() []float32 {
	w := make([]float64, a.Out*a.In)
	for i, list := range a.taps {
		for _, t := range list {
			w[i*a.In+t.index] += t.weight
		}
	}
	out := make([]float32, len(w))
	for i, x := range w {
		out[i] = float32(x)
	}
	return out
}

// Constants returns what is added to each result.
func (a *ResizeStep) Constants() []float32 {
	out := make([]float32, a.Out)
	for i, t := range a.taps {
		if t == nil {
			out[i] = float32(a.plan.outside)
		}
	}
	return out
}
