package op

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"gradtool/graph"
)

// apply computes the activation.
func (a gateFunc) apply(x float64) float64 {
	switch a.name {
	case "Relu":
		return math.Max(x, 0)
	case "Tanh":
		return math.Tanh(x)
	case "Sigmoid":
		return 1 / (1 + math.Exp(-x))
	case "Softsign":
		return x / (1 + math.Abs(x))
	case "Softplus":
		return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
	case "LeakyRelu":
		if x < 0 {
			return a.alpha * x
		}
	case "ThresholdedRelu":
		if x <= a.alpha {
			return 0
		}
	case "Elu":
		if x < 0 {
			return a.alpha * math.Expm1(x)
		}
	case "HardSigmoid":
		return math.Min(math.Max(a.alpha*x+a.beta, 0), 1)
	case "Affine":
		return a.alpha*x + a.beta
	case "ScaledTanh":
		return a.alpha * math.Tanh(a.beta*x)
	}
	return x
}

// recurrence is the work of one direction, in float64.
type recurrence struct {
	steps, batch, hidden int
	gates                int       // times hidden: width of a row of gates
	xw                   []float64 // X·Wᵀ plus biases, [T, B, G·H]
	r, rb, p             []float64 // R [G·H, H], its bias, peepholes; the last two may be nil
	acts                 []gateFunc
	clip                 float64 // infinite without
	lens                 []int64 // nil: all of full length
	n                    *graph.Node
	h, c                 []float64 // state [B, H]
	hr, hr2              []float64 // scratch [B, G·H]
}

// evalRecurrent runs all directions.
func evalRecurrent(c *EvalCtx, k recurrentKind) error {
	n, x := c.Node, c.Arg(0)
	acts, err := activationsOf(n, k)
	if err != nil {
		return err
	}
	w, r := c.Arg(1), c.Arg(2)
	d := directions(n)
	if x.Rank() != 3 || w.Rank() != 3 || r.Rank() != 3 {
		return c.Errorf("operands X, W, R have shapes %v, %v, %v, expected 3 dimensions each", x.Shape, w.Shape, r.Shape)
	}
	batchFirst := n.Int("layout", 0) != 0
	steps, batch, inputs, hidden := x.Shape[0], x.Shape[1], x.Shape[2], r.Shape[2]
	if batchFirst {
		steps, batch = batch, steps
	}
	width := k.gates * hidden
	for i, want := range [][]int{nil, {d, width, inputs}, {d, width, hidden}, {d, 2 * width}, {batch}} {
		if a := c.Arg(i); a != nil && want != nil && prod(a.Shape) != prod(want) {
			return c.Errorf("operand %d has shape %v, expected %v", i, a.Shape, want)
		}
	}
	xv := floats64(x)
	if batchFirst {
		xv = swapRows(xv, batch, steps, inputs)
	}
	part := func(i, size, dir int) []float64 { // the share of a direction, nil if the operand is missing
		if c.Arg(i) == nil {
			return nil
		}
		return floats64(c.Arg(i))[dir*size : (dir+1)*size]
	}
	y := scratch[float64](steps, d, batch, hidden)
	last := [2][]float64{scratch[float64](d, batch, hidden), scratch[float64](d, batch, hidden)}
	for dir := range d {
		q := &recurrence{steps: steps, batch: batch, hidden: hidden, gates: k.gates, n: n, lens: c.Ints(4),
			r: part(2, width*hidden, dir), acts: acts[dir*len(k.acts) : (dir+1)*len(k.acts)],
			clip: n.Float("clip", math.Inf(1)), hr: scratch[float64](batch, width), hr2: scratch[float64](batch, width)}
		q.xw = scratch[float64](steps, batch, width)
		gemmNT(steps*batch, width, inputs, xv, part(1, width*inputs, dir), q.xw)
		if bias := part(3, 2*width, dir); bias != nil {
			for i := range q.xw {
				q.xw[i] += bias[i%width]
			}
			q.rb = bias[width:]
		}
		q.h, q.c = stateOf(c, 5, dir, d, batch, hidden, batchFirst), make([]float64, batch*hidden)
		if k.cell {
			q.c = stateOf(c, 6, dir, d, batch, hidden, batchFirst)
			q.p = part(7, 3*hidden, dir)
		}
		backward := n.Str("direction", "forward") == "reverse" || dir == 1
		for s := range steps {
			t := s
			if backward {
				t = steps - 1 - s
			}
			out := y[(t*d+dir)*batch*hidden:][:batch*hidden]
			switch k.name {
			case "RNN":
				q.rnn(t, out)
			case "GRU":
				q.gru(t, out)
			default:
				q.lstm(t, out)
			}
		}
		copy(last[0][dir*batch*hidden:], q.h)
		copy(last[1][dir*batch*hidden:], q.c)
	}
	yShape, lastShape := []int{steps, d, batch, hidden}, []int{d, batch, hidden}
	if batchFirst {
		// [T, D, B, H] to [B, T, D, H], [D, B, H] to [B, D, H]
		y = swapRows(y, steps*d, batch, hidden)
		last[0], last[1] = swapRows(last[0], d, batch, hidden), swapRows(last[1], d, batch, hidden)
		yShape, lastShape = []int{batch, steps, d, hidden}, []int{batch, d, hidden}
	}
	for i, v := range [][]float64{y, last[0], last[1]} {
		if i > 1 && !k.cell {
			break
		}
		a := x.NewLike([][]int{yShape, lastShape, lastShape}[i])
		for j, e := range v {
			a.SetFloat(j, e)
		}
		c.Set(i, a)
	}
	return nil
}

// stateOf returns a copy of an initial state's share of a direction, zeros if it is missing.
func stateOf(c *EvalCtx, i, dir, d, batch, hidden int, batchFirst bool) []float64 {
	out := make([]float64, batch*hidden)
	a := c.Arg(i)
	if a == nil || a.Len() != d*len(out) {
		return out
	}
	v := floats64(a)
	if batchFirst {
		v = swapRows(v, batch, d, hidden)
	}
	copy(out, v[dir*len(out):])
	return out
}

// swapRows returns v, laid out [a, b, n], as [b, a, n].
func swapRows(v []float64, a, b, n int) []float64 {
	out := make([]float64, len(v))
	for i := range a {
		for j := range b {
			copy(out[(j*a+i)*n:(j*a+i+1)*n], v[(i*b+j)*n:])
		}
	}
	return out
}

// gemmNT computes c = a·bᵀ for a [m, k] and b [n, k].
func gemmNT(m, n, k int, a, b, c []float64) {
	if m == 0 || n == 0 || k == 0 {
		clear(c)
		return
	}
	g := func(rows, cols int, d []float64) blas64.General {
		return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: d}
	}
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, g(m, k, a), g(n, k, b), 0, g(m, n, c))
}

// rows calls f for every batch element that is not yet, or no longer, past its length at time t, with its row of gates.
func (q *recurrence) rows(t int, f func(b int, x, hr []float64)) {
	width := q.gates * q.hidden
	for b := range q.batch {
		if q.lens == nil || int64(t) < q.lens[b] {
			f(b, q.xw[(t*q.batch+b)*width:][:width], q.hr[b*width:][:width])
		}
	}
}

// act applies activation i to a clipped argument.
func (q *recurrence) act(i int, x float64) float64 {
	return q.acts[i].apply(math.Max(-q.clip, math.Min(q.clip, x)))
}

// bias returns element i of the recurrence bias.
func (q *recurrence) bias(i int) float64 {
	if q.rb == nil {
		return 0
	}
	return q.rb[i]
}

// rnn: H = f(xw + H·Rᵀ).
func (q *recurrence) rnn(t int, y []float64) {
	n := q.hidden
	gemmNT(q.batch, n, n, q.h, q.r, q.hr)
	q.rows(t, func(b int, x, hr []float64) {
		for i := range n {
			q.h[b*n+i] = q.act(0, x[i]+hr[i]+q.bias(i))
			y[b*n+i] = q.h[b*n+i]
		}
	})
}

// gru: z, r = f(xw + H·Rᵀ); h = g(xw + (r·H)·Rᵀ) or, linear before reset, g(xw + r·(H·Rᵀ + rb)); H = (1-z)·h + z·H.
func (q *recurrence) gru(t int, y []float64) {
	n := q.hidden
	linear := q.n.Int("linear_before_reset", 0) != 0
	gemmNT(q.batch, 3*n, n, q.h, q.r, q.hr)
	reset := make([]float64, q.batch*n)
	q.rows(t, func(b int, x, hr []float64) {
		for i := range n {
			r := q.act(0, x[n+i]+hr[n+i]+q.bias(n+i))
			if linear {
				hr[2*n+i] = r * (hr[2*n+i] + q.bias(2*n+i))
			}
			reset[b*n+i] = r * q.h[b*n+i]
		}
	})
	if !linear {
		gemmNT(q.batch, n, n, reset, q.r[2*n*n:], q.hr2[:q.batch*n])
	}
	q.rows(t, func(b int, x, hr []float64) {
		for i := range n {
			z := q.act(0, x[i]+hr[i]+q.bias(i))
			into := hr[2*n+i]
			if !linear {
				into = q.hr2[b*n+i] + q.bias(2*n+i)
			}
			h := q.act(1, x[2*n+i]+into)
			q.h[b*n+i] = (1-z)*h + z*q.h[b*n+i]
			y[b*n+i] = q.h[b*n+i]
		}
	})
}

// lstm: i, o, f = f(xw + H·Rᵀ + p·C); c = g(xw + H·Rᵀ); C = f·C + i·c; H = o·h(C). The output gate looks at the new C.
func (q *recurrence) lstm(t int, y []float64) {
	n := q.hidden
	gemmNT(q.batch, 4*n, n, q.h, q.r, q.hr)
	peep := func(gate, i int, c float64) float64 {
		if q.p == nil {
			return 0
		}
		return q.p[gate*n+i] * c
	}
	coupled := q.n.Int("input_forget", 0) != 0
	q.rows(t, func(b int, x, hr []float64) {
		for i := range n {
			at := func(gate int) float64 { j := gate*n + i; return x[j] + hr[j] + q.bias(j) }
			c := q.c[b*n+i]
			in := q.act(0, at(0)+peep(0, i, c))
			forget := 1 - in
			if !coupled {
				forget = q.act(0, at(2)+peep(2, i, c))
			}
			c = forget*c + in*q.act(1, at(3))
			out := q.act(0, at(1)+peep(1, i, c))
			q.c[b*n+i] = c
			q.h[b*n+i] = out * q.acts[2].apply(c)
			y[b*n+i] = q.h[b*n+i]
		}
	})
}
