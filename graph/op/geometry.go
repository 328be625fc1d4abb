package op

import "gradtool/graph"

// Geometry is how a window slides over the spatial axes of a convolution or pooling: output o covers, for each tap t,
// position o*Stride + t*Dilation - Begin of the input.
type Geometry struct {
	Kernel, Stride, Dilation, Begin, End []int
	In, Out                              []int // spatial sizes
}

func (w *window) geometry() *Geometry {
	return &Geometry{Kernel: w.kernel, Stride: w.stride, Dilation: w.dilation, Begin: w.begin, End: w.end, In: w.in, Out: w.out}
}

// WindowGeometry resolves the attributes of a convolution or pooling node for the given spatial sizes of input and kernel.
func WindowGeometry(n *graph.Node, in, kernel []int) (*Geometry, error) {
	w, err := newWindow(n, in, kernel)
	if err != nil {
		return nil, err
	}
	return w.geometry(), nil
}

// TransposeGeometry resolves the attributes of a ConvTranspose node: the geometry of the convolution that it transposes,
// whose output is the node's operand and whose input is its result.
func TransposeGeometry(n *graph.Node, in, kernel []int) (*Geometry, error) {
	a, err := transposeAttrs(n, len(in))
	if err != nil {
		return nil, err
	}
	w, err := a.window(in, kernel)
	if err != nil {
		return nil, err
	}
	return w.geometry(), nil
}

// ReduceAxes returns the axes that a reduction over the given axes, nil without any, reduces: all if there are none, or
// with noop none.
func ReduceAxes(axes []int64, noop bool, rank int) ([]int, error) {
	return reduceAxes(axes, axes != nil, noop, rank)
}
