package graph

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// PrintOptions selects what [Print] writes. The zero value gives all that the syntax has a place for, tensors of more
// than 64 elements elided.
type PrintOptions struct {
	MaxElems int  // tensors with more elements are elided; 0 means 64, negative means none are
	Hash     bool // mark elided tensors with a digest of their data, which is read for that
	NoTypes  bool // leave out the types of values that are no inputs, outputs or initializers
	NoMeta   bool // leave out metadata of nodes
}

// Print writes m in the text syntax of the ONNX standard (docs/Syntax.md there), which [Parse] reads.
//
// A type without brackets is that of a scalar, empty brackets mean unknown rank. Narrow floats are written as the
// integers that hold their bits. The syntax has no place for some parts of a model. Metadata of a node follows it in a
// comment, "# meta: ", with quoted keys and values; Parse reads these back. Sparse tensors are written
// (values, indices, dims). Names that are no identifiers are quoted wherever they stand, also where the standard's
// parser wants an identifier. Doc strings other than the model's and a function's, and metadata of graphs and functions,
// are left out, as is the payload of a NaN. An elided tensor, "{...}", is for people: Parse refuses it.
func Print(w io.Writer, m *Model, opt PrintOptions) error {
	if opt.MaxElems == 0 {
		opt.MaxElems = 64
	}
	p := &printer{w: bufio.NewWriter(w), opt: opt}
	p.model(m)
	if p.err != nil {
		return p.err
	}
	return p.w.Flush()
}

// String returns m in the text syntax, large tensors elided; see [Print].
func (m *Model) String() string {
	var b strings.Builder
	if err := Print(&b, m, PrintOptions{}); err != nil {
		return err.Error()
	}
	return b.String()
}

// String returns n in one line of the text syntax, subgraphs and tensors elided.
func (n *Node) String() string {
	var b strings.Builder
	p := &printer{w: bufio.NewWriter(&b), opt: PrintOptions{MaxElems: 8, NoMeta: true}, short: true}
	p.node(n)
	p.w.Flush()
	return b.String()
}

type printer struct {
	w     *bufio.Writer
	opt   PrintOptions
	depth int
	short bool // one line: subgraphs are elided
	err   error
}

func (p *printer) str(parts ...string) {
	for _, s := range parts {
		p.w.WriteString(s)
	}
}

// line starts a line at the depth of the graph at hand.
func (p *printer) line() {
	p.str("\n", strings.Repeat("   ", p.depth))
}

// quote returns s as a string literal: backslash and quote are escaped, all else stands for itself.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// isTextIdent reports whether s is an identifier of the text syntax that is no word of its types.
func isTextIdent(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && !isTypeWord(s) && !isFloatWord(s)
}

// isTypeWord reports whether a type can begin with the word.
func isTypeWord(s string) bool {
	switch s {
	case "seq", "map", "optional", "sparse_tensor", "opaque", "undefined":
		return true
	}
	_, ok := ParseDataType(s)
	return ok
}

func isFloatWord(s string) bool {
	switch strings.ToLower(s) {
	case "inf", "infinity", "nan":
		return true
	}
	return false
}

// ident returns a name, quoted unless it is an identifier.
func ident(s string) string {
	if isTextIdent(s) {
		return s
	}
	return quote(s)
}

func (p *printer) model(m *Model) {
	p.str("<\n   ir_version: ", strconv.FormatInt(m.IRVersion, 10), ",\n   opset_import: ", opsetList(m.Opsets))
	for _, f := range []struct{ key, value string }{{"producer_name", m.Producer}, {"producer_version", m.ProducerVersion}, {"domain", m.Domain}} {
		if f.value != "" {
			p.str(",\n   ", f.key, ": ", quote(f.value))
		}
	}
	if m.Version != 0 {
		p.str(",\n   model_version: ", strconv.FormatInt(m.Version, 10))
	}
	if m.Doc != "" {
		p.str(",\n   doc_string: ", quote(m.Doc))
	}
	if len(m.Meta) > 0 {
		p.str(",\n   metadata_props: [")
		for i, e := range m.Meta {
			p.sep(i)
			p.str(quote(e.Key), ": ", quote(e.Value))
		}
		p.str("]")
	}
	p.str("\n>\n")
	p.graph(m.Graph)
	for _, f := range m.Functions {
		p.str("\n\n")
		p.function(f)
	}
	p.str("\n")
}

func opsetList(list []Opset) string {
	var b strings.Builder
	for i, o := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s : %d", quote(o.Domain), o.Version)
	}
	return "[" + b.String() + "]"
}

// sep writes a comma in front of all but the first.
func (p *printer) sep(i int) {
	if i > 0 {
		p.str(", ")
	}
}

func (p *printer) graph(g *Graph) {
	p.str(ident(g.Name), " (")
	for i, v := range g.Inputs {
		p.sep(i)
		p.typed(v)
		if v.Init != nil {
			p.str(" = ")
			p.data(v.Init)
		}
	}
	p.str(") => (")
	for i, v := range g.Outputs {
		p.sep(i)
		p.typed(v)
	}
	p.str(")")
	p.depth++
	p.extras(g)
	p.nodes(g)
}

// typed writes a value's type, if it is known, and name.
func (p *printer) typed(v *Value) {
	if v.Type.Kind != KindUnknown {
		p.str(textType(v.Type), " ")
	}
	p.str(ident(v.Name))
}

// extras writes the list of initializers and of types of inner values, if there are any, one a line.
func (p *printer) extras(g *Graph) {
	open := false
	next := func() {
		if open {
			p.str(",")
		} else {
			p.line()
			p.str("<")
			p.depth++
		}
		open = true
		p.line()
	}
	inputs := setOf(g.Inputs)
	for _, v := range g.Inits {
		if !inputs[v] {
			next()
			p.str(textType(v.Init.Type()), " ", ident(v.Name), " = ")
			p.data(v.Init)
		}
	}
	if !p.opt.NoTypes {
		for _, v := range innerTyped(g) {
			next()
			p.typed(v)
		}
	}
	if open {
		p.depth--
		p.line()
		p.str(">")
	}
}

// innerTyped returns the results of g's nodes whose types are known and that are no outputs of g, which carry theirs
// already.
func innerTyped(g *Graph) []*Value {
	var out []*Value
	for _, n := range g.Nodes {
		for _, v := range n.Out {
			if v != nil && v.Type.Kind != KindUnknown && !isOutputOf(v, g) {
				out = append(out, v)
			}
		}
	}
	return out
}

func isOutputOf(v *Value, g *Graph) bool {
	for _, u := range v.uses {
		if u.Node == nil && u.Graph == g {
			return true
		}
	}
	return false
}

// nodes writes the body and closes the graph's indentation.
func (p *printer) nodes(g *Graph) {
	p.depth--
	p.line()
	p.str("{")
	p.depth++
	for _, n := range g.Nodes {
		p.line()
		p.node(n)
	}
	p.depth--
	p.line()
	p.str("}")
}

func (p *printer) names(values []*Value) {
	for i, v := range values {
		p.sep(i)
		if v == nil {
			p.str(`""`)
		} else {
			p.str(ident(v.Name))
		}
	}
}

func (p *printer) node(n *Node) {
	if n.Name != "" {
		p.str("[", ident(n.Name), "] ")
	}
	p.names(n.Out)
	p.str(" = ")
	if n.Domain != "" {
		for _, part := range strings.Split(n.Domain, ".") {
			p.str(opIdent(part), ".")
		}
	}
	p.str(opIdent(n.Op))
	if n.Overload != "" {
		p.str(":", opIdent(n.Overload))
	}
	graphs := len(n.Subgraphs()) > 0
	if !graphs {
		p.attrs(n.Attrs)
	}
	p.str(" (")
	p.names(n.In)
	p.str(")")
	if graphs {
		p.attrs(n.Attrs)
	}
	if len(n.Meta) > 0 && !p.opt.NoMeta {
		p.str("  ", metaComment)
		for i, e := range n.Meta {
			p.sep(i)
			p.str(strconv.Quote(e.Key), ": ", strconv.Quote(e.Value))
		}
	}
}

// metaComment begins the comment that holds a node's metadata.
const metaComment = "# meta: "

// opIdent is ident for operators and domains, where words of types need no quotes.
func opIdent(s string) string {
	if isTypeWord(s) || isFloatWord(s) {
		return s
	}
	return ident(s)
}

func (p *printer) attrs(list []*Attr) {
	if len(list) == 0 {
		return
	}
	p.str(" <")
	for i, a := range list {
		p.sep(i)
		p.attr(a)
	}
	p.str(">")
}

func (p *printer) function(f *Function) {
	p.str("<\n   domain: ", quote(f.Domain), ",\n")
	if f.Overload != "" {
		p.str("   overload: ", quote(f.Overload), ",\n")
	}
	if f.Doc != "" {
		p.str("   doc_string: ", quote(f.Doc), ",\n")
	}
	p.str("   opset_import: ", opsetList(f.Opsets), "\n>\n", ident(f.Name))
	if len(f.Attrs)+len(f.Defaults) > 0 {
		p.str(" <")
		for i, name := range f.Attrs {
			p.sep(i)
			p.str(opIdent(name))
		}
		for i, a := range f.Defaults {
			p.sep(i + len(f.Attrs))
			p.attr(a)
		}
		p.str(">")
	}
	for i, list := range [][]*Value{f.Body.Inputs, f.Body.Outputs} {
		p.str([]string{" (", " => ("}[i])
		for j, v := range list {
			p.sep(j)
			p.typed(v)
		}
		p.str(")")
	}
	p.depth++
	p.extras(f.Body)
	p.nodes(f.Body)
}
