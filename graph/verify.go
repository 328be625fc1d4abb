package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The rules that Verify checks, by number:
//
//  1. A value knows exactly the operands and graph outputs that read it, and every reader stands in the model.
//  2. A node stands in one graph, once, and results, nodes and graphs know each other.
//  3. A value that is read is an input, an initializer or a result in the reader's graph or one around it.
//  4. A value is defined before it is read: nodes stand in execution order.
//  5. A value is defined once, has a name, and no other value of its graph or of one around it has that name.
//  6. Inputs and outputs of the main graph have types.
//  7. An initializer's data fit its element type and shape, and the type of its value.
//  8. A subgraph knows the node that holds it, a function's body its function, and nothing is held twice.
//  9. Attributes of a node have different names and hold what their type says; references occur in functions
//     only and name attributes of the function.
//  10. A node's domain is imported by the model or function that it stands in.
//  11. Functions differ in domain, name or overload.
//  12. The metadata key gradtool.role has one of the Role values.
const (
	ruleUses = 1 + iota
	ruleLinks
	ruleScope
	ruleOrder
	ruleNames
	ruleTyped
	ruleData
	ruleNesting
	ruleAttrs
	ruleImports
	ruleFunctions
	ruleMeta
)

// VerifyError is one violation of a rule. Node, Value and Graph are where it was found, nil where they do not apply.
// Rules of [Verify] are numbered in verify.go, rules of package op above 100 there.
type VerifyError struct {
	Rule  int
	Node  *Node
	Value *Value
	Graph *Graph
	Msg   string
	near  string // the lines around Node when the violation was found
}

// Violation returns a violation by n, with the text of the nodes around it as they are now.
func Violation(rule int, n *Node, msg string) *VerifyError {
	return &VerifyError{Rule: rule, Node: n, Graph: n.Graph, Msg: msg, near: surroundings(n)}
}

// Error says rule, place and violation; below stand the node and two neighbours on either side, in the text syntax.
func (e *VerifyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rule %d: ", e.Rule)
	switch {
	case e.Node != nil:
		fmt.Fprintf(&b, "node %s: ", e.Node.Label())
	case e.Value != nil:
		fmt.Fprintf(&b, "value %q: ", e.Value.Name)
	case e.Graph != nil:
		fmt.Fprintf(&b, "graph %q: ", e.Graph.Name)
	}
	b.WriteString(e.Msg)
	b.WriteString(e.near)
	return b.String()
}

// surroundings returns n's line and its neighbours', n marked.
func surroundings(n *Node) string {
	const near = 2
	if n.Graph == nil {
		return ""
	}
	i := slices.Index(n.Graph.Nodes, n)
	if i < 0 {
		return "\n  > " + n.String()
	}
	var b strings.Builder
	for j := max(i-near, 0); j < min(i+near+1, len(n.Graph.Nodes)); j++ {
		mark := "    "
		if j == i {
			mark = "  > "
		}
		b.WriteString("\n" + mark + n.Graph.Nodes[j].String())
	}
	return b.String()
}

// Verify checks the structure of m: the rules above. It returns every violation, joined, each a [*VerifyError]; nil if
// there is none. Whether operators exist and get what they want is for package op to check.
func Verify(m *Model) error {
	nodes, values := len(m.Graph.Nodes), 0
	for _, n := range m.Graph.Nodes {
		if n != nil {
			values += len(n.Out)
		}
	}
	values += len(m.Graph.Inputs) + len(m.Graph.Inits)
	v := &verifier{m: m, place: make(map[*Node]*Graph, nodes), held: map[*Graph]bool{}, seen: make(map[*Value]*sight, values)}
	v.root(m.Graph, nil)
	for i, f := range m.Functions {
		v.function(f, m.Functions[:i])
	}
	v.uses()
	return errors.Join(v.errs...)
}

type verifier struct {
	m       *Model
	errs    []error
	place   map[*Node]*Graph // in which graph's list a node was found
	held    map[*Graph]bool
	seen    map[*Value]*sight
	values  []*sight     // in order of first sight
	room    []sight      // for the next ones
	readers map[Use]bool // of a value with many, so far
	fn      *Function
}

// sight is what was seen of a value.
type sight struct {
	x     *Value
	reads int    // how often
	scope *scope // where it is defined, nil before that is reached
}

func (v *verifier) report(e VerifyError, format string, args ...any) {
	e.Msg = fmt.Sprintf(format, args...)
	if e.Node != nil {
		e.near = surroundings(e.Node)
	}
	v.errs = append(v.errs, &e)
}

// scope is what a graph sees: its own values as far as they are defined, and the scope around it.
type scope struct {
	outer *scope
	names map[string]*Value
}

func (s *scope) sees(x *sight) bool {
	for ; s != nil; s = s.outer {
		if x.scope == s {
			return true
		}
	}
	return false
}

func (s *scope) named(name string) *Value {
	for ; s != nil; s = s.outer {
		if x := s.names[name]; x != nil {
			return x
		}
	}
	return nil
}

func (v *verifier) function(f *Function, earlier []*Function) {
	for _, e := range earlier {
		if StdDomain(e.Domain) == StdDomain(f.Domain) && e.Name == f.Name && e.Overload == f.Overload {
			v.report(VerifyError{Rule: ruleFunctions, Graph: f.Body}, "two functions are called %s.%s %s", f.Domain, f.Name, f.Overload)
		}
	}
	if f.Body == nil {
		v.report(VerifyError{Rule: ruleNesting}, "function %s has no body", f.Name)
		return
	}
	if f.Body.Func != f {
		v.report(VerifyError{Rule: ruleNesting, Graph: f.Body}, "the body of function %s belongs to another", f.Name)
	}
	v.root(f.Body, f)
}

func (v *verifier) root(g *Graph, f *Function) {
	v.fn = f
	if g.Parent != nil {
		v.report(VerifyError{Rule: ruleNesting, Graph: g}, "it is no subgraph but has the parent %s", g.Parent.Label())
		return
	}
	v.graph(g, nil)
	if f != nil {
		return
	}
	for _, list := range [][]*Value{g.Inputs, g.Outputs} {
		for _, x := range list {
			if x != nil && (x.Type.Kind == KindUnknown || x.Type.IsTensor() && x.Type.Elem == Undefined) {
				v.report(VerifyError{Rule: ruleTyped, Value: x, Graph: g}, "an input or output of the model has no type")
			}
		}
	}
}

func (v *verifier) graph(g *Graph, outer *scope) {
	if v.held[g] {
		v.report(VerifyError{Rule: ruleNesting, Graph: g}, "it is held twice")
		return
	}
	v.held[g] = true
	if g.Model != v.m {
		v.report(VerifyError{Rule: ruleNesting, Graph: g}, "it belongs to another model")
	}
	s := &scope{outer, make(map[string]*Value, len(g.Inputs)+len(g.Inits)+len(g.Nodes))}
	inits, inputs := setOf(g.Inits), setOf(g.Inputs)
	for _, x := range g.Inputs {
		v.define(s, g, x, nil, 0)
		if x != nil && x.Init != nil && !inits[x] {
			v.report(VerifyError{Rule: ruleLinks, Value: x, Graph: g}, "the input has a default but is not among the initializers")
		}
	}
	for _, x := range g.Inits {
		if x != nil && !inputs[x] {
			v.define(s, g, x, nil, 0)
		}
		v.data(g, x)
	}
	v.results(s, g)
	for _, n := range g.Nodes {
		if v.place[n] != g {
			continue // reported by results
		}
		v.node(s, n)
		for _, x := range n.Out {
			if x != nil {
				v.see(x).scope = s
			}
		}
	}
	for i, x := range g.Outputs {
		if x == nil {
			v.report(VerifyError{Rule: ruleLinks, Graph: g}, "output %d is missing", i)
			continue
		}
		seen := v.see(x)
		seen.reads++
		if !s.sees(seen) {
			v.report(VerifyError{Rule: ruleScope, Value: x, Graph: g}, "output %d of graph %q is not defined there", i, g.Name)
		}
	}
}

func setOf(values []*Value) map[*Value]bool {
	set := make(map[*Value]bool, len(values))
	for _, x := range values {
		set[x] = true
	}
	return set
}

// define enters an input, initializer or result under its name.
func (v *verifier) define(s *scope, g *Graph, x *Value, n *Node, index int) {
	if x == nil {
		v.report(VerifyError{Rule: ruleLinks, Graph: g}, "an input or initializer is missing")
		return
	}
	seen := v.see(x)
	where := VerifyError{Rule: ruleNames, Node: n, Value: x, Graph: g}
	if x.Graph != g || x.Def != n || n != nil && x.Index != index {
		e := where
		e.Rule = ruleLinks
		v.report(e, "%q does not know that it is defined here", x.Name)
	}
	switch old := s.named(x.Name); {
	case old == x:
		v.report(where, "%q is defined twice", x.Name)
	case x.Name == "":
		v.report(where, "a value has no name")
	case old != nil:
		v.report(where, "two values are called %q", x.Name)
	default:
		s.names[x.Name] = x
	}
	if n == nil {
		seen.scope = s
	}
}

// results enters the names of all results of g's nodes, and checks that the nodes stand in g only.
func (v *verifier) results(s *scope, g *Graph) {
	for _, n := range g.Nodes {
		if n == nil {
			v.report(VerifyError{Rule: ruleLinks, Graph: g}, "a node is missing")
			continue
		}
		if v.place[n] != nil {
			v.report(VerifyError{Rule: ruleLinks, Node: n, Graph: g}, "it stands in the model twice")
			continue
		}
		v.place[n] = g
		if n.Graph != g {
			v.report(VerifyError{Rule: ruleLinks, Node: n, Graph: g}, "it stands in graph %q without knowing it", g.Name)
		}
		for i, x := range n.Out {
			if x != nil {
				v.define(s, g, x, n, i)
			}
		}
	}
}

func (v *verifier) see(x *Value) *sight {
	s := v.seen[x]
	if s == nil {
		if len(v.room) == 0 {
			v.room = make([]sight, 256)
		}
		s, v.room = &v.room[0], v.room[1:]
		s.x, v.seen[x] = x, s
		v.values = append(v.values, s)
	}
	return s
}

func (v *verifier) node(s *scope, n *Node) {
	for i, x := range n.In {
		if x == nil {
			continue
		}
		seen := v.see(x)
		seen.reads++
		if s.sees(seen) {
			continue
		}
		if x.Def != nil && x.Def.Graph != nil && slices.Contains(x.Def.Out, x) && v.around(n.Graph, x.Def.Graph) {
			v.report(VerifyError{Rule: ruleOrder, Node: n, Value: x, Graph: n.Graph}, "operand %d, %q, is read before it is defined", i, x.Name)
		} else {
			v.report(VerifyError{Rule: ruleScope, Node: n, Value: x, Graph: n.Graph}, "operand %d, %q, is not defined here", i, x.Name)
		}
	}
	v.attrs(n)
	v.imports(n)
	if role := n.Meta.Get(MetaRole); role != "" {
		switch role {
		case RoleForward, RoleBackward, RoleTangent, RoleLoss, RoleOptimizer, RoleRecompute:
		default:
			v.report(VerifyError{Rule: ruleMeta, Node: n, Graph: n.Graph}, "%s is %q", MetaRole, role)
		}
	}
	for _, sub := range n.Subgraphs() {
		if sub == nil {
			continue
		}
		if sub.Parent != n {
			v.report(VerifyError{Rule: ruleNesting, Node: n, Graph: sub}, "its subgraph %q does not know it", sub.Name)
			continue
		}
		v.graph(sub, s)
	}
}

// around reports whether h is g or a graph around it, and the model's.
func (v *verifier) around(g, h *Graph) bool {
	for {
		if g == h {
			return true
		}
		if g.Parent == nil {
			return false
		}
		g = g.Parent.Graph
	}
}

func (v *verifier) imports(n *Node) {
	opsets := v.m.Opsets
	if v.fn != nil {
		opsets = v.fn.Opsets
	}
	if lookupOpset(opsets, n.Domain) != 0 || v.m.Function(n.Domain, n.Op, n.Overload) != nil {
		return
	}
	if StdDomain(n.Domain) == "" && v.m.IRVersion < 3 {
		return // version 1 without saying so
	}
	v.report(VerifyError{Rule: ruleImports, Node: n, Graph: n.Graph}, "domain %q is not imported", n.Domain)
}

// uses checks that each value knows its readers.
func (v *verifier) uses() {
	for _, s := range v.values {
		x, known := s.x, 0
		for i, u := range x.uses {
			where := VerifyError{Rule: ruleUses, Node: u.Node, Value: x, Graph: u.Graph}
			twice := v.twice(x.uses, i)
			switch {
			case twice:
				v.report(where, "%q lists a reader twice", x.Name)
			case u.Node != nil && v.place[u.Node] == nil:
				v.report(where, "it reads %q but stands in no graph of the model", x.Name)
			case u.Node != nil && u.Node.Operand(u.Index) != x:
				v.report(where, "%q takes operand %d for a reader", x.Name, u.Index)
			case u.Node == nil && (u.Graph == nil || u.Index >= len(u.Graph.Outputs) || u.Graph.Outputs[u.Index] != x):
				v.report(where, "%q takes an output for a reader that is another value", x.Name)
			case u.Node == nil && !v.held[u.Graph]:
				v.report(where, "%q is an output of graph %q, which is not in the model", x.Name, u.Graph.Name)
			}
			if !twice {
				known++
			}
		}
		if known < s.reads {
			v.report(VerifyError{Rule: ruleUses, Value: x, Graph: x.Graph}, "it is read %d times and knows %d readers", s.reads, known)
		}
	}
}

// twice reports whether an earlier reader of the list is number i too.
func (v *verifier) twice(uses []Use, i int) bool {
	const few = 16
	if len(uses) <= few {
		return slices.Contains(uses[:i], uses[i])
	}
	if i == 0 {
		v.readers = make(map[Use]bool, len(uses))
	}
	was := v.readers[uses[i]]
	v.readers[uses[i]] = true
	return was
}
