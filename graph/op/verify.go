package op

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op/schema"
	"gradtool/internal/suggest"
)

// The rules that Verify checks, by number; those below 100 are in package graph:
//
//  101. An operator of a domain whose operators are known exists, in the opset that is imported.
//  102. The operator is not deprecated in that opset.
//  103. Operands, results and attributes are as the operator's schema says: counts and names, apart from rule 107.
//  104. A call of a model-local function has no more operands and results than the function, and only its attributes.
//  105. The subgraphs of If, Loop and Scan have the inputs and outputs that the node's operands and results ask for.
//  106. Operands and results have types that the operator's schema allows.
//  107. What the operator cannot do without, in its newest version too, is there: operands that are not optional, attributes
//     that have no default, and none is text where a number is wanted or the other way round.
const (
	ruleExists = 101 + iota
	ruleDeprecated
	ruleSchema
	ruleCall
	ruleBody
	ruleTypes
	RuleVital // exported: a model that violates it means nothing
)

// Verify checks the nodes of m, in all graphs and functions, against the schemas: the rules above. Nodes of an upgraded
// model are held against the newest version of their operator. Types that are not known violate nothing. All violations
// are returned, joined, each a [*graph.VerifyError].
func Verify(m *graph.Model) error {
	v := &verifier{m: m}
	v.graph(m.Graph)
	for _, f := range m.Functions {
		v.graph(f.Body)
	}
	return errors.Join(v.errs...)
}

type verifier struct {
	m     *graph.Model
	errs  []error
	facts schema.Node // of the node at hand
}

func (v *verifier) report(n *graph.Node, rule int, format string, args ...any) {
	v.errs = append(v.errs, graph.Violation(rule, n, fmt.Sprintf(format, args...)))
}

func (v *verifier) graph(g *graph.Graph) {
	for n := range g.AllNodes() {
		if f := v.m.Function(n.Domain, n.Op, n.Overload); f != nil {
			v.call(n, f)
			continue
		}
		v.node(n)
		v.bodies(n)
	}
}

func (v *verifier) node(n *graph.Node) {
	domain := graph.StdDomain(n.Domain)
	if !slices.Contains(schema.Domains(), domain) {
		return
	}
	opset := int(n.Opset())
	if domain == "" && v.m.Origin != 0 {
		opset = max(opset, schema.MaxOpset(""))
	}
	s, ok := schema.Lookup(domain, n.Op, max(opset, 1))
	if !ok {
		if vs := schema.Versions(domain, n.Op); len(vs) > 0 {
			v.report(n, ruleExists, "the operator came with opset %d, the model imports %d", vs[0].Since, opset)
			return
		}
		if contribDomain(domain) {
			return // only some operators of such a domain are known
		}
		v.report(n, ruleExists, "there is no such operator%s", suggestion(domain, n.Op))
		return
	}
	if s.Deprecated {
		v.report(n, ruleDeprecated, "the operator is deprecated from opset %d on, the model imports %d", s.Since, opset)
	}
	for _, found := range s.Violations(v.factsOf(n, opset)) {
		rule := ruleSchema
		switch {
		case found.Vital && lacks(n, domain):
			rule = RuleVital
		case isTypeMessage(found.Msg):
			rule = ruleTypes
		}
		v.report(n, rule, "%s", found.Msg)
	}
}

// factsOf returns what the check of n needs: what schemaNode does, without shapes and elements. It holds until the next call.
func (v *verifier) factsOf(n *graph.Node, opset int) *schema.Node {
	f := &v.facts
	f.Opset, f.In, f.Out, f.Attrs = opset, f.In[:0], f.Out[:0], f.Attrs[:0]
	for _, x := range n.In {
		f.In = append(f.In, schemaOperandType(x))
	}
	for _, x := range n.Out {
		f.Out = append(f.Out, schemaOperandType(x))
	}
	for _, a := range n.Attrs {
		f.Attrs = append(f.Attrs, schema.AttrFact{Name: a.Name, Type: schema.AttrType(a.Type)})
	}
	return f
}

// lacks reports whether n has not what the newest version of its operator cannot do without: files leave out what is only
// asked for by an old version, such as the third operand of Gemm, and mean what a newer one says.
func lacks(n *graph.Node, domain string) bool {
	top := schema.MaxOpset(domain)
	s, ok := schema.Lookup(domain, n.Op, top)
	if !ok || s.Deprecated {
		return true
	}
	return slices.ContainsFunc(s.Violations(schemaNode(n, top, nil)), func(v schema.Violation) bool { return v.Vital })
}

// isTypeMessage reports whether a message of [schema.Schema.Accepts] is about the type of an operand or a result.
func isTypeMessage(msg string) bool {
	return strings.Contains(msg, " has type ") && !strings.HasPrefix(msg, "attribute ")
}

// contribDomain reports whether the schemas of a domain are not all known: those outside the standard.
func contribDomain(domain string) bool {
	return domain != "" && !strings.HasPrefix(domain, "ai.onnx")
}

func (v *verifier) call(n *graph.Node, f *graph.Function) {
	if f.Body == nil {
		return
	}
	if k := len(f.Body.Inputs); len(n.In) > k {
		v.report(n, ruleCall, "%d operands, function %s takes %d", len(n.In), functionName(f), k)
	}
	if k := len(f.Body.Outputs); len(n.Out) > k {
		v.report(n, ruleCall, "%d results, function %s has %d", len(n.Out), functionName(f), k)
	}
	if err := checkCallAttrs(n, f); err != nil {
		v.report(n, ruleCall, "%v", err)
	}
}

// bodies checks the number of inputs and outputs of subgraphs.
func (v *verifier) bodies(n *graph.Node) {
	if graph.StdDomain(n.Domain) != "" {
		return
	}
	want := func(name string, inputs, outputs int) {
		g := n.Subgraph(name)
		if g == nil {
			return
		}
		if len(g.Inputs) != inputs {
			v.report(n, ruleBody, "%s has %d inputs, want %d", name, len(g.Inputs), inputs)
		}
		if len(g.Outputs) != outputs {
			v.report(n, ruleBody, "%s has %d outputs, want %d", name, len(g.Outputs), outputs)
		}
	}
	switch n.Op {
	case "If":
		want("then_branch", 0, len(n.Out))
		want("else_branch", 0, len(n.Out))
	case "Loop":
		want("body", max(len(n.In), 2), len(n.Out)+1)
	case "Scan":
		if n.Opset() >= 9 || v.m.Origin != 0 {
			want("body", len(n.In), len(n.Out))
		}
	}
}

// suggestion returns the known operators that a name may have meant, as the end of a message, "" without a good one.
func suggestion(domain, name string) string {
	var names []string
	for _, s := range schema.All() {
		if s.Name == name && s.Domain != domain {
			return fmt.Sprintf("; did you mean %s", Key{s.Domain, s.Name})
		}
		if s.Domain == domain {
			names = append(names, s.Name)
		}
	}
	if near := suggest.Nearest(name, names); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ")
	}
	return ""
}
