package autodiff

import "gradtool/graph"

// batchNormVJP, for statistics m and v by channel, r = 1/sqrt(v + eps), x̂ = (x-m)·r and y = x̂·s + b:
// db = sum g and ds = sum g·x̂ over all but the channels. With fixed statistics dx = g·s·r, dm = -s·r·db and
// dv = -s·r³·(sum g·(x-m))/2; with those of the batch (training mode) dx = s·r·(g - db/n - x̂·ds/n), two
// reductions in all.
//
// In training mode results 1 and 2 are running·momentum + (m, v)·(1-momentum); their cotangents m', v' add
// (1-momentum)·(m' + 2·v'·(x-m))/n to dx.
func batchNormVJP(c *Ctx) []*graph.Value {
	x0 := c.X(0)
	x := stashed(c, x0)
	elem := x.Type.Elem
	view := channelView(c, x)
	xs := view.of(x)
	training := c.Node.Int("training_mode", 0) != 0
	mean := func(v *graph.Value) *graph.Value { return c.ReduceMean(v, true, view.axes...) }
	var d, r *graph.Value
	if training {
		d, r = centered(c, xs, mean)
	} else {
		d = c.Sub(xs, view.lift(c.Cast(c.X(3), elem)))
		r = inverseRoot(c, view.lift(c.Cast(c.X(4), elem)))
	}
	var dx, ds, db, dm, dv *graph.Value
	if g0 := c.Ct(0); g0 != nil {
		g := view.of(stashed(c, g0))
		factor := c.Mul(view.lift(c.Cast(c.X(1), elem)), r)
		total := func(v *graph.Value) *graph.Value { return c.ReduceSum(v, true, view.axes...) }
		if !training {
			if c.Need(0) {
				dx = c.Mul(g, factor)
			}
			if c.Need(1) {
				ds = view.drop(c.Mul(total(c.Mul(g, d)), r))
			}
			if c.Need(2) || c.Need(3) {
				sum := total(g)
				db, dm = view.drop(sum), view.drop(c.Neg(c.Mul(sum, factor)))
			}
			if c.Need(4) {
				dv = c.MulScalar(view.drop(c.Mul(total(c.Mul(g, d)), c.Mul(factor, c.Mul(r, r)))), -0.5)
			}
		} else {
			xhat := c.Mul(d, r)
			sumG, sumGX := total(g), total(c.Mul(g, xhat))
			if c.Need(0) {
				share := perElementOf(c, x, r)
				dx = c.Mul(factor, c.Sub(c.Sub(g, c.Mul(sumG, share)), c.Mul(xhat, c.Mul(sumGX, share))))
			}
			ds, db = view.drop(sumGX), view.drop(sumG)
		}
	}
	if training {
		// The running statistics: momentum times what they were, and the rest of the batch's.
		momentum := c.Node.Float("momentum", 0.9)
		if m := c.Ct(1); m != nil && c.Need(3) {
			dm = c.MulScalar(m, momentum)
		}
		if v := c.Ct(2); v != nil && c.Need(4) {
			dv = c.MulScalar(v, momentum)
		}
	}
	if training && c.Need(0) {
		update := c.Mul(perElementOf(c, x, r), c.Scalar(elem, 1-c.Node.Float("momentum", 0.9)))
		if m := c.Ct(1); m != nil {
			dx = plus(c, dx, c.ExpandLike(c.Mul(view.lift(c.Cast(m, elem)), update), xs))
		}
		if v := c.Ct(2); v != nil {
			dx = plus(c, dx, c.Mul(d, c.MulScalar(c.Mul(view.lift(c.Cast(v, elem)), update), 2)))
		}
	}
	if dx != nil {
		dx = c.ReshapeLike(dx, x)
	}
	return []*graph.Value{dx, ds, db, dm, dv}
}

// channels views tensors of a batch norm's operand shape so that the channels lie on axis 1.
type channels struct {
	of   func(v *graph.Value) *graph.Value // a tensor of the operand's shape
	lift func(v *graph.Value) *graph.Value // a vector by channel, to broadcast against such
	drop func(v *graph.Value) *graph.Value // the other way
	axes []int64                           // all axes but the channels'
}

// channelView views x as it is if its rank is known, else as [batch, channels, rest]. A vector has one channel.
func channelView(c *Ctx, x *graph.Value) channels {
	same := func(v *graph.Value) *graph.Value { return v }
	s := x.Type.Shape
	switch {
	case len(s) == 1:
		return channels{of: same, lift: same, drop: same, axes: []int64{0}}
	case s == nil:
		shape := c.Concat(0, c.Gather(c.Shape(x), c.Ints(0), 0), c.Shape(c.X(1)), c.Ints(-1))
		return channels{
			of:   func(v *graph.Value) *graph.Value { return c.Op("Reshape", []*graph.Value{v, shape}) },
			lift: func(v *graph.Value) *graph.Value { return c.Unsqueeze(v, 1) },
			drop: func(v *graph.Value) *graph.Value { return c.Squeeze(v, 0, 2) },
			axes: []int64{0, 2},
		}
	}
	var ones []int64 // axes of size 1 that lift a vector
	axes := []int64{0}
	for i := range s[2:] {
		ones = append(ones, int64(i)+1)
		axes = append(axes, int64(i)+2)
	}
	return channels{
		of:   same,
		lift: func(v *graph.Value) *graph.Value { return c.Unsqueeze(v, ones...) },
		drop: func(v *graph.Value) *graph.Value { return c.Squeeze(v, axes...) },
		axes: axes,
	}
}
