package op

import (
	"gradtool/graph"
)

// maxUnroll is the number of steps up to which a recurrence is written out; longer ones, and those whose
// length only run time tells, become a Scan.
const maxUnroll = 64

// stepFunc builds one step of a recurrence from the step's slices of the inputs and the state before it: the step's
// result and the state after it.
type stepFunc func(b *Builder, x, state []*graph.Value) (y *graph.Value, next []*graph.Value)

// recur builds a recurrence over axis 0 of the inputs, from its end if backward, and returns the results of
// all steps, joined along axis 0 in the order of the inputs, and the last state. The shape is that of one step's result:
// runtimes want at least the ranks of what a Scan computes, so inputs and states must have known ones too.
func recur(b *Builder, step stepFunc, inputs, state []*graph.Value, shape graph.Shape, backward bool) (*graph.Value, []*graph.Value) {
	if s := inputs[0].Type.Shape; len(s) > 0 {
		if n, ok := s[0].Int(); ok && n >= 1 && n <= maxUnroll {
			return unroll(b, step, inputs, state, int(n), backward)
		}
	}
	return scan(b, step, inputs, state, shape, backward)
}

func unroll(b *Builder, step stepFunc, inputs, state []*graph.Value, steps int, backward bool) (*graph.Value, []*graph.Value) {
	ones := make([]int64, steps)
	for i := range ones {
		ones[i] = 1
	}
	parts := make([][]*graph.Value, len(inputs))
	for i, v := range inputs {
		parts[i] = vals(v)
		if steps > 1 {
			parts[i] = b.Node("Split", vals(v, b.Ints(ones...)), steps, graph.IntAttr("axis", 0)).Out
		}
	}
	ys := make([]*graph.Value, steps)
	for s := range steps {
		t := s
		if backward {
			t = steps - 1 - s
		}
		x := make([]*graph.Value, len(inputs))
		for i := range x {
			x[i] = b.Squeeze(parts[i][t], 0)
		}
		var y *graph.Value
		y, state = step(b, x, state)
		ys[t] = b.Unsqueeze(y, 0)
	}
	return b.Concat(0, ys...), state
}

// scan runs the steps in a Scan, whose loop states are those of the recurrence.
func scan(b *Builder, step stepFunc, inputs, state []*graph.Value, shape graph.Shape, backward bool) (*graph.Value, []*graph.Value) {
	m := b.G.Model
	body := m.NewGraph(m.Fresh("step"))
	// Until the Scan holds it, the body is a graph inside b's, so that outer values are in scope.
	body.Parent, body.Func = b.G.Parent, b.G.Func
	var st, x []*graph.Value
	for _, v := range state {
		st = append(st, body.AddInput(m.Fresh("state"), v.Type))
	}
	for _, v := range inputs {
		t := v.Type
		if len(t.Shape) > 0 {
			t.Shape = t.Shape[1:]
		}
		x = append(x, body.AddInput(m.Fresh("slice"), t))
	}
	inner := b.For(body)
	y, next := step(inner, x, st)
	seen := map[*graph.Value]bool{}
	for i, v := range append(append([]*graph.Value{}, next...), y) {
		if seen[v] || v.Def == nil || v.Graph != body { // each output a node's result of its own
			v = inner.Unary("Identity", v)
		}
		seen[v] = true
		if i < len(state) {
			refine(v, state[i].Type.Shape)
		} else {
			refine(v, shape)
		}
		body.AddOutput(v)
	}
	if b.Err == nil {
		b.Err = inner.Err
	}
	attrs := []*graph.Attr{graph.GraphAttr("body", body), graph.IntAttr("num_scan_inputs", int64(len(inputs)))}
	if backward {
		back := make([]int64, len(inputs))
		for i := range back {
			back[i] = 1
		}
		attrs = append(attrs, graph.IntsAttr("scan_input_directions", back...), graph.IntsAttr("scan_output_directions", 1))
	}
	out := b.Node("Scan", append(append([]*graph.Value{}, state...), inputs...), len(state)+1, attrs...).Out
	for i, v := range state {
		out[i].Type = v.Type
	}
	all := out[len(state)]
	all.Type = graph.TensorOf(body.Outputs[len(state)].Type.Elem, append(graph.Shape{graph.Unknown()}, body.Outputs[len(state)].Type.Shape...))
	if s := inputs[0].Type.Shape; len(s) > 0 {
		all.Type.Shape[0] = s[0]
	}
	return all, out[:len(state)]
}

// refine adds what is known of a tensor's shape.
func refine(v *graph.Value, s graph.Shape) {
	v.Type, _ = merge(graph.TensorOf(v.Type.Elem, s), v.Type)
}
