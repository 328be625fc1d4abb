package batch

import (
	"errors"

	"gradtool/graph"
	"gradtool/graph/op"
)

// axisRules are those of operators that work along some axes, on each slice along the others alike.
func axisRules() map[string]rule {
	along := func(name string, def int64) rule { // an attribute names the axis
		return func(c *ctx) (*verdict, error) { return slicewise(c, c.axis(name, def, len(c.shape(0))), false) }
	}
	behind := func(name string, def int64) rule { // it is the first of the axes
		return func(c *ctx) (*verdict, error) { return normalized(c, c.axis(name, def, len(c.shape(0)))) }
	}
	return map[string]rule{
		"Softmax": along("axis", -1), "LogSoftmax": along("axis", -1), "Hardmax": along("axis", -1), "LpNormalization": along("axis", -1),
		"TopK": along("axis", -1), "ArgMax": argument, "ArgMin": argument, "CumSum": cumulative, "CumProd": cumulative,
		"LayerNormalization": behind("axis", -1), "RMSNormalization": behind("axis", -1), "Trilu": matrices, "Det": matrices,
		"MeanVarianceNormalization": meanVariance, "QuantizeLinear": quantize, "DequantizeLinear": quantize,
	}
}

// slicewise divides an operator that works along one axis. The other operands are whole.
func slicewise(c *ctx, axis int, dropped bool) (*verdict, error) {
	p, _, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	if p.unit != nil {
		return nil, errPositions
	}
	if p.axis == axis {
		return nil, errSum
	}
	if dropped && p.axis > axis {
		p = p.moved(p.axis - 1)
	}
	return &verdict{in: c.wants(c.at[0], 0), out: c.gives(p)}, nil
}

func argument(c *ctx) (*verdict, error) {
	return slicewise(c, c.axis("axis", 0, len(c.shape(0))), c.n.Int("keepdims", 1) == 0)
}

func cumulative(c *ctx) (*verdict, error) {
	axis, ok := c.ints(1)
	if !ok || len(axis) != 1 {
		return nil, errAxes
	}
	a := int(axis[0])
	if a < 0 {
		a += len(c.shape(0))
	}
	return slicewise(c, a, false)
}

// normalized divides normalizations over the axes from one on; scale and bias have those axes only.
func normalized(c *ctx, axis int) (*verdict, error) {
	p, _, err := c.firstOnly()
	switch {
	case err != nil:
		return nil, err
	case p.axis >= axis:
		return nil, errSum
	}
	v := &verdict{in: c.wants(p, 0), out: c.gives(p)}
	for i := 1; i < len(c.n.In); i++ { // scale and bias may be broadcast
		s := c.shape(i)
		if c.n.In[i] == nil {
			continue
		} else if s == nil {
			return nil, errRank
		}
		if at := align(p.axis, len(c.shape(0)), len(s)); at >= 0 {
			if d, ok := s[at].Int(); !ok || d != 1 {
				v.in[i] = p.moved(at)
			}
		}
	}
	return v, nil
}

// matrices divides what works on each matrix alike.
func matrices(c *ctx) (*verdict, error) {
	p, s, err := c.firstOnly()
	switch {
	case err != nil:
		return nil, err
	case p.axis >= len(s)-2:
		return nil, errSum
	}
	return alone(c, 0, p, p.axis)
}

func meanVariance(c *ctx) (*verdict, error) {
	p, s, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	axes := c.n.Ints("axes")
	if !c.n.HasAttr("axes") {
		axes = []int64{0, 2, 3}
	}
	if axisIndex(axes, p.axis, len(s)) >= 0 {
		return nil, errSum
	}
	return alone(c, 0, p, p.axis)
}

// quantize divides by an axis that has one scale for all.
func quantize(c *ctx) (*verdict, error) {
	p, s, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	scale := c.shape(1)
	switch {
	case scale == nil:
		return nil, errRank
	case c.n.Int("block_size", 0) != 0:
		return nil, errors.New("it has a scale for each block")
	case len(scale) > 0 && c.axis("axis", 1, len(s)) == p.axis:
		if d, ok := scale[0].Int(); len(scale) != 1 || !ok || d != 1 {
			return nil, errSum
		}
	}
	return alone(c, 0, p, p.axis)
}

// leadingRules are those of operators whose definition has the batch in certain axes.
func leadingRules() map[string]rule {
	images := leading(map[int]int{0: 0}, 0)
	return map[string]rule{
		"AveragePool": images, "LpPool": images, "GlobalAveragePool": images, "GlobalMaxPool": images, "GlobalLpPool": images, "LRN": images,
		"InstanceNormalization": images, "GroupNormalization": images, "DepthToSpace": images, "SpaceToDepth": images, "Col2Im": images,
		"MaxPool": maxPool, "BatchNormalization": batchNorm, "Resize": resize, "Dropout": dropout,
		"GridSample": leading(map[int]int{0: 0, 1: 0}, 0), "DeformConv": leading(map[int]int{0: 0, 2: 0, 4: 0}, 0),
		"ConvInteger": images, "Attention": attention, "RotaryEmbedding": rotary, "LSTM": recurrent, "GRU": recurrent, "RNN": recurrent,
		"SoftmaxCrossEntropyLoss": leading(map[int]int{0: 0, 1: 0}, 0), "NegativeLogLikelihoodLoss": leading(map[int]int{0: 0, 1: 0}, 0),
	}
}

// leading divides operators whose operands have the batch in the axes given, and whose results have it in one.
func leading(axes map[int]int, result int) rule {
	return func(c *ctx) (*verdict, error) {
		if positions(c) {
			return nil, errPositions
		}
		i := c.split()
		axis, ok := axes[i]
		if !ok {
			return nil, errOperand
		}
		p := c.at[i]
		if p.axis != axis {
			return nil, errSum
		}
		v := &verdict{in: c.wants(nil), out: c.gives(p.moved(result))}
		for j, w := range c.n.In {
			if a, ok := axes[j]; ok && w != nil {
				v.in[j] = p.moved(a)
			}
		}
		return v, nil
	}
}

func maxPool(c *ctx) (*verdict, error) {
	v, err := leading(map[int]int{0: 0}, 0)(c)
	if err != nil || c.n.Result(1) == nil {
		return v, err
	}
	if c.n.Int("storage_order", 0) != 0 {
		return nil, errors.New("its indices count columns first")
	}
	p := *v.out[0]
	if p.unit, err = flatUnit(&p, c.shape(0)); err != nil {
		return nil, err
	}
	p.in = c.n.In[0]
	v.out[1] = &p
	return v, nil
}

// batchNorm divides what normalizes by statistics that are there already.
func batchNorm(c *ctx) (*verdict, error) {
	if c.n.Int("training_mode", 0) != 0 {
		return nil, errSum // it was taken apart
	}
	return leading(map[int]int{0: 0}, 0)(c)
}

// resize divides by an axis that keeps its size.
func resize(c *ctx) (*verdict, error) {
	p, s, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	axes := c.n.Ints("axes")
	if !c.n.HasAttr("axes") {
		for i := range s {
			axes = append(axes, int64(i))
		}
	}
	at := axisIndex(axes, p.axis, len(s))
	v, err := alone(c, 0, p, p.axis)
	if at < 0 {
		return v, err
	}
	if c.n.Str("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" {
		return nil, errors.New("it crops by fractions")
	}
	if w := c.n.Operand(2); w != nil {
		if a := c.info.Const(w); a == nil || at >= a.Len() || a.Float(at) != 1 {
			return nil, errSum
		}
		return v, err
	}
	if c.n.Operand(3) == nil {
		return nil, errSum
	}
	sizes := c.info.Dims(c.n.In[3])
	if at >= len(sizes) || c.n.Str("keep_aspect_ratio_policy", "stretch") != "stretch" {
		return nil, errSum
	}
	v.edit = func(n *graph.Node, k int) {
		var dims []*graph.Value
		for i := range sizes {
			if i == at {
				dims = append(dims, c.extent(n.In[3], i, p, k))
			} else {
				dims = append(dims, c.element(n.In[3], i))
			}
		}
		n.SetIn(3, c.vector(dims))
	}
	return v, err
}

// scalar returns a constant operand of one element, nil for others.
func (c *ctx) scalar(i int) *op.Array {
	if v := c.n.Operand(i); v != nil {
		if a := c.info.Const(v); a != nil && a.Len() == 1 {
			return a
		}
	}
	return nil
}

// dropout divides what drops nothing. Another draw for each part would be another result.
func dropout(c *ctx) (*verdict, error) {
	if c.n.Operand(2) != nil {
		still, none := c.scalar(2), c.scalar(1)
		if (still == nil || still.I64 == nil || still.I64[0] != 0) && (none == nil || none.Float(0) != 0) {
			return nil, errors.New("it draws random numbers for the whole batch")
		}
	}
	p, _, err := c.firstOnly()
	if err != nil {
		return nil, err
	}
	if p.unit != nil {
		return nil, errPositions
	}
	return &verdict{in: c.wants(p, 0), out: c.gives(p)}, nil
}

func attention(c *ctx) (*verdict, error) {
	v, err := leading(map[int]int{0: 0, 1: 0, 2: 0, 4: 0, 5: 0, 6: 0}, 0)(c)
	if err != nil || c.n.Operand(3) == nil {
		return v, err
	}
	s := c.shape(3)
	if s == nil {
		return nil, errRank
	}
	if len(s) == 4 {
		if d, ok := s[0].Int(); !ok || d != 1 {
			v.in[3] = v.in[0]
		}
	}
	return v, err
}

// rotary has tables of angles for each sample, unless positions say which rows of theirs are meant.
func rotary(c *ctx) (*verdict, error) {
	if c.n.Operand(3) != nil {
		return leading(map[int]int{0: 0, 3: 0}, 0)(c)
	}
	return leading(map[int]int{0: 0, 1: 0, 2: 0}, 0)(c)
}

// recurrent divides the sequences of a batch.
func recurrent(c *ctx) (*verdict, error) {
	at := map[int]int{0: 1, 4: 0, 5: 1, 6: 1}
	result, state := 2, 1
	if c.n.Int("layout", 0) != 0 {
		at, result, state = map[int]int{0: 0, 4: 0, 5: 0, 6: 0}, 0, 0
	}
	v, err := leading(at, result)(c)
	if err != nil {
		return nil, err
	}
	for i := 1; i < len(v.out); i++ {
		v.out[i] = v.out[0].moved(state)
	}
	return v, nil
}
