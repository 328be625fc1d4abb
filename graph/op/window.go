package op

import (
	"fmt"

	"gradtool/graph"
)

// window is the geometry of a sliding window over the spatial axes of a convolution or pooling: window o
// covers, for each tap t in [0, kernel), the position o*stride + t*dilation - begin of the input.
type window struct {
	kernel, stride, dilation []int
	in, out                  []int // sizes of the spatial axes of input and output
	begin, end               []int // padding in front and behind
}

// span returns the number of positions from the first tap to the last along an axis.
func (w *window) span(axis int) int { return (w.kernel[axis]-1)*w.dilation[axis] + 1 }

// windowAttrs reads strides, dilations and pads (begins, then ends) for r spatial axes, with defaults filled in.
func windowAttrs(n *graph.Node, r int) (stride, dilation, pads []int64, err error) {
	ints := func(name string, size int, def, least int64) []int64 {
		v := n.Ints(name)
		if v == nil {
			v = make([]int64, size)
			for i := range v {
				v[i] = def
			}
			return v
		}
		if len(v) != size && err == nil {
			err = fmt.Errorf("attribute %s has %d elements, want %d for %d spatial axes", name, len(v), size, r)
		}
		for _, x := range v {
			if x < least && err == nil {
				err = fmt.Errorf("attribute %s holds %d, want at least %d", name, x, least)
			}
		}
		return v
	}
	stride = ints("strides", r, 1, 1)
	dilation = ints("dilations", r, 1, 1)
	pads = ints("pads", 2*r, 0, 0)
	return stride, dilation, pads, err
}

// Rank of windows: the number of spatial axes that a node's attributes or weights tell, -1 if nothing does.
func windowRank(n *graph.Node, shapes ...graph.Shape) int {
	for _, s := range shapes {
		if s != nil {
			return len(s) - 2
		}
	}
	for _, name := range []string{"kernel_shape", "strides", "dilations", "output_padding", "output_shape"} {
		if v := n.Ints(name); v != nil {
			return len(v)
		}
	}
	if v := n.Ints("pads"); v != nil {
		return len(v) / 2
	}
	return -1
}

// newWindow resolves a node's geometry for an input with the given spatial sizes.
func newWindow(n *graph.Node, in, kernel []int) (*window, error) {
	r := len(in)
	if len(kernel) != r {
		return nil, fmt.Errorf("the kernel has %d spatial axes, the input %d", len(kernel), r)
	}
	stride, dilation, pads, err := windowAttrs(n, r)
	if err != nil {
		return nil, err
	}
	w := &window{kernel: kernel, stride: toInts(stride), dilation: toInts(dilation), in: in,
		begin: toInts(pads[:r]), end: toInts(pads[r:]), out: make([]int, r)}
	auto := n.Str("auto_pad", "NOTSET")
	for i := range r {
		size := in[i]
		switch auto {
		case "SAME_UPPER", "SAME_LOWER":
			w.out[i] = (size + w.stride[i] - 1) / w.stride[i]
			total := max(0, (w.out[i]-1)*w.stride[i]+w.span(i)-size)
			w.begin[i] = total / 2
			if auto == "SAME_LOWER" {
				w.begin[i] = total - total/2
			}
			w.end[i] = total - w.begin[i]
			continue
		case "VALID":
			w.begin[i], w.end[i] = 0, 0
		}
		free := size + w.begin[i] + w.end[i] - w.span(i)
		if free < 0 {
			return nil, fmt.Errorf("window of %d does not fit in spatial axis %d of size %d with padding %d and %d",
				w.span(i), i, size, w.begin[i], w.end[i])
		}
		w.out[i] = free/w.stride[i] + 1
		if n.Int("ceil_mode", 0) != 0 && free%w.stride[i] != 0 && w.out[i]*w.stride[i] < size+w.begin[i] {
			w.out[i]++ // a last window that sticks out, but starts inside
		}
	}
	return w, nil
}

// inferWindow returns the spatial output sizes of a node for symbolic sizes of input and kernel.
func inferWindow(n *graph.Node, in graph.Shape, kernel []graph.Dim) (graph.Shape, error) {
	r := len(in)
	if len(kernel) != r {
		return nil, fmt.Errorf("the kernel has %d spatial axes, the input %d", len(kernel), r)
	}
	stride, dilation, pads, err := windowAttrs(n, r)
	if err != nil {
		return nil, err
	}
	out := make(graph.Shape, r)
	for i := range r {
		s := graph.Known(stride[i])
		begin, end := graph.Known(pads[i]), graph.Known(pads[r+i])
		switch n.Str("auto_pad", "NOTSET") {
		case "SAME_UPPER", "SAME_LOWER":
			out[i] = in[i].CeilDiv(s)
			continue
		case "VALID":
			begin, end = graph.Known(0), graph.Known(0)
		}
		span := kernel[i].Sub(graph.Known(1)).Mul(graph.Known(dilation[i])).Add(graph.Known(1))
		free := in[i].Add(begin).Add(end).Sub(span)
		if f, ok := free.Int(); ok && f < 0 {
			return nil, fmt.Errorf("window of %s does not fit in spatial axis %d of size %s with padding %s and %s",
				span, i, in[i], begin, end)
		}
		if n.Int("ceil_mode", 0) == 0 {
			out[i] = free.FloorDiv(s).Add(graph.Known(1))
		} else { // windows must start before the end padding
			out[i] = free.CeilDiv(s).Add(graph.Known(1)).Min(in[i].Add(begin).CeilDiv(s))
		}
	}
	return out, nil
}

func toInts(v []int64) []int {
	out := make([]int, len(v))
	for i, x := range v {
		out[i] = int(x)
	}
	return out
}

// eachRow calls f for every output row, a run along the last axis, with the offset of the input row that the tap reads
// along the other axes, -1 where it lies in the padding.
func (w *window) eachRow(tap []int, f func(in int)) {
	last := len(w.in) - 1
	at := make([]int, last)
	for range prod(w.out[:last]) {
		in := 0
		for i := range last {
			p := at[i]*w.stride[i] + tap[i]*w.dilation[i] - w.begin[i]
			if p < 0 || p >= w.in[i] {
				in = -1
				break
			}
			in = in*w.in[i] + p
		}
		if in >= 0 {
			in *= w.in[last]
		}
		f(in)
		for i := last - 1; i >= 0; i-- {
			if at[i]++; at[i] < w.out[i] {
				break
			}
			at[i] = 0
		}
	}
}

// inside returns the range of outputs along the last axis whose tap t lies in the input, and the input position of
// the first of them.
func (w *window) inside(t int) (lo, hi, first int) {
	last := len(w.in) - 1
	s, off := w.stride[last], t*w.dilation[last]-w.begin[last]
	if off < 0 {
		lo = (-off + s - 1) / s
	}
	hi = min(w.out[last], (w.in[last]-off+s-1)/s)
	if w.in[last] <= off {
		hi = 0
	}
	hi = max(hi, lo)
	return min(lo, w.out[last]), min(hi, w.out[last]), lo*s + off
}

// taps calls f for every tap of the kernel in row-major order.
func (w *window) taps(f func(i int, tap []int)) {
	tap := make([]int, len(w.kernel))
	for i := range prod(w.kernel) {
		f(i, tap)
		for j := len(tap) - 1; j >= 0; j-- {
			if tap[j]++; tap[j] < w.kernel[j] {
				break
			}
			tap[j] = 0
		}
	}
}
