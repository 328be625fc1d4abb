package autodiff

import (
	"gradtool/graph"
)

// normRules holds the normalizations. Each is x̂ = (x - m)·r over some group of elements, then scaled and shifted;
// with h the cotangent of x̂ and mean that of the group, dx = r·(h - mean h - x̂·mean(h·x̂)).
func normRules() []Rule {
	return []Rule{
		{Name: "LayerNormalization", Kind: HasVJP, VJP: layerNormVJP},
		{Name: "RMSNormalization", Kind: HasVJP, VJP: rmsNormVJP},
		{Name: "GroupNormalization", Kind: HasVJP, VJP: func(c *Ctx) []*graph.Value {
			return channelGroupsVJP(c, c.Node.Int("num_groups", 1))
		}},
		{Name: "InstanceNormalization", Kind: HasVJP, VJP: func(c *Ctx) []*graph.Value { return channelGroupsVJP(c, 0) }},
		unary("MeanVarianceNormalization", meanVarianceVJP),
		unary("LpNormalization", lpNormVJP),
		unary("LRN", lrnVJP),
		{Name: "BatchNormalization", Kind: HasVJP, VJP: batchNormVJP, Fixed: []int{3, 4}},
	}
}

// stashed returns v in the type that statistics are computed in: float for the narrow types.
func stashed(c *Ctx, v *graph.Value) *graph.Value {
	if e := v.Type.Elem; e == graph.Float16 || e == graph.BFloat16 {
		return c.Cast(v, graph.Float)
	}
	return v
}

// trailing returns the axes from axis on, counted from the end if need be: nil if only run time tells.
func trailing(axis int64, s graph.Shape) []int64 {
	if axis >= 0 {
		if s == nil {
			return nil
		}
		axis -= int64(len(s))
	}
	var out []int64
	for ; axis < 0; axis++ {
		out = append(out, axis)
	}
	return out
}

// reducer returns a function that applies a reduction over the axes from axis on, keeping the rank.
func reducer(c *Ctx, x *graph.Value, axis int64) func(op string, v *graph.Value) *graph.Value {
	var axes *graph.Value
	if list := trailing(axis, x.Type.Shape); list != nil {
		axes = c.Ints(list...)
	} else {
		rank := c.Squeeze(c.Op("Shape", []*graph.Value{c.Shape(x)}), 0)
		axes = c.Op("Range", []*graph.Value{c.IntScalar(axis), rank, c.IntScalar(1)})
	}
	return func(op string, v *graph.Value) *graph.Value { return c.Op(op, []*graph.Value{v, axes}) }
}

// inverseRoot returns 1/sqrt(v + epsilon), with the node's epsilon.
func inverseRoot(c *Ctx, v *graph.Value) *graph.Value {
	return c.Unary("Reciprocal", c.Unary("Sqrt", c.AddScalar(v, c.Node.Float("epsilon", 1e-5))))
}

// centered returns x - m and r for the mean m of a group and r = 1/sqrt(mean((x-m)^2) + epsilon).
func centered(c *Ctx, x *graph.Value, mean func(v *graph.Value) *graph.Value) (d, r *graph.Value) {
	d = c.Sub(x, mean(x))
	return d, inverseRoot(c, mean(c.Mul(d, d)))
}

// throughNorm returns r·(h - mean h - x̂·mean(h·x̂)).
func throughNorm(c *Ctx, h, xhat, r *graph.Value, mean func(v *graph.Value) *graph.Value) *graph.Value {
	return c.Mul(r, c.Sub(c.Sub(h, mean(h)), c.Mul(xhat, mean(c.Mul(h, xhat)))))
}

// layerNormVJP: y = x̂·s + b with x̂ = (x-m)·r. Results m and r of the forward node are used where they are
// float32, else they are computed again. Their own cotangents m' and r' add m'/n - r'·r²·x̂/n to dx.
func layerNormVJP(c *Ctx) []*graph.Value {
	x0, s0 := c.X(0), c.X(1)
	x := stashed(c, x0)
	apply := reducer(c, x, c.Node.Int("axis", -1))
	mean := func(v *graph.Value) *graph.Value { return apply("ReduceMean", v) }
	var d, r *graph.Value
	m1, r1 := c.Ct(1), c.Ct(2)
	if e := x0.Type.Elem; (e == graph.Float || e == graph.Float16) && c.Node.Int("stash_type", 1) == int64(graph.Float) {
		d, r = c.Sub(x, c.Want(1)), c.Want(2)
	} else {
		d, r = centered(c, x, mean)
	}
	xhat := c.Mul(d, r)
	var dx, ds, db *graph.Value
	if g0 := c.Ct(0); g0 != nil {
		g := stashed(c, g0)
		if c.Need(0) {
			dx = throughNorm(c, c.Mul(g, stashed(c, s0)), xhat, r, mean)
		}
		if c.Need(1) {
			ds = c.Mul(g, xhat)
		}
		if c.Need(2) {
			db = g
		}
	}
	if c.Need(0) && (m1 != nil || r1 != nil) {
		share := perElementOf(c, x, r)
		like := func(v *graph.Value) *graph.Value { return c.Mul(c.Cast(v, x.Type.Elem), share) }
		if m1 != nil {
			dx = plus(c, dx, c.ExpandLike(like(m1), x))
		}
		if r1 != nil {
			dx = plus(c, dx, c.Neg(c.Mul(xhat, c.Mul(like(r1), c.Mul(r, r)))))
		}
	}
	return []*graph.Value{dx, ds, db}[:len(c.Node.In)]
}

// plus returns a + b, where a may be missing.
func plus(c *Ctx, a, b *graph.Value) *graph.Value {
	if a == nil {
		return b
	}
	return c.Add(a, b)
}

// rmsNormVJP: y = x̂·s with x̂ = x·r, r = 1/sqrt(mean(x²) + eps); dx = r·(h - x̂·mean(h·x̂)), h = g·s.
func rmsNormVJP(c *Ctx) []*graph.Value {
	x, s, g := stashed(c, c.X(0)), c.X(1), c.Ct(0)
	s, g = c.Cast(s, x.Type.Elem), c.Cast(g, x.Type.Elem)
	mean := reducer(c, x, c.Node.Int("axis", -1))
	r := inverseRoot(c, mean("ReduceMean", c.Mul(x, x)))
	xhat := c.Mul(x, r)
	var dx, ds *graph.Value
	if c.Need(0) {
		h := c.Mul(g, s)
		dx = c.Mul(r, c.Sub(h, c.Mul(xhat, mean("ReduceMean", c.Mul(h, xhat)))))
	}
	if c.Need(1) {
		ds = c.Mul(g, xhat)
	}
	return []*graph.Value{dx, ds}
}

// channelGroupsVJP is the rule of normalization by groups of channels, 0 groups standing for one channel each.
// Operands are laid out [batch, channel, rest] for scale and bias and [batch, group, rest] for the statistics.
func channelGroupsVJP(c *Ctx, groups int64) []*graph.Value {
	x0 := c.X(0)
	x, g := stashed(c, x0), stashed(c, c.Ct(0))
	byChannel := func(v *graph.Value) *graph.Value { return c.ReshapeTo(v, 0, 0, -1) }
	byGroup := func(v *graph.Value) *graph.Value { return c.ReshapeTo(v, 0, groups, -1) }
	back := func(v *graph.Value) *graph.Value { return c.ReshapeLike(v, g) }
	mean := func(v *graph.Value) *graph.Value { return c.ReduceMean(v, true, -1) }
	d, r := centered(c, byGroup(x), mean)
	xhat := c.Mul(d, r)
	gc := byChannel(g)
	var dx, ds, db *graph.Value
	if c.Need(0) {
		h := c.Mul(gc, c.Unsqueeze(stashed(c, c.X(1)), 1))
		if groups != 0 {
			h = byGroup(h)
		}
		dx = back(throughNorm(c, h, xhat, r, mean))
	}
	if c.Need(1) {
		xc := xhat
		if groups != 0 {
			xc = byChannel(back(xhat))
		}
		ds = c.ReduceSum(c.Mul(gc, xc), false, 0, 2)
	}
	if c.Need(2) {
		db = c.ReduceSum(gc, false, 0, 2)
	}
	return []*graph.Value{dx, ds, db}
}

// meanVarianceVJP: y = (x-m)/(sqrt(v) + 1e-9), of which the 1e-9 is neglected in the derivative of sqrt(v), so that a
// constant group has a derivative.
func meanVarianceVJP(c *Ctx, x, y, g *graph.Value) *graph.Value {
	axes := []int64{0, 2, 3}
	if c.Node.HasAttr("axes") {
		axes = c.Node.Ints("axes")
	}
	mean := func(v *graph.Value) *graph.Value { return c.ReduceMean(v, true, axes...) }
	d := c.Sub(x, mean(x))
	r := c.Unary("Reciprocal", c.AddScalar(c.Unary("Sqrt", mean(c.Mul(d, d))), 1e-9))
	return throughNorm(c, g, y, r, mean)
}

// lpNormVJP: y = x/n, n = |x|_p; dx = (g - n'·sum(g·y))/n with n' = sign x (p = 1) or y (p = 2), and 0 where n = 0.
func lpNormVJP(c *Ctx, x, y, g *graph.Value) *graph.Value {
	axis := c.Node.Int("axis", -1)
	norm, slope := "ReduceL2", y
	if c.Node.Int("p", 2) == 1 {
		norm, slope = "ReduceL1", c.Unary("Sign", x)
	}
	n := c.Op(norm, []*graph.Value{x, c.Ints(axis)}, graph.IntAttr("keepdims", 1))
	inner := c.Sub(g, c.Mul(slope, c.ReduceSum(c.Mul(g, y), true, axis)))
	return c.Mul(inner, c.atZero(c.Like(x, 1), n))
}

// lrnVJP: y_i = x_i·d_i^-β, d_i = bias + α/size·(sum of x_j², j around i);
// dx_i = g_i·d_i^-β - 2αβ/size·x_i·(sum of g_j·y_j/d_j over the j that have i around them).
func lrnVJP(c *Ctx, x, y, g *graph.Value) *graph.Value {
	n := c.Node
	size := n.Int("size", 1)
	alpha, beta := n.Float("alpha", 1e-4), n.Float("beta", 0.75)
	before, after := (size-1)/2, size/2
	d := c.AddScalar(aroundChannels(c, c.Mul(x, x), before, after, alpha), n.Float("bias", 1))
	direct := c.Mul(g, c.Binary("Pow", d, c.Like(x, -beta)))
	around := aroundChannels(c, c.Div(c.Mul(g, y), d), after, before, 2*alpha*beta)
	return c.Sub(direct, c.Mul(x, around))
}

// aroundChannels returns scale times the mean over before + 1 + after channels around each one, absent ones counting as 0.
func aroundChannels(c *Ctx, v *graph.Value, before, after int64, scale float64) *graph.Value {
	flat := c.Unsqueeze(c.ReshapeTo(v, 0, 0, -1), 1) // [batch, 1, channel, rest]
	mean := c.Unary("AveragePool", flat, graph.IntsAttr("kernel_shape", before+1+after, 1),
		graph.IntsAttr("pads", before, 0, after, 0), graph.IntAttr("count_include_pad", 1))
	return c.ReshapeLike(c.MulScalar(mean, scale), v)
}
