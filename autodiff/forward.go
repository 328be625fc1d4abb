package autodiff

import (
	"fmt"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Tangent is a value and its derivative along a direction, a value of the same type.
type Tangent struct{ X, T *graph.Value }

// Forward appends to b's graph the nodes that compute the derivatives of the values of along the directions that the
// tangents give, and returns them in of's order; nil where the value depends on no tangent. Every node between must
// have a rule, else the error is a [*BlockedError] that lists all that don't, and the graph is left as it was. Nodes that run
// subgraphs compute tangents beside the values, so they get further operands and results.
//
// A value with a tangent may depend on another: the directions add up.
func Forward(b *op.Builder, tangents []Tangent, of []*graph.Value) ([]*graph.Value, error) {
	return ForwardWith(b, tangents, of, nil)
}

// ForwardWith is Forward with exceptions from the table of rules.
func ForwardWith(b *op.Builder, tangents []Tangent, of []*graph.Value, p *Policy) ([]*graph.Value, error) {
	return forwardIn(b, b.G, tangents, of, p)
}

// forwardIn is ForwardWith for a graph g that may be around b's, which then gets copies of nodes that run subgraphs.
func forwardIn(b *op.Builder, g *graph.Graph, tangents []Tangent, of []*graph.Value, p *Policy) ([]*graph.Value, error) {
	// The builder is the sweep's own: constants that it shares may be removed again in the end.
	f := &sweep{r: &reverse{b: b.For(b.G), g: g, policy: p, forward: true}, tangents: map[*graph.Value]*graph.Value{}}
	err := f.run(tangents, of)
	if err == nil {
		err = f.r.b.Err
	}
	if err != nil {
		return nil, err
	}
	out := make([]*graph.Value, len(of))
	for i, y := range of {
		out[i] = f.tangents[y]
	}
	dropUnread(b.G, f.start, out)
	if f.grown {
		return out, b.G.Sort()
	}
	return out, nil
}

// sweep is one forward sweep over one graph.
type sweep struct {
	r        *reverse // knows the graph, the builder and which values are on a path
	tangents map[*graph.Value]*graph.Value
	start    int  // nodes of the builder's graph before the sweep
	grown    bool // a node of the builder's graph reads values that stand behind it
}

func (f *sweep) run(tangents []Tangent, of []*graph.Value) error {
	r := f.r
	var wrt []*graph.Value
	for _, t := range tangents {
		wrt = append(wrt, t.X)
		f.add(t.X, t.T)
	}
	var seeds []Seed
	for _, y := range of {
		seeds = append(seeds, Seed{Y: y})
	}
	for r.mark(seeds, wrt); ; r.mark(seeds, wrt) {
		if blockers := r.preflight(wrt); len(blockers) > 0 {
			return &BlockedError{blockers}
		}
		if !r.decompose() {
			break
		}
	}
	f.start = len(r.b.G.Nodes)
	for _, n := range slices.Clone(r.g.Nodes) {
		if err := f.node(n); err != nil {
			return err
		}
	}
	return nil
}

// add adds t to v's tangent.
func (f *sweep) add(v, t *graph.Value) {
	if old := f.tangents[v]; old != nil {
		t = sum(f.r.b, old, t)
	}
	f.tangents[v] = t
}

// node gives the results of n their tangents.
func (f *sweep) node(n *graph.Node) error {
	r := f.r
	rule := r.rule(n)
	if rule == nil || rule.Kind != HasVJP || !r.onPath(n) {
		return nil
	}
	c := f.ctx(n)
	if !slices.Contains(c.need, true) {
		return nil
	}
	defer r.enter(n, "/jvp")()
	var ts []*graph.Value
	var err error
	switch {
	case framesOf(n) != nil:
		ts, err = f.control(c)
	case rule.JVP != nil:
		ts, err = c.apply(rule.JVP)
	default:
		ts, err = c.derived(rule)
	}
	if err != nil {
		return err
	}
	for i, t := range ts {
		if t != nil && c.wants(i) {
			f.add(c.results[i], c.fitTangent(t, c.results[i]))
		}
	}
	if err := r.b.Err; err != nil {
		return fmt.Errorf("tangent of %s: %w", n.Label(), err)
	}
	return nil
}

// ctx returns what n's rule sees.
func (f *sweep) ctx(n *graph.Node) *Ctx {
	ins := operands(n)
	c := &Ctx{Builder: f.r.b, Node: n, need: make([]bool, len(ins)), rev: f.r,
		tangents: make([]*graph.Value, len(ins)), results: slices.Clone(n.Out)}
	for i, x := range ins {
		if x != nil && carries(x) && !f.r.stopped(n, i) {
			c.tangents[i] = f.tangents[x]
			c.need[i] = c.tangents[i] != nil
		}
	}
	return c
}

// dropUnread removes the nodes of g from the given one on whose results nobody reads, but for those to keep: nodes that a derived
// rule needed on the way alone.
func dropUnread(g *graph.Graph, from int, keep []*graph.Value) {
	kept := map[*graph.Value]bool{}
	for _, v := range keep {
		kept[v] = true
	}
	dead := map[*graph.Node]bool{}
	var list []*graph.Node
	for _, n := range slices.Backward(g.Nodes[from:]) {
		used := slices.ContainsFunc(n.Out, func(v *graph.Value) bool {
			return v != nil && (kept[v] || slices.ContainsFunc(v.Uses(), func(u graph.Use) bool { return u.Node == nil || !dead[outermost(u.Node, g)] }))
		})
		if !used {
			dead[n] = true
			list = append(list, n)
		}
	}
	g.Remove(list...)
}

// outermost returns the node of g that n is, or is nested in.
func outermost(n *graph.Node, g *graph.Graph) *graph.Node {
	for n.Graph != g && n.Graph.Parent != nil {
		n = n.Graph.Parent
	}
	return n
}

// T returns the tangent of operand i; nil if it is zero.
func (c *Ctx) T(i int) *graph.Value {
	if i < len(c.tangents) {
		return c.tangents[i]
	}
	return nil
}

// tangent returns the tangent of operand i, zeros where it is zero.
func (c *Ctx) tangent(i int) *graph.Value {
	if t := c.T(i); t != nil {
		return t
	}
	return zeros(c.Builder, c.X(i))
}

// wants reports whether anybody asks for the tangent of result i.
func (c *Ctx) wants(i int) bool {
	if i >= len(c.results) {
		return false
	}
	y := c.results[i]
	return y != nil && c.rev.active[y] && c.rev.useful[y]
}

// spread returns t in the shape of the result, to which it broadcasts.
func (c *Ctx) spread(t *graph.Value) *graph.Value { return c.ExpandLike(t, c.Y(0)) }

// fitTangent brings t to y's element type.
func (c *Ctx) fitTangent(t, y *graph.Value) *graph.Value {
	if !y.Type.IsTensor() || quantized(y) || !t.Type.IsTensor() {
		return t
	}
	return c.Cast(t, y.Type.Elem)
}

// derived applies a rule without JVP of its own. The VJP u -> J^T u is linear, so its own VJP with respect to u is J,
// whatever u is: the result stands for u, for its shape alone. Nodes that only computed J^T u itself are left to be removed.
func (c *Ctx) derived(rule *Rule) ([]*graph.Value, error) {
	b, n := c.Builder, c.Node
	from := len(b.G.Nodes)
	us := make([]*graph.Value, len(n.Out))
	var wrt []*graph.Value
	for i, y := range n.Out {
		if !c.wants(i) {
			continue
		}
		us[i] = b.Unary("Identity", y)
		if quantized(y) { // codes have float cotangents
			us[i] = b.Cast(y, c.codeElem())
		}
		wrt = append(wrt, us[i])
	}
	v := &Ctx{Builder: b, Node: n, ct: us, need: c.need, rev: c.rev}
	cts, err := v.apply(rule.VJP)
	if err != nil {
		return nil, err
	}
	var seeds []Seed
	for i, x := range operands(n) {
		if i < len(cts) && cts[i] != nil && c.Need(i) {
			seeds = append(seeds, Seed{v.fit(cts[i], x), c.T(i)})
		}
	}
	r := &reverse{b: b, g: b.G, from: from, plan: c.rev.plan}
	if err := r.run(seeds, wrt); err != nil {
		return nil, err
	}
	out := make([]*graph.Value, len(n.Out))
	for i, u := range us {
		if u == nil {
			continue
		}
		out[i] = r.cts[u]
		if u.Type.Elem == n.Out[i].Type.Elem {
			u.ReplaceUses(n.Out[i])
		}
	}
	return out, nil
}

// codeElem is the type of cotangents of the codes that the node takes or returns.
func (c *Ctx) codeElem() graph.DataType {
	for _, v := range append(slices.Clone(c.tangents), c.Node.In...) {
		if v != nil && v.Type.Elem.IsDifferentiable() {
			return v.Type.Elem
		}
	}
	return graph.Float
}
