package op

import (
	"gradtool/graph"
)

// recurrent builds one direction of a recurrent operator out of simpler ones.
type recurrent struct {
	*Builder
	kind     recurrentKind
	acts     []gateFunc
	clip     float64 // 0: none
	coupled  bool    // LSTM's input_forget
	linear   bool    // GRU's linear_before_reset
	hidden   int64
	rt       *graph.Value // Rᵀ, [H, G·H]
	rtReset  *graph.Value // GRU: the part for the hidden gate, [H, H], not in rt then
	biasHid  *graph.Value // GRU, linear before reset: the recurrence bias of the hidden gate, may be nil
	p        []*graph.Value
	backward bool
}

// decomposeRecurrent returns Y, the last state and the last cell. The number of hidden units must be known.
func decomposeRecurrent(b *Builder, n *graph.Node, k recurrentKind) []*graph.Value {
	acts, err := activationsOf(n, k)
	if err != nil {
		b.Err = err
		return nil
	}
	x := n.Operand(0)
	batchFirst := n.Int("layout", 0) != 0
	if batchFirst {
		x = b.Transpose(x, 1, 0, 2)
	}
	d := directions(n)
	var ys, hs, cs []*graph.Value
	for dir := range d {
		q := &recurrent{Builder: b, kind: k, acts: acts[dir*len(k.acts) : (dir+1)*len(k.acts)], clip: n.Float("clip", 0),
			coupled: n.Int("input_forget", 0) != 0, linear: n.Int("linear_before_reset", 0) != 0,
			hidden: HiddenSize(n), backward: n.Str("direction", "forward") == "reverse" || dir == 1}
		part := func(i int, batchSecond bool) *graph.Value { // the share of a direction of operand i, without that axis
			v := n.Operand(i)
			axis := int64(0)
			if v == nil {
				return nil
			} else if batchSecond && batchFirst {
				axis = 1
			}
			if d > 1 {
				v = b.Slice(v, b.Ints(int64(dir)), b.Ints(int64(dir)+1), b.Ints(axis), nil)
			}
			return b.Squeeze(v, axis)
		}
		xw := q.prepare(x, part(1, false), part(2, false), part(3, false))
		if p := part(7, false); p != nil && k.cell {
			q.p = q.split(p, 3)
		}
		q.noteShapes()
		zeros := func() *graph.Value {
			return b.Full(b.Concat(0, b.DimOf(x, 1), b.Ints(q.hidden)), x.Type.Elem, 0)
		}
		state := []*graph.Value{part(5, true)}
		if k.cell {
			state = append(state, part(6, true))
		}
		for i := range state {
			if state[i] == nil {
				state[i] = zeros()
			}
		}
		var y *graph.Value
		y, state = q.run(xw, n.Operand(4), state)
		at := int64(0) // where the axis of directions goes in the states
		if batchFirst {
			at = 1
		}
		ys, hs = append(ys, b.Unsqueeze(y, 1)), append(hs, b.Unsqueeze(state[0], at))
		if k.cell {
			cs = append(cs, b.Unsqueeze(state[1], at))
		}
	}
	join := func(list []*graph.Value) *graph.Value {
		if batchFirst {
			return b.Concat(1, list...)
		}
		return b.Concat(0, list...)
	}
	y := b.Concat(1, ys...)
	if batchFirst {
		y = b.Transpose(y, 2, 0, 1, 3)
	}
	out := []*graph.Value{y, join(hs)}
	if k.cell {
		out = append(out, join(cs))
	}
	return out
}

// HiddenSize returns the number of hidden units of a recurrent node, 0 if it is not known.
func HiddenSize(n *graph.Node) int64 {
	if h := n.Int("hidden_size", 0); h > 0 {
		return h
	}
	if r := n.Operand(2); r != nil && len(r.Type.Shape) == 3 {
		h, _ := r.Type.Shape[2].Int()
		return h
	}
	return 0
}

// split cuts v into n parts of H elements along its last axis.
func (q *recurrent) split(v *graph.Value, n int) []*graph.Value {
	sizes := make([]int64, n)
	for i := range sizes {
		sizes[i] = q.hidden
	}
	return q.splitInto(v, sizes...)
}

func (q *recurrent) splitInto(v *graph.Value, sizes ...int64) []*graph.Value {
	if len(sizes) == 1 {
		return []*graph.Value{v}
	}
	return q.Node("Split", vals(v, q.Ints(sizes...)), len(sizes), graph.IntAttr("axis", -1)).Out
}

// prepare transposes the weights and returns X·Wᵀ plus what biases can be added to it, [T, B, G·H].
func (q *recurrent) prepare(x, w, r, bias *graph.Value) *graph.Value {
	h := q.hidden
	q.rt = q.Transpose(r, 1, 0)
	gru := q.kind.name == "GRU"
	if gru && !q.linear {
		parts := q.splitInto(q.rt, 2*h, h)
		q.rt, q.rtReset = parts[0], parts[1]
	}
	xw := q.MatMul(x, q.Transpose(w, 1, 0))
	if bias == nil {
		return xw
	}
	width := int64(q.kind.gates) * h
	if gru && q.linear {
		parts := q.splitInto(bias, width, 2*h, h)
		q.biasHid = parts[2]
		zeros := q.Full(q.Ints(h), x.Type.Elem, 0)
		return q.Add(xw, q.Add(parts[0], q.Concat(0, parts[1], zeros)))
	}
	parts := q.splitInto(bias, width, width)
	return q.Add(xw, q.Add(parts[0], parts[1]))
}

// noteShapes notes the shapes of what every step reads: runtimes want ranks inside a Scan.
func (q *recurrent) noteShapes() {
	h := graph.Known(q.hidden)
	gates := int64(q.kind.gates)
	if q.rtReset != nil {
		gates--
		refine(q.rtReset, graph.Shape{h, h})
	}
	refine(q.rt, graph.Shape{h, h.Mul(graph.Known(gates))})
	if q.biasHid != nil {
		refine(q.biasHid, graph.Shape{h})
	}
	for _, v := range q.p {
		refine(v, graph.Shape{h})
	}
}

// run builds the recurrence over time for xw = X·Wᵀ + biases, and returns the states of all steps, [T, B, H], and the last ones.
func (q *recurrent) run(xw, lens *graph.Value, state []*graph.Value) (*graph.Value, []*graph.Value) {
	inputs := vals(xw)
	if lens != nil { // [T, B, 1]: whether a step is within the length
		times := q.Op("Range", vals(q.IntScalar(0), q.Squeeze(q.DimOf(xw, 0), 0), q.IntScalar(1)))
		inputs = append(inputs, q.Binary("Less", q.Unsqueeze(times, 1, 2), q.Unsqueeze(q.Cast(lens, graph.Int64), 0, 2)))
	}
	step := func(b *Builder, x, state []*graph.Value) (*graph.Value, []*graph.Value) {
		s := *q
		s.Builder = b
		if len(x) > 1 {
			return s.step(x[0], x[1], state)
		}
		return s.step(x[0], nil, state)
	}
	batch, hidden := graph.Unknown(), graph.Known(q.hidden)
	if s := xw.Type.Shape; len(s) == 3 {
		batch = s[1]
	}
	shape := graph.Shape{batch, hidden}
	refine(xw, graph.Shape{graph.Unknown(), batch, hidden.Mul(graph.Known(int64(q.kind.gates)))})
	for _, v := range state {
		refine(v, shape)
	}
	if len(inputs) > 1 {
		refine(inputs[1], graph.Shape{graph.Unknown(), batch, graph.Known(1)})
	}
	return recur(q.Builder, step, inputs, state, shape, q.backward)
}

// step builds one step for inputs x = X·Wᵀ + biases, [B, G·H]. Where live, [B, 1], does not hold, the states
// stay and the result is 0.
func (q *recurrent) step(x, live *graph.Value, state []*graph.Value) (y *graph.Value, next []*graph.Value) {
	switch q.kind.name {
	case "RNN":
		next = vals(q.act(0, q.Add(x, q.MatMul(state[0], q.rt))))
	case "GRU":
		next = vals(q.gru(x, state[0]))
	default:
		next = q.lstm(x, state[0], state[1])
	}
	y = next[0]
	if live != nil {
		y = q.Where(live, y, q.Like(y, 0))
		for i := range next {
			next[i] = q.Where(live, next[i], state[i])
		}
	}
	return y, next
}

func (q *recurrent) gru(x, h *graph.Value) *graph.Value {
	xs := q.split(x, 3)
	var z, r, new *graph.Value
	if q.linear {
		hs := q.split(q.MatMul(h, q.rt), 3)
		z, r = q.act(0, q.Add(xs[0], hs[0])), q.act(0, q.Add(xs[1], hs[1]))
		candidate := hs[2]
		if q.biasHid != nil {
			candidate = q.Add(candidate, q.biasHid)
		}
		new = q.act(1, q.Add(xs[2], q.Mul(r, candidate)))
	} else {
		hs := q.split(q.MatMul(h, q.rt), 2)
		z, r = q.act(0, q.Add(xs[0], hs[0])), q.act(0, q.Add(xs[1], hs[1]))
		new = q.act(1, q.Add(xs[2], q.MatMul(q.Mul(r, h), q.rtReset)))
	}
	return q.Add(q.Mul(q.Sub(q.Like(z, 1), z), new), q.Mul(z, h))
}

func (q *recurrent) lstm(x, h, c *graph.Value) []*graph.Value {
	gates := q.split(q.Add(x, q.MatMul(h, q.rt)), 4)
	peep := func(i int, c *graph.Value) *graph.Value {
		if q.p == nil {
			return gates[i]
		}
		return q.Add(gates[i], q.Mul(q.p[i], c))
	}
	in := q.act(0, peep(0, c))
	var forget *graph.Value
	if q.coupled {
		forget = q.Sub(q.Like(in, 1), in)
	} else {
		forget = q.act(0, peep(2, c))
	}
	cell := q.Add(q.Mul(forget, c), q.Mul(in, q.act(1, gates[3])))
	out := q.act(0, peep(1, cell))
	return vals(q.Mul(out, q.function(2, cell)), cell)
}

// act applies activation i to its clipped argument.
func (q *recurrent) act(i int, x *graph.Value) *graph.Value {
	if q.clip > 0 {
		x = q.Op("Clip", vals(x, q.Like(x, -q.clip), q.Like(x, q.clip)))
	}
	return q.function(i, x)
}

// function applies activation i.
func (q *recurrent) function(i int, x *graph.Value) *graph.Value {
	a := q.acts[i]
	alpha, beta := graph.FloatAttr("alpha", float32(a.alpha)), graph.FloatAttr("beta", float32(a.beta))
	switch a.name {
	case "LeakyRelu", "ThresholdedRelu", "Elu":
		return q.Unary(a.name, x, alpha)
	case "HardSigmoid":
		return q.Unary(a.name, x, alpha, beta)
	case "Affine":
		return q.AddScalar(q.MulScalar(x, a.alpha), a.beta)
	case "ScaledTanh":
		return q.MulScalar(q.Unary("Tanh", q.MulScalar(x, a.beta)), a.alpha)
	}
	return q.Unary(a.name, x)
}
