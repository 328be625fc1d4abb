package graph

import (
	"slices"
	"strconv"
	"strings"
)

// The raw parts of a model: names are not resolved yet.
type (
	rawName struct {
		name string
		pos  int
	}
	rawValue struct {
		rawName
		typ  Type
		init *Tensor
	}
	rawAttr struct {
		*Attr
		graphs []*rawGraph
	}
	rawNode struct {
		pos                        int
		name, domain, op, overload string
		in, out                    []rawName
		attrs                      []rawAttr
		meta                       Meta
	}
	rawGraph struct {
		name                    string
		inputs, outputs, extras []rawValue
		nodes                   []*rawNode
	}
	rawFunction struct {
		fn       *Function
		defaults []rawAttr
		body     *rawGraph
		pos      int
	}
	rawModel struct {
		model *Model
		graph *rawGraph
		fns   []*rawFunction
	}
)

func (p *parser) model() *rawModel {
	m := &Model{}
	r := &rawModel{model: m}
	if p.got("<") {
		p.items(">", func() { p.modelField(m) })
	}
	r.graph = p.graph()
	for p.peek() != 0 && p.err == nil {
		r.fns = append(r.fns, p.function())
	}
	if m.IRVersion == 0 {
		m.IRVersion = irVersionFor(m.Opset(""))
	}
	return r
}

// key reads a header field's name and the colon.
func (p *parser) key() (string, int) {
	p.skip()
	pos := p.pos
	key := p.ident()
	p.want(":")
	return key, pos
}

func (p *parser) modelField(m *Model) {
	switch key, pos := p.key(); key {
	case "ir_version":
		m.IRVersion = p.int()
	case "opset_import":
		m.Opsets = p.opsets()
	case "producer_name":
		m.Producer = p.str()
	case "producer_version":
		m.ProducerVersion = p.str()
	case "domain":
		m.Domain = p.str()
	case "model_version":
		m.Version = p.int()
	case "doc_string":
		m.Doc = p.str()
	case "metadata_props":
		p.want("[")
		p.items("]", func() {
			k := p.str()
			p.want(":")
			m.Meta = append(m.Meta, MetaEntry{k, p.str()})
		})
	default:
		p.fail(pos, "a model has no field %q", key)
	}
}

func (p *parser) opsets() []Opset {
	var list []Opset
	p.want("[")
	p.items("]", func() {
		d := p.str()
		p.want(":")
		list = append(list, Opset{d, p.int()})
	})
	return list
}

// int reads an integer.
func (p *parser) int() int64 {
	p.skip()
	pos := p.pos
	text, _ := p.number()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.fail(pos, "want an integer of 64 bits, got %s", text)
	}
	return n
}

func (p *parser) function() *rawFunction {
	f := &Function{}
	r := &rawFunction{fn: f, body: &rawGraph{}}
	if p.got("<") {
		p.items(">", func() {
			switch key, pos := p.key(); key {
			case "domain":
				f.Domain = p.str()
			case "overload":
				f.Overload = p.str()
			case "doc_string":
				f.Doc = p.str()
			case "opset_import":
				f.Opsets = p.opsets()
			default:
				p.fail(pos, "a function has no field %q", key)
			}
		})
	}
	p.skip()
	r.pos = p.pos
	f.Name = p.ident()
	r.body.name = f.Name
	if p.got("<") {
		p.items(">", func() {
			name := p.ident()
			if c := p.peek(); c == ':' || c == '=' {
				r.defaults = append(r.defaults, p.attrNamed(name))
			} else {
				f.Attrs = append(f.Attrs, name)
			}
		})
	}
	r.body.inputs = p.values(false)
	p.want("=>")
	r.body.outputs = p.values(false)
	p.bodyOf(r.body)
	return r
}

// graph reads a graph with its name.
func (p *parser) graph() *rawGraph {
	defer p.enter()()
	g := &rawGraph{name: p.ident()}
	g.inputs = p.values(true)
	p.want("=>")
	g.outputs = p.values(false)
	p.bodyOf(g)
	return g
}

// values reads a list of typed names in parentheses, with data if init.
func (p *parser) values(init bool) []rawValue {
	var list []rawValue
	p.want("(")
	p.items(")", func() { list = append(list, p.value(init)) })
	return list
}

func (p *parser) value(init bool) rawValue {
	var v rawValue
	typed := p.isType()
	if typed {
		v.typ = p.typ()
	}
	v.rawName = p.nameAt()
	if init && p.peek() == '=' {
		p.want("=")
		if !typed {
			p.fail(v.pos, "%q has data but no type", v.name)
		}
		v.init = p.tensorData(v.typ, v.pos)
	}
	return v
}

func (p *parser) nameAt() rawName {
	p.skip()
	pos := p.pos
	return rawName{p.ident(), pos}
}

// bodyOf reads initializers, types and nodes.
func (p *parser) bodyOf(g *rawGraph) {
	if p.got("<") {
		p.items(">", func() { g.extras = append(g.extras, p.value(true)) })
	}
	p.want("{")
	for p.err == nil && !p.got("}") {
		g.nodes = append(g.nodes, p.node())
	}
}

// idents reads names up to a closing token, which is left. Nothing between commas is an omitted value, as is "".
func (p *parser) idents(end string) []rawName {
	var list []rawName
	for p.err == nil && !strings.HasPrefix(p.src[p.pos:], end) {
		switch c := p.peek(); {
		case c == ',':
			list = append(list, rawName{"", p.pos})
		case c == end[0]:
			return list
		default:
			list = append(list, p.nameAt())
		}
		if !p.got(",") {
			break
		}
		p.skip()
	}
	p.skip()
	return list
}

func (p *parser) node() *rawNode {
	n := &rawNode{}
	p.skip()
	n.pos, p.meta = p.pos, ""
	if p.got("[") {
		n.name = p.ident()
		p.want("]")
	}
	p.skip()
	n.out = p.idents("=")
	p.want("=")
	n.op = p.ident()
	for p.got(".") {
		if n.domain != "" {
			n.domain += "."
		}
		n.domain += n.op
		n.op = p.ident()
	}
	if p.got(":") {
		n.overload = p.ident()
	}
	n.attrs = p.attrs()
	p.want("(")
	p.skip()
	n.in = p.idents(")")
	p.want(")")
	if len(n.attrs) == 0 {
		n.attrs = p.attrs()
	}
	p.skip() // to a comment behind the node
	n.meta = parseMeta(p.meta)
	p.meta = ""
	return n
}

// parseMeta reads the metadata comment of a node; what is no such comment is nothing.
func parseMeta(text string) Meta {
	var m Meta
	for text != "" {
		var pair [2]string
		for i, sep := range []string{": ", ", "} {
			q, err := strconv.QuotedPrefix(text)
			if err != nil {
				return nil
			}
			pair[i], _ = strconv.Unquote(q)
			rest, ok := strings.CutPrefix(text[len(q):], sep)
			if !ok && (i == 0 || strings.TrimSpace(rest) != "") {
				return nil
			}
			text = strings.TrimRight(rest, " \t\r")
		}
		m = append(m, MetaEntry{pair[0], pair[1]})
	}
	return m
}

// build makes the model of the raw parts.
func (p *parser) build(r *rawModel) *Model {
	m := r.model
	m.Graph = m.NewGraph(r.graph.name)
	p.fill(m.Graph, r.graph, nil)
	for _, f := range r.fns {
		f.fn.Body = m.NewGraph(f.body.name)
		f.fn.Body.Func = f.fn
		for _, a := range f.defaults {
			if len(a.graphs) > 0 {
				p.fail(f.pos, "attribute %s of function %s has a graph for its default", a.Name, f.fn.Name)
			}
			f.fn.Defaults = append(f.fn.Defaults, a.Attr)
		}
		p.fill(f.fn.Body, f.body, nil)
		m.Functions = append(m.Functions, f.fn)
	}
	return m
}

// names is what a graph's text can refer to.
type names struct {
	outer *names
	own   map[string]*Value
}

func (s *names) find(name string) *Value {
	for ; s != nil; s = s.outer {
		if v := s.own[name]; v != nil {
			return v
		}
	}
	return nil
}

// fill makes the content of g: first everything that defines a name, then what reads names.
func (p *parser) fill(g *Graph, r *rawGraph, outer *names) {
	s := &names{outer, map[string]*Value{}}
	define := func(at rawName, v *Value) {
		if s.own[at.name] != nil {
			p.fail(at.pos, "%q is defined twice", at.name)
		}
		if at.name == "" {
			p.fail(at.pos, "a value has no name")
		}
		s.own[at.name] = v
	}
	for _, x := range r.inputs {
		v := g.AddInput(x.name, x.typ)
		define(x.rawName, v)
		if x.init != nil {
			g.SetInit(v, x.init)
		}
	}
	for _, x := range r.extras {
		if x.init != nil {
			define(x.rawName, g.AddInit(x.name, x.init))
		}
	}
	nodes := make([]*Node, len(r.nodes))
	for i, x := range r.nodes {
		n := g.NewNode(x.domain, x.op, nil, make([]string, len(x.out)))
		n.Name, n.Overload, n.Meta = x.name, x.overload, x.meta
		for j, out := range x.out {
			if out.name != "" {
				define(out, n.DefineOut(j, out.name))
			}
		}
		nodes[i] = n
	}
	g.Append(nodes...)
	p.typeInner(g, r, s)
	for i, x := range r.nodes {
		p.connect(nodes[i], x, s)
	}
	for _, x := range r.outputs {
		v := s.find(x.name)
		if v == nil {
			p.fail(x.pos, "output %q is not defined", x.name)
			return
		}
		if v.Type.Kind == KindUnknown {
			v.Type = x.typ
		}
		g.AddOutput(v)
	}
}

// typeInner gives the values of g the types that the text lists.
func (p *parser) typeInner(g *Graph, r *rawGraph, s *names) {
	for _, x := range r.extras {
		if x.init != nil {
			continue
		}
		v := s.own[x.name]
		if v == nil {
			p.fail(x.pos, "%q has a type but is not defined", x.name)
			return
		}
		v.Type = x.typ
	}
}

// connect gives n its operands and attributes.
func (p *parser) connect(n *Node, r *rawNode, s *names) {
	for i, x := range r.in {
		if x.name == "" {
			n.SetIn(i, nil)
			continue
		}
		v := s.find(x.name)
		if v == nil {
			p.fail(x.pos, "%q is not defined", x.name)
			return
		}
		n.SetIn(i, v)
	}
	for _, a := range r.attrs {
		if slices.ContainsFunc(n.Attrs, func(b *Attr) bool { return b.Name == a.Name }) {
			p.fail(r.pos, "attribute %s is given twice", a.Name)
			return
		}
		for _, sub := range a.graphs {
			g := n.Graph.Model.NewGraph(sub.name)
			g.Parent = n
			if a.Type == AttrGraph {
				a.G = g
			} else {
				a.Graphs = append(a.Graphs, g)
			}
			p.fill(g, sub, s)
		}
		n.SetAttr(a.Attr)
	}
}
