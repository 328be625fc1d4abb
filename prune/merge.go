package prune

import (
	"slices"
	"strconv"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// maxKeyBytes bounds the tensors in attributes that are compared.
const maxKeyBytes = 16 << 20

// merge lets equal nodes be one: the same operator with the same attributes on the same operands, in the same graph or
// one around it. Nodes that compute the same shape, as far as symbolic dimensions tell, are equal too.
//
// Random operators, operators in training mode, nodes with subgraphs, operators that the table does not know and nodes
// that recompute a value on purpose are left alone. Constants are not taken from a graph around: inference of runtimes
// looks at those at hand.
func (p *pruner) merge() error {
	for _, g := range roots(p.m) {
		p.mergeIn(g, nil)
	}
	return nil
}

// seen holds the first node of each key in a graph, and those of the graphs around it.
type seen struct {
	nodes map[string]*graph.Node
	outer *seen
}

func (s *seen) find(key string, local bool) *graph.Node {
	for ; s != nil; s = s.outer {
		if n := s.nodes[key]; n != nil {
			return n
		}
		if local {
			break
		}
	}
	return nil
}

func (p *pruner) mergeIn(g *graph.Graph, outer *seen) {
	s := &seen{make(map[string]*graph.Node, len(g.Nodes)), outer}
	var gone []*graph.Node
	defer func() { g.Remove(gone...) }()
	for _, n := range slices.Clone(g.Nodes) {
		if p.stopped {
			return
		}
		for _, sub := range n.Subgraphs() {
			p.mergeIn(sub, s)
		}
		keys := p.keys(n)
		keep := n
		for _, key := range keys {
			if first := s.find(key, n.Is("Constant")); first != nil && canMerge(n, first) {
				if recomputes(n) || recomputes(first) {
					p.miss("merge: node %s: it and %s compute the same on purpose, to keep nothing in between", label{n}, label{first})
					continue
				}
				if p.allow("merge %s into %s", label{n}, label{first}) {
					p.stats.Merged++
					replace(n, first)
					gone = append(gone, n)
					keep = first
				}
				break
			}
		}
		for _, key := range keys {
			if s.nodes[key] == nil && keep.Graph == g {
				s.nodes[key] = keep
			}
		}
	}
}

// keys returns the texts by which n equals other nodes, none if it may not be merged.
func (p *pruner) keys(n *graph.Node) []string {
	d := op.Of(n)
	if d == nil || d.Facts&(op.Random|op.Training|op.Control) != 0 || p.m.Function(n.Domain, n.Op, n.Overload) != nil || keepsOutputName(n) {
		return nil
	}
	for _, a := range n.Attrs {
		if a.T != nil && a.T.ByteLen() > maxKeyBytes {
			return nil
		}
	}
	var keys []string
	if k, ok := rewrite.Key(n, func(v *graph.Value) string { return strconv.Itoa(v.ID) }); ok {
		keys = append(keys, k)
	}
	if k := p.shapeKey(n); k != "" {
		keys = append(keys, k)
	}
	return keys
}

// recomputes reports whether n computes a value again so that it need not be kept.
func recomputes(n *graph.Node) bool { return n.Meta.Get(graph.MetaRole) == graph.RoleRecompute }

// keepsOutputName reports whether n is an Identity that gives a value a second output name.
func keepsOutputName(n *graph.Node) bool {
	return n.Is("Identity") && len(n.Out) == 1 && n.Out[0] != nil && n.Out[0].IsOutput()
}

// shapeKey returns a text for nodes whose result holds dimensions that are all known as numbers or expressions.
func (p *pruner) shapeKey(n *graph.Node) string {
	if len(n.Out) != 1 || n.Out[0] == nil || n.Is("Constant") {
		return ""
	}
	v := n.Out[0]
	d := p.info.Elems(v)
	if len(d) == 0 || !v.Type.Elem.IsInt() || p.trains(v) {
		return ""
	}
	var b strings.Builder
	b.WriteString("dims " + v.Type.String())
	for _, x := range d {
		if x.IsUnknown() {
			return ""
		}
		b.WriteString(" " + x.String() + ";")
	}
	return b.String()
}

// canMerge reports whether first can stand for n: it has all results that n has, of the same types as far as known. Two
// small constants that both are outputs stay two.
func canMerge(n, first *graph.Node) bool {
	for i, v := range n.Out {
		if v == nil || v.NumUses() == 0 {
			continue
		}
		w := first.Result(i)
		if w == nil || v.Type.Elem != w.Type.Elem {
			return false
		}
		if b, ok := typeBytes(w.Type); n.Is("Constant") && v.IsOutput() && w.IsOutput() && ok && b <= inlineBytes {
			return false // see pruner.copies
		}
	}
	return true
}

// replace lets everybody read first's results in place of n's. An output of the main graph keeps its name: the first
// value of several that are outputs is copied by Identity.
func replace(n, first *graph.Node) {
	g := n.Graph
	for i, v := range n.Out {
		if v == nil || v.NumUses() == 0 {
			continue
		}
		w := first.Out[i]
		switch {
		case !v.IsOutput():
			v.ReplaceUses(w)
		case w.Graph == g && !w.IsOutput():
			v.TakeOver(w)
		default:
			k := g.NewNode("", "Identity", []*graph.Value{w}, []string{g.Model.Fresh(v.Name)})
			k.Name = n.Name // which goes
			k.Meta = append(graph.Meta{}, n.Meta...)
			k.Out[0].Type = w.Type
			g.InsertBefore(n, k)
			v.TakeOver(k.Out[0])
		}
	}
	clear1(n)
}

// tie lets equal initializers be one: the same type and the same bytes. Those that training changes stay apart, and so do
// inputs and outputs.
func (p *pruner) tie() error {
	for _, root := range roots(p.m) {
		for g := range root.Graphs() {
			byType := map[string][]*graph.Value{}
			var order []string
			for _, v := range g.Inits {
				if v.IsInput() || v.IsOutput() || p.trains(v) && !p.opt.Explain || v.NumUses() == 0 {
					continue
				}
				k := v.Init.Type().String()
				if byType[k] == nil {
					order = append(order, k)
				}
				byType[k] = append(byType[k], v)
			}
			for _, k := range order {
				if len(byType[k]) > 1 {
					p.tieEqual(byType[k])
				}
			}
		}
	}
	return nil
}

// tieEqual lets equal ones of values, which are initializers of one type, be one.
func (p *pruner) tieEqual(values []*graph.Value) {
	first := map[string]*graph.Value{}
	for _, v := range values {
		key, ok := digest(v.Init)
		if !ok {
			continue
		}
		w := first[key]
		if w == nil {
			first[key] = v
			continue
		}
		if p.trains(v) || p.trains(w) {
			p.miss("tie: initializers %q and %q are equal, and may be trained apart; see --frozen", w.Name, v.Name)
			continue
		}
		if !p.allow("tie %q to %q", v.Name, w.Name) {
			return
		}
		v.ReplaceUses(w)
		p.stats.Tied++
	}
}
