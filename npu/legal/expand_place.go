package legal

import (
	"math"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// placeExpansions holds what moves elements to places that shapes or integers tell, and a few more.
func placeExpansions() map[string]expansion {
	return map[string]expansion{
		"CenterCropPad": expandCenterCropPad, "TensorScatter": expandTensorScatter, "ReverseSequence": expandReverseSequence,
		"MaxUnpool": expandMaxUnpool, "Col2Im": expandCol2Im, "RotaryEmbedding": expandRotary, "GlobalLpPool": expandGlobalLpPool,
		"Resize": expandResize,
	}
}

// count returns 0, 1, ... n-1.
func count(b *op.Builder, n int64) *graph.Value {
	list := make([]int64, n)
	for i := range list {
		list[i] = int64(i)
	}
	return b.Ints(list...)
}

// expandCenterCropPad pads or crops, half of it on either side.
func expandCenterCropPad(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	x, y, err := sizesOfTwo(n.In[0], n.Out[0])
	if err != nil {
		return nil, err
	}
	pads := make([]int64, 2*len(x))
	for i := range x {
		pads[i] = (y[i] - x[i]) / 2
		pads[len(x)+i] = y[i] - x[i] - pads[i]
	}
	return func(b *op.Builder) []*graph.Value {
		return []*graph.Value{b.Op("Pad", []*graph.Value{n.In[0], b.Ints(pads...)})}
	}, nil
}

// expandTensorScatter writes the update to the places from the write index on, of each row of the batch.
func expandTensorScatter(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	past, update, err := sizesOfTwo(n.In[0], n.In[1])
	if err != nil {
		return nil, err
	}
	if prod(ints(update)) > maxMatrix {
		return nil, unsupported("an update of %d elements", prod(ints(update)))
	}
	rank := int64(len(past))
	axis := n.Int("axis", -2)
	if axis < 0 {
		axis += rank
	}
	if axis < 1 || axis >= rank || len(update) != len(past) {
		return nil, unsupported("axis %d of %d", axis, rank)
	}
	return func(b *op.Builder) []*graph.Value {
		line := make([]int64, rank)
		for i := range line {
			line[i] = 1
		}
		column := slices.Clone(line)
		line[axis], column[0] = update[axis], past[0]
		at := b.ReshapeTo(count(b, update[axis]), line...)
		if first := n.Operand(2); first != nil {
			at = b.Add(at, b.ReshapeTo(first, column...))
		}
		if n.Str("mode", "linear") == "circular" {
			at = b.Binary("Mod", at, b.IntScalar(past[axis]))
		}
		at = b.Expand(at, b.Ints(update...))
		return []*graph.Value{b.Op("ScatterElements", []*graph.Value{n.In[0], at, n.In[1]}, graph.IntAttr("axis", axis))}
	}, nil
}

// expandReverseSequence takes element len-1-t in place of t, for t below the length of the row.
func expandReverseSequence(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	x, err := sizes(n.In[0])
	if err != nil {
		return nil, err
	}
	batch, time := n.Int("batch_axis", 1), n.Int("time_axis", 0)
	if batch+time != 1 || len(x) < 2 {
		return nil, unsupported("batch axis %d and time axis %d", batch, time)
	}
	if x[time] > maxMatrix {
		return nil, unsupported("a sequence of %d elements", x[time])
	}
	return func(b *op.Builder) []*graph.Value {
		row, column := make([]int64, len(x)), make([]int64, len(x))
		for i := range x {
			row[i], column[i] = 1, 1
		}
		row[time], column[batch] = x[time], x[batch]
		t, size := b.ReshapeTo(count(b, x[time]), row...), b.ReshapeTo(n.In[1], column...)
		at := b.Where(b.Binary("Less", t, size), b.Sub(b.AddScalar(size, -1), t), t)
		return []*graph.Value{b.Op("GatherElements", []*graph.Value{n.In[0], b.Expand(at, b.Ints(x...))}, graph.IntAttr("axis", time))}
	}, nil
}

// expandMaxUnpool puts elements at their flat places among zeros.
func expandMaxUnpool(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	x, y, err := sizesOfTwo(n.In[0], n.Out[0])
	if err != nil {
		return nil, err
	}
	inner := slices.Clone(x)
	pads := make([]int64, 2*len(x))
	kernel, steps, around := n.Ints("kernel_shape"), n.Ints("strides"), n.Ints("pads")
	for i := range kernel {
		step := int64(1)
		if steps != nil {
			step = steps[i]
		}
		inner[2+i] = (x[2+i]-1)*step + kernel[i]
		if around != nil {
			inner[2+i] -= around[i] + around[len(kernel)+i]
		}
		pads[len(x)+2+i] = y[2+i] - inner[2+i]
	}
	return func(b *op.Builder) []*graph.Value {
		total := int64(prod(ints(inner)))
		zeros := b.Full(b.Ints(total), n.In[0].Type.Elem, 0)
		v := b.Op("ScatterElements", []*graph.Value{zeros, b.ReshapeTo(n.In[1], -1), b.ReshapeTo(n.In[0], -1)}, graph.IntAttr("axis", 0))
		v = b.ReshapeTo(v, inner...)
		if !slices.Equal(inner, y) {
			v = b.Op("Pad", []*graph.Value{v, b.Ints(pads...)})
		}
		return []*graph.Value{v}
	}, nil
}

// expandCol2Im is the transposed convolution with a kernel for each element of the block that is 1 there and 0 elsewhere.
func expandCol2Im(info *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	x, y, err := sizesOfTwo(n.In[0], n.Out[0])
	if err != nil {
		return nil, err
	}
	block := info.Const(n.In[2])
	if block == nil || n.In[0].Type.Elem != graph.Float {
		return nil, unsupported("a block that is known at run time only, or elements other than float")
	}
	k := len(block.I64)
	get := func(name string, i int, def int64) int64 {
		if list := n.Ints(name); list != nil {
			return list[i]
		}
		return def
	}
	taps := prod(ints(block.I64))
	if x[1] > maxMatrix/int64(max(taps, 1)) {
		return nil, unsupported("%d blocks of %d elements", x[1], taps)
	}
	grid, pads, after := append([]int64{}, x[:2]...), make([]int64, 2*k), make([]int64, 2*len(y))
	var steps, gaps []int64
	for i := range k {
		step, gap := get("strides", i, 1), get("dilations", i, 1)
		pads[i], pads[k+i] = get("pads", i, 0), get("pads", k+i, 0)
		reach := gap*(block.I64[i]-1) + 1
		out := (y[2+i]+pads[i]+pads[k+i]-reach)/step + 1
		grid = append(grid, out)
		// What the last blocks reach beyond the image is cut off, what no block reaches is 0.
		pads[k+i] = (out-1)*step + reach - pads[i] - y[2+i]
		if pads[k+i] < 0 {
			after[len(y)+2+i], pads[k+i] = -pads[k+i], 0
		}
		steps, gaps = append(steps, step), append(gaps, gap)
	}
	return func(b *op.Builder) []*graph.Value {
		one := make([]float32, int(x[1])*taps)
		for i := range int(x[1]) {
			one[i*taps+i%taps] = 1
		}
		w := b.Const(graph.Floats(append([]int64{x[1], 1}, block.I64...), one...))
		v := b.Op("ConvTranspose", []*graph.Value{b.ReshapeTo(n.In[0], grid...), w}, graph.IntsAttr("strides", steps...), graph.IntsAttr("dilations", gaps...),
			graph.IntsAttr("pads", pads...), graph.IntAttr("group", x[1]/int64(taps)))
		if slices.ContainsFunc(after, func(p int64) bool { return p != 0 }) {
			v = b.Op("Pad", []*graph.Value{v, b.Ints(after...)})
		}
		return []*graph.Value{v}
	}, nil
}

// expandRotary turns pairs of elements of each head: neighbours if interleaved, else half a head apart.
func expandRotary(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	x, err := sizes(n.In[0])
	if err != nil {
		return nil, err
	}
	heads := n.Int("num_heads", 0)
	flat := len(x) == 3
	if flat && (heads < 1 || x[2]%heads != 0) {
		return nil, unsupported("%d heads in an axis of %d", heads, x[2])
	}
	return func(b *op.Builder) []*graph.Value {
		v, cos, sin := n.In[0], n.In[1], n.In[2]
		size := x[len(x)-1]
		if flat {
			size = x[2] / heads
			v = b.Transpose(b.ReshapeTo(v, x[0], x[1], heads, size), 0, 2, 1, 3)
		}
		if at := n.Operand(3); at != nil {
			cos, sin = b.Gather(cos, at, 0), b.Gather(sin, at, 0)
		}
		cos, sin = b.Unsqueeze(cos, 1), b.Unsqueeze(sin, 1)
		turned := size
		if r := n.Int("rotary_embedding_dim", 0); r > 0 {
			turned = r
		}
		part := func(from, to, step int64) *graph.Value {
			return b.Slice(v, b.Ints(from), b.Ints(to), b.Ints(3), b.Ints(step))
		}
		between := n.Int("interleaved", 0) != 0
		p, q := part(0, turned/2, 1), part(turned/2, turned, 1)
		if between {
			p, q = part(0, turned, 2), part(1, turned, 2)
		}
		p, q = b.Sub(b.Mul(p, cos), b.Mul(q, sin)), b.Add(b.Mul(p, sin), b.Mul(q, cos))
		y := b.Concat(3, p, q)
		if between {
			y = b.ReshapeTo(b.Concat(4, b.Unsqueeze(p, 4), b.Unsqueeze(q, 4)), 0, 0, 0, -1)
		}
		if turned < size {
			y = b.Concat(3, y, part(turned, math.MaxInt64, 1))
		}
		if flat {
			y = b.ReshapeTo(b.Transpose(y, 0, 2, 1, 3), x...)
		}
		return []*graph.Value{y}
	}, nil
}

// expandGlobalLpPool is the p-norm of each channel.
func expandGlobalLpPool(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	return func(b *op.Builder) []*graph.Value {
		x := n.In[0]
		var axes []int64
		for i := 2; i < len(x.Type.Shape); i++ {
			axes = append(axes, int64(i))
		}
		switch p := n.Int("p", 2); p {
		case 1, 2:
			fold := map[int64]string{1: "ReduceL1", 2: "ReduceL2"}[p]
			return []*graph.Value{b.Op(fold, []*graph.Value{x, b.Ints(axes...)})}
		default:
			sum := b.ReduceSum(b.Binary("Pow", b.Unary("Abs", x), b.Like(x, float64(p))), true, axes...)
			return []*graph.Value{b.Binary("Pow", sum, b.Like(x, 1/float64(p)))}
		}
	}, nil
}

// expandResize resizes axis by axis: nearest elements are picked; for other modes the axis is multiplied by the matrix of weights, so
// an infinity or NaN spreads over the axis. Whole multiples have a lowering of their own.
func expandResize(info *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	x, y, err := sizesOfTwo(n.In[0], n.Out[0])
	if err != nil {
		return nil, err
	}
	for i := range min(len(x), len(y)) {
		if x[i] < 1 || y[i] > maxMatrix/x[i] && x[i] != y[i] {
			return nil, unsupported("an axis of %d elements becomes one of %d", x[i], y[i])
		}
	}
	in := make([]*op.Array, 4)
	for i := 1; i < len(n.In); i++ {
		if n.In[i] == nil {
			continue
		}
		if in[i] = info.Const(n.In[i]); in[i] == nil {
			return nil, unsupported("operand %d is known at run time only", i)
		}
	}
	axes, err := op.ResizeSteps(n, ints(x), in[1], in[2], in[3])
	if err != nil {
		return nil, unsupported("%v", err)
	}
	nearest := n.Str("mode", "nearest") == "nearest"
	if !nearest && device(n.In[0].Type.Elem) != graph.Float {
		return nil, unsupported("mode %q of integers", n.Str("mode", ""))
	}
	if multiples(axes) && nearest {
		return nil, nil
	}
	return func(b *op.Builder) []*graph.Value {
		v := n.In[0]
		shape := slices.Clone(x)
		for _, a := range axes {
			if a.Same {
				continue
			}
			if nearest && !slices.Contains(a.First(), -1) {
				v = b.Gather(v, b.Ints(a.First()...), int64(a.Axis))
			} else {
				outer, inner := int64(prod(ints(shape[:a.Axis]))), int64(prod(ints(shape[a.Axis+1:])))
				elem := v.Type.Elem
				w := b.Const(graph.Floats([]int64{int64(a.Out), int64(a.In)}, a.Weights()...))
				v = b.MatMul(b.Cast(w, elem), b.ReshapeTo(v, outer, int64(a.In), inner))
				if c := a.Constants(); slices.ContainsFunc(c, func(x float32) bool { return x != 0 }) {
					v = b.Add(v, b.Cast(b.Const(graph.Floats([]int64{int64(a.Out), 1}, c...)), elem))
				}
			}
			shape[a.Axis] = int64(a.Out)
			v = b.ReshapeTo(v, shape...)
		}
		return []*graph.Value{v}
	}, nil
}

// multiples reports whether each axis is kept or grows to a multiple of its size.
func multiples(axes []op.ResizeStep) bool {
	for _, a := range axes {
		if a.In == 0 || a.Out%a.In != 0 {
			return false
		}
		for i, at := range a.First() {
			if at != int64(i/(a.Out/a.In)) {
				return false
			}
		}
	}
	return true
}
