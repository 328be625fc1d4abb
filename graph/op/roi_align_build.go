package op

import (
	"math"

	"gradtool/graph"
)

// decomposeRoiAlign gathers the positions around each point and weighs them. Regions may have different numbers of
// points: all get as many as the largest needs, and those beyond a region's own are left out of account.
func decomposeRoiAlign(b *Builder, n *graph.Node) []*graph.Value {
	x, rois, image := n.Operand(0), n.Operand(1), n.Operand(2)
	r := &roiBuild{Builder: b, n: n, elem: x.Type.Elem, ratio: n.Int("sampling_ratio", 0)}
	if r.elem == graph.Float16 || r.elem == graph.BFloat16 { // places want the precision
		r.elem = graph.Float
	}
	r.rois = b.MulScalar(b.Cast(rois, r.elem), n.Float("spatial_scale", 1))
	r.halfPixel = n.Str("coordinate_transformation_mode", "half_pixel") == "half_pixel"
	if r.halfPixel {
		r.rois = b.AddScalar(r.rois, -0.5)
	}
	h, w := n.Int("output_height", 1), n.Int("output_width", 1)
	rows, cols := r.axis(1, 3, h, b.DimOf(x, 2)), r.axis(0, 2, w, b.DimOf(x, 3))

	flat := b.Transpose(b.Cast(x, r.elem), 0, 2, 3, 1)
	flat = b.Op("Reshape", vals(flat, b.Concat(0, b.Ints(-1), b.DimOf(x, 1)))) // [N·H·W, C]
	first := b.Unsqueeze(b.Mul(image, b.DimOf(x, 2)), 1)                       // of an image, in rows
	corner := func(row, rowWeight, col, colWeight *graph.Value) *graph.Value {
		at := b.Add(b.Unsqueeze(b.Mul(b.Add(first, row), b.DimOf(x, 3)), 2), b.Unsqueeze(col, 1)) // [R, rows, cols]
		weight := b.Mul(b.Unsqueeze(rowWeight, 2, 3), b.Unsqueeze(colWeight, 1, 3))
		return b.Mul(b.Gather(flat, at, 0), weight) // [R, rows, cols, C]
	}
	corners := vals(
		corner(rows.lo, rows.wLo, cols.lo, cols.wLo), corner(rows.lo, rows.wLo, cols.hi, cols.wHi),
		corner(rows.hi, rows.wHi, cols.lo, cols.wLo), corner(rows.hi, rows.wHi, cols.hi, cols.wHi))
	grid := b.Concat(0, b.Ints(-1, h), rows.most, b.Ints(w), cols.most, b.DimOf(x, 1))
	var y *graph.Value
	if n.Str("mode", "avg") == "max" {
		y = b.Op("Max", corners)
		if rows.real != nil {
			there := b.Binary("And", b.Unsqueeze(rows.real, 2, 3), b.Unsqueeze(cols.real, 1, 3))
			y = b.Where(there, y, b.Like(y, math.Inf(-1)))
		}
		y = b.Op("ReduceMax", vals(b.Op("Reshape", vals(y, grid)), b.Ints(2, 4)), graph.IntAttr("keepdims", 0))
		if rows.real != nil {
			some := b.Binary("Greater", b.Mul(rows.count, cols.count), b.Like(rows.count, 0))
			y = b.Where(b.Unsqueeze(some, 1, 2, 3), y, b.Like(y, 0))
		}
	} else {
		y = b.ReduceSum(b.Op("Reshape", vals(b.Op("Sum", corners), grid)), false, 2, 4)
		if r.ratio > 0 {
			y = b.MulScalar(y, 1/float64(r.ratio*r.ratio))
		} else {
			count := b.Op("Max", vals(b.Mul(rows.count, cols.count), b.Like(rows.count, 1)))
			y = b.Div(y, b.Unsqueeze(count, 1, 2, 3))
		}
	}
	return vals(b.Cast(b.Transpose(y, 0, 3, 1, 2), x.Type.Elem))
}

// roiBuild is the state of a decomposition.
type roiBuild struct {
	*Builder
	n         *graph.Node
	elem      graph.DataType
	rois      *graph.Value // in positions of the feature map
	ratio     int64
	halfPixel bool
}

// roiPoints are the points of one axis.
type roiPoints struct {
	lo, hi   *graph.Value // int64 positions on either side, [R, bins·most]
	wLo, wHi *graph.Value // their weights, 0 for points outside
	most     *graph.Value // the number of points per bin, a vector of one element
	count    *graph.Value // by region, as floats; nil for a fixed ratio
	real     *graph.Value // which of the points a region has; nil for all
}

// axis computes the points of the axis along which regions reach from one column of rois to another.
func (r *roiBuild) axis(from, to, bins int64, size *graph.Value) roiPoints {
	start, end := r.Gather(r.rois, r.IntScalar(from), 1), r.Gather(r.rois, r.IntScalar(to), 1)
	length := r.Sub(end, start)
	if !r.halfPixel {
		length = r.Op("Max", vals(length, r.Like(length, 1)))
	}
	bin := r.MulScalar(length, 1/float64(bins)) // [R]
	var p roiPoints
	n := r.Scalar(r.elem, float64(r.ratio))
	p.most = r.Ints(r.ratio)
	if r.ratio <= 0 {
		p.count = r.Op("Max", vals(r.Unary("Ceil", bin), r.Like(bin, 0)))
		n = r.Op("Max", vals(p.count, r.Like(bin, 1)))
		top := r.Op("ReduceMax", vals(r.Concat(0, p.count, r.Unsqueeze(r.Like(bin, 1), 0)), r.Ints(0)), graph.IntAttr("keepdims", 1))
		p.most = r.Cast(top, graph.Int64)
		n = r.Unsqueeze(n, 1, 2)
	}
	count := func(v *graph.Value) *graph.Value {
		return r.Cast(r.Op("Range", vals(r.IntScalar(0), v, r.IntScalar(1))), r.elem)
	}
	i := count(r.Squeeze(p.most, 0))                  // [most]
	which := r.Unsqueeze(count(r.IntScalar(bins)), 1) // [bins, 1]
	step, origin := r.Unsqueeze(bin, 1, 2), r.Unsqueeze(start, 1, 2)
	inside := r.Div(r.AddScalar(i, 0.5), n) // of a bin, in bins
	at := r.Add(origin, r.Mul(step, r.Add(which, inside)))
	limit := r.Cast(size, r.elem)
	valid := r.Binary("And", r.Binary("GreaterOrEqual", at, r.Like(at, -1)), r.Binary("LessOrEqual", at, limit))
	if p.count != nil {
		p.real = r.Binary("Less", r.Expand(i, r.Concat(0, r.Ints(bins), p.most)), r.Unsqueeze(p.count, 1, 2))
		valid = r.Binary("And", valid, p.real)
		p.real = r.flatten(p.real)
	}
	last := r.AddScalar(limit, -1)
	at = r.Op("Max", vals(at, r.Like(at, 0)))
	lo := r.Op("Min", vals(r.Unary("Floor", at), last))
	hi := r.Op("Min", vals(r.AddScalar(lo, 1), last))
	frac := r.Sub(r.Op("Min", vals(at, last)), lo)
	p.lo, p.hi = r.flatten(r.Cast(lo, graph.Int64)), r.flatten(r.Cast(hi, graph.Int64))
	zero := r.Like(frac, 0)
	p.wLo = r.flatten(r.Where(valid, r.Sub(r.Like(frac, 1), frac), zero))
	p.wHi = r.flatten(r.Where(valid, frac, zero))
	return p
}

// flatten joins the axes of bins and points: [R, bins, most] to [R, bins·most].
func (r *roiBuild) flatten(v *graph.Value) *graph.Value {
	return r.Op("Flatten", vals(v), graph.IntAttr("axis", 1))
}
