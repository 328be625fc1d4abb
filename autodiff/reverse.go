package autodiff

import (
	"fmt"
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/op/schema"
)

// Seed is an output to differentiate and its cotangent, a value of the same type.
type Seed struct{ Y, Ct *graph.Value }

// Blocker is a node on a gradient path that has no derivative.
type Blocker struct {
	Node   *graph.Node
	Reason string
	From   []string // names of values whose gradients would pass through it, a few of them
}

// BlockedError lists every node that stands in the way of a derivative.
type BlockedError struct{ Blockers []Blocker }

// Error lists the nodes with their reasons, one per line.
func (e *BlockedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cannot differentiate %d %s", len(e.Blockers), plural(len(e.Blockers), "node"))
	for _, x := range e.Blockers {
		fmt.Fprintf(&b, "\n  %s: %s", x.Node.Label(), x.Reason)
		if len(x.From) > 0 {
			fmt.Fprintf(&b, "; on the path from %s", strings.Join(x.From, ", "))
		}
	}
	return b.String()
}

func plural(n int, s string) string {
	if n == 1 {
		return s
	}
	return s + "s"
}

// reverse is one reverse sweep over one graph.
type reverse struct {
	b      *op.Builder
	g      *graph.Graph
	active map[*graph.Value]bool         // depends on a wanted value through float operands
	useful map[*graph.Value]bool         // a differentiated output depends on it so
	cts    map[*graph.Value]*graph.Value // accumulated cotangents
	inside map[*graph.Node][]*flow       // of active nodes that run subgraphs, what is active inside
	plan   LoopPlan
	policy *Policy // exceptions from the table of rules
	from   int     // the sweep is over the nodes of the graph from this one on
	// forward says that tangents are asked for: then a rule's JVP counts, if it has one.
	forward bool
	added   []*graph.Value // results that forward nodes got to hand out residuals
}

// Reverse appends to b's graph the nodes that compute the cotangents of the values wrt, given the seeds,
// and returns them in wrt's order; nil where no seed depends on the value. Every node between must have a rule, else the
// error is a [*BlockedError] that lists all that don't, and the graph is left as it was.
func Reverse(b *op.Builder, seeds []Seed, wrt []*graph.Value) ([]*graph.Value, error) {
	return ReverseLoops(b, seeds, wrt, LoopPlan{})
}

// ReverseLoops is Reverse with a choice of what loops keep for their derivatives.
func ReverseLoops(b *op.Builder, seeds []Seed, wrt []*graph.Value, plan LoopPlan) ([]*graph.Value, error) {
	return ReverseWith(b, seeds, wrt, plan, nil)
}

// ReverseWith is ReverseLoops with exceptions from the table of rules.
func ReverseWith(b *op.Builder, seeds []Seed, wrt []*graph.Value, plan LoopPlan, p *Policy) ([]*graph.Value, error) {
	return reverseIn(b, b.G, seeds, wrt, plan, p)
}

// reverseIn is ReverseWith for a graph g that may be around b's.
func reverseIn(b *op.Builder, g *graph.Graph, seeds []Seed, wrt []*graph.Value, plan LoopPlan, p *Policy) ([]*graph.Value, error) {
	r := &reverse{b: b, g: g, plan: plan, policy: p}
	if err := r.run(seeds, wrt); err != nil {
		return nil, err
	}
	out := make([]*graph.Value, len(wrt))
	for i, v := range wrt {
		out[i] = r.cts[v]
	}
	return out, nil
}

// run sweeps over r's graph.
func (r *reverse) run(seeds []Seed, wrt []*graph.Value) error {
	r.cts = map[*graph.Value]*graph.Value{}
	r.mark(seeds, wrt)
	for {
		if blockers := r.preflight(wrt); len(blockers) > 0 {
			return &BlockedError{blockers}
		}
		if !r.decompose() && !r.segment() {
			break
		}
		r.mark(seeds, wrt)
	}
	if r.b.Err != nil {
		return r.b.Err
	}
	for _, s := range seeds {
		if r.active[s.Y] {
			r.accumulate(s.Y, s.Ct)
		}
	}
	nodes := slices.Clone(r.nodes())
	for _, n := range slices.Backward(nodes) {
		if err := r.node(n); err != nil {
			return err
		}
	}
	return r.b.Err
}

// nodes returns the nodes that r sweeps over.
func (r *reverse) nodes() []*graph.Node { return r.g.Nodes[r.from:] }

// rule returns n's rule, nil without one.
func (r *reverse) rule(n *graph.Node) *Rule { return r.policy.rule(n) }

// mark finds the values on a path from wrt to the seeds.
func (r *reverse) mark(seeds []Seed, wrt []*graph.Value) {
	r.active = map[*graph.Value]bool{}
	for _, v := range wrt {
		r.active[v] = !r.policy.stopsAt(v)
	}
	r.markActive()
	var ys []*graph.Value
	for _, s := range seeds {
		ys = append(ys, s.Y)
	}
	r.useful = map[*graph.Value]bool{}
	r.markUseful(ys)
}

// markActive extends the active values to what depends on them.
func (r *reverse) markActive() {
	r.inside = map[*graph.Node][]*flow{}
	for _, n := range r.nodes() {
		if rule := r.rule(n); rule != nil && (rule.Kind == NoGrad || rule.Kind == ZeroGrad) {
			continue
		}
		if !r.reads(n, r.active) {
			continue
		}
		flows := r.flows(n)
		r.inside[n] = flows
		for i, y := range n.Out {
			if y != nil && carries(y) && !r.policy.stopsAt(y) && (flows == nil || anyFlow(flows, i, (*flow).resultActive)) {
				r.active[y] = true
			}
		}
	}
}

// markUseful adds the values seeds, and the active values that they depend on, to the useful ones.
func (r *reverse) markUseful(seeds []*graph.Value) {
	for _, y := range seeds {
		r.useful[y] = true
	}
	for _, n := range slices.Backward(r.nodes()) {
		if !slices.ContainsFunc(n.Out, func(y *graph.Value) bool { return y != nil && r.active[y] && r.useful[y] }) {
			continue
		}
		if flows := r.inside[n]; flows != nil {
			for _, f := range flows {
				f.useResults(func(i int) bool { y := n.Out[i]; return y != nil && r.active[y] && r.useful[y] })
				for _, x := range f.usefulOutside() {
					r.useful[x] = true
				}
			}
			continue
		}
		for i, x := range operands(n) {
			if x != nil && r.active[x] && !r.stopped(n, i) {
				r.useful[x] = true
			}
		}
	}
}

// reads reports whether n reads one of the values through an operand that takes part in derivatives.
func (r *reverse) reads(n *graph.Node, values map[*graph.Value]bool) bool {
	for i, x := range operands(n) {
		if x != nil && values[x] && !r.stopped(n, i) {
			return true
		}
	}
	return false
}

// operands returns what n reads: its operands and then the outer values its subgraphs capture.
func operands(n *graph.Node) []*graph.Value {
	if c := n.Captures(); len(c) > 0 {
		return append(slices.Clone(n.In), c...)
	}
	return n.In
}

// stopped reports whether operand i of n takes part in no derivative.
func (r *reverse) stopped(n *graph.Node, i int) bool {
	rule := r.rule(n)
	return rule != nil && i < len(n.In) && rule.stops(i)
}

// carriesGradient reports whether values of type t have cotangents. A value of unknown type may.
func carriesGradient(t graph.Type) bool {
	switch t.Kind {
	case graph.KindUnknown:
		return true
	case graph.KindTensor:
		return t.Elem == graph.Undefined || t.Elem.IsDifferentiable()
	case graph.KindSequence, graph.KindOptional:
		return t.Inner == nil || carriesGradient(*t.Inner)
	}
	return false
}

// onPath reports whether a cotangent flows through n.
func (r *reverse) onPath(n *graph.Node) bool {
	return r.reads(n, r.active) &&
		slices.ContainsFunc(n.Out, func(y *graph.Value) bool { return y != nil && r.active[y] && r.useful[y] })
}

// preflight lists the nodes on the path that cannot be differentiated.
func (r *reverse) preflight(wrt []*graph.Value) []Blocker {
	var out []Blocker
	for _, n := range r.nodes() {
		if !r.onPath(n) {
			continue
		}
		reason := ""
		switch rule := r.rule(n); {
		case rule == nil && n.Graph.Model.Function(n.Domain, n.Op, n.Overload) != nil:
			reason = "is a model-local function; inline it first"
		case rule == nil:
			reason = "the operator is not known"
		case rule.Kind == Unsupported:
			reason = "no derivative: " + rule.Reason
		case rule.Check != nil && (!r.forward || rule.JVP == nil):
			if err := rule.Check(n); err != nil {
				reason = err.Error()
			}
		}
		if reason != "" {
			out = append(out, Blocker{n, reason, r.origins(n, wrt)})
			continue
		}
		for _, f := range r.inside[n] {
			for _, inner := range f.r.preflight(nil) {
				inner.From = r.origins(n, wrt)
				out = append(out, inner)
			}
		}
	}
	return out
}

// origins returns up to three of the wanted values that n depends on.
func (r *reverse) origins(n *graph.Node, wrt []*graph.Value) []string {
	want := map[*graph.Value]bool{}
	for _, v := range wrt {
		want[v] = true
	}
	var out []string
	seen := map[*graph.Node]bool{n: true}
	queue := []*graph.Node{n}
	for len(queue) > 0 && len(out) < 3 {
		m := queue[0]
		queue = queue[1:]
		for _, x := range operands(m) {
			if x == nil || !r.active[x] {
				continue
			}
			if want[x] && !slices.Contains(out, x.Name) {
				out = append(out, x.Name)
			}
			if x.Def != nil && !seen[x.Def] {
				seen[x.Def] = true
				queue = append(queue, x.Def)
			}
		}
	}
	return out[:min(len(out), 3)]
}

// node adds the contributions of n to the cotangents of its operands.
func (r *reverse) node(n *graph.Node) error {
	rule := r.rule(n)
	if rule == nil || rule.Kind != HasVJP || rule.VJP == nil || !r.onPath(n) {
		return nil
	}
	ins := operands(n)
	c := &Ctx{Builder: r.b, Node: n, ct: make([]*graph.Value, len(n.Out)), need: make([]bool, len(ins)), rev: r}
	reached := false
	for i, y := range n.Out {
		if y != nil {
			c.ct[i] = r.cts[y]
			reached = reached || c.ct[i] != nil
		}
	}
	if !reached {
		return nil
	}
	for i, x := range ins {
		c.need[i] = x != nil && r.active[x] && carries(x) && !r.stopped(n, i)
	}
	defer r.enter(n, "/grad")()
	cts, err := c.apply(rule.VJP)
	if err != nil {
		return err
	}
	for i, g := range cts {
		if g == nil || !c.Need(i) { // a rule may give more than is asked for, for operands that are omitted too
			continue
		}
		r.accumulate(ins[i], c.fit(g, ins[i]))
	}
	if err := r.b.Err; err != nil {
		return fmt.Errorf("gradient of %s: %w", n.Label(), err)
	}
	return nil
}

// enter makes what is added from now on stem from n, and its names begin with n's and the suffix; the function it returns ends that.
func (r *reverse) enter(n *graph.Node, suffix string) func() {
	b := r.b
	prefix, from := b.Prefix, b.From
	name := n.Name
	if name == "" {
		if y := n.Result(0); y != nil {
			name = y.Name
		}
	}
	b.Prefix, b.From = name+suffix, name
	return func() { b.Prefix, b.From = prefix, from }
}

// accumulate adds g to v's cotangent.
func (r *reverse) accumulate(v, g *graph.Value) {
	if old := r.cts[v]; old != nil {
		g = sum(r.b, old, g)
	}
	r.cts[v] = g
}

// fit brings the contribution g to x's shape and element type.
func (c *Ctx) fit(g, x *graph.Value) *graph.Value {
	if !x.Type.IsTensor() {
		return g
	}
	g = c.SumTo(g, x)
	if quantized(x) { // codes have float cotangents
		return g
	}
	return c.Cast(g, x.Type.Elem)
}

// resultName returns the schema's name of result i of n.
func resultName(n *graph.Node, i int) string {
	if s, ok := schema.Lookup(graph.StdDomain(n.Domain), n.Op, int(n.Opset())); ok && i < len(s.Out) {
		return s.Out[i].Name
	}
	return fmt.Sprint("result", i)
}
