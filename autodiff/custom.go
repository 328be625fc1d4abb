package autodiff

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Suffixes of the names of functions that are rules.
const (
	vjpSuffix = "_vjp"
	jvpSuffix = "_jvp"
)

// IsRule reports whether a function is a derivative rule, by its name, and of which operator.
func IsRule(f *graph.Function) (op.Key, bool) {
	for _, suffix := range []string{vjpSuffix, jvpSuffix} {
		if name, ok := strings.CutSuffix(f.Name, suffix); ok && name != "" {
			return op.Key{Domain: graph.StdDomain(f.Domain), Name: name}, true
		}
	}
	return op.Key{}, false
}

// CustomRules returns the derivative rules that the functions of a model are, for use as [Policy.Custom]. A function D.Op_vjp is
// the VJP of operator D.Op: its inputs are the operands, the results and the cotangents of the results, in order, its outputs the
// cotangents of the operands. D.Op_jvp is the JVP: operands, results and tangents of the operands to tangents of the results. One of them
// is enough: each follows from the other, as both are linear in their last inputs. The function gets those of the node's
// attributes that it declares. Operands that the node omits, and what stands for derivatives of values that are no floats, are
// omitted. Functions of other names are helpers, which the rules may call. The model is changed on the way.
func CustomRules(m *graph.Model) (map[op.Key]*Rule, error) {
	if err := op.Inline(m, func(f *graph.Function) bool { _, ok := IsRule(f); return ok }); err != nil {
		return nil, err
	}
	if err := op.Upgrade(m); err != nil {
		return nil, err
	}
	rules := map[op.Key]*Rule{}
	for _, f := range m.Functions {
		k, ok := IsRule(f)
		if !ok {
			continue
		}
		r := rules[k]
		if r == nil {
			r = &Rule{Domain: k.Domain, Name: k.Name, Kind: HasVJP}
			rules[k] = r
		}
		if strings.HasSuffix(f.Name, vjpSuffix) {
			r.VJP = func(c *Ctx) []*graph.Value { return c.customVJP(f) }
		} else {
			r.JVP = func(c *Ctx) []*graph.Value { return c.customJVP(f, c.tangents) }
		}
	}
	if len(rules) == 0 {
		return nil, errors.New("it has no function whose name ends in " + vjpSuffix + " or " + jvpSuffix)
	}
	for _, r := range rules {
		if r.VJP == nil {
			jvp := r.JVP
			r.VJP = func(c *Ctx) []*graph.Value { return c.transposedJVP(jvp) }
		}
	}
	return rules, nil
}

// customVJP applies a function that is a VJP.
func (c *Ctx) customVJP(f *graph.Function) []*graph.Value {
	n := c.Node
	in := c.primals(f)
	for i, y := range n.Out {
		in = append(in, c.orZeros(c.Ct(i), y))
	}
	return c.call(f, in, len(n.In))
}

// customJVP applies a function that is a JVP.
func (c *Ctx) customJVP(f *graph.Function, tangents []*graph.Value) []*graph.Value {
	in := c.primals(f)
	for i, x := range c.Node.In {
		in = append(in, c.orZeros(tangents[i], x))
	}
	return c.call(f, in, len(c.Node.Out))
}

// primals returns the operands and results of the node.
func (c *Ctx) primals(f *graph.Function) []*graph.Value {
	out := slices.Clone(c.Node.In)
	for i := range c.Node.Out {
		y := c.Node.Out[i]
		if y == nil && len(c.Node.In)+i < len(f.Body.Inputs) && f.Body.Inputs[len(c.Node.In)+i].NumUses() > 0 {
			y = c.Want(i)
		}
		out = append(out, y)
	}
	return out
}

// orZeros returns d, a derivative of v or of its cotangent, or zeros for it; nil where v has none.
func (c *Ctx) orZeros(d, v *graph.Value) *graph.Value {
	if d != nil || v == nil || v.Type.Kind != graph.KindUnknown && !carriesGradient(v.Type) {
		return d
	}
	if v.Type.Kind == graph.KindUnknown || v.Type.Elem == graph.Undefined {
		if c.Err == nil {
			c.Err = fmt.Errorf("the type of %q is not known: declare it in the model", v.Name)
		}
		return nil
	}
	return zeros(c.Builder, v)
}

// call adds the body of a rule's function and checks that it fits.
func (c *Ctx) call(f *graph.Function, in []*graph.Value, results int) []*graph.Value {
	if c.Err != nil {
		return nil
	}
	fail := func(err error) []*graph.Value {
		c.Err = fmt.Errorf("rule %s: %w", f.Name, err)
		return nil
	}
	if len(in) != len(f.Body.Inputs) || len(f.Body.Outputs) > results {
		return fail(fmt.Errorf("it takes %d inputs and gives %d outputs; for this node it should take %d and give at most %d",
			len(f.Body.Inputs), len(f.Body.Outputs), len(in), results))
	}
	outs, err := c.Call(f, c.Node.Attrs, in)
	if err != nil {
		return fail(err)
	}
	return outs
}

// transposedJVP is the VJP that belongs to a JVP t -> J t, which is linear: its own VJP with respect to t, whatever t is. The operand
// stands for t.
func (c *Ctx) transposedJVP(jvp func(c *Ctx) []*graph.Value) []*graph.Value {
	b, n := c.Builder.For(c.Builder.G), c.Node // a builder of its own: nodes may be removed again
	from := len(b.G.Nodes)
	ts := make([]*graph.Value, len(n.In))
	var wrt []*graph.Value
	for i, x := range n.In {
		if c.Need(i) {
			ts[i] = b.Unary("Identity", x)
			wrt = append(wrt, ts[i])
		}
	}
	f := &Ctx{Builder: b, Node: n, need: c.need, rev: c.rev, tangents: ts}
	var seeds []Seed
	for i, t := range jvp(f) {
		if ct := c.Ct(i); t != nil && ct != nil {
			seeds = append(seeds, Seed{t, ct})
		}
	}
	r := &reverse{b: b, g: b.G, from: from}
	if err := r.run(seeds, wrt); err != nil {
		if c.Err == nil {
			c.Err = err
		}
		return nil
	}
	out := make([]*graph.Value, len(n.In))
	for i, t := range ts {
		if t != nil {
			out[i] = r.cts[t]
			t.ReplaceUses(n.In[i])
		}
	}
	dropUnread(b.G, from, out)
	if c.Err == nil {
		c.Err = b.Err
	}
	return out
}
