package graph

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// isType reports whether a type is next: a word of a type that is not all there is of a name.
func (p *parser) isType() bool { return isTypeWord(p.peekWord()) }

// typ reads a type.
func (p *parser) typ() Type {
	defer p.enter()()
	p.skip()
	pos := p.pos
	switch w := p.ident(); w {
	case "seq":
		return SequenceOf(p.inner())
	case "optional":
		return OptionalOf(p.inner())
	case "map":
		p.want("(")
		key := p.elem()
		p.want(",")
		t := p.typ()
		p.want(")")
		return Type{Kind: KindMap, Key: key, Inner: &t}
	case "sparse_tensor":
		p.want("(")
		t := TensorOf(p.elem(), nil)
		t.Kind = KindSparse
		t.Shape = p.shape()
		p.want(")")
		return t
	case "opaque":
		return p.opaque()
	default:
		e, ok := ParseDataType(w)
		if !ok && w != "undefined" {
			p.fail(pos, "%q is no type", w)
		}
		return TensorOf(e, p.shape())
	}
}

func (p *parser) inner() Type {
	p.want("(")
	t := p.typ()
	p.want(")")
	return t
}

func (p *parser) elem() DataType {
	p.skip()
	pos := p.pos
	w := p.ident()
	e, ok := ParseDataType(w)
	if !ok && w != "undefined" {
		p.fail(pos, "%q is no element type", w)
	}
	return e
}

func (p *parser) opaque() Type {
	t := Type{Kind: KindOpaque}
	p.want("(")
	if p.got(")") {
		return t
	}
	dotted := func() string {
		s := p.ident()
		for p.got(".") {
			s += "." + p.ident()
		}
		return s
	}
	t.Name = dotted()
	if p.got(",") {
		t.Domain = t.Name
		t.Name = ""
		if p.peek() != ')' {
			t.Name = dotted()
		}
	}
	p.want(")")
	return t
}

// shape reads what follows an element type: nothing is a scalar's shape, empty brackets an unknown rank.
func (p *parser) shape() Shape {
	if !p.got("[") {
		return Shape{}
	}
	var s Shape
	p.items("]", func() {
		switch c := p.peek(); {
		case c == '?':
			p.want("?")
			s = append(s, Unknown())
		case c == '-' || isDigit(c):
			s = append(s, Known(p.int()))
		default:
			s = append(s, ParseDim(p.ident()))
		}
	})
	return s
}

// tensorData reads the elements of a tensor of the given type.
func (p *parser) tensorData(t Type, pos int) *Tensor {
	dims, ok := t.Shape.Ints()
	if !t.IsTensor() || !ok || !t.Elem.Valid() {
		p.fail(pos, "data of type %s, want a tensor of known shape", textType(t))
		return nil
	}
	d := &Tensor{Elem: t.Elem, Dims: dims}
	if d.Len() < 0 {
		p.fail(pos, "dimensions %v are not a shape", dims)
		return nil
	}
	if p.peek() == '[' {
		p.fail(p.pos, "data in another file cannot be read from text")
		return nil
	}
	p.want("{")
	if p.got("...") {
		p.fail(p.pos-3, "the tensor's elements are left out of the text")
		return nil
	}
	e := elements{elem: t.Elem}
	p.items("}", func() { p.element(&e) })
	per := int64(1)
	if t.Elem.IsComplex() {
		per = 2
	}
	if p.err == nil && int64(e.n) != per*d.Len() {
		p.fail(pos, "%d numbers for a tensor of type %s, want %d", e.n, textType(t), per*d.Len())
		return nil
	}
	if t.Elem == String {
		d.Strings = e.strings
	} else {
		d.Data = Bytes(e.raw)
	}
	return d
}

// elements collects a tensor's data.
type elements struct {
	elem    DataType
	raw     []byte
	strings []string
	n       int
}

func (p *parser) element(e *elements) {
	p.skip()
	pos, i := p.pos, e.n
	e.n++
	if e.elem == String {
		e.strings = append(e.strings, p.str())
		return
	}
	text, _ := p.number()
	le := binary.LittleEndian
	switch e.elem {
	case Float, Complex64:
		e.raw = le.AppendUint32(e.raw, math.Float32bits(float32(p.float(pos, text, 32))))
		return
	case Double, Complex128:
		e.raw = le.AppendUint64(e.raw, math.Float64bits(p.float(pos, text, 64)))
		return
	}
	bits := e.elem.Bits()
	var u uint64
	var err error
	if e.elem.IsSigned() {
		var n int64
		n, err = strconv.ParseInt(text, 10, bits)
		u = uint64(n)
	} else {
		u, err = strconv.ParseUint(text, 10, bits)
	}
	if err != nil {
		p.fail(pos, "%s is no element of type %s", text, e.elem)
		return
	}
	switch bits {
	case 64:
		e.raw = le.AppendUint64(e.raw, u)
	case 32:
		e.raw = le.AppendUint32(e.raw, uint32(u))
	case 16:
		e.raw = le.AppendUint16(e.raw, uint16(u))
	case 8:
		e.raw = append(e.raw, byte(u))
	default:
		per := 8 / bits
		if i%per == 0 {
			e.raw = append(e.raw, 0)
		}
		e.raw[i/per] |= byte(u&(1<<bits-1)) << (bits * (i % per))
	}
}

// float converts the text of a number.
func (p *parser) float(pos int, text string, bits int) float64 {
	if strings.HasSuffix(strings.ToLower(text), "nan") {
		return math.NaN() // with any sign
	}
	x, err := strconv.ParseFloat(text, bits)
	if err != nil {
		p.fail(pos, "%s is no number of %d bits", text, bits)
	}
	return x
}

func (p *parser) attrs() []rawAttr {
	var list []rawAttr
	if p.got("<") {
		p.items(">", func() { list = append(list, p.attrNamed(p.ident())) })
	}
	return list
}

// attrNamed reads an attribute from behind its name on.
func (p *parser) attrNamed(name string) rawAttr {
	a := rawAttr{Attr: &Attr{Name: name}}
	p.skip()
	pos := p.pos
	if p.got(":") {
		w := p.ident()
		for t, s := range attrTypeNames {
			if s == w && t > 0 {
				a.Type = AttrType(t)
			}
		}
		if a.Type == AttrUndefined && w != "undefined" {
			p.fail(pos, "%q is no type of attributes", w)
		}
	}
	p.want("=")
	switch {
	case p.got("@"):
		a.Ref = p.ident()
	case p.got("["):
		empty := true
		want := a.Type.single()
		if a.Type != AttrUndefined && want == a.Type {
			p.fail(pos, "attribute %s has type %s, not a list", name, a.Type)
		}
		p.items("]", func() {
			empty = false
			if t := p.attrValue(&a, want); want == AttrUndefined {
				want = t
			}
		})
		if empty && a.Type == AttrUndefined {
			p.fail(pos, "attribute %s is an empty list without type", name)
		}
		a.Type = want.list()
	default:
		if a.Type != AttrUndefined && a.Type.single() != a.Type {
			p.fail(p.pos, "attribute %s has type %s, want a list", name, a.Type)
		}
		a.Type = p.attrValue(&a, a.Type)
		a.unlist()
	}
	return a
}

// single returns the type of a list's members, any other type itself.
func (t AttrType) single() AttrType {
	if t >= AttrFloats && t <= AttrGraphs {
		return t - AttrFloats + AttrFloat
	}
	if t == AttrSparseTensors || t == AttrTypeProtos {
		return t - 1
	}
	return t
}

// list returns the type of lists of t.
func (t AttrType) list() AttrType {
	switch {
	case t >= AttrFloat && t <= AttrGraph:
		return t + AttrFloats - AttrFloat
	case t == AttrSparseTensor || t == AttrTypeProto:
		return t + 1
	}
	return t
}

// unlist moves a value that was read as a list of one to the field of single values.
func (a *rawAttr) unlist() {
	switch {
	case len(a.Ints) == 1:
		a.I, a.Ints = a.Ints[0], nil
	case len(a.Floats) == 1:
		a.F, a.Floats = a.Floats[0], nil
	case len(a.Strings) == 1:
		a.S, a.Strings = a.Strings[0], nil
	case len(a.Tensors) == 1:
		a.T, a.Tensors = a.Tensors[0], nil
	}
}

// attrValue reads a single value of the wanted type, or of whatever type it has, and appends it to the list field.
func (p *parser) attrValue(a *rawAttr, want AttrType) AttrType {
	c := p.peek()
	pos := p.pos
	got := AttrUndefined
	switch w := p.peekWord(); {
	case c == '(':
		got = AttrSparseTensor
		a.Sparse = append(a.Sparse, p.sparse())
	case isTypeWord(w) && want != AttrGraph:
		t := p.typ()
		if c := p.peek(); want != AttrTypeProto && (c == '{' || c == '=' || c == '"' || isLetter(c)) {
			got = AttrTensor
			a.Tensors = append(a.Tensors, p.tensorNamed(t, pos))
		} else {
			got = AttrTypeProto
			a.Types = append(a.Types, t)
		}
	case c == '"' && want != AttrGraph:
		got = AttrString
		a.Strings = append(a.Strings, p.str())
	case c == '"' || w != "" && !isFloatWord(w):
		got = AttrGraph
		a.graphs = append(a.graphs, p.graph())
	default:
		text, float := p.number()
		if float || want == AttrFloat {
			got = AttrFloat
			a.Floats = append(a.Floats, float32(p.float(pos, text, 32)))
			break
		}
		got = AttrInt
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			p.fail(pos, "want an integer of 64 bits, got %s", text)
		}
		a.Ints = append(a.Ints, n)
	}
	if want != AttrUndefined && got != want {
		p.fail(pos, "attribute %s has a value of type %s, want %s", a.Name, got, want)
	}
	return got
}

// tensorNamed reads a tensor from behind its type on.
func (p *parser) tensorNamed(t Type, pos int) *Tensor {
	name := ""
	if c := p.peek(); c == '"' || isLetter(c) {
		name = p.ident()
	}
	p.got("=")
	d := p.tensorData(t, pos)
	if d != nil {
		d.Name = name
	}
	return d
}

// sparse reads (values, indices, dims).
func (p *parser) sparse() *Sparse {
	s := &Sparse{}
	p.want("(")
	p.skip()
	pos := p.pos
	s.Values = p.tensorNamed(p.typ(), pos)
	p.want(",")
	p.skip()
	pos = p.pos
	s.Indices = p.tensorNamed(p.typ(), pos)
	p.want(",")
	p.want("[")
	p.items("]", func() { s.Dims = append(s.Dims, p.int()) })
	p.want(")")
	return s
}
