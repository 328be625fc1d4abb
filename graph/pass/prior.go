package pass

import (
	"errors"
	"fmt"

	"gradtool/graph"
)

const ruleTypes = 106 // of op.Verify: an operator's types are allowed

// blameless knows the violations that are the input's own, so that no pass is blamed for them.
type blameless struct {
	marks   map[string]bool
	invalid map[*graph.Node]bool // nodes that violate their schema
	untyped map[*graph.Node]bool // nodes with operands or results of undeclared type
	copies  map[string]bool      // operators that nodes of the input misuse, with the rule: a pass may copy such nodes
}

// blamelessOf notes the violations of m, and the nodes that may turn out to have types which their schema does not
// allow when the types that m does not declare become known.
func blamelessOf(m *graph.Model, found []error) *blameless {
	b := &blameless{map[string]bool{}, map[*graph.Node]bool{}, map[*graph.Node]bool{}, map[string]bool{}}
	for _, err := range found {
		b.marks[mark(err)] = true
		var v *graph.VerifyError
		if errors.As(err, &v) && v.Node != nil && v.Rule > 100 {
			b.invalid[v.Node] = true
			b.copies[misuse(v)] = true
		}
	}
	note := func(g *graph.Graph) {
		for n := range g.AllNodes() {
			if untyped(n.In) || untyped(n.Out) {
				b.untyped[n] = true
			}
		}
	}
	note(m.Graph)
	for _, f := range m.Functions {
		note(f.Body)
	}
	return b
}

// has reports whether err is the input's own violation. A node that was there is known by its identity, since passes
// rename what it computes; one that a pass made of it, by its name; a copy, such as that of a loop's body, by the operator.
func (b *blameless) has(err error) bool {
	var v *graph.VerifyError
	if errors.As(err, &v) && v.Rule > 100 && (b.invalid[v.Node] || b.copies[misuse(v)] || b.untyped[v.Node] && v.Rule == ruleTypes) {
		return true
	}
	return b.marks[mark(err)]
}

func untyped(list []*graph.Value) bool {
	for _, v := range list {
		if v != nil && (v.Type.Kind == graph.KindUnknown || v.Type.IsTensor() && v.Type.Elem == graph.Undefined) {
			return true
		}
	}
	return false
}

// misuse is the rule that a node breaks and its operator.
func misuse(v *graph.VerifyError) string {
	if v.Node == nil {
		return ""
	}
	return fmt.Sprintf("%d %s %s", v.Rule, v.Node.Domain, v.Node.Op)
}

// mark tells violations apart independently of the nodes around. Violations of one node's schema are not told
// apart: upgrading words them differently.
func mark(err error) string {
	var v *graph.VerifyError
	if !errors.As(err, &v) {
		return err.Error()
	}
	where := ""
	switch {
	case v.Value != nil && v.Rule < 100: // whatever node computes it
		where = v.Value.Name
	case v.Node != nil:
		where = v.Node.Label()
	}
	switch {
	case v.Rule > 100:
		return where
	}
	return fmt.Sprintf("%d %s %s", v.Rule, where, v.Msg)
}
