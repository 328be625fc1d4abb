package main

import (
	"errors"
	"fmt"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/op/schema"
	"gradtool/graph/pass"
)

// inspect refuses a model that has no meaning: one that reads values which nothing defines, or which are defined twice, or with a
// node that lacks what its operator cannot do without. Other violations of the standard, which public models have many of,
// are noted, the first of them or, with -v, all.
func (s *session) inspect(m *graph.Model) error {
	const ruleScope = 3 // of graph.Verify: what is read is defined
	bad := redefined(m)
	var minor []string
	s.sound = m
	each := func(err error, rule int) {
		if err == nil {
			return
		}
		s.sound = nil
		for _, e := range problems(err) {
			var v *graph.VerifyError
			switch {
			case !errors.As(e, &v):
			case v.Rule == rule:
				bad = append(bad, e)
			case v.Rule > 100 && v.Node != nil:
				minor = append(minor, fmt.Sprintf("node %s: %s", v.Node.Label(), v.Msg))
			}
		}
	}
	each(graph.Verify(m), ruleScope)
	each(op.Verify(m), op.RuleVital)
	if len(bad) > 0 {
		return badModel(joinErrors(bad))
	}
	if minor = append(strangeOpsets(m), minor...); len(minor) > 0 {
		s.noteMinor(minor)
	}
	s.declared = s.declared[:0]
	for _, v := range m.Graph.Outputs {
		s.declared = append(s.declared, declaration{v, v.Type})
	}
	return nil
}

// noteBroken is inspect for verbs that only show what is in a file: what makes others refuse a model is a note of one line.
func (s *session) noteBroken(m *graph.Model) {
	err := s.inspect(m)
	if err == nil {
		return
	}
	list := problems(unwrapForList(err, &[]string{}))
	first, _, _ := strings.Cut(describe(list[0]), "\n")
	if n := len(list) - 1; n > 0 {
		first += fmt.Sprintf(" (and %d more)", n)
	}
	s.notef("the model has no one meaning, verbs that work with it refuse it: %s", first)
}

// noteMinor notes violations that leave a model usable, those of a model that is read again once.
func (s *session) noteMinor(list []string) {
	key := strings.Join(list, "\n")
	if s.noted[key] {
		return
	}
	if s.noted == nil {
		s.noted = map[string]bool{}
	}
	s.noted[key] = true
	const head = "the model violates the ONNX standard, and what can be is done all the same"
	switch n := len(list); {
	case s.verbose:
		s.notef("%s\n%s", head, key)
	case n == 1:
		s.notef("%s: %s", head, list[0])
	default:
		s.notef("%s: %s (and %d more, which -v lists)", head, list[0], n-1)
	}
}

// redefined returns an error for each name that stands for several values of one graph and is read: which of them is meant
// differs from program to program. Constants are an exception, since all take the last of them, and tools that edit models
// count on it.
func redefined(m *graph.Model) []error {
	var errs []error
	graphs := func(root *graph.Graph) {
		for g := range root.Graphs() {
			errs = append(errs, redefinedIn(g)...)
		}
	}
	graphs(m.Graph)
	for _, f := range m.Functions {
		if f.Body != nil {
			graphs(f.Body)
		}
	}
	return errs
}

func redefinedIn(g *graph.Graph) []error {
	where := ""
	if g.Parent != nil || g.Func != nil {
		where = fmt.Sprintf(" of graph %q", g.Name)
	}
	first := make(map[string]definition, len(g.Nodes))
	var errs []error
	define := func(d definition) {
		if d.v == nil || d.v.Name == "" {
			return
		}
		old, twice := first[d.v.Name]
		switch {
		case !twice:
			first[d.v.Name] = d
		case old.v == d.v || isConstant(old.v) && isConstant(d.v):
		case d.v.NumUses() > 0 || old.v.NumUses() > 0:
			errs = append(errs, fmt.Errorf("value %q is defined twice: as %s and as %s", d.v.Name, old.place(where), d.place(where)))
		}
	}
	for i, v := range g.Inputs {
		define(definition{v, nil, i})
	}
	for _, v := range g.Inits {
		define(definition{v, nil, -1})
	}
	for _, n := range g.Nodes {
		for i, v := range n.Out {
			define(definition{v, n, i})
		}
	}
	return errs
}

// distinctPass gives constants whose name another one takes over, as [redefined] permits, names of their own: in another order of the
// nodes the name would stand for another value.
func distinctPass() pass.Pass {
	return pass.Pass{
		Name: "distinct", Doc: "give constants whose name another one takes over names of their own", Required: true,
		Run: func(_ *pass.Ctx, m *graph.Model) (bool, error) {
			changed := false
			for g := range m.Graph.Graphs() {
				last := make(map[string]*graph.Value, len(g.Nodes))
				for _, n := range g.Nodes {
					for _, v := range n.Out {
						if v == nil || v.Name == "" {
							continue
						}
						if old := last[v.Name]; old != nil && isConstant(old) && isConstant(v) {
							old.Name = m.Fresh(v.Name)
							changed = true
						}
						last[v.Name] = v
					}
				}
			}
			return changed, nil
		},
	}
}

// definition is where a value is defined: a result of a node or, without one, an input or (-1) an initializer.
type definition struct {
	v     *graph.Value
	n     *graph.Node
	index int
}

// place returns the definition in words, those of a graph that is described by where.
func (d definition) place(where string) string {
	switch {
	case d.n != nil:
		return fmt.Sprintf("result %d of node %s", d.index, d.n.Label())
	case d.index < 0:
		return "initializer" + where
	}
	return fmt.Sprintf("input %d%s", d.index, where)
}

// isConstant reports whether v is an initializer that no input overrides, or the result of a Constant node.
func isConstant(v *graph.Value) bool {
	return v.IsConst() || v.Def != nil && v.Def.Is("Constant")
}

// strangeOpsets says which opsets of the standard's domains are imported that there are none of, and how they are read.
func strangeOpsets(m *graph.Model) []string {
	var out []string
	for _, o := range m.Opsets {
		domain := graph.StdDomain(o.Domain)
		top := int64(schema.MaxOpset(domain))
		if top == 0 || domain != "" && !strings.HasPrefix(domain, "ai.onnx") {
			continue
		}
		name := domain
		if name == "" {
			name = "ai.onnx"
		}
		switch {
		case o.Version < 1:
			out = append(out, fmt.Sprintf("it imports opset %d of %s, which does not exist; read as opset 1", o.Version, name))
		case o.Version > top:
			out = append(out, fmt.Sprintf("it imports opset %d of %s, the newest known is %d; operators are read as of that", o.Version, name, top))
		}
	}
	if len(m.Graph.Nodes) > 0 && m.Opset("") == 0 && m.IRVersion >= 3 {
		for n := range m.Graph.AllNodes() {
			if graph.StdDomain(n.Domain) == "" && m.Function(n.Domain, n.Op, n.Overload) == nil && len(out) == 0 {
				out = append(out, "it imports no opset of ai.onnx; read as opset 1")
			}
		}
	}
	return out
}

// declaration is the type that a file declares for an output.
type declaration struct {
	v *graph.Value
	t graph.Type
}

// noteDeclared notes, once, the outputs whose declared types are not what they work out as.
func (s *session) noteDeclared() {
	var list []string
	for i, d := range s.declared {
		if d.v != nil && contradict(d.t, d.v.Type) {
			list = append(list, fmt.Sprintf("output %q is declared %s and works out as %s", d.v.Name, d.t, d.v.Type))
			s.declared[i].v = nil
		}
	}
	if len(list) > 0 {
		s.noteMinor(list)
	}
}

// contradict reports whether no value has both types.
func contradict(a, b graph.Type) bool {
	if !a.IsTensor() || !b.IsTensor() {
		return a.Kind != b.Kind && a.Kind != graph.KindUnknown && b.Kind != graph.KindUnknown
	}
	if a.Elem != b.Elem && a.Elem != graph.Undefined && b.Elem != graph.Undefined {
		return true
	}
	if a.Shape == nil || b.Shape == nil {
		return false
	}
	if len(a.Shape) != len(b.Shape) {
		return true
	}
	for i := range a.Shape {
		x, known := a.Shape[i].Int()
		y, known2 := b.Shape[i].Int()
		if known && known2 && x != y {
			return true
		}
	}
	return false
}
