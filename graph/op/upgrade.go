package op

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"gradtool/graph"
	"gradtool/graph/op/schema"
)

// WorkingOpset is the lowest ai.onnx opset that an upgraded model is in.
const WorkingOpset = 21

// Upgrade brings every ai.onnx node of m, in its main graph, in subgraphs and in function bodies, into canonical form:
// that of the newest version of its operator in package schema. The model and its functions then import
// max([WorkingOpset], the highest opset among them). The opset that the model had is kept in its Origin field for
// [LowestOpset]. A model that was upgraded before is left alone, apart from what its nodes still need.
//
// Graphs are sorted on the way and types are inferred as far as adapters need them. Results keep their identity and
// name: where an operator becomes several, the last of them takes over the node. What has no canonical form is
// reported, all nodes joined, each a [*Problem]; the model is then not fit for use.
func Upgrade(m *graph.Model) error {
	to := newestOpset(m)
	u := newUpgrader(m)
	u.upgrade = true
	u.root(m.Graph, m.Opset(""))
	for _, f := range m.Functions {
		u.root(f.Body, f.Opset(""))
	}
	if len(u.errs) > 0 {
		return errors.Join(u.errs...)
	}
	u.raise(to)
	return nil
}

// newestOpset returns the opset that m is in after Upgrade.
func newestOpset(m *graph.Model) int64 {
	to := max(int64(WorkingOpset), m.Opset(""))
	for _, f := range m.Functions {
		to = max(to, f.Opset(""))
	}
	return to
}

// upgrader is one walk over graphs that upgrades nodes, inlines calls (see Inline), or does both.
type upgrader struct {
	m       *graph.Model
	info    *Info
	b       *Builder // of the graph at hand; adds in front of the node at hand
	upgrade bool
	inline  func(n *graph.Node) *graph.Function // the function to inline in n's place; nil: none
	errs    []error
}

func newUpgrader(m *graph.Model) *upgrader { return &upgrader{m: m, info: NewInfo()} }

// raise records that the nodes of the model and its functions are in their newest forms.
func (u *upgrader) raise(to int64) {
	if u.m.Origin == 0 {
		u.m.Origin = max(u.m.Opset(""), 1)
	}
	u.m.SetOpset("", to)
	for _, f := range u.m.Functions {
		f.SetOpset("", to)
	}
}

// root walks over a main graph or function body whose nodes are in the form of opset. Files of the first IR versions
// import none, which means 1.
func (u *upgrader) root(g *graph.Graph, opset int64) {
	if err := g.Sort(); err != nil {
		u.errs = append(u.errs, err)
		return
	}
	u.graph(g, max(int(opset), 1))
}

func (u *upgrader) graph(g *graph.Graph, opset int) {
	outer := u.b
	u.b = NewBuilder(g, u.info)
	defer func() { u.b = outer }()
	u.nodes(slices.Clone(g.Nodes), opset)
}

// nodes walks over nodes of the builder's graph.
func (u *upgrader) nodes(list []*graph.Node, opset int) {
	for _, n := range list {
		for _, sub := range n.Subgraphs() {
			u.graph(sub, opset)
		}
		if u.inline != nil {
			if f := u.inline(n); f != nil {
				u.expand(n, f)
				continue
			}
		}
		u.at(n)
		if u.upgrade && graph.StdDomain(n.Domain) == "" && u.m.Function(n.Domain, n.Op, n.Overload) == nil {
			if err := u.node(n, opset); err != nil {
				u.errs = append(u.errs, &Problem{n, err})
			}
		}
		if u.upgrade {
			u.info.Node(n) // adapters want types; what is wrong with a node is for Infer to report
		}
	}
}

// at lets the builder add in front of n, in its name.
func (u *upgrader) at(n *graph.Node) {
	u.b.Before, u.b.Prefix, u.b.From, u.b.Role = n, n.Name, n.Name, n.Meta.Get(graph.MetaRole)
}

// node applies the adapters between the form that n has at opset and the newest one.
func (u *upgrader) node(n *graph.Node, opset int) error {
	op, versions := n.Op, schema.Versions("", n.Op)
	if len(versions) == 0 {
		if run := adapters()[adapterKey{op, 0}]; run != nil {
			if err := run(u, n); err != nil {
				return fmt.Errorf("the experimental operator %s has no canonical form: %w", op, err)
			}
		}
		return nil
	}
	if opset < 6 {
		n.DeleteAttr("consumed_inputs") // a hint for in-place execution, dropped from the standard
	}
	from := 0
	for _, s := range versions {
		if s.Since <= opset {
			from = s.Since
		}
	}
	for _, s := range versions {
		if s.Since < from || s.Since == from && !s.Deprecated {
			continue
		}
		run := adapters()[adapterKey{op, s.Since}]
		if run == nil {
			continue
		}
		if err := run(u, n); err != nil {
			return fmt.Errorf("operator %s of opset %d has no form at opset %d: %w", op, max(from, 1), s.Since, err)
		}
		if n.Op != op {
			return nil // another operator, in its newest form
		}
	}
	last := versions[len(versions)-1]
	if f, ok := schema.Lookup("", op, opset); ok && f.OpenAttrs && !last.OpenAttrs {
		// A runtime's version from before the operator became standard, which ignored what it did not know.
		n.Attrs = slices.DeleteFunc(n.Attrs, func(a *graph.Attr) bool {
			_, known := last.Attr(a.Name)
			return !known
		})
	}
	if last.Deprecated {
		return fmt.Errorf("operator %s is deprecated since opset %d and has no canonical form", n.Op, last.Since)
	}
	return nil
}

// adapterKey names the version of an operator whose form differs from the one before. Version 0 stands for operators
// that were experimental in opset 1 and never became part of the standard.
type adapterKey struct {
	op      string
	version int
}

// adapter rewrites a node from the form before a version to that version's. It may leave it as another operator, which
// must then be in canonical form.
type adapter func(u *upgrader, n *graph.Node) error

// adapters is the table of all changes of form. A version without entry changed types or wording only.
var adapters = sync.OnceValue(func() map[adapterKey]adapter {
	t := map[adapterKey]adapter{}
	add := func(version int, run adapter, ops ...string) {
		for _, op := range ops {
			k := adapterKey{op, version}
			if t[k] != nil {
				panic(fmt.Sprintf("op: two adapters for %s-%d", op, version))
			}
			t[k] = run
		}
	}
	axesAdapters(add)
	operandAdapters(add)
	attributeAdapters(add)
	broadcastAdapters(add)
	softmaxAdapters(add)
	normAdapters(add)
	resizeAdapters(add)
	scanAdapters(add)
	return t
})

type addAdapter func(version int, run adapter, ops ...string)

// become turns n into an application of op with other operands and attributes. Its name, results, metadata stay.
func become(n *graph.Node, op string, in []*graph.Value, attrs ...*graph.Attr) {
	n.Op, n.Src = op, nil
	for i, v := range in {
		n.SetIn(i, v)
	}
	n.TrimIn(len(in))
	n.Attrs = nil
	for _, a := range attrs {
		n.SetAttr(a)
	}
}

// refuse returns an error if one of the attributes is a reference to an attribute of the enclosing function and the
// adapter would need its value.
func refuse(n *graph.Node, names ...string) error {
	for _, name := range names {
		if a := n.Attr(name); a != nil && a.Ref != "" {
			return fmt.Errorf("attribute %s is the function's %s, whose value is known only once the function is inlined", name, a.Ref)
		}
	}
	return nil
}

// attrConst returns the value of a numeric attribute as a constant: int64 or float, scalar or vector. A reference to an
// attribute of the function stays one.
func (u *upgrader) attrConst(a *graph.Attr) (*graph.Value, error) {
	form := map[graph.AttrType]string{graph.AttrInt: "value_int", graph.AttrInts: "value_ints",
		graph.AttrFloat: "value_float", graph.AttrFloats: "value_floats"}[a.Type]
	switch {
	case form == "":
		return nil, fmt.Errorf("attribute %s has type %s", a.Name, a.Type)
	case a.Ref != "":
		return u.b.Op("Constant", nil, &graph.Attr{Name: form, Type: a.Type, Ref: a.Ref}), nil
	case a.Type == graph.AttrInt:
		return u.b.IntScalar(a.I), nil
	case a.Type == graph.AttrInts:
		return u.b.Ints(a.Ints...), nil
	case a.Type == graph.AttrFloat:
		return u.b.Const(&graph.Tensor{Elem: graph.Float, Dims: []int64{}, Data: graph.Floats(nil, a.F).Data}), nil
	}
	return u.b.Const(graph.Floats(nil, a.Floats...)), nil
}

// attrIn moves a numeric attribute to operand i. Without the attribute nothing happens.
func (u *upgrader) attrIn(n *graph.Node, name string, i int) error {
	a := n.Attr(name)
	if a == nil {
		return nil
	}
	v, err := u.attrConst(a)
	if err != nil {
		return err
	}
	n.DeleteAttr(name)
	n.SetIn(i, v)
	return nil
}

// attrLike moves a float attribute to operand i as a scalar of x's element type. Without the attribute nothing happens.
func (u *upgrader) attrLike(n *graph.Node, name string, i int, x *graph.Value) error {
	a := n.Attr(name)
	if a == nil {
		return nil
	}
	if a.Type != graph.AttrFloat {
		return fmt.Errorf("attribute %s has type %s, want float", name, a.Type)
	}
	n.DeleteAttr(name)
	if a.Ref == "" && x.Type.Elem != graph.Undefined {
		n.SetIn(i, u.b.Like(x, float64(a.F)))
		return nil
	}
	v, err := u.attrConst(a)
	if err != nil {
		return err
	}
	n.SetIn(i, u.b.Op("CastLike", vals(v, x)))
	return nil
}

// rank returns the number of dimensions of v, if it is known.
func rank(v *graph.Value) (int, bool) {
	if v == nil || v.Type.Shape == nil {
		return 0, false
	}
	return len(v.Type.Shape), true
}

// need returns operand i, or an error without it.
func need(n *graph.Node, i int) (*graph.Value, error) {
	if v := n.Operand(i); v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("operand %d is missing", i)
}
