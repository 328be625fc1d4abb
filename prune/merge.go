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
	alike  map[likeness][]*once   // by what equal nodes have in common
	shapes map[string]*graph.Node // by shapeKey
	outer  *seen
}

// likeness is what is quickly told of a node. Equal nodes are alike; most nodes are like no other, and are looked at no closer.
type likeness struct {
	op     string
	in     [2]*graph.Value
	inputs int
	bytes  int64 // of a constant
}

func likenessOf(n *graph.Node) likeness {
	l := likeness{op: n.Op, inputs: len(n.In)}
	copy(l.in[:], n.In)
	if n.Is("Constant") && len(n.Attrs) == 1 && n.Attrs[0].T != nil {
		l.bytes = int64(n.Attrs[0].T.Elem)<<40 + n.Attrs[0].T.ByteLen()
	}
	for l.inputs > 0 && n.In[l.inputs-1] == nil { // omitted at the end is not given
		l.inputs--
	}
	return l
}

// once is a node with its key, which is made when a node like it turns up.
type once struct {
	n    *graph.Node
	key  string
	made bool
}

func (o *once) text() string {
	if !o.made {
		o.key, o.made = keyOf(o.n), true
	}
	return o.key
}

// keyOf returns a text by which n equals other nodes, "" if there is none.
func keyOf(n *graph.Node) string {
	k, ok := rewrite.Key(n, func(v *graph.Value) string { return strconv.Itoa(v.ID) })
	if !ok {
		return ""
	}
	return k
}

// equal returns the first node that equals o's, nil without one.
func (s *seen) equal(o *once, l likeness, local bool) *graph.Node {
	for ; s != nil; s = s.outer {
		for _, x := range s.alike[l] {
			if o.text() != "" && x.text() == o.text() {
				return x.n
			}
		}
		if local {
			break
		}
	}
	return nil
}

func (s *seen) shape(key string, local bool) *graph.Node {
	for ; s != nil; s = s.outer {
		if n := s.shapes[key]; n != nil {
			return n
		}
		if local {
			break
		}
	}
	return nil
}

func (p *pruner) mergeIn(g *graph.Graph, outer *seen) {
	s := &seen{make(map[likeness][]*once, len(g.Nodes)), map[string]*graph.Node{}, outer}
	room := make([]once, len(g.Nodes))
	var gone []*graph.Node
	defer func() { g.Remove(gone...) }()
	for i, n := range slices.Clone(g.Nodes) {
		if p.stopped {
			return
		}
		for _, sub := range n.Subgraphs() {
			p.mergeIn(sub, s)
		}
		if !p.mergeable(n) {
			continue
		}
		o, l, local := &room[i], likenessOf(n), n.Is("Constant")
		o.n = n
		equal := s.equal(o, l, local)
		shape := p.shapeKey(n)
		if shape != "" {
			o.text() // while n has its operands
		}
		keep := n
		if equal != nil && canMerge(n, equal) && p.mergeInto(n, equal) {
			gone, keep = append(gone, n), equal
		} else if !p.stopped && shape != "" {
			if first := s.shape(shape, local); first != nil && canMerge(n, first) && p.mergeInto(n, first) {
				gone, keep = append(gone, n), first
			}
		}
		if keep.Graph != g {
			continue
		}
		if equal == nil || equal.Graph != g {
			o.n = keep
			s.alike[l] = append(s.alike[l], o)
		}
		if shape != "" && s.shapes[shape] == nil {
			s.shapes[shape] = keep
		}
	}
}

// mergeInto lets everybody read first's results in place of n's, unless one of the two is there on purpose or no more may be rewritten.
func (p *pruner) mergeInto(n, first *graph.Node) bool {
	if recomputes(n) || recomputes(first) {
		p.miss("merge: node %s: it and %s compute the same on purpose, to keep nothing in between", label{n}, label{first})
		return false
	}
	if !p.allow("merge %s into %s", label{n}, label{first}) {
		return false
	}
	p.stats.Merged++
	replace(n, first)
	return true
}

// mergeable reports whether n may be merged with an equal node.
func (p *pruner) mergeable(n *graph.Node) bool {
	d := op.Of(n)
	if d == nil || d.Facts&(op.Random|op.Training|op.Control) != 0 || p.m.Function(n.Domain, n.Op, n.Overload) != nil || keepsOutputName(n) {
		return false
	}
	for _, a := range n.Attrs {
		if a.T != nil && a.T.ByteLen() > maxKeyBytes {
			return false
		}
	}
	return true
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
