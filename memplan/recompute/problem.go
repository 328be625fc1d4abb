// Package recompute fits a model into a memory budget by computing some values again instead of keeping them
// (rematerialization): it states the problem as a graph of package remat, finds plans for budgets, and writes a plan
// into the model, so that runtimes that know nothing of it hold to it.
package recompute

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/memplan"
	"gradtool/memplan/remat"
)

// Problem is a model's main graph as a graph of units. A unit is a node with its results; views of them belong to it, as
// they take neither memory nor time. Inputs, initializers and constants take no part: they are there from beginning to
// end. Where a node has results that are graph outputs and others that are not, the outputs are a unit of their own,
// which is kept to the end; so are results that are small beside the first, such as the mask of a Dropout, which often
// live longer: they are kept to their last reader. The last unit stands for the end of the run and reads all outputs.
// Bytes are those that values take in an arena, so that what a plan says it needs is what one without gaps has.
type Problem struct {
	Model *graph.Model
	Graph *remat.Graph
	Nodes []*graph.Node // by unit; nil for results held apart and for the end
	FLOPs []float64     // by unit, as the operator table counts them
	Peak  int64         // of the order that the graph has, views and results in place included, in bytes of an arena

	given  []int32                // the units in the order of Options.Given
	of     map[*graph.Value]int32 // unit of each result
	kept   map[*graph.Value]bool  // graph outputs, and what they are views of
	copies map[*graph.Value]bool  // graph outputs that are views of what lies elsewhere
	twin   map[int32]int32        // units of one node
}

// Options says what a problem is made of.
type Options struct {
	Policy Policy
	Costs  Costs
	Given  []*graph.Node // another order of the nodes, from which plans are looked for too; may be nil
}

// New states the problem of m's main graph, whose nodes must be sorted and canonical, with types inferred and the sizes
// of symbolic dimensions given. Values whose size nobody knows before the model runs count nothing.
func New(m *graph.Model, opt Options) (*Problem, error) {
	live, err := memplan.Analyze(m.Graph, nil, memplan.Options{})
	if err != nil {
		return nil, err
	}
	p := &Problem{Model: m, Graph: &remat.Graph{}, Peak: live.RoundedPeak(), of: map[*graph.Value]int32{}, twin: map[int32]int32{}, copies: memplan.Copies(m.Graph)}
	space := map[*graph.Node]int64{}
	for _, b := range live.Buffers {
		if b.Node != nil {
			space[b.Node] += memplan.Aligned(b.Bytes)
		}
	}
	elsewhere := map[*graph.Value]bool{} // lies where an input lay
	for _, s := range live.State {
		elsewhere[s.To] = true
	}
	exact := func(v *graph.Value) int64 {
		if v == nil || elsewhere[v] {
			return 0
		}
		n, _ := memplan.SizeOf(v.Type).Int()
		return max(n, 0)
	}
	bytes := func(v *graph.Value) int64 { return memplan.Aligned(exact(v)) }
	p.kept = outputsOf(m.Graph)
	price, err := opt.Costs.prices(m.Graph)
	if err != nil {
		return nil, err
	}
	var end []int32
	for _, n := range m.Graph.Nodes {
		if !p.isUnit(n) {
			continue
		}
		if p.isTwin(n) {
			u := p.add(n, bytes(n.Out[0]), p.parents(n))
			p.Graph.Cost[u], p.FLOPs[u] = price(n)
			p.Graph.Extra[u] = space[n]
			p.Graph.Once[u] = handle(n) == nil || opt.Policy.keeps(n)
			p.of[n.Out[0]], p.of[n.Out[1]] = u, p.addTwin(n, u, bytes(n.Out[1]))
			continue
		}
		main := p.mainResult(n)
		var own, out, side int64 // bytes of results that go with the main one, that are outputs, and that are small
		isOut, isSide, isOwn := false, false, false
		for _, v := range n.Out {
			switch {
			case v == nil:
			case p.kept[v]:
				out, isOut = out+bytes(v), true
			case v != main && 2*exact(v) <= exact(main):
				side, isSide = side+bytes(v), true
			default:
				own, isOwn = own+bytes(v), true
			}
		}
		if !isOwn && !isOut { // no result of size
			own, side, isOwn, isSide = side, 0, true, false
		}
		u := p.add(n, own, p.parents(n))
		g := p.Graph
		g.Cost[u], p.FLOPs[u] = price(n)
		g.Extra[u] = space[n]
		g.Once[u] = !isOwn || handle(n) == nil || opt.Policy.keeps(n)
		outs, sides := u, u
		if isOut && isOwn {
			outs = p.apart(u, out)
		} else {
			g.Memory[u] += out
		}
		if isSide {
			sides = p.apart(u, side)
		}
		if isOut {
			end = append(end, outs)
		}
		for _, v := range n.Out {
			switch {
			case v == nil:
			case p.kept[v]:
				p.of[v] = outs
			case isSide && v != main && 2*exact(v) <= exact(main):
				p.of[v] = sides
			default:
				p.of[v] = u
			}
		}
		p.takes(n, u)
	}
	last := p.add(nil, 0, end)
	p.Graph.Names[last], p.Graph.Once[last] = "the end", true
	if opt.Given != nil {
		p.giveOrder(opt.Given)
	}
	return p, nil
}

// giveOrder notes the units in another order of the nodes.
func (p *Problem) giveOrder(order []*graph.Node) {
	units := map[*graph.Node][]int32{}
	var at *graph.Node
	for u, n := range p.Nodes {
		if n != nil {
			at = n
		}
		if u < len(p.Nodes)-1 {
			units[at] = append(units[at], int32(u)) // results held apart follow the node
		}
	}
	for _, n := range order {
		p.given = append(p.given, units[n]...)
	}
	p.given = append(p.given, int32(len(p.Nodes)-1))
}

// mainResult returns the first result of n that is no output, nil if there is none.
func (p *Problem) mainResult(n *graph.Node) *graph.Value {
	for _, v := range n.Out {
		if v != nil && !p.kept[v] {
			return v
		}
	}
	return nil
}

// apart adds a unit for results of unit u that are held apart from the others.
func (p *Problem) apart(u int32, bytes int64) int32 {
	h := p.add(nil, bytes, []int32{u})
	p.Graph.Names[h], p.Graph.Once[h] = p.Graph.Names[u], true
	p.Graph.Extra[u] += bytes
	return h
}

// outputsOf returns the values that must be there at the end: graph outputs, and what those among them view.
func outputsOf(g *graph.Graph) map[*graph.Value]bool {
	list := map[*graph.Value]bool{}
	for _, v := range g.Outputs {
		for ; v != nil; v = memplan.Viewed(v) {
			list[v] = true
		}
	}
	return list
}

// viewed is [memplan.Viewed] but for views that must be copies.
func (p *Problem) viewed(v *graph.Value) *graph.Value {
	if p.copies[v] {
		return nil
	}
	return memplan.Viewed(v)
}

// isUnit reports whether n computes something that takes memory.
func (p *Problem) isUnit(n *graph.Node) bool {
	for _, v := range n.Out {
		if v != nil && (p.viewed(v) != nil || memplan.Constant(v)) {
			return false
		}
	}
	return true
}

// add appends a unit.
func (p *Problem) add(n *graph.Node, memory int64, parents []int32) int32 {
	g := p.Graph
	u := int32(len(p.Nodes))
	p.Nodes = append(p.Nodes, n)
	p.FLOPs = append(p.FLOPs, 0)
	name := ""
	if n != nil {
		name = n.Label()
	}
	g.Names = append(g.Names, name)
	g.Memory = append(g.Memory, memory)
	g.Cost = append(g.Cost, 0)
	g.Extra = append(g.Extra, 0)
	g.Once = append(g.Once, false)
	g.Takes = append(g.Takes, nil)
	g.Parents = append(g.Parents, parents)
	g.Order = append(g.Order, u)
	return u
}

// operands returns what n reads, with what its subgraphs capture.
func operands(n *graph.Node) []*graph.Value {
	var list []*graph.Value
	for _, v := range n.In {
		if v != nil {
			list = append(list, v)
		}
	}
	return append(list, n.Captures()...)
}

// parents returns the units whose results n reads: those of its operands, and behind views those of the operands that
// shape them, which must be there when a view is made anew.
func (p *Problem) parents(n *graph.Node) []int32 {
	var list []int32
	seen := map[*graph.Value]bool{}
	var visit func(v *graph.Value)
	visit = func(v *graph.Value) {
		if v == nil || seen[v] || v.Def == nil || v.Graph != n.Graph {
			return
		}
		seen[v] = true
		if !p.isUnit(v.Def) {
			for _, w := range v.Def.In {
				visit(w)
			}
			return
		}
		if u := p.unitOf(v); u >= 0 && !slices.Contains(list, u) {
			list = append(list, u)
		}
	}
	for _, v := range operands(n) {
		visit(v)
	}
	return list
}

// unitOf returns the unit that v, the result of a unit's node, belongs to, -1 for none.
func (p *Problem) unitOf(v *graph.Value) int32 {
	if u, ok := p.of[v]; ok {
		return u
	}
	return -1
}

// takes enters the operands over which the node's result may be written.
func (p *Problem) takes(n *graph.Node, u int32) {
	if len(n.Out) == 0 || n.Out[0] == nil {
		return
	}
	for _, x := range memplan.Overwritable(n) {
		r := x
		for p.viewed(r) != nil {
			r = p.viewed(r)
		}
		if r.Def == nil || !p.isUnit(r.Def) || r.Graph != n.Graph {
			continue
		}
		from := p.unitOf(r)
		if from < 0 || p.Graph.Memory[from] != p.Graph.Memory[u] || p.of[n.Out[0]] != u || p.kept[r] || slices.Contains(p.Graph.Takes[u], from) {
			continue
		}
		if op.KindOf(n) == op.KindScatter && p.readsBeside(n, from) {
			continue
		}
		p.Graph.Takes[u] = append(p.Graph.Takes[u], from)
	}
}

// readsBeside reports whether operands of n beside the first belong to a unit.
func (p *Problem) readsBeside(n *graph.Node, u int32) bool {
	for _, v := range n.In[1:] {
		for v != nil && p.viewed(v) != nil {
			v = p.viewed(v)
		}
		if v != nil && v.Def != nil && p.isUnit(v.Def) && p.unitOf(v) == u {
			return true
		}
	}
	return false
}

// Again returns how many nodes a sequence computes again, and their FLOPs.
func (p *Problem) Again(sequence []int32) (nodes int, flops float64) {
	seen := map[*graph.Node]bool{}
	for k := 0; k < len(sequence); k += p.together(sequence, k) {
		n := p.Nodes[sequence[k]]
		if n != nil && seen[n] {
			nodes++
			flops += p.FLOPs[sequence[k]]
		}
		seen[n] = true
	}
	return nodes, flops
}

// Work returns the FLOPs of the model.
func (p *Problem) Work() (flops float64) {
	for u := 0; u < len(p.FLOPs); u += p.together(p.Graph.Order, u) {
		flops += p.FLOPs[u]
	}
	return flops
}

// label names a unit in messages.
func (p *Problem) label(u int32) string {
	switch {
	case p.Nodes[u] != nil:
		return p.Graph.Names[u]
	case int(u) == len(p.Nodes)-1:
		return "the end of the run, where all outputs are kept"
	}
	return "other results of " + p.Graph.Names[u]
}
