package autodiff

import (
	"slices"

	"gradtool/graph"
)

// frame tells how the operands and results of a node relate to the inputs and outputs of a graph that it runs: operand
// opAt+i is given to input inAt+i, and output outAt+i becomes result i, at first as input inAt+i of the next
// iteration if i < carried.
type frame struct {
	g                 *graph.Graph
	opAt, inAt, outAt int
	carried           int
}

// framesOf returns the frames of the graphs that n runs, nil for nodes without.
func framesOf(n *graph.Node) []frame {
	body := n.Subgraph("body")
	switch {
	case n.Is("If") && n.Subgraph("then_branch") != nil && n.Subgraph("else_branch") != nil:
		return []frame{{g: n.Subgraph("then_branch"), opAt: 1}, {g: n.Subgraph("else_branch"), opAt: 1}}
	case body == nil:
	case n.Is("Loop"):
		return []frame{{g: body, opAt: 2, inAt: 2, outAt: 1, carried: max(len(n.In)-2, 0)}}
	case n.Is("Scan"):
		return []frame{{g: body, carried: len(n.In) - int(n.Int("num_scan_inputs", 0))}}
	case n.Is("SequenceMap"):
		return []frame{{g: body}}
	}
	return nil
}

// flow is what is active and useful in a graph that a node runs.
type flow struct {
	frame
	n *graph.Node
	r *reverse // over the graph; its marks hold for every iteration
}

// flows returns the active values inside the graphs that n runs, given those around it.
func (r *reverse) flows(n *graph.Node) []*flow {
	var out []*flow
	for _, fr := range framesOf(n) {
		f := &flow{frame: fr, n: n, r: &reverse{b: r.b, g: fr.g, plan: r.plan, policy: r.policy, forward: r.forward, active: map[*graph.Value]bool{}, useful: map[*graph.Value]bool{}}}
		for _, v := range n.Captures() {
			if r.active[v] {
				f.r.active[v] = true
			}
		}
		for i := f.opAt; i < len(n.In); i++ {
			if x := n.In[i]; x != nil && r.active[x] {
				f.activate(f.inAt + i - f.opAt)
			}
		}
		for {
			f.r.markActive()
			grown := false
			for k := range f.carried {
				if out := f.g.Outputs[f.outAt+k]; f.r.active[out] && f.activate(f.inAt+k) {
					grown = true
				}
			}
			if !grown {
				break
			}
		}
		out = append(out, f)
	}
	return out
}

// activate makes input i active and reports whether it was not.
func (f *flow) activate(i int) bool {
	if i >= len(f.g.Inputs) {
		return false
	}
	v := f.g.Inputs[i]
	if f.r.active[v] || !carriesGradient(v.Type) {
		return false
	}
	f.r.active[v] = true
	return true
}

func anyFlow(flows []*flow, i int, f func(*flow, int) bool) bool {
	return slices.ContainsFunc(flows, func(x *flow) bool { return f(x, i) })
}

// resultActive reports whether result i of the node depends on an active value.
func (f *flow) resultActive(i int) bool {
	return f.outAt+i < len(f.g.Outputs) && f.r.active[f.g.Outputs[f.outAt+i]] || i < f.carried && f.r.active[f.g.Inputs[f.inAt+i]]
}

// useResults marks what the useful results of the node depend on.
func (f *flow) useResults(useful func(i int) bool) {
	var ys []*graph.Value
	for i := range f.n.Out {
		if useful(i) && f.outAt+i < len(f.g.Outputs) {
			ys = append(ys, f.g.Outputs[f.outAt+i])
			if i < f.carried { // of no iteration at all, the result is the operand
				f.r.useful[f.g.Inputs[f.inAt+i]] = true
			}
		}
	}
	for {
		f.r.markUseful(ys)
		grown := false
		for k := range f.carried {
			y := f.g.Outputs[f.outAt+k]
			if f.r.useful[f.g.Inputs[f.inAt+k]] && !slices.Contains(ys, y) {
				ys, grown = append(ys, y), true
			}
		}
		if !grown {
			return
		}
	}
}

// usefulOutside returns the active operands and captured values of the node that are useful inside.
func (f *flow) usefulOutside() []*graph.Value {
	var out []*graph.Value
	for i := f.opAt; i < len(f.n.In); i++ {
		if in := f.inAt + i - f.opAt; in < len(f.g.Inputs) {
			if v := f.g.Inputs[in]; f.r.active[v] && f.r.useful[v] {
				out = append(out, f.n.In[i])
			}
		}
	}
	for _, v := range f.n.Captures() {
		if f.r.active[v] && f.r.useful[v] {
			out = append(out, v)
		}
	}
	return out
}

// stateful reports whether carried value k needs a cotangent from iteration to iteration.
func (f *flow) stateful(k int) bool {
	v := f.g.Inputs[f.inAt+k]
	return f.r.active[v] && (f.r.useful[v] || f.r.useful[f.g.Outputs[f.outAt+k]])
}
