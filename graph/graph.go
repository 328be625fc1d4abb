package graph

import (
	"slices"
	"strconv"
)

// Opset is one entry of a model's or function's opset_import. Domain "" is ai.onnx.
type Opset struct {
	Domain  string
	Version int64
}

// Model is an ONNX model.
type Model struct {
	IRVersion       int64
	Opsets          []Opset
	Producer        string
	ProducerVersion string
	Domain          string
	Version         int64
	Doc             string
	Graph           *Graph
	Functions       []*Function
	Meta            Meta
	File            string // where the model was read, for messages; "-" for a stream
	Origin          int64  // ai.onnx opset before nodes were brought to their newest forms; 0 if they were not
	Src             any    // belongs to the package that read the model

	lastID    int
	names     map[string]int // value names in use, all graphs of the model, see fresh; built when first asked for
	nodeNames map[string]int
}

// NewModel returns a model with an empty graph, the given ai.onnx opset and the IR version that introduced it.
func NewModel(name string, opset int64) *Model {
	m := &Model{IRVersion: irVersionFor(opset), Opsets: []Opset{{"", opset}}, Producer: "gradtool"}
	m.Graph = m.NewGraph(name)
	return m
}

// irVersionFor returns the lowest IR version, not below 8, whose release knew the ai.onnx opset
// (table "Released Versions" in the standard's Versioning.md).
func irVersionFor(opset int64) int64 {
	switch {
	case opset <= 18:
		return 8
	case opset <= 20:
		return 9
	case opset <= 22:
		return 10
	case opset <= 23:
		return 11
	case opset <= 24:
		return 12
	case opset <= 25:
		return 13
	}
	return 14
}

// RaiseIR makes the model's IR version at least the one that its ai.onnx opset came with.
func (m *Model) RaiseIR() { m.IRVersion = max(m.IRVersion, irVersionFor(m.Opset(""))) }

// Opset returns the version that the model imports for domain, 0 if it imports none. The domain
// names "" and "ai.onnx" are the same.
func (m *Model) Opset(domain string) int64 { return lookupOpset(m.Opsets, domain) }

// SetOpset makes the model import version of domain.
func (m *Model) SetOpset(domain string, version int64) { setOpset(&m.Opsets, domain, version) }

// StdDomain maps the standard's alias "ai.onnx" to "", other domains to themselves.
func StdDomain(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

func lookupOpset(list []Opset, domain string) int64 {
	for _, o := range list {
		if StdDomain(o.Domain) == StdDomain(domain) {
			return o.Version
		}
	}
	return 0
}

func setOpset(list *[]Opset, domain string, version int64) {
	for i, o := range *list {
		if StdDomain(o.Domain) == StdDomain(domain) {
			(*list)[i].Version = version
			return
		}
	}
	*list = append(*list, Opset{domain, version})
}

// Function returns the model-local function that a node with the given identity calls, nil without one.
func (m *Model) Function(domain, name, overload string) *Function {
	for _, f := range m.Functions {
		if StdDomain(f.Domain) == StdDomain(domain) && f.Name == name && f.Overload == overload {
			return f
		}
	}
	return nil
}

// Function is a model-local function. Its body's inputs and outputs are untyped unless the body's
// value_info says more. Attributes without default are listed by name, others in Defaults.
type Function struct {
	Domain, Name, Overload string
	Attrs                  []string
	Defaults               []*Attr
	Opsets                 []Opset
	Body                   *Graph
	Doc                    string
	Meta                   Meta
	Src                    any // belongs to the package that read the function
}

// Opset returns the version that the function's body imports for domain, 0 if it imports none.
func (f *Function) Opset(domain string) int64 { return lookupOpset(f.Opsets, domain) }

// SetOpset makes the function's body import version of domain.
func (f *Function) SetOpset(domain string, version int64) { setOpset(&f.Opsets, domain, version) }

// Graph is a list of nodes with inputs, outputs and initializers: a model's main graph, a
// subgraph in a node's attribute, or a function's body.
type Graph struct {
	Name    string
	Inputs  []*Value
	Outputs []*Value // change through SetOutputs; nil entries do not occur
	Inits   []*Value // values with Init set, in file order; may be inputs too (then Init is a default)
	Nodes   []*Node  // in execution order after Sort
	Doc     string
	Meta    Meta
	Model   *Model
	Parent  *Node     // the node whose attribute holds the graph; nil for main graphs and function bodies
	Func    *Function // the function whose body the graph is, or nil
	Src     any       // belongs to the package that read the graph
}

// NewGraph returns an empty graph that belongs to m but is attached nowhere.
func (m *Model) NewGraph(name string) *Graph { return &Graph{Name: name, Model: m} }

// Value is something that nodes read: the result of a node, a graph input, or an initializer.
type Value struct {
	ID    int // dense in the model, stable, in order of creation
	Name  string
	Type  Type
	Def   *Node   // the node that defines the value; nil for inputs and initializers
	Index int     // which result of Def
	Init  *Tensor // data of an initializer, or default of an input
	Graph *Graph  // in whose scope the value is defined
	Doc   string
	uses  []Use
}

// Use is one reading of a value: operand Index of Node or, where Node is nil, output Index of Graph.
type Use struct {
	Node  *Node
	Graph *Graph // of an output use; nil for operands
	Index int
}

// Node is one application of an operator.
type Node struct {
	ID       int // dense in the model, stable, in order of creation
	Name     string
	Domain   string
	Op       string
	Overload string
	In       []*Value // operands; nil where omitted; change through SetIn
	Out      []*Value // results; nil where omitted
	Attrs    []*Attr
	Doc      string
	Meta     Meta
	Graph    *Graph
	Src      any // belongs to the package that read the node
}

// NextID returns the ID that the next value or node of the model gets: those made from now on have it or a higher one.
func (m *Model) NextID() int { return m.lastID + 1 }

// newValue returns a value of g; the name is taken as it is and marked as used.
func (g *Graph) newValue(name string, t Type) *Value {
	m := g.Model
	m.lastID++
	if m.names != nil {
		m.names[name] = max(m.names[name], 1)
	}
	return &Value{ID: m.lastID, Name: name, Type: t, Graph: g}
}

// AddInput appends a graph input.
func (g *Graph) AddInput(name string, t Type) *Value {
	v := g.newValue(name, t)
	g.Inputs = append(g.Inputs, v)
	return v
}

// AddInit appends an initializer.
func (g *Graph) AddInit(name string, t *Tensor) *Value {
	v := g.newValue(name, t.Type())
	v.Init = t
	g.Inits = append(g.Inits, v)
	return v
}

// SetInit makes v, a graph input, an initializer too: t is its default.
func (g *Graph) SetInit(v *Value, t *Tensor) {
	if v.Init == nil {
		g.Inits = append(g.Inits, v)
	}
	v.Init = t
}

// AddUndefined returns a value that nothing defines. Readers use it for operands of broken files, so
// that the verifier can report them; see [Verify].
func (g *Graph) AddUndefined(name string) *Value { return g.newValue(name, Type{}) }

// NewNode returns a node with the given operands and one result per name ("" omits the result).
// It reads its operands from now on but stands in no graph until Append or InsertBefore. Graphs in
// attrs become its subgraphs.
func (g *Graph) NewNode(domain, op string, in []*Value, out []string, attrs ...*Attr) *Node {
	m := g.Model
	m.lastID++
	n := &Node{ID: m.lastID, Domain: domain, Op: op, Graph: g}
	n.In = make([]*Value, len(in))
	for i, v := range in {
		n.SetIn(i, v)
	}
	n.Out = make([]*Value, len(out))
	for i, name := range out {
		if name != "" {
			n.DefineOut(i, name)
		}
	}
	for _, a := range attrs {
		n.SetAttr(a)
	}
	return n
}

// DefineOut gives the node a result i, which must be omitted so far, and returns it.
func (n *Node) DefineOut(i int, name string) *Value {
	for len(n.Out) <= i {
		n.Out = append(n.Out, nil)
	}
	v := n.Graph.newValue(name, Type{})
	v.Def, v.Index = n, i
	n.Out[i] = v
	return v
}

// InsertOut gives the node a new result in front of result i and returns it.
func (n *Node) InsertOut(i int, name string) *Value {
	v := n.DefineOut(len(n.Out), name)
	copy(n.Out[i+1:], n.Out[i:])
	n.Out[i] = v
	for j, w := range n.Out {
		if w != nil {
			w.Index = j
		}
	}
	return v
}

// Append puts nodes at the end of g.
func (g *Graph) Append(nodes ...*Node) {
	for _, n := range nodes {
		n.Graph = g
	}
	g.Nodes = append(g.Nodes, nodes...)
}

// InsertBefore puts nodes in front of at; at nil means the end.
func (g *Graph) InsertBefore(at *Node, nodes ...*Node) {
	i := slices.Index(g.Nodes, at)
	if at == nil || i < 0 {
		g.Append(nodes...)
		return
	}
	for _, n := range nodes {
		n.Graph = g
	}
	g.Nodes = slices.Insert(g.Nodes, i, nodes...)
}

// Remove takes nodes out of g and drops their uses, also those inside their subgraphs. Their results
// must have no uses left, except by each other.
func (g *Graph) Remove(nodes ...*Node) {
	switch len(nodes) {
	case 0:
		return
	case 1: // passes remove nodes one by one
		nodes[0].dropUses()
		if i := slices.Index(g.Nodes, nodes[0]); i >= 0 {
			g.Nodes = slices.Delete(g.Nodes, i, i+1)
		}
		return
	}
	gone := make(map[*Node]bool, len(nodes))
	for _, n := range nodes {
		gone[n] = true
		n.dropUses()
	}
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n *Node) bool { return gone[n] })
}

// dropUses makes n, and every node in its subgraphs, read nothing.
func (n *Node) dropUses() {
	for i := range n.In {
		n.SetIn(i, nil)
	}
	for _, sub := range n.Subgraphs() {
		sub.SetOutputs()
		for _, m := range sub.Nodes {
			m.dropUses()
		}
	}
}

// RemoveInits takes initializers that nothing reads, and that are no inputs, out of g.
func (g *Graph) RemoveInits(drop func(*Value) bool) {
	g.Inits = slices.DeleteFunc(g.Inits, drop)
}

// SetOutputs replaces the list of graph outputs.
func (g *Graph) SetOutputs(values ...*Value) {
	for i, v := range g.Outputs {
		v.dropUse(Use{Graph: g, Index: i})
	}
	g.Outputs = slices.Clone(values)
	for i, v := range g.Outputs {
		v.uses = append(v.uses, Use{Graph: g, Index: i})
	}
}

// AddOutput appends v to the graph outputs.
func (g *Graph) AddOutput(v *Value) {
	v.uses = append(v.uses, Use{Graph: g, Index: len(g.Outputs)})
	g.Outputs = append(g.Outputs, v)
}

// SetIn makes v operand i of n; nil omits it. Operands are added as needed.
func (n *Node) SetIn(i int, v *Value) {
	for len(n.In) <= i {
		n.In = append(n.In, nil)
	}
	if old := n.In[i]; old != nil {
		old.dropUse(Use{Node: n, Index: i})
	}
	n.In[i] = v
	if v != nil {
		v.uses = append(v.uses, Use{Node: n, Index: i})
	}
}

// TrimIn drops omitted operands at the end of the operand list, and operands from max on.
func (n *Node) TrimIn(max int) {
	for len(n.In) > max || (len(n.In) > 0 && n.In[len(n.In)-1] == nil) {
		last := len(n.In) - 1
		n.SetIn(last, nil)
		n.In = n.In[:last]
	}
}

// Operand returns operand i, nil where it is omitted.
func (n *Node) Operand(i int) *Value {
	if i < len(n.In) {
		return n.In[i]
	}
	return nil
}

// Result returns result i, nil where it is omitted.
func (n *Node) Result(i int) *Value {
	if i < len(n.Out) {
		return n.Out[i]
	}
	return nil
}

// Subgraphs returns the graphs in n's attributes, in attribute order.
func (n *Node) Subgraphs() []*Graph {
	var out []*Graph
	for _, a := range n.Attrs {
		out = append(out, a.Subgraphs()...)
	}
	return out
}

// Is reports whether n applies the operator of the ai.onnx domain with that name.
func (n *Node) Is(op string) bool { return n.Op == op && StdDomain(n.Domain) == "" }

// Opset returns the version of the node's own domain that is in force where n stands: the enclosing
// function's import if it stands in one, else the model's.
func (n *Node) Opset() int64 { return n.Graph.Opset(n.Domain) }

// Opset returns the version of domain in force in g.
func (g *Graph) Opset(domain string) int64 {
	if f := g.root().Func; f != nil {
		return f.Opset(domain)
	}
	return g.Model.Opset(domain)
}

// root returns the main graph or function body that g is nested in, possibly g itself.
func (g *Graph) root() *Graph {
	for g.Parent != nil {
		g = g.Parent.Graph
	}
	return g
}

// Label returns how messages call n: its name or, without one, its first result's, with the operator.
func (n *Node) Label() string {
	name := n.Name
	if name == "" {
		for _, v := range n.Out {
			if v != nil {
				name = v.Name
				break
			}
		}
	}
	op := n.Op
	if d := StdDomain(n.Domain); d != "" {
		op = d + "." + op
	}
	return strconv.Quote(name) + " (" + op + ")"
}

// Uses returns the places that read v; the caller must not change the slice.
func (v *Value) Uses() []Use { return v.uses }

// NumUses returns how often v is read, graph outputs included.
func (v *Value) NumUses() int { return len(v.uses) }

// IsInput reports whether v is an input of its graph.
func (v *Value) IsInput() bool { return v.Def == nil && slices.Contains(v.Graph.Inputs, v) }

// IsOutput reports whether v is an output of some graph.
func (v *Value) IsOutput() bool {
	return slices.ContainsFunc(v.uses, func(u Use) bool { return u.Node == nil })
}

// IsConst reports whether v is an initializer that nobody can override: it has data and is no input.
// Before IR version 4 every initializer had to be listed as an input, so there the data alone decides.
func (v *Value) IsConst() bool {
	return v.Init != nil && (v.Graph.Model.IRVersion < 4 || !v.IsInput())
}

// ReplaceUses makes every place that reads v read w instead, graph outputs included.
func (v *Value) ReplaceUses(w *Value) {
	if v == w {
		return
	}
	for _, u := range v.uses {
		if u.Node != nil {
			u.Node.In[u.Index] = w
		} else {
			u.Graph.Outputs[u.Index] = w
		}
	}
	w.uses = append(w.uses, v.uses...)
	v.uses = nil
}

// TakeOver makes v the result that w is: the node that defines w defines v in its place, and what reads w
// reads v. So a node can be replaced while the values that others know keep their identity and names. Both
// must belong to the same graph and be results of nodes; the node that defined v loses that result.
func (v *Value) TakeOver(w *Value) {
	if v == w {
		return
	}
	v.Def.Out[v.Index] = nil
	w.Def.Out[w.Index] = v
	v.Def, v.Index, w.Def = w.Def, w.Index, nil
	w.ReplaceUses(v)
}

func (v *Value) dropUse(u Use) {
	if i := slices.Index(v.uses, u); i >= 0 {
		v.uses = slices.Delete(v.uses, i, i+1)
	}
}
