package op

import (
	"gradtool/graph"
)

// AffineGrid gives the sampling grid of an affine transformation: theta[N,k,k+1] times the homogeneous
// coordinates of each point of an image of the given size [N,C,D1..Dk], grid[N,D1..Dk,k].

func inferAffineGrid(c *InferCtx) error {
	dims := c.Dims(1)
	if dims == nil {
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	if len(dims) != 4 && len(dims) != 5 {
		return c.Errorf("size has %d elements, want 4 or 5", len(dims))
	}
	out := append(graph.Shape{dims[0]}, dims[2:]...)
	c.Set(0, c.Elem(0), append(out, graph.Known(int64(len(dims)-2))))
	return nil
}

// gridCoordinate returns the normalised coordinate of sample i of an axis.
func gridCoordinate(i, size int, align bool) float64 {
	if align {
		if size == 1 {
			return -1
		}
		return 2*float64(i)/float64(size-1) - 1
	}
	return (2*float64(i)+1)/float64(size) - 1
}

func evalAffineGrid(c *EvalCtx) error {
	theta, size := c.Arg(0), toInts(c.Ints(1))
	k := len(size) - 2
	if k < 1 || theta.Rank() != 3 || theta.Shape[0] != size[0] || theta.Shape[1] != k || theta.Shape[2] != k+1 {
		return c.Errorf("theta %v does not fit size %v", theta.Shape, size)
	}
	align := c.Node.Int("align_corners", 0) != 0
	dims := size[2:]
	y := c.New(theta.Elem, append(append([]int{size[0]}, dims...), k))
	points := prod(dims)
	step := strides(dims)
	for n := range size[0] {
		for p := range points {
			for r := range k {
				row := (n*k + r) * (k + 1)
				sum := theta.Float(row + k)
				for axis := range k { // column 0 is for the last axis
					i := p / step[axis] % dims[axis]
					sum += theta.Float(row+k-1-axis) * gridCoordinate(i, dims[axis], align)
				}
				y.SetFloat((n*points+p)*k+r, sum)
			}
		}
	}
	c.Set(0, y)
	return nil
}

// decomposeAffineGrid multiplies the coordinates, made by Range per axis and broadcast, with theta.
func decomposeAffineGrid(b *Builder, n *graph.Node) []*graph.Value {
	theta, size := n.In[0], n.In[1]
	k := len(b.Info.Dims(size)) - 2
	elem := theta.Type.Elem
	align := n.Int("align_corners", 0) != 0
	dims := b.Slice(size, b.Ints(2), b.Ints(int64(k+2)), b.Ints(0), nil)
	homogeneous := make([]*graph.Value, k+1)
	for axis := range k {
		length := b.Gather(size, b.IntScalar(int64(2+axis)), 0)
		i := b.Cast(b.Op("Range", vals(b.IntScalar(0), length, b.IntScalar(1))), elem)
		l := b.Cast(length, elem)
		u := b.Div(b.AddScalar(b.MulScalar(i, 2), 1), l)
		if align {
			u = b.Div(b.MulScalar(i, 2), b.Binary("Max", b.AddScalar(l, -1), b.Like(l, 1)))
		}
		u = b.AddScalar(u, -1)
		shape := make([]int64, k)
		for j := range shape {
			shape[j] = 1
		}
		shape[axis] = -1
		homogeneous[k-1-axis] = b.ReshapeTo(b.Expand(b.ReshapeTo(u, shape...), dims), 1, -1)
	}
	homogeneous[k] = b.FullLike(homogeneous[0], 1)
	grid := b.MatMul(theta, b.Concat(0, homogeneous...)) // [N, k, points]
	grid = b.Transpose(grid, 0, 2, 1)
	return vals(b.Reshape(grid, b.Concat(0, b.Gather(size, b.Ints(0), 0), dims, b.Ints(int64(k)))))
}

func affineGridSamples() []Sample {
	return []Sample{
		{In: []Arg{F(2, 2, 3), I(2, 3, 4, 5)}},
		{Name: "aligned", In: []Arg{F(2, 2, 3), I(2, 1, 3, 2)}, Attrs: []*graph.Attr{graph.IntAttr("align_corners", 1)}},
		{Name: "volume", In: []Arg{F(1, 3, 4), I(1, 1, 2, 3, 2)}},
	}
}
