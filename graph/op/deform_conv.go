package op

import (
	"fmt"
	"math"
	"slices"

	"gradtool/graph"
)

func deformDefs() []Def {
	ints, in := graph.IntsAttr, graph.IntAttr
	attrs := func(a ...*graph.Attr) []*graph.Attr { return a }
	// Offsets keep clear of integers, where the interpolation has kinks.
	off := func(shape ...int) Arg { return FR(0.1, 0.9, shape...) }
	return []Def{{Name: "DeformConv", Infer: inferDeformConv, Eval: evalDeformConv, Cost: costConv, Decompose: decomposeDeformConv, Samples: []Sample{
		{In: []Arg{F(2, 2, 4, 4), F(3, 2, 2, 2), off(2, 8, 3, 3)}, Attrs: attrs(ints("kernel_shape", 2, 2))},
		{Name: "mask and bias", In: []Arg{F(1, 2, 5, 4), F(2, 2, 3, 2), off(1, 12, 2, 5), F(2), F(1, 6, 2, 5)},
			Attrs: attrs(ints("pads", 1, 1, 0, 1), ints("strides", 2, 1))},
		{Name: "groups", In: []Arg{F(1, 4, 3, 3), F(4, 2, 2, 2), FR(-0.9, -0.1, 1, 16, 2, 2), {}, F(1, 8, 2, 2)},
			Attrs: attrs(in("group", 2), in("offset_group", 2), ints("kernel_shape", 2, 2))},
		{Name: "dilations", In: []Arg{F(1, 1, 5, 5), F(2, 1, 2, 2), FR(1.1, 1.9, 1, 8, 3, 3)}, Attrs: attrs(ints("dilations", 2, 2))},
		{Name: "1-D", In: []Arg{F(1, 2, 5), F(2, 2, 3), off(1, 3, 3)}, Attrs: attrs(ints("kernel_shape", 3))},
		{Name: "3-D", In: []Arg{F(1, 1, 3, 3, 3), F(1, 1, 2, 2, 2), off(1, 24, 2, 2, 2)}, Attrs: attrs(ints("kernel_shape", 2, 2, 2))},
	}}}
}

func inferDeformConv(c *InferCtx) error {
	out, err := convShape(c.Node, c.Shape(0), c.Shape(1))
	c.Set(0, c.Elem(0), out)
	return err
}

// evalDeformConv is a convolution whose every tap samples the input at an offset of its own, by multilinear
// interpolation, optionally times a mask (J. Dai et al., Deformable Convolutional Networks, 2017; X. Zhu et al.,
// Deformable ConvNets v2, 2018). Outside the input there are zeros.
func evalDeformConv(c *EvalCtx) error {
	x, weights, offset, mask := c.Arg(0), c.Arg(1), c.Arg(2), c.Arg(4)
	w, size, err := convPlan(c.Node, x.Shape, weights.Shape)
	if err != nil {
		return err
	}
	groups := int(c.Node.Int("offset_group", 1))
	taps := prod(w.kernel)
	if groups < 1 || x.Shape[1]%groups != 0 {
		return c.Errorf("%d channels do not divide into %d offset groups", x.Shape[1], groups)
	}
	if want := append([]int{size.batch, groups * taps * len(w.in)}, w.out...); !slices.Equal(offset.Shape, want) {
		return c.Errorf("the offsets have shape %v, want %v", offset.Shape, want)
	}
	if want := append([]int{size.batch, groups * taps}, w.out...); mask != nil && !slices.Equal(mask.Shape, want) {
		return c.Errorf("the mask has shape %v, want %v", mask.Shape, want)
	}
	y := x.NewLike(append([]int{size.batch, size.groups * size.outPer}, w.out...))
	if x.F32 != nil {
		deform(w, size, groups, x.F32, weights.F32, offset.F32, dataF32(mask), y.F32)
	} else {
		deform(w, size, groups, x.F64, weights.F64, offset.F64, dataF64(mask), y.F64)
	}
	if err := addBias(y, c.Arg(3)); err != nil {
		return err
	}
	c.Set(0, y)
	return nil
}

func dataF32(a *Array) []float32 {
	if a == nil {
		return nil
	}
	return a.F32
}

func dataF64(a *Array) []float64 {
	if a == nil {
		return nil
	}
	return a.F64
}

// deform adds the deformable convolution of x to y. The sampled input is laid out as columns, image by image.
func deform[T float](w *window, c convSize, offsetGroups int, x, weights, offset, mask, y []T) {
	in, out, taps, r := prod(w.in), prod(w.out), prod(w.kernel), len(w.in)
	channels := c.groups * c.inPer
	per := channels / offsetGroups
	tapAt := make([][]int, taps)
	w.taps(func(i int, tap []int) { tapAt[i] = slices.Clone(tap) })
	col := scratch[T](channels, taps, out)
	for image := range c.batch {
		parallel(offsetGroups*taps, grainOf(out*(per+8)<<r), func(lo, hi int) {
			place := make([]float64, r)
			for job := lo; job < hi; job++ {
				group, tap := job/taps, job%taps
				for o := range out {
					rest := o
					for a := r - 1; a >= 0; a-- {
						place[a] = float64(rest%w.out[a]*w.stride[a]-w.begin[a]+tapAt[tap][a]*w.dilation[a]) +
							float64(offset[(((image*offsetGroups+group)*taps+tap)*r+a)*out+o])
						rest /= w.out[a]
					}
					scale := 1.0
					if mask != nil {
						scale = float64(mask[((image*offsetGroups+group)*taps+tap)*out+o])
					}
					for ch := range per {
						src := x[(image*channels+group*per+ch)*in:][:in]
						col[((group*per+ch)*taps+tap)*out+o] = T(scale * sample(w.in, src, place))
					}
				}
			}
		})
		depth := c.inPer * taps
		for g := range c.groups {
			gemm(false, false, 1, newMatrix(weights[g*c.outPer*depth:][:c.outPer*depth], c.outPer, depth),
				newMatrix(col[g*depth*out:][:depth*out], depth, out), 1,
				newMatrix(y[(image*c.groups+g)*c.outPer*out:][:c.outPer*out], c.outPer, out))
		}
	}
}

// sample returns x, of the given sizes, at a place between elements.
func sample[T float](sizes []int, x []T, place []float64) float64 {
	sum := 0.0
	for corner := range 1 << len(sizes) {
		weight, at := 1.0, 0
		for a, n := range sizes {
			low := math.Floor(place[a])
			frac, p := place[a]-low, low
			if corner>>a&1 != 0 {
				weight, p = weight*frac, low+1
			} else {
				weight *= 1 - frac
			}
			if !(p >= 0 && p < float64(n)) {
				weight = 0
				break
			}
			at = at*n + int(p)
		}
		if weight != 0 {
			sum += weight * float64(x[at])
		}
	}
	return sum
}

// decomposeDeformConv computes the sampling places from shapes and offsets, gathers the elements around each,
// weighs them, and multiplies by the weights as one matrix per group.
func decomposeDeformConv(b *Builder, n *graph.Node) []*graph.Value {
	x, weights, offset, bias, mask := n.Operand(0), n.Operand(1), n.Operand(2), n.Operand(3), n.Operand(4)
	r := windowRank(n, x.Type.Shape, weights.Type.Shape)
	if r < 1 {
		b.fail(fmt.Errorf("node %s: the number of spatial axes is not known", n.Label()))
		return nil
	}
	stride, dilation, pads, err := windowAttrs(n, r)
	if err != nil {
		b.fail(err)
		return nil
	}
	groups, offsetGroups := n.Int("group", 1), n.Int("offset_group", 1)
	d := deformer{b: b, in: b.spatial(x), kernel: b.spatial(weights), out: b.spatial(offset)}
	taps, places := b.product(d.kernel), b.product(d.out)
	reshape := func(v *graph.Value, shape ...*graph.Value) *graph.Value {
		return b.Op("Reshape", vals(v, b.Concat(0, shape...)))
	}
	offsets := reshape(offset, b.Ints(0, offsetGroups), taps, b.Ints(int64(r)), places) // [N, groups, taps, axes, places]
	for a := range r {
		tap := b.Unsqueeze(d.grid(d.kernel, a, r, dilation[a], -pads[a]), 1)
		base := b.Cast(b.Add(tap, d.grid(d.out, a, r, stride[a], 0)), x.Type.Elem)
		d.addAxis(b.Add(base, b.Gather(offsets, b.IntScalar(int64(a)), 3)), a)
	}
	perOffset := b.divided(x, 1, offsetGroups)
	elements := reshape(x, b.Ints(0, offsetGroups), perOffset, b.product(d.in)) // [N, groups, channels, elements]
	repeat := b.Concat(0, b.Ints(1, 1), perOffset, b.Ints(1))
	flat := func(v *graph.Value) *graph.Value { return b.ReshapeTo(v, 0, 0, 1, -1) }
	var columns *graph.Value // [N, groups, channels, taps*places]
	for corner := range 1 << r {
		at, weight := d.corner(corner, r)
		v := b.Op("GatherElements", vals(elements, b.Expand(flat(at), repeat)), graph.IntAttr("axis", 3))
		if v = b.Mul(v, flat(weight)); columns == nil {
			columns = v
		} else {
			columns = b.Add(columns, v)
		}
	}
	if mask != nil {
		columns = b.Mul(columns, b.ReshapeTo(mask, 0, offsetGroups, 1, -1))
	}
	depth := b.Mul(b.DimOf(weights, 1), taps) // elements that a result is the sum of
	columns = reshape(columns, b.Ints(0, groups), depth, places)
	matrix := b.Reshape(weights, b.Concat(0, b.Ints(groups), b.divided(weights, 0, groups), depth))
	y := b.Reshape(b.MatMul(matrix, columns), b.Concat(0, b.DimOf(x, 0), b.DimOf(weights, 0), d.out))
	if bias != nil {
		var axes []int64
		for i := range r {
			axes = append(axes, int64(1+i))
		}
		y = b.Add(y, b.Unsqueeze(bias, axes...))
	}
	return []*graph.Value{y}
}

// deformer holds what decomposeDeformConv knows of the sampling places.
type deformer struct {
	b               *Builder
	in, kernel, out *graph.Value      // spatial sizes, int64 vectors
	at, weight      [][2]*graph.Value // by axis: the elements below and above a place, in range, and their weights
}

// grid returns, for every element of a block with the given sizes in row-major order, its index along axis a, scaled
// and shifted, as an int64 vector.
func (d *deformer) grid(sizes *graph.Value, a, r int, scale, shift int64) *graph.Value {
	b := d.b
	n := b.Op("Squeeze", vals(b.Gather(sizes, b.Ints(int64(a)), 0)))
	index := b.Op("Range", vals(b.IntScalar(0), n, b.IntScalar(1)))
	index = b.Add(b.Mul(index, b.IntScalar(scale)), b.IntScalar(shift))
	var after []int64
	for i := a + 1; i < r; i++ {
		after = append(after, int64(i-a))
	}
	return b.ReshapeTo(b.Expand(b.Unsqueeze(index, after...), sizes), -1)
}

// addAxis adds the places along an axis. The weight of an element outside the input is zero.
func (d *deformer) addAxis(place *graph.Value, a int) {
	b := d.b
	low := b.Unary("Floor", place)
	above := b.Sub(place, low)
	size := b.Gather(d.in, b.IntScalar(int64(a)), 0)
	index := b.Cast(low, graph.Int64)
	var at, weight [2]*graph.Value
	for i, f := range []*graph.Value{b.Sub(b.Like(place, 1), above), above} {
		p := index
		if i == 1 {
			p = b.Add(index, b.IntScalar(1))
		}
		at[i] = b.Binary("Max", b.Binary("Min", p, b.Sub(size, b.IntScalar(1))), b.IntScalar(0))
		weight[i] = b.Where(b.Binary("Equal", at[i], p), f, b.Like(place, 0))
	}
	d.at, d.weight = append(d.at, at), append(d.weight, weight)
}

// corner returns the row-major index and weight of one of the elements around each place; bit a tells the side along
// axis a.
func (d *deformer) corner(corner, r int) (at, weight *graph.Value) {
	b := d.b
	for a := range r {
		side := corner >> a & 1
		if a == 0 {
			at, weight = d.at[a][side], d.weight[a][side]
			continue
		}
		at = b.Add(b.Mul(at, b.Gather(d.in, b.IntScalar(int64(a)), 0)), d.at[a][side])
		weight = b.Mul(weight, d.weight[a][side])
	}
	return at, weight
}

// fail records a problem of a decomposition.
func (b *Builder) fail(err error) {
	if b.Err == nil {
		b.Err = err
	}
}

// spatial returns the dimensions of x from the third on as an int64 vector: a constant where they are known.
func (b *Builder) spatial(x *graph.Value) *graph.Value {
	if s := x.Type.Shape; len(s) >= 2 {
		if n, ok := s[2:].Ints(); ok {
			return b.Ints(n...)
		}
	}
	return b.Op("Shape", vals(x), graph.IntAttr("start", 2))
}

// product returns the product of an int64 vector's elements as a vector of one element.
func (b *Builder) product(v *graph.Value) *graph.Value {
	if n, ok := graph.Shape(b.Info.Dims(v)).Size().Int(); ok {
		return b.Ints(n)
	}
	return b.Op("ReduceProd", vals(v), graph.IntAttr("keepdims", 1))
}

// divided returns dimension axis of x over n as an int64 vector of one element.
func (b *Builder) divided(x *graph.Value, axis int, n int64) *graph.Value {
	if s := x.Type.Shape; s != nil {
		if d, ok := s[axis].Int(); ok {
			return b.Ints(d / n)
		}
	}
	return b.Div(b.DimOf(x, axis), b.Ints(n))
}
