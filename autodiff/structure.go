package autodiff

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// structure is what is known about an operator that makes its JVP short.
type structure struct {
	names []string
	jvp   func(c *Ctx, r *Rule) []*graph.Value
}

// structures lists the operators whose tangents follow from what kind of function they are. For the others the tangents
// come from the VJP of the VJP (see [Ctx.derived]).
func structures() []structure {
	return []structure{
		// The Jacobian is diagonal, up to broadcasting: the VJP is the JVP.
		{[]string{
			"Abs", "Neg", "Exp", "Log", "Sqrt", "Reciprocal", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh",
			"Asinh", "Acosh", "Atanh", "Erf",
			"Relu", "LeakyRelu", "ThresholdedRelu", "Shrink", "Elu", "Selu", "Celu", "Gelu", "Sigmoid", "HardSigmoid", "HardSwish",
			"Softplus", "Softsign", "Swish", "Mish", "PRelu", "SwiGLU", "Clip",
			"Add", "Sub", "Mod", "Pow", "Sum", "Mean", "Max", "Min", "Where", "Dropout", "Cast", "CastLike", "Identity",
		}, diagonalJVP},
		// The Jacobian is symmetric.
		{[]string{"Softmax"}, diagonalJVP},
		// Linear in the first operand: the same operator on its tangent.
		{[]string{
			"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile", "Transpose", "Split", "Slice",
			"DepthToSpace", "SpaceToDepth", "ReverseSequence", "Trilu", "CenterCropPad", "Col2Im", "Compress",
			"Gather", "GatherElements", "GatherND", "ArrayFeatureExtractor",
			"ReduceSum", "ReduceMean", "CumSum", "AveragePool", "GlobalAveragePool", "MaxUnpool", "Resize", "DFT",
			"RotaryEmbedding", "NegativeLogLikelihoodLoss",
			"SequenceErase", "SequenceAt", "SplitToSequence", "ConcatFromSequence",
		}, linearIn(0)},
		{[]string{"OneHot"}, linearIn(2)},
		{[]string{"Concat", "SequenceConstruct"}, linearIn()},
		{[]string{"SequenceInsert", "TensorScatter"}, linearIn(0, 1)},
		{[]string{"Pad"}, linearIn(0, 2)},
		{[]string{"ScatterElements", "ScatterND"}, scatterJVP},
		// Linear in each of several operands, and in one that is added.
		{[]string{"Mul", "MatMul"}, multilinear(2)},
		{[]string{"Conv", "ConvTranspose", "Gemm"}, multilinear(2)},
		{[]string{"Einsum"}, multilinear(0)},
		// Rules of their own.
		{[]string{"BatchNormalization"}, batchNormJVP},
		{[]string{"Div"}, divJVP},
		{[]string{"LogSoftmax"}, logSoftmaxJVP},
		{[]string{"TopK"}, topKJVP},
		{[]string{"Optional", "OptionalGetElement"}, func(c *Ctx, _ *Rule) []*graph.Value { return one(c.T(0)) }},
	}
}

// addForward gives the rules of the table the JVPs that follow from their structure.
func addForward(t map[op.Key]*Rule) {
	domains := map[string]string{"ArrayFeatureExtractor": "ai.onnx.ml"}
	for _, s := range structures() {
		for _, name := range s.names {
			r := t[op.Key{Domain: domains[name], Name: name}]
			if r == nil {
				panic("autodiff: the forward mode of " + name + " has no rule to belong to")
			}
			r.JVP = func(c *Ctx) []*graph.Value { return s.jvp(c, r) }
		}
	}
}

// diagonalJVP: the VJP maps the cotangent of the result to each operand's through a diagonal, or at least symmetric, matrix D_i;
// the tangent is the sum of D_i t_i.
func diagonalJVP(c *Ctx, r *Rule) []*graph.Value {
	y := c.Y(0)
	var total *graph.Value
	for i := range c.Node.In {
		if c.T(i) == nil {
			continue
		}
		need := make([]bool, len(c.need))
		need[i] = true
		t := c.T(i)
		if !quantized(y) {
			t = c.Cast(t, y.Type.Elem)
		}
		v := &Ctx{Builder: c.Builder, Node: c.Node, ct: one(t), need: need, rev: c.rev}
		cts := r.VJP(v)
		if i >= len(cts) || cts[i] == nil {
			continue
		}
		if total == nil {
			total = cts[i]
		} else {
			total = c.Add(total, cts[i])
		}
	}
	if total == nil {
		return nil
	}
	if c.T(0) != nil && (len(c.Node.In) == 1 || !op.Of(c.Node).Has(op.Broadcasts)) {
		return one(total) // the result has operand 0's shape
	}
	return one(c.spread(total))
}

// linearIn is the JVP of operators that are linear in some operands together, by default in all: the same operator on their
// tangents. Where others have tangents too, it falls back on the VJP.
func linearIn(at ...int) func(c *Ctx, r *Rule) []*graph.Value {
	return func(c *Ctx, r *Rule) []*graph.Value {
		in := slices.Clone(c.Node.In)
		for i := range in {
			linear := len(at) == 0 || slices.Contains(at, i)
			switch {
			case !linear && c.T(i) != nil:
				return c.fallBack(r)
			case linear && in[i] != nil:
				in[i] = c.tangent(i)
			}
		}
		return c.again(in)
	}
}

// again applies the node's operator to other operands. Constants that it fills in are zero then.
func (c *Ctx) again(in []*graph.Value) []*graph.Value {
	attrs := slices.DeleteFunc(c.sameAttrs(), func(a *graph.Attr) bool { return a.Name == "extrapolation_value" })
	n := c.Builder.NodeIn(c.Node.Domain, c.Node.Op, in, len(c.Node.Out), attrs...)
	return n.Out
}

// fallBack is what [Ctx.derived] gives, for use in a JVP.
func (c *Ctx) fallBack(r *Rule) []*graph.Value {
	var ts []*graph.Value
	var err error
	if r.Check != nil {
		err = r.Check(c.Node)
	}
	if err == nil {
		ts, err = c.derived(r)
	}
	if err != nil && c.Err == nil {
		c.Err = err
	}
	return ts
}

// multilinear is the JVP of operators that are linear in each of the first factors operands (0: in all) and to which the next
// one, if there is one, is added: the sum over the factors with a tangent of the operator with that in the factor's place.
func multilinear(factors int) func(c *Ctx, r *Rule) []*graph.Value {
	return func(c *Ctx, r *Rule) []*graph.Value {
		n := len(c.Node.In)
		if factors > 0 {
			n = factors
		}
		added := c.T(n)
		var total *graph.Value
		for i := range n {
			if c.T(i) == nil {
				continue
			}
			in := slices.Clone(c.Node.In)
			in[i] = c.T(i)
			if n < len(in) {
				in[n], added = added, nil // once
			}
			y := c.again(in)[0]
			if total == nil {
				total = y
			} else {
				total = c.Add(total, y)
			}
		}
		if total == nil {
			return c.fallBack(r)
		}
		return one(total)
	}
}

// scatterJVP: y is x with u put into places, or added there; zeros replace what is put away and the tangent of u is added. The standard
// leaves open what places named twice get; added up, the tangent is the transpose of the VJP there too, which reads each.
func scatterJVP(c *Ctx, r *Rule) []*graph.Value {
	reduction := c.Node.Str("reduction", "none")
	if reduction != "none" && reduction != "add" {
		return c.fallBack(r)
	}
	if c.T(2) == nil {
		return linearIn(0, 2)(c, r)
	}
	s := scatterer{c, c.X(1)}
	base := c.tangent(0)
	if c.T(0) != nil && reduction == "none" {
		base = s.scatter(base, c.FullLike(c.X(2), 0), "none")
	}
	return one(s.scatter(base, c.T(2), "add"))
}

// divJVP: y = a/b; (t_a - y t_b) / b.
func divJVP(c *Ctx, _ *Rule) []*graph.Value {
	t := c.T(0)
	if c.T(1) != nil {
		fall := c.Mul(c.Y(0), c.T(1))
		if t == nil {
			t = c.Neg(fall)
		} else {
			t = c.Sub(t, fall)
		}
	}
	return one(c.spread(c.Div(t, c.X(1))))
}

// logSoftmaxJVP: y = x - log(sum(exp x)); t - sum(exp(y) t).
func logSoftmaxJVP(c *Ctx, _ *Rule) []*graph.Value {
	t := c.T(0)
	return one(c.Sub(t, c.ReduceSum(c.Mul(c.Unary("Exp", c.Y(0)), t), true, c.Node.Int("axis", -1))))
}

// topKJVP takes the tangent at the chosen places.
func topKJVP(c *Ctx, _ *Rule) []*graph.Value {
	return one(c.Binary("GatherElements", c.T(0), c.Want(1), graph.IntAttr("axis", c.Node.Int("axis", -1))))
}

// batchNormJVP: y is linear in scale and bias together, so their tangents in the places of the values give one part. For fixed
// statistics y is linear in x - mean too, and the tangent of x with no mean and bias gives the other part. For those of the batch the
// Jacobian with respect to x is symmetric: the scale is the same all over what a channel's statistics are taken of.
func batchNormJVP(c *Ctx, r *Rule) []*graph.Value {
	if training := c.Node.Int("training_mode", 0) != 0; c.wants(1) || c.wants(2) || !training && (c.T(3) != nil || c.T(4) != nil) {
		return c.fallBack(r)
	}
	x, scale, mean, variance := c.X(0), c.X(1), c.X(3), c.X(4)
	var total *graph.Value
	if c.T(1) != nil || c.T(2) != nil {
		total = c.again([]*graph.Value{x, c.tangent(1), c.tangent(2), mean, variance})[0]
	}
	if t := c.T(0); t != nil {
		var y *graph.Value
		if c.Node.Int("training_mode", 0) != 0 {
			v := &Ctx{Builder: c.Builder, Node: c.Node, ct: one(t), need: []bool{true}, rev: c.rev}
			y = c.Cast(r.VJP(v)[0], c.Y(0).Type.Elem)
		} else {
			y = c.again([]*graph.Value{t, scale, c.FullLike(scale, 0), c.FullLike(mean, 0), variance})[0]
		}
		if total != nil {
			y = c.Add(total, y)
		}
		total = y
	}
	return one(total)
}
