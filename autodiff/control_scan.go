package autodiff

import (
	"slices"

	"gradtool/graph"
)

// scan is a Scan being differentiated: h' = f(h, x_t), s_t = k(h, x_t). The reverse Scan runs over the same axes in the other
// direction. It carries the cotangents of h and sums of those of captured values, slices what the forward Scan
// read, the cotangents of s, and stacks of forward values, and builds the cotangents of x.
type scan struct {
	*inner
	n       *graph.Node
	states  int
	scanned []scanned // operands of the reverse Scan to slice
}

// scanned is an operand that the reverse Scan slices, and the input of its body that gets the slices.
type scanned struct {
	x, slice   *graph.Value
	axis, from int64 // from is 1 where slicing starts at the end
}

// scanVJP differentiates a Scan. See [scan].
func scanVJP(c *Ctx) []*graph.Value {
	n := c.Node
	s := &scan{inner: c.inner(n.Subgraph("body"), "reverse"), n: n, states: len(n.In) - int(n.Int("num_scan_inputs", 0))}
	s.inner.residual = s.residual
	ct := slices.Clone(c.ct)
	captures, b := n.Captures(), s.b
	fl := c.rev.flows(n)[0]
	fl.useResults(func(i int) bool { return i < len(ct) && ct[i] != nil })

	var seeds []Seed
	var wrt, params []*graph.Value
	var states []state
	for k := range s.states {
		if !fl.stateful(k) {
			continue
		}
		y := c.Want(k)
		init := ct[k]
		if init == nil {
			init = zeros(c.Builder, y)
		}
		states = append(states, state{at: k, init: init})
		d := b.Param("cotangent", y.Type)
		params = append(params, d)
		seeds = append(seeds, Seed{s.g.Outputs[k], d})
		wrt = append(wrt, s.g.Inputs[k])
	}
	for k := s.states; k < len(ct); k++ {
		if ct[k] != nil {
			y := s.g.Outputs[k]
			axis, dir := element(n.Ints("scan_output_axes"), k-s.states), element(n.Ints("scan_output_directions"), k-s.states)
			seeds = append(seeds, Seed{y, s.slice(ct[k], y, axis, 1-dir)})
		}
	}
	for k := s.states; k < len(n.In); k++ {
		if c.Need(k) {
			wrt = append(wrt, s.g.Inputs[k])
		}
	}
	for i, v := range captures {
		if c.Need(len(n.In) + i) {
			wrt = append(wrt, v)
		}
	}
	if err := s.run(seeds, wrt); err != nil {
		c.Err = err
		return nil
	}
	var outs []*graph.Value
	for _, st := range states {
		outs = append(outs, s.cotangent(s.g.Inputs[st.at]))
	}
	for i, v := range captures {
		if g := s.cts[v]; g != nil && c.Need(len(n.In)+i) {
			states = append(states, state{at: len(n.In) + i, init: zeros(c.Builder, v)})
			acc := b.Param("sum", v.Type)
			params = append(params, acc)
			outs = append(outs, sum(b, acc, g))
		}
	}
	var axes, dirs []int64 // of the stacked results
	var stacked []int      // operands whose cotangents they are
	for k := s.states; k < len(n.In); k++ {
		if g := s.cts[s.g.Inputs[k]]; g != nil && c.Need(k) {
			outs = append(outs, g)
			stacked = append(stacked, k)
			axes = append(axes, element(n.Ints("scan_input_axes"), k-s.states))
			dirs = append(dirs, 1-element(n.Ints("scan_input_directions"), k-s.states))
		}
	}
	if len(outs) == 0 {
		return nil
	}
	s.finish(outs...)
	if err := c.Info.Node(n); err != nil && c.Err == nil {
		c.Err = err
	}
	if len(s.scanned) == 0 { // a Scan slices something; the first operand tells how long it is
		s.residual(s.g.Inputs[s.states])
	}
	back := s.emit(states, params, outs, axes, dirs)
	cts := make([]*graph.Value, len(n.In)+len(captures))
	for i, st := range states {
		cts[st.at] = back.Out[i]
	}
	for i, k := range stacked {
		cts[k] = back.Out[len(states)+i]
	}
	return cts
}

// emit adds the reverse Scan.
func (s *scan) emit(states []state, params, outs []*graph.Value, outAxes, outDirs []int64) *graph.Node {
	var args []*graph.Value
	var axes, dirs []int64
	for _, st := range states {
		args = append(args, st.init)
	}
	for _, x := range s.scanned {
		args = append(args, x.x)
		params = append(params, x.slice)
		axes, dirs = append(axes, x.axis), append(dirs, x.from)
	}
	s.b.G.Inputs = params
	return s.c.Builder.Node("Scan", args, len(outs), graph.GraphAttr("body", s.b.G), graph.IntAttr("num_scan_inputs", int64(len(s.scanned))),
		graph.IntsAttr("scan_input_axes", axes...), graph.IntsAttr("scan_input_directions", dirs...),
		graph.IntsAttr("scan_output_axes", outAxes...), graph.IntsAttr("scan_output_directions", outDirs...))
}

// slice has the reverse Scan slice x and returns the slices, which are like v.
func (s *scan) slice(x, v *graph.Value, axis, from int64) *graph.Value {
	p := s.b.Param(v.Name, v.Type)
	s.scanned = append(s.scanned, scanned{x, p, axis, from})
	return p
}

// residual returns the value of v in the forward iteration that the reverse one belongs to, nil where that is to be
// computed again.
func (s *scan) residual(v *graph.Value) *graph.Value {
	k := slices.Index(s.g.Inputs, v)
	if k >= s.states {
		axis, dir := element(s.n.Ints("scan_input_axes"), k-s.states), element(s.n.Ints("scan_input_directions"), k-s.states)
		return s.slice(s.n.In[k], v, axis, 1-dir)
	}
	if k >= 0 && s.g.Outputs[k] == v {
		return s.n.In[k] // never changes
	}
	if !v.Type.IsTensor() || k < 0 && !constantShape(s.n, v) && !isRandom(v.Def) {
		return nil // what has another shape in each iteration cannot be stacked: it is computed again
	}
	c := s.c
	addOutput(forward(c, s.g), v)
	y := s.n.DefineOut(len(s.g.Outputs)-1, c.G.Model.Fresh(v.Name+"_stack"))
	c.rev.added = append(c.rev.added, y)
	y.Type = graph.TensorOf(v.Type.Elem, nil)
	if t := v.Type.Shape; t != nil {
		y.Type.Shape = append(graph.Shape{graph.Unknown()}, t...)
	}
	for _, name := range []string{"scan_output_axes", "scan_output_directions"} {
		if list := s.n.Ints(name); list != nil {
			s.n.SetAttr(graph.IntsAttr(name, append(slices.Clone(list), 0)...))
		}
	}
	return s.slice(y, v, 0, 1)
}

// element returns element i of an optional list whose default is 0.
func element(list []int64, i int) int64 {
	if i < len(list) {
		return list[i]
	}
	return 0
}
