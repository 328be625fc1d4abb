package graph

import "fmt"

// Cloner copies nodes and graphs, with everything nested in them, within a model or from one to another. The zero
// Cloner with To set copies as is under fresh names.
type Cloner struct {
	To *Model
	// Values says what stands for a value that copies read. Results and inputs of what is copied are entered as they
	// are made; values without an entry stand for themselves. A nil entry omits the operand.
	Values map[*Value]*Value
	// Attr, if set, replaces an attribute before it is copied; nil drops it.
	Attr func(*Attr) (*Attr, error)
	// Prefix begins the names of copied values and nodes.
	Prefix string
	// KeepTypes copies types whole. Without it only element types and ranks of results are kept: symbolic
	// dimensions of a function's body mean something else in every call.
	KeepTypes bool
}

// value returns what stands for v in the copy.
func (c *Cloner) value(v *Value) *Value {
	if w, ok := c.Values[v]; ok {
		return w
	}
	return v
}

func (c *Cloner) set(v, w *Value) {
	if c.Values == nil {
		c.Values = map[*Value]*Value{}
	}
	c.Values[v] = w
}

// Node returns a copy of n for g, which stands in no graph until it is put there. Its operands are those that Values
// has for n's. The error comes from Attr.
func (c *Cloner) Node(g *Graph, n *Node) (*Node, error) {
	in := make([]*Value, len(n.In))
	for i, v := range n.In {
		if v != nil {
			in[i] = c.value(v)
		}
	}
	m := g.NewNode(n.Domain, n.Op, in, make([]string, len(n.Out)))
	m.Overload, m.Doc = n.Overload, n.Doc
	m.Meta = append(Meta{}, n.Meta...)
	if n.Name != "" || c.Prefix != "" {
		name := n.Name
		if name == "" {
			name = n.Op
		}
		m.Name = c.To.FreshNode(c.Prefix + name)
	}
	for i, v := range n.Out {
		if v != nil {
			w := m.DefineOut(i, c.To.Fresh(c.Prefix+v.Name))
			w.Type, w.Doc = c.typ(v.Type), v.Doc
			c.set(v, w)
		}
	}
	for _, a := range n.Attrs {
		b, err := c.attr(a)
		if err != nil {
			return nil, err
		}
		if b != nil {
			m.SetAttr(b)
		}
	}
	return m, nil
}

func (c *Cloner) typ(t Type) Type {
	if !c.KeepTypes && t.Shape != nil {
		t.Shape = UnknownShape(len(t.Shape))
	} else {
		t.Shape = t.Shape.Clone()
	}
	return t
}

// attr copies an attribute with the graphs in it; tensors, which nobody changes, are shared.
func (c *Cloner) attr(a *Attr) (*Attr, error) {
	if c.Attr != nil {
		var err error
		if a, err = c.Attr(a); a == nil || err != nil {
			return nil, err
		}
	}
	b := *a
	b.Src = nil
	if a.Ref != "" {
		return &b, nil
	}
	if a.G != nil {
		g, err := c.Graph(a.G)
		if err != nil {
			return nil, err
		}
		b.G = g
	}
	if a.Graphs != nil {
		b.Graphs = make([]*Graph, len(a.Graphs))
		for i, s := range a.Graphs {
			g, err := c.Graph(s)
			if err != nil {
				return nil, err
			}
			b.Graphs[i] = g
		}
	}
	return &b, nil
}

// Graph returns a copy of s for use as an attribute or function body.
func (c *Cloner) Graph(s *Graph) (*Graph, error) {
	g := c.To.NewGraph(s.Name)
	g.Doc, g.Meta = s.Doc, append(Meta{}, s.Meta...)
	for _, v := range s.Inputs {
		w := g.AddInput(c.To.Fresh(c.Prefix+v.Name), c.typ(v.Type))
		w.Doc = v.Doc
		c.set(v, w)
	}
	for _, v := range s.Inits {
		if w, ok := c.Values[v]; ok && w != nil && w.Graph == g {
			g.SetInit(w, v.Init)
			continue
		}
		c.set(v, g.AddInit(c.To.Fresh(c.Prefix+v.Name), v.Init))
	}
	for _, n := range s.Nodes {
		m, err := c.Node(g, n)
		if err != nil {
			return nil, err
		}
		g.Append(m)
	}
	for _, v := range s.Outputs {
		w := c.value(v)
		if w == nil {
			return nil, fmt.Errorf("output %q of graph %q is an omitted operand", v.Name, s.Name)
		}
		g.AddOutput(w)
	}
	return g, nil
}
