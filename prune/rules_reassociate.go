package prune

import (
	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// ReassociatingRules returns the rules of [Options.Reassociate]: identities of real numbers, which move results by a few
// units in the last place of the largest number on the way. They touch constants that nothing trains, and no others.
func ReassociatingRules() []rewrite.Rule {
	P, Any, Const := rewrite.P, rewrite.Any, rewrite.Const
	return []rewrite.Rule{
		{Name: "conv-batchnorm", Doc: "(w * x + b - mean) s + t = (s w) * x + (b - mean) s + t, with s = scale / sqrt(var + epsilon)", Effect: rewrite.Rounding,
			Root: P("BatchNormalization", P("Conv", Any("x"), Any("w"), Any("b").Opt()).As("z"), Any("scale"), Any("offset"), Any("mean"), Any("var")),
			When: all(inference, ownWeights, fixedAll("b", "scale", "offset", "mean", "var")), Emit: one(func(b *op.Builder, m *match) *graph.Value {
				s, t := normalization(b, m)
				return scaledConv(b, m, s, t)
			})},
		{Name: "conv-mul", Doc: "(w * x + b) c = (c w) * x + c b, for a constant of one number per channel", Effect: rewrite.Rounding,
			Root: P("Mul", P("Conv", Any("x"), Any("w"), Any("b").Opt()).As("z"), Any("c")).Commute(), When: all(ownWeights, fixedAll("b"), perChannel),
			Emit: one(func(b *op.Builder, m *match) *graph.Value { return scaledConv(b, m, channelVector(b, m), nil) })},
		{Name: "conv-bias-add", Doc: "(w * x + b) + c = w * x + (b + c), for a constant of one number per channel", Effect: rewrite.Rounding,
			Root: P("Add", P("Conv", Any("x"), Any("w"), Any("b")).As("z"), Any("c")).Commute(), When: all(fixedAll("b"), perChannel),
			Emit: one(func(b *op.Builder, m *match) *graph.Value {
				return b.Op("Conv", values(m.V("x"), m.V("w"), b.Add(m.V("b"), channelVector(b, m))), m.Node("z").Attrs...)
			})},
		{Name: "conv-pad", Doc: "w * Pad(x) = w * x with pads, for a zero border", Effect: rewrite.Rounding,
			Root: P("Conv", P("Pad", Any("x"), Any("pads"), Any("value").Opt()).As("z"), Any("w"), Any("b").Opt()), When: convPads,
			Emit: one(func(b *op.Builder, m *match) *graph.Value {
				return b.Op("Conv", values(m.V("x"), m.V("w"), m.V("b")), withPads(m)...)
			})},
		{Name: "mul-mul", Doc: "(x c) d = x (c d), for constants", Effect: rewrite.Rounding,
			Root: P("Mul", P("Mul", Any("x"), Const("c")).Commute().As("z"), Const("d")).Commute(), When: fewElements, Emit: joinConstants("Mul")},
		{Name: "add-add", Doc: "(x + c) + d = x + (c + d), for constants", Effect: rewrite.Rounding,
			Root: P("Add", P("Add", Any("x"), Const("c")).Commute().As("z"), Const("d")).Commute(), When: fewElements, Emit: joinConstants("Add")},
		{Name: "mul-div", Doc: "(x c) / d = x (c / d), for constants", Effect: rewrite.Rounding,
			Root: P("Div", P("Mul", Any("x"), Const("c")).Commute().As("z"), Const("d")), When: fewElements, Emit: joinConstants("Div")},
		{Name: "matmul-transposed-right", Doc: "MatMul(x, Transpose(w)) = Gemm(x, w, transB=1), for matrices", Effect: rewrite.Rounding,
			Root: P("MatMul", Any("x"), P("Transpose", Any("w")).As("t")), When: all(swapped, singleRounding("x"), matrices, withoutBias),
			Emit: one(func(b *op.Builder, m *match) *graph.Value {
				return b.Op("Gemm", values(m.V("x"), m.V("w")), graph.IntAttr("transB", 1))
			})},
		{Name: "add-pads", Doc: "Pad(x) + Pad(y) = Concat(y, x), where zeros of either meet the other", Effect: rewrite.ZeroSign,
			Root: P("Add", P("Pad", Any("x"), Any("pads"), Any("value").Opt()).As("p"), P("Pad", Any("y"), Any("pads0"), Any("value0").Opt()).As("q")).Commute(),
			When: padsMeet, Emit: joinPadded},
		{Name: "reduce-mean-expand", Doc: "ReduceMean(Expand(x)) along repeated axes = x, or Squeeze(x)", Effect: rewrite.Rounding,
			Root: P("ReduceMean", P("Expand", Any("x"), Any("s")).As("z").Shared(), Any("axes").Opt()), When: repeatedOnly, Emit: unrepeated},
		{Name: "reduce-sum-expand-float", Doc: "ReduceSum(Expand(x)) along repeated axes = x n", Effect: rewrite.Rounding,
			Root: P("ReduceSum", P("Expand", Any("x"), Any("s")).As("z").Shared(), Any("axes").Opt()), When: repeatedOnly, Emit: timesRepeats},
	}
}

// integerChainRules hold for modular integers, whose products and sums may be grouped at will.
func integerChainRules() []rewrite.Rule {
	P, Any, Const := rewrite.P, rewrite.Any, rewrite.Const
	return []rewrite.Rule{
		{Name: "mul-mul-integers", Doc: "(x c) d = x (c d), for integer constants",
			Root: P("Mul", P("Mul", Any("x"), Const("c")).Commute().As("z"), Const("d")).Commute(), When: all(fewElements, wraps), Emit: joinConstants("Mul")},
		{Name: "add-add-integers", Doc: "(x + c) + d = x + (c + d), for integer constants",
			Root: P("Add", P("Add", Any("x"), Const("c")).Commute().As("z"), Const("d")).Commute(), When: all(fewElements, wraps), Emit: joinConstants("Add")},
	}
}

// wraps holds for integers.
func wraps(m *match) error {
	if !m.V("x").Type.Elem.IsInt() {
		return reason("%s rounds after each step; --reassociate groups constants anew", m.V("x").Type.Elem)
	}
	return nil
}

// fixedAll returns a condition that the captured values, where they are given, are constants that nothing trains.
func fixedAll(names ...string) func(m *match) error {
	return func(m *match) error {
		for _, name := range names {
			if v := m.V(name); v != nil && !m.Fixed(v) {
				return reason("%q is no constant, or is trained", v.Name)
			}
		}
		return nil
	}
}

// ownWeights holds where the weights of a Conv are a constant that it alone reads, of a type that is not rounded twice.
func ownWeights(m *match) error {
	w := m.V("w")
	switch {
	case !m.Fixed(w):
		return reason("the weights %q are no constant, or are trained", w.Name)
	case w.NumUses() != 1:
		return reason("the weights %q are read elsewhere", w.Name)
	case !allKnown(w.Type.Shape) || len(w.Type.Shape) < 3:
		return errUnknown
	}
	return singleRounding("x")(m)
}

// inference holds where the root is a normalization by fixed statistics.
func inference(m *match) error {
	if m.Root.Int("training_mode", 0) != 0 || len(m.Root.Out) != 1 {
		return reason("the normalization is in training mode")
	}
	return nil
}

// normalization returns factor and offset of the root, a BatchNormalization, by channel, in double precision.
func normalization(b *op.Builder, m *match) (s, t *graph.Value) {
	wide := func(name string) *graph.Value { return b.Cast(m.V(name), graph.Double) }
	variance := b.AddScalar(wide("var"), float64(m.Root.Float("epsilon", 1e-5)))
	s = b.Div(wide("scale"), b.Unary("Sqrt", variance))
	return s, b.Sub(wide("offset"), b.Mul(wide("mean"), s))
}

// scaledConv returns the Conv z with results times s plus t, by channel.
func scaledConv(b *op.Builder, m *match, s, t *graph.Value) *graph.Value {
	w := m.V("w")
	shape := make([]int64, len(w.Type.Shape))
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = -1
	elem := w.Type.Elem
	weights := b.Mul(w, b.ReshapeTo(b.Cast(s, elem), shape...))
	bias := t
	if v := m.V("b"); v != nil {
		bias = b.Mul(b.Cast(v, s.Type.Elem), s)
		if t != nil {
			bias = b.Add(bias, t)
		}
	}
	in := values(m.V("x"), weights)
	if bias != nil {
		in = append(in, b.Cast(bias, elem))
	}
	return b.Op("Conv", in, m.Node("z").Attrs...)
}

// convPads holds where z pads the places of an image, not batch or channels, with zeros.
func convPads(m *match) error {
	s := m.V("x").Type.Shape
	if len(s) < 3 {
		return errUnknown
	}
	if v := m.V("value"); v != nil {
		if a := m.Known(v); a == nil || a.Len() != 1 || a.Float(0) != 0 {
			return reason("the border is not zero")
		}
	}
	auto := m.Root.Str("auto_pad", "NOTSET")
	switch {
	case m.Node("z").Str("mode", "constant") != "constant":
		return reason("the border repeats elements")
	case auto != "NOTSET" && auto != "VALID":
		return reason("the padding depends on the padded size")
	case auto == "VALID" && m.Root.HasAttr("pads"):
		return rewrite.ErrUnlike
	}
	front, back, err := padsOf(m, "", len(s))
	if err != nil {
		return err
	}
	if own := m.Root.Ints("pads"); own != nil && len(own) != 2*(len(s)-2) {
		return errUnknown
	}
	for a := range s {
		if front[a] < 0 || back[a] < 0 || a < 2 && front[a]+back[a] != 0 {
			return reason("axis %d is cropped, or is no place in an image", a)
		}
	}
	return nil
}

// padsMeet holds where x, padded with zeros in front, and y, padded with zeros behind, fill each other's gap along an axis.
func padsMeet(m *match) error {
	if _, err := meetingAxis(m); err != nil {
		return err
	}
	return nil
}

func meetingAxis(m *match) (int, error) {
	x, y := m.V("x").Type.Shape, m.V("y").Type.Shape
	if x == nil || y == nil || len(x) != len(y) {
		return 0, errUnknown
	}
	for _, name := range []string{"value", "value0"} {
		if v := m.V(name); v != nil {
			if a := m.Known(v); a == nil || a.Len() != 1 || a.C128 != nil || a.Str != nil || a.Float(0) != 0 {
				return 0, rewrite.ErrUnlike
			}
		}
	}
	if m.Node("p").Str("mode", "constant") != "constant" || m.Node("q").Str("mode", "constant") != "constant" {
		return 0, rewrite.ErrUnlike
	}
	front, back, err := padsOf(m, "", len(x))
	if err != nil {
		return 0, err
	}
	front0, back0, err := padsOf(m, "0", len(x))
	if err != nil {
		return 0, err
	}
	axis := -1
	for i := range x {
		n, ok := x[i].Int()
		k, ok2 := y[i].Int()
		switch {
		case front[i] == 0 && back[i] == 0 && front0[i] == 0 && back0[i] == 0 && x[i].Equal(y[i]):
		case axis < 0 && ok && ok2 && back[i] == 0 && front0[i] == 0 && front[i] == k && back0[i] == n:
			axis = i
		default:
			return 0, rewrite.ErrUnlike
		}
	}
	if axis < 0 {
		return 0, rewrite.ErrUnlike
	}
	return axis, nil
}

func joinPadded(b *op.Builder, m *match) []*graph.Value {
	axis, err := meetingAxis(m)
	if err != nil {
		return nil
	}
	return values(b.Concat(int64(axis), m.V("y"), m.V("x")))
}

// fewElements holds for two constants whose combination is no larger than 16 elements, or than the larger of the two.
func fewElements(m *match) error {
	if m.Known(m.V("x")) != nil || m.Known(m.V("z")) != nil {
		return rewrite.ErrUnlike // folding does it
	}
	c, d := m.V("c").Type.Shape, m.V("d").Type.Shape
	p, ok := c.Size().Int()
	q, ok2 := d.Size().Int()
	switch {
	case !ok || !ok2:
		return errUnknown
	case p == 1 || q == 1 || c.Equal(d) || p*q <= 16:
		return nil
	}
	return reason("the combined constant may be larger")
}

// joinConstants returns an Emit that combines x's constants c and d: d applied to c, then c applied to x.
func joinConstants(name string) func(b *op.Builder, m *match) []*graph.Value {
	return func(b *op.Builder, m *match) []*graph.Value {
		c := b.Op(name, values(m.V("c"), m.V("d")))
		return values(b.Op(m.Node("z").Op, values(m.V("x"), c)))
	}
}
