package op

import (
	"fmt"

	"gradtool/graph"
)

// DFT works on signals whose last axis holds real and imaginary parts, or real parts alone.

// oneScalar returns the only element of an integer operand if it is known as a number or an expression.
func (c *InferCtx) oneScalar(i int) graph.Dim {
	if d := c.Dims(i); len(d) == 1 {
		return d[0]
	}
	return graph.Unknown()
}

func inferDFT(c *InferCtx) error {
	s := c.Shape(0)
	inverse, onesided := c.Node.Int("inverse", 0) != 0, c.Node.Int("onesided", 0) != 0
	if s == nil {
		c.Set(0, c.Elem(0), nil)
		return nil
	}
	if len(s) < 2 {
		return c.Errorf("operand 0 has rank %d, expected at least 2", len(s))
	}
	parts := s[len(s)-1]
	if n, ok := parts.Int(); ok && n != 1 && n != 2 {
		return c.Errorf("the last axis of operand 0 has size %d, expected 1 (real) or 2 (complex)", n)
	}
	out := s.Clone()
	out[len(s)-1] = graph.Known(2)
	if inverse && onesided {
		out[len(s)-1] = graph.Known(1)
	}
	a := graph.Known(-2)
	if c.Has(2) {
		a = c.oneScalar(2)
	}
	at, ok := a.Int()
	if !ok { // any signal axis may change
		for i := range len(s) - 1 {
			out[i] = graph.Unknown()
		}
		c.Set(0, c.Elem(0), out)
		return nil
	}
	axis, err := signalAxis(at, len(s))
	if err != nil {
		return err
	}
	n := s[axis]
	switch {
	case c.Has(1):
		n = c.oneScalar(1)
	case inverse && onesided && !n.IsUnknown():
		n = n.Sub(graph.Known(1)).Mul(graph.Known(2))
	}
	if onesided && !inverse {
		n = halfSpectrum(n)
	}
	out[axis] = n
	c.Set(0, c.Elem(0), out)
	return nil
}

// signalAxis returns the axis of a transform, which is not the last one.
func signalAxis(axis int64, rank int) (int, error) {
	a, err := normAxis(axis, rank)
	if err == nil && a == rank-1 {
		err = fmt.Errorf("axis %d is that of real and imaginary parts", axis)
	}
	return a, err
}

// evalDFT transforms along one axis: y[k] = sum x[n]·exp(-2πikn/N), the inverse x[n] = 1/N sum y[k]·exp(2πikn/N). The
// operand is cut or padded with zeros to what a length of N asks for. One-sided, the forward transform keeps N/2+1
// frequencies; the inverse takes as many, and the others for their mirrored conjugates.
func evalDFT(c *EvalCtx) error {
	x := c.Arg(0)
	inverse, onesided := c.Node.Int("inverse", 0) != 0, c.Node.Int("onesided", 0) != 0
	r := x.Rank()
	if r < 2 || x.Shape[r-1] != 1 && x.Shape[r-1] != 2 || !x.IsFloat() {
		return c.Errorf("operand is %s, expected floats with a last axis of size 1 or 2", x.Type())
	}
	at := int64(-2)
	if v := c.Ints(2); len(v) == 1 {
		at = v[0]
	}
	axis, err := signalAxis(at, r)
	if err != nil {
		return err
	}
	n := x.Shape[axis]
	if inverse && onesided {
		n = 2 * (n - 1)
	}
	if c.Arg(1) != nil {
		if n, err = c.length(1, "dft_length"); err != nil {
			return err
		}
	}
	if n < 1 {
		return c.Errorf("the length of the transform is %d, expected at least 1", n)
	}
	t := spectrum{n: n, inverse: inverse, onesided: onesided, in: x.Shape[axis], inParts: x.Shape[r-1]}
	shape := append([]int{}, x.Shape...)
	shape[axis], shape[r-1] = t.sizes()
	y := x.NewLike(shape)
	t.plan = newFFT(n)
	inner := prod(x.Shape[axis+1 : r-1])
	if x.F32 != nil {
		transformLines(t, prod(x.Shape[:axis]), inner, x.F32, y.F32)
	} else {
		transformLines(t, prod(x.Shape[:axis]), inner, x.F64, y.F64)
	}
	c.Set(0, y)
	return nil
}

// spectrum is a transform of lines of given size and parts.
type spectrum struct {
	n                 int
	inverse, onesided bool
	in, inParts       int
	plan              *fft
}

// sizes returns the length and the parts of a transformed line.
func (t spectrum) sizes() (length, parts int) {
	switch {
	case t.onesided && t.inverse:
		return t.n, 1
	case t.onesided:
		return t.n/2 + 1, 2
	}
	return t.n, 2
}

// transformLines transforms outer·inner lines, whose elements lie inner apart.
func transformLines[T float](t spectrum, outer, inner int, x, y []T) {
	length, parts := t.sizes()
	parallel(outer*inner, grainOf(20*t.n), func(lo, hi int) {
		buf := scratch[complex128](t.n)
		for l := lo; l < hi; l++ {
			o, i := l/max(inner, 1), l%max(inner, 1)
			from, to := x[(o*t.in*inner+i)*t.inParts:], y[(o*length*inner+i)*parts:]
			t.load(buf, func(k int) complex128 {
				at := k * inner * t.inParts
				if t.inParts == 1 {
					return complex(float64(from[at]), 0)
				}
				return complex(float64(from[at]), float64(from[at+1]))
			})
			t.plan.transform(buf, t.inverse)
			for k := range length {
				at := k * inner * parts
				to[at] = T(real(buf[k]))
				if parts == 2 {
					to[at+1] = T(imag(buf[k]))
				}
			}
		}
	})
}

// load fills a line with what the transform is taken of.
func (t spectrum) load(buf []complex128, x func(k int) complex128) {
	clear(buf)
	if !t.onesided || !t.inverse {
		for k := range min(t.n, t.in) {
			buf[k] = x(k)
		}
		return
	}
	for k := range min(t.n/2+1, t.in) {
		v := x(k)
		switch m := t.n - k; {
		case k == 0 || m == k: // real: the mirrored conjugate of itself
			buf[k] = complex(real(v), 0)
		default:
			buf[k], buf[m] = v, complex(real(v), -imag(v))
		}
	}
}

// inferSTFT takes the length of frames from operand frame_length or from the window.
func inferSTFT(c *InferCtx) error {
	out := graph.Shape{graph.Unknown(), graph.Unknown(), graph.Unknown(), graph.Known(2)}
	length, step := graph.Unknown(), c.oneScalar(1)
	if w := c.Shape(2); c.Has(2) && w != nil {
		if len(w) != 1 {
			return c.Errorf("the window has shape %s, expected rank 1", w)
		}
		length = w[0]
	}
	if d := c.oneScalar(3); c.Has(3) && !d.IsUnknown() {
		if length.ProvablyNot(d) && !length.IsUnknown() {
			return c.Errorf("frame_length is %s, the window has %s elements", d, length)
		}
		length = d
	}
	out[2] = length
	if c.Node.Int("onesided", 1) != 0 {
		out[2] = halfSpectrum(length)
	}
	if s := c.Shape(0); s != nil {
		if len(s) != 3 {
			return c.Errorf("the signal has shape %s, expected [batch, length, 1 or 2]", s)
		}
		out[0] = s[0]
		if k, ok := step.Int(); ok && k > 0 && !s[1].IsUnknown() && !length.IsUnknown() {
			out[1] = s[1].Sub(length).FloorDiv(step).Add(graph.Known(1))
		}
	}
	c.Set(0, c.Elem(0), out)
	return nil
}

// evalSTFT transforms frames of a signal, step elements apart, each times the window.
func evalSTFT(c *EvalCtx) error {
	x, w := c.Arg(0), c.Arg(2)
	step, err := c.length(1, "frame_step")
	if err != nil {
		return err
	}
	n := 0
	if w != nil {
		n = w.Len()
	}
	if c.Arg(3) != nil {
		if n, err = c.length(3, "frame_length"); err != nil {
			return err
		}
	}
	if x.Rank() != 3 || x.Shape[2] != 1 && x.Shape[2] != 2 || step < 1 || n < 1 || n > x.Shape[1] || w != nil && w.Len() != n {
		return c.Errorf("frames of %d elements, %d apart, of a signal %s", n, step, x.Type())
	}
	parts, frames := x.Shape[2], (x.Shape[1]-n)/step+1
	cut := x.NewLike([]int{x.Shape[0] * frames, n, parts})
	for row := range x.Shape[0] * frames {
		from := (row/frames*x.Shape[1] + row%frames*step) * parts
		cut.copyRun(row*n*parts, x, from, n*parts)
		if w == nil {
			continue
		}
		for i := range n * parts {
			cut.SetFloat(row*n*parts+i, x.Float(from+i)*w.Float(i/parts))
		}
	}
	t := spectrum{n: n, onesided: c.Node.Int("onesided", 1) != 0, in: n, inParts: parts, plan: newFFT(n)}
	length, _ := t.sizes()
	y := x.NewLike([]int{x.Shape[0], frames, length, 2})
	if x.F32 != nil {
		transformLines(t, x.Shape[0]*frames, 1, cut.F32, y.F32)
	} else {
		transformLines(t, x.Shape[0]*frames, 1, cut.F64, y.F64)
	}
	c.Set(0, y)
	return nil
}

// decomposeSTFT gathers the frames, and transforms them times the window with DFT.
func decomposeSTFT(b *Builder, n *graph.Node) []*graph.Value {
	x, w := n.Operand(0), n.Operand(2)
	step := b.ReshapeTo(b.Cast(n.Operand(1), graph.Int64), 1)
	var length *graph.Value
	if l := n.Operand(3); l != nil {
		length = b.ReshapeTo(b.Cast(l, graph.Int64), 1)
	} else {
		length = b.DimOf(w, 0)
	}
	count := func(v *graph.Value) *graph.Value {
		return b.Op("Range", vals(b.IntScalar(0), b.Squeeze(v, 0), b.IntScalar(1)))
	}
	frames := b.Add(b.Div(b.Sub(b.DimOf(x, 1), length), step), b.Ints(1))
	at := b.Add(b.Unsqueeze(b.Mul(count(frames), step), 1), count(length)) // [frames, length]
	cut := b.Gather(x, at, 1)
	if w != nil {
		cut = b.Mul(cut, b.Unsqueeze(w, 1))
	}
	return vals(b.Op("DFT", vals(cut, nil, b.IntScalar(2)), graph.IntAttr("onesided", n.Int("onesided", 1))))
}
