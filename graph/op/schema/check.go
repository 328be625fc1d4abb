package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Node is what the checks need to know of a node. What is unknown is never a violation.
type Node struct {
	Opset   int // the opset of the operator's domain in whose form the node is; 0 if not known
	In, Out []Operand
	Attrs   []AttrFact
}

// Operand is what is known of an operand or result.
type Operand struct {
	Omitted bool    // not given; Type, Dims and Ints are not looked at
	Type    Type    // the zero Type if not known
	Dims    []int64 // the shape, -1 for a dim not known; nil if the rank is not known, empty for a scalar
	Ints    []int64 // the elements of a constant integer tensor; nil if not known
}

// AttrFact is an attribute that a node carries. Type is AttrUndefined and Value nil where they are not known (an
// attribute of a function body that refers to one of the function). Values have the Go types of Attr.Default.
type AttrFact struct {
	Name  string
	Type  AttrType
	Value any
}

// attr returns the attribute of that name.
func (n *Node) attr(name string) (AttrFact, bool) {
	for _, a := range n.Attrs {
		if a.Name == name {
			return a, true
		}
	}
	return AttrFact{}, false
}

// given counts operands up to the last one that is not omitted.
func given(ops []Operand) int {
	n := len(ops)
	for n > 0 && ops[n-1].Omitted {
		n--
	}
	return n
}

// Accepts returns every way in which the node departs from the schema, in the order inputs, outputs, attributes;
// nil if there is none. The checks are those of the standard: counts of operands; operands omitted only where
// optional; types within the constraints, equal for equal type variables; attributes known, of the right type, and
// present where required. Attribute names that start with "__" are free. Deprecation is not looked at.
func (s *Schema) Accepts(n *Node) []string {
	var out []string
	for _, v := range s.Violations(n) {
		out = append(out, v.Msg)
	}
	return out
}

// Violation is a way in which a node departs from a schema.
type Violation struct {
	Msg string
	// Vital tells that the operator does not know what to compute: an operand that is not optional is not there, or an
	// attribute is missing, ambiguous, or of a type that has nothing in common with the right one. Numbers of one kind in place of
	// another occur in public models.
	Vital bool
}

// Violations is Accepts with what each violation amounts to.
func (s *Schema) Violations(n *Node) []Violation {
	var c checker
	c.operands("input", n.In, s.MinIn, s.MaxIn, s.Input)
	c.operands("output", n.Out, s.MinOut, s.MaxOut, s.Output)
	c.attrs(s, n.Attrs)
	return c.found
}

// place is an operand or result of a node.
type place struct {
	word  string
	index int
	param *Param
}

func (w place) String() string { return fmt.Sprintf("%s %d (%s)", w.word, w.index, w.param.Name) }

// binding is the type that a type variable got, and where.
type binding struct {
	variable string
	typ      Type
	where    place
}

// checker collects violations. Nodes without any are the rule, so nothing is written or allocated for those.
type checker struct {
	found []Violation
	few   [4]binding
	bound int       // how many of few there are
	more  []binding // beyond those
}

// binding returns the binding of a type variable, nil if it has none yet.
func (c *checker) binding(variable string) *binding {
	for _, list := range [][]binding{c.few[:c.bound], c.more} {
		for i := range list {
			if list[i].variable == variable {
				return &list[i]
			}
		}
	}
	return nil
}

func (c *checker) bind(b binding) {
	if c.bound == len(c.few) {
		c.more = append(c.more, b)
		return
	}
	c.few[c.bound] = b
	c.bound++
}

func (c *checker) report(format string, args ...any) {
	c.found = append(c.found, Violation{Msg: fmt.Sprintf(format, args...)})
}

// vital reports a violation that is vital if it is about an input or an attribute: a result that is not there is one that
// nobody can read.
func (c *checker) vital(word, format string, args ...any) {
	c.found = append(c.found, Violation{fmt.Sprintf(format, args...), word != "output"})
}

func (c *checker) operands(word string, ops []Operand, least, most int, formal func(int) *Param) {
	if len(ops) < least {
		c.vital(word, "%d %ss, want at least %d", len(ops), word, least)
	}
	n := given(ops)
	if n > most {
		c.report("%d %ss, want at most %d", n, word, most)
	}
	for i, o := range ops[:min(n, most)] {
		p := formal(i)
		if p == nil {
			break
		}
		c.operand(place{word, i, p}, o)
	}
	// Trailing omitted operands are no operands, except that each required one counts.
	for i := n; i < len(ops); i++ {
		if p := formal(i); p != nil && !p.omissible(word) {
			c.vital(word, "%s %d (%s) is omitted but not optional", word, i, p.Name)
		}
	}
}

// omissible reports whether one of the operands may be the empty name. Those of a variadic input are all read, unless the
// operator is one that hands them on, such as Loop.
func (p *Param) omissible(word string) bool {
	return p.Kind == OptionalParam || p.Kind == VariadicParam && (p.Mixed || word == "output")
}

func (c *checker) operand(where place, o Operand) {
	p := where.param
	if o.Omitted {
		if !p.omissible(where.word) {
			c.vital(where.word, "%s is omitted but not optional", where)
		}
		return
	}
	if !p.Types.Has(o.Type) {
		c.report("%s has type %s, want %s", where, o.Type, p.Types)
		return
	}
	if o.Type.Kind == Unknown || o.Type.Elem == Undefined || p.Kind == VariadicParam && p.Mixed {
		return
	}
	if p.TypeVar == "" { // a fixed type: its set has one member
		return
	}
	switch b := c.binding(p.TypeVar); {
	case b == nil:
		c.bind(binding{p.TypeVar, o.Type, where})
	case b.typ != o.Type:
		c.report("%s has type %s, but %s is %s by %s", where, o.Type, p.TypeVar, b.typ, b.where)
	}
}

func (c *checker) attrs(s *Schema, attrs []AttrFact) {
	given := func(list []AttrFact, name string) bool {
		return slices.ContainsFunc(list, func(a AttrFact) bool { return a.Name == name })
	}
	for i, a := range attrs {
		if given(attrs[:i], a.Name) {
			c.vital("attribute", "attribute %s is given twice", a.Name)
			continue
		}
		if strings.HasPrefix(a.Name, "__") {
			continue
		}
		f, ok := s.Attr(a.Name)
		if !ok {
			if !s.OpenAttrs {
				c.report("attribute %s is not known to %s", a.Name, s.ID())
			}
		} else if a.Type != AttrUndefined && a.Type != f.Type {
			v := Violation{fmt.Sprintf("attribute %s has type %s, want %s", a.Name, a.Type, f.Type), !a.Type.numeric() || !f.Type.numeric()}
			c.found = append(c.found, v)
		}
	}
	for i := range s.Attrs {
		if s.Attrs[i].Required && !given(attrs, s.Attrs[i].Name) {
			c.vital("attribute", "attribute %s is missing", s.Attrs[i].Name)
		}
	}
}

// numeric reports whether attributes of type t are numbers.
func (t AttrType) numeric() bool {
	switch t {
	case AttrFloat, AttrInt, AttrTensor, AttrFloats, AttrInts:
		return true
	}
	return false
}

// IsDefault reports whether v is the default of the attribute name, so that leaving it out means the same.
func (s *Schema) IsDefault(name string, v any) bool {
	f, ok := s.Attr(name)
	return ok && f.Default != nil && reflect.DeepEqual(f.Default, v)
}

// IllegalError tells why a node is not legal at an opset.
type IllegalError struct {
	Domain, Name string
	Opset        int
	Reasons      []string // not empty
}

// Error gives all reasons in one line.
func (e *IllegalError) Error() string {
	name := e.Name
	if e.Domain != "" {
		name = e.Domain + "." + name
	}
	return fmt.Sprintf("%s at opset %d: %s", name, e.Opset, strings.Join(e.Reasons, "; "))
}

// LegalAt reports whether a node may stand, unchanged, in a model of the given opset, and mean what it means at
// n.Opset. The error is an *IllegalError. A node is not legal where
//
//   - the operator does not exist, or is deprecated, or is not of the standard though it is at n.Opset (the first
//     always counts, the other two unless n.Opset has the same version);
//   - the schema does not accept the node;
//   - a default that the node relies on differs from the one at n.Opset;
//   - a break (see Breaks) that bites the node lies between the two opsets.
//
// The last two are not looked at if n.Opset is 0.
func LegalAt(domain, name string, opset int, n *Node) error {
	domain = canonical(domain)
	s, ok := Lookup(domain, name, opset)
	if !ok {
		return &IllegalError{domain, name, opset, []string{absence(domain, name)}}
	}
	form := s
	if n.Opset != 0 {
		if f, ok := Lookup(domain, name, n.Opset); ok {
			form = f
		}
	}
	reasons := s.Accepts(n)
	if s != form {
		if s.Deprecated {
			reasons = append(reasons, fmt.Sprintf("the operator is deprecated from opset %d on", s.Since))
		}
		if s.Contrib && !form.Contrib {
			reasons = append(reasons, fmt.Sprintf("the operator is of the standard from opset %d on only", form.Since))
		}
		reasons = append(reasons, defaultChanges(form, s, n)...)
		lo, hi := min(form.Since, s.Since), max(form.Since, s.Since)
		for _, b := range Breaks(domain, name) {
			if lo < b.Version && b.Version <= hi && b.Bites(n) {
				reasons = append(reasons, fmt.Sprintf("opset %d changed the meaning: %s", b.Version, b.What))
			}
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return &IllegalError{domain, name, opset, reasons}
}

// absence says why an operator cannot be looked up.
func absence(domain, name string) string {
	if vs := Versions(domain, name); len(vs) > 0 {
		return fmt.Sprintf("the operator came with opset %d", vs[0].Since)
	}
	return "the operator is not known"
}

// defaultChanges returns the attributes that n leaves out and whose defaults differ between two schemas.
func defaultChanges(from, to *Schema, n *Node) []string {
	var out []string
	for i := range to.Attrs {
		t := &to.Attrs[i]
		f, ok := from.Attr(t.Name)
		if !ok || reflect.DeepEqual(f.Default, t.Default) {
			continue
		}
		if _, given := n.attr(t.Name); !given {
			out = append(out, fmt.Sprintf("the default of attribute %s changed from %v to %v", t.Name, shown(f.Default), shown(t.Default)))
		}
	}
	return out
}

// shown returns a default for a message.
func shown(v any) any {
	if v == nil {
		return "none"
	}
	return v
}

// Droppable returns the attributes of a node in the form of n.Opset that the schema at opset does not know and
// that hold their defaults, so that leaving them out changes nothing but lets the node be legal there. Whether the
// default is what the older version does is the matter of Breaks, which LegalAt looks at.
func Droppable(domain, name string, opset int, n *Node) []string {
	from, ok1 := Lookup(domain, name, n.Opset)
	to, ok2 := Lookup(domain, name, opset)
	if !ok1 || !ok2 {
		return nil
	}
	var out []string
	for _, a := range n.Attrs {
		if _, known := to.Attr(a.Name); !known && from.IsDefault(a.Name, a.Value) {
			out = append(out, a.Name)
		}
	}
	return out
}
