package fuse

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"gradtool/graph"
	"gradtool/graph/rewrite"
)

// body is a cluster in the form that equal clusters share: nodes in an order that follows from their operands alone, values
// by number.
type body struct {
	nodes   []*graph.Node            // the cluster's, in the order of the body
	consts  []*graph.Value           // small constants, in front of the nodes
	inputs  []*graph.Value           // operands of the call
	outputs []*graph.Value           // results of the call
	number  map[*graph.Value]string  // names of values in the body
	key     string                   // equal for equal bodies
	hash    string                   // of the key, eight hexadecimal digits
	fn      *graph.Function          // the body as that of a function, without name
	opsets  []graph.Opset            // what the body imports, in order of first use
	member  map[*graph.Node]struct{} // the nodes as a set
}

// newBody returns the body of the nodes of a graph, which must be a convex cluster. It has no answer where a constant's data
// cannot be read, or where nothing reads what the nodes compute.
func newBody(f *facts, nodes []*graph.Node) *body {
	b := &body{number: map[*graph.Value]string{}, member: map[*graph.Node]struct{}{}}
	for _, n := range nodes {
		b.member[n] = struct{}{}
	}
	for _, n := range nodes {
		for _, v := range n.Out {
			if v != nil && b.leaves(v) {
				b.outputs = append(b.outputs, v)
			}
		}
	}
	if len(b.outputs) == 0 {
		return nil
	}
	done := map[*graph.Node]bool{}
	for _, v := range b.outputs {
		b.visit(v.Def, done)
	}
	for _, n := range nodes {
		if !done[n] {
			return nil // dead: nothing that leaves depends on it
		}
	}
	b.values(f)
	b.imports()
	b.fn = b.function(f.m)
	var ok bool
	if b.key, b.hash, ok = keyOf(b.fn); !ok {
		return nil
	}
	return b
}

// leaves reports whether something outside the cluster reads v.
func (b *body) leaves(v *graph.Value) bool {
	return slices.ContainsFunc(v.Uses(), func(u graph.Use) bool {
		if u.Node == nil {
			return true
		}
		_, in := b.member[u.Node]
		return !in
	})
}

// visit lists n behind what it reads. Clusters are bounded, so is the depth.
func (b *body) visit(n *graph.Node, done map[*graph.Node]bool) {
	if _, in := b.member[n]; !in || done[n] {
		return
	}
	done[n] = true
	for _, v := range n.In {
		if v != nil && v.Def != nil {
			b.visit(v.Def, done)
		}
	}
	b.nodes = append(b.nodes, n)
}

// values numbers operands, constants and results in the order in which the body meets them.
func (b *body) values(f *facts) {
	for _, n := range b.nodes {
		for _, v := range n.In {
			if v == nil || b.number[v] != "" {
				continue
			}
			if f.inside(v) {
				b.number[v] = "c" + strconv.Itoa(len(b.consts))
				b.consts = append(b.consts, v)
			} else {
				b.number[v] = "x" + strconv.Itoa(len(b.inputs))
				b.inputs = append(b.inputs, v)
			}
		}
		for _, v := range n.Out {
			if v != nil {
				b.number[v] = "v" + strconv.Itoa(len(b.number))
			}
		}
	}
}

// imports notes the domains that the nodes use.
func (b *body) imports() {
	for _, n := range b.nodes {
		if !slices.ContainsFunc(b.opsets, func(o graph.Opset) bool { return graph.StdDomain(o.Domain) == graph.StdDomain(n.Domain) }) {
			b.opsets = append(b.opsets, graph.Opset{Domain: n.Domain, Version: n.Opset()})
		}
	}
}

// keyOf returns a text that two functions share exactly if their bodies are written the same, value names included, and the hash
// of it that the names of functions end in. It has no answer where a constant's data cannot be read.
func keyOf(f *graph.Function) (key, hash string, ok bool) {
	var s strings.Builder
	name := func(v *graph.Value) string { return v.Name }
	for _, n := range f.Body.Nodes {
		k, ok := rewrite.Key(n, name)
		if !ok {
			return "", "", false
		}
		s.WriteString(k)
		fmt.Fprintf(&s, "/%d", len(n.In)) // omitted operands at the end are kept
		for _, v := range n.Out {
			s.WriteByte('>')
			if v != nil {
				s.WriteString(v.Name)
			}
		}
		for _, a := range n.Attrs {
			s.WriteString("," + a.Name) // so is the order of attributes
		}
		s.WriteByte('\n')
	}
	for _, v := range f.Body.Outputs {
		s.WriteString("out " + v.Name + "\n")
	}
	for _, o := range f.Opsets {
		fmt.Fprintf(&s, "opset %s %d\n", graph.StdDomain(o.Domain), o.Version)
	}
	h := fnv.New32a()
	h.Write([]byte(s.String()))
	return s.String(), fmt.Sprintf("%08x", h.Sum32()), true
}

// function returns a function with this body, which has no name yet.
func (b *body) function(m *graph.Model) *graph.Function {
	f := &graph.Function{Domain: Domain}
	g := m.NewGraph("")
	g.Func, f.Body = f, g
	values := map[*graph.Value]*graph.Value{}
	for _, v := range b.inputs {
		values[v] = g.AddInput(b.number[v], graph.Type{})
	}
	for _, v := range b.consts {
		attr := graph.TensorAttr("value", v.Init)
		if v.Init == nil {
			attr = bare(v.Def.Attrs[0])
		}
		k := g.NewNode("", "Constant", nil, []string{b.number[v]}, attr)
		values[v] = k.Out[0]
		g.Append(k)
	}
	for _, n := range b.nodes {
		in := make([]*graph.Value, len(n.In))
		for i, v := range n.In {
			if v != nil {
				in[i] = values[v]
			}
		}
		k := g.NewNode(n.Domain, n.Op, in, make([]string, len(n.Out)))
		k.Overload = n.Overload
		for _, a := range n.Attrs {
			k.SetAttr(bare(a))
		}
		for i, v := range n.Out {
			if v != nil {
				values[v] = k.DefineOut(i, b.number[v])
			}
		}
		g.Append(k)
	}
	for _, v := range b.outputs {
		g.AddOutput(values[v])
	}
	f.Opsets = slices.Clone(b.opsets)
	if len(b.consts) > 0 && f.Opset("") == 0 {
		f.SetOpset("", m.Opset(""))
	}
	return f
}

// bare returns a copy of an attribute without what belongs to the package that read it.
func bare(a *graph.Attr) *graph.Attr {
	c := *a
	c.Src = nil
	return &c
}
