package rewrite

import (
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Pattern describes a value by how it is computed. Patterns are built by [P], [Any] and [Const] and refined by methods,
// which return the pattern they change.
type Pattern struct {
	key      op.Key // of the node that defines the value; the zero Key stands for any value
	name     string
	args     []*Pattern
	more     bool
	omitted  bool
	commute  bool
	once     bool
	shared   bool
	constant bool
}

// P is a value computed by an ai.onnx operator whose operands match args, in this order. A node with further operands,
// omitted ones apart, does not match, see [Pattern.More].
func P(name string, args ...*Pattern) *Pattern { return PIn("", name, args...) }

// PIn is P for an operator of any domain.
func PIn(domain, name string, args ...*Pattern) *Pattern {
	return &Pattern{key: op.Key{Domain: graph.StdDomain(domain), Name: name}, args: args}
}

// Any is any value; the name captures it. A name that occurs twice in a pattern stands for the same value.
func Any(name string) *Pattern { return &Pattern{name: name} }

// Const is a value whose elements are known when the rule is tried.
func Const(name string) *Pattern { return &Pattern{name: name, constant: true} }

// As captures the value, and the node that defines it.
func (p *Pattern) As(name string) *Pattern { p.name = name; return p }

// More lets the node have operands beyond those listed.
func (p *Pattern) More() *Pattern { p.more = true; return p }

// Opt lets the operand be omitted.
func (p *Pattern) Opt() *Pattern { p.omitted = true; return p }

// Commute lets the first two operands stand in either order.
func (p *Pattern) Commute() *Pattern { p.commute = true; return p }

// Once wants the value to be read once, by the node that the pattern leads to.
func (p *Pattern) Once() *Pattern { p.once = true; return p }

// Shared lets the value be read by others too, or be a graph output. Without it an inner value that somebody else reads
// keeps a rule from being applied, as the work for that value would not go away.
func (p *Pattern) Shared() *Pattern { p.shared = true; return p }

// alternatives returns patterns without Commute that together match what p does.
func (p *Pattern) alternatives() []*Pattern {
	lists := [][]*Pattern{nil}
	for _, a := range p.args {
		var longer [][]*Pattern
		for _, l := range lists {
			for _, alt := range a.alternatives() {
				longer = append(longer, append(slices.Clone(l), alt))
			}
		}
		lists = longer
	}
	var out []*Pattern
	for _, l := range lists {
		q := *p
		q.args, q.commute = l, false
		out = append(out, &q)
		if p.commute && len(l) >= 2 {
			r := q
			r.args = slices.Clone(l)
			r.args[0], r.args[1] = r.args[1], r.args[0]
			out = append(out, &r)
		}
	}
	return out
}

// Match is where a pattern fits.
type Match struct {
	Root *graph.Node
	Info *op.Info
	// Known returns the elements of a value if they are known and small, else nil.
	Known func(*graph.Value) *op.Array
	// Fixed reports whether a value is a constant that nothing changes, however many elements it has.
	Fixed func(*graph.Value) bool

	names  []string
	values []*graph.Value
	inner  []inner
}

// inner is a value below the root that the pattern says how to compute.
type inner struct {
	p *Pattern
	v *graph.Value
}

// V returns the captured value, nil if it is an omitted operand.
func (m *Match) V(name string) *graph.Value {
	if i := slices.Index(m.names, name); i >= 0 {
		return m.values[i]
	}
	return nil
}

// Node returns the node that defines the captured value, nil without one.
func (m *Match) Node(name string) *graph.Node {
	if v := m.V(name); v != nil {
		return v.Def
	}
	return nil
}

// Const returns the elements of the captured value, nil if they are not known.
func (m *Match) Const(name string) *op.Array {
	if v := m.V(name); v != nil {
		return m.Known(v)
	}
	return nil
}

// Out returns result i of the root, nil where it is omitted.
func (m *Match) Out(i int) *graph.Value { return m.Root.Result(i) }

// node matches the root pattern against n.
func (m *Match) node(p *Pattern, n *graph.Node) bool {
	m.names, m.values, m.inner = m.names[:0], m.values[:0], m.inner[:0]
	m.Root = n
	return op.KeyOf(n) == p.key && m.operands(p, n)
}

// refers reports whether an attribute of n is that of the enclosing function, whose value nobody knows here.
func refers(n *graph.Node) bool {
	return slices.ContainsFunc(n.Attrs, func(a *graph.Attr) bool { return a.Ref != "" })
}

// operands matches the operands of n. A node with an attribute that is the enclosing function's matches nothing, nor does a
// barrier.
func (m *Match) operands(p *Pattern, n *graph.Node) bool {
	if refers(n) || n.Meta.Get(graph.MetaBarrier) != "" {
		return false
	}
	for i, a := range p.args {
		if !m.value(a, n.Operand(i)) {
			return false
		}
	}
	if p.more {
		return true
	}
	for i := len(p.args); i < len(n.In); i++ {
		if n.In[i] != nil {
			return false
		}
	}
	return true
}

func (m *Match) value(p *Pattern, v *graph.Value) bool {
	if v == nil {
		return p.omitted && m.capture(p.name, nil)
	}
	if p.constant && m.Known(v) == nil || !m.capture(p.name, v) {
		return false
	}
	if p.key.Name == "" {
		return true
	}
	if v.Def == nil || op.KeyOf(v.Def) != p.key || v.Def == m.Root {
		return false
	}
	m.inner = append(m.inner, inner{p, v})
	return m.operands(p, v.Def)
}

func (m *Match) capture(name string, v *graph.Value) bool {
	if name == "" {
		return true
	}
	if i := slices.Index(m.names, name); i >= 0 {
		return m.values[i] == v
	}
	m.names, m.values = append(m.names, name), append(m.values, v)
	return true
}

// external returns an inner value that others than the matched nodes read although the pattern forbids it, or nil.
func (m *Match) external() *graph.Value {
	matched := func(n *graph.Node) bool {
		return n != nil && (n == m.Root || slices.ContainsFunc(m.inner, func(i inner) bool { return i.v.Def == n }))
	}
	for _, in := range m.inner {
		if in.p.once && in.v.NumUses() > 1 {
			return in.v
		}
		if in.p.shared {
			continue
		}
		for _, w := range in.v.Def.Out {
			if w == nil {
				continue
			}
			for _, u := range w.Uses() {
				if !matched(u.Node) {
					return w
				}
			}
		}
	}
	return nil
}
