package fuse

import (
	"slices"
	"strconv"

	"gradtool/graph"
)

// emitter turns clusters into calls.
type emitter struct {
	m      *graph.Model
	shared map[string]*graph.Function // by rule and key of the body
	names  map[string]bool
	places map[*graph.Node]int // in their graphs, from 1, before anything moved
}

func newEmitter(m *graph.Model) *emitter {
	e := &emitter{m: m, shared: map[string]*graph.Function{}, names: map[string]bool{}, places: map[*graph.Node]int{}}
	for g := range m.Graph.Graphs() {
		for i, n := range g.Nodes {
			e.places[n] = i + 1
		}
	}
	for _, f := range m.Functions {
		if f.Domain == Domain {
			e.names[f.Name] = true
		}
	}
	return e
}

// call makes a call of the cluster in the place of its nodes, at the position of the last of them in g.Nodes.
func (e *emitter) call(g *graph.Graph, c *Cluster) *graph.Node {
	b := c.body
	f := e.shared[c.Rule+"\x00"+b.key]
	if f == nil {
		name := identifier(c.Rule) + "_" + b.hash
		for k := 2; e.names[name]; k++ {
			name = identifier(c.Rule) + "_" + b.hash + "_" + strconv.Itoa(k)
		}
		e.names[name] = true
		f = b.fn
		f.Name, f.Body.Name, f.Doc = name, name, c.Doc
		e.shared[c.Rule+"\x00"+b.key] = f
		e.m.Functions = append(e.m.Functions, f)
	}
	n := g.NewNode(Domain, f.Name, b.inputs, make([]string, len(b.outputs)))
	n.Name = e.m.FreshNode(c.ID + "/" + c.Rule)
	if c.Role != "" {
		n.Meta.Set(graph.MetaRole, c.Role)
	}
	if c.From != "" {
		n.Meta.Set(graph.MetaFrom, c.From)
	}
	c.mark(&n.Meta)
	var list []record
	for _, v := range b.consts {
		if v.Init != nil {
			list = append(list, record{Out: []string{v.Name}, Const: isInit, Doc: v.Doc})
			continue
		}
		r := recordOf(v.Def)
		r.Const, r.At = isNode, e.places[v.Def]
		if t := v.Def.Attrs[0].T; t != nil {
			r.Label = t.Name
		}
		list = append(list, r)
	}
	for _, k := range b.nodes {
		r := recordOf(k)
		r.At = e.places[k]
		list = append(list, r)
	}
	n.Meta.Set(MetaNodes, encode(list))
	g.InsertBefore(b.last(g), n)
	for i, v := range b.outputs {
		v.Def.Out[v.Index] = nil
		n.Out[i], v.Def, v.Index = v, n, i
	}
	g.Remove(b.nodes...)
	return n
}

// last returns the node of the cluster that stands last in g.
func (b *body) last(g *graph.Graph) *graph.Node {
	for _, n := range slices.Backward(g.Nodes) {
		if _, in := b.member[n]; in {
			return n
		}
	}
	return nil
}

// mark leaves what is known of the cluster.
func (c *Cluster) mark(m *graph.Meta) {
	m.Set(MetaCluster, c.ID)
	m.Set(MetaRule, c.Rule)
	if len(c.Pair) > 0 {
		s := ""
		for i, id := range c.Pair {
			if i > 0 {
				s += " "
			}
			s += id
		}
		m.Set(MetaPair, s)
	}
	m.Set(MetaSaved, c.Saved.String())
	if len(c.Inside) > 0 {
		m.Set(MetaInside, encode(c.Inside))
	}
}

// notePlaces leaves the places of nodes outside of clusters that are not in their order any more.
func (e *emitter) notePlaces(g *graph.Graph) {
	last := 0
	for _, n := range g.Nodes {
		switch at := e.places[n]; {
		case at == 0: // a call
		case at < last:
			n.Meta.Set(metaPlace, strconv.Itoa(at))
		default:
			last = at
		}
	}
}

// identifier returns a rule's name as part of a function's.
func identifier(rule string) string {
	out := []byte(rule)
	for i, c := range out {
		if c == '-' {
			out[i] = '_'
		}
	}
	return string(out)
}

// require gives the model what functions need: an IR version that has them and an import of their domain.
func require(m *graph.Model) {
	const least = 8
	if m.IRVersion < least {
		if m.IRVersion < 4 {
			unlist(m)
		}
		m.Meta.Set(metaIR, strconv.FormatInt(m.IRVersion, 10))
		m.IRVersion = least
	}
	if m.Opset(Domain) == 0 {
		m.SetOpset(Domain, 1)
	}
}

// unlist takes initializers out of the inputs.
func unlist(m *graph.Model) {
	var gone []listed
	for i, v := range m.Graph.Inputs {
		if v.Init != nil {
			gone = append(gone, listed{v.Name, i})
		}
	}
	if len(gone) == 0 {
		return
	}
	m.Graph.Inputs = slices.DeleteFunc(m.Graph.Inputs, func(v *graph.Value) bool { return v.Init != nil })
	m.Meta.Set(metaInputs, encode(gone))
}

// use is a constant that is now inside the body of a call in a graph.
type use struct {
	v *graph.Value
	g *graph.Graph
}

// sweep removes constants that nothing but calls in their own graphs has any more. Those that calls in nested graphs have
// stay, so that Inline finds them in the graph where they were.
func sweep(inside []use) {
	nested := map[*graph.Value]bool{}
	for _, u := range inside {
		if u.v.Graph != u.g {
			nested[u.v] = true
		}
	}
	gone := map[*graph.Value]bool{}
	for _, u := range inside {
		if u.v.Graph != u.g || nested[u.v] || gone[u.v] || u.v.NumUses() > 0 {
			continue
		}
		gone[u.v] = true
		if u.v.Def != nil {
			u.g.Remove(u.v.Def)
		} else {
			u.g.RemoveInits(func(v *graph.Value) bool { return v == u.v })
		}
	}
}
