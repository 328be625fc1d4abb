package op

import (
	"math"

	"gradtool/graph"
)

func causalDefs() []Def {
	silu := []*graph.Attr{graph.StringAttr("activation", "silu")}
	return []Def{{Name: "CausalConvWithState", Infer: inferCausalConv, Eval: evalCausalConv, Cost: costConv, Decompose: decomposeCausalConv, Samples: []Sample{
		{In: []Arg{F(2, 3, 5), F(3, 1, 3)}, Outs: 2},
		{Name: "state and bias", In: []Arg{F(1, 2, 4), F(2, 1, 3), F(2), F(1, 2, 2)}, Outs: 2},
		{Name: "silu", In: []Arg{F(1, 2, 4), F(2, 1, 2), F(2)}, Attrs: silu, Outs: 2},
		{Name: "short input", In: []Arg{F(1, 2, 1), F(2, 1, 4), {}, F(1, 2, 3)}, Outs: 2},
		{Name: "kernel of one", In: []Arg{F(1, 2, 3), F(2, 1, 1)}, Attrs: silu, Outs: 2},
	}}}
}

func inferCausalConv(c *InferCtx) error {
	x, w := c.Shape(0), c.Shape(1)
	if x != nil && len(x) != 3 || w != nil && len(w) != 3 {
		return c.Errorf("operands have shapes %s and %s, want rank 3", x, w)
	}
	if x == nil {
		x = graph.UnknownShape(3)
	}
	state := x.Clone()
	state[2] = graph.Unknown()
	if w != nil {
		state[2] = w[2].Sub(graph.Known(1))
	}
	c.Set(0, c.Elem(0), x)
	c.Set(1, c.Elem(0), state)
	return nil
}

// evalCausalConv convolves each channel with its own kernel over the past state, or zeros, followed by the input, so that
// a result depends on nothing later. The new state is the end of that sequence.
func evalCausalConv(c *EvalCtx) error {
	x, weights, past := c.Arg(0), c.Arg(1), c.Arg(3)
	if x.Rank() != 3 || weights.Rank() != 3 || weights.Shape[0] != x.Shape[1] || weights.Shape[1] != 1 || weights.Shape[2] < 1 {
		return c.Errorf("operand of shape %v does not fit weights of shape %v", x.Shape, weights.Shape)
	}
	batch, channels, length, k := x.Shape[0], x.Shape[1], x.Shape[2], weights.Shape[2]
	state := x.NewLike([]int{batch, channels, k - 1})
	if past != nil && past.Len() != state.Len() {
		return c.Errorf("past_state has shape %v, want %v", past.Shape, state.Shape)
	}
	seq := x.NewLike([]int{batch, channels, k - 1 + length})
	for i := range batch * channels {
		if past != nil {
			seq.copyRun(i*seq.Shape[2], past, i*(k-1), k-1)
		}
		seq.copyRun(i*seq.Shape[2]+k-1, x, i*length, length)
		state.copyRun(i*(k-1), seq, i*seq.Shape[2]+length, k-1)
	}
	y := x.NewLike(x.Shape)
	w := &window{kernel: []int{k}, stride: []int{1}, dilation: []int{1}, in: seq.Shape[2:], out: []int{length}, begin: []int{0}, end: []int{0}}
	size := convSize{batch: batch, groups: channels, inPer: 1, outPer: 1}
	if y.F32 != nil {
		convolve(w, size, seq.F32, weights.F32, y.F32)
	} else {
		convolve(w, size, seq.F64, weights.F64, y.F64)
	}
	if err := addBias(y, c.Arg(2)); err != nil {
		return err
	}
	if c.Node.Str("activation", "none") != "none" {
		for i := range y.Len() {
			v := y.Float(i)
			y.SetFloat(i, v/(1+math.Exp(-v)))
		}
	}
	c.Set(0, y)
	c.Set(1, state)
	return nil
}

// decomposeCausalConv rewrites to a concatenation and a depthwise convolution, or where the number of channels is not
// known to a sum over gathered windows.
func decomposeCausalConv(b *Builder, n *graph.Node) []*graph.Value {
	x, weights, bias, past := n.Operand(0), n.Operand(1), n.Operand(2), n.Operand(3)
	length, kernel := b.DimOf(x, 2), b.DimOf(weights, 2)
	if past == nil {
		front := b.Sub(kernel, b.Ints(1))
		past = b.Full(b.Concat(0, b.DimOf(x, 0), b.DimOf(x, 1), front), x.Type.Elem, 0)
	}
	seq := b.Concat(2, past, x)
	state := b.Slice(seq, length, b.Ints(math.MaxInt64), b.Ints(2), nil)
	channels, ok := int64(0), false
	if s := weights.Type.Shape; s != nil {
		channels, ok = s[0].Int()
	}
	var y *graph.Value
	if ok {
		y = b.Op("Conv", vals(seq, weights, bias), graph.IntAttr("group", channels), graph.IntsAttr("strides", 1))
	} else {
		upTo := func(n *graph.Value) *graph.Value {
			return b.Op("Range", vals(b.IntScalar(0), b.Squeeze(n, 0), b.IntScalar(1)))
		}
		windows := b.Gather(seq, b.Add(b.Unsqueeze(upTo(kernel), 1), upTo(length)), 2) // [N, C, k, L]
		y = b.ReduceSum(b.Mul(windows, b.Transpose(weights, 0, 2, 1)), false, 2)
		if bias != nil {
			y = b.Add(y, b.Unsqueeze(bias, 1))
		}
	}
	if n.Str("activation", "none") != "none" {
		y = b.Mul(y, b.Unary("Sigmoid", y))
	}
	return []*graph.Value{y, state}
}
