package op

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op/schema"
)

// OpsetError lists the nodes that stand in the way of an opset.
type OpsetError struct {
	Version int64
	Nodes   []NodeOpsetError
}

// NodeOpsetError says why a node cannot stand in a model of some ai.onnx opset.
type NodeOpsetError struct {
	Node *graph.Node
	Err  error
}

// maxListed is how many nodes a message names.
const maxListed = 20

// Error lists the nodes with their reasons, one per line.
func (e *OpsetError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d nodes have no form at opset %d", len(e.Nodes), e.Version)
	if len(e.Nodes) == 1 {
		b.Reset()
		fmt.Fprintf(&b, "1 node has no form at opset %d", e.Version)
	}
	for i, n := range e.Nodes {
		if i == maxListed {
			fmt.Fprintf(&b, "\n  ... and %d more", len(e.Nodes)-i)
			break
		}
		fmt.Fprintf(&b, "\n  node %s: %v", n.Node.Label(), n.Err)
	}
	return b.String()
}

// LowestOpset returns the lowest ai.onnx opset, not below the one that m had before [Upgrade], at which every ai.onnx
// node of m means what it means now. If there is none, the error is an [*OpsetError] for the newest opset.
func LowestOpset(m *graph.Model) (int64, error) { return lowestOpset(m, opsetNodes(m)) }

func lowestOpset(m *graph.Model, nodes []*opsetNode) (int64, error) {
	low := m.Opset("")
	if m.Origin != 0 {
		low = m.Origin
	}
	top := max(int64(schema.MaxOpset("")), m.Opset(""))
	suspect := 0 // the node that ruled out the opset before is likely to rule out the next
	for v := max(low, 1); v <= top; v++ {
		if len(nodes) > 0 && nodes[suspect].legal(int(v)) != nil {
			continue
		}
		i := slices.IndexFunc(nodes, func(n *opsetNode) bool { return n.legal(int(v)) != nil })
		if i < 0 {
			return v, nil
		}
		suspect = i
	}
	e := &OpsetError{Version: top}
	for _, n := range nodes {
		if err := n.legal(int(top)); err != nil {
			e.Nodes = append(e.Nodes, NodeOpsetError{n.node, err})
		}
	}
	return 0, e
}

// SetOpset makes m and its functions import the given ai.onnx opset, for which every node must have a form that means
// what it means now; nodes get that form. Else the error is an [*OpsetError] that lists those that don't, and m is left
// as it was. The IR version is raised to what the opset needs.
func SetOpset(m *graph.Model, version int64) error { return setOpset(m, version, opsetNodes(m)) }

// SetLowestOpset is SetOpset for the version that [LowestOpset] finds.
func SetLowestOpset(m *graph.Model) error {
	nodes := opsetNodes(m)
	version, err := lowestOpset(m, nodes)
	if err != nil {
		return err
	}
	return setOpset(m, version, nodes)
}

func setOpset(m *graph.Model, version int64, nodes []*opsetNode) error {
	if top := int64(schema.MaxOpset("")); version < 1 || version > max(top, m.Opset("")) {
		return fmt.Errorf("opset %d does not exist; known are 1 to %d", version, top)
	}
	e := &OpsetError{Version: version}
	for _, n := range nodes {
		if err := n.legal(int(version)); err != nil {
			e.Nodes = append(e.Nodes, NodeOpsetError{n.node, err})
		}
	}
	if len(e.Nodes) > 0 {
		return e
	}
	for _, n := range nodes {
		n.lower(int(version))
	}
	m.SetOpset("", version)
	for _, f := range m.Functions {
		f.SetOpset("", version)
	}
	m.Origin = 0
	m.RaiseIR()
	return nil
}

// opsetNode is a node and what decides where it is legal. Most operators are the same at every opset in question, so
// the facts about the node are gathered on demand.
type opsetNode struct {
	node  *graph.Node
	opset int
	form  *schema.Schema // at opset
	info  *Info
	known *schema.Node // the facts, nil as long as nobody asked
	fine  int          // an opset that was found legal
}

func (n *opsetNode) fact() *schema.Node {
	if n.known == nil {
		n.known = schemaNode(n.node, n.opset, n.info)
	}
	return n.known
}

// same reports whether the node's operator at the opset is what it is in the node's own form.
func (n *opsetNode) same(opset int) bool {
	s, ok := schema.Lookup("", n.node.Op, opset)
	return ok && s == n.form
}

// opsetNodes returns the ai.onnx nodes of m, its subgraphs and its functions, apart from unknown operators.
func opsetNodes(m *graph.Model) []*opsetNode {
	info := NewInfo()
	form := func(g *graph.Graph) int {
		if m.Origin != 0 {
			return schema.MaxOpset("") // where Upgrade left it
		}
		return int(max(g.Opset(""), 1))
	}
	var out []*opsetNode
	add := func(g *graph.Graph) {
		for n := range g.AllNodes() {
			if graph.StdDomain(n.Domain) != "" || m.Function(n.Domain, n.Op, n.Overload) != nil {
				continue
			}
			if s, ok := schema.Lookup("", n.Op, form(g)); ok {
				out = append(out, &opsetNode{node: n, opset: form(g), form: s, info: info})
			}
		}
	}
	add(m.Graph)
	for _, f := range m.Functions {
		add(f.Body)
	}
	return out
}

// at returns the facts of the node in its form at opset: attributes that hold their defaults are dropped where the
// older operator lacks them, and said where its default is another.
func (n *opsetNode) at(opset int) *schema.Node {
	s := *n.fact()
	drop := schema.Droppable("", n.node.Op, opset, n.fact())
	s.Attrs = slices.DeleteFunc(slices.Clone(s.Attrs), func(a schema.AttrFact) bool { return slices.Contains(drop, a.Name) })
	for _, a := range n.unsaid(opset) {
		s.Attrs = append(s.Attrs, schemaAttr(a))
	}
	return &s
}

// legal returns nil if the node has a form at opset.
func (n *opsetNode) legal(opset int) error {
	if n.same(opset) || n.fine == opset {
		return nil
	}
	err := n.illegal(opset)
	if err == nil {
		n.fine = opset
	}
	return err
}

// illegal is legal where it is not known yet.
func (n *opsetNode) illegal(opset int) error {
	err := schema.LegalAt("", n.node.Op, opset, n.at(opset))
	var illegal *schema.IllegalError
	if !errors.As(err, &illegal) {
		return err
	}
	own := n.form.Accepts(n.fact()) // how the node departs from the schema of its own form: no matter of opsets, see Verify
	reasons := slices.DeleteFunc(slices.Clone(illegal.Reasons), func(r string) bool { return slices.Contains(own, r) })
	if len(reasons) == 0 {
		return nil
	}
	return errors.New(strings.Join(reasons, "; ")) // the opset is said once for all nodes
}

// lower gives the node its form at opset.
func (n *opsetNode) lower(opset int) {
	if n.same(opset) {
		return
	}
	for _, name := range schema.Droppable("", n.node.Op, opset, n.fact()) {
		n.node.DeleteAttr(name)
	}
	for _, a := range n.unsaid(opset) {
		n.node.SetAttr(a)
	}
}

// unsaid returns the attributes, with their values, that the node leaves out because they hold defaults which are others
// at opset.
func (n *opsetNode) unsaid(opset int) []*graph.Attr {
	to, ok := schema.Lookup("", n.node.Op, opset)
	if !ok || n.form == to {
		return nil
	}
	var out []*graph.Attr
	for _, t := range to.Attrs {
		f, known := n.form.Attr(t.Name)
		if !known || f.Type != t.Type || n.node.HasAttr(t.Name) || f.Default == nil || to.IsDefault(t.Name, f.Default) {
			continue
		}
		switch v := f.Default.(type) {
		case int64:
			out = append(out, graph.IntAttr(t.Name, v))
		case float32:
			out = append(out, graph.FloatAttr(t.Name, v))
		case string:
			out = append(out, graph.StringAttr(t.Name, v))
		}
	}
	return out
}
