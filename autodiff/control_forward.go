package autodiff

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// control gives the tangents of the results of a node that runs subgraphs. The subgraphs compute tangents beside the
// values: an If returns them too, a Loop and a Scan carry, slice and stack them like what they belong to. If the node is not in
// the graph that tangents are added to, a copy of it there does so.
func (f *sweep) control(c *Ctx) ([]*graph.Value, error) {
	n := c.Node
	if b := f.r.b; n.Graph != b.G {
		cl := &graph.Cloner{To: b.G.Model, Prefix: b.Prefix + "/", KeepTypes: true}
		m, err := cl.Node(b.G, n)
		if err != nil {
			return nil, err
		}
		b.Put(m)
		n = m
	}
	f.grown = true
	k := &controlled{sweep: f, c: c, n: n, flows: f.r.flows(n), tangents: make([]*graph.Value, len(n.Out))}
	var err error
	switch {
	case n.Is("If"):
		err = k.branches()
	case n.Is("Loop"):
		err = k.loop()
	default:
		err = k.scan()
	}
	if err == nil {
		err = f.r.b.Info.Node(n)
	}
	return k.tangents, err
}

// controlled is a node that runs subgraphs, in forward mode.
type controlled struct {
	*sweep
	c        *Ctx // of the node, or of what it is a copy of
	n        *graph.Node
	flows    []*flow
	tangents []*graph.Value // of the results that n had at first
}

// inside sweeps over a subgraph of n, the inputs of which have the given tangents, and returns the builder
// and the tangents of the outputs at the indices of.
func (k *controlled) inside(g *graph.Graph, given map[*graph.Value]*graph.Value, of []int) (*op.Builder, []*graph.Value, error) {
	b := k.r.b.For(g)
	var tangents []Tangent
	for _, v := range g.Inputs {
		if t := given[v]; t != nil {
			tangents = append(tangents, Tangent{v, t})
		}
	}
	for _, v := range k.n.Captures() {
		if t := k.sweep.tangents[v]; t != nil {
			tangents = append(tangents, Tangent{v, t})
		}
	}
	var ys []*graph.Value
	for _, i := range of {
		ys = append(ys, g.Outputs[i])
	}
	ts, err := forwardIn(b, g, tangents, ys, k.r.policy)
	return b, ts, err
}

// result adds a result for the tangent of y in front of result i, or behind the last.
func (k *controlled) result(i int, y *graph.Value) *graph.Value {
	t := k.n.InsertOut(i, k.n.Graph.Model.Fresh(k.r.b.Prefix+"/"+y.Name))
	t.Type = tangentType(y.Type)
	return t
}

// tangentType is the type of tangents of values of type t.
func tangentType(t graph.Type) graph.Type {
	t = cotangentType(t)
	t.Shape = t.Shape.Clone()
	return t
}

// branches: y = If(c){f(x)}{g(x)}; the tangents are If(c){those of f}{those of g}.
func (k *controlled) branches() error {
	var wanted []int
	for i := range k.n.Out {
		if k.c.wants(i) {
			wanted = append(wanted, i)
		}
	}
	var bs [2]*op.Builder
	var ts [2][]*graph.Value
	for s, fl := range k.flows {
		var err error
		if bs[s], ts[s], err = k.inside(fl.g, nil, wanted); err != nil {
			return err
		}
	}
	for j, i := range wanted {
		if ts[0][j] == nil && ts[1][j] == nil {
			continue
		}
		for s, fl := range k.flows {
			t := ts[s][j]
			if t == nil {
				t = zeros(bs[s], fl.g.Outputs[i])
			}
			addOutput(bs[s], t)
		}
		k.tangents[i] = k.result(len(k.n.Out), k.n.Out[i])
	}
	return firstError(bs[0].Err, bs[1].Err)
}

// loop: x' = f(i, x), s_i = h(i, x) becomes, with t the tangents of x, (x', t') = (f(i, x), Df t), and stacks the tangents of
// s_i too.
func (k *controlled) loop() error {
	n, fl := k.n, k.flows[0]
	fl.useResults(k.c.wants)
	body, carried := fl.g, fl.carried
	outer := k.r.b
	given := map[*graph.Value]*graph.Value{}
	var states []int // that have tangents
	for s := range carried {
		if !fl.stateful(s) {
			continue
		}
		states = append(states, s)
		t := k.c.T(2 + s)
		if t == nil {
			t = zeros(outer, n.In[2+s])
		}
		n.SetIn(len(n.In), t)
		x := body.Inputs[2+s]
		given[x] = body.AddInput(outer.G.Model.Fresh(outer.Prefix+"/"+x.Name), tangentType(x.Type))
	}
	stacks := k.stacks(carried)
	b, ts, err := k.inside(body, given, shifted(1, states, stacks))
	if err != nil {
		return err
	}
	outs := slices.Clone(body.Outputs)
	next := k.next(b, fl, 1, states, ts)
	at := 1 + carried
	outs = slices.Insert(outs, at, next...)
	body.SetOutputs(outs...)
	k.carriedResults(carried, states)
	k.stackedResults(b, stacks, ts[len(states):])
	return b.Err
}

// shifted returns the indices among a body's outputs of the results given by index, for a body whose results begin at output at.
func shifted(at int, lists ...[]int) []int {
	var out []int
	for _, i := range slices.Concat(lists...) {
		out = append(out, at+i)
	}
	return out
}

// stacks returns the wanted results that are stacked.
func (k *controlled) stacks(carried int) []int {
	var out []int
	for i := carried; i < len(k.n.Out); i++ {
		if k.c.wants(i) {
			out = append(out, i)
		}
	}
	return out
}

// next returns the tangents of the carried values after an iteration, fit to be outputs of the body.
func (k *controlled) next(b *op.Builder, fl *flow, outAt int, states []int, ts []*graph.Value) []*graph.Value {
	var next []*graph.Value
	for j, s := range states {
		t := ts[j]
		if t == nil {
			t = zeros(b, fl.g.Outputs[outAt+s])
		}
		if t.Def == nil || t.Graph != fl.g || t.IsOutput() || slices.Contains(next, t) {
			t = b.Unary("Identity", t)
		}
		next = append(next, t)
	}
	return next
}

// carriedResults inserts the tangents of the carried values among the results, behind the carried values.
func (k *controlled) carriedResults(carried int, states []int) {
	n := k.n
	old := slices.Clone(n.Out[:min(carried, len(n.Out))])
	for len(n.Out) < carried { // results that the file omits at the end
		n.Out = append(n.Out, nil)
		old = append(old, nil)
	}
	for j, s := range states {
		y := old[s]
		if y == nil {
			y = n.In[k.flows[0].opAt+s]
		}
		t := k.result(carried+j, y)
		if s < len(k.tangents) {
			k.tangents[s] = t
		}
	}
}

// stackedResults adds the tangents of stacked results, given the results' indices at first and the tangents of what is stacked.
func (k *controlled) stackedResults(b *op.Builder, stacks []int, ts []*graph.Value) {
	shift := len(k.n.Out) - max(len(k.tangents), k.flows[0].carried) // by the carried tangents
	for j, i := range stacks {
		if ts[j] == nil {
			continue
		}
		// The file may omit results at the end that the body returns: the new one comes behind those.
		for len(k.n.Out) < len(k.flows[0].g.Outputs)-k.flows[0].outAt {
			k.n.Out = append(k.n.Out, nil)
		}
		addOutput(b, ts[j])
		k.tangents[i] = k.result(len(k.n.Out), k.n.Out[i+shift])
	}
}

// scan: as loop; tangents of what is sliced are sliced the same way.
func (k *controlled) scan() error {
	n, fl := k.n, k.flows[0]
	fl.useResults(k.c.wants)
	body, carried, operands := fl.g, fl.carried, len(n.In)
	outer := k.r.b
	given := map[*graph.Value]*graph.Value{}
	fresh := func(i int) *graph.Value {
		x := body.Inputs[i]
		given[x] = body.AddInput(outer.G.Model.Fresh(outer.Prefix+"/"+x.Name), tangentType(x.Type))
		return given[x]
	}
	var states []int
	var inits, params, slicedFrom, parts []*graph.Value
	for s := range carried {
		if !fl.stateful(s) {
			continue
		}
		t := k.c.T(s)
		if t == nil {
			t = zeros(outer, n.In[s])
		}
		states, inits, params = append(states, s), append(inits, t), append(params, fresh(s))
	}
	axes, dirs := n.Ints("scan_input_axes"), n.Ints("scan_input_directions")
	var newAxes, newDirs []int64
	for i := carried; i < operands; i++ {
		if t := k.c.T(i); t != nil && fl.r.useful[body.Inputs[i]] {
			slicedFrom, parts = append(slicedFrom, t), append(parts, fresh(i))
			newAxes, newDirs = append(newAxes, element(axes, i-carried)), append(newDirs, element(dirs, i-carried))
		}
	}
	for i, x := range slices.Concat(n.In[:carried:carried], inits, n.In[carried:operands:operands], slicedFrom) {
		n.SetIn(i, x)
	}
	body.Inputs = slices.Concat(body.Inputs[:carried:carried], params, body.Inputs[carried:operands:operands], parts)
	scanned := operands - carried
	n.SetAttr(graph.IntAttr("num_scan_inputs", int64(scanned+len(slicedFrom))))
	extend(n, "scan_input_axes", scanned, newAxes)
	extend(n, "scan_input_directions", scanned, newDirs)

	stacks := k.stacks(carried)
	outAxes, outDirs := n.Ints("scan_output_axes"), n.Ints("scan_output_directions")
	stacked := len(body.Outputs) - carried
	b, ts, err := k.inside(body, given, shifted(0, states, stacks))
	if err != nil {
		return err
	}
	next := k.next(b, fl, 0, states, ts)
	body.SetOutputs(slices.Insert(slices.Clone(body.Outputs), carried, next...)...)
	k.carriedResults(carried, states)
	ts = ts[len(states):]
	k.stackedResults(b, stacks, ts)
	newAxes, newDirs = nil, nil
	for j, i := range stacks {
		if ts[j] != nil {
			newAxes, newDirs = append(newAxes, element(outAxes, i-carried)), append(newDirs, element(outDirs, i-carried))
		}
	}
	extend(n, "scan_output_axes", stacked, newAxes)
	extend(n, "scan_output_directions", stacked, newDirs)
	return b.Err
}

// extend appends to an optional list, of n elements and 0 by default.
func extend(n *graph.Node, name string, size int, more []int64) {
	list := n.Ints(name)
	if list == nil && !slices.ContainsFunc(more, func(x int64) bool { return x != 0 }) {
		return
	}
	list = slices.Clone(list)
	for len(list) < size {
		list = append(list, 0)
	}
	n.SetAttr(graph.IntsAttr(name, append(list, more...)...))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
