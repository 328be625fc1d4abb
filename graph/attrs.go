package graph

import "slices"

// Attr returns the attribute with that name, nil without one.
func (n *Node) Attr(name string) *Attr {
	for _, a := range n.Attrs {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// SetAttr adds a or puts it in the place of the attribute with its name. Graphs in a become
// subgraphs of n.
func (n *Node) SetAttr(a *Attr) {
	for _, g := range a.Subgraphs() {
		g.Parent = n
	}
	for i := range n.Attrs {
		if n.Attrs[i].Name == a.Name {
			n.Attrs[i] = a
			return
		}
	}
	n.Attrs = append(n.Attrs, a)
}

// DeleteAttr removes the attribute with that name, if there is one.
func (n *Node) DeleteAttr(name string) {
	n.Attrs = slices.DeleteFunc(n.Attrs, func(a *Attr) bool { return a.Name == name })
}

// Int returns the int attribute of that name, or def without one.
func (n *Node) Int(name string, def int64) int64 {
	if a := n.Attr(name); a != nil && a.Type == AttrInt {
		return a.I
	}
	return def
}

// Float returns the float attribute of that name, or def without one.
func (n *Node) Float(name string, def float64) float64 {
	if a := n.Attr(name); a != nil && a.Type == AttrFloat {
		return float64(a.F)
	}
	return def
}

// Str returns the string attribute of that name, or def without one.
func (n *Node) Str(name, def string) string {
	if a := n.Attr(name); a != nil && a.Type == AttrString {
		return a.S
	}
	return def
}

// Ints returns the ints attribute of that name, nil without one.
func (n *Node) Ints(name string) []int64 {
	if a := n.Attr(name); a != nil && a.Type == AttrInts {
		return a.Ints
	}
	return nil
}

// HasAttr reports whether n has an attribute of that name.
func (n *Node) HasAttr(name string) bool { return n.Attr(name) != nil }

// Subgraph returns the graph attribute of that name, nil without one.
func (n *Node) Subgraph(name string) *Graph {
	if a := n.Attr(name); a != nil && a.Type == AttrGraph {
		return a.G
	}
	return nil
}
