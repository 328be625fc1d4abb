package op

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op/schema"
)

// Inline puts the bodies of model-local functions in the place of their calls, also inside subgraphs and inside other
// functions, and removes the functions. Functions for which keep is true stay and stay called; keep may be nil.
//
// Inside a body, references to attributes of the function get the call's values, else the function's defaults; without
// either the attribute is left out. Omitted operands are omitted in the body. Results of a call keep identity and name,
// inner values and nodes get fresh names that begin with the call's.
//
// If a function imports another ai.onnx opset than the model, everything is brought to canonical form on the way, as
// [Upgrade] does. Functions that call themselves, calls that do not fit and imports that contradict each other are
// errors, all joined; the model is then not fit for use. So is a model that would get more than 2^20 nodes, an
// [*ExpansionError], which is found before anything is done.
func Inline(m *graph.Model, keep func(*graph.Function) bool) error {
	gone := slices.DeleteFunc(slices.Clone(m.Functions), func(f *graph.Function) bool { return keep != nil && keep(f) })
	if len(gone) == 0 {
		return nil
	}
	if err := checkRecursion(m); err != nil {
		return err
	}
	if err := checkExpansion(m, gone); err != nil {
		return err
	}
	u := newUpgrader(m)
	u.inline = func(n *graph.Node) *graph.Function {
		f := m.Function(n.Domain, n.Op, n.Overload)
		if f == nil || !slices.Contains(gone, f) {
			return nil
		}
		return f
	}
	for _, f := range gone {
		if v := f.Opset(""); v != 0 && v != m.Opset("") {
			u.upgrade = true
		}
		u.errs = append(u.errs, importOpsets(m, f)...)
	}
	to := newestOpset(m)
	kept := slices.DeleteFunc(slices.Clone(m.Functions), func(f *graph.Function) bool { return slices.Contains(gone, f) })
	for _, f := range kept {
		u.upgrade = u.upgrade || f.Opset("") != m.Opset("")
	}
	u.root(m.Graph, m.Opset(""))
	for _, f := range kept {
		u.root(f.Body, f.Opset(""))
	}
	if len(u.errs) > 0 {
		return errors.Join(u.errs...)
	}
	m.Functions = kept
	if u.upgrade {
		u.raise(to)
	}
	return nil
}

// checkRecursion returns an error if a function calls itself, directly or through others.
func checkRecursion(m *graph.Model) error {
	const (
		open = 1
		done = 2
	)
	state := map[*graph.Function]int{}
	var path []string
	var visit func(f *graph.Function) error
	visit = func(f *graph.Function) error {
		path = append(path, functionName(f))
		defer func() { path = path[:len(path)-1] }()
		switch state[f] {
		case open:
			return fmt.Errorf("function %s calls itself: %s", functionName(f), strings.Join(path, " -> "))
		case done:
			return nil
		}
		state[f] = open
		for n := range f.Body.AllNodes() {
			if g := m.Function(n.Domain, n.Op, n.Overload); g != nil {
				if err := visit(g); err != nil {
					return err
				}
			}
		}
		state[f] = done
		return nil
	}
	for _, f := range m.Functions {
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// functionName returns domain.name or domain.name:overload.
func functionName(f *graph.Function) string {
	s := Key{graph.StdDomain(f.Domain), f.Name}.String()
	if f.Overload != "" {
		s += ":" + f.Overload
	}
	return s
}

// importOpsets lets the model import the domains, other than ai.onnx, that f's body uses. Two versions of a domain go
// together if no operator that f applies differs between them.
func importOpsets(m *graph.Model, f *graph.Function) []error {
	var errs []error
	for _, o := range f.Opsets {
		if graph.StdDomain(o.Domain) == "" {
			continue
		}
		have := m.Opset(o.Domain)
		if have == 0 {
			m.SetOpset(o.Domain, o.Version)
			continue
		}
		if have == o.Version {
			continue
		}
		for n := range f.Body.AllNodes() {
			if n.Domain != o.Domain || m.Function(n.Domain, n.Op, n.Overload) != nil {
				continue
			}
			a, ok := schema.Lookup(n.Domain, n.Op, int(have))
			b, ok2 := schema.Lookup(n.Domain, n.Op, int(o.Version))
			if !ok || !ok2 || a != b {
				errs = append(errs, &Problem{n, fmt.Errorf("function %s imports version %d of domain %q, the model version %d",
					functionName(f), o.Version, o.Domain, have)})
			}
		}
	}
	return errs
}

// expand puts f's body in the place of n.
func (u *upgrader) expand(n *graph.Node, f *graph.Function) {
	nodes, err := u.instance(n, f)
	if err != nil {
		u.errs = append(u.errs, &Problem{n, fmt.Errorf("call of function %s: %w", functionName(f), err)})
		return
	}
	g := n.Graph
	g.InsertBefore(n, nodes...)
	g.Remove(n)
	u.nodes(nodes, max(int(f.Opset("")), 1))
}

// instance returns copies of the nodes of f's body for the call n, the results of which they define.
func (u *upgrader) instance(n *graph.Node, f *graph.Function) ([]*graph.Node, error) {
	if err := f.Body.Sort(); err != nil {
		return nil, err
	}
	if len(n.In) > len(f.Body.Inputs) {
		return nil, fmt.Errorf("%d operands, want at most %d", len(n.In), len(f.Body.Inputs))
	}
	if len(n.Out) > len(f.Body.Outputs) {
		return nil, fmt.Errorf("%d results, want at most %d", len(n.Out), len(f.Body.Outputs))
	}
	if err := checkCallAttrs(n, f); err != nil {
		return nil, err
	}
	prefix := n.Name
	if prefix == "" {
		prefix = n.Op
	}
	c := &graph.Cloner{To: u.m, Prefix: prefix + "/", Values: map[*graph.Value]*graph.Value{}}
	c.Attr = func(a *graph.Attr) (*graph.Attr, error) { return resolveAttr(n, f, a) }
	for i, v := range f.Body.Inputs {
		c.Values[v] = n.Operand(i)
	}
	var nodes []*graph.Node
	for _, v := range f.Body.Inits {
		k := n.Graph.NewNode("", "Constant", nil, []string{u.m.Fresh(c.Prefix + v.Name)}, graph.TensorAttr("value", v.Init))
		k.Name = u.m.FreshNode(c.Prefix + "Constant")
		c.Values[v] = k.Out[0]
		nodes = append(nodes, k)
	}
	for _, b := range f.Body.Nodes {
		k, err := c.Node(n.Graph, b)
		if err != nil {
			return nil, fmt.Errorf("node %s of the body: %w", b.Label(), err)
		}
		trace(k, n)
		nodes = append(nodes, k)
	}
	return u.takeResults(n, f, c, nodes)
}

// trace leaves the call's role and name on a node that stems from it.
func trace(k, call *graph.Node) {
	if role := call.Meta.Get(graph.MetaRole); role != "" && k.Meta.Get(graph.MetaRole) == "" {
		k.Meta.Set(graph.MetaRole, role)
	}
	from := call.Meta.Get(graph.MetaFrom)
	if from == "" {
		from = call.Name
	}
	if from != "" && k.Meta.Get(graph.MetaFrom) == "" {
		k.Meta.Set(graph.MetaFrom, from)
	}
}

// takeResults makes the copied nodes define the results of the call. Where a result is an operand handed through, or one
// value is two results, Identity copies it.
func (u *upgrader) takeResults(n *graph.Node, f *graph.Function, c *graph.Cloner, nodes []*graph.Node) ([]*graph.Node, error) {
	free := map[*graph.Node]bool{} // nodes whose results can be renamed
	for _, k := range nodes {
		free[k] = true
	}
	taken := map[*graph.Value]bool{}
	for i, y := range n.Out {
		if y == nil {
			continue
		}
		v := f.Body.Outputs[i]
		w, ok := c.Values[v]
		switch {
		case !ok || w == nil && y.NumUses() > 0:
			return nil, fmt.Errorf("result %d (%s) is an omitted operand", i, v.Name)
		case w == nil:
			continue
		case w.Def != nil && free[w.Def] && !taken[w]:
			w.ReplaceUses(y)
			w.Def.Out[w.Index], y.Def, y.Index = y, w.Def, w.Index
			c.Values[v], taken[y] = y, true
		default:
			k := n.Graph.NewNode("", "Identity", []*graph.Value{w}, []string{""})
			k.Name = u.m.FreshNode(c.Prefix + "Identity")
			k.Out[0], y.Def, y.Index = y, k, 0
			trace(k, n)
			nodes = append(nodes, k)
		}
		n.Out[i] = nil
	}
	return nodes, nil
}

// checkCallAttrs returns an error for attributes that the function does not have.
func checkCallAttrs(n *graph.Node, f *graph.Function) error {
	for _, a := range n.Attrs {
		known := slices.Contains(f.Attrs, a.Name) || strings.HasPrefix(a.Name, "__") ||
			slices.ContainsFunc(f.Defaults, func(d *graph.Attr) bool { return d.Name == a.Name })
		if !known {
			return fmt.Errorf("attribute %s is not known to the function", a.Name)
		}
	}
	return nil
}

// resolveAttr returns an attribute of a body's node in the call n: references get the call's value or the default.
func resolveAttr(n *graph.Node, f *graph.Function, a *graph.Attr) (*graph.Attr, error) {
	if a.Ref == "" {
		return a, nil
	}
	v := n.Attr(a.Ref)
	for _, d := range f.Defaults {
		if v == nil && d.Name == a.Ref {
			v = d
		}
	}
	if v == nil {
		return nil, nil
	}
	if a.Type != graph.AttrUndefined && v.Type != a.Type {
		return nil, fmt.Errorf("attribute %s refers to %s, which has type %s, want %s", a.Name, a.Ref, v.Type, a.Type)
	}
	w := *v
	w.Name, w.Src = a.Name, nil
	return &w, nil
}
