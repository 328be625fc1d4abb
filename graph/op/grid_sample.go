package op

import (
	"math"

	"gradtool/graph"
)

// GridSample reads x[N,C,D1..Dk] at the normalised coordinates grid[N,P1..Pk,k], whose last axis runs from the
// last spatial axis to the first.

func inferGridSample(c *InferCtx) error {
	x, g := c.Shape(0), c.Shape(1)
	if x == nil {
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	if len(x) < 3 || g != nil && len(g) != len(x) {
		return c.Errorf("input %s and grid %s: want ranks of at least 3, and equal", x, g)
	}
	out := append(graph.Shape{}, x[0], x[1])
	if g == nil {
		out = append(out, graph.UnknownShape(len(x)-2)...)
	} else {
		out = append(out, g[1:len(g)-1]...)
		if n, ok := g[len(g)-1].Int(); ok && int(n) != len(x)-2 {
			return c.Errorf("grid %s: the last axis must hold %d coordinates", g, len(x)-2)
		}
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

// gridSampler holds a node's attributes.
type gridSampler struct {
	mode, padding string
	align         bool
}

func samplerOf(n *graph.Node) gridSampler {
	return gridSampler{n.Str("mode", "linear"), n.Str("padding_mode", "zeros"), n.Int("align_corners", 0) != 0}
}

// borders returns the coordinates of the edges at which reflection happens, for an axis of the given size.
func (g gridSampler) borders(size int) (lo, hi float64) {
	if g.align {
		return 0, float64(size - 1)
	}
	return -0.5, float64(size) - 0.5
}

// source turns a normalised coordinate into one of the axis.
func (g gridSampler) source(u float64, size int) float64 {
	if g.align {
		return (u + 1) / 2 * float64(size-1)
	}
	return ((u+1)*float64(size) - 1) / 2
}

// pad brings a coordinate that is outside the axis back into it, as the padding mode says.
func (g gridSampler) pad(u float64, size int) float64 {
	switch g.padding {
	case "reflection":
		lo, hi := g.borders(size)
		span := hi - lo
		if span <= 0 {
			return 0
		}
		d := math.Abs(u - lo)
		extra := math.Mod(d, span)
		if math.Mod(math.Floor(d/span), 2) == 0 {
			u = lo + extra
		} else {
			u = hi - extra
		}
		fallthrough
	case "border":
		return min(max(u, 0), float64(size-1))
	}
	return u
}

// taps returns the samples of one axis that count at a source coordinate, and their weights.
func (g gridSampler) taps(u float64, size int) []tap {
	if g.mode != "cubic" {
		u = g.pad(u, size)
	}
	f := math.Floor(u)
	switch g.mode {
	case "nearest":
		return []tap{{int(math.RoundToEven(u)), 1}}
	case "cubic":
		list := make([]tap, 4)
		for k := range list {
			at := f + float64(k-1)
			list[k] = tap{int(g.pad(at, size)), cubicFilter(u-at, -0.75)}
		}
		return list
	}
	return []tap{{int(f), 1 - (u - f)}, {int(f) + 1, u - f}}
}

func evalGridSample(c *EvalCtx) error {
	x, grid := c.Arg(0), c.Arg(1)
	g := samplerOf(c.Node)
	dims := x.Shape[2:]
	k := len(dims)
	points := grid.Shape[1 : len(grid.Shape)-1]
	y := c.New(x.Elem, append([]int{x.Shape[0], x.Shape[1]}, points...))
	size, channels, count := prod(dims), x.Shape[1], prod(points)
	step := strides(dims)
	parallel(x.Shape[0]*count, grainOf(channels*16), func(from, to int) {
		for r := from; r < to; r++ {
			n, p := r/count, r%count
			samples := []tap{{0, 1}}
			for axis := range k {
				u := grid.Float(r*k + k - 1 - axis)
				var next []tap
				for _, t := range g.taps(g.source(u, dims[axis]), dims[axis]) {
					if t.index < 0 || t.index >= dims[axis] {
						continue // zeros around the image
					}
					for _, s := range samples {
						next = append(next, tap{s.index + t.index*step[axis], s.weight * t.weight})
					}
				}
				samples = next
			}
			for ch := range channels {
				base, sum := (n*channels+ch)*size, 0.0
				for _, s := range samples {
					sum += s.weight * x.Float(base+s.index)
				}
				y.setNumber((n*channels+ch)*count+p, sum)
			}
		}
	})
	c.Set(0, y)
	return nil
}

// setNumber sets element i of a float or integer tensor, cutting off what an integer cannot hold.
func (a *Array) setNumber(i int, x float64) {
	if a.I64 != nil {
		a.I64[i] = int64(x)
	} else {
		a.SetFloat(i, x)
	}
}

// decomposeGridSample reads the samples with GatherElements on the flattened image and weighs them by
// polynomials of the coordinates, so that both operands have derivatives. Clamping has slope 0 at and beyond the edge.
func decomposeGridSample(b *Builder, n *graph.Node) []*graph.Value {
	x, grid := n.In[0], n.In[1]
	g := samplerOf(n)
	k := len(x.Type.Shape) - 2
	elem := grid.Type.Elem
	flat := b.ReshapeTo(x, 0, 0, -1)
	type sample struct{ index, weight *graph.Value } // index nil: 0; weight nil: 1
	samples := []sample{{}}
	for axis := range k {
		size := b.DimOf(x, 2+axis)
		sizeF := b.Cast(size, elem)
		u := b.Gather(grid, b.IntScalar(int64(k-1-axis)), int64(k+1))
		u = b.ReshapeTo(u, 0, -1)
		var next []sample
		for _, t := range g.buildTaps(b, g.buildSource(b, u, sizeF), sizeF) {
			index := b.Cast(t.index, graph.Int64)
			weight := t.weight
			if g.padding == "zeros" {
				inside := b.Binary("And", b.Binary("GreaterOrEqual", index, b.IntScalar(0)), b.Binary("Less", index, size))
				if weight == nil {
					weight = b.Cast(inside, elem)
				} else {
					weight = b.Where(inside, weight, b.Like(weight, 0))
				}
			}
			index = b.Binary("Max", b.Binary("Min", index, b.Sub(size, b.Ints(1))), b.Ints(0))
			for _, s := range samples {
				w, at := weight, index
				if s.weight != nil && w != nil {
					w = b.Mul(s.weight, w)
				} else if s.weight != nil {
					w = s.weight
				}
				if s.index != nil {
					at = b.Add(b.Mul(s.index, size), index)
				}
				next = append(next, sample{at, w})
			}
		}
		samples = next
	}
	var y *graph.Value
	spread := b.Concat(0, b.Ints(1), b.DimOf(x, 1), b.Ints(1))
	for _, s := range samples {
		v := b.Op("GatherElements", vals(flat, b.Expand(b.Unsqueeze(s.index, 1), spread)), graph.IntAttr("axis", 2))
		if s.weight != nil {
			v = b.Mul(v, b.Cast(b.Unsqueeze(s.weight, 1), x.Type.Elem))
		}
		if y == nil {
			y = v
		} else {
			y = b.Add(y, v)
		}
	}
	points := b.Op("Shape", vals(grid), graph.IntAttr("start", 1), graph.IntAttr("end", int64(k+1)))
	return vals(b.Reshape(y, b.Concat(0, b.DimOf(x, 0), b.DimOf(x, 1), points)))
}

// buildSource is source as a graph.
func (g gridSampler) buildSource(b *Builder, u, size *graph.Value) *graph.Value {
	u = b.AddScalar(u, 1)
	if g.align {
		return b.Mul(b.MulScalar(u, 0.5), b.AddScalar(size, -1))
	}
	return b.MulScalar(b.AddScalar(b.Mul(u, size), -1), 0.5)
}

// buildPad is pad as a graph.
func (g gridSampler) buildPad(b *Builder, u, size *graph.Value) *graph.Value {
	last := b.AddScalar(size, -1)
	zero := b.Like(u, 0)
	if g.padding == "reflection" {
		lo, span := b.Like(u, -0.5), size
		if g.align {
			lo, span = zero, last
		}
		flat := b.Binary("LessOrEqual", span, zero) // an axis of one sample
		span = b.Where(flat, b.Like(u, 1), span)
		d := b.Unary("Abs", b.Sub(u, lo))
		flips := b.Unary("Floor", b.Div(d, span))
		extra := b.Sub(d, b.Mul(flips, span))
		odd := b.Sub(flips, b.MulScalar(b.Unary("Floor", b.MulScalar(flips, 0.5)), 2))
		u = b.Add(b.Where(b.Binary("Greater", odd, b.Like(u, 0.5)), b.Sub(span, extra), extra), lo)
		u = b.Where(flat, zero, u)
	}
	inside := b.Binary("And", b.Binary("Greater", u, zero), b.Binary("Less", u, last))
	edge := b.Where(b.Binary("Greater", u, zero), last, zero)
	return b.Where(inside, u, edge)
}

// builtTap is a tap as values of a graph; the index is a float, the weight nil for 1.
type builtTap struct{ index, weight *graph.Value }

// buildTaps is taps as a graph.
func (g gridSampler) buildTaps(b *Builder, u, size *graph.Value) []builtTap {
	if g.mode != "cubic" && g.padding != "zeros" {
		u = g.buildPad(b, u, size)
	}
	if g.mode == "nearest" {
		return []builtTap{{b.Unary("Round", u), nil}}
	}
	f := b.Unary("Floor", u)
	t := b.Sub(u, f)
	if g.mode == "linear" {
		return []builtTap{{f, b.Sub(b.Like(t, 1), t)}, {b.AddScalar(f, 1), t}}
	}
	const a = -0.75
	inner := func(d *graph.Value) *graph.Value { // ((a+2)d - (a+3))d² + 1
		return b.AddScalar(b.Mul(b.Mul(b.AddScalar(b.MulScalar(d, a+2), -(a+3)), d), d), 1)
	}
	outer := func(d *graph.Value) *graph.Value { // ((a d - 5a)d + 8a)d - 4a
		v := b.AddScalar(b.MulScalar(d, a), -5*a)
		v = b.AddScalar(b.Mul(v, d), 8*a)
		return b.AddScalar(b.Mul(v, d), -4*a)
	}
	rest := b.Sub(b.Like(t, 1), t)
	list := []builtTap{{b.AddScalar(f, -1), outer(b.AddScalar(t, 1))}, {f, inner(t)}, {b.AddScalar(f, 1), inner(rest)}, {b.AddScalar(f, 2), outer(b.AddScalar(rest, 1))}}
	if g.padding != "zeros" {
		for i := range list {
			list[i].index = g.buildPad(b, list[i].index, size)
		}
	}
	return list
}

func gridSampleSamples() []Sample {
	attrs := func(mode, padding string, align int64) []*graph.Attr {
		return []*graph.Attr{graph.StringAttr("mode", mode), graph.StringAttr("padding_mode", padding), graph.IntAttr("align_corners", align)}
	}
	var out []Sample
	for _, mode := range []string{"linear", "nearest", "cubic"} {
		for _, padding := range []string{"zeros", "border", "reflection"} {
			for align, name := range []string{"", ", aligned"} {
				out = append(out, Sample{Name: mode + " " + padding + name, In: []Arg{F(2, 3, 4, 5), FR(-1.6, 1.6, 2, 2, 3, 2)}, Attrs: attrs(mode, padding, int64(align))})
			}
		}
	}
	return append(out,
		Sample{Name: "volume", In: []Arg{F(1, 2, 3, 4, 5), FR(-1.2, 1.2, 1, 2, 2, 2, 3)}, Attrs: attrs("linear", "zeros", 0)},
		Sample{Name: "line", In: []Arg{F(2, 2, 5), FR(-1.2, 1.2, 2, 3, 1)}, Attrs: attrs("linear", "border", 1)},
		Sample{Name: "single sample", In: []Arg{F(1, 1, 1, 4), FR(-0.9, 0.9, 1, 2, 2, 2)}, Attrs: attrs("linear", "reflection", 1)})
}
